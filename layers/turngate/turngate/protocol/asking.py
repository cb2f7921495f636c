"""Ask the model once more at most: the one owner of its retries, every try counted, never past the deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from turngate.domain.budget import Exhausted, Stopped
from turngate.domain.shapes import Usage
from turngate.errors import ModelUnavailableError
from turngate.protocol.spending import spend

if TYPE_CHECKING:
    from turngate.domain.prompting import ModelRequest
    from turngate.domain.shapes import TurnRef
    from turngate.ports import Clock, ConversationStore, Ids, ModelClient

TRIES = 2
CALL_TIMEOUT_MS = 20_000
RESERVE_MS = 10_000
"""Kept free before the deadline for the states that follow (ARCHITECTURE, rule 4)."""
MIN_CALL_MS = 1_000
MAX_WAIT_MS = 2_000
_WAIT_MS = 300


class Answered(Struct, frozen=True):
    document: dict[str, Any]
    usage: Usage
    tries: int


class Unanswered(Struct, frozen=True):
    """`reason` of the last failure, `stopped:<why>` or `exhausted:<limit>`."""

    reason: str
    usage: Usage
    tries: int


def ask(
    model: ModelClient,
    store: ConversationStore,
    clock: Clock,
    ids: Ids,
    *,
    turn: TurnRef,
    prompt: ModelRequest,
    spent: int,
) -> Answered | Unanswered:
    """One JSON answer, or why there is none. `spent` is how many calls the turn has made so far."""
    usage, reason = Usage(), "deadline"
    for tries in range(1, TRIES + 1):
        timeout_ms = min(CALL_TIMEOUT_MS, turn.deadline - RESERVE_MS - clock.now_ms())
        if timeout_ms < MIN_CALL_MS:
            return Unanswered("exhausted:deadline" if tries == 1 else reason, usage, tries - 1)
        no = spend(store, clock, ids, turn=turn, expected=spent + tries - 1)
        if isinstance(no, Stopped):
            return Unanswered(f"stopped:{no.reason}", usage, tries - 1)
        if isinstance(no, Exhausted):
            return Unanswered(f"exhausted:{no.limit}", usage, tries - 1)
        try:
            document, cost = model.complete_json(
                system=prompt.system,
                user=prompt.user,
                schema_name=prompt.schema_name,
                schema=prompt.schema,
                timeout_s=timeout_ms / 1000,
            )
        except ModelUnavailableError as error:
            usage = usage.plus(Usage(model_calls=1))
            reason = error.reason
            if reason == "rejected":
                return Unanswered(reason, usage, tries)
            if tries < TRIES:
                clock.sleep_ms(min(MAX_WAIT_MS, error.retry_after_ms or _WAIT_MS * (1 + ids.fraction())))
            continue
        usage = usage.plus(cost)
        if prompt.is_answered_by(document):
            return Answered(document, usage, tries)
        reason = "empty"
    return Unanswered(reason, usage, TRIES)
