"""What bad input gets on the deployed stack: a clear, coded answer, and nothing is lost or begun by it."""

from __future__ import annotations

import hashlib
import json
import time

import pytest
from msgspec.structs import replace
from websockets.exceptions import InvalidStatus

from local.chat_client import ChatError
from local.tenants import MALL, read_document, read_tenant
from turngate.domain import keys
from turngate.domain.fence import NO_ACCOUNT
from turngate.domain.knowledge import MAX_DOCUMENT_BYTES, Document
from turngate.errors import RefusedError
from turngate.protocol.configuring import activate_config, activate_knowledge, put_config

GREETING = "hello"
DENIED = (401, 403)


def sent(**fields):
    return json.dumps({"v": 1, "type": "message.send", "client_message_id": "m1", "text": "hi", **fields})


FRAMES = {
    "blank": ("  ", "frame_empty", 400),
    "half a character": (sent(text="\ud800"), "frame_not_text", 400),
    "over 32 KB": (sent(text="x" * 33_000), "frame_too_large", 413),
    "prose": ("hello?", "frame_not_json", 400),
    "a list": ('["message.send"]', "frame_not_json", 400),
    "deep": ('{"type":"ping","x":' + "[" * 900 + "]" * 900 + "}", "frame_too_deep", 400),
    "no type": ('{"v":1}', "frame_unknown_type", 400),
    "unknown type": ('{"v":1,"type":"admin.reset"}', "frame_unknown_type", 400),
    "later type": ('{"v":1,"type":"handoff.accept"}', "not_supported", 501),
    "wrong field": (sent(text=7), "frame_invalid", 422),
    "hostile id": (sent(client_message_id="a#b"), "frame_invalid", 422),
    "no text": (sent(text=" \n "), "text_empty", 422),
    "9 KB": (sent(text="长" * 3000), "text_too_long", 413),
}


@pytest.mark.parametrize("case", FRAMES)
def test_a_bad_frame_gets_its_code_and_the_connection_stays_usable(world, case):
    frame, code, status = FRAMES[case]
    chat = world.guest().chat()
    chat.send_raw(frame)
    told = chat.error()["data"]
    assert (told["problem"]["code"], told["problem"]["status"]) == (code, status)
    assert told["problem"]["title"]
    chat.send({"type": "ping"})
    chat.wait(lambda: any(each["type"] == "pong" for each in chat.ephemeral), "pong")
    assert chat.events == {}


def test_a_binary_frame_gets_a_code(world):
    """Which one is the gateway's doing: base64 of it is `frame_not_text`, its bytes taken for text no JSON."""
    chat = world.guest().chat()
    chat.send_raw(b"\x00\xff\xfe")
    assert chat.error()["data"]["problem"]["code"] in ("frame_not_text", "frame_not_json")


def test_an_empty_frame_gets_its_code(world):
    chat = world.guest().chat()
    chat.send_raw("")
    assert chat.error()["data"]["problem"]["code"] == "frame_empty"


def test_a_refusal_speaks_the_language_of_the_frame(world):
    chat = world.guest().chat()
    chat.send_raw(sent(text="长" * 3000))
    assert "请" in chat.error()["data"]["problem"]["title"]


# Tickets


def opening(world, ticket):
    """The status a handshake with this ticket is refused with."""
    with pytest.raises(InvalidStatus) as refused:
        world.guest().chat(ticket=ticket)
    return refused.value.response.status_code


def test_a_forged_ticket_opens_nothing(world):
    assert opening(world, "A" * 43) in DENIED


def test_a_used_ticket_opens_nothing(world):
    chat = world.guest().chat()
    ticket = chat.ticket()
    world.guest().chat(ticket=ticket)
    assert opening(world, ticket) in DENIED


def test_an_expired_ticket_opens_nothing(world):
    ticket = world.guest().chat().ticket()
    key = keys.ticket(hashlib.sha256(ticket.encode()).hexdigest())
    item = world.stack.store.get(NO_ACCOUNT, (key,))[key]
    world.stack.store.put_all(NO_ACCOUNT, [(key, {**item, "expires_at": int(time.time() * 1000) - 1})])
    assert opening(world, ticket) in DENIED


# HTTP


@pytest.mark.parametrize("token", ["", "guest.forged", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."])
def test_a_route_without_a_good_token_is_closed(world, token):
    assert world.call("POST", "/v1/chat/tickets", token, {}).status in DENIED
    assert world.call("GET", "/v1/conversations/c1/events", token).status in DENIED


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "body_invalid"),
        (b"not json", 422, "body_invalid"),
        (b"\xff\xfe\x00", 422, "body_invalid"),
        (b"[" * 5000 + b"]" * 5000, 422, "body_invalid"),
        (json.dumps({"account": "a#b"}).encode(), 422, "body_invalid"),
        (json.dumps({"account": "mall", "pad": "x" * 20_000}).encode(), 422, "body_invalid"),
        (json.dumps({"account": "nobody"}).encode(), 404, "account_not_found"),
    ],
)
def test_a_bad_guest_request_gets_a_problem_document(world, body, status, code):
    answer = world.call("POST", "/v1/chat/guests", body=body)
    assert (answer.status, answer.document.get("code")) == (status, code)
    assert answer.document["type"].endswith(code)


