"""The model endpoint of the stack, in the way of which a fault can be put: it forwards to the demo model.

A fault strikes requests of one task whose text carries its marker, so conversations do not disturb each other."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TASKS = {"understanding": "understand", "reply": "compose"}
"""Task of a chat request, by the schema it asks in; every other request is `embed`."""
ACTIONS = (
    "crash_before",
    "crash_after",
    "slow",
    "timeout",
    "lost_request",
    "lost_response",
    "duplicate",
    "http_500",
    "http_429",
)


@dataclass
class ModelFault:
    """`action` on `limit` requests of `task` that carry `marker`. `crash` kills the Lambda that asks."""

    marker: str
    task: str
    action: str
    limit: int = 1
    seconds: float = 0.0
    crash: Callable[[], int] | None = None
    matched: int = 0
    injected: int = 0


class _CutError(Exception):
    """Raised to close the connection without an answer."""


@dataclass
class ModelProxy:
    """`target` is the demo model's base URL. `asked` counts requests by (marker found, task) for the recording."""

    target: str = ""
    faults: list[ModelFault] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, fault: ModelFault) -> ModelFault:
        with self.lock:
            self.faults.append(fault)
        return fault

    def remove(self, fault: ModelFault) -> None:
        with self.lock:
            self.faults.remove(fault)

    def answer(self, path: str, raw: bytes) -> tuple[int, bytes]:
        request = json.loads(raw)
        text, task = json.dumps(request, ensure_ascii=False), _task(request)
        with self.lock:
            self.asked.append((text, task))
            fault = next((each for each in self.faults if each.task == task and each.marker in text), None)
            if fault is not None:
                fault.matched += 1
                if fault.injected >= fault.limit:
                    fault = None
                else:
                    fault.injected += 1
        if fault is None:
            return self._forward(path, raw)
        return self._struck(fault, path, raw)

    def _struck(self, fault: ModelFault, path: str, raw: bytes) -> tuple[int, bytes]:
        match fault.action:
            case "http_500" | "http_429":
                return int(fault.action.removeprefix("http_")), b"{}"
            case "slow" | "timeout":
                time.sleep(fault.seconds)
                return self._forward(path, raw)
            case "duplicate":
                self._forward(path, raw)
                return self._forward(path, raw)
            case "lost_response" | "crash_after":
                self._forward(path, raw)
        if fault.crash is not None:
            fault.crash()
        raise _CutError

    def _forward(self, path: str, raw: bytes) -> tuple[int, bytes]:
        if not self.target:
            return 503, b"{}"
        url = self.target.removesuffix("/v1") + path
        headers = {"content-type": "application/json", "authorization": "Bearer none"}
        request = urllib.request.Request(url, data=raw, headers=headers)  # noqa: S310 - our own loopback server
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - as above
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


def _task(request: dict[str, Any]) -> str:
    name = request.get("response_format", {}).get("json_schema", {}).get("name", "")
    return TASKS.get(name, "embed")


@contextmanager
def serving(proxy: ModelProxy) -> Iterator[str]:
    """The base URL of the proxy, on a free port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            try:
                status, body = proxy.answer(self.path, raw)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except (_CutError, OSError):  # cut on purpose, or the caller has stopped waiting
                self.close_connection = True
                try:
                    self.connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    return

        def log_message(self, *_arguments: object) -> None:
            """Tests say what they need to say."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A killed Lambda leaves its connection: nothing to say."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
