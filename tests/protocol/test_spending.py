"""A model call is counted before it is made, and a run that was ended from outside makes none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.protocol.world import ACCOUNT
from turngate.domain import keys
from turngate.domain.budget import MAX_MODEL_CALLS, Exhausted, Stopped
from turngate.errors import ContentionError
from turngate.protocol.retrying import ATTEMPTS
from turngate.protocol.spending import spend

pytestmark = pytest.mark.invariant("I15")


def pay(world, turn, expected: int = 0):
    return spend(world.store, world.clock, world.ids, turn=turn, expected=expected)


def counted(world, turn) -> int:
    return world.items.get(keys.budget(ACCOUNT, turn.run), {}).get("model_calls", 0)


@pytest.fixture
def turn(world):
    return world.begun(world.say("one").run).turn


class TestBudget:
    def test_calls_are_counted_one_by_one_up_to_the_limit(self, world, turn):
        for n in range(MAX_MODEL_CALLS):
            assert pay(world, turn, n) is None
        assert pay(world, turn, MAX_MODEL_CALLS) == Exhausted("model_calls")
        assert counted(world, turn) == MAX_MODEL_CALLS

    def test_a_model_that_never_stops_is_stopped_whatever_it_believes_it_spent(self, world, turn):
        made = sum(pay(world, turn, 0) is None for _ in range(50))
        assert made == MAX_MODEL_CALLS
        assert pay(world, turn, 0) == Exhausted("model_calls")

    def test_two_calls_at_once_are_two(self, world, turn):
        world.store.before["spend"] = lambda: pay(world, turn)
        assert pay(world, turn) is None
        assert counted(world, turn) == 2

    def test_a_call_whose_count_may_be_lost_is_counted_again_rather_than_made_uncounted(self, world, turn):
        world.store.lose["spend"] = 1
        assert pay(world, turn) is None
        assert counted(world, turn) == 2

    def test_a_wrong_belief_costs_one_more_request_and_no_call(self, world, turn):
        pay(world, turn, 0)
        assert pay(world, turn, 7) is None
        assert counted(world, turn) == 2

    def test_after_the_deadline_nothing_is_spent(self, world, turn):
        world.clock.advance(80_000)
        assert pay(world, turn) == Exhausted("deadline")
        assert counted(world, turn) == 0

    def test_an_unwritable_count_makes_no_call(self, world, turn):
        world.store.drop["spend"] = ATTEMPTS
        with pytest.raises(ContentionError):
            pay(world, turn)


class TestStop:
    @pytest.mark.covers("F-365", "F-372")
    @pytest.mark.parametrize("spent", [0, 3])
    @pytest.mark.parametrize(
        ("how", "reason"),
        [
            ("message", "newer_customer_message"),
            ("takeover", "human_takeover"),
            ("cancel", "cancelled"),
            ("sweep", "timed_out"),
        ],
    )
    def test_a_run_ended_from_outside_learns_it_in_the_write_that_would_spend(
        self, world, turn, how, reason, spent
    ):
        for n in range(spent):
            pay(world, turn, n)
        now = world.clock.now_ms()
        if how == "message":
            world.say("two")
        elif how == "takeover":
            world.hands("takeover", term=0)
        elif how == "cancel":
            world.cancel(turn.run)
        else:
            world.clock.advance(80_000)
            world.sweep()
        stopped_after = replace(turn, deadline=now + 10**6)
        assert pay(world, stopped_after, spent) == Stopped(reason)
        assert counted(world, turn) == spent
        assert world.items[keys.budget(ACCOUNT, turn.run)]["ttl"] > now // 1000

    def test_a_stop_that_meets_the_spending_wins(self, world, turn):
        world.store.before["spend"] = lambda: world.say("two")
        assert pay(world, turn) == Stopped("newer_customer_message")
