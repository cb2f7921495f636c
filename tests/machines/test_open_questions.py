"""A question of ours, and the message that answers it: two turns through the real machine."""

from __future__ import annotations

import json

import pytest

from tests.machines.grammar import grammar_violations
from tests.machines.paths import COMMITTED, FIXED, KNOWLEDGE, STATED
from tests.machines.scripts import phrases, reads
from turngate.domain.pending import LIFETIME_MS

CLOSE = reads(("Find my saddle order", {"PARTS_SEARCH": 0.8, "RETURN_POLICY": 0.78}))
REFUND = phrases(("p1", "Refunds take 3 working days.", ["p1.E1"]))
OPEN = ["BeginTurn", "ChooseStart", "ResumePending", "ChooseResumption"]
ANSWERED = [*OPEN, "Govern", "AnswerParts", "ChooseRoute", "Retrieve", "ComposeReply", *COMMITTED]
UNDERSTOOD = [*OPEN, *KNOWLEDGE[2:]]


def asked(story, *answers):
    world = story(CLOSE, *answers)
    world.say("Find my saddle order")
    world.turn()
    assert world.replies[-1]["text"].endswith("1. Parts search\n2. Returns")
    assert len(world.head.open_pending) == 1
    return world


def answer(world, text: str):
    world.clock.advance(5_000)
    world.say(text)
    return world.turn()


def script(world, *answers) -> None:
    """What the model will say from here on, where it depends on what happened before."""
    world.model._answers.extend(answers)
    world.scripted += len(answers)


def items(world) -> list[str]:
    found = world.store.snapshot().items()
    return sorted(item["state"] for key, item in found if key.sk.startswith("PEND#"))


@pytest.mark.covers("F-031", "F-035", "F-036", "F-102")
def test_the_second_one_is_resolved_without_asking_a_model_which(story) -> None:
    world = asked(story, REFUND)
    done = answer(world, "the second one")
    assert done.path == ANSWERED
    assert world.replies[-1]["text"] == "Refunds take 3 working days."
    assert (world.head.open_pending, items(world)) == ((), ["resumed"])
    run = world.runs()[-1].run
    assert grammar_violations(world, run, "the second one") == []
    (part,) = world.work(run, "-", "route")["parts"]
    assert (part["question"], part["resumed"]["option_id"]) == ("Find my saddle order", "RETURN_POLICY")
    assert part["contract"]["resource_name"] == "sales-kb"


@pytest.mark.covers("F-605")
def test_the_trace_keeps_what_was_said_as_it_was_said(story) -> None:
    rest = reads(("how do I change a tyre?", {"REPAIR_GUIDE": 0.9}))
    both = phrases(
        ("p1", "Refunds take 3 working days.", ["p1.E1"]), ("p2", "Use two tyre levers.", ["p2.E1"])
    )
    world = asked(story, rest, both)
    answer(world, "2, and how do I change a tyre?")
    assert world.work(world.runs()[-1].run, "-", "route")["original"] == "2, and how do I change a tyre?"
    assert world.replies[-1]["text"] == "Refunds take 3 working days.\n\nUse two tyre levers."


@pytest.mark.covers("F-037")
def test_something_new_goes_its_own_way_and_the_question_stays_open(story) -> None:
    tyres = phrases(("p1", "Use two tyre levers.", ["p1.E1"]))
    world = asked(story, reads(("How do I change a tyre?", {"REPAIR_GUIDE": 0.9})), tyres, REFUND)
    assert answer(world, "How do I change a tyre?").path == UNDERSTOOD
    assert (len(world.head.open_pending), items(world)) == (1, ["open"])
    assert answer(world, "the second one").path == ANSWERED


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("How long do refunds for my saddle take?", []),
        ("How long do refunds take?", ["open"]),
        ("How long do the first refunds take?", ["open"]),
    ],
)
def test_a_fuller_question_about_the_same_thing_settles_it_and_another_does_not(story, text, left) -> None:
    world = asked(story, reads((text, {"RETURN_POLICY": 0.9})), REFUND)
    assert answer(world, text).path == UNDERSTOOD
    assert items(world) == (left or ["resumed"])
    assert len(world.head.open_pending) == len(left)


