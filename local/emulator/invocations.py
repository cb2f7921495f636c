"""The invocations that run right now, found again by the trace id their AWS calls carry.

AWS gives every invocation a trace id, and botocore sends it along with each call a Lambda makes (recursion detection).
So a call can be told apart by the event its Lambda is busy with, and a fault can kill exactly that Lambda."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.emulator.lambda_worker import KillPlan
    from local.emulator.stock import Json


@dataclass(frozen=True, slots=True)
class RunningInvocation:
    """One invocation; `event` as JSON text, `plan` knows how to kill its process."""

    function: str
    request_id: str
    event: str
    plan: KillPlan


class Invocations:
    """All running invocations by trace id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, RunningInvocation] = {}

    @contextmanager
    def running(self, trace_id: str, invocation: RunningInvocation) -> Iterator[None]:
        """Known under this trace id until the block ends."""
        with self._lock:
            self._running[trace_id] = invocation
        try:
            yield
        finally:
            with self._lock:
                self._running.pop(trace_id, None)

    def of(self, trace_id: str) -> RunningInvocation | None:
        """The invocation whose calls carry this trace id."""
        with self._lock:
            return self._running.get(trace_id)

    def crash(self, function: str, texts: list[str]) -> int:
        """Kill the processes of a function's invocations whose events contain all these texts; how many."""
        with self._lock:
            kills = [
                each.plan.crash
                for each in self._running.values()
                if each.function == function and all(text in each.event for text in texts)
            ]
        processes = [kill for kill in kills if kill is not None]
        for kill in processes:
            kill()
        return len(processes)


def event_text(event: Json) -> str:
    """An event as rules see it: JSON, characters as they are."""
    return json.dumps(event, ensure_ascii=False)


def new_trace_id() -> str:
    """A trace id as Lambda gives one to every invocation, traced or not."""
    root = f"{int(time.time()):08x}-{os.urandom(12).hex()}"
    return f"Root=1-{root};Parent={os.urandom(8).hex()};Sampled=0"
