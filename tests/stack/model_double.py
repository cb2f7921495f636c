"""A model endpoint between the stack and the demo model: it forwards, and goes wrong where a test says so.

A rule strikes requests whose text contains the rule's `marker`, so conversations of one test do not disturb another.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TASKS = {"understanding": "understand", "reply": "compose"}
"""Task of a request, by the name of the schema it asks in."""
PATIENCE_S = 30.0


@dataclass
class Rule:
    """`times` requests of `task` are answered with `status`, `headers` and `body`; with `hold`, every one waits for
    `release` first and is then forwarded. `keep`: longer than one test."""

    marker: str
    task: str
    times: int
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    hold: bool = False
    keep: bool = False
    struck: int = 0
    release: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Event = field(default_factory=threading.Event)


def completion(content: str, finish_reason: str = "stop") -> bytes:
    """A chat completion that says `content`."""
    message = {"role": "assistant", "content": content}
    document = {
        "id": "double",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "simulated": True},
    }
    return json.dumps(document, ensure_ascii=False).encode()


class ModelDouble:
    """Counts every chat request in `asked` (texts of its messages, task)."""

    def __init__(self) -> None:
        self.target = ""
        self.asked: list[tuple[str, str]] = []
        self._rules: list[Rule] = []
        self._lock = threading.Lock()

    def strike(
        self, marker: str, task: str, *, times: int = 1, status: int = 200, body: bytes = b"", **headers: str
    ) -> Rule:
        """Answer the next `times` requests of a task that carry `marker` with this, instead of the model."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._add(Rule(marker, task, times, status, named, body))

    def hold(self, marker: str, task: str, times: int = 1, *, keep: bool = False) -> Rule:
        """Keep requests until `rule.release` is set; `rule.arrived` tells that one is here."""
        return self._add(Rule(marker, task, times, hold=True, keep=keep))

    def forget(self) -> None:
        """Drop all rules and let go whatever is held."""
        with self._lock:
            rules = [rule for rule in self._rules if not rule.keep]
            self._rules = [rule for rule in self._rules if rule.keep]
        for rule in rules:
            rule.release.set()

    def calls(self, marker: str) -> list[str]:
        """Tasks of the requests that carried `marker`, in order."""
        return [task for text, task in self.asked if marker in text]

    def answer(self, path: str, raw: bytes) -> tuple[int, dict[str, str], bytes]:
        request = json.loads(raw)
        text = json.dumps(request.get("messages"), ensure_ascii=False)
        task = _task(request)
        rule = self._decide(text, task)
        if rule is None:
            return self._forward(path, raw)
        rule.arrived.set()
        if rule.hold:
            rule.release.wait(PATIENCE_S)
            return self._forward(path, raw)
        return rule.status, rule.headers, rule.body

    def _add(self, rule: Rule) -> Rule:
        with self._lock:
            self._rules.append(rule)
        return rule

    def _decide(self, text: str, task: str) -> Rule | None:
        with self._lock:
            self.asked.append((text, task))
            for rule in self._rules:
                if rule.task == task and rule.marker in text and rule.struck < rule.times:
                    rule.struck += 1
                    return rule
        return None

    def _forward(self, path: str, raw: bytes) -> tuple[int, dict[str, str], bytes]:
        url = self.target.removesuffix("/v1") + path
        headers = {"content-type": "application/json", "authorization": "Bearer none"}
        request = urllib.request.Request(url, data=raw, headers=headers)  # noqa: S310 - our own loopback server
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:  # noqa: S310 - as above
                return response.status, {}, response.read()
        except urllib.error.HTTPError as error:
            return error.code, {}, error.read()


def _task(request: dict[str, Any]) -> str:
    name = request.get("response_format", {}).get("json_schema", {}).get("name", "")
    return TASKS.get(name, "unknown")


@contextmanager
def serving(double: ModelDouble) -> Iterator[str]:
    """The base URL of the double, on a free port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            status, headers, body = double.answer(self.path, raw)
            try:
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # the caller has stopped waiting
                self.close_connection = True

        def log_message(self, *_arguments: object) -> None:
            """Tests say what they need to say."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A Lambda that is killed resets its connection: that is the test's doing, and not worth a traceback."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)  # type: ignore[arg-type]  # socketserver's own types

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        double.forget()
        server.shutdown()
        server.server_close()
        thread.join(5)
