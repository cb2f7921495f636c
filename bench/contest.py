"""Runs the contestants of `make bench` side by side: each in a process of its own, all asking the same fake model, and
in each round one turn of everybody at every length, shuffled: who runs after somebody else finds the CPU's caches full
of his data, and that costs a fifth. Medians over the rounds make ratios that hardly depend on machine and load."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.scenario import mall_scenario, write_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

ROOT = Path(__file__).resolve().parents[1]
PEERS_PYTHON = ROOT / ".venvs" / "bench" / "bin" / "python"
WARM_UP = 3
RARELY = 6
"""A peer's turn in a long conversation takes most of a second: it is played in every sixth round."""
MANY_TURNS = 1_000
"""A conversation at least this long is seeded once and goes on; a shorter one is seeded anew for each of its turns."""
BETWEEN = 40
"""Turns seeded into a long conversation after each that was played, so that the next sees the same past as ever: ours
reads 69 messages."""
CALLS = 2
"""Of the model, a turn."""


@dataclass(frozen=True)
class Entrant:
    """`named`: MODULE:CLASS for the worker."""

    name: str
    named: str
    python: Path = Path(sys.executable)
    is_peer: bool = False

    def plays(self, length: int, number: int) -> bool:
        return not self.is_peer or length < MANY_TURNS or number % RARELY == 0


OURS = Entrant("ours", "bench.our_turn:OurTurns")
PLAIN = Entrant("plain", "bench.plain_loop:PlainLoop")
PACKED = Entrant("packed", "bench.plain_loop:PackedLoop")
PEERS = {
    "langgraph": Entrant("langgraph", "bench.langgraph_turn:LangGraphTurns", PEERS_PYTHON, is_peer=True),
}


class UnfairError(Exception):
    """Raised when a turn was not the one everybody has to play; the message says whose and why."""


@dataclass
class Turns:
    """Every turn that one entrant played at one length: CPU seconds by step, table requests by step."""

    cpu: list[dict[str, float]] = field(default_factory=list)
    requests: list[dict[str, int]] = field(default_factory=list)

    @property
    def median(self) -> float:
        """CPU seconds of a turn."""
        return statistics.median(sum(steps.values()) for steps in self.cpu)

    def median_of(self, step: str) -> float:
        return statistics.median(steps[step] for steps in self.cpu)

    def requests_of(self, *, without: Sequence[str] = ()) -> int:
        """Requests of a turn but for these steps. Raises UnfairError when they differ from turn to turn."""
        counts = {sum(n for step, n in steps.items() if step not in without) for steps in self.requests}
        if len(counts) != 1:
            raise UnfairError(f"turns at one length made {sorted(counts)} requests")
        return counts.pop()


Played = dict[tuple[str, int], Turns]
"""By name of the entrant and length of the conversation."""


class Worker:
    """An entrant's process."""

    def __init__(self, entrant: Entrant, scenario: Path, base_url: str) -> None:
        self.entrant = entrant
        command = [str(entrant.python), "-m", "bench.worker", entrant.named, str(scenario), base_url]
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            cwd=ROOT,
            env={"PYTHONPATH": f".:{Path('layers', 'turngate')}", "NO_PROXY": "127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # it ends with its input

    def order(self, **what: object) -> dict[str, Any]:
        pipes = self._process
        if pipes.stdin is None or pipes.stdout is None:
            raise ValueError("a worker is spoken to through pipes")
        try:
            pipes.stdin.write(json.dumps(what) + "\n")
            pipes.stdin.flush()
            answer = pipes.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise UnfairError(f"{self.entrant.name} ended; its traceback is above")
        said: dict[str, Any] = json.loads(answer)
        return said


class Contest:
    """Fake model and workers, running. `play` may be called again for another attempt."""

    def __init__(self, entrants: Sequence[Entrant], lengths: Sequence[int]) -> None:
        self._entrants = entrants
        self._lengths = lengths
        self._scenario = mall_scenario()
        self._open = ExitStack()
        self._workers: list[Worker] = []
        self._turns: dict[str, int] = defaultdict(int)
        self._long: dict[tuple[str, int], str] = {}

    def __enter__(self) -> Contest:
        with ExitStack() as opening:
            folder = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            scenario = folder / "scenario.json"
            write_scenario(scenario, self._scenario)
            model = subprocess.Popen(  # noqa: S603 - our own server
                [sys.executable, str(ROOT / "bench" / "fake_model.py"), str(scenario)],
                stdout=subprocess.PIPE,
                text=True,
            )
            opening.enter_context(model)
            opening.callback(model.terminate)
            if model.stdout is None or not (port := model.stdout.readline().strip()):
                raise UnfairError("the fake model did not start")
            self._model = f"http://127.0.0.1:{port}"
            for entrant in self._entrants:
                worker = Worker(entrant, scenario, f"{self._model}/{entrant.name}/v1")
                self._workers.append(opening.enter_context(worker))
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def play(self, rounds: int) -> Played:
        """`rounds` turns of every entrant at every length. Raises UnfairError for another reply than the scenario's,
        or another number of model calls than two a turn."""
        total = WARM_UP + rounds
        prepared = {
            (worker.entrant.name, length): list(self._conversations(worker, length, total))
            for worker in self._workers
            for length in self._lengths
        }
        played: Played = defaultdict(Turns)
        order = [(worker, length) for worker in self._workers for length in self._lengths]
        chance = random.Random(rounds)  # noqa: S311 - the same order each time, on purpose
        for number in range(total):
            chance.shuffle(order)
            for worker, length in order:
                if not worker.entrant.plays(length, number):
                    continue
                conversation = prepared[worker.entrant.name, length][number]
                told = self._turn(worker, conversation)
                if length >= MANY_TURNS:
                    worker.order(do="seed", turns=BETWEEN, conversation=conversation)
                if number >= WARM_UP:
                    turns = played[worker.entrant.name, length]
                    turns.cpu.append(told["cpu"])
                    turns.requests.append(told["requests"])
        return played

    def _conversations(self, worker: Worker, length: int, number: int) -> Iterator[str]:
        """One for each round."""
        if length < MANY_TURNS:
            for _ in range(number):
                yield worker.order(do="seed", turns=length)["conversation"]
            return
        place = (worker.entrant.name, length)
        if place not in self._long:
            self._long[place] = worker.order(do="seed", turns=length)["conversation"]
        yield from [self._long[place]] * number

    def _turn(self, worker: Worker, conversation: str) -> dict[str, Any]:
        told = worker.order(do="turn", conversation=conversation)
        self._turns[worker.entrant.name] += 1
        if told["reply"] != self._scenario.answers[""]:
            raise UnfairError(f"{worker.entrant.name} replied {told['reply']!r:.120}")
        return told

    def asked(self) -> dict[str, int]:
        """Bytes of model requests a turn, by entrant. Raises UnfairError when somebody did not make two requests."""
        sizes = {}
        for name, turns in self._turns.items():
            with urllib.request.urlopen(f"{self._model}/{name}/asked") as response:  # noqa: S310 - our own server
                told = json.load(response)
            if told["requests"] != CALLS * turns:
                raise UnfairError(f"{name} made {told['requests']} model requests in {turns} turns")
            sizes[name] = told["bytes"] // turns
        return sizes
