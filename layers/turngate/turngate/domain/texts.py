"""What can be told of a text without understanding it, and choosing the words for a language.

Matching of fixed phrases compares normalised forms, so that width, case, punctuation, emoji and a softening particle
do not matter, while nothing that changes the meaning is dropped: 吗, 呢 and 吧 turn statements into questions and stay.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turngate.domain.shapes import Language, Texts

_HAN = r"[\u3400-\u9fff\U00020000-\U0003134f]"
_LETTERS_PER_HAN = 4  # a Chinese character says about as much as four Latin letters
_SOFTENERS = "啊呀哦哈啦哟嘛"
_VARIATION = "\ufe0e\ufe0f"  # choose how an emoji is drawn
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
_SENTENCE_END = r"[。！？!?；;\n]|\.(?=\s)"
_CODE_WORD = r"(?a:\b(?:[A-Za-z]+[-_]?)?\d[\w-]*)"
_ELLIPSIS = "…"


def normalised(text: str) -> str:
    """The form in which phrases are compared: NFKC, case folded, no punctuation, symbols or spaces, no softening
    particle at the end. Idempotent: folding can undo NFKC, so it is repeated until nothing changes."""
    while (once := _fold(text)) != text:
        text = once
    return text


@lru_cache(maxsize=4096)
def phrase_form(phrase: str) -> str:
    """`normalised` of a phrase that a configuration lists; every turn is compared with the same few hundred. Not for
    what somebody wrote, which has no business staying in memory."""
    return normalised(phrase)


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = "".join(c for c in folded if unicodedata.category(c)[0] not in "PSZC" and c not in _VARIATION)
    return kept.rstrip(_SOFTENERS) or kept


def printable(text: str) -> str:
    """The text with a space for each control character that is no tab or line end. JSON writes such a character in six
    bytes, so a message of them would not fit into a frame."""
    return re.sub(_CONTROL, " ", text)


def detect_language(text: str, default: Language) -> Language:
    """The language to answer in: by the share of Chinese characters, `default` where no letter is found."""
    han = len(re.findall(_HAN, text))
    latin = sum(1 for c in text if c.isascii() and c.isalpha())
    if not han and not latin:
        return default
    return "zh-CN" if han * _LETTERS_PER_HAN >= latin else "en"


def has_words(text: str) -> bool:
    """Whether a text has letters that are no part of a code or a number."""
    bare = re.sub(_CODE_WORD, " ", unicodedata.normalize("NFKC", text))
    return any(character.isalpha() for character in bare)


def say(texts: Texts, language: Language, default: Language) -> str:
    """The text in `language`, else in `default`, else in any language; empty when there is none."""
    return texts.get(language) or texts.get(default) or next(iter(texts.values()), "")


def cut(text: str, limit: int) -> str:
    """At most `limit` (≥ 3) UTF-8 bytes of the text, ended after a whole sentence where the second half of what
    fits has one, and marked with … when something is missing."""
    if len(text.encode()) <= limit:
        return text
    head = text.encode()[: limit - len(_ELLIPSIS.encode())].decode(errors="ignore")
    ends = [match.end() for match in re.finditer(_SENTENCE_END, head) if match.end() * 2 >= len(head)]
    return (head[: ends[-1]] if ends else head).rstrip() + _ELLIPSIS
