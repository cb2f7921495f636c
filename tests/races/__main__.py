# ruff: noqa: T201 - a program that reports
"""`make test-races`: the long race, then every mutant until the oracle objects.

TURNGATE_RACE_CONVERSATIONS, _MESSAGES, _BURST, _DELIVERIES, _EXECUTIONS, _THREADS, _SEED    the plan (see Plan)
TURNGATE_RACE_MUTANTS=0                                                                     the race alone"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.model.terms import without
from tests.protocol.emulated_table import running_emulator
from tests.races.mutants import CALM, MUTANTS
from tests.races.oracle import Plan, Races

LONG = Plan(conversations=340, messages=6, burst=3, deliveries=3, executions=2, threads=16, seed=7)
LEAST_COMMITS = 0.3
MUTANT_TRIES = 5


def plan() -> Plan:
    given = {
        name: int(os.environ[variable])
        for name in ("conversations", "messages", "burst", "deliveries", "executions", "threads", "seed")
        if (variable := f"TURNGATE_RACE_{name.upper()}") in os.environ
    }
    return replace(LONG, **given)


def main() -> int:
    failures = 0
    with tempfile.TemporaryDirectory() as folder, running_emulator(Path(folder) / "emulator.log") as endpoint:
        report = Races(endpoint, plan()).run()
        print(report.line(), flush=True)
        print("\n".join(report.violations[:20]))
        failures += bool(report.violations) or report.commit_share < LEAST_COMMITS
        mutants = MUTANTS if os.environ.get("TURNGATE_RACE_MUTANTS", "1") == "1" else {}
        for name, guards in mutants.items():
            for attempt in range(1, MUTANT_TRIES + 1):
                found = Races(endpoint, replace(CALM, seed=attempt), without(*guards)).run()
                if found.violations:
                    after = f"{found.first_violation_s or found.seconds:.1f} s of run {attempt}"
                    print(f"mutant «{name}»: caught after {after}: {found.violations[0]}", flush=True)
                    break
            else:
                print(f"mutant «{name}»: NOT CAUGHT in {MUTANT_TRIES} runs", flush=True)
                failures += 1
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
