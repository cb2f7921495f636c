"""A real Chromium, a fresh context per test, and the scripted server behind the page."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.scripted_server import ScriptedServer

OpenPage = Callable[..., Page]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WIDE = {"width": 1200, "height": 800}


# not for the session: Playwright's event loop stays "running" in this thread and would break asyncio in later suites
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed; `make setup-system` installs it")
    expect.set_options(timeout=10_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def server(browser: Browser) -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture
def new_context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Contexts as options ask for (English and wide unless told); one that logs an error fails the test."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def new(**options: object) -> BrowserContext:
        defaults: dict[str, object] = {"locale": "en-GB", "viewport": WIDE, "reduced_motion": "reduce"}
        context = browser.new_context(**{**defaults, **options})  # type: ignore[arg-type]  # playwright's own names
        context.set_default_timeout(10_000)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        contexts.append(context)
        return context

    yield new
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def open_page(server: ScriptedServer, new_context: Callable[..., BrowserContext]) -> OpenPage:
    """Open the page and wait until it is online; the opening `resume` is taken. `clock` puts the page's clock, which
    runs on from there, into the test's hands."""

    def open_it(*, clock: datetime | None = None, **options: object) -> Page:
        page = new_context(**options).new_page()
        if clock is not None:
            page.clock.install(time=clock)
        page.goto(server.page_url)
        server.take_resume()
        expect(page.locator("#connection")).to_have_attribute("data-kind", "online")
        return page

    return open_it
