"""Who can use the page: narrow screens, keyboards, screen readers, both languages, dark rooms; and nobody's markup."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.scripted_server import ScriptedServer, problem
from tests.browser.test_asking import REFUND_SOURCE, ask, refusal

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

NARROW = {"width": 360, "height": 640}
AXE = files("axe_playwright_python") / "axe.min.js"
HOSTILE = """<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>"""


def converse(page: Page, server: ScriptedServer) -> None:
    """One of everything the page can show: answered with a source, refused, failed, superseded and at work."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")
    send(page, "退货需要几天? " + "很长的问题" * 20)
    conversation = server.accept(server.take("message.send"))
    source = {**REFUND_SOURCE, "title": "A long title of a document about refunds and exchanges " * 2}
    server.reply(conversation, "A_very_long_word_without_any_space" * 6, sources=[source])
    expect(page.locator(".assistant details")).to_have_count(1)
    page.locator(".assistant summary").click()
    send(page, "Refused")
    detail = problem(422, "text_invalid", "The text holds characters that cannot be stored.")
    server.push(refusal(server.take("message.send"), {"problem": detail, "retryable": False}))
    expect(page.locator(".problem code")).to_have_count(1)
    send(page, "First of two")
    server.accept(server.take("message.send"), "run-2")
    send(page, "Second of two")
    server.accept(server.take("message.send"), "run-3")
    server.emit(conversation, "run.superseded", run_id="run-2", data={"reason": "newer_customer_message"})
    expect(page.locator(".note")).to_have_count(1)
    server.status(conversation, "generating", "run-3")
    expect(page.locator("#stop")).to_be_visible()


def send(page: Page, text: str) -> None:
    page.locator("#text").fill(text)
    page.locator("#text").press("Enter")


