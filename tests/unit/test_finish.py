"""Ending a run as a value: on which conditions each kind of ending counts (INVARIANTS, finish)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from turngate.domain import keys
from turngate.domain.finish import Ending, plan_finish
from turngate.domain.records import Head, Run
from turngate.domain.shapes import Draft, TenantContext
from turngate.domain.transaction import Absent, applied, holds

ANN = TenantContext(account="acme", principal="ann", customer="c1", client_type="app")
RUN = Run("r4", "running", 3, 4, 75_000, 0, ANN, execution="x1")
HEAD = Head(
    owner="ann",
    customer="c1",
    client_type="app",
    seq=4,
    customer_seq=4,
    evt=9,
    epoch=3,
    active_run="r4",
    supersedes=2,
    oldest_unanswered_at=1,
)
WAITING = replace(HEAD, seq=6, customer_seq=6, protected_run="r4")
SAID = Draft(content="so", outcome="answer")
ENDINGS = {
    "reply": Ending("completed", "execution", "x1", SAID),
    "failure": Ending("failed", "execution", "x1", SAID, problem="p"),
    "cancel": Ending("cancelled", "cancel", "s1"),
    "sweep": Ending("timed_out", "sweeper", "sw", SAID, problem="p"),
}
NOW = 80_000
every_ending = pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
STORED_HEAD = {"epoch": 3, "active_run": "r4", "evt": 9, "mode": "AI"}


def planned(ending: Ending, head: Head = HEAD, now: int = NOW):
    plan = plan_finish("acme", "conv", head, RUN, ending, now)
    return plan, {action.name: action for action in plan.transaction.actions}


@pytest.mark.invariant("I1", "I2", "I18")
@every_ending
@pytest.mark.parametrize(("moved", "to"), [("epoch", 4), ("active_run", "r5"), ("evt", 10)])
def test_an_ending_counts_on_its_epoch_its_run_and_the_counters_as_read(ending, moved, to):
    _, made = planned(ending)
    condition = made["head"].condition
    assert holds(condition, STORED_HEAD)
    assert not holds(condition, {**STORED_HEAD, moved: to})
    assert not holds(condition, {k: v for k, v in STORED_HEAD.items() if k != moved})


@pytest.mark.invariant("I4")
@every_ending
def test_whatever_speaks_needs_ai_mode(ending):
    _, made = planned(ending)
    in_human_mode = {**STORED_HEAD, "mode": "HUMAN"}
    assert holds(made["head"].condition, in_human_mode) == (ending.draft is None)


@pytest.mark.invariant("I1", "I9")
@every_ending
@pytest.mark.parametrize(
    "state", ["queued", "running", "completed", "failed", "cancelled", "superseded", "timed_out"]
)
@pytest.mark.parametrize("execution", ["x1", "x2"])
def test_a_run_is_ended_by_its_execution_or_from_outside_while_it_is_open(ending, state, execution):
    _, made = planned(ending)
    stored = {"state": state, "execution": execution, "deadline": 75_000}
    allowed = (
        (state, execution) == ("running", "x1")
        if ending.by == "execution"
        else state in {"queued", "running"}
    )
    assert holds(made["run"].condition, stored) == allowed


@pytest.mark.invariant("I8")
@pytest.mark.parametrize(("now", "allowed"), [(74_999, False), (75_000, True)])
def test_the_sweeper_ends_nothing_before_its_deadline(now, allowed):
    _, made = planned(ENDINGS["sweep"], now=now)
    assert holds(made["run"].condition, {"state": "running", "deadline": 75_000}) == allowed


@pytest.mark.invariant("I1", "I16")
@every_ending
def test_an_ending_writes_its_items_once(ending):
    _, made = planned(ending)
    expected = {"head", "run", "run_log", "events"}
    expected |= {"reply"} if ending.draft else set()
    expected |= {"budget"} if ending.by != "execution" else set()
    assert set(made) == expected
    for name in {"run_log", "events", "reply"} & expected:
        assert made[name].condition == (Absent(),)


@every_ending
def test_a_head_without_work_is_left_idle(ending):
    plan, made = planned(ending)
    after = applied(made["head"], {**STORED_HEAD, "protected_run": "r4", "oldest_unanswered_at": 1})
    assert after is not None
    assert not {"active_run", "protected_run", "oldest_unanswered_at"} & set(after)
    assert (after["answered_through"], after["supersedes"]) == (4, 0)
    assert after["evt"] == plan.evt == 9 + (2 if ending.draft else 1)
    assert after["epoch"] == (4 if ending.by == "cancel" else 3)
    assert plan.next_run is None


@pytest.mark.invariant("I20", "I8")
@every_ending
def test_messages_that_waited_start_the_next_run_in_the_same_transaction(ending):
    plan, made = planned(ending, WAITING)
    after = applied(made["head"], {**STORED_HEAD, "protected_run": "r4"})
    assert after is not None
    assert (after["seq"], after["epoch"], after["oldest_unanswered_at"]) == (7, 4, NOW)
    assert after["active_run"] == plan.next_run == made["next_run"].item["run"]
    assert "protected_run" not in after
    item = made["next_run"].item
    assert (item["state"], item["trigger"], item["seq"], item["epoch"], item["protected"]) == (
        "queued",
        "S",
        7,
        4,
        False,
    )
    assert item["tenant"]["customer"] == "c1"
    assert made["trigger"].key == keys.message("acme", "conv", 7, "S")
    assert made["run"].set["next_run"] == plan.next_run
    assert made["next_run"].condition == made["trigger"].condition == (Absent(),)


@pytest.mark.invariant("I4")
def test_nothing_starts_in_human_mode():
    plan, made = planned(ENDINGS["cancel"], replace(WAITING, mode="HUMAN"))
    assert plan.next_run is None
    assert "next_run" not in made


@pytest.mark.covers("F-355")
def test_the_runs_own_log_holds_no_text_of_the_reply():
    secret = Draft(content="the secret words", outcome="answer")
    _, made = planned(replace(ENDINGS["reply"], draft=secret))
    assert "secret" not in str(made["run_log"])
