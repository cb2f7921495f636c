"""A chat server that a test plays by hand: it keeps an ordered log, answers `resume`, and leaves the rest to the test.

Three origins, as in the product: the page, the HTTP API (other port, so CORS is real) and the socket. What a client
sends and the test does not take is an error at the end: a fake that swallows the unexpected proves nothing.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
import time
import uuid
from contextlib import suppress
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from tests.browser.origins import ApiOrigin, PageOrigin

PAGE = Path(__file__).parents[2] / "web" / "chat"
TAKE_TIMEOUT_S = 10.0
REPLAY_LIMIT = 100
CONNECTION_LIFE_S = 7200

Frame = dict[str, Any]


class Conversation:
    """The log of one conversation: durable envelopes, `seq` from 1."""

    def __init__(self, conversation_id: str) -> None:
        self.id = conversation_id
        self.events: list[Frame] = []
        self.message_seq = 0
        self.epoch = 0


class ScriptedServer:
    """Start it, open `page_url`, `take` what the page sends, `emit` what it is to see; `close` checks for leftovers."""

    def __init__(self) -> None:
        self.frames: queue.Queue[Frame] = queue.Queue()
        self.resumes: queue.Queue[Frame] = queue.Queue()
        self.requests: queue.Queue[tuple[str, str, str | None]] = queue.Queue()
        self.conversations: dict[str, Conversation] = {}
        self.guests: list[str] = []
        self.valid_tokens: set[str] = set()
        self.accounts: list[Any] = ["mall"]
        self.simulated = True
        self.things_to_try = [
            {"zh-CN": "退货需要几天?", "en": "How long do refunds take?"},
            {"zh-CN": "你们的营业时间是?", "en": "What are your opening hours?"},
        ]
        self.replay = True
        self.accepting = True
        self.opaque_refusals = False
        self.refuse_resume: Frame | None = None
        self.connections: list[ServerConnection] = []
        self.closed: queue.Queue[ServerConnection] = queue.Queue()
        self._tickets: set[str] = set()
        self._lock = threading.RLock()
        self._start()

    def _start(self) -> None:
        self._socket: Server = serve(self._serve, "127.0.0.1", 0)
        self.ws_url = f"ws://127.0.0.1:{self._socket.socket.getsockname()[1]}"
        api = type("BoundApi", (ApiOrigin,), {"play": self})
        page = type("BoundPage", (PageOrigin,), {"config": staticmethod(self._config)})
        self._api = ThreadingHTTPServer(("127.0.0.1", 0), api)
        self._page = ThreadingHTTPServer(("127.0.0.1", 0), partial(page, directory=str(PAGE)))
        self.http_url = f"http://127.0.0.1:{self._api.server_port}"
        self.page_url = f"http://127.0.0.1:{self._page.server_port}"
        http = (
            partial(self._api.serve_forever, poll_interval=0.02),
            partial(self._page.serve_forever, poll_interval=0.02),
        )
        self._threads = [
            threading.Thread(target=run, daemon=True) for run in (self._socket.serve_forever, *http)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop everything; fails when the page sent a frame that no test step took."""
        self.kill_sockets()
        self._socket.shutdown()
        for server in (self._api, self._page):
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join(5)
        assert self.frames.empty(), f"frames nobody expected: {list(self.frames.queue)}"

    def _config(self) -> Frame:
        return {
            "http_url": self.http_url,
            "ws_url": self.ws_url,
            "simulated": self.simulated,
            "accounts": self.accounts,
            "things_to_try": self.things_to_try,
        }

    def http(self, method: str, target: str, authorization: str | None, body: Frame) -> tuple[int, Frame]:
        """One API request, answered; recorded in `requests`."""
        url = urlsplit(target)
        self.requests.put((method, target, authorization))
        if (method, url.path) == ("POST", "/v1/chat/guests"):
            assert set(body) == {"account", "language"}
            token = f"token-{len(self.guests) + 1}"
            self.guests.append(f"guest:{len(self.guests) + 1}")
            self.valid_tokens.add(token)
            expires = time.time() + 3600
            return 201, {"token": token, "principal": self.guests[-1], "expires_at": int(expires * 1000)}
        if (authorization or "").removeprefix("Bearer ") not in self.valid_tokens:
            return 403, {"message": "Forbidden"}  # API Gateway's own words for an authorizer's no
        if (method, url.path) == ("POST", "/v1/chat/tickets"):
            ticket = uuid.uuid4().hex
            self._tickets.add(ticket)
            return 201, {"ticket": ticket, "expires_in_s": 60}
        conversation = self.conversations.get(url.path.split("/")[3])
        if conversation is None:
            return 404, problem(404, "conversation_not_found", "")
        query = {name: int(values[0]) for name, values in parse_qs(url.query).items()}
        events = [e for e in conversation.events if e["seq"] > query["after"]][: query["limit"]]
        last, total = events[-1]["seq"] if events else query["after"], len(conversation.events)
        return 200, {
            "events": events,
            "next_after": last if events and last < total else None,
            "last_seq": total,
        }

    def _serve(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        ticket = parse_qs(urlsplit(connection.request.path).query)["ticket"][0]
        if not self.accepting or ticket not in self._tickets:
            connection.close()
            return
        self._tickets.discard(ticket)
        with suppress(ConnectionClosed):
            for text in connection:
                self._receive(connection, json.loads(text))
        with self._lock:
            if connection in self.connections:
                self.connections.remove(connection)
        self.closed.put(connection)

    def _receive(self, connection: ServerConnection, frame: Frame) -> None:
        assert frame["v"] == 1
        if frame["type"] == "resume":
            self._resume(connection, frame)
        else:
            self.frames.put(frame)

    def _resume(self, connection: ServerConnection, frame: Frame) -> None:
        with self._lock:
            if self.refuse_resume is not None:
                self.push_to(connection, envelope("error", data=self.refuse_resume))
                self.refuse_resume = None
                self.resumes.put(frame)
                return
            conversation = self.conversations.get(frame.get("conversation_id", ""))
            events = conversation.events[frame["after_seq"] :] if conversation else []
            ready = {
                "session_id": "s-1",
                "last_seq": len(conversation.events) if conversation else 0,
                "mode": "AI",
                "heartbeat_s": 300,
                "connection_expires_at": int((time.time() + CONNECTION_LIFE_S) * 1000),
                "limits": {"text_bytes": 8192},
            }
            self.push_to(connection, envelope("session.ready", data=ready))
            if connection not in self.connections:
                self.connections.append(connection)
            if conversation and len(events) > REPLAY_LIMIT:
                url = f"{self.http_url}/v1/conversations/{conversation.id}/events?after={frame['after_seq']}"
                gap = {
                    "from_seq": frame["after_seq"] + 1,
                    "to_seq": len(conversation.events),
                    "fetch_url": url,
                }
                self.push_to(connection, envelope("resume.gap", conversation_id=conversation.id, data=gap))
            elif self.replay:
                for event in events:
                    self.push_to(connection, event)
        self.resumes.put(frame)

    def take(self, kind: str) -> Frame:
        """The next frame of the page, which must be of this kind."""
        frame = self.frames.get(timeout=TAKE_TIMEOUT_S)
        assert frame["type"] == kind, frame
        return frame

    def take_resume(self) -> Frame:
        return self.resumes.get(timeout=TAKE_TIMEOUT_S)

    def emit(self, conversation: Conversation, kind: str, *, push: bool = True, **fields: Any) -> Frame:
        """Append a durable event and push it to every socket."""
        with self._lock:
            event = envelope(kind, conversation_id=conversation.id, epoch=conversation.epoch, **fields)
            event["seq"] = len(conversation.events) + 1
            event["id"] = f"{conversation.id}.e{event['seq']}"
            conversation.events.append(event)
            if push:
                self.push(event)
            return event

    def push(self, frame: object) -> None:
        """Send a frame, durable or not (or no frame at all), to every socket."""
        with self._lock:
            for connection in self.connections:
                self.push_to(connection, frame)

    def push_to(self, connection: ServerConnection, frame: object) -> None:
        """Send a frame to one socket."""
        with suppress(ConnectionClosed):
            connection.send(json.dumps(frame))

    def kill_sockets(self) -> None:
        """Cut every connection without a goodbye."""
        with self._lock:
            for connection in self.connections:
                with suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_RDWR)
            self.connections.clear()

    def accept(self, frame: Frame, run: str | None = "run-1", *, push: bool = True) -> Conversation:
        """Store a customer's message as the product does: the conversation is a function of its opening message."""
        opening = frame.get("opening") or frame["client_message_id"]
        conversation_id = frame.get("conversation_id") or f"c-{opening[:8]}"
        conversation = self.conversations.setdefault(conversation_id, Conversation(conversation_id))
        conversation.message_seq += 1
        conversation.epoch += 1
        data = {
            "client_message_id": frame["client_message_id"],
            "text": frame["text"],
            "message_type": frame["message_type"],
            "duplicate": False,
        }
        seq = conversation.message_seq
        fields: dict[str, Any] = {
            "run_id": run,
            "message_id": f"{conversation_id}.{seq}.u",
            "message_seq": seq,
        }
        self.emit(conversation, "message.accepted", push=push, data=data, **fields)
        return conversation

    def repeat_acceptance(self, conversation: Conversation) -> None:
        """The answer to a resend of the first message: a copy of its acceptance without a place in the log."""
        accepted = conversation.events[0]
        data = {"client_message_id": accepted["data"]["client_message_id"], "duplicate": True}
        self.push({**{name: accepted[name] for name in accepted if name not in {"seq", "id"}}, "data": data})

    def status(self, conversation: Conversation, phase: str, run: str = "run-1") -> None:
        """An ephemeral status of a run."""
        frame = envelope("run.status", conversation_id=conversation.id, epoch=conversation.epoch, run_id=run)
        self.push({**frame, "after": len(conversation.events), "n": 1, "data": {"phase": phase}})

    def reply(
        self,
        conversation: Conversation,
        content: str,
        run: str = "run-1",
        *,
        outcome: str = "answer",
        sources: list[Frame] | None = None,
        simulated: bool = True,
        push: bool = True,
    ) -> None:
        """Commit a run's answer: `message.completed` and `run.completed` of one transaction."""
        data = {"content": content, "outcome": outcome, "sources": sources or [], "facts": []}
        seq = conversation.message_seq
        fields: dict[str, Any] = {"run_id": run, "message_seq": seq, "message_id": f"r-{run}", "push": push}
        self.emit(conversation, "message.completed", data=data, **fields)
        usage = {"model_calls": 2, "simulated": simulated}
        self.emit(conversation, "run.completed", run_id=run, push=push, data={"usage": usage})


def envelope(kind: str, *, data: Frame | None = None, **fields: Any) -> Frame:
    """A server frame; absent fields are left out."""
    frame = {"v": 1, "type": kind, "ts": int(time.time() * 1000), **fields, "data": data or {}}
    return {name: value for name, value in frame.items() if value is not None}


def problem(status: int, code: str, detail: str) -> Frame:
    """An RFC 9457 problem document."""
    kind = f"urn:turngate:problem:{code}"
    return {"type": kind, "title": f"Title of {code}", "status": status, "detail": detail, "code": code}
