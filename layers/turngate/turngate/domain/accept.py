"""Accept: is this message new, allowed, and now the latest?  (INVARIANTS, accept; I1, I2, I7, I18, I20)

        HEAD as read ──┐
        IDEM as read ──┼─► Replay | Refuse | Accept(one transaction)
        RATE as read ──┘

Three modes: AI (a new run, the older one superseded), behind a protected run (stored, no run), HUMAN (stored).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from turngate.domain import budget, keys, run_log
from turngate.domain.client_events import ClientEvent, log_entry, message_id
from turngate.domain.rate import Empty, RateLimit, take_token
from turngate.domain.records import OPEN_STATES, Head, Run, run_item
from turngate.domain.shapes import TenantContext
from turngate.domain.transaction import Absent, Action, Equals, Item, OneOf, Put, Term, Transaction, Update

START_GRACE_MS = 10_000
"""A queued run not begun this long after its transaction is started again."""
TURN_DEADLINE_MS = 75_000
"""R-01, profile `chat`: from accept to the reply's commit."""
PROTECT_AFTER_SUPERSEDES = 3
PROTECT_AFTER_MS = 20_000
IDEMPOTENCY_RETENTION_S = 30 * 24 * 3600


class Submission(Struct, frozen=True):
    """A message as it came in. `writer` is the id of this very attempt: it tells our own lost response from a
    resend."""

    tenant: TenantContext
    conversation: str
    is_opening: bool
    client_message_id: str
    body_sha256: str
    text: str
    message_type: str
    language: str
    writer: str


class AcceptResult(Struct, frozen=True):
    """What the sender is told; a resend is told the same with `duplicate`."""

    conversation: str
    message_id: str
    message_seq: int
    run: str | None
    evt: int
    duplicate: bool = False


class Accept(Struct, frozen=True):
    transaction: Transaction
    result: AcceptResult
    kind: Literal["accept"] = "accept"


class Replay(Struct, frozen=True):
    """Seen before with the same body. `ours`: this attempt wrote it and lost the response."""

    result: AcceptResult
    ours: bool
    kind: Literal["replay"] = "replay"


class Refuse(Struct, frozen=True):
    code: Literal["message_conflict", "conversation_not_found", "rate_limited"]
    retry_after_ms: int | None = None
    kind: Literal["refuse"] = "refuse"


def decide_accept(
    submission: Submission,
    *,
    head: Head | None,
    idempotency: Item | None,
    bucket: Item | None,
    now: int,
    limit: RateLimit,
) -> Accept | Replay | Refuse:
    """Rule on one message, given HEAD, IDEM and RATE as read."""
    if head is None and not submission.is_opening:
        return Refuse("conversation_not_found")
    if head is not None and head.owner != submission.tenant.principal:
        return Refuse("conversation_not_found")  # F-647: does not reveal that another customer has it
    if idempotency is not None:
        return _replay(submission, idempotency)
    rate_key = keys.rate(submission.tenant.account, submission.tenant.principal)
    token = take_token(rate_key, bucket, limit, now)
    if isinstance(token, Empty):
        return Refuse("rate_limited", token.retry_after_ms)
    accepted = _accept(submission, head, now)
    actions = (*accepted.transaction.actions, token.put)
    return Accept(Transaction(accepted.transaction.name, actions), accepted.result)


def _replay(submission: Submission, stored: Item) -> Replay | Refuse:
    if stored["body_sha256"] != submission.body_sha256:
        return Refuse("message_conflict")
    result = AcceptResult(
        conversation=submission.conversation,
        message_id=message_id(submission.conversation, stored["seq"], "U"),
        message_seq=stored["seq"],
        run=stored.get("run"),
        evt=stored["evt"],
        duplicate=stored["writer"] != submission.writer,
    )
    return Replay(result, ours=not result.duplicate)


def _accept(submission: Submission, head: Head | None, now: int) -> Accept:
    if head is None:
        return _in_ai_mode(submission, _new_head(submission), now, is_first=True)
    if head.mode == "HUMAN" or head.protected_run is not None:
        return _stored_only(submission, head, now)
    return _in_ai_mode(submission, head, now, is_first=False)


def _new_head(submission: Submission) -> Head:
    tenant = submission.tenant
    return Head(
        owner=tenant.principal,
        customer=tenant.customer,
        client_type=tenant.client_type,
        language=submission.language,
    )


