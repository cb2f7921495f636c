"""Whose turn is it: which open question a message answers, by rules, and what of a model's reading is believed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.assistant_example import asks, patient
from turngate.domain import wire
from turngate.domain.pending import RESUME_ORDER, PendingItem, read_open, stored
from turngate.domain.resuming import Resumption, resume, verified
from turngate.domain.shapes import InputMessage, Option, ProposedReply
from turngate.domain.taking import Taken

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
    taken, _ = answered("红色公路车", *items)  # what names a thing is tried in this order
    assert taken is not None
    assert taken.pending_id == "q5"


@pytest.mark.parametrize(("text", "how"), [("第二个", "choice"), ("都不是", "none"), ("算了", "cancel")])
def test_what_only_points_means_what_was_asked_last_whatever_its_kind(text: str, how: str) -> None:
    """S1's kinds came first here too: an older choice of orders took the answer to a newer question."""
    newer = item("intent_guidance", 9, candidates=(BLUE, RED), intent_id="", missing_fields=())
    taken, _ = answered(text, item("dependency_choice", 5), newer)
    assert taken is not None
    assert (taken.pending_id, taken.how) == ("q9", how)


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
    resumption, left = resume((item(kind),), asks(text).messages)
    if not resumption.taken:
        assert [message.text for message in left] == [text]
    chosen = [taken.option_id for taken in resumption.taken if taken.how == "choice"]
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= {"B-1", "B-2"}
    if kind != "intent_guidance":
        assert len(resumption.taken) <= 1
    for taken in resumption.taken:
        assert taken.value == "" or taken.value.casefold() in text.casefold() or not text.isascii()


def test_a_model_is_never_shown_an_approval_to_answer() -> None:
    resumption = Resumption(open=(item("approval", 1), item("entity_choice", 2)))
    assert [each.pending_id for each in resumption.waiting] == ["q2"]
    assert (
        verified(ProposedReply(resume_token="w1", option_id="B-1"), resumption, "是")
        == "reply_to_nothing_open"
    )


def heard(
    *texts: str, open_: tuple[PendingItem, ...], first_seq: int = 2
) -> tuple[list[tuple[str, str]], list[str]]:
    """(option, else how) with its question for every answer, and what is left."""
    messages = tuple(
        InputMessage(message_seq=number, text=text) for number, text in enumerate(texts, start=first_seq)
    )
    resumption, left = resume(read_open([stored(each) for each in open_], NOW), messages)
    said = [(each.pending_id, each.option_id or each.reason or each.how) for each in resumption.taken]
    return said, [message.text for message in left]


GUIDE = item(
    "intent_guidance",
    1,
    intent_id="",
    missing_fields=(),
    candidates=(
        Option(id="SPARE", name="配件价格", also=("Spare part price",)),
        Option(id="SEARCH", name="搜索商品", also=("Product search",)),
    ),
)
ORDERS = item(
    "entity_choice",
    1,
    candidates=(Option(id="A100", name="订单 A100"), Option(id="A1001", name="订单 A1001")),
)
LONG_ORDERS = item(
    "entity_choice",
    1,
    candidates=(
        Option(id="2024110012", name="蓝色耳机 2024110012"),
        Option(id="2024110034", name="手表 2024110034"),
    ),
)


@pytest.mark.parametrize(
    "text",
    [
        "not product search",
        "不是搜索商品",
        "不要配件价格",
        "不是第一个",
        "不是第一个，是第二个",
        "搜索商品不对",
    ],
)
def test_a_rule_chooses_nothing_where_something_is_denied(text: str) -> None:
    assert heard(text, open_=(GUIDE,)) == ([], [text])


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("不是第一个，是第二个", "SPARE"),
        ("not product search", "SEARCH"),
        ("第一个不对，第二个", "SPARE"),
        ("the second, not the first", "SPARE"),
        ("第一个，不对，是那个搜的", "SPARE"),
    ],
)
def test_a_model_may_not_choose_what_the_message_denies(text: str, option: str) -> None:
    other = {"SPARE": "SEARCH", "SEARCH": "SPARE"}[option]
    open_ = Resumption(open=(GUIDE,))
    assert verified(ProposedReply(resume_token="w1", option_id=option), open_, text) == "option_denied"
    assert isinstance(verified(ProposedReply(resume_token="w1", option_id=other), open_, text), Taken)


