"""A customer who insists: connects again, asks for a ticket again, and sends again what was not accepted.

Only what a client may do is done here; nothing looks at the table. Every id the stack will use for this customer is
told as a marker the moment it is known, so that fault rules can be aimed at this conversation alone."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import connect

from local.chat_client import HttpAnswer, call
from turngate.domain import keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from websockets.sync.client import ClientConnection

ENDINGS = frozenset({"run.completed", "run.failed", "run.cancelled", "run.superseded", "run.timed_out"})
RESEND_S = 6.0
"""A message that was not accepted by then is sent again, under the same id."""
PATIENCE_S = 150.0
ACCOUNT = "mall"


class CustomerError(AssertionError):
    """Raised when the stack did not let this customer in, or did not accept a message, for as long as anyone waits."""


class Customer:
    """One guest, one socket at a time, one conversation. `know` hears each marker: pad, principal, token, ticket,
    message, conversation."""

    def __init__(self, http_url: str, socket_url: str, know: Callable[[str, str], None]) -> None:
        self.pad = f"k{uuid.uuid4().hex[:10]}"
        self.token = self.principal = self.conversation = ""
        self.frames: dict[int, dict[str, Any]] = {}
        self.heard_at: dict[int, float] = {}
        self.contradictions: list[str] = []
        self.others: list[dict[str, Any]] = []
        self.connects = self.sends = 0
        self.sent: list[str] = []
        self._http, self._url, self._know = http_url, socket_url, know
        self._socket: ClientConnection | None = None
        self._heard = threading.Condition()
        self._open = ExitStack()

    # getting in

    def arrive(self) -> None:
        """Become a guest and open the socket."""
        self._know("pad", self.pad)
        body = json.dumps({"account": ACCOUNT, "pad": self.pad}).encode()
        answer = self._until_201("/v1/chat/guests", "", body)
        self.token, self.principal = answer["token"], answer["principal"]
        message = uuid.uuid4().hex
        self.sent.append(message)
        self.conversation = keys.conversation_id_for(ACCOUNT, self.principal, message)
        for name, value in (
            ("token", self.token),
            ("principal", self.principal),
            ("message", message),
            ("conversation", self.conversation),
        ):
            self._know(name, value)
        self.come_back()

    def come_back(self) -> None:
        """A new socket that was told `session.ready`."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            self.leave()
            ticket = self._until_201("/v1/chat/tickets", self.token, b"{}")["ticket"]
            self._know("ticket", ticket)
            self.connects += 1
            try:
                self._socket = self._open.enter_context(
                    connect(
                        f"{self._url}?ticket={ticket}", open_timeout=30, max_size=256 * 1024, compression=None
                    )
                )
            except (OSError, WebSocketException):
                time.sleep(0.5)
                continue
            reader = threading.Thread(target=self._read, args=(self._socket,), daemon=True)
            reader.start()
            if self._is_ready():
                return
        raise CustomerError("no session.ready")

    def leave(self) -> None:
        self._socket = None
        self._open.close()

    def _is_ready(self) -> bool:
        for _ in range(3):
            resume: dict[str, Any] = {"v": 1, "type": "resume", "after_seq": max(self.frames, default=0)}
            if self.frames:
                resume["conversation_id"] = self.conversation
            already = len(self.others)
            if not self._send(resume):
                return False

            def ready(after: int = already) -> bool:
                return any(each.get("type") == "session.ready" for each in self.others[after:])

            if self.wait(ready, RESEND_S):
                return True
        return False

    def _until_201(self, path: str, token: str, body: bytes) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        last: object = None
        while time.monotonic() < until:
            try:
                answer: HttpAnswer = call("POST", f"{self._http}{path}", token=token, body=body)
            except (OSError, urllib.error.URLError) as error:
                last = error
            else:
                if answer.status == 201:
                    return answer.document
                last = answer
            time.sleep(0.5)
        raise CustomerError(f"{path}: {last}")

    # talking

    def say(self, text: str, number: int = 0) -> None:
        """Send message `number` of this conversation until it is accepted; the first one opens it."""
        ident = self._ident(number)
        frame: dict[str, Any] = {
            "v": 1,
            "type": "message.send",
            "client_message_id": ident,
            "text": text,
            "language": "en",
        }
        if number:
            frame["opening"] = self.sent[0]
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            self.sends += 1
            if not self._send(frame):
                self.come_back()
                continue
            if self.wait(lambda: self.accepted(ident) is not None, RESEND_S):
                return
        raise CustomerError(f"message {number} was never accepted")

    def say_at_once(self, texts: list[str]) -> None:
        """Several messages without waiting in between; those that got lost are sent again."""
        for number, text in enumerate(texts):
            frame = {
                "v": 1,
                "type": "message.send",
                "client_message_id": self._ident(number),
                "text": text,
                "language": "en",
            }
            if number:
                frame["opening"] = self.sent[0]
            self._send(frame)
            time.sleep(0.1)
        for number, text in enumerate(texts):
            if not self.wait(lambda: self.accepted(self.sent[number]) is not None, RESEND_S):  # noqa: B023 - called at once
                self.say(text, number)

    def _ident(self, number: int) -> str:
        if number == len(self.sent):
            self.sent.append(uuid.uuid4().hex)
            self._know(f"message{number + 1}", self.sent[number])
        return self.sent[number]

    def accepted(self, client_message_id: str) -> dict[str, Any] | None:
        """The frame that said so: the durable event, or the answer to a resend."""
        for frame in [*list(self.frames.values()), *list(self.others)]:
            data = frame.get("data", {})
            if frame.get("type") == "message.accepted" and data.get("client_message_id") == client_message_id:
                return frame
        return None

    def ended(self) -> bool:
        """Whether the last run heard of has ended, for this customer."""
        frames = [self.frames[seq] for seq in sorted(self.frames)]
        runs = [each["run_id"] for each in frames if each["type"] == "message.accepted" and "run_id" in each]
        ends = {each["run_id"] for each in frames if each["type"] in ENDINGS}
        return bool(runs) and runs[-1] in ends

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        with self._heard:
            while not until():
                left = deadline - time.monotonic()
                if left <= 0 or self._socket is None:
                    return False
                self._heard.wait(min(left, 1.0))
        return True

    def _send(self, frame: dict[str, Any]) -> bool:
        try:
            if self._socket is None:
                return False
            self._socket.send(json.dumps(frame, ensure_ascii=False))
        except ConnectionClosed:
            return False
        return True

    def _read(self, socket: ClientConnection) -> None:
        try:
            for raw in socket:
                frame = json.loads(raw)
                with self._heard:
                    self._take(frame)
                    self._heard.notify_all()
        except (ConnectionClosed, OSError):
            return

    def _take(self, frame: dict[str, Any]) -> None:
        if "seq" not in frame:
            self.others.append(frame)
            return
        self.heard_at.setdefault(frame["seq"], time.time())
        if self.frames.setdefault(frame["seq"], frame) != frame:
            self.contradictions.append(f"I2: two different events {frame['seq']}")
