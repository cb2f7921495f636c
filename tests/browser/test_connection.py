"""The page against a network that fails: nothing said is lost, nothing shown twice, everything in order."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.scripted_server import Conversation, ScriptedServer, problem
from tests.browser.test_asking import ask

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.covers("F-376")
@pytest.mark.invariant("I7")
def test_a_message_in_flight_when_the_socket_dies_is_sent_again_under_its_id(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    frame = server.take("message.send")
    server.kill_sockets()
    assert server.take_resume() == {"v": 1, "type": "resume"}
    again = server.take("message.send")
    assert again == frame
    server.reply(server.accept(again), "3 to 5 days.")
    expect(page.locator(".customer")).to_have_count(1)
    expect(page.locator(".customer .state")).to_have_text("Answered")


@pytest.mark.invariant("I7")
def test_a_lost_acknowledgement_does_not_make_a_second_message(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "How long do refunds take?")
    conversation = server.accept(server.take("message.send"), push=False)
    server.kill_sockets()
    server.take_resume()
    assert (
        server.take("message.send")["client_message_id"]
        == conversation.events[0]["data"]["client_message_id"]
    )
    server.reply(conversation, "3 to 5 days.", push=False)
    server.repeat_acceptance(conversation)
    assert server.take_resume() == {
        "v": 1,
        "type": "resume",
        "conversation_id": conversation.id,
        "after_seq": 0,
    }
    expect(page.locator(".item .body")).to_have_text(["How long do refunds take?", "3 to 5 days."])
    expect(page.locator(".customer .state")).to_have_text(["Answered"])


@pytest.mark.invariant("I2")
def test_what_happened_while_away_is_replayed_once_and_in_order(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "First")
    conversation = server.accept(server.take("message.send"))
    expect(page.locator(".customer .state")).to_have_text("Received")
    server.accepting = False
    server.kill_sockets()
    expect(page.locator("#connection-text")).to_have_text(re.compile(r"Reconnecting in \d+ s|Connecting…"))
    ask(page, "Second")
    expect(page.locator(".customer .state").last).to_have_text("Waiting for the connection…")
    server.reply(conversation, "Answer to the first.")
    server.accepting = True
    resume = server.take_resume()
    assert (resume["conversation_id"], resume["after_seq"]) == (conversation.id, 1)
    second = server.take("message.send")
    assert second["conversation_id"] == conversation.id
    server.accept(second, "run-2")
    server.reply(conversation, "Answer to the second.", "run-2")
    expect(page.locator(".item .body")).to_have_text(
        ["First", "Answer to the first.", "Second", "Answer to the second."]
    )


@pytest.mark.invariant("I2")
def test_events_out_of_order_and_twice_are_shown_in_order_and_once(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "Question")
    conversation = server.accept(server.take("message.send"))
    server.reply(conversation, "Answer.", push=False)
    accepted, completed, ended = conversation.events
    for event in (ended, completed, accepted, completed, ended):
        server.push(event)
    expect(page.locator(".item .body")).to_have_text(["Question", "Answer."])
    expect(page.locator(".assistant .badge")).to_be_visible()
    expect(page.locator("#run")).to_be_hidden()


def test_a_status_of_a_lower_epoch_is_dropped(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "First")
    conversation = server.accept(server.take("message.send"))
    ask(page, "Second")
    server.accept(server.take("message.send"), "run-2")
    server.status(conversation, "generating", "run-2")
    expect(page.locator("#phase")).to_have_text("Writing the answer…")
    conversation.epoch -= 1
    server.status(conversation, "routing", "run-2")
    # arrives after it: what is on the page then is what the status left there
    server.emit(conversation, "handoff.requested", data={"reason": "customer", "queue": "default"})
    expect(page.locator(".notice")).to_be_visible()
    expect(page.locator("#phase")).to_have_text("Writing the answer…")


def leave_a_hole(page: Page, server: ScriptedServer, conversation: Conversation) -> None:
    """Push the log's last event without those before it, and wait until the page has noticed."""
    server.push(conversation.events[-1])
    # a frame behind it on the same socket: when it shows, the one before has been read
    server.push({"v": 1, "type": "error", "id": "e-1", "data": problem(503, "busy", "Read up to here.")})
    expect(page.locator(".notice")).to_contain_text("Read up to here.")


