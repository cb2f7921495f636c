"""Durable events for the clients of a conversation: a log without gaps, allocated only where HEAD is written (I18).

All events of one transaction are one stored item, which owes a push until it was announced (PROTOCOLS, Chat
WebSocket)."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from turngate.domain import keys
from turngate.domain.packing import pack, unpack
from turngate.domain.transaction import Absent, Item, Put

PUSH_GRACE_MS = 10_000
"""An event not pushed this long after its transaction is pushed by the sweeper."""
WIRE_VERSION = 1


class ClientEvent(Struct, frozen=True):
    """What happened, before it has a number."""

    type: str
    data: dict[str, Any] = {}
    run_id: str | None = None
    message_id: str | None = None
    message_seq: int | None = None
    epoch: int | None = None


def message_id(conversation: str, seq: int, kind: str) -> str:
    """Id of a message, the same wherever it is named."""
    return f"{conversation}.{seq}.{kind.lower()}"


def log_entry(
    account: str, conversation: str, first_evt: int, events: tuple[ClientEvent, ...], now: int
) -> Put:
    """The put of the events numbered from `first_evt`, in order."""
    last = first_evt + len(events) - 1
    key = keys.events(account, conversation, last)
    item: Item = {
        "entity": "events",
        "first": first_evt,
        "last": last,
        "at": now,
        "events": pack(
            json.dumps(
                [
                    envelope(event, conversation=conversation, seq=first_evt + index, now=now)
                    for index, event in enumerate(events)
                ],
                ensure_ascii=False,
                separators=(",", ":"),
            )
        ),
        **keys.due(key, now + PUSH_GRACE_MS),
    }
    return Put("events", key, item, (Absent(),))


def stored_frames(item: Item) -> list[dict[str, Any]]:
    """The frames of a stored item, in order."""
    frames: list[dict[str, Any]] = json.loads(unpack(item["events"]))
    return frames


def envelope(event: ClientEvent, *, conversation: str, seq: int, now: int) -> dict[str, Any]:
    """The durable envelope of the wire; absent fields are left out."""
    frame: dict[str, Any] = {
        "v": WIRE_VERSION,
        "type": event.type,
        "id": f"{conversation}.e{seq}",
        "seq": seq,
        "ts": now,
        "conversation_id": conversation,
        "run_id": event.run_id,
        "message_id": event.message_id,
        "message_seq": event.message_seq,
        "epoch": event.epoch,
        "data": event.data,
    }
    return {name: value for name, value in frame.items() if value is not None}


def ephemeral(
    type_: str,
    data: dict[str, Any],
    *,
    now: int,
    conversation: str | None = None,
    run_id: str | None = None,
    epoch: int | None = None,
) -> dict[str, Any]:
    """A frame that is never replayed: status, pong, error."""
    frame: dict[str, Any] = {
        "v": WIRE_VERSION,
        "type": type_,
        "ts": now,
        "conversation_id": conversation,
        "run_id": run_id,
        "epoch": epoch,
        "data": data,
    }
    return {name: value for name, value in frame.items() if value is not None}
