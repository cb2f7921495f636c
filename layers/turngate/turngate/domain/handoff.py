"""Takeover and release: who speaks in this conversation, the AI path or a human agent (I4, F-001…F-006, F-028).

Callers send the `term` they saw, so a replayed call finds it raised and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.domain import keys
from turngate.domain.accept import IDEMPOTENCY_RETENTION_S, supersede, superseded
from turngate.domain.client_events import ClientEvent, log_entry, message_id
from turngate.domain.finish import start_actions, system_run
from turngate.domain.transaction import Absent, Action, Equals, Item, Put, Term, Transaction, Update

if TYPE_CHECKING:
    from turngate.domain.records import Head


def plan_takeover(
    account: str, conversation: str, head: Head, *, term: int, agent: str, now: int
) -> Transaction:
    """A human takes the conversation: no AI message is committed and no tool started from here on (I4)."""
    events = [ClientEvent("handoff.accepted", {"agent": agent, "reason": "takeover"}, epoch=head.epoch + 1)]
    if head.active_run is not None:
        events.append(superseded(head.active_run, "human_takeover", head.epoch + 1))
    changes: Item = {
        "mode": "HUMAN",
        "agent": agent,
        "epoch": head.epoch + 1,
        "term": term + 1,
        "supersedes": 0,
        "evt": head.evt + len(events),
    }
    gone = ("active_run", "protected_run", "oldest_unanswered_at")
    actions: list[Action] = [
        Update(
            "head",
            keys.head(account, conversation),
            changes,
            gone,
            (Equals("mode", "AI"), Equals("term", term), Equals("evt", head.evt)),
        ),
        log_entry(account, conversation, head.evt + 1, tuple(events), now),
    ]
    if head.active_run is not None:
        actions += supersede(account, conversation, head.active_run, "human_takeover", now)
    return Transaction("takeover", tuple(actions))


def plan_accept_handoff(
    account: str, conversation: str, head: Head, *, term: int, agent: str, now: int
) -> Transaction:
    """A human picks up a conversation that waits in HUMAN mode without an agent."""
    unowned: tuple[Term, ...] = (
        Equals("mode", "HUMAN"),
        Equals("term", term),
        Absent("agent"),
        Equals("evt", head.evt),
    )
    event = ClientEvent("handoff.accepted", {"agent": agent, "reason": "picked_up"}, epoch=head.epoch)
    return Transaction(
        "accept_handoff",
        (
            Update(
                "head",
                keys.head(account, conversation),
                {"agent": agent, "evt": head.evt + 1},
                condition=unowned,
            ),
            log_entry(account, conversation, head.evt + 1, (event,), now),
        ),
    )


def plan_human_reply(
    account: str,
    conversation: str,
    head: Head,
    *,
    agent: str,
    client_message_id: str,
    body_sha256: str,
    text: str,
    writer: str,
    now: int,
) -> Transaction:
    """A human's message: it answers everything before it."""
    seq = head.seq + 1
    event = ClientEvent(
        "message.completed",
        {"content": text, "outcome": "handoff", "sources": [], "facts": [], "agent": agent},
        message_id=message_id(conversation, seq, "H"),
        message_seq=seq,
        epoch=head.epoch,
    )
    mine: tuple[Term, ...] = (Equals("mode", "HUMAN"), Equals("agent", agent), Equals("evt", head.evt))
    remembered: Item = {
        "entity": "message_idempotency",
        "body_sha256": body_sha256,
        "seq": seq,
        "evt": head.evt + 1,
        "writer": writer,
        "ttl": now // 1000 + IDEMPOTENCY_RETENTION_S,
    }
    said: Item = {"entity": "message", "seq": seq, "kind": "H", "text": text, "agent": agent, "at": now}
    return Transaction(
        "human_reply",
        (
            Update(
                "head",
                keys.head(account, conversation),
                {"seq": seq, "answered_through": seq, "evt": head.evt + 1},
                condition=mine,
            ),
            Put(
                "idempotency",
                keys.message_idempotency(account, conversation, client_message_id),
                remembered,
                (Absent(),),
            ),
            Put("message", keys.message(account, conversation, seq, "H"), said, (Absent(),)),
            log_entry(account, conversation, head.evt + 1, (event,), now),
        ),
    )


def plan_release(
    account: str, conversation: str, head: Head, *, term: int, agent: str, now: int
) -> tuple[Transaction, str | None]:
    """Hand the conversation back; unanswered customer messages start a run in the same transaction (F-017)."""
    event = ClientEvent("handoff.released", {"agent": agent}, epoch=head.epoch + 1)
    changes: Item = {"mode": "AI", "epoch": head.epoch + 1, "term": term + 1, "evt": head.evt + 1}
    follow_up = system_run(account, conversation, head, now) if head.has_waiting_messages else None
    if follow_up is not None:
        changes |= {"seq": follow_up.seq, "active_run": follow_up.run, "oldest_unanswered_at": now}
    mine: tuple[Term, ...] = (
        Equals("mode", "HUMAN"),
        Equals("agent", agent),
        Equals("term", term),
        Equals("evt", head.evt),
    )
    actions: list[Action] = [
        Update("head", keys.head(account, conversation), changes, ("agent",), mine),
        log_entry(account, conversation, head.evt + 1, (event,), now),
    ]
    if follow_up is not None:
        actions += start_actions(account, conversation, follow_up, "release", now)
    return Transaction("release", tuple(actions)), follow_up.run if follow_up else None
