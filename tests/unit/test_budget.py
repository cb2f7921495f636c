"""What a run may still spend, as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.domain.budget import MAX_MODEL_CALLS, Exhausted, Stopped, refusal, spend_model_call, stop
from turngate.domain.transaction import applied, holds

pytestmark = [pytest.mark.invariant("I15")]


@pytest.mark.parametrize(
    ("budget", "now", "answer"),
    [
        (None, 0, None),
        ({}, 99, None),
        ({"model_calls": MAX_MODEL_CALLS - 1}, 99, None),
        ({"model_calls": MAX_MODEL_CALLS}, 0, Exhausted("model_calls")),
        ({}, 100, Exhausted("deadline")),
        ({"stopped": "cancelled"}, 0, Stopped("cancelled")),
        ({"stopped": "cancelled", "model_calls": 99}, 100, Stopped("cancelled")),
    ],
)
def test_a_call_is_refused_with_its_reason(budget, now, answer):
    assert refusal(budget, now=now, deadline=100) == answer


@given(st.integers(0, 20), st.integers(0, 20))
def test_a_call_is_counted_only_on_the_number_it_was_seen_at(spent, stored):
    (update,) = spend_model_call("a", "r", spent, 0).actions
    budget = {"model_calls": stored} if stored else None
    assert holds(update.condition, budget) == (spent == stored)
    if spent == stored:
        after = applied(update, budget)
        assert after is not None
        assert after["model_calls"] == stored + 1


@given(st.integers(0, 20), st.booleans())
def test_a_stopped_run_counts_nothing_more_and_keeps_what_it_counted(spent, counted_before):
    budget = {"model_calls": spent} if counted_before and spent else None
    stopped = applied(stop("a", "r", "cancelled", 0), budget)
    (update,) = spend_model_call("a", "r", spent if budget else 0, 0).actions
    assert not holds(update.condition, stopped)
    assert stopped is not None
    assert stopped.get("model_calls") == (budget or {}).get("model_calls")
    assert stopped["ttl"] > 0