def test_a_certain_rule_replies_and_leaves_the_question_open(story) -> None:
    world = asked(story, REFUND)
    thanks = answer(world, "thank you")
    assert thanks.path == [*OPEN, *COMMITTED]
    assert world.replies[-1]["text"] == "You are welcome."
    assert len(world.head.open_pending) == 1
    assert answer(world, "2").path == ANSWERED


@pytest.mark.covers("F-037")
def test_never_mind_closes_it_and_the_next_turn_is_an_ordinary_one(story) -> None:
    world = asked(story, reads(("How long do refunds take?", {"RETURN_POLICY": 0.9})), REFUND)
    answer(world, "never mind")
    assert world.replies[-1]["text"] == "All right, I have dropped that."
    assert (world.head.open_pending, items(world)) == ((), ["cancelled"])
    assert answer(world, "How long do refunds take?").path == KNOWLEDGE


@pytest.mark.covers("F-042")
def test_an_unclear_answer_is_asked_again(story) -> None:
    world = asked(story, REFUND)
    answer(world, "this one")
    assert world.replies[-1]["outcome"] == "ask_for_clarification"
    assert world.replies[-1]["text"].endswith("1. Parts search\n2. Returns")
    assert (len(world.head.open_pending), items(world)) == (1, ["open", "replaced"])
    assert answer(world, "the last one").path == ANSWERED
    assert items(world) == ["replaced", "resumed"]


@pytest.mark.covers("F-041", "F-109")
@pytest.mark.parametrize(("option", "believed"), [("RETURN_POLICY", True), ("ORDER_QUERY", False)])
def test_what_rules_cannot_decide_the_model_may_choose_among_the_offered_only(
    story, option, believed
) -> None:
    world = asked(story)
    (stored,) = (item for key, item in world.store.snapshot().items() if key.sk.startswith("PEND#"))
    token = json.loads(stored["item"])["resume_token"]
    proposal = {"resume_token": token, "option_id": option, "value": ""}
    script(world, {"rewritten": "", "sub_questions": [], "reply": proposal}, *([REFUND] if believed else []))
    answer(world, "the thing where I send it back to you people")
    trace = world.work(world.runs()[-1].run, "-", "route")
    assert items(world) == (["resumed"] if believed else ["open", "replaced"])
    if believed:
        assert trace["parts"][0]["resumed"]["by"] == "model"
    else:
        assert (trace["refused_reply"], trace["parts"][0]["outcome"]) == (
            "option_not_offered",
            "NEED_CLARIFICATION",
        )
    assert json.loads(world.model.calls[1].user)["waiting"][0]["options"] == [
        {"option_id": "PARTS_SEARCH", "name": "Parts search"},
        {"option_id": "RETURN_POLICY", "name": "Returns"},
    ]


def test_an_expired_question_is_closed_by_the_next_commit_and_answers_nothing(story) -> None:
    world = asked(story, reads(("the second one", {"RETURN_POLICY": 0.9})))
    world.clock.advance(LIFETIME_MS)
    done = answer(world, "the second one")
    assert done.path == STATED
    assert world.replies[-1]["outcome"] == "ask_for_clarification"
    assert (world.head.open_pending, items(world)) == ((), ["expired"])


def test_a_fixed_reply_comes_before_an_open_question(story) -> None:
    world = asked(story)
    world.clock.advance(5_000)
    world.say("the second one", message_type="form")
    assert world.turn().path == FIXED
    assert len(world.head.open_pending) == 1


@pytest.mark.invariant("I1", "I2")
def test_a_superseded_turn_neither_answers_nor_opens_a_question(story) -> None:
    world = asked(story, REFUND)
    world.clock.advance(5_000)
    world.say("never mind")
    world.before["CommitTurn"] = lambda: world.say("the second one")
    assert world.turn().path[-1] == "Superseded"
    assert (len(world.head.open_pending), items(world)) == (1, ["open"])
    assert world.turn().path[-1] == "Replied"
    assert items(world) == ["resumed"]  # both messages are one input, and the last answer in it stands


@pytest.mark.invariant("I1", "I10")
def test_a_commit_whose_response_was_lost_opens_one_question(story) -> None:
    world = story(CLOSE)
    world.lost["CommitTurn"] = 1
    world.say("Find my saddle order")
    assert world.turn().path[-1] == "Replied"
    assert (len(world.head.open_pending), items(world)) == (1, ["open"])


