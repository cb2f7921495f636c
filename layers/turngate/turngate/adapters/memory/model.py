"""A model that says what it was told to say."""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from turngate.domain.json_repair import find_object
from turngate.domain.shapes import Usage
from turngate.errors import BrokenInvariantError, ModelUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class ModelCall:
    system: str
    user: str
    schema_name: str
    schema: Mapping[str, Any]
    timeout_s: float


class ScriptedModelClient:
    """Replays `answers` in order and remembers what it was asked in `calls`.

    An answer is an object, a raw text (read as a real model's would be: prose gives `empty`), or an exception to
    raise. A call beyond the script is a BrokenInvariantError at once; answers nobody asked for are one when the `with`
    block ends, so that a test notices both."""

    def __init__(self, answers: Iterable[Mapping[str, Any] | str | Exception] = ()) -> None:
        self.calls: list[ModelCall] = []
        self._answers = deque(answers)

    def complete_json(
        self, *, system: str, user: str, schema_name: str, schema: Mapping[str, Any], timeout_s: float
    ) -> tuple[dict[str, Any], Usage]:
        """Costs one call and no tokens."""
        self.calls.append(ModelCall(system, user, schema_name, copy.deepcopy(schema), timeout_s))
        if not self._answers:
            raise BrokenInvariantError(f"unexpected model call {len(self.calls)} ({schema_name})")
        answer = self._answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        found = find_object(answer) if isinstance(answer, str) else copy.deepcopy(dict(answer))
        if found is None:
            raise ModelUnavailableError("empty", "no JSON object")
        return found, Usage(model_calls=1)

    def assert_used(self) -> None:
        """Raises BrokenInvariantError while answers are left."""
        if self._answers:
            raise BrokenInvariantError(f"{len(self._answers)} scripted answers were never asked for")

    def __enter__(self) -> ScriptedModelClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.assert_used()
