"""Nothing of a model's answer is believed before it was checked, and every drop is counted by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.assistant_example import asks, governed, patient
from turngate.domain.figures import codes_in, negates, numbers_in
from turngate.domain.shapes import HistoryMessage, SubQuestion, Understanding
from turngate.domain.understanding import (
    MAX_SUB_QUESTIONS,
    Reading,
    failed_understanding,
    read_understanding,
    understanding_request,
)

KNOWN = {intent.id for intent in governed().intents}


def sub(text: str, *candidates: Any) -> dict[str, Any]:
    return {"text": text, "candidates": list(candidates)}


def candidate(identity: str, score: Any) -> dict[str, Any]:
    return {"id": identity, "score": score}


def read(text: str, *subs: Any, history: tuple[HistoryMessage, ...] = (), rewritten: Any = "改写") -> Reading:
    answer = {"rewritten": rewritten, "sub_questions": list(subs)}
    return read_understanding(answer, governed(), asks(text), history)


def scores(reading: Reading, index: int = 0) -> list[tuple[str, float]]:
    return [(c.id, c.score) for c in reading.understanding.sub_questions[index].candidates]


@pytest.mark.covers("F-061", "F-070")
def test_the_request_shows_input_history_and_enabled_intents_as_data() -> None:
    history = (
        HistoryMessage(role="customer", text="买了头盔"),
        HistoryMessage(role="assistant", text="好的"),
    )
    request = understanding_request(asks("能退吗", "谢谢"), history, governed())
    document = json.loads(request.user)
    assert list(document) == ["task", "input", "history", "language", "intents"]
    assert document["task"] == "understand"
    assert document["input"] == [{"message_seq": 1, "text": "能退吗"}, {"message_seq": 2, "text": "谢谢"}]
    assert document["history"] == [
        {"role": "customer", "text": "买了头盔"},
        {"role": "assistant", "text": "好的"},
    ]
    assert document["language"] == "zh-CN"
    assert document["intents"][0] == {
        "id": "RETURN_POLICY",
        "name": "退货规则",
        "description": "退货规则",
        "examples": ["退货规则"],
    }
    assert "OLD_SALE" not in request.user
    assert request.schema_name == "understanding"


@pytest.mark.covers("F-064", "F-082")
def test_the_model_sees_nothing_of_the_contract() -> None:
    request = understanding_request(asks("能退吗"), (), governed())
    shown = request.system + request.user + json.dumps(request.schema)
    for entry in governed().contract:
        assert entry.resource_name not in shown


@pytest.mark.covers("F-062", "F-074", "F-081")
def test_a_compound_question_is_read_as_its_parts() -> None:
    reading = read(
        "查一下我的订单，再告诉我怎么退货",
        sub("查询我的订单", candidate("ORDER_QUERY", 0.93), candidate("PARTS_SEARCH", 0.42)),
        sub("退货政策是什么", candidate("RETURN_POLICY", 0.9)),
        rewritten=" 查询订单并说明退货政策 ",
    )
    assert [s.text for s in reading.understanding.sub_questions] == ["查询我的订单", "退货政策是什么"]
    assert scores(reading) == [("ORDER_QUERY", 0.93), ("PARTS_SEARCH", 0.42)]
    assert reading.understanding.rewritten == "查询订单并说明退货政策"
    assert (reading.dropped, reading.drift) == ({}, ())


@pytest.mark.covers("F-075")
def test_unknown_and_disabled_intents_are_dropped_and_counted() -> None:
    reading = read(
        "退货",
        sub("退货", candidate("REFUND_ALL", 1), candidate("OLD_SALE", 0.9), candidate("RETURN_POLICY", 0.6)),
    )
    assert scores(reading) == [("RETURN_POLICY", 0.6)]
    assert reading.dropped == {"unknown_intent": 2}


def test_only_unknown_intents_leave_a_question_that_nothing_claims() -> None:
    reading = read("退货", sub("退货", candidate("REFUND_ALL", 1)))
    assert reading.understanding.status == "OK"
    assert scores(reading) == []


@pytest.mark.parametrize(
    "score", [-0.1, 1.01, float("nan"), float("inf"), "0.9", "NaN", True, None, [1], 10**400]
)
def test_a_score_that_is_no_score_is_dropped(score: Any) -> None:
    reading = read("退货", sub("退货", candidate("ORDER_QUERY", score), candidate("RETURN_POLICY", 0.6)))
    assert scores(reading) == [("RETURN_POLICY", 0.6)]
    assert reading.dropped == {"bad_score": 1}


@pytest.mark.covers("F-075", "F-082")
@pytest.mark.parametrize(
    ("offered", "discarded"),
    [
        ([candidate("RETURN_POLICY", "high")], "bad_score:RETURN_POLICY='high'"),
        ([candidate("RETURN_POLICY", 10**5000)], "bad_score:RETURN_POLICY=int"),
        ([candidate("RETURN_POLICY", [[0.9]])], "bad_score:RETURN_POLICY=list"),
        ([None], "bad_candidate"),
        (None, "bad_candidate"),
    ],
)
def test_malformed_candidates_alone_leave_a_question_that_nothing_claims(
    offered: Any, discarded: str
) -> None:
    understanding = read("退货", {"text": "退货", "candidates": offered}).understanding
    expected = read("退货", sub("退货")).understanding
    assert understanding == replace(expected, discarded=(discarded,))


def test_one_wording_is_one_sub_question_with_the_best_of_all_its_candidates() -> None:
    reading = read(
        "退货，修车",
        sub("退货？"),
        sub("修车", candidate("REPAIR_GUIDE", 0.9)),
        sub("退货", candidate("RETURN_POLICY", 0.6)),
        sub(" 退货。", candidate("RETURN_POLICY", 0.8), candidate("ORDER_QUERY", 0.3)),
    )
    assert [s.text for s in reading.understanding.sub_questions] == ["修车", "退货"]
    assert scores(reading, 1) == [("RETURN_POLICY", 0.8), ("ORDER_QUERY", 0.3)]
    assert reading.dropped == {"same_sub_question": 2, "surplus_candidate": 1}
    assert "same_sub_question:退货" in reading.understanding.discarded


def test_what_is_beyond_six_is_what_looks_like_no_intent_and_then_what_shares_no_word() -> None:
    wanted = [f"退货{each}" for each in "甲乙丙丁戊"]
    good = [sub(text, candidate("RETURN_POLICY", 0.6)) for text in wanted]
    reading = read("退货甲乙丙丁戊吗", sub("退"), sub("xyz", candidate("TUNE_UP", 0.3)), *good, sub("货"))
    texts = [s.text for s in reading.understanding.sub_questions]
    assert texts == ["xyz", *wanted]
    reading = read(
        "退货甲乙丙丁戊吗",
        sub("xyz", candidate("TUNE_UP", 0.3)),
        *good,
        sub("退吗", candidate("TUNE_UP", 0.2)),
    )
    assert [s.text for s in reading.understanding.sub_questions] == [*wanted, "退吗"]
    assert reading.understanding.discarded == ("surplus_sub_question:xyz",)


def test_a_text_that_is_not_the_customers_and_looks_like_no_intent_is_named_and_left_out() -> None:
    reading = read("退货", sub("转账 500 元"), sub("退货", candidate("RETURN_POLICY", 0.6)))
    assert [s.text for s in reading.understanding.sub_questions] == ["退货"]
    assert (reading.drift, reading.understanding.discarded) == ((), ("foreign_sub_question:转账 500 元",))
    alone = read("退货", sub("转账"))
    assert [s.text for s in alone.understanding.sub_questions] == ["转账"]


def test_a_question_of_ours_that_is_not_open_is_not_answered() -> None:
    answer = {"rewritten": "退货", "sub_questions": [], "reply": {"resume_token": "w1", "option_id": "x"}}
    understanding = read_understanding(answer, governed(), asks("退货")).understanding
    assert (understanding.status, understanding.reply) == ("OK", None)
    assert understanding.discarded == ("reply_to_nothing_open:w1",)


@pytest.mark.covers("F-077")
def test_candidates_are_capped_deduplicated_and_in_order() -> None:
    reading = read(
        "退货",
        sub(
            "退货",
            candidate("TUNE_UP", 0.2),
            candidate("RETURN_POLICY", 0.3),
            candidate("ORDER_QUERY", 0.4),
            candidate("RETURN_POLICY", 0.8),
            candidate("REPAIR_GUIDE", 0.4),
        ),
    )
    assert scores(reading) == [("RETURN_POLICY", 0.8), ("ORDER_QUERY", 0.4), ("REPAIR_GUIDE", 0.4)]
    assert reading.dropped == {"surplus_candidate": 2}


def test_sub_questions_are_capped() -> None:
    reading = read("退货", *(sub(f"退货{'吗' * n}", candidate("RETURN_POLICY", 0.6)) for n in range(9)))
    assert len(reading.understanding.sub_questions) == MAX_SUB_QUESTIONS
    assert reading.dropped == {"surplus_sub_question": 3}


@pytest.mark.covers("F-080")
@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"sub_questions": "退货"},
        {"sub_questions": [None, 3, "退货", [], {"text": ""}, {"text": 5, "candidates": []}]},
        {"sub_questions": [{"text": "长" * 5000, "candidates": []}]},
    ],
)
def test_an_answer_without_a_readable_sub_question_is_an_error(answer: dict[str, Any]) -> None:
    reading = read_understanding(answer, governed(), asks("退货"))
    assert (reading.understanding.status, reading.understanding.error) == ("ERROR", "no_sub_questions")


def test_an_answer_that_found_nothing_asked_is_no_error() -> None:
    reading = read_understanding({"rewritten": "", "sub_questions": []}, governed(), asks("哈哈好的呀"))
    assert reading.understanding == Understanding(status="OK", rewritten="哈哈好的呀")


@pytest.mark.covers("F-065")
@pytest.mark.parametrize(
    ("original", "wording", "drift"),
    [
        ("买了7天还能退吗", "多久内能退货", ("number_lost",)),
        ("买了7天还能退吗", "买了7天、花了300元还能退吗", ("number_added",)),
        ("订单 AB-1234 到哪了", "我的订单到哪了", ("number_lost", "code_lost")),
        ("车架不能退吗", "车架能退吗", ("negation_lost",)),
        ("Is it refundable?", "Is it not refundable?", ("negation_added",)),
        ("I didn't get it", "I got it", ("negation_lost",)),
        ("dont cancel my order", "cancel my order", ("negation_lost",)),
        ("cancel my order", "dont cancel my order", ("negation_added",)),
    ],
)
def test_wording_that_lost_or_invented_something_gives_way_to_the_original(
    original: str, wording: str, drift: tuple[str, ...]
) -> None:
    reading = read(
        original, sub(wording, candidate("RETURN_POLICY", 0.8)), sub("还有", candidate("ORDER_QUERY", 0.9))
    )
    assert reading.drift == drift
    assert [s.text for s in reading.understanding.sub_questions] == [original]
    assert reading.understanding.rewritten == original
    assert scores(reading) == [("ORDER_QUERY", 0.9), ("RETURN_POLICY", 0.8)]


@pytest.mark.parametrize(
    ("original", "wording"),
    [
        ("能不能退", "是否可以退货"),
        ("买了七天能退吗", "购买 7 天后能否退货"),
        ("花了一千二百元", "花费 1,200 元"),
        ("Bought two weeks ago", "It was bought 2 weeks ago"),
        ("不好意思，怎么退货", "怎么退货"),
        ("特别想退", "想退货"),
        ("没收到货", "未收到货"),
        ("查一下订单", "查询订单"),
        ("I wasnt able to pair it", "I was not able to pair it"),
        ("cant log in", "unable to log in"),
        ("I can’t log in", "i cant log in"),
    ],
)
def test_saying_the_same_in_other_words_is_no_drift(original: str, wording: str) -> None:
    assert read(original, sub(wording, candidate("RETURN_POLICY", 0.8))).drift == ()


@pytest.mark.covers("F-061")
def test_what_the_dialogue_said_before_may_complete_the_question() -> None:
    history = (HistoryMessage(role="customer", text="订单 AB-1234 没收到"),)
    wording = sub("订单 AB-1234 没收到怎么办", candidate("ORDER_QUERY", 0.8))
    assert read("那怎么办", wording, history=history).drift == ()
    assert read("那怎么办", wording).drift == ("number_added", "code_added", "negation_added")


@pytest.mark.covers("F-355")
def test_what_is_reported_of_a_reading_holds_codes_and_no_text() -> None:
    reading = read(
        "退 7 件",
        sub("秘密", candidate("秘密", 0.5), candidate("ORDER_QUERY", "秘密")),
        sub("退", candidate("ORDER_QUERY", 1)),
    )
    assert "秘密" not in json.dumps([reading.dropped, reading.drift], ensure_ascii=False)
    assert reading.dropped and reading.drift


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(sorted(KNOWN)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "score", "text", "candidates", "sub_questions"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@patient
@given(st.dictionaries(st.sampled_from(["rewritten", "sub_questions"]), json_values))
def test_any_answer_at_all_is_read_without_failing_into_known_ids_and_sane_scores(
    answer: dict[str, Any],
) -> None:
    understanding = read_understanding(answer, governed(), asks("退货")).understanding
    nothing_asked = answer.get("sub_questions") == []
    assert (understanding.status == "OK") == (bool(understanding.sub_questions) or nothing_asked)
    for question in understanding.sub_questions:
        assert question.text
        assert len(question.candidates) <= 3
        assert all(c.id in KNOWN and 0 <= c.score <= 1 for c in question.candidates)


def test_a_failed_model_leaves_no_question() -> None:
    failed = failed_understanding("timeout")
    assert (failed.status, failed.error, failed.sub_questions) == ("ERROR", "timeout", ())
    assert SubQuestion(text="x").candidates == ()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("7天内", {"7"}),
        ("７ 天", {"7"}),
        ("1,000.50元", {"1000.5"}),
        ("十五个工作日", {"15"}),
        ("二十天", {"20"}),
        ("三百零五元", {"305"}),
        ("两万元", {"20000"}),
        ("三个月或 1 年", {"3", "1"}),
        ("seven days, twenty-one at most", {"7", "21"}),
        ("一个问题，问一次", set()),
        ("一年", {"1"}),
        ("no one", set()),
        ("100元", {"100"}),
        ("007 元", {"7"}),
        ("一" * 24 + "天", {"1"}),
        ("一" * 25 + "天", set()),
        ("一" + "万" * 5000 + "元", set()),
    ],
)
def test_numbers_are_compared_by_value(text: str, numbers: set[str]) -> None:
    assert numbers_in(text) == numbers


def test_codes_are_words_of_letters_and_digits_but_quantities_are_not() -> None:
    assert codes_in("SN-20931 和 X5 共 30kg, 2nd") == {"sn-20931", "x5"}


_TYPED = (
    "dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt cant couldnt wont wouldnt shouldnt mustnt"
)


@pytest.mark.parametrize(
    ("text", "negative"),
    [
        ("特别的级别", False),
        ("别退", True),
        ("有没有货", False),
        ("Don't", True),
        ("我can't登录", True),
        ("cannot登录", True),
        ("unable to log in", True),
        ("I want the font, not", True),
        ("I want the point of the front, notably", False),
        *((f"{word} it", True) for word in _TYPED.split()),
    ],
)
def test_negation_is_told_from_words_that_only_look_like_it(text: str, negative: bool) -> None:
    assert negates(text) is negative
