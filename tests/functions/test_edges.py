"""What no single event shows: use after use, too much, too late, and parts of AWS that fail."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from functions.chat.accept_message import handler as accept_message
from functions.chat.authorize import handler as authorize
from functions.chat.connect import handler as connect
from functions.chat.disconnect import handler as disconnect
from functions.chat.issue_ticket import handler as issue_ticket
from functions.chat.push_events import handler as push_events
from tests.functions.prepared import ANN, BOB, EVENTS, SOCKET, prepare, read
from tests.machines.aws_events import CONTEXT, socket_event, sqs_event
from tests.machines.tenant import ACCOUNT
from turngate.domain import keys, wire
from turngate.domain.fence import NO_ACCOUNT
from turngate.errors import TransientError


@pytest.fixture
def world(story):
    return prepare(story(), "accept_message")


def effect(ticket_event: dict) -> str:
    return authorize.lambda_handler(ticket_event, CONTEXT)["policyDocument"]["Statement"][0]["Effect"]


@pytest.mark.covers("F-643")
def test_a_ticket_opens_one_connection(world) -> None:
    event = read(EVENTS / "authorize" / "connect-valid-ticket.json")
    assert [effect(event), effect(event)] == ["Allow", "Deny"]


def test_a_ticket_from_the_http_route_opens_the_socket_within_a_minute_and_not_after(world) -> None:
    event = read(EVENTS / "authorize" / "connect-valid-ticket.json")
    for waited, allowed in ((60_000, "Allow"), (60_001, "Deny")):
        response = issue_ticket.lambda_handler(read(EVENTS / "issue_ticket" / "ticket.json"), CONTEXT)
        event["queryStringParameters"] = {"ticket": json.loads(response["body"])["ticket"]}
        world.clock.advance(waited)
        assert effect(event) == allowed


def test_a_guest_gets_an_identity_and_with_it_a_ticket(world) -> None:
    guest = json.loads(
        issue_ticket.lambda_handler(read(EVENTS / "issue_ticket" / "guest.json"), CONTEXT)["body"]
    )
    event = read(EVENTS / "authorize" / "route-guest.json")
    event["headers"]["authorization"] = f"Bearer {guest['token']}"
    allowed = authorize.lambda_handler(event, CONTEXT)
    tenant = json.loads(allowed["context"]["tenant"])
    assert (tenant["account"], tenant["principal"], tenant.get("customer")) == (
        ACCOUNT,
        guest["principal"],
        None,
    )
    world.clock.advance(24 * 3600 * 1000 + 1)
    assert authorize.lambda_handler(event, CONTEXT) == {"isAuthorized": False}


def test_no_secret_is_stored_as_it_is(world) -> None:
    guest = json.loads(
        issue_ticket.lambda_handler(read(EVENTS / "issue_ticket" / "guest.json"), CONTEXT)["body"]
    )
    ticket = json.loads(
        issue_ticket.lambda_handler(read(EVENTS / "issue_ticket" / "ticket.json"), CONTEXT)["body"]
    )
    stored = str(world.store.snapshot())
    assert guest["token"] not in stored
    assert ticket["ticket"] not in stored


def test_a_connection_is_remembered_and_forgotten_with_both_its_rows(world) -> None:
    def rows() -> set[str]:
        items = world.store.snapshot()
        return {key.pk for key, item in items.items() if item.get("connection_id") == "conn-new="}

    connect.lambda_handler(read(EVENTS / "connect" / "customer.json"), CONTEXT)
    assert rows() == {"CONN#conn-new=", f"T#{ACCOUNT}#P#user:ann"}
    gone = read(EVENTS / "disconnect" / "known.json")
    gone["requestContext"]["connectionId"] = "conn-new="
    disconnect.lambda_handler(gone, CONTEXT)
    assert rows() == set()


def test_a_ping_brings_back_a_connection_that_was_forgotten(world) -> None:
    disconnect.lambda_handler(read(EVENTS / "disconnect" / "known.json"), CONTEXT)
    world.send({"type": "ping"}, ANN, SOCKET)
    key = keys.reverse_connection(SOCKET)
    assert world.store.get(NO_ACCOUNT, (key,))[key]["principal"] == "user:ann"


@pytest.mark.parametrize("age", [5_000, 15_000])
def test_a_socket_that_is_gone_at_push_loses_its_row_unless_it_is_just_connecting(world, age) -> None:
    world.pusher.gone.add(SOCKET)
    row = keys.connection(ACCOUNT, "user:ann", SOCKET)
    item = world.store.get(ACCOUNT, (row,))[row]
    world.store.put_all(ACCOUNT, [(row, {**item, "connected_at": world.clock.now_ms() - age})])
    event = read(EVENTS / "push_events" / "event.json")
    assert push_events.lambda_handler(event, CONTEXT) == {"batchItemFailures": []}
    assert bool(world.store.get(ACCOUNT, (row,))) is (age < 10_000)
    assert world.pusher.frames["conn-ann"], "the other socket has it"


def test_a_pushed_event_owes_nothing_more_and_a_failed_push_still_does(world) -> None:
    event = read(EVENTS / "push_events" / "event.json")
    stored = keys.events(ACCOUNT, world.conversation, 1)
    world.pusher.failing.add(SOCKET)
    failed = push_events.lambda_handler(event, CONTEXT)["batchItemFailures"]
    assert len(failed) == 1
    assert keys.due_at(world.store.get(ACCOUNT, (stored,))[stored]) is not None
    world.pusher.failing.clear()
    assert push_events.lambda_handler(event, CONTEXT) == {"batchItemFailures": []}
    assert keys.due_at(world.store.get(ACCOUNT, (stored,))[stored]) is None


def refused(world) -> dict:
    (order,) = world.pushes.sent
    return order["frame"]["data"]


def test_too_many_messages_are_refused_with_the_time_to_wait_and_a_resend_costs_nothing(world) -> None:
    for number in range(25):
        world.send(
            {"type": "message.send", "client_message_id": "m-1", "text": "May I return it?"}, ANN, SOCKET
        )
        world.say(f"message {number}", who=ANN)
        if (
            len(world.pushes.sent)
            and "frame" in world.pushes.sent[-1]
            and world.pushes.sent[-1]["frame"]["type"] == "error"
        ):
            break
    data = world.pushes.sent[-1]["frame"]["data"]
    assert (data["problem"]["code"], data["retryable"], data["retry_after_ms"]) == (
        "rate_limited",
        True,
        1000,
    )
    assert world.head.seq == 20
    world.clock.advance(1000)
    world.say("again", who=ANN)
    assert world.head.seq == 21


@pytest.mark.invariant("I7")
def test_when_the_table_does_not_answer_the_client_is_told_to_try_again_and_nothing_is_lost(world) -> None:
    world.store.drop["accept"] = 1000
    world.send({"type": "message.send", "client_message_id": "m-9", "text": "hello"}, ANN, SOCKET)
    data = refused(world)
    assert (data["problem"]["code"], data["client_message_id"], data["retryable"]) == ("busy", "m-9", True)
    world.store.drop["accept"] = 0
    world.pushes.sent.clear()
    world.send({"type": "message.send", "client_message_id": "m-9", "text": "hello"}, ANN, SOCKET)
    assert [order["kind"] for order in world.pushes.sent] == ["event"]


@pytest.mark.invariant("I8")
def test_a_message_is_accepted_although_neither_machine_nor_queue_can_be_reached(world) -> None:
    world.starter.down = world.pushes.down = True
    response = world.send({"type": "message.send", "client_message_id": "m-9", "text": "hello"}, ANN, SOCKET)
    assert response == {"statusCode": 200}
    run = keys.run(
        ACCOUNT,
        (opened := keys.conversation_id_for(ACCOUNT, "user:ann", "m-9")),
        keys.run_id_for(ACCOUNT, opened, 1),
    )
    assert keys.due_at(world.store.get(ACCOUNT, (run,))[run]) is not None, "the run owes its start"


def test_a_refusal_that_cannot_be_told_is_an_error_of_the_function(world) -> None:
    world.pushes.down = True
    with pytest.raises(TransientError):
        world.send("nonsense", ANN, SOCKET)


@pytest.mark.covers("F-647")
@pytest.mark.invariant("I6")
def test_a_stranger_learns_nothing_from_any_route_that_names_a_conversation(world) -> None:
    """What Bob is told of Ann's conversation is, to the byte, what he is told of one that does not exist."""

    def told(conversation: str) -> list[str]:
        world.pushes.sent.clear()
        run = keys.run_id_for(ACCOUNT, conversation, 1)
        for frame in (
            {"type": "message.send", "client_message_id": "m-1", "text": "May I return it?"},
            {"type": "resume", "after_seq": 0},
            {"type": "ping"},
            {"type": "run.cancel", "run_id": run},
        ):
            world.send({**frame, "conversation_id": conversation}, BOB, "conn-bob=")
        event = read(EVENTS / "issue_ticket" / "events.json")
        event["pathParameters"]["id"] = conversation
        event["requestContext"]["authorizer"]["lambda"]["tenant"] = wire.write_json(BOB)
        answered = issue_ticket.lambda_handler(event, CONTEXT)
        return [json.dumps(order) for order in world.pushes.sent] + [answered["body"]]

    before = world.store.snapshot()
    assert told(world.conversation) == told("c" + "0" * 31)
    assert world.starter.started == []
    after = world.store.snapshot()
    assert {k: v for k, v in after.items() if "CONN#" not in f"{k}"} == {
        k: v for k, v in before.items() if "CONN#" not in f"{k}"
    }