def _in_ai_mode(submission: Submission, head: Head, now: int, *, is_first: bool) -> Accept:
    account, conversation = submission.tenant.account, submission.conversation
    seq, epoch = head.seq + 1, head.epoch + 1
    previous = head.active_run
    supersedes = head.supersedes + (previous is not None)
    oldest = head.oldest_unanswered_at if head.oldest_unanswered_at is not None else now
    protected = supersedes >= PROTECT_AFTER_SUPERSEDES or now - oldest >= PROTECT_AFTER_MS
    run = Run(
        run=keys.run_id_for(account, conversation, seq),
        state="queued",
        epoch=epoch,
        seq=seq,
        deadline=now + TURN_DEADLINE_MS,
        created_at=now,
        tenant=submission.tenant,
        message_type=submission.message_type,
        protected=protected,
    )
    events = [_accepted(submission, seq, epoch, run.run)]
    if previous is not None:
        events.append(superseded(previous, "newer_customer_message", epoch, by_run=run.run))
    changes: Item = {
        "seq": seq,
        "customer_seq": seq,
        "evt": head.evt + len(events),
        "epoch": epoch,
        "active_run": run.run,
        "supersedes": supersedes,
        "oldest_unanswered_at": oldest,
    }
    if submission.language:
        changes["language"] = submission.language
    if protected:
        changes["protected_run"] = run.run
    actions: list[Action] = [_head_action(submission, head, changes, is_first=is_first)]
    actions += _message_actions(submission, seq, head.evt + len(events), run.run, now)
    actions.append(queued_run(account, conversation, run))
    actions.append(log_entry(account, conversation, head.evt + 1, tuple(events), now))
    if previous is not None:
        actions += supersede(account, conversation, previous, "newer_customer_message", now)
    if is_first:
        watch: Item = {"entity": "watcher", "principal": submission.tenant.principal}
        actions.append(
            Put("watcher", keys.watcher(account, conversation, submission.tenant.principal), watch)
        )
    result = AcceptResult(
        conversation, message_id(conversation, seq, "U"), seq, run.run, head.evt + len(events)
    )
    return Accept(Transaction("accept", tuple(actions)), result)


def _stored_only(submission: Submission, head: Head, now: int) -> Accept:
    """HUMAN mode, or behind a protected run: the message gets its number and its event, and nothing starts."""
    account, conversation = submission.tenant.account, submission.conversation
    seq = head.seq + 1
    event = _accepted(submission, seq, head.epoch, None, behind_run=head.protected_run)
    changes: Item = {"seq": seq, "customer_seq": seq, "evt": head.evt + 1}
    actions: list[Action] = [_head_action(submission, head, changes, is_first=False)]
    actions += _message_actions(submission, seq, head.evt + 1, None, now)
    actions.append(log_entry(account, conversation, head.evt + 1, (event,), now))
    result = AcceptResult(conversation, message_id(conversation, seq, "U"), seq, None, head.evt + 1)
    return Accept(Transaction("accept", tuple(actions)), result)


def _head_action(submission: Submission, head: Head, changes: Item, *, is_first: bool) -> Action:
    key = keys.head(submission.tenant.account, submission.conversation)
    if is_first:
        fresh: Item = {
            "entity": "head",
            "owner": head.owner,
            "client_type": head.client_type,
            "term": 0,
            "answered_through": 0,
            "mode": "AI",
            "state_version": 0,
            **({"customer": head.customer} if head.customer else {}),
        }
        return Put("head", key, {**fresh, **changes}, (Absent(),))
    still_latest: tuple[Term, ...] = (
        Equals("seq", head.seq),
        Equals("epoch", head.epoch),
        Equals("mode", head.mode),
        Equals("evt", head.evt),
    )
    return Update("head", key, changes, condition=still_latest)


def _message_actions(
    submission: Submission, seq: int, evt: int, run: str | None, now: int
) -> tuple[Put, Put]:
    account, conversation = submission.tenant.account, submission.conversation
    remembered: Item = {
        "entity": "message_idempotency",
        "body_sha256": submission.body_sha256,
        "seq": seq,
        "evt": evt,
        "writer": submission.writer,
        "ttl": now // 1000 + IDEMPOTENCY_RETENTION_S,
        **({"run": run} if run else {}),
    }
    said: Item = {
        "entity": "message",
        "seq": seq,
        "kind": "U",
        "text": submission.text,
        "message_type": submission.message_type,
        "at": now,
    }
    return (
        Put(
            "idempotency",
            keys.message_idempotency(account, conversation, submission.client_message_id),
            remembered,
            (Absent(),),
        ),
        Put("message", keys.message(account, conversation, seq, "U"), said, (Absent(),)),
    )


def _accepted(
    submission: Submission, seq: int, epoch: int, run: str | None, behind_run: str | None = None
) -> ClientEvent:
    data = {
        "client_message_id": submission.client_message_id,
        "text": submission.text,
        "message_type": submission.message_type,
        "duplicate": False,
        **({"behind_run": behind_run} if behind_run else {}),
    }
    return ClientEvent(
        "message.accepted",
        data,
        run_id=run,
        message_id=message_id(submission.conversation, seq, "U"),
        message_seq=seq,
        epoch=epoch,
    )


def superseded(run: str, reason: str, epoch: int, by_run: str | None = None) -> ClientEvent:
    """Tells the clients that a run ended without a reply (F-363, F-364)."""
    return ClientEvent(
        "run.superseded",
        {"reason": reason, **({"by_run_id": by_run} if by_run else {})},
        run_id=run,
        epoch=epoch,
    )


def supersede(account: str, conversation: str, run: str, reason: str, now: int) -> tuple[Action, ...]:
    """End an open run from outside, and tell its model states to stop."""
    ended: Item = {"state": "superseded", "ended_at": now, "reason": reason}
    return (
        Update(
            "previous_run",
            keys.run(account, conversation, run),
            ended,
            remove=keys.DUE_ATTRIBUTES,
            condition=(OneOf("state", OPEN_STATES),),
        ),
        budget.stop(account, run, reason, now),
        run_log.ending(account, run, "superseded", now, reason=reason),
    )


def queued_run(account: str, conversation: str, run: Run) -> Put:
    """A new run, which owes its start."""
    key = keys.run(account, conversation, run.run)
    due = keys.due(key, run.created_at + START_GRACE_MS)
    return Put("run", key, {**run_item(run), **due}, (Absent(),))
