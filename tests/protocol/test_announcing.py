"""What is stored is pushed, and only that; a gone socket fails nothing; a client that was away catches up in order."""

from __future__ import annotations

import json

import pytest

from tests.protocol.world import ACCOUNT
from turngate.domain import keys
from turngate.domain.shapes import TenantContext
from turngate.errors import TransientError
from turngate.protocol.announcing import MAX_FRAME_BYTES, push_events, push_frame, read_log, replay
from turngate.protocol.connecting import remember_connection

ANN = TenantContext(account=ACCOUNT, principal="ann")


def connect(world, *connections: str, who: TenantContext = ANN) -> None:
    for connection in connections:
        remember_connection(world.store, world.clock, who, connection, world.clock.now_ms())


def got(world, connection: str) -> list[dict]:
    return [json.loads(frame) for frame in world.pusher.frames[connection]]


def connections(world) -> list[str]:
    return sorted(key.sk for key in world.items if key.sk.startswith("CONN#"))


class TestPush:
    @pytest.mark.invariant("I2")
    def test_every_connection_of_the_customer_gets_the_stored_events_in_order(self, world):
        connect(world, "phone", "laptop")
        done = world.answer(world.say("one").run)
        assert world.push(1) == 2
        assert world.push(done.evt) == 4
        assert got(world, "phone") == got(world, "laptop") == world.frames()
        assert [frame["seq"] for frame in got(world, "phone")] == [1, 2, 3]

    @pytest.mark.invariant("I2", "I6")
    def test_nobody_else_gets_them(self, world):
        connect(world, "eves", who=TenantContext(account=ACCOUNT, principal="eve"))
        connect(world, "other", who=TenantContext(account="other", principal="ann"))
        world.say("one")
        assert world.push(1) == 0
        assert (got(world, "eves"), got(world, "other")) == ([], [])

    @pytest.mark.invariant("I2")
    @pytest.mark.parametrize("evt", [0, 2, 999])
    def test_an_event_that_no_transaction_stored_is_not_pushed(self, world, evt):
        connect(world, "phone")
        world.say("one")
        assert world.push(evt) == 0
        assert got(world, "phone") == []

    def test_an_event_without_watchers_online_is_done_with(self, world):
        world.say("one")
        assert world.push(1) == 0
        assert keys.due_at(world.items[keys.events(ACCOUNT, world.conversation, 1)]) is None

    @pytest.mark.parametrize(("age", "kept"), [(10_000, True), (10_001, False)])
    def test_a_gone_socket_fails_nothing_and_is_forgotten_unless_it_is_young(self, world, age, kept):
        connect(world, "gone")
        world.clock.advance(age)
        connect(world, "phone")
        world.pusher.gone.add("gone")
        world.say("one")
        assert world.push(1) == 1
        assert len(got(world, "phone")) == 1
        assert ("CONN#gone" in connections(world)) is kept
        reverse = keys.reverse_connection("gone") in world.items
        assert reverse is kept

    def test_a_push_that_may_work_later_stays_owed_and_reaches_the_others_now(self, world):
        connect(world, "slow", "phone")
        world.pusher.failing.add("slow")
        world.say("one")
        with pytest.raises(TransientError):
            world.push(1)
        assert len(got(world, "phone")) == 1
        assert keys.due_at(world.items[keys.events(ACCOUNT, world.conversation, 1)]) is not None
        world.pusher.failing.clear()
        world.push(1)
        assert len(got(world, "slow")) == 1

    def test_a_deleted_conversation_owes_nothing(self, world):
        connect(world, "phone")
        world.say("one")
        key = keys.events(ACCOUNT, world.conversation, 1)
        item = world.items[key]
        world.store.before["announced"] = lambda: world.store._items.pop(key)
        assert world.push(1) == 1
        world.store._items[key] = item

    def test_an_ephemeral_frame_goes_to_one_connection_or_to_all_watchers(self, world):
        connect(world, "phone", "laptop")
        world.say("one")
        frame = {"type": "pong"}
        send = {"account": ACCOUNT, "frame": frame}
        connection = {"connection_id": "phone", "principal": "ann", "connected_at": 0}
        ports = (world.store, world.pusher, world.clock)
        assert push_frame(*ports, **send, connection=connection) == 1
        assert push_frame(*ports, **send, conversation=world.conversation) == 2
        assert push_frame(*ports, **send) == 0
        assert (len(got(world, "phone")), len(got(world, "laptop"))) == (2, 1)

    def test_an_8_kb_message_in_chinese_stays_within_a_frame(self, world):
        connect(world, "phone")
        world.say("退" * 2730)
        world.push(1)
        (frame,) = world.pusher.frames["phone"]
        assert 8190 < len(frame) <= MAX_FRAME_BYTES


class TestCatchingUp:
    def resume(self, world, after: int):
        before = len(world.pusher.frames["phone"])
        replay(
            world.store,
            world.pusher,
            world.clock,
            account=ACCOUNT,
            conversation=world.conversation,
            after_seq=after,
            last_seq=world.head.evt,
            connection={"connection_id": "phone", "principal": "ann", "connected_at": 0},
            fetch_url="https://here/events",
        )
        return got(world, "phone")[before:]

    @pytest.mark.invariant("I18")
    @pytest.mark.parametrize("after", range(7))
    def test_a_client_gets_exactly_what_it_missed(self, world, after):
        world.answer(world.say("one").run)
        world.answer(world.say("two").run)
        assert world.head.evt == 6
        assert [frame["seq"] for frame in self.resume(world, after)] == list(range(after + 1, 7))

    def test_a_client_that_missed_more_than_a_hundred_is_told_where_to_fetch(self, world):
        for n in range(34):
            world.answer(world.say(f"m{n}").run)
        assert world.head.evt == 102
        (gap,) = self.resume(world, 1)
        assert gap["type"] == "resume.gap"
        assert gap["data"] == {"from_seq": 2, "to_seq": 102, "fetch_url": "https://here/events"}
        assert "seq" not in gap
        assert [frame["seq"] for frame in self.resume(world, 2)] == list(range(3, 103))

    @pytest.mark.parametrize("after", [6, 7, 10**9, 9_999_999_998, 9_999_999_999, 10**15])
    def test_a_client_that_claims_to_have_everything_gets_nothing(self, world, after):
        world.answer(world.say("one").run)
        world.answer(world.say("two").run)
        assert self.resume(world, after) == []

    def test_the_log_is_read_in_pages_without_gaps(self, world):
        for n in range(5):
            world.answer(world.say(f"m{n}").run)
        seen: list[int] = []
        while page := read_log(world.store, ACCOUNT, world.conversation, seen[-1] if seen else 0, 4):
            assert len(page) <= 4
            seen += [frame["seq"] for frame in page]
        assert seen == list(range(1, 16))


def test_a_push_of_another_accounts_conversation_finds_nothing(world):
    world.say("one")
    assert (
        push_events(
            world.store, world.pusher, world.clock, account="other", conversation=world.conversation, evt=1
        )
        == 0
    )
