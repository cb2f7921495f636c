"""Begin: is this execution the run's only one, and is the run still open?  (INVARIANTS, begin; I1, I11, I12)

The claim is one conditional write: `queued → running, execution`. Any other execution ends as Duplicate. Config and
knowledge versions are pinned by it, once: a retry of the same execution reads them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from turngate.domain import keys
from turngate.domain.transaction import Equals, Transaction, Update

if TYPE_CHECKING:
    from turngate.domain.records import Run
    from turngate.domain.transaction import Item


class Claim(Struct, frozen=True):
    """Write this, then go on."""

    transaction: Transaction
    kind: Literal["claim"] = "claim"


class Claimed(Struct, frozen=True):
    """Ours already: a retry after our own success. Go on with the pins of the run."""

    kind: Literal["claimed"] = "claimed"


class Duplicate(Struct, frozen=True):
    """Another execution owns the run, or the run has ended."""

    state: str
    kind: Literal["duplicate"] = "duplicate"


def decide_begin(
    account: str,
    conversation: str,
    run: Run,
    *,
    execution: str,
    config_version: int,
    knowledge_pins: dict[str, int],
    now: int,
) -> Claim | Claimed | Duplicate:
    """Rule on one start of `run`, given the run as read."""
    if run.state == "running" and run.execution == execution:
        return Claimed()
    if run.state != "queued":
        return Duplicate(run.state)
    key = keys.run(account, conversation, run.run)
    changes: Item = {
        "state": "running",
        "execution": execution,
        "started_at": now,
        "config_version": config_version,
        "knowledge_pins": knowledge_pins,
        **keys.due(key, run.deadline),
    }
    return Claim(Transaction("begin", (Update("run", key, changes, condition=(Equals("state", "queued"),)),)))
