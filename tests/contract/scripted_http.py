"""A real HTTP server on 127.0.0.1 that answers what a test scripted, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class ScriptedServer:
    """`replies` are given in order; without one the answer is 599, which no test expects."""

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.requests: list[Request] = []
        self._stopping = threading.Event()
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                script.requests.append(Request(self.command, self.path, headers, body))
                reply = script.replies.popleft() if script.replies else Reply(status=599)
                if reply.never:
                    script._stopping.wait()
                    self.close_connection = True
                    return
                if reply.drip_s:
                    self._drip(reply.drip_s)
                    return
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def _drip(self, every_s: float) -> None:
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                with suppress(OSError):  # the caller gave up
                    while not script._stopping.wait(every_s):
                        self.wfile.write(b"1\r\n\n\r\n")
                self.close_connection = True

            do_GET = do_POST = do_PUT = do_DELETE = _answer

            def log_message(self, *_: object) -> None:
                """Tests read `requests`, not stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
