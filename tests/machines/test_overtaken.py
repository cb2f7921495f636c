"""A newer message, a human or a second execution gets ahead of a turn, at every place where that can happen."""

from __future__ import annotations

import json

import pytest

from tests.machines.grammar import grammar_violations
from tests.machines.paths import DUPLICATE, FIXED, KNOWLEDGE, OVERTAKEN
from tests.machines.scripts import phrases, reads
from tests.machines.tenant import ACCOUNT
from turngate.protocol.handing_over import change_hands

QUESTION = "How long do refunds take?"
READ = reads((QUESTION, {"RETURN_POLICY": 0.9}))
SAID = phrases(("p1", "Refunds take 3 working days.", ["p1.E1"]))


def durable(world) -> list[tuple[str, str | None]]:
    return [(f["type"], f.get("run_id")) for f in world.received() if "seq" in f]


@pytest.mark.covers("F-362", "F-363", "F-368")
@pytest.mark.invariant("I1", "I2")
def test_a_turn_overtaken_before_it_begins_does_nothing(story) -> None:
    world = story(READ, SAID)
    world.say("May I return it?")
    world.say(QUESTION)
    assert world.turn().path == DUPLICATE
    assert world.turn().path == KNOWLEDGE
    old, new = world.runs()
    assert [(old.state, new.state)] == [("superseded", "completed")]
    assert [m["text"] for m in json.loads(world.model.calls[0].user)["input"]] == [
        "May I return it?",
        QUESTION,
    ]
    assert world.head.answered_through == 2
    assert durable(world) == [
        ("message.accepted", old.run),
        ("message.accepted", new.run),
        ("run.superseded", old.run),
        ("message.completed", new.run),
        ("run.completed", new.run),
    ]


@pytest.mark.covers("F-365", "F-371")
@pytest.mark.invariant("I1", "I2")
@pytest.mark.parametrize(
    ("state", "calls"),
    [("Understand", 0), ("Govern", 1), ("Retrieve", 1), ("ComposeReply", 1), ("CommitTurn", 2)],
)
def test_an_overtaken_turn_asks_no_further_model_and_says_nothing(story, state, calls) -> None:
    world = story(*[READ, SAID][:calls], READ, SAID)
    world.say("May I return it?")
    world.before[state] = lambda: world.say(QUESTION)
    done = world.turn()
    assert done.status == "SUCCEEDED"
    assert done.path[-3:] == OVERTAKEN
    assert len(world.model.calls) == calls
    assert world.replies == []
    assert world.turn().path == KNOWLEDGE
    assert world.reply["text"] == "Refunds take 3 working days."
    old, _ = world.runs()
    assert grammar_violations(world, old.run) == []


@pytest.mark.covers("F-365")
def test_what_stopped_a_model_state_is_in_its_log(story) -> None:
    world = story(READ, READ, SAID)
    world.say("May I return it?")
    world.before["ComposeReply"] = lambda: world.say(QUESTION)
    world.turn()
    (composed,) = (d for _, step, _, d in world.run_log(world.runs()[0].run) if step == 80)
    assert (composed["error"], composed["tries"]) == ("stopped:newer_customer_message", 0)
    world.turn()


@pytest.mark.invariant("I1")
def test_a_second_execution_of_a_start_ends_as_a_duplicate(story) -> None:
    world = story(READ, SAID)
    world.say(QUESTION)
    name, order = world.starter.started[0]
    seen = []
    world.before["Understand"] = lambda: seen.append(world.execute(name, order))
    done = world.turn()
    assert [each.path for each in seen] == [DUPLICATE]
    assert done.path == KNOWLEDGE
    assert world.execute(name, order).path == DUPLICATE, "also after the end"
    assert len(world.replies) == 1


