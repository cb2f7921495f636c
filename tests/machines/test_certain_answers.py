"""Messages that need no model: other message types, greetings, questions about oneself."""

from __future__ import annotations

import json

import pytest

from tests.machines.grammar import grammar_violations
from tests.machines.paths import FIXED, KNOWLEDGE
from tests.machines.scripts import phrases, reads
from tests.machines.tenant import GUEST

RETURNS = (
    reads(("May I return it?", {"RETURN_POLICY": 0.9})),
    phrases(("p1", "You may return a bike within 7 days.", ["p1.E1"])),
)


@pytest.mark.covers("F-048", "F-049")
@pytest.mark.parametrize(
    ("message_type", "text", "reply"),
    [
        ("rule", "规则", "收到规则。"),
        ("form", "name=Ann", "Form received."),
        ("other", "[图片]", "请打字。"),
    ],
)
def test_a_message_that_is_no_chat_gets_the_reply_of_its_type(story, message_type, text, reply) -> None:
    world = story()
    world.say(text, message_type=message_type)
    assert world.turn().path == FIXED
    assert (world.reply["text"], world.reply["response_source"]) == (reply, "fixed")
    assert world.model.calls == []
    assert grammar_violations(world, world.runs()[0].run, text, reply) == []


@pytest.mark.covers("F-048")
def test_a_form_sent_after_a_question_does_not_swallow_the_question(story) -> None:
    world = story(*RETURNS)
    world.say("May I return it?")
    world.say("name=Ann", message_type="form")
    world.turn()
    assert world.turn().path == KNOWLEDGE
    assert world.reply["text"] == "You may return a bike within 7 days."
    assert "name=Ann" not in world.model.calls[0].user


def test_a_form_behind_a_protected_run_gets_the_reply_of_its_type(story) -> None:
    world = story()
    for _ in range(4):
        world.say("你好")
    world.say("name=Ann", message_type="form")
    while world.starter.started:
        world.turn()
    world.deliver_starts()
    assert world.turn().path == FIXED
    assert [reply["text"] for reply in world.replies] == ["您好！", "Form received."]


@pytest.mark.covers("F-044", "F-046", "F-058", "F-060")
@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("你好", "您好！"),
        ("Hello!", "Hello!"),
        ("谢谢", "不客气。"),
        ("who are you", "I am the shop's assistant."),
    ],
)
def test_a_greeting_or_a_question_about_us_needs_no_model(story, text, reply) -> None:
    world = story()
    world.say(text)
    done = world.turn()
    assert done.path == FIXED
    assert world.reply["text"] == reply
    assert [f["type"] for f in world.received()] == ["message.accepted", "message.completed", "run.completed"]
    kinds = [kind for _, _, kind, _ in world.run_log(world.runs()[0].run)]
    assert kinds == ["run.running", "route_resolved", "run.completed"]


def test_a_fixed_reply_costs_what_the_budget_allows(story) -> None:
    """BUDGETS: at most 6 states, 2 Lambdas, no model call."""
    world = story()
    world.say("你好")
    assert len(world.turn().path) == 6
    spent = {user: n for user, n in world.store.requests.items() if user not in ("setup", "connect", "push")}
    assert spent == {"accept": 2, "BeginTurn": 5, "CommitTurn": 2}


@pytest.mark.covers("F-044")
def test_a_greeting_before_a_question_is_left_out_and_the_question_answered(story) -> None:
    world = story(*RETURNS)
    world.say("hello")
    world.say("May I return it?")
    world.turn()
    assert world.turn().path == KNOWLEDGE
    assert [m["text"] for m in json.loads(world.model.calls[0].user)["input"]] == ["May I return it?"]


@pytest.mark.covers("F-045")
def test_a_customer_is_told_the_id_of_the_login_and_never_one_from_the_message(story) -> None:
    world = story()
    world.say("what is my user id")
    assert world.turn().path == FIXED
    assert world.reply["text"] == "Your id is C-1009."


@pytest.mark.covers("F-045")
def test_a_guest_is_told_that_nobody_is_signed_in(story) -> None:
    world = story()
    world.say("我的用户编号是什么", who=GUEST)
    assert world.turn().path == FIXED
    assert world.reply["text"] == "您还没有登录。"


@pytest.mark.parametrize(
    ("text", "fields", "reply"),
    [
        ("👍👍", {"message_type": "other", "language": "en"}, "Please type."),
        ("name=Ann", {"message_type": "form", "language": "zh-CN"}, "收到表单。"),
        ("name=Ann", {"message_type": "form"}, "Form received."),
        ("你好", {"language": "en"}, "您好！"),
        ("hello", {"language": "zh-CN"}, "Hello!"),
    ],
)
def test_a_customer_is_answered_as_they_write_and_otherwise_as_their_client_asks(
    story, text, fields, reply
) -> None:
    world = story()
    world.say(text, **fields)
    world.turn()
    assert world.reply["text"] == reply