@pytest.mark.parametrize(
    ("open_", "text", "option", "refusal"),
    [
        (GUIDE, "我要第二个那种", "SPARE", "other_option_said"),
        (GUIDE, "please the spare part price thing", "SEARCH", "other_option_said"),
        (GUIDE, "2", "SPARE", "other_option_said"),
        (GUIDE, "两个都要", "SPARE", "option_not_said"),
        (GUIDE, "好的", "SEARCH", "option_not_said"),
        (GUIDE, "随便", "SEARCH", "option_not_said"),
        (ORDERS, "my A1002", "A100", "other_code_said"),
        (item("missing_parameter"), "不是 A1001", "A1001", "value_denied"),
        (item("missing_parameter"), "订单 A1001", "1001", "value_not_said"),
    ],
)
def test_a_model_may_not_take_one_thing_for_another(
    open_: PendingItem, text: str, option: str, refusal: str
) -> None:
    reply = ProposedReply(resume_token="w1", option_id=option, value=option)
    assert verified(reply, Resumption(open=(open_,)), text) == refusal


@pytest.mark.parametrize(
    ("open_", "text", "option"),
    [
        (ORDERS, "A100", "A100"),
        (ORDERS, "a1001 谢谢", "A1001"),
        (ORDERS, "1001", "A1001"),
        (ORDERS, "尾号01", "A1001"),
        (LONG_ORDERS, "12", "2024110012"),
        (LONG_ORDERS, "尾号34那个", "2024110034"),
        (LONG_ORDERS, "耳机那个", "2024110012"),
        (GUIDE, "1. 配件价格", "SPARE"),
        (GUIDE, "第二个搜索商品", "SEARCH"),
        (GUIDE, "I want the product search one please", "SEARCH"),
    ],
)
def test_a_code_is_whole_and_its_last_digits_will_do(open_: PendingItem, text: str, option: str) -> None:
    assert heard(text, open_=(open_,)) == ([("q1", option)], [])


@pytest.mark.parametrize(
    ("open_", "text"),
    [
        (ORDERS, "A1002"),
        (ORDERS, "A10012"),
        (ORDERS, "order A1002 please"),
        (LONG_ORDERS, "20241100124"),
        (LONG_ORDERS, "2024110035"),
    ],
)
def test_another_code_chooses_nothing(open_: PendingItem, text: str) -> None:
    assert heard(text, open_=(open_,)) == ([], [text])


@pytest.mark.parametrize(
    "text", ["hi", "in", "me", "on", "and", "the", "人工", "转人工", "will it rain?", "讲个笑话"]
)
def test_a_word_that_is_no_word_of_a_name_names_nothing(text: str) -> None:
    member = Option(id="M", name="会员与积分", also=("Membership and points",))
    account = Option(id="A", name="账号与安全", also=("Account and something on me in it",))
    offered = item("intent_guidance", 1, candidates=(member, account))
    assert heard(text, open_=(offered,)) == ([], [text])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("第一个，不对，第二个", [("q1", "SEARCH")]),
        ("the first one. no, the second", [("q1", "SEARCH")]),
        ("第二个，算了", [("q1", "cancel")]),
        ("第一个，不对", [("q1", "which_one")]),
        ("第二个配件价格", [("q1", "which_one")]),
        ("第一个，搜索商品", [("q1", "which_one")]),
        ("1,2", [("q1", "SPARE"), ("q1", "SEARCH")]),
        ("第一个和第二个", [("q1", "SPARE"), ("q1", "SEARCH")]),
        ("配件价格，搜索商品", [("q1", "SPARE"), ("q1", "SEARCH")]),
        ("both", [("q1", "SPARE"), ("q1", "SEARCH")]),
        ("都要", [("q1", "SPARE"), ("q1", "SEARCH")]),
        ("我要1，也要2", [("q1", "SPARE"), ("q1", "SEARCH")]),
        ("好的，第二个", [("q1", "SEARCH")]),
        ("谢谢，第二个！", [("q1", "SEARCH")]),
        ("随便", [("q1", "own_words")]),
        ("1 or 2", [("q1", "own_words")]),
    ],
)
def test_the_last_word_of_a_message_stands_and_a_contradiction_is_unclear(
    text: str, said: list[tuple[str, str]]
) -> None:
    assert heard(text, open_=(GUIDE,)) == (said, [])


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("好的", "第二个"), [("q1", "SEARCH")]),
        (("就这个", "第二个"), [("q1", "SEARCH")]),
        (("第三个", "第二个"), [("q1", "SEARCH")]),
        (("1", "2"), [("q1", "SEARCH")]),
        (("第一个", "不对，第二个"), [("q1", "SEARCH")]),
        (("第一个", "好的"), [("q1", "SPARE")]),
        (("第一个", "不对"), [("q1", "which_one")]),
        (("1", "3"), [("q1", "no_such_option")]),
        (("第二个", "算了"), [("q1", "cancel")]),
        (("算了", "第二个"), [("q1", "SEARCH")]),
    ],
)
def test_of_several_messages_the_last_clear_answer_stands(
    texts: tuple[str, ...], said: list[tuple[str, str]]
) -> None:
    assert heard(*texts, open_=(GUIDE,)) == (said, [])


