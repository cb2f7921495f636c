"""A chat client in Python: the wire as PROTOCOLS.md has it, for demo-check and the stack tests.

It keeps every durable event by `seq`, resends what was not accepted, and resumes after a reconnect; the web page does
the same in JavaScript."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from websockets.sync.client import ClientConnection

Frame = dict[str, Any]
ENDINGS = ("run.completed", "run.failed", "run.cancelled", "run.superseded", "run.timed_out")


GATEWAY_ERROR = "gateway.error"
"""Our name for API Gateway's own frame, which has no type: the integration failed, so the message may be sent again."""


class ChatError(RuntimeError):
    """Raised when the stack refuses a request or does not answer in time."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    document: dict[str, Any]


def call(
    method: str, url: str, *, token: str = "", body: bytes | None = None, language: str = "en"
) -> HttpAnswer:
    """One HTTP request; refusals are answers too."""
    headers = {"content-type": "application/json", "accept-language": language}
    if token:
        headers["authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, method=method, data=body, headers=headers)  # noqa: S310 - the stack's URL
    try:
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - as above
            return HttpAnswer(response.status, _document(response.read()))
    except urllib.error.HTTPError as error:
        return HttpAnswer(error.code, _document(error.read()))


def _document(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def welcome(http_url: str, account: str = "mall") -> str:
    """A guest's token."""
    answer = call("POST", f"{http_url}/v1/chat/guests", body=json.dumps({"account": account}).encode())
    if answer.status != 201:  # noqa: PLR2004 - Created
        raise ChatError(f"no guest token: {answer.status} {answer.document}")
    return str(answer.document["token"])


@dataclass
class ChatClient:
    """One person's connection to one conversation. Use as a context manager."""

    http_url: str
    socket_url: str
    token: str
    conversation: str | None = None
    events: dict[int, Frame] = field(default_factory=dict)
    ephemeral: list[Frame] = field(default_factory=list)
    opening: str | None = None

    def __post_init__(self) -> None:
        self._heard = threading.Condition()
        self._opened = ExitStack()
        self._socket: ClientConnection | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> ChatClient:
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    def ticket(self) -> str:
        answer = call("POST", f"{self.http_url}/v1/chat/tickets", token=self.token, body=b"{}")
        if answer.status != 201:  # noqa: PLR2004 - Created
            raise ChatError(f"no ticket: {answer.status} {answer.document}")
        return str(answer.document["ticket"])

    def connect(self, ticket: str | None = None) -> None:
        """Open the socket and resume after the last event that was seen."""
        url = f"{self.socket_url}?ticket={ticket or self.ticket()}"
        self._socket = self._opened.enter_context(
            connect(url, open_timeout=20, max_size=256 * 1024, compression=None)
        )
        self._reader = threading.Thread(target=self._read, args=(self._socket,), daemon=True)
        self._reader.start()
        resume: Frame = {"type": "resume", "after_seq": max(self.events, default=0)}
        if self.conversation:
            resume["conversation_id"] = self.conversation
        already = len(self.ephemeral)
        self.send(resume)
        self.wait(
            lambda: any(frame["type"] == "session.ready" for frame in self.ephemeral[already:]),
            "session.ready",
        )

    def disconnect(self) -> None:
        self._opened.close()
        if self._reader is not None:
            self._reader.join(5)

    def send(self, frame: Frame) -> None:
        self.send_raw(json.dumps({"v": 1, **frame}, ensure_ascii=False))

    def send_raw(self, text: str | bytes) -> None:
        if self._socket is None:
            raise ChatError("not connected")
        self._socket.send(text)

    def say(self, text: str, client_message_id: str | None = None, **fields: Any) -> str:  # noqa: ANN401 - frame fields
        """Send a message; its client_message_id."""
        ident = client_message_id or uuid.uuid4().hex
        frame: Frame = {"type": "message.send", "client_message_id": ident, "text": text, **fields}
        if self.conversation:
            frame.setdefault("conversation_id", self.conversation)
        elif self.opening is None:
            self.opening = ident
        else:
            frame.setdefault("opening", self.opening)
        self.send(frame)
        return ident

    def ask(self, text: str, timeout: float = 30) -> Frame:
        """Send a message and wait for the reply that covers it; the `message.completed` frame."""
        ident = self.say(text)
        return self.reply_to(ident, timeout)

    def reply_to(self, client_message_id: str, timeout: float = 30) -> Frame:
        """The reply whose run answered this message, however often it was superseded on the way."""
        accepted = self.accepted(client_message_id, timeout)
        self.wait(
            lambda: self._reply_after(accepted["message_seq"]) is not None, f"reply to {accepted}", timeout
        )
        reply = self._reply_after(accepted["message_seq"])
        if reply is None:
            raise ChatError("the reply is gone")
        return reply

    def accepted(self, client_message_id: str, timeout: float = 30) -> Frame:
        """The durable `message.accepted` of a message."""

        def find() -> Frame | None:
            for frame in list(self.events.values()):
                if (
                    frame["type"] == "message.accepted"
                    and frame["data"]["client_message_id"] == client_message_id
                ):
                    return frame
            return None

        self.wait(lambda: find() is not None, f"message.accepted of {client_message_id}", timeout)
        frame = find()
        if frame is None:
            raise ChatError("the event is gone")
        return frame

    def ending(self, run_id: str, timeout: float = 30) -> Frame:
        """The event that ended a run."""

        def find() -> Frame | None:
            for frame in list(self.events.values()):
                if frame.get("run_id") == run_id and frame["type"] in ENDINGS:
                    return frame
            return None

        self.wait(lambda: find() is not None, f"end of {run_id}", timeout)
        frame = find()
        if frame is None:
            raise ChatError("the event is gone")
        return frame

    def error(self, timeout: float = 10) -> Frame:
        """The next `error` frame, taken."""
        self.wait(lambda: any(f["type"] == "error" for f in self.ephemeral), "error", timeout)
        with self._heard:
            index = next(i for i, f in enumerate(self.ephemeral) if f["type"] == "error")
            return self.ephemeral.pop(index)

    def wait(self, until: Callable[[], bool], what: str, timeout: float = 30) -> None:
        deadline = time.monotonic() + timeout
        with self._heard:
            while not until():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ChatError(f"waited {timeout:.0f} s for {what}; heard {self._summary()}")
                self._heard.wait(min(left, 1))

    def log(self) -> list[Frame]:
        """Durable events in order."""
        return [self.events[seq] for seq in sorted(self.events)]

    def _reply_after(self, message_seq: int) -> Frame | None:
        for frame in list(self.events.values()):
            if frame["type"] == "message.completed" and frame["message_seq"] >= message_seq:
                return frame
        return None

    def _summary(self) -> str:
        return ", ".join(frame["type"] for frame in [*self.log(), *self.ephemeral][-12:]) or "nothing"

    def _read(self, socket: ClientConnection) -> None:
        try:
            for raw in socket:
                frame = {"type": GATEWAY_ERROR, **json.loads(raw)}
                with self._heard:
                    if "seq" in frame:
                        self.events[frame["seq"]] = frame
                    else:
                        self.ephemeral.append(frame)
                    if self.conversation is None and frame["type"] == "message.accepted":
                        self.conversation = frame["conversation_id"]
                    self._heard.notify_all()
        except ConnectionClosed:
            pass
