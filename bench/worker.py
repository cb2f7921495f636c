"""One contestant in a process of its own, told line by line on stdin what to do, so that all take turns in one run.

    python -m bench.worker MODULE:CLASS SCENARIO BASE_URL

`{"do": "seed", "turns": 20}` makes a conversation of that many turns and names it, or prolongs the one it names;
`{"do": "turn", "conversation": "…"}` plays its next turn and reports its reply, and CPU seconds and table requests by
step. Needs the standard library only, as it also runs in a peer's venv.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class Stopwatch:
    """CPU seconds (user + system, all threads of this process) spent inside each named step, and the requests that it
    made to the table, where a contestant has one."""

    def __init__(self) -> None:
        self.cpu: defaultdict[str, float] = defaultdict(float)
        self.requests: Counter[str] = Counter()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.cpu[name] += time.process_time() - began


class Contestant(Protocol):
    """Answers the scenario's question by two calls of the model. Built as `Class(scenario, base_url)`."""

    def seed(self, turns: int, conversation: str | None = None) -> str:
        """Add `turns` (a multiple of what the scenario has in `said`) whole turns to a conversation, a new one when
        none is named; its name."""
        ...

    def turn(self, conversation: str, watch: Stopwatch) -> str:
        """Play the next turn; its reply. What is not inside a step of the watch is not the contestant's cost."""
        ...


def obey(contestant: Contestant, order: dict[str, Any]) -> dict[str, Any]:
    if order["do"] == "seed":
        conversation = contestant.seed(order["turns"], order.get("conversation"))
        gc.collect()
        gc.freeze()  # as in a Lambda after INIT: what was there before the turn is nobody's garbage
        return {"conversation": conversation}
    watch = Stopwatch()
    reply = contestant.turn(order["conversation"], watch)
    return {"reply": reply, "cpu": watch.cpu, "requests": watch.requests}


def main(named: str, scenario: str, base_url: str) -> None:
    module, _, name = named.partition(":")
    given = json.loads(Path(scenario).read_text(encoding="utf-8"))
    contestant: Contestant = getattr(importlib.import_module(module), name)(given, base_url)
    for line in sys.stdin:
        print(json.dumps(obey(contestant, json.loads(line)), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
