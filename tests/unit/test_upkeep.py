"""What a late item is owed, as a value."""

from __future__ import annotations

import pytest

from turngate.domain import keys
from turngate.domain.records import Run, run_item
from turngate.domain.shapes import TenantContext
from turngate.domain.transaction import applied, holds
from turngate.domain.upkeep import (
    AnnounceAgain,
    NothingOwed,
    StartAgain,
    TimeOut,
    announced,
    decide_follow_up,
)

pytestmark = pytest.mark.invariant("I8")

ANN = TenantContext(account="acme", principal="ann")
RUN_KEY = keys.run("acme", "conv", "r1")
EVT_KEY = keys.events("acme", "conv", 3)


def run(state: str, due: int | None) -> dict:
    item = run_item(Run("r1", state, 1, 1, 75_000, 0, ANN))  # type: ignore[arg-type]  # the states under test
    return item if due is None else {**item, **keys.due(RUN_KEY, due)}


def event(due: int | None) -> dict:
    item = {"entity": "events", "last": 3}
    return item if due is None else {**item, **keys.due(EVT_KEY, due)}


@pytest.mark.parametrize(
    ("key", "item", "now", "expected"),
    [
        (RUN_KEY, None, 10**9, NothingOwed),
        (RUN_KEY, run("completed", None), 10**9, NothingOwed),
        (RUN_KEY, run("queued", 10_000), 9_999, NothingOwed),
        (RUN_KEY, run("queued", 10_000), 10_000, StartAgain),
        (RUN_KEY, run("queued", 10_000), 74_999, StartAgain),
        (RUN_KEY, run("queued", 10_000), 75_000, TimeOut),
        (RUN_KEY, run("running", 75_000), 74_999, NothingOwed),
        (RUN_KEY, run("running", 75_000), 75_000, TimeOut),
        (EVT_KEY, event(None), 10**9, NothingOwed),
        (EVT_KEY, event(10_000), 9_999, NothingOwed),
        (EVT_KEY, event(10_000), 10_000, AnnounceAgain),
    ],
)
def test_a_late_item_gets_what_it_is_owed(key, item, now, expected):
    assert type(decide_follow_up(key, item, now)) is expected


@pytest.mark.parametrize(("key", "item"), [(RUN_KEY, run("queued", 10_000)), (EVT_KEY, event(10_000))])
def test_one_sweeper_gets_it_and_it_comes_back_if_that_one_dies(key, item):
    first, second = decide_follow_up(key, item, 20_000), decide_follow_up(key, item, 20_000)
    assert isinstance(first, StartAgain | AnnounceAgain)
    assert isinstance(second, StartAgain | AnnounceAgain)
    (update,) = first.postponed.actions
    assert holds(update.condition, item)
    after = applied(update, item)
    assert after is not None
    assert keys.due_at(after) == 30_000
    (late,) = second.postponed.actions
    assert not holds(late.condition, after)
    assert not holds(late.condition, None)


def test_what_was_announced_owes_nothing_and_nothing_is_made_of_a_missing_item():
    (update,) = announced("acme", "conv", 3).actions
    after = applied(update, event(10_000))
    assert after is not None
    assert keys.due_at(after) is None
    assert not holds(update.condition, None)
