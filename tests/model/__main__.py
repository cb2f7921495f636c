# ruff: noqa: T201 - a program that reports
"""`make test-model`: the large worlds, then every guard removed and every guard shown to be what still held.

python -m tests.model                     everything
python -m tests.model worlds|guards       one of the two
TURNGATE_MODEL_STATES=3000000             stop a world after so many states (it is then said to be cut)
TURNGATE_MODEL_STORIES=1                  print each counterexample as a story"""

from __future__ import annotations

import os
import sys

from tests.model.explorer import Explorer
from tests.model.guards import ALONE, BEHIND, COVERED, DECISIONS
from tests.model.switches import off
from tests.model.worlds import LARGE, SMALL


def worlds(limit: int) -> int:
    """Explore all worlds; the number of those with a violation."""
    found = states = transitions = 0
    for world in (*SMALL, *LARGE):
        explored = Explorer(world, stories=False).explore(max_states=limit)
        print(explored.line(), flush=True)
        states += explored.states
        transitions += explored.transitions
        if explored.violation is not None:
            found += 1
            print(Explorer(world).explore(max_states=limit).violation)
    print(
        f"worlds: {len(SMALL) + len(LARGE)}, states {states}, transitions {transitions}, with violations {found}\n"
    )
    return found


def guards(*, stories: bool) -> int:
    """Remove every guard; the number of survivors."""
    survivors = 0
    for kind, removals in (("alone", ALONE), ("covered", COVERED), ("behind", BEHIND)):
        for removal in removals:
            explored = removal.explore()
            needed = kind != "covered" or removal.explore(with_guard=True).violation is None
            caught = explored.violation is not None and needed
            survivors += not caught
            steps = len(explored.violation.story) if explored.violation else 0
            verdict = f"{steps:>2} steps" if caught else "SURVIVES" if needed else "NOT WHAT HOLDS"
            print(f"{kind:<8} {verdict:<9} {removal}  in «{removal.world.name}»", flush=True)
            if stories and explored.violation:
                print(explored.violation, "\n")
    for name, world in DECISIONS.items():
        with off(name):
            explored = Explorer(world).explore()
        survivors += explored.violation is None
        steps = len(explored.violation.story) if explored.violation else 0
        print(f"decision {steps:>2} steps  {name}  in «{world.name}»", flush=True)
        if stories and explored.violation:
            print(explored.violation, "\n")
    total = len(ALONE) + len(COVERED) + len(BEHIND)
    print(f"guards: {total} terms of conditions and {len(DECISIONS)} decisions removed, {survivors} survived")
    return survivors


def main(arguments: list[str]) -> int:
    wanted = arguments or ["worlds", "guards"]
    failures = 0
    if "worlds" in wanted:
        failures += worlds(int(os.environ.get("TURNGATE_MODEL_STATES", "10000000")))
    if "guards" in wanted:
        failures += guards(stories=bool(os.environ.get("TURNGATE_MODEL_STORIES")))
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