@pytest.mark.parametrize(
    "text", ["1,299元的手机有货吗", "1. 退货要几天\n2. 运费多少", "product search, warranty"]
)
def test_what_only_begins_like_an_answer_is_left_whole(text: str) -> None:
    assert heard(text, open_=(GUIDE,)) == ([], [text])


def test_an_option_that_is_called_like_a_form_is_meant_by_its_name() -> None:
    other = Option(id="OTHER", name="其他", also=("Something else",))
    offered = replace(GUIDE, candidates=(*GUIDE.candidates, other))
    for text in ("其他", "something else"):
        assert heard(text, open_=(offered,)) == ([("q1", "OTHER")], [])
        assert heard(text, open_=(GUIDE,)) == ([("q1", "none")], [])


@pytest.mark.parametrize(
    "text",
    [
        "第二个，不要",
        "第一个，第二个不要",
        "都要，除了第一个",
        "the second one, but not now",
        "第二个，不对，那个便宜的",
    ],
)
def test_what_takes_an_answer_back_leaves_all_of_it_to_be_understood(text: str) -> None:
    assert heard(text, open_=(GUIDE,)) == ([], [text])


def test_a_name_beside_a_number_of_something_else_is_left_whole() -> None:
    open_ = (ORDERS, item("missing_parameter", 2))
    assert heard("A100，B2002", open_=open_) == ([], ["A100，B2002"])
    assert heard("第一个，B2002", open_=open_) == ([("q1", "A100"), ("q2", "value")], [])


def test_courtesy_beside_a_question_is_no_answer() -> None:
    assert heard("好的", "退款多久到账", open_=(GUIDE,)) == ([], ["好的", "退款多久到账"])
    assert heard("好的", "谢谢", open_=(GUIDE,)) == ([("q1", "which_one")], ["谢谢"])


def test_of_more_than_four_choices_one_comes_first() -> None:
    options = tuple(Option(id=f"I{number}", name=f"Thing {number}") for number in range(1, 6))
    many = replace(GUIDE, candidates=options)
    assert heard("都要", open_=(many,)) == ([("q1", "one_first")], [])
    assert len(heard("1,2,3,4", open_=(many,))[0]) == 4


def test_of_several_orders_one_comes_first() -> None:
    for text in ("both", "A100和A1001", "第一个和第二个", "1,2"):
        assert heard(text, open_=(ORDERS,)) == ([("q1", "one_first")], [])


PAIR = (
    replace(GUIDE, asked_seq=5),
    replace(LONG_ORDERS, pending_id="q2", asked_seq=5, kind="intent_guidance", first_number=3),
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2", [("q1", "SEARCH")]),
        ("第三个", [("q2", "2024110012")]),
        ("1,4", [("q1", "SPARE"), ("q2", "2024110034")]),
        ("最后一个", [("q2", "2024110034")]),
        ("算了", [("q1", "cancel"), ("q2", "cancel")]),
        ("都不是", [("q1", "none"), ("q2", "none")]),
        ("5", [("q1", "no_such_option"), ("q2", "no_such_option")]),
        ("both", [("q1", "which_one"), ("q2", "which_one")]),
        ("手表，配件价格", [("q2", "2024110034"), ("q1", "SPARE")]),
    ],
)
def test_a_number_means_one_of_two_questions_asked_together(text: str, said: list[tuple[str, str]]) -> None:
    assert heard(text, open_=PAIR, first_seq=6) == (said, [])


def test_where_two_questions_print_the_same_number_it_is_unclear_which() -> None:
    alike = (PAIR[0], replace(PAIR[1], first_number=1))
    assert heard("2", open_=alike, first_seq=6) == ([("q1", "which_one"), ("q2", "which_one")], [])


def test_an_answer_and_the_answer_to_an_older_question_are_both_heard() -> None:
    older = replace(LONG_ORDERS, pending_id="q2", asked_seq=0)
    assert heard("第二个，耳机", open_=(GUIDE, older)) == ([("q1", "SEARCH"), ("q2", "2024110012")], [])


