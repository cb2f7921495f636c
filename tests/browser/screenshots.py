"""Pictures for the docs, taken from the real demo: `make screenshots` writes docs/screenshots/*.png.

Run it by hand when the page or the answers change; no test looks at the pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from local.demo import THINGS_TO_TRY
from local.demo import Page as ServedPage
from local.stack import run_stack
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.test_asking import ask

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
DESKTOP = {"width": 1000, "height": 720}
TALL = {"width": 1000, "height": 890}
PHONE = {"width": 360, "height": 720}
PATIENCE_MS = 30_000
MOST_BYTES = 150_000


class Photographer:
    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url

    def open(self, locale: str, viewport: dict[str, int], **options: object) -> Page:
        context: BrowserContext = self._browser.new_context(
            locale=locale,
            viewport=viewport,  # type: ignore[arg-type]  # playwright's own ViewportSize
            reduced_motion="reduce",
            **options,  # type: ignore[arg-type]  # as above
        )
        page = context.new_page()
        page.goto(self._url)
        expect(page.locator("#connection")).to_have_attribute("data-kind", "online")
        return page

    def take(self, page: Page, name: str) -> None:
        path = FOLDER / f"{name}.png"
        page.screenshot(path=path)
        size = path.stat().st_size
        sys.stdout.write(f"{size / 1000:6.0f} KB  {path.relative_to(FOLDER.parents[1])}\n")
        if size > MOST_BYTES:
            raise SystemExit(f"{path.name} is larger than {MOST_BYTES // 1000} KB")
        page.context.close()


def converse(page: Page, texts: Iterable[str]) -> None:
    """Ask one after the other."""
    for text in texts:
        ask(page, text)
        until_all_answered(page)


def until_all_answered(page: Page) -> None:
    unanswered = page.locator('.customer:not([data-state="answered"])')
    expect(unanswered).to_have_count(0, timeout=PATIENCE_MS)
    expect(page.locator("#run")).to_be_hidden()


def open_last_sources(page: Page) -> None:
    page.locator(".sources summary").last.click()
    page.locator(".log").evaluate("(log) => log.scrollTo(0, log.scrollHeight)")


def answers(photographer: Photographer) -> None:
    welcome = photographer.open("zh-CN", DESKTOP)
    photographer.take(welcome, "welcome-zh")
    chinese = photographer.open("zh-CN", DESKTOP)
    converse(chinese, [THINGS_TO_TRY[0]["zh-CN"]])
    open_last_sources(chinese)
    photographer.take(chinese, "answer-zh")
    english = photographer.open("en-GB", TALL)
    converse(english, [THINGS_TO_TRY[0]["en"], THINGS_TO_TRY[1]["en"]])
    open_last_sources(english)
    photographer.take(english, "answer-en")


def two_at_once(photographer: Photographer) -> None:
    page = photographer.open("zh-CN", DESKTOP)
    ask(page, "电子发票怎么开?")
    ask(page, "保修期是多久?")
    until_all_answered(page)
    expect(page.locator(".note")).to_have_count(1)
    photographer.take(page, "two-at-once-zh")


def refusals(photographer: Photographer) -> None:
    page = photographer.open("en-GB", TALL)
    converse(page, [THINGS_TO_TRY[3]["en"], "What does a spare screen cost?", THINGS_TO_TRY[4]["en"]])
    photographer.take(page, "refusals-en")


def phone(photographer: Photographer) -> None:
    page = photographer.open("zh-CN", PHONE, color_scheme="dark")
    converse(page, [THINGS_TO_TRY[1]["zh-CN"]])
    open_last_sources(page)
    photographer.take(page, "phone-dark-zh")


def reconnecting(photographer: Photographer) -> None:
    page = photographer.open("en-GB", DESKTOP)
    converse(page, [THINGS_TO_TRY[0]["en"]])
    page.clock.install()
    page.context.set_offline(True)
    ask(page, "And who pays for sending it back?")
    page.clock.run_for(10_000)
    expect(page.locator("#connection")).to_have_attribute("data-kind", "offline")
    photographer.take(page, "offline-en")


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        run_stack(say=print) as stack,
        ServedPage(stack, simulated=True) as page,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        photographer = Photographer(browser, page.url)
        for picture in (answers, two_at_once, refusals, phone, reconnecting):
            picture(photographer)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
