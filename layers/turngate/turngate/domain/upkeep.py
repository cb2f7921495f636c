"""What the sweeper does with an item that owes a follow-up and is late (I8).

RUN  queued, before its deadline   start it again
RUN  open, past its deadline       end it as timed out, with a stated failure
EVT  not announced                 announce it again, less often the older it is; after a while give it up
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from turngate.domain import keys
from turngate.domain.accept import START_GRACE_MS
from turngate.domain.client_events import PUSH_GRACE_MS
from turngate.domain.records import Run
from turngate.domain.transaction import Equals, Exists, Transaction, Update

if TYPE_CHECKING:
    from turngate.domain.transaction import Item, Key

GIVE_UP_PUSH_MS = 15 * 60_000


class StartAgain(Struct, frozen=True):
    """The start was lost: move the due time, then send the run to `runs-to-start`."""

    postponed: Transaction
    run: Run
    kind: Literal["start_again"] = "start_again"


class TimeOut(Struct, frozen=True):
    run: Run
    kind: Literal["time_out"] = "time_out"


class AnnounceAgain(Struct, frozen=True):
    postponed: Transaction
    evt: int
    kind: Literal["announce_again"] = "announce_again"


class GiveUp(Struct, frozen=True):
    """Nobody could be told for so long that whoever comes back will resume from the log, which keeps the event."""

    announced: Transaction
    kind: Literal["give_up"] = "give_up"


class NothingOwed(Struct, frozen=True):
    """Done in the meantime: the due index lags behind the table."""

    kind: Literal["nothing_owed"] = "nothing_owed"


def decide_follow_up(
    key: Key, item: Item | None, now: int
) -> StartAgain | TimeOut | AnnounceAgain | GiveUp | NothingOwed:
    """Rule on one item of the due index, given the item as it is now."""
    due = keys.due_at(item) if item is not None else None
    if item is None or due is None or due > now:
        return NothingOwed()
    if item["entity"] == "events":
        age = now - item.get("at", now)
        if age >= GIVE_UP_PUSH_MS:
            return GiveUp(_announced(key))
        return AnnounceAgain(_postpone(key, item, now + max(PUSH_GRACE_MS, age)), item["last"])
    run = Run.from_item(item)
    if run.deadline <= now:
        return TimeOut(run)
    return StartAgain(_postpone(key, item, now + START_GRACE_MS), run)


def _postpone(key: Key, item: Item, until: int) -> Transaction:
    """Only one sweeper gets the item, and it comes back if that one dies."""
    as_seen = Equals("GSI1SK", item["GSI1SK"])
    return Transaction("postpone", (Update("item", key, keys.due(key, until), condition=(as_seen,)),))


def announced(account: str, conversation: str, evt: int) -> Transaction:
    """The push was tried for every watcher; the item owes nothing any more."""
    return _announced(keys.events(account, conversation, evt))


def _announced(key: Key) -> Transaction:
    return Transaction(
        "announced", (Update("events", key, {}, remove=keys.DUE_ATTRIBUTES, condition=(Exists(),)),)
    )
