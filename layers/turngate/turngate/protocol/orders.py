"""Bodies of queue messages, for who sends and who carries out alike. What is owed is named by key and holds no text:
who carries it out reads the stored item. Only ephemeral frames travel whole."""

from __future__ import annotations

from typing import Any, Literal

from turngate.domain import wire
from turngate.domain.shapes import Frozen, Ident


class ConnectionRef(Frozen):
    connection_id: str
    principal: str
    connected_at: int


class EventOrder(Frozen, tag_field="kind", tag="event"):
    """`events-to-push`: push what is stored as `evt`."""

    account: Ident
    conversation: Ident
    evt: int


class FrameOrder(Frozen, tag_field="kind", tag="frame"):
    """`events-to-push`: an ephemeral frame to one connection, or to every watcher of the conversation."""

    account: Ident
    conversation: Ident | None = None
    connection: ConnectionRef | None = None
    frame: dict[str, Any]


class ResumeOrder(Frozen, tag_field="kind", tag="resume"):
    """`events-to-push`: `frame`, and then what a returning client missed."""

    account: Ident
    conversation: Ident | None = None
    connection: ConnectionRef
    frame: dict[str, Any]
    after_seq: int
    last_seq: int


PushOrder = EventOrder | FrameOrder | ResumeOrder


class StartOrder(Frozen):
    """`runs-to-start`, and the input of the turn machine: start a run."""

    account: Ident
    conversation: Ident
    run: Ident
    schema_version: Literal[1] = 1


def push_order(account: str, conversation: str, evt: int) -> dict[str, Any]:
    return wire.write(EventOrder(account=account, conversation=conversation, evt=evt))


def start_order(account: str, conversation: str, run: str) -> dict[str, Any]:
    return wire.write(StartOrder(account=account, conversation=conversation, run=run))
