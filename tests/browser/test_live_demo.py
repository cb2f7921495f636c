"""The page against the running product: the deployed template on the emulator, the offline model, the tenant `mall`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from local.chat_client import call
from local.demo import THINGS_TO_TRY
from local.demo import Page as ServedPage
from local.stack import Stack, run_stack
from tests.browser.test_asking import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import BrowserContext, ConsoleMessage, WebSocket

PATIENCE_MS = 20_000
NARROW = {"width": 360, "height": 640}
REFUND_DOCUMENT = {"zh-CN": "refund-timing", "en": "refund-timing-en"}
EARBUDS_DOCUMENT = {"zh-CN": "earbuds-pairing", "en": "earbuds-pairing-en"}
OUT_OF_SCOPE = {"zh-CN": "超出了我的服务范围", "en": "outside what I can help with"}
ORDER_CHANGE = {"zh-CN": "我不能替您修改或取消订单", "en": "I cannot change or cancel an order for you"}
DECLINED = {"zh-CN": "无法回答", "en": "Cannot be answered here"}
SIMULATED = {"zh-CN": "演示模型", "en": "Simulated"}
WORKING = {"zh-CN": "正在组织回答…", "en": "Writing the answer…"}
KEEP_PHASES = """() => {
  window.phases = [];
  document.addEventListener("DOMContentLoaded", () => {
    const phase = document.getElementById("phase");
    new MutationObserver(() => window.phases.push(phase.textContent)).observe(phase, { childList: true });
  });
}"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with run_stack(observe=True) as running:
        yield running


@pytest.fixture(scope="module")
def url(stack: Stack) -> Iterator[str]:
    with ServedPage(stack, simulated=True) as page:
        yield page.url