@pytest.mark.parametrize("text", ["好的", "就这个", "随便", "第三个", "稍等", "第二个配件价格"])
def test_an_unclear_word_is_asked_about_only_right_after_the_question_and_only_once(text: str) -> None:
    assert heard(text, open_=(GUIDE,))[1] == []
    assert heard(text, open_=(GUIDE,), first_seq=4) == ([], [text])
    if text != "随便":
        assert heard(text, open_=(replace(GUIDE, again=1),)) == ([], [text])


def test_who_cannot_choose_twice_is_let_go() -> None:
    (taken,) = resume((replace(GUIDE, again=1),), asks("不知道").messages)[0].taken
    assert (taken.how, taken.reason) == ("none", "own_words")


@pytest.mark.parametrize(
    "text",
    [
        "R6路由器保修",
        "wifi6 太慢了",
        "Loom R6 红灯",
        "iPhone15",
        "R6",
        "X5",
        "我的手机号 13800138000",
        "20241130 之前下单的",
    ],
)
def test_a_model_name_or_another_number_fills_no_gap(text: str) -> None:
    assert heard(text, open_=(item("missing_parameter"),)) == ([], [text])


words = st.sampled_from(
    [
        "第一个",
        "第二个",
        "搜索商品",
        "配件价格",
        "product search",
        "1",
        "2",
        "好的",
        "和",
        "，",
        " ",
        "那个",
        "please",
        "A7",
    ]
)


@patient
@given(st.lists(words, min_size=1, max_size=5), st.sampled_from(["不是", "不要", "not ", "don't want "]))
def test_a_denied_option_is_never_chosen_by_a_rule(said: list[str], negation: str) -> None:
    for name, option in (("搜索商品", "SEARCH"), ("product search", "SEARCH"), ("第二个", "SEARCH")):
        taken, _ = heard("".join(said) + f"，{negation}{name}", open_=(GUIDE,))
        assert ("q1", option) not in taken or any(
            word in said for word in ("第二个", "搜索商品", "product search", "2")
        )
        assert heard(f"{negation}{name}", open_=(GUIDE,))[0] == []


codes = st.from_regex(r"[A-C]\d{3,6}", fullmatch=True)


@patient
@given(
    st.lists(codes, min_size=2, max_size=3, unique=True), codes, st.sampled_from([" ", "，", "和", " or "])
)
def test_a_message_with_two_different_codes_never_chooses(
    offered: list[str], other: str, between: str
) -> None:
    options = tuple(Option(id=code, name=f"订单 {code}") for code in offered)
    open_ = (item("entity_choice", candidates=options), item("missing_parameter", 2))
    first = offered[0]
    if other == first:
        return
    said, _ = heard(f"{first}{between}{other}", open_=open_)
    assert all(what in ("one_first", "which_one") for _, what in said)


@patient
@given(
    st.sampled_from(["退款多久到账？", "明天会下雨吗", "how long is shipping?", "人工", "发票在哪里开"]),
    st.booleans(),
)
def test_an_open_question_claims_no_question_of_its_own(text: str, asked_before: bool) -> None:
    open_ = (replace(GUIDE, again=int(asked_before)), LONG_ORDERS, item("missing_parameter", 3))
    assert heard(text, open_=open_) == ([], [text])


@pytest.mark.parametrize(
    "text",
    [
        "第一个，" * 2000,
        "搜索商品，" * 1600,
        "1 " * 4000,
        "不是" * 2000,
        "A100 " * 1600,
        "a" * 8000,
        "product " * 1000,
        "，" * 8000,
    ],
)
def test_no_message_makes_resuming_slow(text: str) -> None:
    heard("第一个", open_=(GUIDE, ORDERS))  # compiles the patterns
    started = time.process_time()
    heard(text, open_=(*PAIR, item("missing_parameter", 7), LONG_ORDERS))
    for option in ("SPARE", "SEARCH"):
        verified(ProposedReply(resume_token="w1", option_id=option), Resumption(open=(GUIDE,)), text)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    "text", ["不，谢谢", "不是，谢谢", "no, bye", "第一个，不对", "谢谢，再见", "thanks, bye"]
)
def test_the_only_thing_offered_is_not_taken_by_a_no_or_a_good_bye(text: str) -> None:
    taken, _ = answered(text, item("entity_choice", candidates=(BLUE,)))
    assert taken is None or taken.how != "choice"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("第二个，不急", []),
        ("the second one, no rush", []),
        ("第二个，无线耳机", ["无线耳机"]),
    ],
)
def test_what_merely_holds_a_negation_takes_no_answer_back(text: str, left: list[str]) -> None:
    taken, rest = answered(text, item("entity_choice"))
    assert taken is not None
    assert (taken.how, taken.option_id, rest) == ("choice", "B-2", left)
