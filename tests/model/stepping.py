"""How a driver of the product is taken apart into steps: it runs over a store that replays the answers it got so far
and stops it at its next call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from turngate.domain import keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turngate.domain.transaction import Item, Key, Transaction

IDLE, FRESH = 0, 1
"""Local states: not started, and at the beginning of (another) attempt."""


class Suspended(BaseException):
    def __init__(self, call: Call) -> None:
        self.call = call


class StartsAfresh(BaseException):
    """Raised when a driver sleeps before it tries again."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a process waits for: `get` (keys), `query` (its arguments) or `write` (a transaction)."""

    kind: str
    what: Any


@dataclass(frozen=True, slots=True)
class Phase:
    """One driver call of a process. `then` says what the process does with the outcome (another phase, or None);
    `check` judges the outcome against the table as it is at that moment. `due` lists keys that the due index answers.
    `forgets`: a new attempt starts from the beginning."""

    name: str
    run: Callable[[Ports], Any]
    then: Callable[[Any], Phase | None] = lambda _: None
    check: Callable[[Any, Mapping[Key, Item], int], list[str]] = lambda *_: []
    due: tuple[Key, ...] = ()
    forgets: bool = True
    reads_clock_first: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """A phase that starts when the table allows it. Of twins (same program, other name) the first starts first:
    the order of two who have done nothing yet tells nothing."""

    name: str
    start: Phase
    enabled: Callable[[Mapping[Key, Item], int], bool] = lambda *_: True
    twin_of: str | None = None


@dataclass(frozen=True)
class Scenario:
    """Processes over a table. `times` are the moments the clock may move through; `losses` is how many responses
    may get lost; `torn` splits reads; `judge` is asked about every table, `judge_move` about every write."""

    name: str
    processes: tuple[Process, ...]
    table: Mapping[Key, Item]
    judge: Callable[[Mapping[Key, Item]], list[str]]
    judge_move: Callable[[Mapping[Key, Item], Mapping[Key, Item]], list[str]]
    times: tuple[int, ...] = (0,)
    losses: int = 0
    torn: bool = False
    recover: Callable[[Mapping[Key, Item]], list[str]] = lambda _: []


@dataclass(slots=True)
class Ports:
    """What a driver is given: a store that replays, a clock, and a queue that swallows (starts and pushes may happen
    at any time anyway)."""

    answers: Sequence[tuple[Any, int]]
    now: int | None
    due_keys: tuple[Key, ...]
    sleeps: bool
    at: int = 0

    @property
    def store(self) -> Ports:
        return self

    @property
    def clock(self) -> Ports:
        return self

    @property
    def ids(self) -> Ports:
        return self

    def answer(self, kind: str, what: Any) -> Any:
        if self.at == len(self.answers):
            raise Suspended(Call(kind, what))
        given, self.now = self.answers[self.at]
        self.at += 1
        if isinstance(given, BaseException):
            raise given
        return given

    def get(self, account: str, wanted: Sequence[Key]) -> dict[Key, Item]:
        return self.answer("get", (account, tuple(wanted)))

    def query(self, account: str, pk: str, **options: Any) -> list[Item]:
        return self.answer("query", (account, pk, tuple(sorted(options.items()))))

    def write(self, account: str, transaction: Transaction) -> None:
        self.answer("write", transaction)

    def due(self, shard: int, until: int, limit: int) -> list[Key]:
        found = [key for key in self.due_keys if keys.due(key, 0)["GSI1PK"] == keys.due_partition(shard)]
        self.due_keys = tuple(key for key in self.due_keys if key not in found)
        return found

    def now_ms(self) -> int:
        if self.now is None:
            raise AssertionError("the driver read the clock before its first call: say so in its phase")
        return self.now

    def sleep_ms(self, ms: float) -> None:
        if not self.sleeps:
            raise StartsAfresh

    def fraction(self) -> float:
        return 0.0

    def token(self) -> str:
        return "token"

    def send(self, body: Mapping[str, Any]) -> None:
        """Starts and pushes are not counted on: executions and pushes may begin at any time."""
