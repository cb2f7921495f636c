"""Messages written quickly one after the other: accepted in the order they were written, none of them held for long.

The page's clock stands still in these tests but where one moves it, and a ping shows what was sent before it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from tests.browser.scripted_server import ScriptedServer, problem
from tests.browser.test_asking import ask, refusal

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    page = open_page(clock=START)
    page.clock.pause_at(START + timedelta(minutes=1))
    return page


def assert_nothing_more_was_sent(page: Page, server: ScriptedServer) -> None:
    page.evaluate("() => dispatchEvent(new Event('online'))")
    server.take("ping")
    server.push({"v": 1, "type": "pong", "data": {"server_time": 0}})


@pytest.mark.invariant("I1")
def test_a_message_waits_until_the_one_before_it_is_accepted(page: Page, server: ScriptedServer) -> None:
    for text in ("First", "Second", "Third"):
        ask(page, text)
    first = server.take("message.send")
    assert first["text"] == "First"
    assert_nothing_more_was_sent(page, server)
    conversation = server.accept(first)
    second = server.take("message.send")
    assert second["text"] == "Second"
    assert second["opening"] == first["client_message_id"]
    assert_nothing_more_was_sent(page, server)
    server.accept(second, "run-2")
    third = server.take("message.send")
    assert third["text"] == "Third"
    server.accept(third, "run-3")
    server.reply(conversation, "One answer to the three.", "run-3")
    expect(page.locator(".customer .state")).to_have_text(["Answered"] * 3)
    expect(page.locator(".assistant")).to_have_count(1)


def test_a_message_waits_no_longer_than_800_ms_for_an_answer_to_the_one_before(
    page: Page, server: ScriptedServer
) -> None:
    ask(page, "First")
    ask(page, "Second")
    first = server.take("message.send")
    page.clock.run_for(799)
    assert_nothing_more_was_sent(page, server)
    page.clock.run_for(1)
    second = server.take("message.send")
    assert second["text"] == "Second"
    server.accept(second, "run-2")
    server.accept(first)
    # whatever the order in which they were accepted: that is the order in which the log has them
    expect(page.locator(".customer .body")).to_have_text(["Second", "First"])


def test_messages_stay_behind_one_that_the_server_throttles(page: Page, server: ScriptedServer) -> None:
    ask(page, "First")
    ask(page, "Second")
    first = server.take("message.send")
    throttled = {**problem(429, "rate_limited", ""), "retryable": True, "retry_after_ms": 5_000}
    server.push(refusal(first, throttled))
    expect(page.locator(".customer .state").first).to_contain_text("Sending again in")
    page.clock.run_for(4_999)
    assert_nothing_more_was_sent(page, server)
    page.clock.run_for(1)
    assert server.take("message.send") == first
    assert_nothing_more_was_sent(page, server)
    server.accept(first)
    assert server.take("message.send")["text"] == "Second"


def test_a_message_that_is_refused_for_good_lets_the_next_one_pass(
    page: Page, server: ScriptedServer
) -> None:
    ask(page, "First")
    ask(page, "Second")
    first = server.take("message.send")
    detail = problem(409, "message_conflict", "")
    server.push(refusal(first, {"problem": detail, "retryable": False}))
    assert server.take("message.send")["text"] == "Second"


@pytest.mark.invariant("I7")
def test_messages_written_offline_go_out_in_the_order_they_were_written(
    page: Page, server: ScriptedServer
) -> None:
    written = [f"Message {number}" for number in range(4)]
    ask(page, written[0])
    server.take("message.send")
    server.accepting = False
    server.kill_sockets()
    expect(page.get_by_role("button", name="Try now")).to_be_visible()
    for text in written[1:]:
        ask(page, text)
    server.accepting = True
    page.get_by_role("button", name="Try now").click()
    server.take_resume()
    for number, text in enumerate(written):
        frame = server.take("message.send")
        assert frame["text"] == text
        assert_nothing_more_was_sent(page, server)
        server.accept(frame, f"run-{number}")
    assert_nothing_more_was_sent(page, server)
    expect(page.locator(".customer .body")).to_have_text(written)


def test_a_conversation_that_is_left_keeps_nobody_waiting(page: Page, server: ScriptedServer) -> None:
    ask(page, "Of the old conversation")
    server.take("message.send")
    page.get_by_role("button", name="New conversation").click()
    ask(page, "Of the new conversation")
    frame = server.take("message.send")
    assert frame["text"] == "Of the new conversation"
    assert "opening" not in frame
