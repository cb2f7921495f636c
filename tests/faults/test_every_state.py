"""A cut of the fault matrix: each state and function of the spine struck once, chosen by a seed, all at the same time.

The whole matrix is `make test-faults` (docs/faults.md)."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from tests.faults.actions import cells
from tests.faults.places import PLACES
from tests.faults.playing import BY_NAME, find_sites, run

SEED = 1
SCENARIOS = ("turn", "answering", "failing", "unstarted", "unannounced", "stuck")
STATES = (
    "IssueTicket.guests",
    "IssueTicket.tickets",
    "Authorize.http",
    "Authorize.socket",
    "Connect",
    "AcceptMessage.resume",
    "AcceptMessage",
    "BeginTurn",
    "ResumePending",
    "Understand",
    "Govern",
    "Retrieve",
    "ComposeReply",
    "CommitTurn",
    "CommitTurn.closing",
    "FailTurn",
    "AnnounceReply",
    "PushEvents",
    "StartRun",
    "SweepDueItems",
)
TOO_LONG = ("timeout",)
"""Of the model: 21 s each."""


LEFT_ALONE = {"Disconnect"}
"""Best effort by nature."""


@pytest.fixture(scope="session")
def sites(attacked):
    return find_sites(attacked, [BY_NAME[name] for name in SCENARIOS])


@pytest.fixture(scope="session")
def results(attacked, sites):
    """One cell a state, by its name."""
    chance = random.Random(SEED)
    found = defaultdict(list)
    for cell in cells(sites):
        if cell.site.kind != "model" or cell.fault.action not in TOO_LONG:
            found[cell.site.place].append(cell)
    chosen = [chance.choice(found[state]) for state in STATES]
    return {each.cell.site.place: each for each in run(attacked, chosen, len(chosen), hurry=True)}


def test_the_record_of_undisturbed_conversations_reaches_every_state(sites):
    assert {site.place for site in sites} >= set(STATES)


def test_no_function_of_the_stack_is_forgotten(attacked):
    assert {place.function for place in PLACES} | LEFT_ALONE == set(attacked.functions)


@pytest.mark.invariant("I1", "I2", "I7", "I8", "I9", "I16", "I18")
@pytest.mark.parametrize("state", STATES)
def test_a_fault_breaks_no_promise(results, state):
    result = results[state]
    assert result.reached, f"{result.cell.label} never struck"
    assert result.broken == [], f"{result.cell.label} ({result.conversation}, {result.outcome})"
