"""Something of ours breaks: the failure is stated, exactly once, by the turn itself or at the latest by the sweeper."""

from __future__ import annotations

import pytest

from tests.machines.grammar import grammar_violations
from tests.machines.paths import FAILED, KNOWLEDGE, RULED
from tests.machines.scripts import phrases, reads
from tests.machines.tenant import ACCOUNT
from turngate.domain import keys
from turngate.domain.problems import PROBLEMS
from turngate.protocol.retrying import ATTEMPTS

QUESTION = "How long do refunds take?"
READ = reads((QUESTION, {"RETURN_POLICY": 0.9}))
SAID = phrases(("p1", "Refunds take 3 working days.", ["p1.E1"]))
ALL_TRIES = 3
"""Of a state: one and two retries."""


def ended(world) -> dict:
    return next(f["data"] for f in world.received() if f["type"] in ("run.failed", "run.timed_out"))


@pytest.mark.invariant("I1", "I8", "I16")
@pytest.mark.parametrize("state", ["Understand", "Govern", "Retrieve", "ComposeReply", "CommitTurn"])
@pytest.mark.parametrize(
    ("error", "retries"), [("ContentionError", 2), ("Lambda.Unknown", 2), ("KeyError", 0)]
)
def test_a_state_that_keeps_failing_ends_in_a_stated_failure(story, state, error, retries) -> None:
    answers = {"Retrieve": [READ], "ComposeReply": [READ], "Govern": [READ], "CommitTurn": [READ, SAID]}
    world = story(*answers.get(state, []))
    world.faults[state].extend([error] * (retries + 1))
    world.say(QUESTION)
    done = world.turn()
    assert done.status == "SUCCEEDED"
    assert done.path[-4:] == FAILED
    assert done.retries == [(state, error)] * retries
    run = world.runs()[0]
    assert (run.state, world.reply["response_source"]) == ("failed", "stated_failure")
    assert ended(world)["problem"] == "turn_failed"
    assert grammar_violations(world, run.run) == []


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ({"language": "en"}, PROBLEMS["turn_failed"].en),
        ({"language": "zh-CN"}, PROBLEMS["turn_failed"].zh),
        ({}, f"{PROBLEMS['turn_failed'].zh}\n{PROBLEMS['turn_failed'].en}"),
    ],
)
def test_a_failure_is_stated_in_the_language_of_the_conversation(story, declared, text) -> None:
    world = story()
    world.faults["Understand"].append("KeyError")
    world.say(QUESTION, **declared)
    world.turn()
    assert world.reply["text"] == text


@pytest.mark.invariant("I8")
def test_a_begin_that_fails_before_the_claim_leaves_the_run_to_be_started_again(story) -> None:
    world = story(READ, SAID)
    world.store.drop["begin"] = ALL_TRIES
    world.say(QUESTION)
    done = world.turn()
    assert (done.status, done.path) == ("SUCCEEDED", ["BeginTurn", "FailTurn", "ChooseEnding", "Superseded"])
    assert world.runs()[0].state == "queued"
    assert world.replies == []
    world.clock.advance(11_000)
    assert world.sweep()["findings"][0]["started_again"] == 1
    world.deliver_starts()
    assert world.turn().path == KNOWLEDGE
    assert world.reply["text"] == "Refunds take 3 working days."


@pytest.mark.invariant("I8")
def test_a_begin_that_fails_after_the_claim_is_a_stated_failure(story) -> None:
    world = story()
    world.store.drop["put_all"] = ALL_TRIES
    world.say(QUESTION)
    done = world.turn()
    assert done.path == ["BeginTurn", *FAILED]
    assert done.retries == [("BeginTurn", "TransientError")] * 2
    assert world.runs()[0].state == "failed"


def test_a_begin_that_is_repeated_after_its_claim_goes_on(story) -> None:
    world = story(READ, SAID)
    world.store.lose["begin"] = 1
    world.say(QUESTION)
    assert world.turn().path == KNOWLEDGE


def test_an_account_without_a_configuration_is_a_failure_that_a_person_must_see(story) -> None:
    world = story()
    world.say(QUESTION)
    world.store._items.pop(keys.config_version(ACCOUNT, 1))
    done = world.turn()
    assert done.path == ["BeginTurn", *FAILED]
    assert done.retries == [], "trying again would not help"


@pytest.mark.invariant("I1", "I8", "I9")
def test_a_commit_that_never_gets_through_is_stated_by_fail_turn(story) -> None:
    world = story(READ, SAID)
    world.store.drop["finish"] = ALL_TRIES * ATTEMPTS
    world.say(QUESTION)
    done = world.turn()
    assert done.retries == [("CommitTurn", "ContentionError")] * 2
    assert done.path == [*KNOWLEDGE[: KNOWLEDGE.index("CommitTurn") + 1], *FAILED]
    assert world.runs()[0].state == "failed"
    assert len(world.replies) == 1


@pytest.mark.invariant("I1", "I8", "I9")
def test_when_fail_turn_fails_too_the_sweeper_states_the_timeout(story) -> None:
    world = story(READ, SAID)
    world.store.drop["finish"] = 10_000
    world.say(QUESTION, language="en")
    done = world.turn()
    assert (done.status, done.error, done.path[-1]) == ("FAILED", "ContentionError", "FailTurn")
    assert world.replies == []
    world.store.drop["finish"] = 0
    world.clock.advance(80_000)
    assert world.sweep()["findings"][0]["timed_out"] == 1
    run = world.runs()[0]
    assert (run.state, world.reply["text"]) == ("timed_out", PROBLEMS["turn_timed_out"].en)
    assert ended(world)["problem"] == "turn_timed_out"
    assert grammar_violations(world, run.run) == []
    name, order = "late", {"account": ACCOUNT, "conversation": world.conversation, "run": run.run}
    assert world.execute(name, order).path[-1] == "Duplicate"
    assert len(world.replies) == 1


@pytest.mark.invariant("I1")
def test_a_commit_whose_response_was_lost_is_announced_and_not_repeated(story) -> None:
    world = story(READ, SAID)
    world.store.lose["finish"] = 1
    world.say(QUESTION)
    assert world.turn().path == KNOWLEDGE
    assert [f["type"] for f in world.received() if "seq" in f].count("message.completed") == 1


@pytest.mark.invariant("I8")
def test_a_turn_that_was_never_started_is_started_by_the_sweeper(story) -> None:
    world = story()
    world.starter.down = True
    world.say("你好")
    world.starter.down = False
    world.clock.advance(11_000)
    world.sweep()
    world.deliver_starts()
    world.turn()
    assert world.reply["text"] == "您好！"


def test_an_order_of_a_newer_release_is_refused_loudly(story) -> None:
    world = story()
    world.say(QUESTION)
    name, order = world.starter.started.pop()
    done = world.execute(name, {**order, "schema_version": 2})
    assert (done.status, done.path) == ("FAILED", ["BeginTurn", "FailTurn"])
    assert done.error == "MalformedError"
    world.clock.advance(80_000)
    world.sweep()
    assert world.runs()[0].state == "timed_out"


@pytest.mark.invariant("I15")
def test_retries_of_states_are_paid_from_one_budget(story) -> None:
    world = story(READ, SAID)
    world.faults["Understand"].extend(["Lambda.Unknown"] * 2)
    world.say(QUESTION)
    assert world.turn().path[: len(RULED)] == RULED
    budget = world.store.snapshot()[keys.budget(ACCOUNT, world.runs()[0].run)]
    assert budget["model_calls"] == 2
