"""CommitTurn and FailTurn: does this ending still count? Both are the same transaction, with another draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from turngate.domain import keys
from turngate.domain.finish import Ending
from turngate.domain.pending import PendingChanges
from turngate.domain.problems import PROBLEMS
from turngate.domain.shapes import Draft, Frozen, TurnRef, Usage
from turngate.errors import TransientError
from turngate.protocol.finishing import Committed, finish_run
from turngate.protocol.orders import StartOrder, push_order, start_order

if TYPE_CHECKING:
    from turngate.domain.shapes import Language
    from turngate.wiring import Ports


class CommitRequest(Frozen):
    turn: TurnRef
    draft: Draft
    usage: Usage = Usage()
    pending: PendingChanges = PendingChanges()


class Ended(Frozen):
    """`committed`: `announcement` is what AnnounceReply sends. `not_current`: nothing was stored, nothing is said."""

    kind: Literal["committed", "not_current"]
    state: str
    announcement: dict[str, str | int] | None = None


def commit_turn(request: CommitRequest, ports: Ports) -> Ended:
    """Commit the reply if its run is still the one to answer."""
    turn = request.turn
    ending = Ending(
        state="completed",
        by="execution",
        writer=turn.execution,
        draft=request.draft,
        usage=request.usage,
        pending=request.pending,
    )
    return _end(ports, turn.account, turn.conversation, turn.run, ending)


def fail_turn(order: StartOrder, execution: str, ports: Ports) -> Ended:
    """State the failure, if the run is still this execution's."""
    language = language_of(ports, order.account, order.conversation)
    ending = stated_failure("failed", by="execution", writer=execution, language=language)
    return _end(ports, order.account, order.conversation, order.run, ending)


def stated_failure(
    state: Literal["failed", "timed_out"],
    *,
    by: Literal["execution", "sweeper"],
    writer: str,
    language: Language | None = None,
) -> Ending:
    """An ending that says so. Without a known language both are given: a failure must be understood."""
    code = "turn_failed" if state == "failed" else "turn_timed_out"
    problem = PROBLEMS[code]
    texts = {"zh-CN": problem.zh, "en": problem.en}
    content = texts[language] if language else f"{problem.zh}\n{problem.en}"
    draft = Draft(content=content, outcome="decline", response_source="stated_failure")
    return Ending(state=state, by=by, writer=writer, draft=draft, problem=code)


def language_of(ports: Ports, account: str, conversation: str) -> Language | None:
    """What the client asked for; None when it did not say."""
    key = keys.head(account, conversation)
    head = ports.store.get(account, (key,)).get(key)
    return cast("Language", head["language"]) if head and head.get("language") else None


def _end(ports: Ports, account: str, conversation: str, run: str, ending: Ending) -> Ended:
    done = finish_run(
        ports.store,
        ports.clock,
        ports.ids,
        account=account,
        conversation=conversation,
        run_id=run,
        ending=ending,
    )
    if not isinstance(done, Committed):
        return Ended(kind="not_current", state=done.state)
    if done.next_run:
        _start_next(ports, account, conversation, done.next_run)
    announcement = push_order(account, conversation, done.evt)
    return Ended(kind="committed", state=done.state, announcement=announcement)


def _start_next(ports: Ports, account: str, conversation: str, run: str) -> None:
    """The run owes its start; a lost order is made good by the sweeper, and must not fail a committed turn."""
    try:
        ports.runs_to_start.send(start_order(account, conversation, run))
    except TransientError:
        return
