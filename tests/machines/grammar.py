"""The grammar of a run's log, asked of a finished run (I16, F-353 … F-355)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.machines.world import TurnWorld

FIRST = ("-", 0, "run.running")
RULED = 20
PART_STEPS = {RULED: "route_resolved", 30: "retrieval.finished"}


def grammar_violations(world: TurnWorld, run: str, *said: str) -> list[str]:
    """What is wrong with the log of a run; `said` are texts that no entry may hold."""
    (state,) = (each.state for each in world.runs() if each.run == run)
    return list(_violations(world.run_log(run), state, said))


def _violations(log: list[Any], state: str, said: tuple[str, ...]) -> Iterator[str]:
    whole = [entry for entry in log if entry[0] == "-"]
    if not whole or whole[0][:3] != FIRST:
        yield f"the log does not begin with {FIRST}"
    if not whole or whole[-1][1:3] != (999, f"run.{state}"):
        yield f"the log of a {state} run ends with {whole[-1:]}"
    if len({(part, step) for part, step, *_ in log}) != len(log):
        yield "two events for one step"
    yield from _part_violations(log)
    for entry in log:
        text = json.dumps(entry[3], ensure_ascii=False)
        yield from (f"{entry[:3]} holds what was said" for words in said if words in text)


def _part_violations(log: list[Any]) -> Iterator[str]:
    """Each part's events in the order of their steps. Once a reply was composed, every part of it has its ruling: a
    denied action is logged. Rulings are written with the reply, so a turn that fails before has none."""
    ruled = {part for part, step, *_ in log if step == RULED}
    for part in sorted({part for part, *_ in log} - {"-"}):
        own = [(step, kind) for of, step, kind, _ in log if of == part]
        if any(PART_STEPS.get(step) != kind for step, kind in own):
            yield f"{part}: {own}"
    composed = [data["parts"] for part, step, _, data in log if (part, step) == ("-", 80)]
    if composed and {part["part"] for part in composed[0]} != ruled:
        yield f"ruled {sorted(ruled)}, answered {composed[0]}"