@pytest.mark.parametrize(
    "tenant",
    [
        "",
        "{}",
        "null",
        '{"account":"velo#C","principal":"user:ann"}',
        '{"account":"velo","principal":"user:ann","roles":["admin"]}',
    ],
)
def test_a_socket_without_a_sound_identity_reaches_nothing(world, tenant) -> None:
    """Only the authorizer writes it; anything else is a defect that must not become somebody."""
    event = socket_event('{"type":"ping"}', ANN, SOCKET, "$default")
    event["requestContext"]["authorizer"]["tenant"] = tenant
    with pytest.raises(Exception, match="unauthorized"):
        accept_message.lambda_handler(event, CONTEXT)
    assert world.pushes.sent == []


def test_a_poisonous_record_comes_back_alone(world) -> None:
    order = {"kind": "event", "account": ACCOUNT, "conversation": world.conversation, "evt": 1}
    event = sqs_event([json.dumps(order), "\x00", json.dumps(order)])
    assert push_events.lambda_handler(event, CONTEXT) == {
        "batchItemFailures": [{"itemIdentifier": "message-1"}]
    }
    assert len(world.pusher.frames[SOCKET]) == 2


def test_records_for_which_no_time_is_left_go_back_untried(world) -> None:
    order = {"kind": "event", "account": ACCOUNT, "conversation": world.conversation, "evt": 1}
    late = SimpleNamespace(get_remaining_time_in_millis=lambda: 100)
    returned = push_events.lambda_handler(sqs_event([json.dumps(order)] * 2), late)["batchItemFailures"]
    assert [each["itemIdentifier"] for each in returned] == ["message-0", "message-1"]
    assert not world.pusher.frames[SOCKET]
