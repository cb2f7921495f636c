"""Pay for one model call before it is made, in the write that also learns whether the run still counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.domain.budget import Exhausted, Stopped, refusal, spend_model_call
from turngate.errors import ConditionFailedError, TransientError
from turngate.protocol.retrying import attempts

if TYPE_CHECKING:
    from turngate.domain.shapes import TurnRef
    from turngate.ports import Clock, ConversationStore, Ids


def spend(
    store: ConversationStore, clock: Clock, ids: Ids, *, turn: TurnRef, expected: int
) -> Stopped | Exhausted | None:
    """Count one model call; None when it may be made. `expected` is how many the caller believes were counted: the
    true number is learnt from the failed write, so the usual case costs one request."""
    spent = expected
    for _ in attempts(clock, ids, "spend"):
        now = clock.now_ms()
        no = refusal({"model_calls": spent}, now=now, deadline=turn.deadline)
        if no is not None:
            return no
        try:
            store.write(turn.account, spend_model_call(turn.account, turn.run, spent, now))
        except ConditionFailedError as error:
            seen = error.failed["budget"]
            no = refusal(seen, now=now, deadline=turn.deadline)
            if no is not None:
                return no
            spent = (seen or {}).get("model_calls", 0)
        except TransientError:
            continue  # counting a call twice is harmless; making an uncounted one is not
        else:
            return None
    raise AssertionError("attempts() raises when it is used up")
