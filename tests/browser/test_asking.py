"""What a customer sees from the first key to the answer, and when an answer does not come."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.scripted_server import ScriptedServer, problem

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

REFUND_SOURCE: dict[str, Any] = {
    "ref": "p1.E1",
    "collection": "returns",
    "version": 3,
    "document_id": "refund-times",
    "title": "Refund times",
    "source": "https://example.com/refunds",
}


def ask(page: Page, text: str) -> None:
    page.locator("#text").fill(text)
    page.keyboard.press("Enter")


def test_a_question_is_accepted_worked_on_and_answered_with_its_source(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    mine = page.locator(".customer")
    expect(mine).to_have_attribute("data-state", "sending")
    frame = server.take("message.send")
    assert frame["text"] == "How long do refunds take?"
    assert frame["message_type"] == "user_chat"
    assert "conversation_id" not in frame
    assert "opening" not in frame

    conversation = server.accept(frame)
    expect(mine.locator(".state")).to_have_text("Received")
    server.status(conversation, "retrieving")
    expect(page.locator("#phase")).to_have_text("Looking in the documents…")

    server.reply(conversation, "Refunds take 3 to 5 days.", sources=[REFUND_SOURCE])
    answer = page.locator(".assistant")
    expect(answer.locator(".body")).to_have_text("Refunds take 3 to 5 days.")
    expect(answer.locator(".badge")).to_have_text("Simulated")
    expect(mine.locator(".state")).to_have_text("Answered")
    expect(page.locator("#run")).to_be_hidden()
    expect(answer.locator("dl")).to_be_hidden()
    answer.locator("summary").click()
    expect(answer.locator("dl")).to_have_text("Documentrefund-timesCollectionreturnsVersion3")
    expect(answer.get_by_role("link", name="Refund times")).to_have_attribute("href", REFUND_SOURCE["source"])


@pytest.mark.covers("F-362", "F-363")
def test_two_messages_at_once_open_one_conversation_and_get_one_answer(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    ask(page, "And who pays the postage?")
    first = server.take("message.send")
    conversation = server.accept(first, "run-1")
    second = server.take("message.send")
    assert second["opening"] == first["client_message_id"]
    server.accept(second, "run-2")
    superseded = {"by_run_id": "run-2", "reason": "newer_customer_message"}
    server.emit(conversation, "run.superseded", run_id="run-1", data=superseded)
    expect(page.locator(".customer").first.locator(".note")).to_contain_text(
        "Superseded by your newer message"
    )
    server.reply(conversation, "3 to 5 days; the shop pays.", "run-2")
    expect(page.locator(".assistant")).to_have_count(1)
    expect(page.locator(".customer .state")).to_have_text(["Answered", "Answered"])

    ask(page, "Thanks")
    third = server.take("message.send")
    assert third["conversation_id"] == conversation.id
    assert "opening" not in third


def test_a_declined_question_says_so(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "Who wins the cup?")
    conversation = server.accept(server.take("message.send"))
    server.reply(conversation, "I can only speak about this shop.", outcome="decline", simulated=False)
    expect(page.locator(".assistant .tag")).to_have_text("Cannot be answered here")
    expect(page.locator(".assistant .badge")).to_have_count(0)


def test_a_thing_to_try_is_sent_in_the_language_of_the_page(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    page.get_by_role("button", name="What are your opening hours?").click()
    assert server.take("message.send")["text"] == "What are your opening hours?"
    expect(page.locator("#chips")).to_be_hidden()


def test_the_stop_button_cancels_the_open_run(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    conversation = server.accept(server.take("message.send"))
    page.get_by_role("button", name="Stop").click()
    cancel = {"v": 1, "type": "run.cancel", "run_id": "run-1", "conversation_id": conversation.id}
    assert server.take("run.cancel") == cancel
    server.emit(conversation, "run.cancelled", run_id="run-1", data={"reason": "cancelled"})
    expect(page.locator(".customer .state")).to_have_text("Stopped")
    expect(page.locator("#run")).to_be_hidden()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def test_a_failed_run_shows_its_problem_and_can_be_asked_again_as_a_new_message(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    frame = server.take("message.send")
    conversation = server.accept(frame)
    server.emit(conversation, "run.failed", run_id="run-1", data={"problem": "turn_failed"})
    expect(page.locator(".customer .state")).to_have_text("Failed")
    expect(page.locator(".problem")).to_contain_text("The answer could not be finished; please ask again")
    expect(page.locator(".problem code")).to_have_text("turn_failed")
    page.get_by_role("button", name="Try again").click()
    again = server.take("message.send")
    assert again["text"] == frame["text"]
    assert again["client_message_id"] != frame["client_message_id"]


def test_a_stated_failure_is_shown_as_reply_and_as_failure(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    conversation = server.accept(server.take("message.send"))
    data = {"content": "Sorry, I could not answer.", "outcome": "answer", "sources": []}
    server.emit(conversation, "message.completed", run_id="run-1", message_id="r-1", message_seq=1, data=data)
    server.emit(conversation, "run.failed", run_id="run-1", data={"problem": "turn_failed"})
    expect(page.locator(".assistant .body")).to_have_text("Sorry, I could not answer.")
    expect(page.locator(".customer .state")).to_have_text("Failed")


def test_a_refused_message_shows_why_at_the_message(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    frame = server.take("message.send")
    detail = problem(409, "message_conflict", "Another body was sent under this id.")
    server.push(refusal(frame, {"problem": detail, "retryable": False}))
    expect(page.locator(".customer .problem")).to_contain_text("Another body was sent under this id.")
    page.get_by_role("button", name="Try again").click()
    assert server.take("message.send")["client_message_id"] != frame["client_message_id"]


@pytest.mark.covers("F-376")
def test_a_throttled_message_is_sent_again_by_itself_under_the_same_id(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page(clock=datetime(2026, 1, 1, tzinfo=UTC))
    ask(page, "How long do refunds take?")
    frame = server.take("message.send")
    detail = problem(429, "rate_limited", "")
    server.push(refusal(frame, {**detail, "retryable": True, "retry_after_ms": 60_000}))
    expect(page.locator(".customer .state")).to_contain_text("Sending again in")
    expect(page.locator(".customer .problem")).to_contain_text("Too many messages")
    page.clock.run_for(60_000)
    again = server.take("message.send")
    assert again == frame
    server.accept(again)
    expect(page.locator(".customer .state")).to_have_text("Received")
    expect(page.locator(".customer .problem")).to_be_hidden()


def test_an_error_of_no_message_is_shown_in_the_conversation(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    server.push({"v": 1, "type": "error", "id": "e-1", "data": problem(400, "frame_invalid", "Not a frame.")})
    expect(page.locator(".notice")).to_contain_text("Not a frame.")


def test_a_stop_that_came_too_late_is_no_error(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    conversation = server.accept(server.take("message.send"))
    page.get_by_role("button", name="Stop").click()
    server.take("run.cancel")
    server.push({"v": 1, "type": "error", "data": {"problem": problem(409, "run_not_open", "completed")}})
    server.reply(conversation, "3 to 5 days.")
    expect(page.locator(".customer .state")).to_have_text("Answered")
    expect(page.locator(".notice")).to_have_count(0)


def test_a_new_conversation_leaves_the_old_one_alone(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    old = server.accept(server.take("message.send"))
    expect(page.locator(".customer .state")).to_have_text("Received")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".item")).to_have_count(0)
    server.reply(old, "An answer to the old conversation.")
    ask(page, "Something else")
    frame = server.take("message.send")
    assert "conversation_id" not in frame
    assert "opening" not in frame
    server.reply(server.accept(frame, "run-9"), "The new answer.", "run-9")
    expect(page.locator(".assistant .body")).to_have_text(["The new answer."])


def test_agents_taking_over_are_announced(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "I want a person")
    conversation = server.accept(server.take("message.send"))
    server.emit(conversation, "handoff.requested", data={"reason": "customer", "queue": "default"})
    expect(page.locator(".notice")).to_have_text("We are calling a colleague for you.")
    reply = {
        "content": "Hello, Mei here.",
        "outcome": "handoff",
        "sources": [],
        "facts": [],
        "agent": "agent:mei",
    }
    server.emit(conversation, "message.completed", message_id="m-2", message_seq=2, data=reply)
    expect(page.locator(".assistant .tag")).to_have_text("Agent")
    expect(page.locator(".customer .state")).to_have_text("Answered")


def refusal(frame: dict[str, object], data: dict[str, object]) -> dict[str, object]:
    return {
        "v": 1,
        "type": "error",
        "id": "e-1",
        "data": {**data, "client_message_id": frame["client_message_id"]},
    }
