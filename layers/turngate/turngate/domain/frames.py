"""What a client may send over the socket: parsed, bounded, and never trusted (PROTOCOLS, Chat WebSocket).

Unknown fields are ignored, so that newer clients can talk to older servers; an unknown type gets a coded answer."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from turngate.domain.shapes import Ident, Language, MessageType
from turngate.domain.texts import printable
from turngate.errors import RefusedError

MAX_FRAME_BYTES = 32 * 1024
MAX_TEXT_BYTES = 8 * 1024
MAX_DEPTH = 8


class _Frame(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class MessageSend(_Frame):
    type: Literal["message.send"]
    client_message_id: Ident
    text: Annotated[str, StringConstraints(strict=True), AfterValidator(printable)]
    message_type: MessageType = "user_chat"
    conversation_id: Ident | None = None
    opening: Ident | None = None
    language: Language | None = None


class RunCancel(_Frame):
    type: Literal["run.cancel"]
    run_id: Ident
    conversation_id: Ident


class Resume(_Frame):
    type: Literal["resume"]
    conversation_id: Ident | None = None
    after_seq: Annotated[int, Field(ge=0, strict=True)] = 0


class Ping(_Frame):
    type: Literal["ping"]
    conversation_id: Ident | None = None


class Ack(_Frame):
    type: Literal["ack"]
    seq: Annotated[int, Field(ge=0, strict=True)]


class Typing(_Frame):
    type: Literal["typing"]
    conversation_id: Ident | None = None
    on: Annotated[bool, Field(strict=True)] = True


ClientFrame = Annotated[MessageSend | RunCancel | Resume | Ping | Ack | Typing, Field(discriminator="type")]
_FRAMES: TypeAdapter[ClientFrame] = TypeAdapter(ClientFrame)
_IDENT: TypeAdapter[str] = TypeAdapter(Ident)
_KNOWN_TYPES = frozenset({"message.send", "run.cancel", "resume", "ping", "ack", "typing"})
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
    if kind not in _KNOWN_TYPES:
        raise RefusedError("frame_unknown_type")
    try:
        frame = _FRAMES.validate_python(document)
    except ValidationError as error:
        fields = sorted({".".join(str(part) for part in each["loc"][1:]) for each in error.errors()})
        raise RefusedError("frame_invalid", ", ".join(fields)) from error
    if isinstance(frame, MessageSend):
        _check_text(frame.text)
    return frame


def client_message_id_of(body: str | None) -> str | None:
    """The id to blame an error on, when the frame is readable enough to have one."""
    try:
        document = json.loads(body or "")
        return _IDENT.validate_python(document["client_message_id"], strict=True)
    except (ValueError, RecursionError, KeyError, TypeError):  # a ValidationError is a ValueError
        return None


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
    if not text.strip():
        raise RefusedError("text_empty")
    if size > MAX_TEXT_BYTES:
        raise RefusedError("text_too_long", f"{size} bytes")
