"""Beginning as a value: one claim, and who else is told what (INVARIANTS, begin)."""

from __future__ import annotations

import pytest

from turngate.domain import keys
from turngate.domain.begin import Claim, Claimed, Duplicate, decide_begin
from turngate.domain.records import Run
from turngate.domain.shapes import TenantContext
from turngate.domain.transaction import applied, holds

ANN = TenantContext(account="acme", principal="ann")
ENDED = ("completed", "failed", "cancelled", "superseded", "timed_out")


def run(state: str, execution: str | None = None) -> Run:
    return Run("r1", state, 1, 1, 75_000, 0, ANN, execution=execution)  # type: ignore[arg-type]  # the states under test


def decide(state: str, execution: str | None = None):
    return decide_begin(
        "acme",
        "conv",
        run(state, execution),
        execution="x1",
        config_version=3,
        knowledge_pins={"help": 2},
        now=5,
    )


@pytest.mark.invariant("I1", "I9")
@pytest.mark.parametrize(
    ("state", "execution", "expected"),
    [
        ("running", "x1", Claimed()),
        ("running", "x2", Duplicate("running")),
        *((state, owner, Duplicate(state)) for state in ENDED for owner in (None, "x1", "x2")),
    ],
)
def test_a_run_that_is_not_queued_is_ours_or_a_duplicate(state, execution, expected):
    assert decide(state, execution) == expected


@pytest.mark.invariant("I1", "I8", "I11", "I12")
def test_a_claim_names_the_execution_pins_the_versions_and_owes_the_deadline():
    decision = decide("queued")
    assert isinstance(decision, Claim)
    (update,) = decision.transaction.actions
    after = applied(update, {"state": "queued"})
    assert after is not None
    assert (after["state"], after["execution"], after["started_at"]) == ("running", "x1", 5)
    assert (after["config_version"], after["knowledge_pins"]) == (3, {"help": 2})
    assert keys.due_at(after) == 75_000


@pytest.mark.invariant("I1", "I9")
@pytest.mark.parametrize("state", ["running", *ENDED])
def test_a_claim_holds_for_a_queued_run_only(state):
    decision = decide("queued")
    assert isinstance(decision, Claim)
    (update,) = decision.transaction.actions
    assert holds(update.condition, {"state": "queued"})
    assert not holds(update.condition, {"state": state})
    assert not holds(update.condition, None)
