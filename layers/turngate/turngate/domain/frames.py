"""What a client may send over the socket: parsed, bounded, and never trusted (PROTOCOLS, Chat WebSocket).

Unknown fields are ignored, so that newer clients can talk to older servers; an unknown type gets a coded answer."""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import fields, replace

from turngate.domain import wire
from turngate.domain.shapes import Frozen, Ident, Language, MessageType
from turngate.domain.texts import printable
from turngate.errors import RefusedError

MAX_FRAME_BYTES = 32 * 1024
MAX_TEXT_BYTES = 8 * 1024
MAX_DEPTH = 8

Seq = Annotated[int, Meta(ge=0)]


class MessageSend(Frozen):
    client_message_id: Ident
    text: str
    message_type: MessageType = "user_chat"
    conversation_id: Ident | None = None
    opening: Ident | None = None
    language: Language | None = None


class RunCancel(Frozen):
    run_id: Ident
    conversation_id: Ident


class Resume(Frozen):
    conversation_id: Ident | None = None
    after_seq: Seq = 0


class Ping(Frozen):
    conversation_id: Ident | None = None


class Ack(Frozen):
    seq: Seq


class Typing(Frozen):
    conversation_id: Ident | None = None
    on: bool = True


ClientFrame = MessageSend | RunCancel | Resume | Ping | Ack | Typing
SHAPES: dict[str, type[ClientFrame]] = {
    "message.send": MessageSend,
    "run.cancel": RunCancel,
    "resume": Resume,
    "ping": Ping,
    "ack": Ack,
    "typing": Typing,
}
_LATER_TYPES = frozenset(
    {"action.submit", "handoff.accept", "handoff.release", "agent.message", "approval.resolve"}
)


def parse_frame(body: str | None, *, is_base64: bool = False) -> ClientFrame:
    """Parse one frame. Raises RefusedError with a `frame_*` or `text_*` code."""
    if is_base64:
        raise RefusedError("frame_not_text")
    if not body or not body.strip():
        raise RefusedError("frame_empty")
    if len(body.encode("utf-8", "surrogatepass")) > MAX_FRAME_BYTES:
        raise RefusedError("frame_too_large")
    document = _json_object(body)
    kind = document.get("type")
    if not isinstance(kind, str):
        raise RefusedError("frame_unknown_type")
    if kind in _LATER_TYPES:
        raise RefusedError("not_supported", kind)
    if kind not in SHAPES:
        raise RefusedError("frame_unknown_type")
    frame = _frame(document, SHAPES[kind])
    if isinstance(frame, MessageSend):
        frame = replace(frame, text=printable(frame.text))
        _check_text(frame.text)
    return frame


def client_message_id_of(body: str | None) -> str | None:
    """The id to blame an error on, when the frame is readable enough to have one."""
    try:
        document = json.loads(body or "")
    except (ValueError, RecursionError):
        return None
    found = document.get("client_message_id") if isinstance(document, dict) else None
    return found if wire.fits(found, Ident) else None


def _frame(document: dict[str, Any], shape: type[ClientFrame]) -> ClientFrame:
    """The fields we know of it; the refusal names each that is missing or wrong."""
    said = {name: document[name] for name in shape.__struct_fields__ if name in document}
    if not wire.fits(said, shape):
        wrong = [
            field.name
            for field in fields(shape)
            if (not wire.fits(said[field.name], field.type) if field.name in said else field.required)
        ]
        raise RefusedError("frame_invalid", ", ".join(sorted(wrong)))
    return shape(**said)


def _json_object(body: str) -> dict[str, Any]:
    if _depth(body) > MAX_DEPTH:
        raise RefusedError("frame_too_deep")
    try:
        document = json.loads(body)
    except ValueError as error:
        raise RefusedError("frame_not_json") from error
    if not isinstance(document, dict):
        raise RefusedError("frame_not_json")
    return document


def _depth(body: str) -> int:
    """An upper bound of the nesting, found before a parser recurses into it. Brackets inside strings count as
    closed again or not at all, so quotes are honoured."""
    depth = deepest = 0
    in_string = escaped = False
    for char in body:
        if in_string:
            in_string, escaped = (
                (True, not escaped and char == "\\") if escaped or char != '"' else (False, False)
            )
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _check_text(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:  # a lone surrogate: JSON allows it, UTF-8 does not
        raise RefusedError("frame_not_text") from error
    if not any(unicodedata.category(character)[0] not in "CZ" for character in text):
        raise RefusedError("text_empty")  # nothing in it can be seen
    if size > MAX_TEXT_BYTES:
        raise RefusedError("text_too_long", f"{size} bytes")
