"""Finds the sentences of a document that can be quoted: verbatim, without list marks, headings kept apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

from local.demo_model.wording import is_mostly_chinese

_HEADING = re.compile(r"\s*#{1,6}\s+(?P<text>.+?)\s*#*\s*")
_LIST_MARK = re.compile(r"\s*(?:[-*+•>]\s+|\d{1,3}[.)、]\s*(?!\d)|[|]\s*)*")
_RULE = re.compile(r"[\s|:\-=_*]*")
# a full stop ends a sentence only before a space, closing quotes and brackets stay with their sentence
_SENTENCE = re.compile(r".*?(?:[。！？!?；;]+[”’」』）)\"']*|\.[”’)\"']*(?=\s|$)|$)\s*")
_SHORTEST = 2


@dataclass(frozen=True)
class Sentence:
    """A verbatim piece of the text and the nearest heading above it (empty when there is none)."""

    text: str
    heading: str
    chinese: bool


def quotable(text: str) -> list[Sentence]:
    """All sentences in order. Semicolons end one too: a clause of a rule is worth quoting alone."""
    found: list[Sentence] = []
    heading = ""
    for line in text.splitlines():
        if titled := _HEADING.fullmatch(line):
            heading = titled["text"]
            continue
        mark = _LIST_MARK.match(line)
        rest = line[mark.end() :] if mark else line
        if _RULE.fullmatch(rest):
            continue
        for piece in _SENTENCE.findall(rest):
            bare = piece.strip().strip("*").strip()
            if sum(1 for character in bare if character.isalnum()) >= _SHORTEST:
                found.append(Sentence(bare, heading, is_mostly_chinese(bare)))
    return found


def join(quotes: list[str]) -> str:
    """Quotes one after the other; a semicolon stands where a quote has no end mark of its own, and none at the end."""
    joined = ""
    for quote in quotes:
        if joined:
            chinese = is_mostly_chinese(joined[-1] + quote)
            if joined[-1].isalnum() or joined[-1] in "，,:：":
                joined += "；" if chinese else ";"
            joined += "" if chinese else " "
        joined += quote
    return joined.rstrip("；;")
