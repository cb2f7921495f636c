"""Queue, sockets, starter, clock and ids that remember what was asked of them and can be told how to fail."""

from __future__ import annotations

import base64
import copy
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from turngate.errors import BrokenInvariantError, TransientError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turngate.ports import Posted

_MAX_NAME = 80
_TOKEN_BYTES = 32


class MemoryQueue:
    """`sent` holds every accepted body in order. While `down` is true, sending raises TransientError."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.down = False

    def send(self, body: Mapping[str, Any]) -> None:
        if self.down:
            raise TransientError("the queue is down")
        self.sent.append(copy.deepcopy(dict(body)))


class MemoryPusher:
    """`frames` holds what each connection received. Ids in `gone` are closed sockets, ids in `refusing` do
    not read; ids in `failing` raise TransientError."""

    def __init__(self) -> None:
        self.frames: defaultdict[str, list[bytes]] = defaultdict(list)
        self.gone: set[str] = set()
        self.failing: set[str] = set()
        self.refusing: set[str] = set()

    def post(self, connection_id: str, frame: bytes) -> Posted:
        if connection_id in self.failing:
            raise TransientError(f"cannot reach {connection_id}")
        if connection_id in self.gone:
            return "gone"
        if connection_id in self.refusing:
            return "refused"
        self.frames[connection_id].append(frame)
        return "delivered"


class MemoryStarter:
    """`started` holds (name, payload) of every start in order, repeated names included, as EXPRESS machines do.
    While `down` is true, starting raises TransientError."""

    def __init__(self) -> None:
        self.started: list[tuple[str, dict[str, Any]]] = []
        self.down = False

    def start(self, *, name: str, payload: Mapping[str, Any]) -> None:
        if not 1 <= len(name) <= _MAX_NAME:
            raise BrokenInvariantError(f"an execution name has 1 to {_MAX_NAME} characters, not {len(name)}")
        if self.down:
            raise TransientError("the machine cannot be started")
        self.started.append((name, copy.deepcopy(dict(payload))))


class FixedClock:
    """Stands still until it is set, advanced or slept on."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = float(now_ms)

    def now_ms(self) -> int:
        return int(self._now_ms)

    def sleep_ms(self, ms: float) -> None:
        self._now_ms += max(ms, 0.0)

    def advance(self, ms: float) -> None:
        self.sleep_ms(ms)


class SeededIds:
    """The same tokens and fractions for the same seed. Never for anything that must not be guessed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def token(self) -> str:
        return base64.urlsafe_b64encode(self._random.randbytes(_TOKEN_BYTES)).rstrip(b"=").decode()

    def fraction(self) -> float:
        return self._random.random()
