"""The sweeper: a lost start, a dead execution and an unpushed event are found, whoever died on the way (I8)."""

from __future__ import annotations

import pytest

from tests.protocol.world import ACCOUNT, START
from turngate.domain import keys
from turngate.domain.accept import START_GRACE_MS, TURN_DEADLINE_MS
from turngate.errors import ContentionError
from turngate.protocol.finishing import Committed
from turngate.protocol.orders import push_order, start_order

pytestmark = pytest.mark.invariant("I8")


class TestLostStart:
    def test_a_queued_run_is_started_again_after_ten_seconds(self, world):
        run = world.say("one").run
        world.push(1)
        world.clock.advance(START_GRACE_MS - 1)
        assert world.sweep().progress == 0
        world.clock.advance(1)
        assert world.sweep().started_again == 1
        assert world.starts.sent == [start_order(ACCOUNT, world.conversation, run)]
        assert world.state(run) == "queued"

    def test_it_is_started_again_every_ten_seconds_until_it_is_begun(self, world):
        run = world.say("one").run
        world.push(1)
        for count in (1, 2, 3):
            world.clock.advance(START_GRACE_MS)
            assert world.sweep().started_again == 1
            assert world.sweep().started_again == 0
            assert len(world.starts.sent) == count
        world.begun(run)
        world.clock.advance(START_GRACE_MS)
        assert world.sweep().progress == 0

    def test_a_sweeper_that_cannot_send_says_so_and_the_run_comes_back(self, world):
        world.say("one")
        world.push(1)
        world.clock.advance(START_GRACE_MS)
        world.starts.down = True
        findings = world.sweep()
        assert (findings.started_again, len(findings.failures)) == (0, 1)
        world.starts.down = False
        world.clock.advance(START_GRACE_MS)
        assert world.sweep().started_again == 1

    def test_of_two_sweepers_one_starts_it(self, world):
        world.say("one")
        world.push(1)
        world.clock.advance(START_GRACE_MS)
        world.store.before["postpone"] = world.sweep
        assert world.sweep().started_again == 0
        assert len(world.starts.sent) == 1

    def test_a_run_begun_at_that_moment_is_left_alone(self, world):
        run = world.say("one").run
        world.push(1)
        world.clock.advance(START_GRACE_MS)
        world.store.before["postpone"] = lambda: world.begun(run)
        assert world.sweep().started_again == 0
        assert world.starts.sent == []
        assert keys.due_at(world.run_item(run)) == START + TURN_DEADLINE_MS


class TestDeadline:
    @pytest.mark.covers("F-351")
    @pytest.mark.parametrize("begun", [False, True], ids=["queued", "running"])
    def test_an_open_run_past_its_deadline_ends_with_a_stated_failure(self, world, begun):
        run = world.say("one").run
        world.push(1)
        if begun:
            world.begun(run)
            world.clock.advance(TURN_DEADLINE_MS - 1)
            assert world.sweep().progress == 0
            world.clock.advance(1)
        else:
            world.clock.advance(TURN_DEADLINE_MS)
        assert world.sweep().timed_out == 1
        assert world.state(run) == "timed_out"
        assert world.replies == ["that took too long"]
        assert world.frames()[-1]["type"] == "run.timed_out"
        assert push_order(ACCOUNT, world.conversation, 3) in world.pushes.sent
        assert world.items[keys.budget(ACCOUNT, run)]["stopped"] == "timed_out"

    @pytest.mark.invariant("I9")
    def test_a_late_worker_finds_its_run_ended(self, world):
        run = world.say("one").run
        world.begun(run)
        world.clock.advance(TURN_DEADLINE_MS)
        world.sweep()
        assert world.reply(run).kind == "not_current"
        assert world.replies == ["that took too long"]

    @pytest.mark.invariant("I9", "I1")
    def test_a_commit_that_meets_the_sweeper_stays(self, world):
        run = world.say("one").run
        world.begun(run)
        world.clock.advance(TURN_DEADLINE_MS)
        world.store.before["finish"] = lambda: world.reply(run)
        world.sweep()
        assert (world.state(run), world.replies) == ("completed", ["an answer"])

    @pytest.mark.invariant("I9")
    def test_a_message_that_meets_the_sweeper_gets_its_turn(self, world):
        run = world.say("one").run
        world.begun(run)
        world.clock.advance(TURN_DEADLINE_MS)
        later = []
        world.store.before["finish"] = lambda: later.append(world.say("two"))
        world.sweep()
        assert (world.state(run), world.state(later[0].run)) == ("superseded", "queued")
        assert world.replies == []

    def test_a_lost_response_of_the_ending_still_pushes_it(self, world):
        run = world.say("one").run
        world.begun(run)
        world.clock.advance(TURN_DEADLINE_MS)
        world.store.lose["finish"] = 1
        world.sweep()
        assert push_order(ACCOUNT, world.conversation, 3) in world.pushes.sent
        assert world.replies == ["that took too long"]

    def test_every_message_is_covered_within_its_bound_when_every_start_is_lost(self, world):
        """Nobody ever begins a run; the sweeper comes every minute."""
        sent = {world.say(f"m{n}").message_seq: world.clock.now_ms() for n in range(3)}
        answered: dict[int, int] = {}
        for _ in range(5):
            world.clock.advance(60_000)
            world.sweep()
            answered |= {
                seq: world.clock.now_ms()
                for seq in sent
                if seq <= world.head.answered_through and seq not in answered
            }
        assert set(answered) == set(sent)
        assert all(answered[seq] - sent[seq] <= TURN_DEADLINE_MS + 120_000 for seq in sent)


