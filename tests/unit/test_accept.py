"""Accepting as a value: what one decision writes and on which conditions (INVARIANTS, accept)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from turngate.domain import keys
from turngate.domain.accept import Accept, Refuse, Replay, Submission, decide_accept
from turngate.domain.rate import RateLimit
from turngate.domain.records import Head
from turngate.domain.shapes import TenantContext
from turngate.domain.transaction import Absent, Equals, OneOf, Put, applied, holds

ANN = TenantContext(account="acme", principal="ann", customer="c1")
HELLO = Submission(
    tenant=ANN,
    conversation="conv",
    is_opening=True,
    client_message_id="m1",
    body_sha256="hash",
    text="hello",
    message_type="user_chat",
    language="en",
    writer="w1",
)
OPEN = Head(
    owner="ann", seq=4, customer_seq=4, evt=9, epoch=3, active_run="r4", oldest_unanswered_at=0, supersedes=1
)
IDLE = Head(owner="ann", seq=4, customer_seq=4, evt=9, epoch=3, answered_through=4)
HUMAN = replace(IDLE, mode="HUMAN", agent="bob")
BEHIND = replace(OPEN, protected_run="r4")


def decide(head: Head | None = None, submission: Submission = HELLO, now: int = 1000, **seen):
    return decide_accept(
        submission,
        head=head,
        idempotency=seen.get("idempotency"),
        bucket=seen.get("bucket"),
        now=now,
        limit=RateLimit(),
    )


def actions(head: Head | None, **options):
    decision = decide(head, **options)
    assert isinstance(decision, Accept)
    return {action.name: action for action in decision.transaction.actions}


MODES = {
    "first message": (None, {"head", "idempotency", "message", "run", "events", "watcher", "rate"}),
    "AI, idle": (IDLE, {"head", "idempotency", "message", "run", "events", "rate"}),
    "AI, open run": (
        OPEN,
        {"head", "idempotency", "message", "run", "events", "rate", "previous_run", "budget", "run_log"},
    ),
    "behind a protected run": (BEHIND, {"head", "idempotency", "message", "events", "rate"}),
    "HUMAN": (HUMAN, {"head", "idempotency", "message", "events", "rate"}),
}


@pytest.mark.invariant("I7", "I18")
@pytest.mark.parametrize(("head", "written"), MODES.values(), ids=MODES)
def test_each_mode_writes_exactly_its_items(head, written):
    assert set(actions(head)) == written


@pytest.mark.invariant("I7")
@pytest.mark.parametrize(("head", "written"), MODES.values(), ids=MODES)
def test_everything_new_is_new(head, written):
    made = actions(head)
    for name in written & {"idempotency", "message", "run", "events", "run_log"}:
        assert isinstance(made[name], Put)
        assert made[name].condition == (Absent(),)


@pytest.mark.invariant("I1", "I2", "I18")
@pytest.mark.parametrize("head", [IDLE, OPEN, BEHIND, HUMAN], ids=["idle", "open", "behind", "human"])
@pytest.mark.parametrize("moved", ["seq", "epoch", "evt", "mode"])
def test_head_is_written_only_as_it_was_read(head, moved):
    """Each counter alone stops the write, also where another one would have moved with it."""
    stored = {"seq": head.seq, "epoch": head.epoch, "evt": head.evt, "mode": head.mode}
    condition = actions(head)["head"].condition
    assert holds(condition, stored)
    other = ("HUMAN" if head.mode == "AI" else "AI") if moved == "mode" else stored[moved] + 1
    assert not holds(condition, {**stored, moved: other})
    assert not holds(condition, None)


@pytest.mark.invariant("I7")
def test_a_first_message_needs_a_conversation_that_does_not_exist():
    head = actions(None)["head"]
    assert head.condition == (Absent(),)
    assert (head.item["seq"], head.item["epoch"], head.item["evt"], head.item["term"]) == (1, 1, 1, 0)
    assert (head.item["owner"], head.item["customer"]) == ("ann", "c1")


@pytest.mark.invariant("I2", "I9")
def test_the_run_before_is_ended_only_while_it_is_open():
    made = actions(OPEN)
    assert made["previous_run"].condition == (OneOf("state", ("queued", "running")),)
    assert made["previous_run"].key == keys.run("acme", "conv", "r4")
    ended = applied(made["previous_run"], {"state": "running", **keys.due(made["previous_run"].key, 1)})
    assert ended is not None
    assert (ended["state"], keys.due_at(ended)) == ("superseded", None)
    assert made["budget"].set["stopped"] == "newer_customer_message"


@pytest.mark.invariant("I8")
def test_a_new_run_owes_its_start_in_ten_seconds_and_its_end_in_seventy_five():
    run = actions(IDLE)["run"].item
    assert keys.due_at(run) == 11_000
    assert run["deadline"] == 76_000


@pytest.mark.invariant("I20")
@pytest.mark.parametrize(
    ("head", "now", "protected"),
    [
        (replace(OPEN, supersedes=1), 1000, False),
        (replace(OPEN, supersedes=2), 1000, True),
        (replace(OPEN, supersedes=2, active_run=None), 1000, False),
        (replace(OPEN, supersedes=3, active_run=None), 1000, True),
        (OPEN, 19_999, False),
        (OPEN, 20_000, True),
        (replace(OPEN, oldest_unanswered_at=None), 20_000, False),
    ],
)
def test_three_supersedes_or_twenty_seconds_protect(head, now, protected):
    made = actions(head, now=now)
    assert made["run"].item["protected"] is protected
    assert ("protected_run" in made["head"].set) is protected


def test_the_oldest_unanswered_moment_stays_while_messages_pile_up():
    assert actions(OPEN, now=500)["head"].set["oldest_unanswered_at"] == 0
    assert actions(IDLE, now=500)["head"].set["oldest_unanswered_at"] == 500


@pytest.mark.invariant("I20", "I4")
@pytest.mark.parametrize("head", [BEHIND, HUMAN], ids=["behind", "human"])
def test_a_message_that_is_only_kept_leaves_epoch_and_run_alone(head):
    assert set(actions(head)["head"].set) == {"seq", "customer_seq", "evt"}


@pytest.mark.invariant("I7")
@pytest.mark.covers("F-357", "F-359")
@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        ({"body_sha256": "hash", "writer": "w1"}, "ours"),
        ({"body_sha256": "hash", "writer": "w0"}, "duplicate"),
        ({"body_sha256": "other", "writer": "w0"}, "conflict"),
        ({"body_sha256": "other", "writer": "w1"}, "conflict"),
    ],
)
def test_a_remembered_message_is_ours_a_duplicate_or_a_conflict(stored, kind):
    decision = decide(IDLE, idempotency={"seq": 2, "evt": 5, "run": "r2", **stored})
    if kind == "conflict":
        assert decision == Refuse("message_conflict")
    else:
        assert isinstance(decision, Replay)
        assert (decision.ours, decision.result.duplicate) == (kind == "ours", kind == "duplicate")
        assert (decision.result.message_seq, decision.result.run, decision.result.evt) == (2, "r2", 5)


@pytest.mark.invariant("I6")
@pytest.mark.covers("F-647")
def test_no_conversation_and_anothers_conversation_are_refused_alike():
    later = replace(HELLO, is_opening=False)
    remembered = {"body_sha256": "hash", "writer": "w1", "seq": 1, "evt": 1}
    nobodys = decide(None, later)
    anothers = decide(replace(IDLE, owner="eve"), later, idempotency=remembered)
    assert nobodys == anothers == Refuse("conversation_not_found")


def test_a_replay_needs_no_token():
    empty = {"tokens": 0, "at": 1000, "version": 7}
    remembered = {"body_sha256": "hash", "writer": "w0", "seq": 1, "evt": 1}
    assert isinstance(decide(IDLE, idempotency=remembered, bucket=empty), Replay)
    refused = decide(IDLE, bucket=empty)
    assert isinstance(refused, Refuse)
    assert refused.code == "rate_limited"


@pytest.mark.invariant("I15")
def test_the_token_is_spent_in_the_same_transaction_on_the_bucket_as_read():
    made = actions(IDLE, bucket={"tokens": 5000, "at": 1000, "version": 7})
    assert made["rate"].condition == (Equals("version", 7),)
    assert made["rate"].item["tokens"] == 4000


@pytest.mark.covers("F-355")
def test_the_runs_own_log_holds_no_message_text():
    assert "hello" not in str(actions(OPEN)["run_log"])
