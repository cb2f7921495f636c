"""`make demo`: the whole product on this machine, with a chat page to try it in. Ctrl-C stops everything.

MODEL_BASE_URL  MODEL_NAME  MODEL_API_KEY     any OpenAI-compatible endpoint instead of the offline demo model
DEMO_PORT                                     port of the page (default: a free one)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from botocore.exceptions import BotoCoreError
from websockets.exceptions import WebSocketException

from local.chat_client import ChatError
from local.deploy import BuildError, DeployError, EmulatorError
from local.stack import DemoModelError, ModelSettingsError, Stack, model_from_environment, run_stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from local.stack import ModelEndpoint

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "web" / "chat"
THINGS_TO_TRY = (
    {"zh-CN": "退货需要几天?", "en": "How long do refunds take?"},
    {"zh-CN": "耳机一直配对失败怎么办?", "en": "My earbuds fail to pair, what can I do?"},
    {"zh-CN": "你能做什么", "en": "What can you do"},
    {"zh-CN": "明天会下雨吗?", "en": "Will it rain tomorrow?"},
    {"zh-CN": "帮我改一下订单的收货地址", "en": "Please change the address of my order"},
)
_POLICY = "default-src 'self'; connect-src 'self' http://127.0.0.1:* ws://127.0.0.1:*; frame-ancestors 'none'"
_LOG_TAIL = 1000


class DemoError(RuntimeError):
    """Raised when the demo cannot start or go on; the message says why."""


_START_ERRORS = (
    BuildError,
    DemoModelError,
    EmulatorError,
    DeployError,
    ChatError,
    DemoError,
    # a part that dies during the start
    OSError,
    WebSocketException,
    BotoCoreError,
)


class _PageHandler(SimpleHTTPRequestHandler):
    """Serves the page's files and its configuration."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}  # noqa: RUF012 - as declared

    def __init__(self, *args: object, config: bytes, **kwargs: object) -> None:
        self._config = config
        super().__init__(*args, directory=str(PAGE), **kwargs)  # type: ignore[arg-type]  # http.server's own arguments

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/config.json":
            super().do_GET()
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self._config)))
        self.end_headers()
        self.wfile.write(self._config)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, *args: object) -> None:
        """Quiet: the terminal is for people."""


def page_config(stack: Stack, *, simulated: bool) -> bytes:
    """`config.json` of the page."""
    config = {
        "http_url": stack.http_url,
        "ws_url": stack.socket_url,
        "simulated": simulated,
        "accounts": ["mall"],
        "things_to_try": THINGS_TO_TRY,
    }
    return json.dumps(config, ensure_ascii=False).encode()


class Page:
    """The chat page on 127.0.0.1, served while the block runs."""

    def __init__(self, stack: Stack, *, simulated: bool, port: int = 0) -> None:
        handler = partial(_PageHandler, config=page_config(stack, simulated=simulated))
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Page:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Stop:
    """Ctrl-C, SIGTERM, or the terminal closed: breaks off a start that is under way, and is then heard only once, so
    that a second Ctrl-C does not break off the clean-up and leave processes behind."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.started = False
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, self._hear)

    def _hear(self, *_signal: object) -> None:
        if self.asked.is_set():
            return
        self.asked.set()
        with contextlib.suppress(OSError):
            # not print(): the signal may have interrupted one
            os.write(sys.stdout.fileno(), "\nStopping …\n".encode())
        if not self.started:
            raise KeyboardInterrupt


def main() -> int:
    stop = _Stop()
    try:
        model, port = model_from_environment(os.environ), _page_port(os.environ)
        _run(model, port, stop)
    except KeyboardInterrupt:
        print("Stopped before it was running.")
        return 130
    except ModelSettingsError as error:
        return _complain(error, 2)
    except _START_ERRORS as error:
        # Ctrl-C reaches the processes of the start too, and one of them may end before we hear it ourselves
        return _complain(error, 1) if not stop.asked.is_set() else 130
    print("Stopped.")
    return 0


def _complain(error: Exception, code: int) -> int:
    print(f"demo: {str(error) or type(error).__name__}", file=sys.stderr)
    return code


def _page_port(environment: Mapping[str, str]) -> int:
    """DEMO_PORT, or 0 for any; found out before the start, which takes a while, not after it."""
    port = environment.get("DEMO_PORT") or "0"
    try:
        with socket.create_server(("127.0.0.1", int(port))):
            return int(port)
    except (OSError, ValueError, OverflowError) as error:
        raise DemoError(f"DEMO_PORT={port} cannot be used: {error}") from error


def _run(model: ModelEndpoint | None, port: int, stop: _Stop) -> None:
    print(
        "Starting Turngate on this machine; the first start builds it and takes a minute or two.", flush=True
    )
    with (
        run_stack(model=model, say=partial(print, flush=True)) as stack,
        Page(stack, simulated=model is None, port=port) as page,
    ):
        stop.started = True
        for line in _greeting(page.url, model.name if model else None):
            print(line)
        sys.stdout.flush()
        parts = psutil.Process().children()
        while not stop.asked.wait(1):
            for part in filter(_has_ended, parts):
                raise DemoError(_obituary(part.pid, stack))


def _obituary(process_id: int, stack: Stack) -> str:
    said = "the rest of the demo was stopped too; `make demo` starts it again"
    if process_id != stack.emulator.process_id:
        return f"the offline demo model ended by itself; {said}"
    log = stack.emulator.log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:].strip()
    return f"the AWS emulator ended by itself; {said}" + (f". The end of its log:\n{log}" if log else "")


def _has_ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _greeting(url: str, model: str | None) -> Iterator[str]:
    yield ""
    yield f"  Turngate is running:  {url}"
    yield f"  Model: {model or 'offline demo model (simulated: it quotes documents, it does not understand)'}"
    yield ""
    yield "  Five things to try (中文 or English):"
    for number, thing in enumerate(THINGS_TO_TRY, start=1):
        yield f"    {number}. {thing['zh-CN']}   {thing['en']}"
    yield "  … and send two messages quickly, one after the other: you get one answer to both."
    yield ""
    yield "  Ctrl-C stops everything."


if __name__ == "__main__":
    sys.exit(main())
