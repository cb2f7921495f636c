"""Begin a run: claim it for one execution, pin its versions, and gather what this turn answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from turngate.domain import keys
from turngate.domain.begin import Claim, Duplicate, decide_begin
from turngate.domain.pending import still_open
from turngate.domain.records import Head, Run
from turngate.domain.shapes import HistoryMessage, InputMessage, TurnRef
from turngate.errors import BrokenInvariantError, ConditionFailedError

if TYPE_CHECKING:
    from turngate.domain.transaction import Item
    from turngate.ports import Clock, ConversationStore

MAX_JOINED_MESSAGES = 20
MAX_JOINED_BYTES = 16 * 1024
HISTORY_MESSAGES = 24
HISTORY_TEXT_CHARS = 400
_WINDOW = MAX_JOINED_MESSAGES + 1 + 2 * HISTORY_MESSAGES
_ROLES: dict[str, Literal["customer", "assistant", "agent"]] = {
    "U": "customer",
    "R": "assistant",
    "H": "agent",
}


class Begun(Struct, frozen=True):
    """The run is ours."""

    turn: TurnRef
    run: Run
    language: str
    messages: tuple[InputMessage, ...]
    history: tuple[HistoryMessage, ...]
    truncated: bool
    pending: tuple[str, ...] = ()
    """Open questions of ours that may still be answered."""


def begin_run(
    store: ConversationStore, clock: Clock, *, account: str, conversation: str, run_id: str, execution: str
) -> Begun | Duplicate:
    """Claim the run for `execution`, or say that it is not ours. Raises BrokenInvariantError when the account has
    no active configuration."""
    head_key = keys.head(account, conversation)
    run_key = keys.run(account, conversation, run_id)
    active_key, pins_key = keys.config_active(account), keys.knowledge_pins(account)
    seen = store.get(account, (head_key, run_key, active_key, pins_key))
    if head_key not in seen or run_key not in seen:
        raise BrokenInvariantError(f"run {run_id} or its conversation does not exist")
    if active_key not in seen:
        raise BrokenInvariantError(f"account {account} has no active configuration")
    run = Run.from_item(seen[run_key])
    decision = decide_begin(
        account,
        conversation,
        run,
        execution=execution,
        config_version=seen[active_key]["version"],
        knowledge_pins=seen[pins_key]["versions"] if pins_key in seen else {},
        now=clock.now_ms(),
    )
    if isinstance(decision, Claim):
        try:
            store.write(account, decision.transaction)
        except ConditionFailedError as lost:
            now_seen = lost.failed.get("run")
            if now_seen is None or (now_seen["state"], now_seen.get("execution")) != ("running", execution):
                return Duplicate(now_seen["state"] if now_seen else "missing")
            run = Run.from_item(now_seen)  # our own earlier write, whose response was lost
        else:
            (claim,) = decision.transaction.actions
            run = Run.from_item({**seen[run_key], **claim.set})  # type: ignore[union-attr]  # begin writes an Update
    elif isinstance(decision, Duplicate):
        return decision
    head = Head.from_item(seen[head_key])
    begun = _gather(store, account, conversation, head, run, execution)
    if isinstance(begun, Duplicate):
        return begun
    return replace(begun, pending=still_open(head.open_pending, clock.now_ms()))


def _gather(
    store: ConversationStore, account: str, conversation: str, head: Head, run: Run, execution: str
) -> Begun | Duplicate:
    newest = store.query(
        account,
        keys.conversation(account, conversation),
        first=keys.message_sk(0),
        last=keys.message_sk(run.seq, "~"),
        limit=_WINDOW,
        newest_first=True,
    )
    said = sorted(newest, key=lambda item: (item["seq"], "URHS".index(item["kind"])))
    unanswered = [item for item in said if item["kind"] == "U" and item["seq"] > head.answered_through]
    earlier = [item for item in said if item["seq"] <= head.answered_through and item["kind"] in _ROLES]
    messages, truncated = _joined(unanswered)
    if not messages:  # ended from outside between the two reads; whoever did that has answered, or will
        return Duplicate("ended")
    if run.config_version is None:
        raise BrokenInvariantError(f"run {run.run} is running with nothing pinned")
    turn = TurnRef(
        account=account,
        conversation=conversation,
        run=run.run,
        execution=execution,
        epoch=run.epoch,
        seq=run.seq,
        config_version=run.config_version,
        knowledge_pins=run.knowledge_pins,
        deadline=run.deadline,
    )
    history = tuple(_history(item) for item in earlier[-HISTORY_MESSAGES:])
    return Begun(turn, run, head.language, messages, history, truncated)


def _joined(unanswered: list[Item]) -> tuple[tuple[InputMessage, ...], bool]:
    """The newest messages within both limits, oldest first, and whether some were left out."""
    kept: list[InputMessage] = []
    size = 0
    for item in reversed(unanswered):
        size += len(item["text"].encode())
        if len(kept) == MAX_JOINED_MESSAGES or (kept and size > MAX_JOINED_BYTES):
            return tuple(reversed(kept)), True
        said = {name: item[name] for name in ("text", "message_type") if name in item}
        kept.append(InputMessage(message_seq=item["seq"], **said))
    return tuple(reversed(kept)), False


def _history(item: Item) -> HistoryMessage:
    text = item["text"]
    shown = text if len(text) <= HISTORY_TEXT_CHARS else f"{text[: HISTORY_TEXT_CHARS - 1]}…"
    return HistoryMessage(role=_ROLES[item["kind"]], text=shown)
