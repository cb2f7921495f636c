"""What a model says beside a good answer changes no ruling: not what is read of it, nor what Govern makes of it.

Every example reads one good answer twice, as it is and with junk in it: in its text or in its document."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.governance.table import governed, said
from tests.unit.assistant_example import patient
from turngate.domain.governance import govern
from turngate.domain.json_repair import find_object
from turngate.domain.pending import PendingItem
from turngate.domain.resuming import Resumption
from turngate.domain.shapes import HistoryMessage, Option, Part, TenantContext, Understanding
from turngate.domain.understanding import MAX_SUB_QUESTIONS, Reading, read_understanding

CUSTOMER = TenantContext(account="mall", principal="user:1", customer="C-1009")
SLICE = governed("mall")
WAITING = PendingItem(
    pending_id="q1",
    kind="intent_guidance",
    text="您想问的是下面哪一项？\n1. 查询订单\n2. 修改或取消订单",
    question="订单",
    candidates=(Option(id="ORDER_QUERY", name="查询订单"), Option(id="ORDER_CHANGE", name="修改或取消订单")),
    resume_token="wq1",
    run="r",
    asked_seq=1,
    expires_at=2_000_000_000_000,
)


def answer(*subs: tuple[str, dict[str, float]], reply: dict[str, str] | None = None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "rewritten": " ".join(text for text, _ in subs),
        "sub_questions": [
            {"text": text, "candidates": [{"id": name, "score": score} for name, score in scores.items()]}
            for text, scores in subs
        ],
    }
    return document | ({"reply": reply} if reply else {})


GOOD: list[tuple[str, dict[str, Any]]] = [
    ("退货要几天", answer(("退货要几天", {"RETURN_POLICY": 0.9}))),
    (
        "退货要几天，保修多久",
        answer(("退货要几天", {"RETURN_POLICY": 0.9}), ("保修多久", {"REPAIR_POLICY": 0.8})),
    ),
    ("订单", answer(("订单", {"ORDER_QUERY": 0.7, "ORDER_CHANGE": 0.68}))),
    ("7 天后不能退货吗", answer(("可以退货", {"RETURN_POLICY": 0.9}))),
    ("在哪里看我的订单", answer(("订单的查看位置", {"LOGISTICS_QUERY": 0.8, "ORDER_QUERY": 0.6}))),
    ("讲个笑话", answer(("讲个笑话", {}))),
    ("我想知道你们公司明年的股票会不会涨以及董事长是谁", answer(("公司明年的股票会不会涨，董事长是谁", {}))),
    ("停车方便不方便", answer(("停车方便不方便", {"DELIVERY_POLICY": 0.45}))),
    ("How much is shipping?", answer(("What does shipping cost", {"DELIVERY_POLICY": 0.9}))),
    ("改一下的那个", answer(reply={"resume_token": "wq1", "option_id": "ORDER_CHANGE", "value": ""})),
    ("哈哈", answer()),
]
"""What was said, and how a model reads it: single, compound, unclear, drifted, hopeless, an answer to us, nothing."""

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([7, "0.9", "", "ORDER_QUERY", 10**4000]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "score", "text", "candidates"]), inner, max_size=3)
    ),
    max_leaves=8,
)
not_scores = st.sampled_from(
    ["0.9", "NaN", True, False, None, 7, -0.1, 1.01, 1e9, [0.9], [[[0.9]]], {"score": 1}, 10**400, 10**5000]
) | st.sampled_from([float("nan"), float("inf"), float("-inf")])
not_ids = st.sampled_from(
    ["getOrder", "order_query", "ORDER_QUERY\n", "ОRDER_QUERY", "", "ＯRDER_QUERY", "__proto__"]
)
junk_candidates = st.one_of(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(anything, max_size=3),
    st.builds(
        lambda i, s: {"id": i, "score": s}, st.sampled_from(["ORDER_QUERY", "LOGISTICS_QUERY"]), not_scores
    ),
    st.builds(lambda i, s: {"id": i, "score": s}, not_ids, st.just(1.0) | not_scores),
    st.builds(lambda i: {"id": i, "score": 1}, anything.filter(lambda each: not isinstance(each, str))),
)
foreign_texts = st.text(alphabet="转账給攻击者玖伍零無沒xyzqj0489 ?!_-", min_size=1, max_size=20)
junk_subs = st.one_of(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(anything, max_size=3),
    st.builds(
        lambda text: {"text": text, "candidates": []},
        st.sampled_from(["", "  ", "退" * 9999]) | st.integers(),
    ),
    st.builds(
        lambda text, junk: {"text": text, "candidates": junk},
        foreign_texts,
        st.lists(junk_candidates, max_size=4) | st.none() | st.just("ORDER_QUERY"),
    ),
)
junk_replies = st.sampled_from(
    [
        {"resume_token": "wNOTHING", "option_id": "ORDER_QUERY", "value": ""},
        {"resume_token": "wq1 ", "option_id": "ORDER_QUERY", "value": "退货"},
        {"resume_token": "q1", "option_id": "ORDER_CHANGE"},
        {"resume_token": 5, "option_id": "ORDER_QUERY"},
        {"resume_token": ["wq1"], "option_id": "ORDER_QUERY"},
        {"resume_token": "", "option_id": "ORDER_QUERY"},
        {"option_id": "ORDER_QUERY"},
        [{"resume_token": "wq1"}],
        "wq1",
        7,
        None,
    ]
)


def ruled(
    text: str, document: dict[str, Any], waiting: tuple[PendingItem, ...]
) -> tuple[Reading, tuple[Part, ...]]:
    spoken = said(text)
    reading = read_understanding(document, SLICE, spoken, (), waiting)
    return reading, govern(spoken, reading.understanding, SLICE, CUSTOMER, Resumption(open=waiting)).parts


def believed(understanding: Understanding) -> tuple[Any, ...]:
    """All of it that counts: what was discarded and our own words for it are for the trace."""
    return (
        understanding.status,
        understanding.sub_questions,
        understanding.reply,
        understanding.drift,
        understanding.error,
    )


good_answers = st.sampled_from(GOOD)
open_questions = st.sampled_from([(), (WAITING,)])


def same(
    text: str, clean: dict[str, Any], junk: dict[str, Any], waiting: tuple[PendingItem, ...] = ()
) -> Reading:
    expected, parts = ruled(text, clean, waiting)
    reading, got = ruled(text, junk, waiting)
    assert believed(reading.understanding) == believed(expected.understanding)
    assert got == parts
    return reading


@pytest.mark.covers("F-075", "F-082")
@patient
@given(good_answers, open_questions, st.data())
def test_junk_candidates_in_any_place_change_no_ruling(good, waiting, data) -> None:
    text, clean = good
    document = copy.deepcopy(clean)
    for sub in document["sub_questions"]:
        for junk in data.draw(st.lists(junk_candidates, min_size=1, max_size=6)):
            at = data.draw(st.integers(0, len(sub["candidates"])))
            sub["candidates"].insert(at, junk)
    reading = same(text, clean, document, waiting)
    assert bool(reading.dropped) >= bool(document["sub_questions"])


@pytest.mark.covers("F-075", "F-082")
@patient
@given(good_answers.filter(lambda good: good[1]["sub_questions"]), open_questions, st.data())
def test_junk_sub_questions_in_any_place_change_no_ruling(good, waiting, data) -> None:
    text, clean = good
    document = copy.deepcopy(clean)
    for junk in data.draw(st.lists(junk_subs, min_size=1, max_size=3 * MAX_SUB_QUESTIONS)):
        document["sub_questions"].insert(data.draw(st.integers(0, len(document["sub_questions"]))), junk)
    assert same(text, clean, document, waiting).dropped


@pytest.mark.covers("F-075", "F-082")
@patient
@given(good_answers, open_questions, st.data())
def test_the_same_sub_question_again_changes_no_ruling(good, waiting, data) -> None:
    text, clean = good
    document = copy.deepcopy(clean)
    subs = document["sub_questions"]
    for sub in clean["sub_questions"]:
        for _ in range(data.draw(st.integers(1, 2 * MAX_SUB_QUESTIONS))):
            written = data.draw(st.sampled_from(["{}", " {}？", "{}。", "“{}”"])).format(sub["text"])
            offered = data.draw(st.sampled_from([[], None, sub["candidates"]]))
            again = {"text": written, "candidates": offered}
            if offered:
                subs.append(again | {"text": sub["text"]})
            else:
                subs.insert(data.draw(st.integers(0, len(subs))), again)
    reading, parts = ruled(text, document, waiting)
    expected, wanted = ruled(text, clean, waiting)
    assert [part.route for part in parts] == [part.route for part in wanted]
    assert [sub.candidates for sub in reading.understanding.sub_questions] == [
        sub.candidates for sub in expected.understanding.sub_questions
    ]
    assert reading.drift == expected.drift


@pytest.mark.covers("F-109")
@patient
@given(good_answers.filter(lambda good: "reply" not in good[1]), open_questions, junk_replies)
def test_a_reply_to_nothing_that_is_open_changes_no_ruling(good, waiting, reply) -> None:
    text, clean = good
    reading = same(text, clean, clean | {"reply": reply}, waiting)
    token = reply.get("resume_token") if isinstance(reply, dict) else None
    assert ("reply_to_nothing_open" in reading.dropped) == bool(isinstance(token, str) and token)


@pytest.mark.covers("F-080")
@patient
@given(
    good_answers,
    st.sampled_from(
        [
            "NaN",
            "Infinity",
            "-Infinity",
            "1e999",
            "9" * 5000,
            "[" * 40 + "]" * 40,
            '{"a":' * 40 + "1" + "}" * 40,
        ]
    ),
    st.sampled_from(['"candidates": [', '"sub_questions": [', "{"]),
)
def test_what_is_no_json_or_nests_too_deep_changes_no_ruling(good, junk, place) -> None:
    text, clean = good
    written = json.dumps(clean, ensure_ascii=False)
    if place not in written:
        return
    inside = {
        "{": f'{{"x": {junk}, ',
        '"candidates": [': f'"candidates": [{{"id": "ORDER_QUERY", "score": {junk}}}',
    }
    put = inside.get(place, f"{place}{junk}")
    begins, _, ends = written.partition(place)
    comma = "" if place == "{" or ends.startswith("]") else ", "
    found = find_object(f"{begins}{put}{comma}{ends}")
    assert found is not None
    if clean["sub_questions"] or place == "{":
        same(text, clean, found)


@patient
@given(anything, anything, anything, open_questions)
def test_an_error_means_that_nothing_at_all_could_be_used(rewritten, subs, reply, waiting) -> None:
    document = {"rewritten": rewritten, "sub_questions": subs, "reply": reply}
    understanding = ruled("退货要几天", document, waiting)[0].understanding
    readable = isinstance(subs, list) and any(
        isinstance(sub, dict) and isinstance(sub.get("text"), str) and sub["text"].strip() for sub in subs
    )
    assert (understanding.status == "OK") == (readable or subs == [] or understanding.reply is not None)


HISTORY = (
    HistoryMessage(role="customer", text="退货要几天"),
    HistoryMessage(
        role="assistant", text="清仓价商品会在商品页写明是否支持退货。参加以旧换新的订单要先退回补贴。"
    ),
)


@pytest.mark.covers("F-061", "F-065")
@pytest.mark.parametrize(
    ("text", "subs"),
    [
        ("那个清仓的呢？还有运费多少", ("清仓价商品是否支持退货", "运费多少")),
        ("那这个呢？还有运费多少", ("清仓价商品会在商品页写明吗", "运费多少")),
        ("那些条件什么意思，运费呢", ("参加以旧换新的订单要先退回补贴", "运费多少")),
    ],
)
def test_a_follow_up_resolved_by_our_own_words_stays_the_customers(text: str, subs: tuple[str, ...]) -> None:
    document = answer(*((sub, {"RETURN_POLICY": 0.9}) for sub in subs))
    understanding = read_understanding(document, SLICE, said(text), HISTORY).understanding
    assert tuple(sub.text for sub in understanding.sub_questions) == subs
    assert understanding.discarded == ()
