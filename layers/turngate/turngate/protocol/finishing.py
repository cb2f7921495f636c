"""End a run: read HEAD and RUN, write the ending, and read a failed condition before believing anything.

ended with my writer                      announce again: the response was lost, not the write
ended otherwise, or running elsewhere     leave it: somebody else's ending counts
queued                                    leave it to its due time: it was never begun
still mine, only counters moved           the same ending again, on the new counters
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from turngate.domain import keys
from turngate.domain.finish import Ending, plan_finish
from turngate.domain.records import Head, Run
from turngate.errors import BrokenInvariantError, ConditionFailedError, TransientError
from turngate.protocol.retrying import attempts

if TYPE_CHECKING:
    from turngate.ports import Clock, ConversationStore, Ids


class Committed(Struct, frozen=True):
    """The ending is stored. `evt` is the event to push; `next_run` has to be started."""

    state: str
    evt: int
    next_run: str | None
    kind: Literal["committed"] = "committed"


class NotCurrent(Struct, frozen=True):
    """Nothing was stored: the run does not count any more, or not yet. `state` is the run's."""

    state: str
    kind: Literal["not_current"] = "not_current"


def finish_run(
    store: ConversationStore,
    clock: Clock,
    ids: Ids,
    *,
    account: str,
    conversation: str,
    run_id: str,
    ending: Ending,
) -> Committed | NotCurrent:
    """Commit `ending` if it still counts. Raises ContentionError when others kept winning."""
    head_key, run_key = keys.head(account, conversation), keys.run(account, conversation, run_id)
    for _ in attempts(clock, ids, f"finish ({ending.state})"):
        try:
            seen = store.get(account, (head_key, run_key))
            if head_key not in seen or run_key not in seen:
                raise BrokenInvariantError(f"run {run_id} or its conversation does not exist")
            run, head = Run.from_item(seen[run_key]), Head.from_item(seen[head_key])
            if not run.is_open:
                if run.writer == ending.writer:
                    return _announce_again(seen[run_key])
                return NotCurrent(run.state)
            if _belongs_to_another(run, ending):
                return NotCurrent(run.state)
            if (head.epoch, head.active_run) != (run.epoch, run.run):
                continue  # the two were not read at one moment: RUN has been ended meanwhile, by us or by somebody
            plan = plan_finish(account, conversation, head, run, ending, clock.now_ms())
            store.write(account, plan.transaction)
        except (ConditionFailedError, TransientError):
            continue  # read again: RUN first says whether this was us, somebody else, or only the counters
        return Committed(ending.state, plan.evt, plan.next_run)
    raise AssertionError("attempts() raises when it is used up")


def _belongs_to_another(run: Run, ending: Ending) -> bool:
    if ending.by == "execution":
        return run.state != "running" or run.execution != ending.writer
    return False


def _announce_again(item: dict[str, object]) -> Committed:
    evt, next_run = item["ended_evt"], item.get("next_run")
    if not isinstance(evt, int):
        raise BrokenInvariantError("an ended run without its event")
    return Committed(str(item["state"]), evt, str(next_run) if next_run else None)


def cancelled(writer: str) -> Ending:
    """The customer's stop."""
    return Ending(state="cancelled", by="cancel", writer=writer)