def test_a_hole_in_the_log_is_asked_for_again(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page(clock=START)
    ask(page, "Question")
    conversation = server.accept(server.take("message.send"))
    server.reply(conversation, "Answer.", push=False)
    leave_a_hole(page, server, conversation)
    page.clock.run_for(1_500)
    resume = server.take_resume()
    assert resume["after_seq"] == 1
    expect(page.locator(".assistant .body")).to_have_text("Answer.")


def test_a_hole_the_socket_does_not_fill_is_read_over_http(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page(clock=START)
    server.replay = False
    ask(page, "Question")
    conversation = server.accept(server.take("message.send"))
    server.reply(conversation, "Answer.", push=False)
    leave_a_hole(page, server, conversation)
    page.clock.run_for(1_500)
    server.take_resume()
    page.clock.run_for(1_500)
    expect(page.locator(".assistant .body")).to_have_text("Answer.")
    events = [request for request in server.requests.queue if "/events?" in request[1]]
    assert events == [
        ("GET", f"/v1/conversations/{conversation.id}/events?after=1&limit=100", "Bearer token-1")
    ]


def test_a_long_absence_is_caught_up_page_by_page(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "Question")
    conversation = server.accept(server.take("message.send"))
    expect(page.locator(".customer .state")).to_have_text("Received")
    server.accepting = False
    server.kill_sockets()
    for number in range(120):
        server.reply(conversation, f"Answer {number}.", f"run-{number}")
    server.accepting = True
    assert server.take_resume()["after_seq"] == 1
    expect(page.locator(".assistant")).to_have_count(120)
    targets = [
        request[1].partition("/events?")[2] for request in server.requests.queue if "/events?" in request[1]
    ]
    assert targets == [f"after={after}&limit=100" for after in (1, 101, 201)]
    assert server.resumes.empty()


def test_a_reload_shows_the_conversation_and_resumes_after_it(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "Question")
    conversation = server.accept(server.take("message.send"))
    server.reply(conversation, "Answer.")
    expect(page.locator(".customer .state")).to_have_text("Answered")
    page.reload()
    assert server.take_resume()["after_seq"] == 3
    expect(page.locator(".item .body")).to_have_text(["Question", "Answer."])
    assert server.guests == ["guest:1"]


def test_a_second_window_shows_the_same_conversation(open_page: OpenPage, server: ScriptedServer) -> None:
    first = open_page()
    ask(first, "From the first window")
    conversation = server.accept(server.take("message.send"))
    expect(first.locator(".customer .state")).to_have_text("Received")
    second = first.context.new_page()
    second.goto(server.page_url)
    server.take_resume()
    ask(first, "Once more from the first")
    expect(second.locator(".customer .body")).to_have_text(
        ["From the first window", "Once more from the first"]
    )
    server.accept(server.take("message.send"), "run-2")
    server.reply(conversation, "Answer.", "run-2")
    expect(second.locator(".customer .state")).to_have_text(["Answered", "Answered"])


def test_a_reload_sends_what_was_not_acknowledged(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "Question")
    frame = server.take("message.send")
    page.reload()
    server.take_resume()
    assert server.take("message.send") == frame


def test_a_message_without_acknowledgement_is_repeated_then_given_up(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page(clock=START)
    ask(page, "Question")
    first = server.take("message.send")
    for _ in range(3):
        page.clock.run_for(10_000)
        assert server.take("message.send") == first
    page.clock.run_for(10_000)
    expect(page.locator(".customer .problem")).to_contain_text("The server did not confirm it")
    page.get_by_role("button", name="Try again").click()
    assert server.take("message.send") == first


@pytest.mark.parametrize("opaque", [False, True], ids=["readable", "without CORS headers"])
def test_an_identity_the_server_no_longer_takes_is_renewed(
    open_page: OpenPage, server: ScriptedServer, opaque: bool
) -> None:
    page = open_page()
    server.opaque_refusals = opaque
    ask(page, "Question")
    server.accept(server.take("message.send"))
    expect(page.locator(".customer .state")).to_have_text("Received")
    server.valid_tokens.clear()
    server.accepting = False
    server.kill_sockets()
    ask(page, "Not sent yet")
    server.accepting = True
    assert server.take_resume() == {"v": 1, "type": "resume"}
    expect(page.locator(".notice")).to_contain_text("a new conversation was started")
    frame = server.take("message.send")
    assert frame["text"] == "Not sent yet"
    assert "conversation_id" not in frame
    assert len(server.guests) == (3 if opaque else 2)


def test_an_identity_is_kept_when_the_network_fails_for_everybody(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page()
    ask(page, "Question")
    conversation = server.accept(server.take("message.send"))
    expect(page.locator(".customer .state")).to_have_text("Received")
    page.context.route("**/v1/**", lambda route: route.abort())
    server.kill_sockets()
    expect(page.locator("#connection")).to_have_attribute("data-kind", "waiting")
    page.context.unroute("**/v1/**")
    assert server.take_resume()["conversation_id"] == conversation.id
    assert server.guests == ["guest:1"]


def test_a_conversation_the_server_does_not_know_is_left(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    ask(page, "Question")
    conversation = server.accept(server.take("message.send"))
    expect(page.locator(".customer .state")).to_have_text("Received")
    server.refuse_resume = {"problem": problem(404, "conversation_not_found", ""), "retryable": False}
    server.kill_sockets()
    assert server.take_resume()["conversation_id"] == conversation.id
    assert server.take_resume() == {"v": 1, "type": "resume"}
    expect(page.locator(".notice")).to_contain_text("no longer available")


def test_the_page_pings_and_renews_its_connection_with_overlap(
    open_page: OpenPage, server: ScriptedServer
) -> None:
    page = open_page(clock=START)
    page.clock.fast_forward(301_000)
    server.take("ping")
    server.push({"v": 1, "type": "pong", "data": {"server_time": 0}})
    old = server.connections[0]
    page.clock.pause_at(START + timedelta(minutes=116))
    server.take("ping")
    server.take_resume()
    server.push_to(
        old, {"v": 1, "type": "error", "data": {"problem": problem(503, "busy", "By the old socket.")}}
    )
    expect(page.locator(".notice")).to_contain_text("By the old socket.")
    page.clock.run_for(2_000)
    assert server.closed.get(timeout=10) is old
    assert len(server.connections) == 1
    expect(page.locator("#connection")).to_have_attribute("data-kind", "online")


def test_the_customer_can_reconnect_without_waiting(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    server.accepting = False
    server.kill_sockets()
    expect(page.get_by_role("button", name="Try now")).to_be_visible()
    server.accepting = True
    page.get_by_role("button", name="Try now").click()
    server.take_resume()
    expect(page.locator("#connection")).to_have_attribute("data-kind", "online")


def test_damaged_storage_does_not_stop_the_page(open_page: OpenPage, server: ScriptedServer) -> None:
    page = open_page()
    page.evaluate(
        """() => {
          localStorage.setItem("turngate.chat.mall.guest", "{not json");
          localStorage.setItem("turngate.chat.mall.conversation", JSON.stringify({ events: 7 }));
        }"""
    )
    page.reload()
    assert server.take_resume() == {"v": 1, "type": "resume"}
    expect(page.locator("#connection")).to_have_attribute("data-kind", "online")
