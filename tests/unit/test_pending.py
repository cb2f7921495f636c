"""Open questions in a finish: opened, closed, expired, replaced by order, and never more than four."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.assistant_example import patient
from turngate.domain import wire
from turngate.domain.pending import (
    LIFETIME_MS,
    MAX_OPEN,
    Closing,
    Opening,
    PendingChanges,
    commit_pending,
    pending_item,
    read_open,
    still_open,
    stored,
)
from turngate.domain.records import OpenPending
from turngate.domain.shapes import Clarification, Option
from turngate.domain.transaction import Absent, AtMost, Equals, Put, Update

NOW = 1_900_000_000_000
ASKED = Clarification(
    reason="entity_choice",
    text="请选择",
    intent_id="WARRANTY_STATUS",
    missing_fields=("device",),
    candidates=(Option(id="a", name="A"), Option(id="b", name="B")),
    given={"year": "2026"},
)


def opening(part: str = "p1") -> Opening:
    return Opening(part_id=part, question="还在保吗", clarification=ASKED)


def committed(listed: list[OpenPending], changes: PendingChanges):
    return commit_pending("acme", "c1", listed, changes, run="r1", seq=7, now=NOW)


@pytest.mark.covers("F-040")
def test_a_question_becomes_an_item_that_holds_all_that_is_needed_to_go_on() -> None:
    actions, listed = committed([], PendingChanges(opened=(opening(),)))
    (put,) = actions
    assert isinstance(put, Put)
    assert put.condition == (Absent(),)
    assert put.key.sk == f"PEND#{listed[0].id}"
    (item,) = read_open([put.item], NOW)
    assert (item.kind, item.question, item.intent_id) == ("entity_choice", "还在保吗", "WARRANTY_STATUS")
    assert (item.missing_fields, item.candidates, item.given) == (
        ("device",),
        ASKED.candidates,
        {"year": "2026"},
    )
    assert (item.asked_seq, item.expires_at) == (7, NOW + LIFETIME_MS)
    assert item.resume_token not in (item.pending_id, "")


def test_the_same_commit_writes_the_same_item_and_another_part_another_one() -> None:
    one, again = (pending_item("acme", "r1", 7, opening(), NOW) for _ in range(2))
    assert one == again
    others = {pending_item(a, r, 7, opening(p), NOW).pending_id for a in "xy" for r in "xy" for p in "xy"}
    assert len(others) == 8


def test_an_item_of_an_older_release_is_read_and_those_of_one_reply_keep_their_order() -> None:
    numbers = {"p1": 1, "p2": 3, "p3": 5, "p4": 7}
    items = [
        pending_item("acme", "r1", 7, replace(opening(part), first_number=first, again=1), NOW)
        for part, first in reversed(numbers.items())
    ]
    found = read_open([stored(item) for item in items], NOW)
    assert [(item.first_number, item.again) for item in found] == [(1, 1), (3, 1), (5, 1), (7, 1)]
    older = {
        key: value for key, value in wire.write(items[0]).items() if key not in ("first_number", "again")
    }
    (read,) = read_open([{**stored(items[0]), "item": wire.write_json(older)}], NOW)
    assert (read.first_number, read.again) == (1, 0)


def test_closing_conditions_on_the_item_being_open() -> None:
    listed = [OpenPending("q1", NOW + 5), OpenPending("q2", NOW + 5)]
    actions, left = committed(listed, PendingChanges(closed=(Closing(pending_id="q1", state="resumed"),)))
    (update,) = actions
    assert isinstance(update, Update)
    assert (update.set["state"], update.condition) == ("resumed", (Equals("state", "open"),))
    assert left == (listed[1],)


def test_what_head_does_not_list_is_not_closed() -> None:
    closed = PendingChanges(closed=(Closing(pending_id="gone", state="cancelled"),))
    assert committed([OpenPending("q1", NOW + 5)], closed) == ((), (OpenPending("q1", NOW + 5),))


def test_expiry_is_part_of_whatever_commits_next() -> None:
    listed = [OpenPending("old", NOW), OpenPending("young", NOW + 1)]
    actions, left = committed(listed, PendingChanges())
    (update,) = actions
    assert isinstance(update, Update)
    assert update.set["state"] == "expired"
    assert update.condition == (Equals("state", "open"), AtMost("expires_at", NOW))
    assert left == (listed[1],)
    assert still_open(listed, NOW) == ("young",)


def test_the_oldest_leaves_when_a_fifth_comes() -> None:
    listed = [OpenPending(f"q{n}", NOW + 5) for n in range(MAX_OPEN)]
    actions, left = committed(listed, PendingChanges(opened=(opening(),)))
    states = {action.name: action.set["state"] for action in actions if isinstance(action, Update)}
    assert states == {"pending_q0": "dropped"}
    assert [each.id for each in left][:3] == ["q1", "q2", "q3"]
    assert len(left) == MAX_OPEN


def test_a_turn_without_questions_writes_nothing() -> None:
    listed = [OpenPending("q1", NOW + 5)]
    assert committed(listed, PendingChanges()) == ((), tuple(listed))


entries = st.lists(
    st.builds(OpenPending, st.sampled_from("abcdef"), st.integers(NOW - 2, NOW + 2)),
    max_size=4,
    unique_by=lambda e: e.id,
)
closings = st.lists(
    st.builds(
        Closing, pending_id=st.sampled_from("abcdefg"), state=st.sampled_from(["resumed", "cancelled"])
    ),
    max_size=4,
)


@patient
@given(entries, closings, st.integers(0, 6))
def test_after_any_commit_the_list_is_true(
    listed: list[OpenPending], closed: list[Closing], new: int
) -> None:
    opened = tuple(opening(f"p{n}") for n in range(new))
    actions, left = committed(listed, PendingChanges(opened=opened, closed=tuple(closed)))
    assert len(left) <= MAX_OPEN
    assert len({action.name for action in actions}) == len(actions)
    written = {action.key.sk.removeprefix("PEND#") for action in actions if isinstance(action, Put)}
    ended = {action.key.sk.removeprefix("PEND#") for action in actions if isinstance(action, Update)}
    before = {each.id for each in listed}
    assert {each.id for each in left} == (before | written) - ended
    assert ended <= before
    assert all(each.expires_at > NOW for each in left)
