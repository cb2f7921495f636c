"""A token bucket: bursts up to its size, a steady rate after, and nothing for clocks that run backwards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.domain import keys
from turngate.domain.rate import Empty, RateLimit, Spent, take_token
from turngate.domain.transaction import holds

KEY = keys.rate("a", "p")
LIMIT = RateLimit(burst=3, per_minute=60)


def take(bucket, now, limit=LIMIT):
    return take_token(KEY, bucket, limit, now)


def spend_all(moments, limit=LIMIT):
    """(granted, bucket) of asking at these moments."""
    bucket, granted = None, []
    for now in moments:
        answer = take(bucket, now, limit)
        if isinstance(answer, Spent):
            assert holds(answer.put.condition, bucket)
            bucket = answer.put.item
            granted.append(now)
    return granted, bucket


def test_a_burst_is_granted_and_then_one_a_second():
    granted, _ = spend_all([0, 0, 0, 0, 999, 1000, 1001, 1999, 2000])
    assert granted == [0, 0, 0, 1000, 2000]


@pytest.mark.parametrize("idle", [3000, 10**9])
def test_an_idle_bucket_fills_up_to_its_size_and_no_further(idle):
    granted, _ = spend_all([0, 0, 0] + [idle] * 10)
    assert len(granted) == 6


@given(st.lists(st.integers(0, 20_000), max_size=60), st.integers(1, 5), st.integers(1, 600))
def test_no_window_gets_more_than_its_share(gaps, burst, per_minute):
    limit = RateLimit(burst=burst, per_minute=per_minute)
    moments = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    granted, _ = spend_all(moments, limit)
    for first in range(len(granted)):
        for last in range(first, len(granted)):
            window = granted[last] - granted[first]
            assert last - first + 1 <= burst + window * per_minute / 60_000 + 1e-6


@given(st.integers(0, 5000), st.integers(1, 5), st.integers(1, 600))
def test_who_waits_as_long_as_told_is_served(now, burst, per_minute):
    limit = RateLimit(burst=burst, per_minute=per_minute)
    _, bucket = spend_all([now] * burst, limit)
    answer = take(bucket, now, limit)
    assert isinstance(answer, Empty)
    assert answer.retry_after_ms > 0
    assert isinstance(take(bucket, now + answer.retry_after_ms, limit), Spent)
    if answer.retry_after_ms > 1:
        early = take(bucket, now + answer.retry_after_ms - 1, limit)
        assert isinstance(early, Empty)


def test_a_clock_that_runs_backwards_gives_nothing_away():
    _, bucket = spend_all([10_000] * 3)
    assert isinstance(take(bucket, 0), Empty)
    _, bucket = spend_all([10_000] * 2)
    answer = take(bucket, 0)
    assert isinstance(answer, Spent)
    assert answer.put.item["at"] == 10_000


def test_a_bucket_changed_since_it_was_read_is_not_overwritten():
    _, bucket = spend_all([0])
    one, other = take(bucket, 0), take(bucket, 0)
    assert isinstance(one, Spent)
    assert isinstance(other, Spent)
    assert holds(one.put.condition, bucket)
    assert not holds(other.put.condition, one.put.item)
    fresh = take(None, 0)
    assert isinstance(fresh, Spent)
    assert not holds(fresh.put.condition, bucket)
