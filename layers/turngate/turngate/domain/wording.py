"""Texts compared by their words: what one spells out of another, what it is made of, and what the two have in common.

Latin words and codes match whole: "hi" is no part of "Membership", and "A100" none of "A1001". Chinese has no spaces,
so a part of two characters or more may stand for a whole.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from turngate.domain.search_words import FUNCTION_WORDS
from turngate.domain.texts import normalised

_LONGEST_MADE = 64
_HAN = "[\u3400-\u9fff]"
_OF_SENTENCES = (
    "all also any else get hi like more need new one other out please show some something those up want yes"
    " 我的 我想 我要 想要 想问 问一 一下 这个 那个 你们 我们 可以 能不 不能 有没 没有 需要 帮我 时候 几天 现在 还有"
    " 是不 不是 的话"
)
_NO_TOPIC = FUNCTION_WORDS | frozenset(_OF_SENTENCES.split())
"""What makes a sentence of a customer's and carries no topic."""


class Spelled(NamedTuple):
    """`form`: the normalised text. `edges`: the places of `form` where a word may begin or end: everywhere but within
    a Latin word or a code."""

    form: str
    edges: frozenset[int]


def spelled(text: str) -> Spelled:
    """The normalised form of a text that still knows where its words were apart."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept: list[str] = []
    edges, apart = {0}, False
    for character in folded:
        if normalised(character) == "":
            apart = apart or not (character in "-_" and kept and _is_latin(kept[-1]))
            continue
        if kept and (apart or not (_is_latin(character) and _is_latin(kept[-1]))):
            edges.add(len(kept))
        kept.append(character)
        apart = False
    return Spelled("".join(kept), frozenset(edges | {len(kept)}))


def _is_latin(character: str) -> bool:
    return character.isalnum() and not re.match(_HAN, character)


def places_of(form: str, within: Spelled) -> tuple[int, ...]:
    """Where a normalised form stands in a text as whole words."""
    found, at = [], within.form.find(form) if form else -1
    while at >= 0:
        if at in within.edges and at + len(form) in within.edges:
            found.append(at)
        at = within.form.find(form, at + 1)
    return tuple(found)


def made_of(form: str, vocabulary: frozenset[str]) -> bool:
    """Whether a normalised form is nothing but words of the vocabulary, one after the other. At most 64 characters."""
    if not 0 < len(form) <= _LONGEST_MADE:
        return False
    reached = [True] + [False] * len(form)
    longest = max(map(len, vocabulary))
    for end in range(1, len(form) + 1):
        starts = range(max(0, end - longest), end)
        reached[end] = any(reached[start] and form[start:end] in vocabulary for start in starts)
    return reached[-1]


def topic_words(text: str) -> frozenset[str]:
    """The words that carry a topic: Latin words and codes, and pairs of neighbouring Chinese characters, without the
    ones that only make a sentence."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    latin = {word for word in re.findall(r"[^\W_\u3400-\u9fff]+", folded) if len(word) > 1 or word.isdigit()}
    runs = re.findall(f"{_HAN}{{2,}}", folded)
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    return frozenset((latin | pairs) - _NO_TOPIC)
