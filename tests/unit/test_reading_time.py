"""What customers and models write is read in linear time, however it repeats itself: the reader runs in every turn."""

from __future__ import annotations

import itertools
import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.unit.assistant_example import asks, governed
from turngate.domain import figures
from turngate.domain.anchoring import Said
from turngate.domain.json_repair import MAX_BYTES, find_object
from turngate.domain.shapes import HistoryMessage
from turngate.domain.understanding import read_understanding

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGE = 16 * 1024
PIECES = (
    *("一", "a", "1", "_", "-", "'", " ", "A", "\u201c", "《a", "百", "万", "不", "第一个", "我想"),
    *(
        "a-",
        "a_",
        "a1",
        "a1-",
        "Aa",
        "aB ",
        "1,",
        "1,000",
        "1.",
        "一 ",
        "一a",
        "'a",
        "twenty-",
        "don't ",
        "一'1a_-",
    ),
)


def cpu(job: Callable[[], object]) -> float:
    """The least of three, in seconds: what others do on this machine only ever adds."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        job()
        spent.append(time.process_time() - began)
    return min(spent)


def grows_linearly(job: Callable[[str], object], piece: str, size: int) -> bool:
    """Four times the text costs at most six times as much. Below half a millisecond the clock says nothing."""
    small, large = ((piece * size)[:length] for length in (size // 4, size))
    return cpu(lambda: job(large)) <= 6 * max(cpu(lambda: job(small)), 0.0005)


def everything(text: str) -> None:
    """Each text is compared with one that has lost its end, so that no short cut is taken."""
    named = f"{text} 字"
    for read in (figures.numbers_in, figures.codes_in, figures.negates, figures.names_in, figures.words_in):
        read(named)
    figures.names_kept(named, text[:-9])
    figures.turns_around(named, text[:-9])
    said = Said(named, named, text[:-9])
    said.is_planted(text[9:])
    said.is_foreign(text[9:])


@pytest.mark.parametrize("piece", PIECES)
def test_a_customers_text_is_looked_at_in_linear_time(piece: str) -> None:
    assert grows_linearly(everything, piece, MESSAGE)


@pytest.mark.parametrize("piece", ["一", "a", "1", "_a", "a-", "'", "一'1a_-"])
def test_a_message_and_a_reading_of_its_length_take_linear_time(piece: str) -> None:
    def job(text: str) -> None:
        answer = {"rewritten": text, "sub_questions": [{"text": text, "candidates": []}]}
        history = (HistoryMessage(role="assistant", text=text),)
        assert read_understanding(answer, governed(), asks(text), history).understanding.sub_questions

    assert grows_linearly(job, piece, MESSAGE)


@pytest.mark.parametrize(
    "entry",
    [
        '{"text":"退%d","candidates":[]},',
        '{"text":"退","candidates":[]},',
        '{"text":"x%d","candidates":[{"id":"RETURN_POLICY","score":%d}]},',
        '{"text":"调用 getOrder","candidates":[{"id":"RETURN_POLICY","score":0.5}]},',
        '{"text":5},',
        "[[[]]],",
        "NaN,",
        "1e999,",
        "9999999999,",
        "[" * 30,
        "[" * 40 + "]" * 40 + ",",
        '{"a":' * 40 + "1" + "}" * 40 + ",",
    ],
)
def test_a_models_answer_is_read_in_linear_time(entry: str) -> None:
    history = (HistoryMessage(role="assistant", text="调用 getOrder " * 99),)

    def job(text: str) -> None:
        found = find_object(text)
        assert found is not None
        read_understanding(found, governed(), asks("那这个怎么退货"), history)

    def answer(size: int) -> str:
        """Cut off, as by an endpoint's limit, after the last entry that fits into `size` bytes."""
        head = '{"rewritten":"x","sub_questions":['
        written, left = [head], size - len(head)
        for number in itertools.count():
            written.append(entry.replace("%d", str(number)))
            left -= len(written[-1].encode())
            if left < 0:
                return "".join(written[:-1])
        return ""

    small, large = answer(MAX_BYTES // 4), answer(MAX_BYTES)
    assert cpu(lambda: job(large)) <= 6 * max(cpu(lambda: job(small)), 0.0005)


@pytest.mark.parametrize("digits", ["9", "1.", "0.0", "-1", "1e9"])
def test_a_number_as_long_as_an_answer_takes_linear_time(digits: str) -> None:
    def job(text: str) -> None:
        find_object(f'{{"a": [{text}], "b": 1}}')

    first, rest = digits[:1], digits[1:] or digits
    assert grows_linearly(lambda text: job(first + text), rest, MAX_BYTES - 100)


def test_a_text_of_an_answer_may_be_as_long_as_the_answer() -> None:
    def job(text: str) -> None:
        document = json.dumps({"sub_questions": [{"text": text, "candidates": []}]})
        found = find_object(document)
        assert found is not None
        read_understanding(found, governed(), asks("x" * len(text)))

    assert grows_linearly(job, "a1", MAX_BYTES - 100)
