"""A write, said as a value: what changes, and what must hold for it to change.

The transition functions return a `Transaction`; a store executes it. Both the DynamoDB adapter and the memory
adapter read the same value, so the protocol that tests explore is the protocol that runs.

A condition is a conjunction of terms. A term on an item that does not exist is false, except `Absent`. Values of
different types are never equal and never ordered (to DynamoDB, true is not 1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

Item = dict[str, Any]
"""Attributes of one item without its key. Values: str, int, bool, None, bytes, and lists or dicts of them; no
floats (DynamoDB has none)."""


class Key(NamedTuple):
    pk: str
    sk: str


class Exists(Struct, frozen=True):
    """The item exists."""


class Absent(Struct, frozen=True):
    """The attribute, or without a name the whole item, does not exist."""

    name: str = ""


class Equals(Struct, frozen=True):
    name: str
    value: str | int | bool


class OneOf(Struct, frozen=True):
    name: str
    values: tuple[str, ...]


class AtMost(Struct, frozen=True):
    """attribute <= value."""

    name: str
    value: int


class AtLeast(Struct, frozen=True):
    """attribute >= value."""

    name: str
    value: int


Term = Exists | Absent | Equals | OneOf | AtMost | AtLeast
Condition = tuple[Term, ...]


class Put(Struct, frozen=True):
    """Write the whole item."""

    name: str
    key: Key
    item: Item
    condition: Condition = ()


class Update(Struct, frozen=True):
    """Set and remove attributes; the item is created when it does not exist and the condition allows it."""

    name: str
    key: Key
    set: Item
    remove: tuple[str, ...] = ()
    condition: Condition = ()


class Check(Struct, frozen=True):
    """Write nothing, but require."""

    name: str
    key: Key
    condition: Condition


class Delete(Struct, frozen=True):
    name: str
    key: Key
    condition: Condition = ()


Action = Put | Update | Check | Delete


class Transaction(Struct, frozen=True):
    """All or nothing. `name` says which transition of INVARIANTS.md this is; action names are unique in it."""

    name: str
    actions: tuple[Action, ...] = ()


def holds(condition: Condition, item: Item | None) -> bool:
    """Whether the condition holds for the item as it is (None: it does not exist)."""
    return all(_term_holds(term, item) for term in condition)


def _term_holds(term: Term, item: Item | None) -> bool:
    match term:
        case Absent(name=""):
            return item is None
        case Absent(name=name):
            return item is None or name not in item
        case Exists():
            return item is not None
        case _ if item is None or term.name not in item:
            return False
        case Equals(name=name, value=value):
            return type(item[name]) is type(value) and bool(item[name] == value)
        case OneOf(name=name, values=values):
            return item[name] in values
        case AtMost(name=name, value=bound):
            return type(item[name]) is int and item[name] <= bound
        case AtLeast(name=name, value=bound):
            return type(item[name]) is int and item[name] >= bound


def applied(action: Action, item: Item | None) -> Item | None:
    """The item after the action, which must be allowed (None: there is no item)."""
    match action:
        case Put(item=new):
            return dict(new)
        case Update(set=changes, remove=gone):
            kept = {name: value for name, value in (item or {}).items() if name not in gone}
            return {**kept, **changes}
        case Delete():
            return None
        case Check():
            return item
