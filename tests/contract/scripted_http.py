"""A real HTTP server on 127.0.0.1 that answers what a test scripted, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


@dataclass(frozen=True)
class Reply:
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    never: bool = False
    """Keep the caller waiting until the server stops."""
    drip_s: float = 0
    """Send a blank line this often instead of the body, until the server stops."""
    cut: bool = False
    """Hang up instead of answering."""
    hang_up: bool = False
    """Hang up after the answer, without having said so in its head."""
    pieces: int = 0
    """Send the body chunked, so many bytes a chunk."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class ScriptedServer:
    """`replies` are given in order; without one the answer is 599, which no test expects. `connections` counts those
    that sent a request, `hung_up` is set once a connection was closed from this side."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.replies: deque[Reply] = deque()
        self.requests: list[Request] = []
        self.connections = 0
        self.hung_up = threading.Event()
        self.stopping = threading.Event()
        self._server = _Server(self)
        if tls:
            # the handshake is the handler's: a caller that gives up in it must not stop the server from accepting
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: ScriptedServer) -> None:
        self.script = script
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Callers that give up are what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked_before = False
    server: _Server

    def _answer(self) -> None:
        script = self.server.script
        script.connections += not self.asked_before
        self.asked_before = True
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        script.requests.append(Request(self.command, self.path, headers, body))
        reply = script.replies.popleft() if script.replies else Reply(status=599)
        if reply.never:
            script.stopping.wait()
            self.close_connection = True
        elif reply.drip_s:
            self._drip(reply.drip_s)
        elif reply.cut:
            self._hang_up()
        else:
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        framing = (
            {"transfer-encoding": "chunked"} if reply.pieces else {"content-length": str(len(reply.body))}
        )
        self.send_response(reply.status)
        for name, value in {"content-type": "application/json", **framing, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.pieces:
            for start in range(0, len(reply.body), reply.pieces):
                self._send_chunk(reply.body[start : start + reply.pieces])
            self._send_chunk(b"")
        else:
            self.wfile.write(reply.body)
        if reply.hang_up:
            self._hang_up()

    def _send_chunk(self, chunk: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))

    def _drip(self, every_s: float) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        with suppress(OSError):  # the caller gave up
            while not self.server.script.stopping.wait(every_s):
                self._send_chunk(b"\n")
        self.close_connection = True

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
        self.server.script.hung_up.set()

    do_GET = do_POST = do_PUT = do_DELETE = do_CONNECT = _answer

    def log_message(self, *_: object) -> None:
        """Tests read `requests`, not stderr."""
