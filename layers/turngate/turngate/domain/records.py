"""HEAD and RUN as the protocol reads them. Writers change single attributes by `Update`; nobody writes these back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from turngate.domain import wire
from turngate.domain.shapes import TenantContext

if TYPE_CHECKING:
    from turngate.domain.transaction import Item

RunState = Literal["queued", "running", "completed", "failed", "cancelled", "superseded", "timed_out"]
"""F-351. The last five are terminal and never change (I9)."""

OPEN_STATES: tuple[RunState, ...] = ("queued", "running")
Mode = Literal["AI", "HUMAN"]
"""S0's AI_ACTIVE and HUMAN_ACTIVE (F-001, F-002); S2's `pending` is AI (R-15)."""


class OpenPending(Struct, frozen=True):
    """An open question of ours, as HEAD lists it: which item, and until when it may be answered (epoch ms)."""

    id: str
    expires_at: int


class Head(Struct, frozen=True):
    """Counters and owner of a conversation (INVARIANTS, Counters on HEAD). Times are epoch ms."""

    owner: str
    customer: str | None = None
    client_type: str = "web"
    language: str = ""
    seq: int = 0
    customer_seq: int = 0
    evt: int = 0
    epoch: int = 0
    term: int = 0
    answered_through: int = 0
    supersedes: int = 0
    oldest_unanswered_at: int | None = None
    mode: Mode = "AI"
    agent: str | None = None
    active_run: str | None = None
    protected_run: str | None = None
    open_pending: tuple[OpenPending, ...] = ()
    state_version: int = 0

    @classmethod
    def from_item(cls, item: Item) -> Head:
        known = {name: value for name, value in item.items() if name in cls.__struct_fields__}
        waiting = tuple(OpenPending(**each) for each in item.get("open_pending", ()))
        return cls(**{**known, "open_pending": waiting})

    @property
    def has_waiting_messages(self) -> bool:
        return self.customer_seq > self.answered_through


class Run(Struct, frozen=True):
    """One auto-reply Run (F-350). `tenant` is who triggered it, as the authorizer established it."""

    run: str
    state: RunState
    epoch: int
    seq: int
    deadline: int
    created_at: int
    tenant: TenantContext
    trigger: Literal["U", "S"] = "U"
    message_type: str = "user_chat"
    protected: bool = False
    execution: str | None = None
    writer: str | None = None
    config_version: int | None = None
    knowledge_pins: dict[str, int] = {}
    started_at: int | None = None

    @classmethod
    def from_item(cls, item: Item) -> Run:
        known = {name: value for name, value in item.items() if name in cls.__struct_fields__}
        return cls(**{**known, "tenant": wire.read(item["tenant"], TenantContext)})

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


def run_item(run: Run) -> Item:
    """The attributes of a new run."""
    item: Item = {
        "entity": "run",
        "run_type": "auto_reply",
        "run": run.run,
        "state": run.state,
        "epoch": run.epoch,
        "seq": run.seq,
        "deadline": run.deadline,
        "created_at": run.created_at,
        "tenant": run.tenant.known(),
        "trigger": run.trigger,
        "message_type": run.message_type,
        "protected": run.protected,
    }
    return item
