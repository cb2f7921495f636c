"""What we asked and still wait for: pending items as data, and how a commit opens and closes them (F-040).

    Clarification (part of a ruling) ──commit──► PEND item, listed on HEAD
    open ──► resumed | cancelled | declined | replaced | expired | dropped         the last six are terminal (I9)

A pending item changes only inside a finish: the question it belongs to is committed or not, and so is the item. At
most four are open; HEAD lists them, oldest first, so that a turn without any reads nothing more than before.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import msgspec

from turngate.domain import keys, wire
from turngate.domain.records import OpenPending
from turngate.domain.shapes import Clarification, Frozen, Option
from turngate.domain.transaction import Absent, AtMost, Equals, Put, Update
from turngate.errors import BrokenInvariantError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from turngate.domain.transaction import Action, Item, Term

PendingKind = Literal[
    "dependency_choice", "entity_choice", "missing_parameter", "intent_guidance", "approval"
]
RESUME_ORDER: tuple[PendingKind, ...] = (
    "dependency_choice",
    "entity_choice",
    "missing_parameter",
    "intent_guidance",
    "approval",
)
"""S1's order (F-035), then what S1 had off its main path, then what is never resumed by words: an approval is given by
a card action bound to the call (R-16)."""
MAX_OPEN = 4
LIFETIME_MS = 30 * 60_000
"""Our choice: longer than a walk to the shelf with the order number, shorter than a new matter."""
RETENTION_S = 7 * 24 * 3600


class PendingItem(Frozen):
    """One open question. `text` is what was said; `question` the sub-question that waits; `given` what is known.

    `resume_token` names the item towards a model, so that ids of ours stay ours. `expires_at` is epoch ms."""

    pending_id: str
    kind: PendingKind
    text: str
    question: str
    intent_id: str = ""
    missing_fields: tuple[str, ...] = ()
    candidates: tuple[Option, ...] = ()
    given: dict[str, str] = msgspec.field(default_factory=dict)
    resume_token: str
    run: str
    asked_seq: int
    expires_at: int


class Opening(Frozen):
    """A question to keep open once the reply that asks it is committed."""

    part_id: str
    question: str
    clarification: Clarification


class Closing(Frozen):
    """An open item that this turn ends. `resumed`: answered; `declined`: none of the offered; `replaced`: asked
    anew."""

    pending_id: str
    state: Literal["resumed", "cancelled", "declined", "replaced"]


class PendingChanges(Frozen):
    """What a turn does to open questions, decided by Govern and applied by the commit."""

    opened: tuple[Opening, ...] = ()
    closed: tuple[Closing, ...] = ()


def waits_for_an_answer(clarification: Clarification) -> bool:
    """Whether there is something definite to answer: "请说具体些" waits for nothing in particular."""
    return clarification.reason != "incomplete"


def pending_item(account: str, run: str, asked_seq: int, opening: Opening, now: int) -> PendingItem:
    """The item of one question. The id depends on run and part alone, so a repeated commit writes the same item."""
    asked = opening.clarification
    if asked.reason == "incomplete":
        raise BrokenInvariantError(f"{opening.part_id}: nothing to answer, and yet kept open")
    digest = hashlib.sha256(f"{account}#{run}#{opening.part_id}".encode()).hexdigest()
    return PendingItem(
        pending_id=f"q{digest[:31]}",
        kind=asked.reason,
        text=asked.text,
        question=opening.question,
        intent_id=asked.intent_id,
        missing_fields=asked.missing_fields,
        candidates=asked.candidates,
        given=asked.given,
        resume_token=f"w{digest[31:47]}",
        run=run,
        asked_seq=asked_seq,
        expires_at=now + LIFETIME_MS,
    )


def stored(item: PendingItem) -> Item:
    """The attributes of an open item."""
    return {
        "entity": "pending",
        "state": "open",
        "item": wire.write_json(item),
        "expires_at": item.expires_at,
        "ttl": item.expires_at // 1000 + RETENTION_S,
    }


def read_open(items: Iterable[Item], now: int) -> tuple[PendingItem, ...]:
    """The items that may still be answered, in the order in which they are tried: by kind, the newest first."""
    found = [
        wire.read_json(item["item"], PendingItem)
        for item in items
        if item["state"] == "open" and item["expires_at"] > now
    ]
    return tuple(
        sorted(found, key=lambda item: (RESUME_ORDER.index(item.kind), -item.asked_seq, item.pending_id))
    )


def still_open(listed: Sequence[OpenPending], now: int) -> tuple[str, ...]:
    """Ids on HEAD that have not expired."""
    return tuple(each.id for each in listed if each.expires_at > now)


def commit_pending(
    account: str,
    conversation: str,
    listed: Sequence[OpenPending],
    changes: PendingChanges,
    *,
    run: str,
    seq: int,
    now: int,
) -> tuple[tuple[Action, ...], tuple[OpenPending, ...]]:
    """Writes for a finish, and the list HEAD gets: expired items are closed, then what the turn closed, then its new
    questions come in, and the oldest leave when there are more than four. `listed` is HEAD's list as read; the
    finish's own condition on HEAD keeps it true."""
    ended: dict[str, str] = {each.id: "expired" for each in listed if each.expires_at <= now}
    known = {each.id for each in listed}
    for closing in changes.closed:
        if closing.pending_id in known:
            ended.setdefault(closing.pending_id, closing.state)
    opened = tuple(pending_item(account, run, seq, opening, now) for opening in changes.opened)
    kept = [each for each in listed if each.id not in ended]
    kept += [OpenPending(item.pending_id, item.expires_at) for item in opened]
    dropped, kept = kept[: max(0, len(kept) - MAX_OPEN)], kept[-MAX_OPEN:]
    new = {item.pending_id for item in opened}
    ended |= {each.id: "dropped" for each in dropped if each.id not in new}
    remaining = {each.id for each in kept}
    actions: list[Action] = [
        _close(account, conversation, each, ended[each.id], run, now) for each in listed if each.id in ended
    ]
    actions += [
        Put(
            f"pending_{item.pending_id}",
            keys.pending(account, conversation, item.pending_id),
            stored(item),
            (Absent(),),
        )
        for item in opened
        if item.pending_id in remaining
    ]
    return tuple(actions), tuple(kept)


def _close(account: str, conversation: str, listed: OpenPending, state: str, run: str, now: int) -> Update:
    condition: tuple[Term, ...] = (Equals("state", "open"),)
    if state == "expired":
        condition = (*condition, AtMost("expires_at", now))
    ended: Item = {"state": state, "ended_at": now, "ended_by": run}
    return Update(
        f"pending_{listed.id}", keys.pending(account, conversation, listed.id), ended, condition=condition
    )
