"""`make demo`: the whole product on this machine, with a chat page to try it in. Ctrl-C stops everything.

MODEL_BASE_URL  MODEL_NAME  MODEL_API_KEY     any OpenAI-compatible endpoint instead of the offline demo model
DEMO_PORT                                     port of the page (default: a free one)
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from local.stack import ModelSettingsError, Stack, model_from_environment, run_stack

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def main() -> int:
    stopped = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stopped.set())
    try:
        model = model_from_environment(os.environ)
    except ModelSettingsError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    print(
        "Starting Turngate on this machine; the first start builds it and takes a minute or two.", flush=True
    )
    with (
        run_stack(model=model, say=partial(print, flush=True)) as stack,
        Page(stack, simulated=model is None, port=int(os.environ.get("DEMO_PORT", "0"))) as page,
    ):
        for line in _greeting(page.url, model.name if model else None):
            print(line)
        sys.stdout.flush()
        stopped.wait()
        print("\nStopping …", flush=True)
    print("Stopped.")
    return 0


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
