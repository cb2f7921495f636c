"""The words that texts are indexed and found by, in any language.

Search engines cut text by themselves, each in its own way and few of them Chinese; cutting it here gives every index
the same words.
"""

from __future__ import annotations

import re
import unicodedata

MAX_QUERY_WORDS = 128

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = rf"(?:(?![{_CJK}_])\w)"
_RUN = re.compile(rf"(?P<cjk>[{_CJK}]+)|{_LETTER}+(?:[-._/]{_LETTER}+)*")
_JOINT = re.compile(r"[-._/]")
_ACCENTS = re.compile("[\u0300-\u036f]")

_ENGLISH = (
    "a about am an and are as at be been being but by can could did do does for from had has have he her him his "
    "how i if in into is it its may me might mine must my no not of on or our she should so such t than that the "
    "their them then there these they this to too s us very was we were what when where which who why will with "
    "would you your just"
)
_CHINESE = "怎么 么样 什么 为什 如何 多少 多久 多长 多大 哪些 哪个 哪里 哪儿 哪种 是否 请问"
FUNCTION_WORDS = frozenset((_ENGLISH + " " + _CHINESE).split())
"""English words and pairs of Chinese characters that carry grammar and no topic. A customer's question is full of
them, a document's title is not, and together they outweigh the one word that matters: docs/retrieval.md."""


def words(text: str) -> list[str]:
    """The search words of a text, in order. Chinese, Japanese and Korean runs become overlapping pairs of characters
    (a character alone stays one); other words are folded to lower case without accents. Codes and numbers stay whole,
    and are found by their parts too: `FRA-01` gives `fra-01`, `fra`, `01`."""
    folded = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text))).casefold()
    found: list[str] = []
    for run in _RUN.finditer(folded):
        word = run[0]
        if run["cjk"]:
            found.extend([word[start : start + 2] for start in range(len(word) - 1)] or [word])
            continue
        parts = _JOINT.split(word)
        if len(parts) > 1 and any(letter.isdigit() for letter in word):
            found.append(word)
        found.extend(parts)
    return found


def query_words(query: str) -> list[str]:
    """The first MAX_QUERY_WORDS different words of a query, without function words unless it has no others."""
    different = list(dict.fromkeys(words(query)))
    return ([word for word in different if word not in FUNCTION_WORDS] or different)[:MAX_QUERY_WORDS]
