"""Whose turn is it: which open question a message answers, by rules, and what of a model's reading is believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.assistant_example import asks, patient
from turngate.domain import wire
from turngate.domain.pending import RESUME_ORDER, PendingItem, read_open, stored
from turngate.domain.resuming import Resumption, Taken, resume, verified
from turngate.domain.shapes import Option, ProposedReply

NOW = 1_900_000_000_000
BLUE, RED = Option(id="B-1", name="蓝色城市车", also=("Blue city bike",)), Option(id="B-2", name="红色公路车")


def item(kind: str, number: int = 1, **more: object) -> PendingItem:
    choosing = kind != "missing_parameter"
    return wire.read(
        {
            "pending_id": f"q{number}",
            "kind": kind,
            "text": "请选择",
            "question": f"问题{number}",
            "intent_id": "ORDER_QUERY",
            "missing_fields": ("order_no",) if kind == "missing_parameter" else ("bike",),
            "candidates": (BLUE, RED) if choosing else (),
            "resume_token": f"w{number}",
            "run": "r0",
            "asked_seq": number,
            "expires_at": NOW + 1,
            **more,
        },
        PendingItem,
    )


def answered(text: str, *items: PendingItem) -> tuple[Taken | None, list[str]]:
    ordered = read_open([stored(each) for each in items], NOW)
    resumption, left = resume(ordered, asks(text).messages)
    assert len(resumption.taken) <= 1
    return (resumption.taken[0] if resumption.taken else None), [message.text for message in left]


@pytest.mark.covers("F-033", "F-036", "F-041")
@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("第二个", "B-2"),
        ("1", "B-1"),
        ("the last one", "B-2"),
        ("B-1", "B-1"),
        ("就要 b-2", "B-2"),
        ("红色公路车", "B-2"),
        ("红色的", "B-2"),
        ("blue", "B-1"),
        ("蓝色城市车那辆", "B-1"),
    ],
)
def test_a_choice_is_found_by_its_place_its_id_or_its_name(text: str, option: str) -> None:
    taken, left = answered(text, item("entity_choice"))
    assert taken is not None
    assert (taken.how, taken.option_id, left) == ("choice", option, [])


@pytest.mark.covers("F-042")
@pytest.mark.parametrize("text", ["就这个", "这个", "是的", "好的", "第三个"])
def test_what_does_not_say_which_is_asked_again_and_never_the_first(text: str) -> None:
    taken, left = answered(text, item("entity_choice"))
    assert taken is not None
    assert (taken.how, taken.option_id, left) == ("unclear", "", [])


@pytest.mark.covers("F-032")
@pytest.mark.parametrize(("text", "how"), [("是的", "choice"), ("就这个", "choice"), ("不是", "none")])
def test_of_one_candidate_yes_and_no_say_enough(text: str, how: str) -> None:
    taken, _ = answered(text, item("dependency_choice", candidates=(BLUE,)))
    assert taken is not None
    assert taken.how == how


@pytest.mark.covers("F-037")
@pytest.mark.parametrize(
    "text",
    [
        "退款多久到账",
        "红色公路车保修多久？",
        "谢谢",
        "取消订单",
        "How long do refunds take?",
        "B-1 还在保修吗，什么时候到期",
    ],
)
def test_something_new_is_left_alone(text: str) -> None:
    assert answered(text, item("entity_choice")) == (None, [text])


@pytest.mark.covers("F-034", "F-040")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TG20261107", "TG20261107"),
        ("订单号是 tg-2026", "tg-2026"),
        ("我的单号：20261107", "20261107"),
        ("my order number is TG20261108", "TG20261108"),
    ],
)
def test_a_missing_value_that_stands_almost_alone_is_taken_as_written(text: str, value: str) -> None:
    taken, _ = answered(text, item("missing_parameter"))
    assert taken is not None
    assert (taken.how, taken.field, taken.value) == ("value", "order_no", value)


@pytest.mark.parametrize(
    "text",
    [
        "TG2026 到哪了",
        "TG2026 和 TG2027",
        "2",
        "上海",
        "订单 TG2026 的详情和金额以及收货地址都给我看看好不好",
    ],
)
def test_a_value_inside_a_question_or_beside_another_is_not_taken(text: str) -> None:
    assert answered(text, item("missing_parameter"))[0] is None


@pytest.mark.covers("F-035")
def test_open_questions_are_tried_in_one_order_the_newest_of_a_kind_first() -> None:
    items = [item(kind, n) for n, kind in enumerate(reversed(RESUME_ORDER), start=1)]
    items.append(item("entity_choice", 9))
    ordered = read_open([stored(each) for each in items], NOW)
    assert [each.kind for each in ordered] == [
        "dependency_choice", "entity_choice", "entity_choice", "missing_parameter", "intent_guidance", "approval",
    ]  # fmt: skip
    assert [each.pending_id for each in ordered if each.kind == "entity_choice"] == ["q9", "q4"]
    taken, _ = answered("第二个", *items)
    assert taken is not None
    assert taken.pending_id == "q5"


@pytest.mark.covers("F-031")
def test_two_topics_keep_their_own_questions() -> None:
    choice, number = item("entity_choice", 1), item("missing_parameter", 2)
    for text, expected in (("TG20261107", "q2"), ("第一个", "q1")):
        taken, _ = answered(text, choice, number)
        assert taken is not None
        assert taken.pending_id == expected


def test_never_mind_drops_what_was_asked_last_whatever_its_kind() -> None:
    taken, _ = answered("算了", item("dependency_choice", 1), item("missing_parameter", 2))
    assert taken is not None
    assert (taken.pending_id, taken.how) == ("q2", "cancel")


def test_several_messages_may_answer_several_questions_and_ask_another() -> None:
    ordered = read_open([stored(item("entity_choice", 1)), stored(item("missing_parameter", 2))], NOW)
    resumption, left = resume(ordered, asks("第一个", "TG20261107", "退款多久到账").messages)
    assert [(t.pending_id, t.how) for t in resumption.taken] == [("q1", "choice"), ("q2", "value")]
    assert [message.text for message in left] == ["退款多久到账"]
    assert resumption.waiting == ()


def test_an_answer_with_a_question_behind_it_is_divided() -> None:
    taken, left = answered("第二个，另外退款多久到账？", item("entity_choice"))
    assert taken is not None
    assert (taken.option_id, left) == ("B-2", ["另外退款多久到账？"])


def test_words_never_give_an_approval() -> None:
    for text in ("第一个", "是的", "B-1"):
        assert answered(text, item("approval"))[0] is None


def test_an_expired_question_is_not_open() -> None:
    assert read_open([stored(item("entity_choice", expires_at=NOW))], NOW) == ()
    closed = {**stored(item("entity_choice")), "state": "cancelled"}
    assert read_open([closed], NOW) == ()


OPEN = Resumption(open=(item("entity_choice", 1), item("missing_parameter", 2)))


@pytest.mark.covers("F-041", "F-109")
@pytest.mark.parametrize(
    ("reply", "believed"),
    [
        ({"resume_token": "w1", "option_id": "B-2"}, ("choice", "B-2", "")),
        ({"resume_token": "w2", "value": "上海"}, ("value", "", "上海")),
        ({"resume_token": "w1", "option_id": "B-3"}, "option_not_offered"),
        ({"resume_token": "w1", "value": "B-2"}, "option_not_offered"),
        ({"resume_token": "w3", "option_id": "B-1"}, "reply_to_nothing_open"),
        ({"resume_token": "q1", "option_id": "B-1"}, "reply_to_nothing_open"),
        ({"resume_token": "w2", "value": "北京"}, "value_not_said"),
        ({"resume_token": "w2", "value": " "}, "value_not_said"),
    ],
)
def test_a_model_may_only_choose_among_what_was_offered_and_said(
    reply: dict[str, str], believed: object
) -> None:
    found = verified(ProposedReply(**reply), OPEN, "我在上海，要红的")
    if isinstance(found, Taken):
        assert (found.how, found.option_id, found.value) == believed
        assert found.by == "model"
    else:
        assert found == believed


@patient
@given(st.text(max_size=40), st.sampled_from(RESUME_ORDER))
def test_whatever_is_said_a_rule_takes_only_what_was_offered_or_written(text: str, kind: str) -> None:
    taken, left = answered(text, item(kind))
    if taken is None:
        assert left == [text]
        return
    assert taken.option_id in {"", "B-1", "B-2"}
    assert taken.value == "" or taken.value.casefold() in text.casefold() or not text.isascii()


def test_a_model_is_never_shown_an_approval_to_answer() -> None:
    resumption = Resumption(open=(item("approval", 1), item("entity_choice", 2)))
    assert [each.pending_id for each in resumption.waiting] == ["q2"]
    assert (
        verified(ProposedReply(resume_token="w1", option_id="B-1"), resumption, "是")
        == "reply_to_nothing_open"
    )