def violations(page: Page) -> list[str]:
    """What axe finds, one line each."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run()).violations")
    return [
        f"{rule['id']}: {node['html']}: {node['failureSummary']}" for rule in found for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [NARROW, {"width": 1200, "height": 800}], ids=["360px", "1200px"])
def test_axe_finds_nothing_to_complain_about(
    open_page: OpenPage, server: ScriptedServer, scheme: str, viewport: dict[str, int]
) -> None:
    page = open_page(color_scheme=scheme, viewport=viewport)
    assert violations(page) == []
    converse(page, server)
    assert violations(page) == []


@pytest.mark.parametrize("locale", ["zh-CN", "en-GB"])
def test_nothing_is_wider_than_a_phone(open_page: OpenPage, server: ScriptedServer, locale: str) -> None:
    page = open_page(viewport=NARROW, locale=locale)
    converse(page, server)
    server.accepting = False
    server.kill_sockets()
    expect(page.locator("#reconnect")).to_be_visible()
    wide = page.evaluate(
        """() => [...document.querySelectorAll("body *")]
             .filter((node) => node.getBoundingClientRect().right > innerWidth + 0.5)
             .map((node) => node.className || node.tagName)"""
    )
    assert wide == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= NARROW["width"]
    assert page.locator("#log").evaluate("(log) => log.clientHeight") > 150


def test_the_dark_page_is_dark_and_the_light_one_light(open_page: OpenPage) -> None:
    brightness = "() => getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number).at(0)"
    assert open_page(color_scheme="dark").evaluate(brightness) < 64
    assert open_page(color_scheme="light").evaluate(brightness) > 192


def test_everything_can_be_done_with_the_keyboard_alone(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("One line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("another line")
    page.keyboard.press("Enter")
    frame = server.take("message.send")
    assert frame["text"] == "One line\nanother line"
    conversation = server.accept(frame)
    server.reply(conversation, "Answer.", sources=[REFUND_SOURCE])
    expect(page.locator(".assistant")).to_be_visible()
    page.keyboard.press("Tab")
    seen: list[str] = []
    for _ in range(15):
        seen.append(page.evaluate("() => document.activeElement.id || document.activeElement.tagName"))
        if seen[-1] == "SUMMARY" and page.locator(".sources summary").evaluate(
            "(n) => n === document.activeElement"
        ):
            break
        page.keyboard.press("Shift+Tab")
    expect(page.locator(".sources summary")).to_be_focused()
    outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.locator(".sources dl")).to_be_visible()
    for _ in range(2):
        page.keyboard.press("Shift+Tab")
    expect(page.locator("#new")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".item")).to_have_count(0)
    expect(page.locator("#text")).to_be_focused()


def test_enter_that_confirms_an_input_method_candidate_does_not_send(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    page.locator("#text").fill("tuihuo")
    page.locator("#text").evaluate(
        """(field) => field.dispatchEvent(
             new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true }))"""
    )
    expect(page.locator("#text")).to_have_value("tuihuo")
    page.keyboard.press("Enter")
    assert server.take("message.send")["text"] == "tuihuo"


def test_the_language_follows_the_browser_can_be_switched_and_is_kept(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page(locale="zh-CN")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("#connection-text")).to_have_text("在线")
    send(page, "退货需要几天?")
    conversation = server.accept(server.take("message.send"))
    server.status(conversation, "retrieving")
    expect(page.locator("#phase")).to_have_text("正在查找资料…")
    page.get_by_role("button", name="English").click()
    expect(page.locator("#phase")).to_have_text("Looking in the documents…")
    expect(page.locator(".customer .state")).to_have_text("Received")
    expect(page).to_have_title("Turngate support")
    page.reload()
    expect(page.get_by_role("button", name="English")).to_have_attribute("aria-pressed", "true")
    server.take_resume()


def test_both_catalogues_say_the_same_things(open_page: OpenPage) -> None:
    keys = open_page().evaluate(
        """async () => {
          const { catalogues } = await import("/texts.js");
          const shape = (texts) => Object.entries(texts).map(([key, text]) => [key, text.match(/{\\w+}/g)]).sort();
          return [shape(catalogues["zh-CN"]), shape(catalogues.en)];
        }"""
    )
    assert keys[0] == keys[1]
    assert len(keys[0]) > 50


def test_text_of_others_stays_text(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, HOSTILE)
    frame = server.take("message.send")
    conversation = server.accept(frame)
    source = {"title": HOSTILE, "document_id": HOSTILE, "version": 1, "source": "javascript:alert(1)"}
    server.reply(conversation, HOSTILE, sources=[source])
    server.emit(conversation, "suggestions", data={"items": [HOSTILE]})
    server.push({"v": 1, "type": "error", "id": "e-2", "data": problem(400, HOSTILE, HOSTILE)})
    page.locator(".sources summary").click()
    expect(page.locator(".item .body")).to_contain_text([HOSTILE, HOSTILE, HOSTILE])
    expect(page.locator("#suggestions button")).to_have_text(HOSTILE)
    expect(page.locator(".sources dl")).to_contain_text("javascript:alert(1)")
    assert page.locator("main img, main script, main a, footer img, footer script").count() == 0
    expect(page).to_have_title("Turngate support")


def test_noise_on_the_socket_is_ignored(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    nested: Any = "deep"
    for _ in range(200):
        nested = [nested]
    unknown = {"type": "later.invention", "data": nested}
    noise: list[object] = [7, None, [], {}, {"type": 3}, unknown, {"type": "card", "seq": -1}]
    for frame in noise:
        server.push(frame)
    ask(page, "Still there?")
    server.reply(server.accept(server.take("message.send")), "Yes.")
    expect(page.locator(".assistant .body")).to_have_text("Yes.")


def test_a_text_over_the_limit_is_counted_in_bytes_and_not_sent(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    field = page.locator("#text")
    field.fill("字" * 2000)
    expect(page.locator("#bytes")).to_have_text("")
    field.fill("字" * 2700)
    expect(page.locator("#bytes")).to_have_text("8.0 / 8.0 KB")
    field.fill("字" * 2731)
    expect(page.locator("#bytes")).to_contain_text("Too long")
    expect(page.locator("#send")).to_be_disabled()
    page.keyboard.press("Enter")
    field.fill("字" * 2730)
    page.keyboard.press("Enter")
    assert len(server.take("message.send")["text"].encode()) == 8190


def test_a_choice_of_shops_is_offered_when_there_are_several(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    server.accounts = [{"id": "mall", "name": "Mall"}, {"id": "bank", "name": "Bank"}]
    page = open_page()
    page.get_by_label("Shop").select_option("bank")
    server.take_resume()
    expect(page.get_by_label("Shop")).to_have_value("bank")
    assert len(server.guests) == 2
