"""Finish: does this ending still count?  One transaction for every way a run ends (INVARIANTS, finish; I1, I2, I9).

    who            run must be                         HEAD must say
    execution      running, and mine                   my epoch, my run, (reply: mode AI)
    cancel         queued or running                   my epoch, my run
    sweeper        queued or running, past deadline    my epoch, my run

Messages that waited behind a protected run start the next run here, in the same transaction (I20)."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from turngate.domain import budget, keys, run_log, wire
from turngate.domain.accept import TURN_DEADLINE_MS, queued_run
from turngate.domain.client_events import ClientEvent, log_entry, message_id
from turngate.domain.pending import PendingChanges, commit_pending
from turngate.domain.records import OPEN_STATES, Head, Run
from turngate.domain.shapes import Draft, TenantContext, Usage
from turngate.domain.transaction import (
    Absent,
    Action,
    AtMost,
    Equals,
    Item,
    OneOf,
    Put,
    Term,
    Transaction,
    Update,
)

EndingBy = Literal["execution", "cancel", "sweeper"]
_MESSAGE_ENDINGS = {"completed": "run.completed", "failed": "run.failed", "timed_out": "run.timed_out"}


class Ending(Struct, frozen=True):
    """How a run ends. A completed run has a draft; a failed or timed-out one states its failure in the draft; a
    cancelled one says nothing. `problem` is a code of contracts/problems.yaml. `pending`: the questions this ending
    answers and asks."""

    state: Literal["completed", "failed", "timed_out", "cancelled"]
    by: EndingBy
    writer: str
    draft: Draft | None = None
    usage: Usage = Usage()
    problem: str | None = None
    pending: PendingChanges = PendingChanges()


class Finish(Struct, frozen=True):
    """`evt` numbers the last client event; `next_run` is set when waiting messages start a run."""

    transaction: Transaction
    evt: int
    next_run: str | None


def plan_finish(account: str, conversation: str, head: Head, run: Run, ending: Ending, now: int) -> Finish:
    """The transaction that ends `run`, given HEAD and RUN as read."""
    follow_up = _follow_up(account, conversation, head, run, now)
    events = _events(conversation, run, ending, now)
    evt = head.evt + len(events)
    changes: Item = {"answered_through": run.seq, "supersedes": 0, "evt": evt}
    removed = ["protected_run"]
    pending, waiting = commit_pending(
        account, conversation, head.open_pending, ending.pending, run=run.run, seq=run.seq, now=now
    )
    if waiting != head.open_pending:
        changes["open_pending"] = [{"id": each.id, "expires_at": each.expires_at} for each in waiting]
    if ending.by == "cancel":
        changes["epoch"] = head.epoch + 1
    if follow_up is None:
        removed += ["active_run", "oldest_unanswered_at"]
    else:
        changes |= {
            "seq": follow_up.seq,
            "epoch": follow_up.epoch,
            "active_run": follow_up.run,
            "oldest_unanswered_at": now,
        }
    still_mine: tuple[Term, ...] = (
        Equals("epoch", run.epoch),
        Equals("active_run", run.run),
        Equals("evt", head.evt),
    )
    if ending.draft is not None:
        still_mine = (*still_mine, Equals("mode", "AI"))
    actions: list[Action] = [
        Update("head", keys.head(account, conversation), changes, tuple(removed), still_mine),
        _run_action(account, conversation, run, ending, evt=evt, next_run=follow_up, now=now),
        run_log.ending(account, run.run, ending.state, now, by=ending.by, outcome=_outcome(ending)),
        log_entry(account, conversation, head.evt + 1, events, now),
        *pending,
    ]
    if ending.draft is not None:
        actions.append(_reply(account, conversation, run, ending.draft, now))
    if ending.by != "execution":
        actions.append(budget.stop(account, run.run, ending.state, now))
    if follow_up is not None:
        actions += start_actions(account, conversation, follow_up, "protected_follow_up", now)
    return Finish(Transaction("finish", tuple(actions)), evt, follow_up.run if follow_up else None)


def _follow_up(account: str, conversation: str, head: Head, run: Run, now: int) -> Run | None:
    if head.customer_seq <= run.seq or head.mode != "AI":
        return None
    return system_run(account, conversation, head, now)


def system_run(account: str, conversation: str, head: Head, now: int) -> Run:
    """The run that a system trigger starts for the conversation's owner: it answers what waits after
    `answered_through`."""
    seq = head.seq + 1
    return Run(
        run=keys.run_id_for(account, conversation, seq),
        state="queued",
        epoch=head.epoch + 1,
        seq=seq,
        deadline=now + TURN_DEADLINE_MS,
        created_at=now,
        tenant=TenantContext(
            account=account, principal=head.owner, customer=head.customer, client_type=head.client_type
        ),
        trigger="S",
    )


def start_actions(account: str, conversation: str, run: Run, reason: str, now: int) -> tuple[Put, Put]:
    """The trigger and the queued run of a system start."""
    trigger: Item = {"entity": "message", "seq": run.seq, "kind": "S", "reason": reason, "at": now}
    return (
        Put("trigger", keys.message(account, conversation, run.seq, "S"), trigger, (Absent(),)),
        replace(queued_run(account, conversation, run), name="next_run"),
    )


def _run_action(
    account: str, conversation: str, run: Run, ending: Ending, *, evt: int, next_run: Run | None, now: int
) -> Update:
    condition: tuple[Term, ...]
    if ending.by == "execution":
        condition = (Equals("state", "running"), Equals("execution", ending.writer))
    elif ending.by == "cancel":
        condition = (OneOf("state", OPEN_STATES),)
    else:
        condition = (OneOf("state", OPEN_STATES), AtMost("deadline", now))
    changes: Item = {
        "state": ending.state,
        "writer": ending.writer,
        "ended_at": now,
        "ended_evt": evt,
        "usage": wire.write(ending.usage),
        **({"next_run": next_run.run} if next_run else {}),
        **({"problem": ending.problem} if ending.problem else {}),
    }
    return Update("run", keys.run(account, conversation, run.run), changes, keys.DUE_ATTRIBUTES, condition)


def _reply(account: str, conversation: str, run: Run, draft: Draft, now: int) -> Put:
    said: Item = {
        "entity": "message",
        "seq": run.seq,
        "kind": "R",
        "text": draft.content,
        "outcome": draft.outcome,
        "response_source": draft.response_source,
        "run": run.run,
        "at": now,
    }
    return Put("reply", keys.message(account, conversation, run.seq, "R"), said, (Absent(),))


def _events(conversation: str, run: Run, ending: Ending, now: int) -> tuple[ClientEvent, ...]:
    if ending.draft is None:
        return (ClientEvent("run.cancelled", {"reason": "cancelled"}, run_id=run.run, epoch=run.epoch),)
    completed = ClientEvent(
        "message.completed",
        {
            "content": ending.draft.content,
            "outcome": ending.draft.outcome,
            "response_source": ending.draft.response_source,
            "sources": [wire.write(source) for source in ending.draft.sources],
            "facts": [wire.write(fact) for fact in ending.draft.facts],
        },
        run_id=run.run,
        message_id=message_id(conversation, run.seq, "R"),
        message_seq=run.seq,
        epoch=run.epoch,
    )
    ended: dict[str, Any] = {
        "usage": wire.write(ending.usage),
        "durations": {"total_ms": now - run.created_at},
        **({"problem": ending.problem} if ending.problem else {}),
    }
    return completed, ClientEvent(_MESSAGE_ENDINGS[ending.state], ended, run_id=run.run, epoch=run.epoch)


def _outcome(ending: Ending) -> str:
    return ending.draft.outcome if ending.draft is not None else "none"
