"""A rough token count: enough to fill ``usage`` and to honour ``max_tokens``, never a bill."""

from __future__ import annotations

import re

# one Han character is about one token, four other characters are about one
_UNIT = re.compile(r"[\u3400-\u9fff]|[^\u3400-\u9fff]{1,4}", re.DOTALL)


def count(text: str) -> int:
    """Rough number of tokens in the text."""
    return sum(1 for _ in _UNIT.finditer(text))


def cut(text: str, limit: int) -> str:
    """The text's first ``limit`` rough tokens: what a model's output looks like when it hits its limit."""
    units = _UNIT.findall(text)
    return text if len(units) <= limit else "".join(units[:limit])