@pytest.mark.parametrize(
    ("text", "asked_again"),
    [("not returns", "1. Parts search\n2. Returns"), ("不是退货", "1. 配件查询\n2. 退货规则")],
)
def test_what_the_customer_denies_is_not_chosen_by_anybody(story, text, asked_again) -> None:
    world = asked(story)
    (stored,) = (item for key, item in world.store.snapshot().items() if key.sk.startswith("PEND#"))
    proposal = {
        "resume_token": json.loads(stored["item"])["resume_token"],
        "option_id": "RETURN_POLICY",
        "value": "",
    }
    script(world, {"rewritten": "", "sub_questions": [], "reply": proposal})
    assert answer(world, text).path == [*OPEN, *STATED[2:]]
    trace = world.work(world.runs()[-1].run, "-", "route")
    assert (trace["refused_reply"], trace["parts"][0]["outcome"]) == ("option_denied", "NEED_CLARIFICATION")
    assert items(world) == ["open", "replaced"]
    assert world.replies[-1]["text"].endswith(asked_again)


def test_both_are_answered_in_two_parts(story) -> None:
    world = asked(story, phrases(("p2", "Refunds take 3 working days.", ["p2.E1"])))
    path = answer(world, "both, please").path
    assert {"Understand", "AlreadyAnswered", "Retrieve"} & set(path) == {"AlreadyAnswered", "Retrieve"}
    trace = world.work(world.runs()[-1].run, "-", "route")
    assert [part["resumed"]["option_id"] for part in trace["parts"]] == ["PARTS_SEARCH", "RETURN_POLICY"]
    assert "Refunds take 3 working days." in world.replies[-1]["text"]
    assert items(world) == ["resumed"]


def test_a_choice_and_a_good_bye_need_no_model(story) -> None:
    world = asked(story, REFUND)
    world.clock.advance(5_000)
    world.say("the second one")
    world.clock.advance(500)
    world.say("bye")
    assert world.turn().path[-1] == "Duplicate"  # the first message's run was superseded before it began
    assert world.turn().path == ANSWERED
    assert items(world) == ["resumed"]


def test_who_does_not_know_is_asked_once_more_and_then_let_go(story) -> None:
    world = asked(story)
    answer(world, "I don't know")
    assert "1. Parts search\n2. Returns\nIf you are not sure" in world.replies[-1]["text"]
    answer(world, "no idea")
    assert world.replies[-1]["text"].startswith("If you are not sure, just tell me")
    assert (world.head.open_pending, items(world)) == ((), ["declined", "replaced"])
    answer(world, "ok")
    assert world.replies[-1]["text"] == "Just tell me if you need anything."


@pytest.mark.covers("F-094")
def test_a_model_that_is_down_is_said_to_be_down_while_a_question_is_open(story) -> None:
    world = asked(story, "no object", "no object")
    answer(world, "will it rain?")
    trace = world.work(world.runs()[-1].run, "-", "route")
    assert trace["parts"][0]["outcome"] == "ROUTING_ERROR"
    assert items(world) == ["open"]


def test_two_questions_asked_together_are_told_apart_by_their_numbers(story) -> None:
    close = {"PARTS_SEARCH": 0.8, "RETURN_POLICY": 0.78}
    world = story(reads(("Find my saddle order", close), ("Find my bell order", close)), REFUND)
    world.say("Find my saddle order and find my bell order")
    world.turn()
    assert "1. Parts search\n2. Returns" in world.replies[-1]["text"]
    assert "3. Parts search\n4. Returns" in world.replies[-1]["text"]
    assert answer(world, "4").path == ANSWERED
    (part,) = world.work(world.runs()[-1].run, "-", "route")["parts"]
    assert part["question"] == "Find my bell order"
    assert items(world) == ["open", "resumed"]


def test_a_number_is_answered_in_the_language_of_the_dialogue(story) -> None:
    """The client says nothing about its language, and the configuration's is Chinese."""
    world = asked(story)
    answer(world, "3")
    assert world.replies[-1]["text"].startswith("There is no such option.")


def test_the_other_topic_keeps_its_question(story) -> None:
    world = asked(story, reads(("Which bells are there?", {"PARTS_SEARCH": 0.9})), REFUND)
    answer(world, "Which bells are there?")
    assert items(world) == ["open"]
    assert answer(world, "2").path == ANSWERED
    (part,) = world.work(world.runs()[-1].run, "-", "route")["parts"]
    assert part["question"] == "Find my saddle order"
