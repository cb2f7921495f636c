"""The race oracle in a cut for every day; `make test-races` (`python -m tests.races`) runs the long one."""

from __future__ import annotations

import pytest

from tests.model.terms import without
from tests.protocol.emulated_table import running_emulator
from tests.races.mutants import CALM, MUTANTS
from tests.races.oracle import Plan, Races


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    with running_emulator(tmp_path_factory.mktemp("emulator") / "emulator.log") as endpoint:
        yield endpoint


@pytest.mark.invariant("I1", "I2", "I4", "I7", "I8", "I9", "I16", "I18")
@pytest.mark.covers("F-028", "F-362", "F-374", "F-380")
def test_racing_threads_with_crashes_late_workers_and_lost_answers_break_no_promise(emulator, capsys):
    report = Races(emulator, Plan()).run()
    with capsys.disabled():
        print(f"\n{report.line()}")  # noqa: T201 - the figures of this test
    assert report.violations == []
    assert report.commit_share >= 0.3
    for happened in ("crashes", "lost answers", "late workers", "duplicates", "not current", "looks"):
        assert report.counts[happened] > 0, happened


@pytest.mark.parametrize("name", MUTANTS)
def test_the_oracle_notices_when_guards_are_missing(emulator, name):
    report = Races(emulator, CALM, without(*MUTANTS[name])).run()
    assert report.violations
