"""Finds the JSON object in a model's answer: plain, fenced, wrapped in prose, or cut off in the middle.

Models asked for JSON still say "Sure!", fence it, or run out of tokens. What was complete is kept exactly as written;
of what was cut, only an unfinished text survives (closed where it broke off), because half a number is another number.
Nothing is guessed: an answer that is not JSON up to where it breaks off gives nothing. What JSON cannot hold (NaN,
Infinity, a number out of range) or we will not (nesting beyond 32) is null, and costs nothing beside it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from msgspec import Struct

MAX_BYTES = 64 * 1024
MAX_DEPTH = 32
MAX_STARTS = 8
"""How many opening braces are tried: prose may hold some before the object. Bounds the work to 8 passes."""

_TOKEN = re.compile(
    r"""\s*+(?:(?P<string>"(?:[^"\\]++|\\.)*+")|(?P<open>[{\[])|(?P<close>[}\]])|(?P<mark>[,:])"""
    r"""|(?P<scalar>[^\s{}\[\],:"]++))""",
    re.DOTALL,
)
_SPACE = re.compile(r"\s*+")
_CLOSERS = {"{": "}", "[": "]"}
_LITERALS = frozenset({"true", "false", "null"})
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_ESCAPE = len(r"\ud83d\ude0")


class _Span(Struct, frozen=True):
    """`text` is JSON if anything here is; the search goes on at `resume`. `cut`: the answer broke off inside."""

    text: str
    resume: int
    cut: bool


_THOUGHT = "</think>"


def find_object(answer: str) -> dict[str, Any] | None:
    """The first JSON object of `answer`, or None; behind what a model thought aloud (`</think>`), if it is there.

    None too when the answer is over 64 KB of UTF-8, or breaks off before anything of the object is complete. Half a
    surrogate pair comes back as `?`, so that what is returned can always be stored and sent. A text that broke off is
    returned as far as it goes: callers must check references and ids against what they know, as they must anyway."""
    raw = answer.encode("utf-8", "replace")
    if len(raw) > MAX_BYTES:
        return None
    text = raw.decode("utf-8")
    thought, mark, said = text.rpartition(_THOUGHT)
    return (_first_object(said) or _first_object(thought)) if mark else _first_object(text)


def _first_object(text: str) -> dict[str, Any] | None:
    position = 0
    for _ in range(MAX_STARTS):
        start = text.find("{", position)
        if start < 0:
            return None
        text = _shallow(text, start)
        span = _span(text, start)
        found = _parse(span.text)
        if found or (found is not None and not span.cut):
            return found
        position = span.resume
    return None


def _shallow(text: str, start: int) -> str:
    """`text` with null for whatever nests deeper than 32 in the object that opens at `start`."""
    kept, begins = [], 0
    depth, position = 0, start
    while token := _TOKEN.match(text, position):
        position = token.end()
        if token.lastgroup == "open":
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept.append(text[begins : position - 1] + "null")
                begins = len(text)
        elif token.lastgroup == "close":
            if depth == MAX_DEPTH + 1:
                begins = position
            depth -= 1
            if depth == 0:
                break
    return "".join(kept) + text[begins:]


def _span(text: str, start: int) -> _Span:
    """The object that opens at `start`, to its end or, closed by us, to the last place where a value was complete."""
    stack = ""  # the closers still owed, innermost last
    complete, owed = start, ""  # how far the text can be kept, and what closes it there
    value_next = False
    position = start
    while token := _TOKEN.match(text, position):
        position = token.end()
        kind, word = token.lastgroup, token[token.lastgroup or 0]
        if kind == "open":
            stack += _CLOSERS[word]
            complete, owed, value_next = position, stack, word == "["
        elif kind == "close":
            if not stack.endswith(word):
                return _Span("", position, cut=True)
            stack = stack[:-1]
            if not stack:
                return _Span(text[start:position], position, cut=False)
            complete, owed, value_next = position, stack, False
        elif kind == "mark":
            value_next = word == ":" or stack.endswith("]")
        elif value_next and (kind == "string" or position < len(text) or word in _LITERALS):
            complete, owed = position, stack
    rest = _SPACE.match(text, position)
    opening = rest.end() if rest else position
    if value_next and text.startswith('"', opening):
        return _Span(
            text[start:opening] + _closed_string(text[opening + 1 :]) + stack[::-1], start + 1, cut=True
        )
    return _Span(text[start:complete] + owed[::-1], start + 1, cut=True)


def _closed_string(body: str) -> str:
    """`body` as a JSON string, without an escape (or half of a pair of them) that broke off at its end."""
    for dropped in range(_LONGEST_ESCAPE + 1):
        candidate = f'"{body[: len(body) - dropped]}"'
        try:
            value = json.loads(candidate, strict=False)
        except ValueError:
            continue
        if not value or not "\ud800" <= value[-1] <= "\udbff":
            return candidate
    return '""'


def _parse(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, strict=False, parse_constant=_null, parse_float=_finite, parse_int=_whole)
        if _SURROGATE_ESCAPE.search(text):
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _null(_constant: str) -> None:
    return None


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _whole(digits: str) -> int | None:
    """Out of range is what no float holds: other readers of JSON have nothing larger."""
    return None if _finite(digits) is None else int(digits)
