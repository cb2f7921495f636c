"""What is wrong with a configuration, where, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from turngate.domain.answering_back import CANCELLED
from turngate.domain.config import RuleKind
from turngate.domain.contract import FALLBACK
from turngate.domain.shapes import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RESERVED = frozenset({FALLBACK, CANCELLED, *get_args(RuleKind)})
"""What a route names as its intent where no intent of the catalogue stands behind it."""


class Finding(Frozen):
    """`path` points into the configuration's JSON (`contract/3/resource_name`), empty for all of it. `message` says
    what is wrong and what to change."""

    code: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'configuration'}: {self.message} [{self.code}]"


def repeated(path: str, field: str, values: Iterable[str]) -> Iterator[Finding]:
    """One finding for each value that was there before. `field` (`/id`, or nothing) follows the place in the list."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            message = f"{value} appears twice: keep it once"
            yield Finding(code="duplicate_id", path=f"{path}/{index}{field}", message=message)
        seen.add(value)
