"""The model misbehaves over real HTTP: the customer gets an answer, a quote or a stated failure, never nonsense."""

from __future__ import annotations

import json

import pytest

from tests.stack.model_double import completion

QUESTION = "How long do refunds take?"
MARKER = "refunds take"
LATE = "How do I pair the earbuds?"

PROSE = completion("Sure! Refunds are great, ask me anything.")
SILENCE = completion("")
NO_CHOICES = json.dumps({"choices": []}).encode()
TROUBLE = {
    "prose": {"body": PROSE},
    "JSON cut before its first value": {"body": completion('{"rewri', "length")},
    "nothing": {"body": SILENCE},
    "no choices": {"body": NO_CHOICES},
    "an empty body": {"body": b""},
    "429": {"status": 429, "body": b"{}", "retry_after": "1"},
    "500": {"status": 500, "body": b"oops"},
}


def understood_part(**candidate):
    known = {"id": "RETURN_POLICY", "score": 0.9}
    return {"text": QUESTION, "candidates": [candidate or known]}


def understood(**candidate):
    document = {"rewritten": QUESTION, "sub_questions": [understood_part(**candidate)]}
    return completion(json.dumps(document))


@pytest.fixture(scope="module")
def late_turn(started):
    """A turn whose model never phrases in time, begun before the other tests because it takes both its tries' time."""
    world, _ = started
    held = world.double.hold("pair the earbuds", "compose", times=9, keep=True)
    person = world.guest()
    world.people.remove(person)
    with person.chats:
        chat = person.chat()
        ident = chat.say(LATE)
        assert held.arrived.wait(30)
        yield chat, ident
        held.release.set()


@pytest.fixture(autouse=True)
def _late_turn_runs(late_turn):
    """Begin it with the first test of this module."""


@pytest.mark.covers("F-629")
@pytest.mark.parametrize("trouble", TROUBLE)
def test_one_bad_answer_is_asked_again(world, trouble):
    rule = world.double.strike(MARKER, "understand", times=1, **TROUBLE[trouble])
    chat = world.guest().chat()
    reply = chat.ask(QUESTION)
    assert reply["data"]["outcome"] == "answer"
    assert reply["data"]["sources"]
    assert rule.struck == 1
    usage = chat.ending(reply["run_id"])["data"]["usage"]
    assert usage["model_calls"] == 3, "the failed call counts too (I15)"
    world.settle(chat.conversation)


@pytest.mark.parametrize("trouble", TROUBLE)
@pytest.mark.covers("F-094", "F-636")
def test_a_model_that_cannot_understand_is_a_stated_failure(world, trouble):
    rule = world.double.strike(MARKER, "understand", times=2, **TROUBLE[trouble])
    chat = world.guest().chat()
    reply = chat.ask(QUESTION)
    assert (reply["data"]["outcome"], reply["data"]["response_source"]) == ("decline", "stated_failure")
    assert reply["data"]["sources"] == []
    assert rule.struck == 2
    log = world.run_log(reply["run_id"])
    assert log["p1#020#route_resolved"]["outcome"] == "ROUTING_ERROR"
    assert log["-#010#model.finished"]["error"]
    chat.ending(reply["run_id"])
    world.settle(chat.conversation)


def test_json_cut_after_what_matters_is_read(world):
    """F-094's tolerant reading: what is there is used, what is cut off is not invented."""
    whole = json.dumps({"rewritten": QUESTION, "sub_questions": [understood_part()]})
    world.double.strike(MARKER, "understand", body=completion(whole[:-2], "length"))
    chat = world.guest().chat()
    reply = chat.ask(QUESTION)
    assert reply["data"]["outcome"] == "answer"
    assert chat.ending(reply["run_id"])["data"]["usage"]["model_calls"] == 2


def test_json_cut_before_what_matters_is_a_stated_failure(world):
    cut = completion('{"rewritten": "How long do refunds take?", "sub_questions": [{"te', "length")
    world.double.strike(MARKER, "understand", body=cut)
    reply = world.guest().chat().ask(QUESTION)["data"]
    assert (reply["outcome"], reply["response_source"]) == ("decline", "stated_failure")


@pytest.mark.covers("F-630")
@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_model_that_cannot_phrase_leaves_the_quote_of_the_document(world, trouble):
    world.double.strike(MARKER, "compose", times=2, **TROUBLE[trouble])
    chat = world.guest().chat()
    reply = chat.ask(QUESTION)["data"]
    assert (reply["outcome"], reply["response_source"]) == ("answer", "evidence")
    assert [source["document_id"] for source in reply["sources"]] == ["refund-timing-en"]
    assert "3–7" in reply["content"]


@pytest.mark.parametrize(
    "candidate",
    [
        {"id": "GRANT_ADMIN", "score": 0.99},
        {"id": "RETURN_POLICY", "score": 7},
        {"id": "RETURN_POLICY", "score": "NaN"},
        {"id": ["RETURN_POLICY"], "score": 0.9},
    ],
)
def test_an_intent_nobody_configured_or_a_score_that_is_none_grants_nothing(world, candidate):
    world.double.strike(MARKER, "understand", times=1, body=understood(**candidate))
    chat = world.guest().chat()
    reply = chat.ask(QUESTION)
    log = world.run_log(reply["run_id"])
    assert log["-#010#model.finished"]["dropped"]
    assert log["p1#020#route_resolved"]["outcome"] != "ROUTED"
    chat.ending(reply["run_id"])
    world.settle(chat.conversation)


def test_a_reply_that_says_more_than_its_evidence_is_not_sent(world):
    lie = {
        "parts": [{"part_id": "p1", "text": "Refunds take 99 years.", "used": ["p1.E1"], "declined": False}]
    }
    world.double.strike(MARKER, "compose", times=1, body=completion(json.dumps(lie)))
    reply = world.guest().chat().ask(QUESTION)["data"]
    assert "99" not in reply["content"]
    assert reply["response_source"] == "evidence"


def test_a_model_that_is_too_late_leaves_the_quote_before_the_deadline(late_turn, started):
    world, _ = started
    chat, ident = late_turn
    reply = chat.reply_to(ident, timeout=60)
    assert (reply["data"]["outcome"], reply["data"]["response_source"]) == ("answer", "evidence")
    run = world.runs(chat.conversation)[0]
    assert run["ended_at"] < run["deadline"]
    assert world.run_log(reply["run_id"])["-#080#model.finished"]["error"] == "timeout"
    chat.ending(reply["run_id"])
    world.settle(chat.conversation)
