"""The Lambda Runtime API of one worker process.

The real AWS client (`awslambdaric`) long-polls `next`, runs the handler and posts `response` or `error`.
Source: docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

from __future__ import annotations

import json
import queue
import re
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from local.emulator.stock import Json

_RESULT = re.compile(r"/2018-06-01/runtime/invocation/([^/]+)/(response|error)$")


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a worker is asked to do; `payload` is the event as JSON, the deadline is epoch milliseconds."""

    request_id: str
    payload: bytes
    deadline_ms: int
    function_arn: str
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the handler answered: its value, or the error document that AWS passes to the caller."""

    kind: Literal["response", "error"]
    body: Json


class RuntimeApi:
    """One loopback server, one worker, at most one invocation under way."""

    def __init__(self) -> None:
        self._offers: queue.SimpleQueue[Invocation | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self._current: str | None = None
        self._lock = threading.Lock()
        self.settled = threading.Event()
        self.init_error: Any = None
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True).start()

    def offer(self, invocation: Invocation) -> None:
        """Hand an invocation to the worker's next poll."""
        with self._lock:
            self._current = invocation.request_id
        self._offers.put(invocation)

    def reply(self, timeout: float) -> Reply | None:
        """The answer to the current invocation, or None after `timeout` seconds without one."""
        try:
            return self._replies.get(timeout=max(timeout, 0))
        except queue.Empty:
            return None

    def close(self) -> None:
        """Stop listening and let a waiting poll go."""
        self._offers.put(None)
        self._server.shutdown()
        self._server.server_close()

    def take(self) -> Invocation | None:
        """Block until there is something to do; None when the worker must end."""
        self.settled.set()
        return self._offers.get()

    def fail_init(self, error: Json) -> None:
        """The handler module could not be imported."""
        self.init_error = error
        self.settled.set()

    def accept(self, request_id: str, kind: Literal["response", "error"], body: Json) -> bool:
        """Take a result; False for an id that is not the current one (late or repeated)."""
        with self._lock:
            if request_id != self._current:
                return False
            self._current = None
        self._replies.put(Reply(kind, body))
        return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    api: RuntimeApi

    def handle_error(self, request: object, client_address: object) -> None:
        """A killed worker drops its connection; that is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # head and body leave in one segment: without this each invocation waits 40 ms for a delayed ACK
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if not self.path.endswith("/runtime/invocation/next"):
            self._answer(404)
            return
        invocation = self.server.api.take()
        if invocation is None:
            self.close_connection = True
            self._answer(410)
            return
        headers = {
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
        }
        if invocation.trace_id:
            headers["Lambda-Runtime-Trace-Id"] = invocation.trace_id
        self._answer(200, invocation.payload, headers)

    def do_POST(self) -> None:
        body = _decoded(self._body())
        if self.path.endswith("/runtime/init/error"):
            self.server.api.fail_init(body)
            self._answer(202)
            return
        match = _RESULT.search(self.path)
        if match is None:
            self._answer(404)
        elif self.server.api.accept(match[1], "error" if match[2] == "error" else "response", body):
            self._answer(202)
        else:
            self._answer(400, b'{"errorMessage":"Invalid request ID","errorType":"InvalidRequestID"}')

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(chunks)

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Silence: the emulator's log is for faults."""


def _decoded(body: bytes) -> Json:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
