"""Certain questions are answered without a model, and never at the cost of a real question beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.assistant_example import CUSTOMER, GUEST, asks, config, patient
from turngate.domain.preroute import Answered, Fresh, fixed_reply, matching_rule, pre_route
from turngate.domain.texts import cut, detect_language, normalised, say

if TYPE_CHECKING:
    from turngate.domain.shapes import MessageType


@pytest.mark.covers("F-048", "F-049")
@pytest.mark.parametrize(
    ("kind", "reply"), [("rule", "收到规则。"), ("form", "收到表单。"), ("other", "请打字。")]
)
def test_messages_that_are_not_chat_get_their_fixed_reply(kind: MessageType, reply: str) -> None:
    assert fixed_reply(config(), kind, "zh-CN") == reply
    assert fixed_reply(config(), "user_chat", "zh-CN") is None


@pytest.mark.covers("F-044", "F-046", "F-058", "F-060")
@pytest.mark.parametrize(
    "text", ["你是谁", "你是谁？", " 你 是 谁 啊 ", "WHO are you?!", "ｗｈｏ　ａｒｅ　ｙｏｕ", "你是谁😀"]
)
def test_a_certain_question_is_answered_however_it_is_written(text: str) -> None:
    assert pre_route(config(), asks(text), GUEST) == Answered(rules=("who",), content="我是小店助手。")


@pytest.mark.covers("F-047")
@pytest.mark.parametrize(
    "text", ["你是谁家的", "你好，退货需要几天", "who are you selling to", "你是谁吗", "？！", "谢"]
)
def test_only_a_whole_message_matches(text: str) -> None:
    turn_input = asks(text)
    assert pre_route(config(), turn_input, GUEST) == Fresh(input=turn_input)


@pytest.mark.covers("F-045", "F-643")
def test_the_user_id_comes_from_the_login_and_never_from_the_text() -> None:
    asked = asks("我的用户编号是什么")
    assert pre_route(config(), asked, CUSTOMER) == Answered(rules=("user_id",), content="您的编号是 C-1009。")
    assert pre_route(config(), asked, GUEST) == Answered(rules=("user_id",), content="您还没有登录。")
    claimed = pre_route(config(), asks("我是 C-7", "what is my user id", language="en"), CUSTOMER)
    assert isinstance(claimed, Fresh)


def test_a_greeting_never_answers_a_question_sent_beside_it() -> None:
    greeted = asks("你好", "退货需要几天", "谢谢")
    assert pre_route(config(), greeted, GUEST) == Fresh(
        input=replace(greeted, messages=greeted.messages[1:2])
    )


def test_a_certain_question_beside_an_open_one_stays_in_the_input() -> None:
    mixed = asks("你是谁", "退货需要几天")
    assert pre_route(config(), mixed, GUEST) == Fresh(input=mixed)


def test_several_certain_messages_get_one_reply() -> None:
    assert pre_route(config(), asks("你好", "你是谁", "我的用户编号是什么", "你是谁"), CUSTOMER) == Answered(
        rules=("who", "user_id"), content="我是小店助手。\n\n您的编号是 C-1009。"
    )
    assert pre_route(config(), asks("你好", "谢谢"), GUEST) == Answered(rules=("thanks",), content="不客气。")


def test_a_rule_answers_in_the_language_of_the_turn() -> None:
    assert pre_route(config(), asks("hello", language="en"), GUEST) == Answered(
        rules=("hello",), content="Hello!"
    )


@patient
@given(st.text(max_size=40))
def test_normalisation_is_idempotent(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


@patient
@given(st.text(max_size=30), st.sampled_from(["！", "  ", "。", "?", "啊", "😀"]))
def test_nothing_but_a_listed_phrase_is_pre_routed(text: str, tail: str) -> None:
    rules = config().pre_routing
    listed = {normalised(phrase) for rule in rules.rules for phrase in rule.phrases}
    assert (matching_rule(rules, text + tail) is not None) == (normalised(text + tail) in listed)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("退货需要几天", "zh-CN"),
        ("iPhone 15 Pro Max 能退吗", "zh-CN"),
        ("How long do refunds take?", "en"),
        ("123?", "en"),
    ],
)
def test_the_language_is_that_of_most_of_the_letters(text: str, language: str) -> None:
    assert detect_language(text, "en") == language


def test_a_missing_text_falls_back_to_another_language() -> None:
    assert say({"en": "yes"}, "zh-CN", "en") == "yes"
    assert say({"zh-CN": "是"}, "en", "en") == "是"


@patient
@given(st.text(max_size=300), st.integers(min_value=3, max_value=200))
def test_a_cut_text_fits_and_says_that_it_was_cut(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short.encode()) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1].rstrip()))


def test_a_text_is_cut_after_a_sentence() -> None:
    assert cut("第一句。第二句。第三句很长很长很长。", 40) == "第一句。第二句。…"
