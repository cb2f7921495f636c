"""One message that asks several things."""

from __future__ import annotations

import pytest

from tests.machines.grammar import grammar_violations
from tests.machines.paths import COMMITTED, RULED
from tests.machines.scripts import phrases, reads

COMPOUND = "Where is my order 7, and how long do refunds take?"
SUBS = (("Where is my order 7?", {"ORDER_QUERY": 0.9}), ("How long do refunds take?", {"RETURN_POLICY": 0.9}))


@pytest.mark.covers("F-062", "F-063", "F-066", "F-067", "F-113")
@pytest.mark.invariant("I16")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_known_part_is_answered_first_and_the_refused_one_is_named(story, order) -> None:
    subs = tuple(SUBS[n] for n in order)
    known = f"p{order.index(1) + 1}"
    world = story(reads(*subs), phrases((known, "Refunds take 3 working days.", [f"{known}.E1"])))
    world.say(COMPOUND)
    done = world.turn()
    branches = [["ChooseRoute", "AlreadyAnswered"], ["ChooseRoute", "Retrieve"]]
    expected = [state for n in order for state in branches[n]]
    assert done.path == [*RULED, *expected, "ComposeReply", *COMMITTED]
    assert world.reply["text"] == (
        "Refunds take 3 working days.\n\nAbout “Where is my order 7?”: Not connected yet."
    )
    assert world.reply["outcome"] == "answer"
    assert grammar_violations(world, world.runs()[0].run, COMPOUND, world.reply["text"]) == []


@pytest.mark.covers("F-063")
def test_the_seeds_compound_question_is_half_answered_and_half_refused(story) -> None:
    world = story(
        reads(("查一下我的订单", {"ORDER_QUERY": 0.9}), ("怎么退货", {"RETURN_POLICY": 0.9})),
        phrases(("p2", "收到车后 7 天内可以退货。", ["p2.E1"])),
    )
    world.say("查一下我的订单，再告诉我怎么退货")
    world.turn()
    assert world.reply["text"] == "收到车后 7 天内可以退货。\n\n关于“查一下我的订单”：还没有接通。"


def test_two_parts_with_evidence_are_phrased_by_one_call(story) -> None:
    world = story(
        reads(
            ("How long do refunds take?", {"RETURN_POLICY": 0.9}),
            ("How do I change a tyre?", {"REPAIR_GUIDE": 0.9}),
        ),
        phrases(
            ("p1", "Refunds take 3 working days.", ["p1.E1"]),
            ("p2", "Use two tyre levers.", ["p2.E1"]),
        ),
    )
    world.say("How long do refunds take? How do I change a tyre?")
    world.turn()
    assert world.reply["text"] == "Refunds take 3 working days.\n\nUse two tyre levers."
    completed = next(f for f in world.received() if f["type"] == "message.completed")
    assert [s["document_id"] for s in completed["data"]["sources"]] == ["returns-en", "tyres-en"]


def test_a_part_that_the_model_forgot_is_quoted(story) -> None:
    world = story(
        reads(
            ("How long do refunds take?", {"RETURN_POLICY": 0.9}),
            ("How do I change a tyre?", {"REPAIR_GUIDE": 0.9}),
        ),
        phrases(("p1", "Refunds take 3 working days.", ["p1.E1"])),
    )
    world.say("How long do refunds take? How do I change a tyre?")
    world.turn()
    assert "“Changing a tyre”" in world.reply["text"]


@pytest.mark.covers("F-066")
def test_six_parts_are_the_most_and_the_surplus_is_counted(story) -> None:
    subs = [(f"Where is my {thing} order?", {"ORDER_QUERY": 0.9}) for thing in "abcdefgh"]
    world = story(reads(*subs))
    world.say(" ".join(question for question, _ in subs))
    world.turn()
    log = world.run_log(world.runs()[0].run)
    assert [part for part, step, _, _ in log if step == 20] == [f"p{n}" for n in range(1, 7)]
    (understood,) = (data for _, step, _, data in log if step == 10)
    assert understood["dropped"] == {"surplus_sub_question": 2}
    assert world.reply["text"].count("Not connected yet.") == 1, "said once, for all six"