class TestUnpushedEvents:
    def test_an_event_nobody_announced_is_announced_after_ten_seconds(self, world):
        done = world.answer(world.say("one").run)
        assert isinstance(done, Committed)
        world.clock.advance(10_000)
        findings = world.sweep()
        assert findings.announced_again == 2
        assert [order["evt"] for order in world.pushes.sent] == [1, 3]
        for order in world.pushes.sent:
            world.push(order["evt"])
        world.clock.advance(10**9)
        assert world.sweep().progress == 0

    def test_an_announced_event_owes_nothing(self, world):
        world.answer(world.say("one").run)
        world.push(1)
        world.push(3)
        world.clock.advance(10**9)
        assert world.sweep().progress == 0
        assert not [item for item in world.items.values() if keys.due_at(item) is not None]

    def test_a_push_that_meets_the_sweeper_is_not_owed_any_more(self, world):
        world.answer(world.say("one").run)
        world.push(1)
        world.clock.advance(10_000)
        world.store.before["postpone"] = lambda: world.push(3)
        assert world.sweep().announced_again == 0


class TestManyItems:
    def test_one_broken_item_does_not_keep_the_others_waiting(self, world):
        broken = keys.run(ACCOUNT, "c-broken", "r1")
        world.store.put_all(ACCOUNT, [(broken, {"entity": "run", "tenant": {}, **keys.due(broken, START)})])
        world.store._items[broken] |= {
            "run": "r1",
            "state": "running",
            "epoch": 1,
            "seq": 1,
            "deadline": START,
            "created_at": START,
            "tenant": {"account": ACCOUNT, "principal": "p"},
        }
        run = world.say("one").run
        world.clock.advance(TURN_DEADLINE_MS)
        findings = world.sweep()
        assert (findings.timed_out, len(findings.failures)) == (1, 1)
        assert world.state(run) == "timed_out"

    def test_one_shard_that_cannot_be_read_does_not_keep_the_others_waiting(self, world, monkeypatch):
        run = world.say("one").run
        world.clock.advance(TURN_DEADLINE_MS)
        due, asked = world.store.due, []

        def throttled(shard, until, limit):
            asked.append(shard)
            if len(asked) == 1:
                raise ContentionError("ThrottlingException")
            return due(shard, until, limit)

        monkeypatch.setattr(world.store, "due", throttled)
        findings = world.sweep()
        assert len(findings.failures) == 1
        assert sorted(asked) == [*keys.RUN_SHARDS, *keys.EVENT_SHARDS]
        monkeypatch.setattr(world.store, "due", due)
        assert findings.timed_out + world.sweep().timed_out == 1
        assert world.state(run) == "timed_out"

    def test_more_than_a_batch_in_one_shard_is_done_in_one_sweep(self, world):
        world.store.watching = False
        for n in range(120):
            said = world.say(f"m{n}", who="ann", opening=f"o{n}")
            key = keys.run(ACCOUNT, said.conversation, said.run)
            world.store._items[key] |= {"GSI1PK": "DUE#3"}
        world.clock.advance(TURN_DEADLINE_MS)
        assert world.sweep(for_ms=600_000).timed_out == 120

    def test_a_sweep_ends_when_its_time_is_over(self, world):
        world.say("one")
        world.clock.advance(TURN_DEADLINE_MS)
        assert world.sweep(for_ms=0).progress == 0
