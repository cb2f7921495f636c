"""Did the customer ask this, or did something else in the dialogue?

A model reads the whole dialogue, and an assistant's earlier reply may quote a document that somebody else wrote. A
sub-question whose words come from there, and not from the customer, is not the customer's question: without it an
instruction planted in a document could come back as a request.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from turngate.domain.figures import codes_in, names_in, numbers_in, words_in

if TYPE_CHECKING:
    from collections.abc import Iterable

_HAN_RUN = r"[\u3400-\u9fff]{2,}"
_WORD = r"[a-z0-9_]{4,}"
_LETTERS = r"[\u3400-\u9fff]|[a-z0-9]+"
_MOSTLY = 0.6
_POINTS = (
    "[这那](?:一|两|几)?[个些种款条项台件张部份样里边儿点步]|它|前者|后者|上面|上述|前面|刚才|第[一二两三四五六七八九十0-9]{1,3}[个些种款条项点步]"
    r"|\b(?:this|that|these|those|it|its|they|them|former|latter|(?:first|second|third|last|other|next)(?= one))\b"
)


class Said:
    """Who said what in a dialogue: `message` is the turn's own, `customer` all of the customer's, `others` what
    everybody else wrote."""

    def __init__(self, message: str, customer: str, others: str) -> None:
        self._customer, self._others = _words(customer), _words(others)
        self._letters = _letters(customer)
        self._points = re.search(_POINTS, message.casefold()) is not None
        self._all_said = f"{customer}\n{others}"

    def is_planted(self, sub_question: str) -> bool:
        """Whether the sub-question shares no telling word with what the customer wrote, and most of its own with what
        others wrote. A mere paraphrase shares words with neither and stays. Where the message points ("那这个呢"), the
        words of others may be what it points at: then only what states a number, a code or a name that nobody said
        is planted."""
        asked = _words(sub_question)
        if not asked or asked & self._customer or len(asked & self._others) < _MOSTLY * len(asked):
            return False
        return not self._points or not _stated(sub_question) <= self._stated

    @cached_property
    def _stated(self) -> frozenset[str]:
        return _stated(self._all_said) | words_in(self._all_said)

    def is_foreign(self, sub_question: str) -> bool:
        """Whether it shares not one word or Chinese character with what the customer wrote."""
        return not _letters(sub_question) & self._letters


def _words(text: str) -> frozenset[str]:
    """Latin words of four letters or more, and pairs of neighbouring Chinese characters."""
    folded = text.casefold()
    return frozenset({*re.findall(_WORD, folded), *_pairs(re.findall(_HAN_RUN, folded))})


def _pairs(runs: Iterable[str]) -> set[str]:
    return {run[at : at + 2] for run in runs for at in range(len(run) - 1)}


def _letters(text: str) -> frozenset[str]:
    return frozenset(re.findall(_LETTERS, text.casefold()))


def _stated(text: str) -> frozenset[str]:
    return numbers_in(text) | codes_in(text) | names_in(text)
