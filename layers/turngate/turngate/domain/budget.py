"""What a run may still spend, and whether it was told to stop: one compare-and-set before each model call (I15).

`stopped` is set by whoever ended the run from outside (a newer message, a takeover, a cancel, the sweeper), so a
model state learns it in the very write that would spend (F-218, F-365)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from turngate.domain import keys
from turngate.domain.run_log import WORK_RETENTION_S
from turngate.domain.transaction import Absent, Equals, Transaction, Update

if TYPE_CHECKING:
    from turngate.domain.transaction import Item, Term

MAX_MODEL_CALLS = 12
"""R-01, profile `chat`: a retry counts too."""


class Stopped(Struct, frozen=True):
    """The run does not count any more."""

    reason: str


class Exhausted(Struct, frozen=True):
    limit: str


def refusal(budget: Item | None, *, now: int, deadline: int) -> Stopped | Exhausted | None:
    """Why no further model call may be made; None when one may."""
    budget = budget or {}
    if "stopped" in budget:
        return Stopped(budget["stopped"])
    if budget.get("model_calls", 0) >= MAX_MODEL_CALLS:
        return Exhausted("model_calls")
    if now >= deadline:
        return Exhausted("deadline")
    return None


def spend_model_call(account: str, run: str, spent: int, now: int) -> Transaction:
    """Count one call, given that `spent` were counted and nobody stopped the run."""
    unspent: Term = Equals("model_calls", spent) if spent else Absent("model_calls")
    changes: Item = {"model_calls": spent + 1, "ttl": now // 1000 + WORK_RETENTION_S}
    update = Update("budget", keys.budget(account, run), changes, condition=(Absent("stopped"), unspent))
    return Transaction("spend", (update,))


def stop(account: str, run: str, reason: str, now: int) -> Update:
    """Tell the run's model states to stop; part of the transaction that ends the run from outside. The item may be
    new: it expires like every other of the run."""
    return Update(
        "budget", keys.budget(account, run), {"stopped": reason, "ttl": now // 1000 + WORK_RETENTION_S}
    )