@pytest.mark.covers("F-002", "F-004", "F-028")
@pytest.mark.invariant("I4")
@pytest.mark.parametrize("state", ["Understand", "CommitTurn"])
def test_a_turn_says_nothing_once_a_human_has_taken_over(story, state) -> None:
    world = story(*([] if state == "Understand" else [READ, SAID]))

    def take_over() -> None:
        change_hands(
            world.store,
            world.clock,
            world.ports.ids,
            account=ACCOUNT,
            conversation=world.conversation,
            change="takeover",
            term=0,
            agent="bob",
        )

    world.say(QUESTION)
    world.before[state] = take_over
    assert world.turn().path[-3:] == OVERTAKEN
    assert world.replies == []
    world.say("hello?")
    assert world.starter.started == [], "a message to a human starts no turn"


@pytest.mark.covers("F-659", "F-379")
@pytest.mark.invariant("I1", "I9")
def test_a_turn_that_the_customer_stopped_says_nothing(story) -> None:
    world = story(READ)

    def stop() -> None:
        run = world.runs()[0].run
        world.send({"type": "run.cancel", "run_id": run, "conversation_id": world.conversation})

    world.say(QUESTION)
    world.before["ComposeReply"] = stop
    assert world.turn().path[-3:] == OVERTAKEN
    assert world.runs()[0].state == "cancelled"
    assert durable(world)[-1][0] == "run.cancelled"
    assert world.head.answered_through == 1, "what was stopped is not answered later"


def test_three_messages_get_one_answer_to_all_of_them(story) -> None:
    texts = ["May I return it?", "The bike, I mean.", QUESTION]
    world = story(READ, SAID)
    for text in texts:
        world.say(text)
    assert [world.turn().path for _ in range(2)] == [DUPLICATE] * 2
    assert world.turn().path == KNOWLEDGE
    assert [m["text"] for m in json.loads(world.model.calls[0].user)["input"]] == texts
    assert len(world.replies) == 1
    assert world.head.answered_through == 3


@pytest.mark.parametrize(
    ("language", "notice"), [("en", "Only the latest was read."), ("zh-CN", "只看了最近的。")]
)
def test_more_than_one_turn_can_read_is_cut_to_the_newest_and_said(story, language, notice) -> None:
    question = {"en": QUESTION, "zh-CN": "退货需要几天?"}[language]
    world = story(reads((question, {"ORDER_QUERY": 0.9})))
    world.say("x" * 8190)
    world.say("y" * 8190)
    world.say(question)
    for _ in range(2):
        world.turn()
    world.turn()
    asked = [m["text"][:1] for m in json.loads(world.model.calls[0].user)["input"]]
    assert asked == ["y", question[:1]]
    assert world.reply["text"].startswith(f"{notice}\n\n")
    assert world.head.answered_through == 3


@pytest.mark.invariant("I1", "I18", "I20")
def test_who_never_stops_typing_is_answered_and_what_came_later_is_answered_next(story) -> None:
    world = story(READ, SAID, READ, SAID)
    for number in range(3):
        world.say(f"May I return it? {number}")
    world.say(QUESTION)
    protected = world.runs()[-1]
    assert protected.protected
    world.before["ComposeReply"] = lambda: [world.say("And the shipping?"), world.say("Are you there?")]
    assert [world.turn().path for _ in range(3)] == [DUPLICATE] * 3
    assert world.turn().path == KNOWLEDGE, "later messages do not overtake it"
    assert world.starter.started == [], "the follow-up is started through runs-to-start"
    world.deliver_starts()
    assert world.turn().path == KNOWLEDGE
    assert [m["text"] for m in json.loads(world.model.calls[2].user)["input"]] == [
        "And the shipping?",
        "Are you there?",
    ]
    assert [reply["seq"] for reply in world.replies] == [4, 7]
    assert world.head.active_run is None
    behind = [f["data"]["behind_run"] for f in world.received() if "behind_run" in f["data"]]
    assert behind == [protected.run] * 2


@pytest.mark.invariant("I8")
def test_a_follow_up_whose_start_is_lost_is_started_by_the_sweeper(story) -> None:
    world = story()
    for _ in range(5):
        world.say("你好")
    world.starts.down = True
    while world.starter.started:
        world.turn()
    world.starts.down = False
    world.clock.advance(11_000)
    assert world.sweep()["findings"][0]["started_again"] == 1
    world.deliver_starts()
    assert world.turn().path == FIXED
    assert len(world.replies) == 2
