"""Guards that are decisions and not conditions: how to switch them off.

A switch replaces one function or number of the product for as long as a block runs. Nothing of the product knows it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from turngate.domain import accept, finish, upkeep
from turngate.domain.records import Run
from turngate.domain.upkeep import NothingOwed, TimeOut
from turngate.protocol import beginning, finishing, sweeping

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@dataclass(frozen=True)
class Switch:
    """What is replaced by what, and which promise the guard keeps."""

    module: ModuleType
    attribute: str
    replacement: Any
    promise: str


def _never(*_: object, **__: object) -> bool:
    return False


def _always_ai(submission: Any, head: Any, now: int) -> Any:
    if head is None:
        return accept._in_ai_mode(submission, accept._new_head(submission), now, is_first=True)
    return accept._in_ai_mode(submission, head, now, is_first=False)


def _ai_unless_human(submission: Any, head: Any, now: int) -> Any:
    if head is not None and head.mode == "HUMAN":
        return accept._stored_only(submission, head, now)
    return _always_ai(submission, head, now)


def _at_once(key: Any, item: Any, now: int) -> Any:
    decision = upkeep.decide_follow_up(key, item, now)
    if isinstance(decision, NothingOwed) or item is None or item["entity"] == "events":
        return decision
    return TimeOut(Run.from_item(item))


def _forgets_replays(submission: Any, stored: Any) -> Any:
    return accept.Refuse("conversation_not_found")


def _counts_every_run(account: str, conversation: str, run: Run, **options: Any) -> Any:
    from msgspec.structs import replace  # noqa: PLC0415 - only here

    begin = _decide_begin
    return begin(account, conversation, replace(run, state="queued"), **options)


_decide_begin = beginning.decide_begin

SWITCHES: dict[str, Switch] = {
    "a finish looks whose run it is": Switch(finishing, "_belongs_to_another", _never, "I1"),
    "a begin looks whether the run is queued": Switch(beginning, "decide_begin", _counts_every_run, "I1"),
    "a sweeper looks at the deadline": Switch(sweeping, "decide_follow_up", _at_once, "I8"),
    "in HUMAN mode nothing starts": Switch(accept, "_accept", _always_ai, "I4"),
    "behind a protected run nothing starts": Switch(accept, "_accept", _ai_unless_human, "I20"),
    "three supersedes protect": Switch(accept, "PROTECT_AFTER_SUPERSEDES", 10**9, "I20"),
    "what waited is started by the ending": Switch(finish, "_follow_up", lambda *_: None, "I8"),
    "a remembered message is replayed": Switch(accept, "_replay", _forgets_replays, "I7"),
}


@contextmanager
def off(*names: str) -> Iterator[None]:
    """These guards are off inside the block."""
    before = [(SWITCHES[name], getattr(SWITCHES[name].module, SWITCHES[name].attribute)) for name in names]
    for switch, _ in before:
        setattr(switch.module, switch.attribute, switch.replacement)
    try:
        yield
    finally:
        for switch, value in before:
            setattr(switch.module, switch.attribute, value)
