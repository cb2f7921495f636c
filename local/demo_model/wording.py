"""What two texts share on their surface, without knowing any language well.

Sentence vectors blur names, numbers and product words; shared words are the counterweight. Chinese is compared by
character pairs, Latin script by crudely stemmed words, so one measure serves zh-CN and en.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_RUN = re.compile(r"[\u3400-\u9fff]+|[a-z0-9]+(?:'[a-z]+)?")
_HAN = re.compile(r"[\u3400-\u9fff]")
# words that say how one asks, not about what
_EMPTY_WORD = re.compile(
    r"a|an|the|i|me|my|we|us|our|you|your|it|its|is|are|was|were|be|been|am|do|does|"
    r"did|can|could|may|might|shall|should|will|would|must|of|to|in|on|at|for|from|with|"
    r"by|as|and|or|if|that|this|these|those|there|here|what|when|where|which|who|whom|"
    r"how|why|please|tell|want|need|like|know|get|got|have|has|had|im|id|ill|any|some|"
    r"about|into|so|just|also|then|not"
)
_EMPTY_CHARACTERS = frozenset("的了吗呢吧啊呀么是在有我你您他她它们这那就都也还请很到会要能可以")
_SUFFIXES = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ies",
    "ied",
    "ers",
    "er",
    "es",
    "ed",
    "s",
    "y",
)
_SHORTEST_STEM = 3


def is_mostly_chinese(text: str) -> bool:
    """Whether a reader would call the text Chinese: one Han character weighs about as much as four letters."""
    han = len(_HAN.findall(text))
    latin = sum(1 for character in text if character.isascii() and character.isalpha())
    return han > 0 and han * 4 >= latin


def stem(word: str) -> str:
    """Cut common English endings, so that ``refunds`` and ``refunding`` meet."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word[: -len(suffix)]
    return word


@lru_cache(maxsize=2048)
def terms(text: str) -> frozenset[str]:
    """The set of comparable terms: Han character pairs (single ones too), stems of words, numbers."""
    found: set[str] = set()
    for run in _RUN.findall(text.lower()):
        if _HAN.match(run):
            found.update(run[i : i + 2] for i in range(len(run) - 1) if not _is_empty_pair(run[i : i + 2]))
            if len(run) == 1 and run not in _EMPTY_CHARACTERS:
                found.add(run)
        elif not _EMPTY_WORD.fullmatch(word := run.replace("'", "")):
            found.add(stem(word))
    return frozenset(found)


def _is_empty_pair(pair: str) -> bool:
    return all(character in _EMPTY_CHARACTERS for character in pair)


def rarity(groups: Iterable[frozenset[str]]) -> dict[str, float]:
    """How telling each term is: ``ln(1 + groups / groups that hold it)``, larger when fewer groups hold it."""
    sets = list(groups)
    held = Counter(term for group in sets for term in group)
    return {term: math.log1p(len(sets) / count) for term, count in held.items()}


def shared_weight(question: frozenset[str], text: frozenset[str], weights: Mapping[str, float]) -> float:
    """Weight of the question's terms that the text holds, as a share of all the question's terms: 0 … 1.

    A term unknown to ``weights`` counts as much as the rarest known one: it may be the very point of the question.
    """
    unknown = max(weights.values(), default=1.0)
    total = sum(weights.get(term, unknown) for term in question)
    return sum(weights.get(term, unknown) for term in question & text) / total if total else 0.0


def likeness(left: frozenset[str], right: frozenset[str], weights: Mapping[str, float]) -> float:
    """Weighted Dice coefficient of two term sets: 0 (nothing shared) … 1 (the same terms)."""
    unknown = max(weights.values(), default=1.0)
    mass = sum(weights.get(term, unknown) for side in (left, right) for term in side)
    return 2 * sum(weights.get(term, unknown) for term in left & right) / mass if mass else 0.0