def test_bad_paging_gets_a_problem_document(world):
    person = world.guest()
    for query in ("after=abc", "limit=-1", f"after={'9' * 40}"):
        answer = world.call("GET", f"/v1/conversations/c1/events?{query}", person.token)
        assert (answer.status, answer.document["code"]) == (422, "body_invalid")


# Conversations


@pytest.mark.covers("F-647")
def test_resume_and_cancel_on_another_users_conversation_reveal_nothing(world):
    mine = world.guest().chat()
    reply = mine.ask(GREETING)
    stranger = world.guest().chat()
    for frame in (
        {"type": "resume", "conversation_id": mine.conversation, "after_seq": 0},
        {"type": "ping", "conversation_id": mine.conversation},
        {"type": "run.cancel", "conversation_id": mine.conversation, "run_id": reply["run_id"]},
        {"type": "resume", "conversation_id": "c-that-never-was", "after_seq": 0},
    ):
        stranger.send(frame)
        assert stranger.error()["data"]["problem"]["code"] == "conversation_not_found"
    assert stranger.events == {}


@pytest.mark.invariant("I7", "I18")
def test_a_flood_is_slowed_and_every_message_is_either_accepted_or_refused(world):
    chat = world.guest().chat()
    sent_ids = [chat.say(GREETING, client_message_id=f"flood-{n}") for n in range(26)]
    chat.wait(
        lambda: len(accepted(chat)) + len(limited(chat)) >= len(sent_ids), "an answer to each message", 60
    )
    assert accepted(chat) | set(limited(chat)) == set(sent_ids)
    assert accepted(chat).isdisjoint(limited(chat))
    assert limited(chat), "26 messages at once must meet the limit of 20"
    refused, told = next(iter(limited(chat).items()))
    assert told["problem"]["status"] == 429
    assert told["retryable"] is True
    time.sleep(told["retry_after_ms"] / 1000)
    chat.say(GREETING, client_message_id=refused)
    chat.accepted(refused)
    world.settle(chat.conversation)
    assert world.head(chat.conversation)["customer_seq"] >= 21


def accepted(chat):
    return {frame["data"]["client_message_id"] for frame in chat.log() if frame["type"] == "message.accepted"}


def limited(chat):
    return {
        frame["data"]["client_message_id"]: frame["data"]
        for frame in list(chat.ephemeral)
        if frame["type"] == "error" and frame["data"]["problem"]["code"] == "rate_limited"
    }


# Documents and indexes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (" \n", "document_empty"),
        ("broken \ud800", "document_not_utf8"),
        ("x" * (MAX_DOCUMENT_BYTES + 1), "document_too_large"),
    ],
)
def test_a_bad_document_publishes_nothing(world, text, code):
    mall, collections = read_tenant(MALL)
    config = replace(mall, account=f"papers-{code}")
    first = next(iter(collections))
    bad = Document(document_id="bad", title="Bad", text=text)
    with pytest.raises(RefusedError) as refused:
        world.stack.loader.load(config, {**collections, first: [*collections[first], bad]})
    assert refused.value.code == code
    assert world.get(config.account, keys.knowledge_version(config.account, first, 1)) is None
    assert world.get(config.account, keys.config_active(config.account)) is None


@pytest.mark.parametrize(("raw", "code"), [(b"\xff\xfe", "document_not_utf8"), (b"", "document_empty")])
def test_a_file_that_is_no_text_is_refused_by_its_code(tmp_path, raw, code):
    (tmp_path / "bad.md").write_bytes(raw)
    with pytest.raises(RefusedError) as refused:
        read_document(tmp_path / "bad.md")
    assert refused.value.code == code


@pytest.mark.invariant("I12")
@pytest.mark.covers("F-632", "F-634")
def test_a_missing_index_is_a_stated_degradation(world):
    config = replace(read_tenant(MALL)[0], account="bare")
    store = world.stack.store
    put_config(store, config, 1, collections=dict.fromkeys(read_tenant(MALL)[1], True))
    activate_knowledge(store, "bare", dict.fromkeys(read_tenant(MALL)[1], 1))
    activate_config(store, "bare", 1)
    chat = world.guest("bare").chat()
    reply = chat.ask("How long do refunds take?")
    assert (reply["data"]["outcome"], reply["data"]["response_source"]) == ("decline", "stated_failure")
    assert reply["data"]["sources"] == []
    log = world.run_log(reply["run_id"], "bare")
    assert log["p1#030#retrieval.finished"]["degraded"] == ["shopping-policy-kb:unavailable"]
    chat.ending(reply["run_id"])
    world.settle(chat.conversation, "bare")


def test_a_tenant_without_configuration_has_no_guests(world):
    with pytest.raises(ChatError, match="account_not_found"):
        world.guest("nobody")
