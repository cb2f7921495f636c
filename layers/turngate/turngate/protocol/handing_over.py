"""Takeover, pick-up, human reply and release, with the `term` the caller saw as the guard against replays."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

from turngate.domain import keys
from turngate.domain.handoff import plan_accept_handoff, plan_human_reply, plan_release, plan_takeover
from turngate.domain.records import Head
from turngate.errors import ConditionFailedError, RefusedError, TransientError
from turngate.protocol.retrying import attempts

if TYPE_CHECKING:
    from turngate.domain.transaction import Transaction
    from turngate.ports import Clock, ConversationStore, Ids

Change = Literal["takeover", "accept_handoff", "release"]


def change_hands(
    store: ConversationStore,
    clock: Clock,
    ids: Ids,
    *,
    account: str,
    conversation: str,
    change: Change,
    term: int,
    agent: str,
) -> str | None:
    """Apply `change` once; the run to start after a release, else None. A replay of the same call (the `term` is
    gone, and the conversation is as this call leaves it) changes nothing. Raises RefusedError `handoff_conflict`."""
    for _ in attempts(clock, ids, change):
        head = _head(store, account, conversation)
        if (head.term, head.mode, head.agent) == _left_by(change, term, agent):
            return head.active_run if change == "release" else None
        transaction, next_run = _plan(change, account, conversation, head, term, agent, clock.now_ms())
        try:
            store.write(account, transaction)
        except ConditionFailedError as lost:
            if _cannot_apply(change, _head(store, account, conversation), term, agent):
                raise RefusedError("handoff_conflict") from lost
            continue
        except TransientError:
            continue
        return next_run
    raise AssertionError("attempts() raises when it is used up")


def _left_by(change: Change, term: int, agent: str) -> tuple[int, str, str | None]:
    if change == "accept_handoff":
        return term, "HUMAN", agent
    return (term + 1, "HUMAN", agent) if change == "takeover" else (term + 1, "AI", None)


def _plan(
    change: Change, account: str, conversation: str, head: Head, term: int, agent: str, now: int
) -> tuple[Transaction, str | None]:
    if change == "takeover":
        return plan_takeover(account, conversation, head, term=term, agent=agent, now=now), None
    if change == "accept_handoff":
        return plan_accept_handoff(account, conversation, head, term=term, agent=agent, now=now), None
    return plan_release(account, conversation, head, term=term, agent=agent, now=now)


def _cannot_apply(change: Change, head: Head, term: int, agent: str) -> bool:
    """Whether the condition failed for good, not just because a counter moved."""
    if (head.term, head.mode, head.agent) == _left_by(change, term, agent):
        return False
    if head.term != term:
        return True
    if change == "takeover":
        return head.mode != "AI"
    return head.mode != "HUMAN" or head.agent != (agent if change == "release" else None)


def reply_as_human(
    store: ConversationStore,
    clock: Clock,
    ids: Ids,
    *,
    account: str,
    conversation: str,
    agent: str,
    client_message_id: str,
    text: str,
    writer: str,
) -> int:
    """Commit a human agent's message once; its event number. Raises RefusedError `handoff_conflict` (not the
    agent's conversation) or `message_conflict`."""
    body_sha256 = hashlib.sha256(text.encode()).hexdigest()
    idempotency = keys.message_idempotency(account, conversation, client_message_id)
    for _ in attempts(clock, ids, "human_reply"):
        stored = store.get(account, (idempotency,)).get(idempotency)
        if stored is not None:
            if stored["body_sha256"] != body_sha256:
                raise RefusedError("message_conflict")
            return int(stored["evt"])
        head = _head(store, account, conversation)
        if head.mode != "HUMAN" or head.agent != agent:
            raise RefusedError("handoff_conflict")
        plan = plan_human_reply(
            account,
            conversation,
            head,
            agent=agent,
            client_message_id=client_message_id,
            body_sha256=body_sha256,
            text=text,
            writer=writer,
            now=clock.now_ms(),
        )
        try:
            store.write(account, plan)
        except (ConditionFailedError, TransientError):
            continue
        return head.evt + 1
    raise AssertionError("attempts() raises when it is used up")


def _head(store: ConversationStore, account: str, conversation: str) -> Head:
    key = keys.head(account, conversation)
    item = store.get(account, (key,)).get(key)
    if item is None:
        raise RefusedError("conversation_not_found")
    return Head.from_item(item)