class Visit:
    """One person's page, with every frame that went over its sockets and every line it wrote to the console."""

    def __init__(self, page: Page, stack: Stack) -> None:
        self.page = page
        self.stack = stack
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        page.on("websocket", self._listen)
        page.on("console", self._read)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framesent", lambda text: self.sent.append(json.loads(text)))
        socket.on("framereceived", lambda text: self.received.append(json.loads(text)))

    def _read(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    @property
    def messages(self) -> list[str]:
        """Texts of the `message.send` frames, repeats included."""
        return [frame["text"] for frame in self.sent if frame["type"] == "message.send"]

    def log(self) -> list[dict[str, Any]]:
        """The conversation's durable events as the server keeps them."""
        identity, record = self.page.evaluate(
            """() => ["guest", "conversation"].map((each) => JSON.parse(localStorage[`turngate.chat.mall.${each}`]))"""
        )
        address = (
            f"{self.stack.http_url}/v1/conversations/{record['conversation_id']}/events?after=0&limit=100"
        )
        answer = call("GET", address, token=identity["token"])
        assert answer.status == 200, answer
        return list(answer.document["events"])

    def until_answered(self, count: int) -> None:
        """Wait until the page shows this many messages of the customer, all answered."""
        expect(self.page.locator('.customer[data-state="answered"]')).to_have_count(
            count, timeout=PATIENCE_MS
        )


@pytest.fixture
def visit(
    stack: Stack, url: str, new_context: Callable[..., BrowserContext]
) -> Iterator[Callable[..., Visit]]:
    """Open the page as a new guest and wait until it is online; a page that complains fails the test."""
    visits: list[Visit] = []

    def open_it(*, clock: bool = False, **options: object) -> Visit:
        page = new_context(**options).new_page()
        if clock:
            page.clock.install()
        page.add_init_script(f"({KEEP_PHASES})()")
        visits.append(Visit(page, stack))
        page.goto(url)
        expect(page.locator("#connection")).to_have_attribute("data-kind", "online")
        return visits[-1]

    yield open_it
    assert [complaint for each in visits for complaint in each.complaints] == []


@pytest.mark.parametrize(("language", "locale"), [("zh-CN", "zh-CN"), ("en", "en-GB")])
def test_the_five_things_to_try(visit: Callable[..., Visit], language: str, locale: str) -> None:
    guest = visit(locale=locale)
    page = guest.page
    for number, thing in enumerate(THINGS_TO_TRY):
        if page.locator("#try").get_attribute("open") is None:
            page.locator("#try summary").click()
        page.get_by_role("button", name=thing[language]).click()
        expect(page.locator(".assistant")).to_have_count(number + 1, timeout=PATIENCE_MS)
    guest.until_answered(5)
    refund, earbuds, capabilities, rain, order_change = (page.locator(".assistant").nth(n) for n in range(5))
    for answer, document in ((refund, REFUND_DOCUMENT), (earbuds, EARBUDS_DOCUMENT)):
        expect(answer.locator(".badge")).to_have_text(SIMULATED[language])
        expect(answer.locator(".sources dl").first).to_be_hidden()
        answer.locator(".sources summary").click()
        expect(answer.locator(".sources dl").first).to_be_visible()
        expect(answer.locator(".sources dl").first).to_contain_text(document[language])
    expect(refund.locator(".body")).to_contain_text(re.compile(r"\d"))
    expect(capabilities.locator(".sources, .badge").filter(has_text=re.compile("."))).to_have_count(0)
    expect(rain.locator(".body")).to_contain_text(OUT_OF_SCOPE[language])
    expect(rain.locator(".tag")).to_have_text(DECLINED[language])
    expect(order_change.locator(".body")).to_contain_text(ORDER_CHANGE[language])
    for unsourced in (capabilities, rain, order_change):
        expect(unsourced.locator(".sources details")).to_have_count(0)
    expect(page.locator("#simulated")).to_have_text(SIMULATED[language])
    assert WORKING[language] in page.evaluate("() => window.phases")
    assert guest.messages == [thing[language] for thing in THINGS_TO_TRY]


@pytest.mark.covers("F-362", "F-363")
@pytest.mark.invariant("I1")
def test_messages_written_at_once_are_accepted_in_order_and_get_one_answer(
    visit: Callable[..., Visit], stack: Stack
) -> None:
    guest = visit()
    written = ["How do I get an electronic invoice?", "How long is the warranty after a repair?"]
    # the demo model may answer the first within 150 ms, sooner than a busy machine accepts the second
    rule = stack.emulator.add_fault(action="delay", function="*Model*", seconds=3, limit=1)
    try:
        for text in written:
            ask(guest.page, text)
        guest.until_answered(2)
    finally:
        injected = stack.emulator.faults()[rule]["injected"]
        stack.emulator.clear_faults()
    assert injected == 1
    assert [e["data"]["text"] for e in guest.log() if e["type"] == "message.accepted"] == written
    assert guest.messages == written
    expect(guest.page.locator(".customer .body")).to_have_text(written)
    expect(guest.page.locator(".assistant")).to_have_count(1)
    expect(guest.page.locator(".note")).to_have_text("Superseded by your newer message; answered with it")
    assert [e["type"] for e in guest.log()].count("message.completed") == 1


@pytest.mark.invariant("I2")
def test_a_reload_shows_the_same_conversation_and_goes_on_with_it(visit: Callable[..., Visit]) -> None:
    guest = visit()
    ask(guest.page, "How do I pair my earbuds?")
    guest.until_answered(1)
    shown = guest.page.locator(".item .body").all_inner_texts()
    guest.page.reload()
    expect(guest.page.locator("#connection")).to_have_attribute("data-kind", "online")
    assert guest.sent[-1]["type"] == "resume"
    assert guest.sent[-1]["after_seq"] == len(guest.log())
    expect(guest.page.locator(".item .body")).to_have_text(shown)
    ask(guest.page, "What can you do")
    guest.until_answered(2)
    assert len(guest.messages) == 2
    assert {event["conversation_id"] for event in guest.log()} == {guest.sent[-1]["conversation_id"]}


@pytest.mark.covers("F-376")
@pytest.mark.invariant("I7")
def test_what_is_written_offline_arrives_once_and_in_order_when_the_network_is_back(
    visit: Callable[..., Visit],
) -> None:
    guest = visit(clock=True)
    page = guest.page
    ask(page, "What can you do")
    guest.until_answered(1)
    page.context.set_offline(True)
    written = [
        "Do you ship abroad?",
        "How are the shipping fees worked out?",
        "Can I pick the day of delivery?",
    ]
    ask(page, written[0])
    expect(page.locator(".customer .state").last).to_have_text("Sending…")
    # the browser told the page, the page asked the socket: this is the time it grants for the answer
    page.clock.run_for(10_000)
    expect(page.locator("#connection-text")).to_have_text(re.compile(r"Offline, next try in \d+ s"))
    for text in written[1:]:
        ask(page, text)
    expect(page.locator(".customer .state").last).to_have_text("Waiting for the connection…")
    page.context.set_offline(False)
    guest.until_answered(4)
    assert [e["data"]["text"] for e in guest.log() if e["type"] == "message.accepted"] == [
        "What can you do",
        *written,
    ]
    expect(page.locator(".customer .body")).to_have_text(["What can you do", *written])
    expect(page.locator("#connection")).to_have_attribute("data-kind", "online")
    without_network = ("ERR_INTERNET_DISCONNECTED", "no ticket for the chat socket")
    guest.complaints = [
        each for each in guest.complaints if not any(cause in each for cause in without_network)
    ]


@pytest.mark.invariant("I2")
def test_a_socket_the_server_closes_is_opened_again_and_the_answer_is_not_missed(
    visit: Callable[..., Visit],
) -> None:
    guest = visit()
    ask(guest.page, "Which documents do I need for an exchange?")
    expect(guest.page.locator(".customer .state")).to_have_text(
        re.compile("Received|Answered"), timeout=PATIENCE_MS
    )
    close_connection_of(guest)
    expect(guest.page.locator("#connection")).to_have_attribute("data-kind", re.compile("waiting|connecting"))
    guest.until_answered(1)
    expect(guest.page.locator("#connection")).to_have_attribute("data-kind", "online")
    assert [frame["type"] for frame in guest.received].count("session.ready") == 2
    ask(guest.page, "What can you do")
    guest.until_answered(2)
    assert len(guest.messages) == 2
    expect(guest.page.locator(".assistant")).to_have_count(2)


def close_connection_of(guest: Visit) -> None:
    """Do what API Gateway does at the end of a connection's life."""
    ready = next(frame for frame in guest.received if frame["type"] == "session.ready")
    address = guest.stack.emulator.connections_url(guest.stack.outputs["ChatSocketApiId"], "live")
    gateway = guest.stack.emulator.client("apigatewaymanagementapi", endpoint_url=address)
    gateway.delete_connection(ConnectionId=ready["data"]["session_id"])


def test_an_identity_the_stack_does_not_know_is_replaced(visit: Callable[..., Visit]) -> None:
    guest = visit()
    page = guest.page
    ask(page, "What can you do")
    guest.until_answered(1)
    page.evaluate(
        """() => {
          const key = "turngate.chat.mall.guest";
          localStorage[key] = JSON.stringify({ ...JSON.parse(localStorage[key]), token: "guest.forged" });
        }"""
    )
    page.reload()
    expect(page.locator("#connection")).to_have_attribute("data-kind", "online")
    expect(page.locator(".notice")).to_contain_text("a new conversation was started")
    ask(page, "What can you do")
    guest.until_answered(1)
    refusal = ("403 (Forbidden)", "blocked by CORS policy", "net::ERR_FAILED")
    guest.complaints = [each for each in guest.complaints if not any(cause in each for cause in refusal)]


@pytest.mark.parametrize(("language", "locale"), [("zh-CN", "zh-CN"), ("en", "en-GB")])
def test_a_phone_shows_it_all_without_scrolling_sideways(
    visit: Callable[..., Visit], language: str, locale: str
) -> None:
    guest = visit(locale=locale, viewport=NARROW, color_scheme="dark")
    page = guest.page
    for number in (1, 4):
        ask(page, THINGS_TO_TRY[number][language])
        guest.until_answered(page.locator(".customer").count())
    page.locator(".sources summary").click()
    expect(page.locator(".sources dl").first).to_be_visible()
    wide = page.evaluate(
        """() => [...document.querySelectorAll("body *")]
             .filter((node) => node.getBoundingClientRect().right > innerWidth + 0.5)
             .map((node) => node.className || node.tagName)"""
    )
    assert wide == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= NARROW["width"]


def test_everything_by_keyboard_and_in_the_other_language(visit: Callable[..., Visit]) -> None:
    guest = visit(locale="zh-CN")
    page = guest.page
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("耳机怎么配对?")
    page.keyboard.press("Enter")
    guest.until_answered(1)
    until_focused(page, ".sources summary")
    page.keyboard.press("Enter")
    expect(page.locator(".sources dl").first).to_be_visible()
    until_focused(page, '[data-language="en"]')
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator("#connection-text")).to_have_text("Online")
    expect(page.locator(".customer .state")).to_have_text("Answered")
    expect(page.locator(".sources .label")).to_have_text("Sources")
    until_focused(page, "#new")
    page.keyboard.press("Enter")
    expect(page.locator(".item")).to_have_count(0)
    page.keyboard.type("What can you do")
    page.keyboard.press("Enter")
    guest.until_answered(1)
    expect(page.locator(".assistant .body")).to_contain_text("I can answer questions about products")


def until_focused(page: Page, selector: str) -> None:
    """Go back with Shift+Tab until the element has the focus."""
    target = page.locator(selector).first
    for _ in range(20):
        page.keyboard.press("Shift+Tab")
        if target.evaluate("(node) => node === document.activeElement"):
            return
    raise AssertionError(f"{selector} is not reached with Shift+Tab")
