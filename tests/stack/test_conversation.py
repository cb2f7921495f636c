"""A customer talks to the deployed stack over its real WebSocket and HTTP APIs."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.chat_client import ChatError
from tests.stack.world import seed_turns
from turngate.domain import keys
from turngate.domain.shapes import TenantContext

GREETING = "hello"


def frames(chat, kind):
    return [frame for frame in chat.log() if frame["type"] == kind]


def told(chat, kind):
    return [frame for frame in chat.ephemeral if frame["type"] == kind]


# What a customer may ask


@pytest.mark.parametrize(
    ("question", "document", "language"),
    [
        ("七天无理由退货怎么算？", "no-reason-return", "zh"),
        ("How long do refunds take?", "refund-timing-en", "en"),
    ],
)
@pytest.mark.covers("F-001", "F-090", "F-140", "F-650")
def test_a_question_is_answered_from_a_document_that_is_named(world, question, document, language):
    chat = world.guest().chat()
    reply = chat.ask(question)["data"]
    assert reply["outcome"] == "answer"
    assert document in [source["document_id"] for source in reply["sources"]]
    assert any("一" <= char <= "鿿" for char in reply["content"]) == (language == "zh")
    ended = chat.ending(chat.log()[1]["run_id"])
    assert ended["type"] == "run.completed"
    assert ended["data"]["usage"]["model_calls"] == 2
    assert ended["data"]["usage"]["simulated"] is True
    world.settle(chat.conversation)


@pytest.mark.covers("F-092")
def test_a_question_out_of_scope_is_told_so_and_nothing_is_retrieved(world):
    chat = world.guest().chat()
    reply = chat.ask("What will the weather be tomorrow in Paris?")
    assert (reply["data"]["outcome"], reply["data"]["sources"]) == ("decline", [])
    log = world.run_log(reply["run_id"])
    assert not [name for name in log if "retriev" in name]
    world.settle(chat.conversation)


@pytest.mark.covers("F-044")
def test_a_greeting_is_answered_by_rule_without_a_model(world):
    before = len(world.double.asked)
    chat = world.guest().chat()
    reply = chat.ask(GREETING)
    assert reply["data"]["response_source"] == "fixed"
    chat.ending(reply["run_id"])
    assert len(world.double.asked) == before


@pytest.mark.covers("F-045")
def test_a_guest_is_told_that_a_guest_has_no_user_id(world):
    reply = world.guest().chat().ask("what is my user id")["data"]
    assert reply["response_source"] == "fixed"
    assert "guest" in reply["content"]


@pytest.mark.covers("F-644")
def test_a_guest_who_asks_for_orders_is_asked_to_sign_in(world):
    reply = world.guest().chat().ask("Show me my orders")
    assert (reply["data"]["outcome"], reply["data"]["sources"]) == ("decline", [])
    assert "sign in" in reply["data"]["content"].lower()


# Who it is


@pytest.mark.covers("F-045", "F-638", "F-639", "F-643")
def test_a_signed_in_customer_is_known_and_told_what_is_not_connected(world):
    customer = f"c-{uuid.uuid4().hex[:6]}"
    chat = world.person(world.sign_in(account="mall", customer=customer)).chat()
    assert customer in chat.ask("what is my user id")["data"]["content"]
    reply = chat.ask("Show me my orders")
    assert (reply["data"]["outcome"], reply["data"]["sources"]) == ("decline", [])
    assert "sign in" not in reply["data"]["content"].lower()
    assert "not connected" in reply["data"]["content"].lower()
    assert world.head(chat.conversation)["customer"] == customer
    assert {run["tenant"]["customer"] for run in world.runs(chat.conversation)} == {customer}


def test_a_token_without_an_account_opens_nothing(world):
    answer = world.call("POST", "/v1/chat/tickets", world.sign_in(customer="c-1"), {})
    assert answer.status in (401, 403)


@pytest.mark.covers("F-640", "F-647")
def test_another_customer_and_another_account_cannot_see_a_conversation(world):
    chat = world.person(world.sign_in(account="mall", customer="c-1")).chat()
    chat.ask(GREETING)
    for token in (
        world.sign_in(account="mall", customer="c-2"),
        world.sign_in(account="elsewhere", customer="c-1"),
    ):
        path = f"/v1/conversations/{chat.conversation}/events"
        answer = world.call("GET", path, token)
        assert (answer.status, answer.document["code"]) == (404, "conversation_not_found")
        stranger = world.person(token).chat()
        stranger.say("hi there", conversation_id=chat.conversation)
        assert stranger.error()["data"]["problem"]["code"] == "conversation_not_found"
    assert world.head(chat.conversation)["seq"] == 1


# Many messages at once


@pytest.mark.covers("F-362", "F-363")
@pytest.mark.invariant("I1", "I2")
def test_two_messages_at_once_get_one_answer_to_both(world):
    chat = world.guest().chat()
    held = world.double.hold("electronic invoice", "understand")
    first = chat.say("How do I get an electronic invoice?")
    held.arrived.wait(20)
    second = chat.say("How long is the warranty?")
    reply = chat.reply_to(second)
    held.release.set()
    earlier = chat.accepted(first)
    assert chat.ending(earlier["run_id"])["type"] == "run.superseded"
    assert reply["message_seq"] == chat.accepted(second)["message_seq"]
    asked = [text for text, task in world.double.asked if task == "understand"][-1]
    assert "electronic invoice" in asked
    assert "warranty" in asked
    chat.ending(reply["run_id"])
    world.settle(chat.conversation)
    assert len(frames(chat, "message.completed")) == 1


@pytest.mark.covers("F-357", "F-359")
@pytest.mark.invariant("I7")
def test_a_resend_is_told_the_first_result_and_another_body_is_a_conflict(world):
    chat = world.guest().chat()
    ident = chat.say(GREETING)
    first = chat.accepted(ident)
    chat.ending(first["run_id"])
    seen = len(chat.ephemeral)
    chat.say(GREETING, client_message_id=ident)
    chat.wait(lambda: len(chat.ephemeral) > seen, "the repeated acceptance")
    repeated = chat.ephemeral[-1]
    assert repeated["type"] == "message.accepted"
    assert repeated["data"] == {"client_message_id": ident, "duplicate": True}
    assert (repeated["message_id"], repeated["run_id"]) == (first["message_id"], first["run_id"])
    chat.say("something else", client_message_id=ident)
    problem = chat.error()["data"]
    assert (problem["problem"]["status"], problem["problem"]["code"]) == (409, "message_conflict")
    assert problem["client_message_id"] == ident
    assert world.head(chat.conversation)["seq"] == 1


@pytest.mark.invariant("I7")
def test_a_first_message_sent_on_two_sockets_opens_one_conversation(world):
    person = world.guest()
    one, two = person.chat(), person.chat()
    ident = uuid.uuid4().hex
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda chat: chat.say(GREETING, client_message_id=ident), (one, two)))
    reply = one.reply_to(ident)
    two.reply_to(ident)
    assert one.conversation == two.conversation
    one.ending(reply["run_id"])
    items = world.settle(one.conversation)
    assert world.head(one.conversation)["seq"] == 1
    assert len([key for key in items if key.sk.startswith("RUN#")]) == 1


@pytest.mark.invariant("I1", "I9")
@pytest.mark.covers("F-659")
def test_a_cancelled_run_says_nothing_and_the_next_message_is_answered(world):
    chat = world.guest().chat()
    held = world.double.hold("coupon", "understand")
    accepted = chat.accepted(chat.say("How can I use a coupon?"))
    assert held.arrived.wait(20)
    chat.send({"type": "run.cancel", "run_id": accepted["run_id"], "conversation_id": chat.conversation})
    assert chat.ending(accepted["run_id"])["type"] == "run.cancelled"
    held.release.set()
    chat.send({"type": "run.cancel", "run_id": accepted["run_id"], "conversation_id": chat.conversation})
    assert chat.error()["data"]["problem"]["code"] == "run_not_open"
    reply = chat.ask(GREETING)
    assert reply["message_seq"] == 2
    chat.ending(reply["run_id"])
    world.settle(chat.conversation)
    assert [frame["message_seq"] for frame in frames(chat, "message.completed")] == [2]


# Connections


def test_a_client_that_comes_back_gets_exactly_what_it_missed(world):
    person = world.guest()
    away = person.chat()
    away.ending(away.ask(GREETING)["run_id"])
    away.disconnect()
    seen = set(away.events)
    other = person.chat(away.conversation)
    other.ending(other.ask("thank you")["run_id"])
    away.connect()
    last = world.head(away.conversation)["evt"]
    away.wait(lambda: max(away.events) == last, "the missed events")
    assert sorted(set(away.events) - seen) == list(range(max(seen) + 1, last + 1))
    assert away.events == other.events
    assert not told(away, "resume.gap")


def test_a_client_that_missed_too_much_is_told_where_to_fetch_it(world):
    tenant = TenantContext(account="mall", principal=f"user:{uuid.uuid4().hex}")
    conversation = seed_turns(world, tenant, 35, [(GREETING, "hi")])
    person = world.guest_as(tenant)
    chat = person.chat(conversation)
    chat.wait(lambda: bool(told(chat, "resume.gap")), "resume.gap")
    gap = told(chat, "resume.gap")[0]["data"]
    assert (gap["from_seq"], gap["to_seq"]) == (1, 105)
    assert gap["fetch_url"] == f"{world.stack.http_url}/v1/conversations/{conversation}/events"
    assert chat.events == {}
    got, after = [], 0
    while after is not None:
        page = world.call(
            "GET", f"/v1/conversations/{conversation}/events?after={after}&limit=40", person.token
        )
        assert len(page.document["events"]) <= 40
        got += [event["seq"] for event in page.document["events"]]
        after = page.document["next_after"]
    assert got == list(range(1, 106))


def test_a_pong_tells_the_last_event_of_the_conversation(world):
    chat = world.guest().chat()
    chat.ending(chat.ask(GREETING)["run_id"])
    chat.send({"type": "ping", "conversation_id": chat.conversation})
    chat.wait(lambda: bool(told(chat, "pong")), "pong")
    pong = told(chat, "pong")[0]["data"]
    assert pong["last_seq"] == world.head(chat.conversation)["evt"] == 3
    assert abs(pong["server_time"] - time.time() * 1000) < 30_000


def test_both_sockets_of_one_person_hear_everything(world):
    person = world.guest()
    one = person.chat()
    one.ending(one.ask(GREETING)["run_id"])
    two = person.chat(one.conversation)
    reply = one.ask("How long do refunds take?")
    assert one.ending(reply["run_id"]) == two.ending(reply["run_id"])
    assert one.events == two.events


def test_a_socket_that_is_gone_at_push_costs_nobody_the_answer_and_is_forgotten(world):
    chat = world.guest().chat()
    chat.ending(chat.ask(GREETING)["run_id"])
    principal = world.head(chat.conversation)["owner"]
    now = int(time.time() * 1000)

    def row(name, connected_at):
        key = keys.connection("mall", principal, name)
        item = {
            "entity": "connection",
            "connection_id": name,
            "principal": principal,
            "connected_at": connected_at,
        }
        world.stack.store.put_all("mall", [(key, item)])
        return key

    old, young = row("gone-long-ago", now - 60_000), row("still-connecting", now + 60_000)
    reply = chat.ask("thank you")
    assert reply["data"]["outcome"] == "answer"
    chat.ending(reply["run_id"])
    world.wait(lambda: world.get("mall", old) is None, "the gone connection to be forgotten")
    assert world.get("mall", young) is not None
    owing = keys.events("mall", chat.conversation, world.head(chat.conversation)["evt"])
    world.wait(lambda: "GSI1PK" not in (world.get("mall", owing) or {"GSI1PK": 1}), "the push to be done")


@pytest.mark.invariant("I8")
def test_a_lost_start_is_made_good_by_the_sweeper(world):
    world.stack.emulator.add_fault(
        action="AccessDenied", service="states", operation="StartExecution", limit=1
    )
    chat = world.guest().chat()
    ident = chat.say(GREETING)
    accepted = chat.accepted(ident)
    with pytest.raises(ChatError):
        chat.ending(accepted["run_id"], timeout=1)
    time.sleep(max(0.0, accepted["ts"] / 1000 + 10.1 - time.time()))  # the start is due 10 s after the accept
    world.sweep()
    assert chat.ending(accepted["run_id"])["type"] == "run.completed"
    world.settle(chat.conversation)


def test_a_connection_needs_no_conversation_yet(world):
    chat = world.guest().chat()
    ready = told(chat, "session.ready")[0]["data"]
    assert (ready["last_seq"], ready["mode"]) == (0, "AI")
    assert ready["connection_expires_at"] > time.time() * 1000
