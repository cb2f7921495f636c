"""What a paraphrase may not lose or turn around beside numbers and negations: names and directions."""

from __future__ import annotations

import pytest

from tests.unit.assistant_example import asks, governed
from turngate.domain.figures import names_in, names_kept, turns_around
from turngate.domain.pending import PendingItem
from turngate.domain.shapes import Option
from turngate.domain.understanding import read_understanding


@pytest.mark.covers("F-065")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("检查 dine_in 打印机", {"dinein"}),
        ("Turngate Watch 怎么连 Wi-Fi", {"turngate", "watch", "wifi"}),
        ("《退货规则》在哪", {"退货规则"}),
        ('the "blue one" please', {"blueone"}),
        ("where is my Watch", set()),
        ("Hi 请问 the Watch 怎么连，and please，我 don't 会", {"watch"}),
        ("OK，dont know 怎么退", {"know"}),
        ("McDonald's 的券", {"mcdonald"}),
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
        ("Arch 5 Pro 多少钱", "Arch 5 多少钱", False),
        ("Arch 5 Pro 多少钱", "price of Arch 5 product", False),
        ("Arch 5 Pro 多少钱", "Arch5Pro 的价格", True),
        ("退 iPhone 15 Pro Max 的壳", "退 iPhone15ProMax 手机壳", True),
        ("iPhone15ProMax 的壳", "iPhone 15 Pro Max 手机壳", True),
        ("iOS 连不上", "how to pair my iOS device", True),
        ("那个 Arch 5 多少钱，then 怎么退", "Arch 5 多少钱 怎么退", True),
        ("我想问 shipping fee 多少 and warranty 多久", "shipping fee 多少 warranty 多久", True),
    ],
)
def test_a_name_may_be_written_differently_but_not_be_lost(original: str, wording: str, kept: bool) -> None:
    assert names_kept(original, wording) is kept


def test_a_wording_that_runs_a_whole_page_of_names_together_is_none() -> None:
    names = [f"name{'x' * n}y" for n in range(33)]
    assert names_kept(f"比较 {' '.join(names[:32])}", "比较" + "".join(names[:32]))
    assert not names_kept(f"比较 {' '.join(names)}", "比较" + "".join(names))


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


@pytest.mark.covers("F-065")
@pytest.mark.parametrize(
    ("original", "subs"),
    [
        ("Hi 请问怎么退货，保修多久", ("怎么退货", "保修多久")),
        ("退货要几天 and how long is warranty", ("退货要几天", "how long is warranty")),
        ("我想问 shipping fee 多少 and warranty 多久", ("shipping fee 多少", "warranty 多久")),
        ("OK，please 查物流，thanks，再查保修 lol", ("查物流", "查保修")),
    ],
)
def test_courtesy_and_grammar_in_the_other_language_do_not_undo_a_split(
    original: str, subs: tuple[str, ...]
) -> None:
    candidates = [{"id": "TUNE_UP", "score": 0.9}]
    answer = {"rewritten": "x", "sub_questions": [{"text": t, "candidates": candidates} for t in subs]}
    reading = read_understanding(answer, governed(), asks(original))
    assert reading.drift == ()
    assert tuple(sub.text for sub in reading.understanding.sub_questions) == subs


WAITING = PendingItem(
    pending_id="q1",
    kind="entity_choice",
    text="Which?",
    question="Q",
    candidates=(Option(id="B-2", name="29 寸"),),
    resume_token="w1",
    run="r",
    asked_seq=1,
    expires_at=2_000_000_000_000,
)


def test_an_answer_left_out_of_the_sub_questions_is_no_drift() -> None:
    """ "要 B-2，退款多久" answers one question and asks another: the other does not have to repeat the answer."""
    answer = {
        "rewritten": "退款多久",
        "sub_questions": [{"text": "退款多久", "candidates": [{"id": "RETURN_POLICY", "score": 0.9}]}],
        "reply": {"resume_token": "w1", "option_id": "B-2", "value": ""},
    }
    spoken = asks("还是要 B-2 那辆 29 寸的，退款多久")
    reading = read_understanding(answer, governed(), spoken, waiting=[WAITING])
    assert reading.drift == ()
    assert [sub.text for sub in reading.understanding.sub_questions] == ["退款多久"]
    assert reading.understanding.reply is not None


@pytest.mark.parametrize(
    "reply", [{"resume_token": "w7", "option_id": "B-2"}, {"resume_token": "w1", "option_id": "X"}]
)
@pytest.mark.parametrize("waiting", [(), (WAITING,)])
def test_a_reply_that_answers_nothing_does_not_hide_drift(reply, waiting) -> None:
    answer = {
        "rewritten": "可以退货",
        "sub_questions": [{"text": "可以退货", "candidates": [{"id": "RETURN_POLICY", "score": 0.9}]}],
        "reply": reply,
    }
    reading = read_understanding(answer, governed(), asks("7 天后不能退货吗"), waiting=waiting)
    assert reading.drift == ("number_lost", "negation_lost")
    assert [sub.text for sub in reading.understanding.sub_questions] == ["7 天后不能退货吗"]
