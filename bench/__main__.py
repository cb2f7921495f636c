"""`make bench`: what we hold ourselves to, measured on this machine as ratios inside one run, in one table.

    python -m bench [PEER …]

Import cost of every function (`tools.import_budget`), CPU of a turn against a plain loop and its growth with the
conversation, and the same for the peers named. Exit 1 when a hold is missed by more than its slack in each attempt,
or when something forbidden was imported.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bench.contest import OURS, PACKED, PEERS, PLAIN, ROOT, Contest
from bench.turn_budget import read_turn_budget
from bench.verdicts import import_rows, steps_of, table_of, turn_rows
from tools.import_budget import forbidden_imports, measure
from tools.import_rules import function_names, read_import_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.contest import Entrant, Played
    from bench.verdicts import Row


def main(argv: Sequence[str]) -> int:
    peers = peers_named(argv)
    rows, problems = measure_imports()
    turns, notes = measure_turns([OURS, PLAIN, PACKED, *peers])
    rows += turns
    print(table_of(rows))
    notes += [f"{name}: not measured" for name, peer in PEERS.items() if peer not in peers]
    print("\n".join(["", *notes, *losses(rows), *problems]))
    return 1 if problems or any(row.fails for row in rows) else 0


def peers_named(argv: Sequence[str]) -> list[Entrant]:
    """The peers on the command line, perhaps none; exits for one that is unknown."""
    parser = argparse.ArgumentParser(prog="bench", description="our budgets, measured")
    parser.add_argument("peers", nargs="*", help=f"compared with: {', '.join(PEERS)}")
    names = parser.parse_args(argv).peers
    if unknown := set(names) - set(PEERS):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    return [PEERS[name] for name in names]


def losses(rows: Sequence[Row]) -> list[str]:
    """A line for each hold that was missed, within its slack or not."""
    return [
        f"{row.verdict}: {row.what}: {row.value:.2f}, hold {row.hold}"
        for row in rows
        if row.hold is not None and row.value > row.hold
    ]


def measure_imports() -> tuple[list[Row], list[str]]:
    """A row for each function, and what is wrong beside the numbers."""
    rules = read_import_rules(ROOT)
    names = [name for name in function_names(ROOT) if name in rules.functions]
    measured = measure(names, rules, ROOT)
    problems = [*rules.problems(ROOT)]
    problems += [
        f"{name} imports {module}" for name in names for module in forbidden_imports(name, rules, ROOT)
    ]
    return import_rows(measured, rules), problems


def measure_turns(entrants: Sequence[Entrant]) -> tuple[list[Row], list[str]]:
    """The ratios' rows by their best attempts, and milliseconds and sizes that are only printed."""
    budget = read_turn_budget(ROOT)
    attempts: list[Played] = []
    rows: list[Row] = []
    with Contest(entrants, sorted({budget.short, budget.at, budget.long})) as contest:
        while len(attempts) < budget.attempts:
            attempts.append(contest.play(budget.rounds))
            rows = turn_rows(attempts, budget)
            if all(row.hold is None or row.value <= row.hold for row in rows):
                break
        asked = contest.asked()
    last = attempts[-1]
    notes = [
        f"{name}: "
        + ", ".join(f"turn {length:,} {1000 * last[name, length].median:.1f}" for length in lengths)
        + f" ms of CPU; {size:,} bytes asked of the model a turn"
        for name, size in asked.items()
        if (lengths := sorted(length for each, length in last if each == name))
    ]
    notes.append(f"ours at turn {budget.at}, ms of CPU: {steps_of(last, budget.at)}")
    notes.append(f"attempts at turns: {len(attempts)} of {budget.rounds} rounds")
    return rows, notes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
