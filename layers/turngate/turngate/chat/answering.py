"""What a client's frame leads to: one function a frame type, each ending in transactions and queue orders.

The socket handler itself never posts to a socket: everything a client is told goes through `push_events`, so there
is one place that knows about gone connections, frame sizes and order (PROTOCOLS, rule 7)."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from turngate.domain import frames, keys, wire
from turngate.domain.client_events import ephemeral
from turngate.domain.problems import PROBLEMS, problem_document
from turngate.domain.records import Head, Run
from turngate.domain.shapes import TenantContext
from turngate.errors import RefusedError, TransientError
from turngate.protocol.accepting import IncomingMessage, accept_message
from turngate.protocol.connecting import CONNECTION_LIFE_MS, remember_connection
from turngate.protocol.finishing import Committed, cancelled, finish_run
from turngate.protocol.orders import ConnectionRef, FrameOrder, ResumeOrder, push_order, start_order

if TYPE_CHECKING:
    from turngate.domain.shapes import Language
    from turngate.wiring import Ports

logger = logging.getLogger(__name__)

HEARTBEAT_S = 300
_CHINESE = r"(?i)[一-鿿]|\\u(?:4[ef]|[5-9][0-9a-f])[0-9a-f]{2}"
"""Also as JSON escapes: a frame that is refused may be one that cannot be parsed."""


class Caller(Struct, frozen=True):
    """A connection, who is on it, and the id of this very request."""

    tenant: TenantContext
    connection_id: str
    connected_at: int
    request_id: str

    @property
    def connection(self) -> ConnectionRef:
        return ConnectionRef(
            connection_id=self.connection_id,
            principal=self.tenant.principal,
            connected_at=self.connected_at,
        )


def answer(body: str | None, *, is_base64: bool, caller: Caller, ports: Ports) -> str:
    """Handle one frame; what became of it, for the log. Every refusal is told to the client with its code."""
    try:
        frame = frames.parse_frame(body, is_base64=is_base64)
        return _dispatch(frame, caller, ports)
    except RefusedError as refused:
        _tell_problem(ports, caller, body, refused)
        return f"refused:{refused.code}"
    except TransientError:
        _tell_problem(ports, caller, body, RefusedError("busy", retry_after_ms=1000))
        return "refused:busy"
    except Exception:
        logger.exception("frame cannot be handled")
        _tell_problem(ports, caller, body, RefusedError("internal"))
        return "failed"


def _dispatch(frame: frames.ClientFrame, caller: Caller, ports: Ports) -> str:
    match frame:
        case frames.MessageSend():
            return _message(frame, caller, ports)
        case frames.RunCancel():
            return _cancel(frame, caller, ports)
        case frames.Resume():
            return _resume(frame, caller, ports)
        case frames.Ping():
            return _ping(frame, caller, ports)
        case frames.Ack() | frames.Typing():
            return "ignored"  # nobody but the customer's own client watches yet


def _message(frame: frames.MessageSend, caller: Caller, ports: Ports) -> str:
    account = caller.tenant.account
    message = IncomingMessage(
        client_message_id=frame.client_message_id,
        text=frame.text,
        message_type=frame.message_type,
        conversation=frame.conversation_id,
        opening=frame.opening,
        language=frame.language or "",
    )
    result = accept_message(
        ports.store,
        ports.clock,
        ports.ids,
        tenant=caller.tenant,
        message=message,
        writer=caller.request_id,
    )
    where = {"conversation": result.conversation, "message_seq": result.message_seq, "run": result.run}
    logger.info("message", extra={**where, "duplicate": result.duplicate})
    if result.duplicate:
        data = {"client_message_id": frame.client_message_id, "duplicate": True}
        told = ephemeral("message.accepted", data, now=ports.clock.now_ms(), run_id=result.run)
        told |= {
            "conversation_id": result.conversation,
            "message_id": result.message_id,
            "message_seq": result.message_seq,
        }
        _tell(ports, caller, told)
        return "duplicate"
    if result.run is not None:
        # both are owed by stored items: what fails here is made good by the sweeper
        with suppress(TransientError):
            ports.turns.start(
                name=f"{result.run}-1", payload=start_order(account, result.conversation, result.run)
            )
    with suppress(TransientError):
        ports.events_to_push.send(push_order(account, result.conversation, result.evt))
    return "accepted"


def _cancel(frame: frames.RunCancel, caller: Caller, ports: Ports) -> str:
    account, conversation = caller.tenant.account, frame.conversation_id
    _own_head(caller, conversation, ports)
    run_key = keys.run(account, conversation, frame.run_id)
    item = ports.store.get(account, (run_key,)).get(run_key)
    if item is None:
        raise RefusedError("run_not_found")
    if not Run.from_item(item).is_open:
        raise RefusedError("run_not_open", str(item["state"]))
    done = finish_run(
        ports.store,
        ports.clock,
        ports.ids,
        account=account,
        conversation=conversation,
        run_id=frame.run_id,
        ending=cancelled(caller.request_id),
    )
    if not isinstance(done, Committed):
        raise RefusedError("run_not_open", done.state)
    with suppress(TransientError):
        ports.events_to_push.send(push_order(account, conversation, done.evt))
    if done.next_run:
        with suppress(TransientError):
            ports.turns.start(
                name=f"{done.next_run}-1", payload=start_order(account, conversation, done.next_run)
            )
    return "cancelled"


def _resume(frame: frames.Resume, caller: Caller, ports: Ports) -> str:
    """`session.ready`, then what the client missed, in one order so that they arrive in this order."""
    head = _own_head(caller, frame.conversation_id, ports) if frame.conversation_id else None
    last_seq = head.evt if head is not None else 0
    data = {
        "session_id": caller.connection_id,
        "last_seq": last_seq,
        "mode": head.mode if head is not None else "AI",
        "heartbeat_s": HEARTBEAT_S,
        "connection_expires_at": caller.connected_at + CONNECTION_LIFE_MS,
        "limits": {"text_bytes": frames.MAX_TEXT_BYTES, "frame_bytes": frames.MAX_FRAME_BYTES},
    }
    now = ports.clock.now_ms()
    order = ResumeOrder(
        account=caller.tenant.account,
        conversation=frame.conversation_id,
        connection=caller.connection,
        frame=ephemeral("session.ready", data, now=now, conversation=frame.conversation_id),
        after_seq=min(frame.after_seq, last_seq),
        last_seq=last_seq,
    )
    ports.events_to_push.send(wire.write(order))
    return "resumed"


def _ping(frame: frames.Ping, caller: Caller, ports: Ports) -> str:
    remember_connection(ports.store, ports.clock, caller.tenant, caller.connection_id, caller.connected_at)
    now = ports.clock.now_ms()
    data: dict[str, Any] = {"server_time": now}
    if frame.conversation_id:
        data["last_seq"] = _own_head(caller, frame.conversation_id, ports).evt
    _tell(ports, caller, ephemeral("pong", data, now=now, conversation=frame.conversation_id))
    return "pong"


def _own_head(caller: Caller, conversation: str, ports: Ports) -> Head:
    return own_head(caller.tenant, conversation, ports)


def own_head(tenant: TenantContext, conversation: str, ports: Ports) -> Head:
    """HEAD of a conversation the caller may see. Raises RefusedError `conversation_not_found` for one that does not
    exist and for another's alike (F-647)."""
    key = keys.head(tenant.account, conversation)
    item = ports.store.get(tenant.account, (key,)).get(key)
    if item is None or item["owner"] != tenant.principal:
        raise RefusedError("conversation_not_found")
    return Head.from_item(item)


def _tell_problem(ports: Ports, caller: Caller, body: str | None, refused: RefusedError) -> None:
    client_message_id = frames.client_message_id_of(body)
    document = problem_document(
        refused.code, _language(body), detail=refused.detail, retry_after_ms=refused.retry_after_ms
    )
    data: dict[str, Any] = {"problem": document, "retryable": PROBLEMS[document["code"]].retryable}
    if client_message_id:
        data["client_message_id"] = client_message_id
    if refused.retry_after_ms is not None:
        data["retry_after_ms"] = refused.retry_after_ms
    _tell(ports, caller, ephemeral("error", data, now=ports.clock.now_ms()))


def _language(body: str | None) -> Language:
    return "zh-CN" if re.search(_CHINESE, body or "") else "en"


def _tell(ports: Ports, caller: Caller, frame: dict[str, Any]) -> None:
    order = FrameOrder(account=caller.tenant.account, connection=caller.connection, frame=frame)
    ports.events_to_push.send(wire.write(order))
