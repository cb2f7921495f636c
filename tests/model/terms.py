"""The guards of the protocol by name: each AND-term of each condition, and how to leave some of them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from turngate.domain.transaction import Absent, AtLeast, AtMost, Equals, Exists, OneOf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turngate.domain.transaction import Action, Term, Transaction


def term_name(term: Term) -> str:
    match term:
        case Exists():
            return "exists"
        case Absent(name=""):
            return "absent"
        case Absent(name=name):
            return f"no {name}"
        case Equals(name=name):
            return f"{name} ="
        case OneOf(name=name):
            return f"{name} in"
        case AtMost(name=name):
            return f"{name} <="
        case AtLeast(name=name):
            return f"{name} >="


def guard_name(transaction: Transaction, action: Action, term: Term) -> str:
    """Such as `finish.run: execution =`."""
    return f"{transaction.name}.{action.name}: {term_name(term)}"


def guards_of(transaction: Transaction) -> Iterator[str]:
    for action in transaction.actions:
        for term in action.condition:
            yield guard_name(transaction, action, term)


def without(*guards: str) -> Callable[[Transaction], Transaction]:
    """What turns these guards off, and leaves everything else of a transaction alone."""
    off = frozenset(guards)
    concerned = {guard.partition(".")[0] for guard in off}

    def mutate(transaction: Transaction) -> Transaction:
        if transaction.name not in concerned:
            return transaction
        actions = tuple(
            replace(
                action,
                condition=tuple(
                    term for term in action.condition if guard_name(transaction, action, term) not in off
                ),
            )
            for action in transaction.actions
        )
        return replace(transaction, actions=actions)

    return mutate
