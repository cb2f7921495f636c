"""What a paraphrase may not lose or turn around beside numbers and negations: names and directions."""

from __future__ import annotations

import pytest

from tests.unit.assistant_example import asks, governed
from turngate.domain.figures import names_in, names_kept, turns_around
from turngate.domain.understanding import read_understanding


@pytest.mark.covers("F-065")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("检查 dine_in 打印机", {"dinein"}),
        ("Turngate Watch 怎么连 Wi-Fi", {"turngatewatch", "wifi"}),
        ("《退货规则》在哪", {"退货规则"}),
        ('the "blue one" please', {"blueone"}),
        ("where is my Watch", set()),
        ("查一下订单", set()),
    ],
)
def test_names_are_what_is_quoted_joined_or_latin_inside_chinese(text: str, names: set[str]) -> None:
    assert names_in(text) == names


@pytest.mark.parametrize(
    ("original", "wording", "kept"),
    [
        ("检查 dine_in 打印机", "检查打印机 dine_in 的状态", True),
        ("检查 dine_in 打印机", "检查打印机的状态", False),
        ("Wi-Fi 连不上", "wifi 无法连接", True),
        ("iPhone 怎么连", "手机怎么连", False),
    ],
)
def test_a_name_may_be_written_differently_but_not_be_lost(original: str, wording: str, kept: bool) -> None:
    assert names_kept(original, wording) is kept


@pytest.mark.covers("F-065")
@pytest.mark.parametrize(
    ("original", "wording", "turned"),
    [
        ("降噪怎么打开", "怎么关闭降噪", True),
        ("降噪怎么打开", "如何开启降噪", False),
        ("先打开再关闭怎么弄", "怎么关闭", False),
        ("怎么打开", "怎么打开和关闭", False),
        ("How do I turn on ANC", "how to disable ANC", True),
        ("the parcel I sent", "the parcel they received", True),
        ("我要换货", "怎么退货", True),
        ("退款", "到账", False),
    ],
)
def test_the_opposite_direction_is_noticed_and_both_together_are_none(
    original: str, wording: str, turned: bool
) -> None:
    assert turns_around(original, wording) is turned


@pytest.mark.covers("F-065")
@pytest.mark.parametrize(
    ("original", "wording", "drift"),
    [
        ("检查 dine_in 打印机", "检查打印机", ("name_lost",)),
        ("降噪怎么打开", "怎么关闭降噪", ("direction_changed",)),
    ],
)
def test_lost_names_and_turned_directions_bring_back_the_original(
    original: str, wording: str, drift: tuple[str, ...]
) -> None:
    answer = {
        "rewritten": wording,
        "sub_questions": [{"text": wording, "candidates": [{"id": "TUNE_UP", "score": 0.9}]}],
    }
    reading = read_understanding(answer, governed(), asks(original))
    assert (reading.drift, reading.understanding.drift) == (drift, drift)
    assert [sub.text for sub in reading.understanding.sub_questions] == [original]


def test_an_answer_left_out_of_the_sub_questions_is_no_drift() -> None:
    """ "要 B-2，退款多久" answers one question and asks another: the other does not have to repeat the answer."""
    answer = {
        "rewritten": "退款多久",
        "sub_questions": [{"text": "退款多久", "candidates": [{"id": "RETURN_POLICY", "score": 0.9}]}],
        "reply": {"resume_token": "w1", "option_id": "B-2", "value": ""},
    }
    reading = read_understanding(answer, governed(), asks("还是要 B-2 那辆 29 寸的，退款多久"))
    assert reading.drift == ()
    assert [sub.text for sub in reading.understanding.sub_questions] == ["退款多久"]
    assert reading.understanding.reply is not None
