"""Did the customer ask this, or did something else in the dialogue?

A model reads the whole dialogue, and an assistant's earlier reply may quote a document that somebody else wrote. A
sub-question whose words come from there, and not from the customer, is not the customer's question: without it an
instruction planted in a document could come back as a request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_HAN_RUN = r"[\u3400-\u9fff]{2,}"
_WORD = r"[a-z0-9_]{4,}"
_MOSTLY = 0.6


def is_planted(sub_question: str, customer: str, others: str) -> bool:
    """Whether the sub-question shares no telling word with what the customer wrote, and most of its own with what
    others wrote. A mere paraphrase shares words with neither and stays."""
    asked = _words(sub_question)
    if not asked or asked & _words(customer):
        return False
    return len(asked & _words(others)) >= _MOSTLY * len(asked)


def _words(text: str) -> frozenset[str]:
    """Latin words of four letters or more, and pairs of neighbouring Chinese characters."""
    folded = text.casefold()
    return frozenset({*re.findall(_WORD, folded), *_pairs(re.findall(_HAN_RUN, folded))})


def _pairs(runs: Iterable[str]) -> set[str]:
    return {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
