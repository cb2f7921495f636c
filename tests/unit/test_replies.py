"""Short replies told apart by their form, and nothing else taken for one."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.assistant_example import patient
from turngate.domain.replies import clauses, core, courteous, points_at_nothing, read_form, says_nothing


@pytest.mark.covers("F-036", "F-041")
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("第二个", 2),
        ("第二个吧。", 2),
        ("我要第二台，谢谢", 2),
        ("选2", 2),
        ("2", 2),
        ("２", 2),
        ("二", 2),
        ("第一票", 1),
        ("方案二", 2),
        ("2号", 2),
        ("第10个", 10),
        ("前者", 1),
        ("前面那个", 1),
        ("the second one", 2),
        ("Second please", 2),
        ("I'll take the 3rd one", 3),
        ("number 2", 2),
        ("option two", 2),
        ("the former", 1),
        ("two", 2),
        ("2️⃣", 2),
        ("<b>2</b>", 2),
        ("还是第二个吧", 2),
        ("嗯嗯 第二个", 2),
        ("2 2", 2),
    ],
)
def test_ordinals_in_both_languages(text: str, number: int) -> None:
    assert read_form(text) == ("ORDINAL", number, ())


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("第一个和第二个", (1, 2)),
        ("1,2", (1, 2)),
        ("1、3", (1, 3)),
        ("1 2", (1, 2)),
        ("the first and the last", (1, -1)),
        ("第一个和第二个都要", (1, 2)),
        ("both the first and the second", (1, 2)),
    ],
)
def test_several_places_are_several(text: str, numbers: tuple[int, ...]) -> None:
    assert read_form(text) == ("SEVERAL", 0, numbers)


@pytest.mark.covers("F-037")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("最后一个", "LAST"),
        ("the last one", "LAST"),
        ("后者", "LAST"),
        ("就这个", "THIS"),
        ("这个", "THIS"),
        ("that one", "THIS"),
        ("是的", "YES"),
        ("ok", "YES"),
        ("不是", "NO"),
        ("都不是", "NONE"),
        ("都不是我要的", "NONE"),
        ("none of these", "NONE"),
        ("neither", "NONE"),
        ("算了", "CANCEL"),
        ("不用了，谢谢", "CANCEL"),
        ("Never mind.", "CANCEL"),
        ("forget it", "CANCEL"),
        ("取消", "CANCEL"),
        ("算了不查了", "CANCEL"),
        ("不用了，没事了", "CANCEL"),
        ("never mind, forget it", "CANCEL"),
        ("the last one pls", "LAST"),
        ("后面那个", "LAST"),
        ("both", "ALL"),
        ("both of them please", "ALL"),
        ("都要", "ALL"),
        ("我全都要", "ALL"),
        ("都", "OTHER"),
        ("好的好的", "YES"),
        ("yes please", "YES"),
        ("something else", "NONE"),
        ("两个都查", "ALL"),
        ("all of them", "ALL"),
        ("随便", "ANY"),
        ("都可以", "ANY"),
        ("I don't know", "ANY"),
        ("不知道", "ANY"),
        ("第一个或者第二个", "ANY"),
        ("稍等，我找找", "WAIT"),
        ("hold on", "WAIT"),
        ("取消订单", "OTHER"),
        ("01", "OTHER"),
        ("第一个订单", "OTHER"),
        ("不是第一个", "OTHER"),
        ("第二个订单到哪了", "OTHER"),
        ("退款多久到账", "OTHER"),
        ("cancel my order", "OTHER"),
        ("two watches", "OTHER"),
        ("买两台手机", "OTHER"),
        ("", "OTHER"),
        ("？？", "OTHER"),
    ],
)
def test_other_forms(text: str, kind: str) -> None:
    assert read_form(text).kind == kind


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("第二个，另外退款多久到账？", [("第二个", "另外退款多久到账？"), ("另外退款多久到账？", "")]),
        (
            "never mind. How long do refunds take?",
            [("never mind", "How long do refunds take?"), ("How long do refunds take?", "")],
        ),
        ("第二个，", [("第二个", "")]),
        ("1,299元的手机有货吗", [("1,299元的手机有货吗", "")]),
        ("1. 退货要几天\n2. 运费多少", []),
        ("2、运费多少", []),
    ],
)
def test_a_text_is_taken_apart_at_its_marks_but_not_in_its_numbers_nor_as_a_list(
    text: str, parts: list[tuple[str, str]]
) -> None:
    assert list(clauses(text)) == parts


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "好的",
        "好的，谢谢",
        "再见",
        "算了",
        "never mind",
        "不用了",
        "Thanks a lot!",
        "ok bye",
        "no thanks",
        "嗯",
    ],
)
def test_courtesy_is_told_by_its_words(text: str) -> None:
    assert courteous(text)


@pytest.mark.parametrize(
    "text",
    [
        "取消",
        "confirm",
        "确认",
        "好的手机",
        "no",
        "那",
        "good phone",
        "谢谢，退货要几天",
        "",
        "不要了",
        "help",
    ],
)
def test_what_may_be_about_something_is_no_courtesy(text: str) -> None:
    assert not courteous(text)


@pytest.mark.covers("F-042", "F-093")
@pytest.mark.parametrize(
    "text", ["那个呢", "就这个", "第二个", "2", "and that one?", "它呢", "this one", "both", "随便", "1 or 2"]
)
def test_what_only_points_means_nothing_by_itself(text: str) -> None:
    assert points_at_nothing(text)


@pytest.mark.parametrize("text", ["那个手机多少钱", "谢谢", "是的", "that phone", "退货"])
def test_what_says_something_does_not_only_point(text: str) -> None:
    assert not points_at_nothing(text)


@pytest.mark.covers("F-093")
@pytest.mark.parametrize(
    "text",
    [
        "我想问一下就是",
        "那个……帮我弄一下",
        "麻烦您帮我看一下",
        "I just want to ask something",
        "Could you help me with this?",
    ],
)
def test_courtesy_alone_says_nothing(text: str) -> None:
    assert says_nothing(text)


@pytest.mark.parametrize(
    "text", ["我想退货", "帮我查订单", "看一下物流", "help", "can you fix a chain", "check 7", "", "订单"]
)
def test_a_word_of_the_matter_says_something(text: str) -> None:
    assert not says_nothing(text)


def test_the_core_of_a_choice_is_what_a_name_is_compared_with() -> None:
    assert [core(text) for text in ("退货的", "我要退货吧", "the blue one please")] == [
        "退货",
        "退货",
        "blue",
    ]


@patient
@given(st.text(max_size=60))
def test_any_text_has_a_form_and_only_ordinals_have_a_number(text: str) -> None:
    form = read_form(text)
    assert (form.number > 0) == (form.kind == "ORDINAL")
    assert read_form(text) == form


@pytest.mark.parametrize(
    "text",
    [
        "那就" * 16,
        "请帮我" * 10,
        "iwant" * 6,
        "的那个" * 10,
        "一" * 5000,
        "the" * 10,
        "那那那个" * 8,
        "帮我帮" * 500,
        "1" + " " * 8000 + "2",
        "1," * 4000,
        "好的" * 2000,
        "第一个，" * 1000,
    ],
)
def test_no_text_makes_reading_slow(text: str) -> None:
    read_form("第一个")  # compiles the patterns
    started = time.process_time()
    read_form(text)
    points_at_nothing(text)
    courteous(text)
    list(clauses(text))
    assert time.process_time() - started < 0.25
