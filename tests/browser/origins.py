"""The two HTTP origins of the scripted server: the page's files, and the API on another port so that CORS is real."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

Frame = dict[str, Any]


class Backend(Protocol):
    """Who answers the API's requests."""

    page_url: str
    opaque_refusals: bool

    def http(self, method: str, target: str, authorization: str | None, body: Frame) -> tuple[int, Frame]: ...


class PageOrigin(SimpleHTTPRequestHandler):
    """The page's files and config.json."""

    config: Callable[[], Frame]

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        if urlsplit(self.path).path != "/config.json":
            super().do_GET()
            return
        body = json.dumps(type(self).config()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class ApiOrigin(BaseHTTPRequestHandler):
    """Guests, tickets and the event log, across origins."""

    play: Backend

    def log_message(self, format: str, *args: object) -> None: ...

    def do_OPTIONS(self) -> None:
        self._answer(204, None)

    def do_POST(self) -> None:
        self._handle("POST")

    def do_GET(self) -> None:
        self._handle("GET")

    def _handle(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        status, answer = self.play.http(method, self.path, self.headers.get("Authorization"), body)
        self._answer(status, answer)

    def _answer(self, status: int, answer: Frame | None) -> None:
        body = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        if not (status == HTTPStatus.FORBIDDEN and self.play.opaque_refusals):
            self.send_header("Access-Control-Allow-Origin", self.play.page_url)
        self.send_header("Access-Control-Allow-Headers", "Authorization, Content-Type")
        self.send_header("Access-Control-Allow-Methods", "GET, POST")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
