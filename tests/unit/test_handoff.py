"""Takeover, pick-up, human reply and release as values: each on the term and the owner its caller saw."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from turngate.domain.handoff import plan_accept_handoff, plan_human_reply, plan_release, plan_takeover
from turngate.domain.records import Head
from turngate.domain.transaction import Absent, OneOf, applied, holds

AI = Head(owner="ann", seq=4, customer_seq=4, evt=9, epoch=3, term=2, active_run="r4", oldest_unanswered_at=1)
HUMAN = replace(AI, mode="HUMAN", agent="bob", active_run=None, oldest_unanswered_at=None)
WAITS = replace(HUMAN, agent=None)
STORED = {
    "takeover": {"mode": "AI", "term": 2, "evt": 9},
    "accept_handoff": {"mode": "HUMAN", "term": 2, "evt": 9},
    "human_reply": {"mode": "HUMAN", "agent": "bob", "evt": 9},
    "release": {"mode": "HUMAN", "agent": "bob", "term": 2, "evt": 9},
}


def plan(change: str, head: Head | None = None):
    where = ("acme", "conv")
    match change:
        case "takeover":
            return plan_takeover(*where, head or AI, term=2, agent="bob", now=50)
        case "accept_handoff":
            return plan_accept_handoff(*where, head or WAITS, term=2, agent="bob", now=50)
        case "human_reply":
            return plan_human_reply(
                *where,
                head or HUMAN,
                agent="bob",
                client_message_id="h1",
                body_sha256="s",
                text="hi",
                writer="w",
                now=50,
            )
    return plan_release(*where, head or HUMAN, term=2, agent="bob", now=50)[0]


def actions(change: str, head: Head | None = None):
    return {action.name: action for action in plan(change, head).actions}


@pytest.mark.invariant("I4", "I10", "I18")
@pytest.mark.parametrize(
    ("change", "moved", "to"),
    [
        *((change, "evt", 10) for change in STORED),
        ("takeover", "mode", "HUMAN"),
        ("takeover", "term", 3),
        ("accept_handoff", "mode", "AI"),
        ("accept_handoff", "term", 3),
        ("accept_handoff", "agent", "cy"),
        ("human_reply", "mode", "AI"),
        ("human_reply", "agent", "cy"),
        ("release", "mode", "AI"),
        ("release", "agent", "cy"),
        ("release", "term", 3),
    ],
)
def test_each_change_needs_the_owner_and_the_counters_its_caller_saw(change, moved, to):
    condition = actions(change)["head"].condition
    assert holds(condition, STORED[change])
    assert not holds(condition, {**STORED[change], moved: to})
    assert not holds(condition, None)


@pytest.mark.invariant("I4")
@pytest.mark.covers("F-002", "F-364")
def test_a_takeover_raises_both_fences_and_ends_the_open_run():
    made = actions("takeover")
    after = applied(made["head"], {**STORED["takeover"], "active_run": "r4", "protected_run": "r4"})
    assert after is not None
    assert (after["mode"], after["agent"], after["epoch"], after["term"]) == ("HUMAN", "bob", 4, 3)
    assert not {"active_run", "protected_run", "oldest_unanswered_at"} & set(after)
    assert made["previous_run"].condition == (OneOf("state", ("queued", "running")),)
    assert made["budget"].set["stopped"] == "human_takeover"


def test_a_takeover_of_an_idle_conversation_ends_nothing():
    assert set(actions("takeover", replace(AI, active_run=None))) == {"head", "events"}


@pytest.mark.covers("F-006", "F-369")
def test_a_human_reply_answers_everything_before_it():
    made = actions("human_reply")
    assert made["head"].set == {"seq": 5, "answered_through": 5, "evt": 10}
    assert made["message"].item["text"] == "hi"
    for name in ("idempotency", "message", "events"):
        assert made[name].condition == (Absent(),)


@pytest.mark.covers("F-017")
@pytest.mark.invariant("I4", "I8")
@pytest.mark.parametrize(("answered", "starts"), [(3, True), (4, False)])
def test_a_release_starts_a_run_exactly_when_a_customer_waits(answered, starts):
    head = replace(HUMAN, answered_through=answered)
    made = actions("release", head)
    after = applied(made["head"], STORED["release"])
    assert after is not None
    assert (after["mode"], after["epoch"], after["term"]) == ("AI", 4, 3)
    assert "agent" not in after
    assert ("active_run" in after) == starts
    assert set(made) == {"head", "events"} | ({"trigger", "next_run"} if starts else set())
    if starts:
        assert made["next_run"].item["epoch"] == after["epoch"]
        assert made["next_run"].item["run"] == after["active_run"]
