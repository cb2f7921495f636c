"""What goes wrong for one party must cost nobody else: a broken item, a flood, a deaf client, a read torn in two."""

from __future__ import annotations

import pytest

from tests.protocol.world import ACCOUNT, START
from turngate.domain import keys
from turngate.domain.shapes import TenantContext
from turngate.domain.upkeep import GIVE_UP_PUSH_MS
from turngate.errors import TransientError
from turngate.protocol.connecting import remember_connection
from turngate.protocol.finishing import Committed
from turngate.protocol.orders import start_order
from turngate.sqs_batch import each_record

SHARD = "DUE#3"


def connect(world, *ids: str) -> None:
    for each in ids:
        tenant = TenantContext(account=ACCOUNT, principal="ann")
        remember_connection(world.store, world.clock, tenant, each, world.clock.now_ms())


@pytest.mark.invariant("I8")
class TestSweeper:
    def test_an_item_that_this_release_cannot_read_stops_nobody(self, world):
        world.store.watching = False
        alien = keys.run(ACCOUNT, "c-alien", "r1")
        item = {"entity": "run", "tenant": {"account": ACCOUNT, "new_field": 1}, "deadline": START}
        world.store._items[alien] = {**item, **keys.due(alien, START), "GSI1PK": SHARD}
        run = world.say("one").run
        world.clock.advance(10_000)
        findings = world.sweep()
        del world.store._items[alien]
        assert findings.started_again == 1
        assert [each.split(":")[0] for each in findings.failures] == [f"{alien.pk} {alien.sk}"]
        assert world.starts.sent == [start_order(ACCOUNT, world.conversation, run)]

    def test_a_flood_of_events_starves_no_run_and_is_ordered_once_a_pass(self, world):
        world.store.watching = False
        run = world.say("one").run
        world.clock.advance(10_000)
        for n in range(1200):
            key = keys.events(ACCOUNT, f"c-flood-{n}", 1)
            due = {**keys.due(key, START - 60_000), "GSI1PK": "DUE#19"}
            world.store._items[key] = {"entity": "events", "last": 1, "at": START - 60_000, **due}
        real_send = world.pushes.send

        def send_slowly(order):
            world.clock.advance(28)
            real_send(order)

        world.pushes.send = send_slowly
        world.sweep(for_ms=25_000)
        flood = [each["conversation"] for each in world.pushes.sent if "flood" in each["conversation"]]
        assert world.starts.sent == [start_order(ACCOUNT, world.conversation, run)]
        assert len(flood) == len(set(flood)) > 800  # the pass ended before the flood did
        for key in [key for key in world.store._items if "c-flood" in key.pk]:
            del world.store._items[key]

    @pytest.mark.parametrize("shard", ["DUE#2", "DUE#9"])
    def test_a_flood_of_runs_in_one_shard_starves_no_other_shard(self, world, shard):
        world.store.watching = False
        run = world.say("one").run
        run_key = keys.run(ACCOUNT, world.conversation, run)
        item = dict(world.store._items[run_key])
        world.store._items[run_key] |= {**keys.due(run_key, START), "GSI1PK": shard}
        flood = [keys.run(ACCOUNT, f"c-flood-{n}", "r1") for n in range(1200)]
        for key in flood:
            world.store._items[key] = {**item, "run": "r1", **keys.due(key, START - 60_000), "GSI1PK": SHARD}
        real_send = world.starts.send

        def send_slowly(order):
            world.clock.advance(28)
            real_send(order)

        world.starts.send = send_slowly
        world.sweep(for_ms=25_000)
        assert start_order(ACCOUNT, world.conversation, run) in world.starts.sent
        for key in flood:
            del world.store._items[key]

    def test_an_event_that_nobody_could_be_told_is_given_up_and_stays_in_the_log(self, world):
        world.say("one")
        key = keys.events(ACCOUNT, world.conversation, 1)
        orders = 0
        while keys.due_at(world.items[key]) is not None:
            world.clock.advance(30_000)
            orders += world.sweep().announced_again
            assert world.clock.now_ms() < START + 2 * GIVE_UP_PUSH_MS
        assert 4 <= orders <= 10  # less and less often, not every pass
        assert world.frames()[0]["type"] == "message.accepted"


class TestPush:
    def test_a_client_that_does_not_read_keeps_nothing_owed_and_its_row(self, world):
        connect(world, "deaf", "phone")
        world.pusher.refusing.add("deaf")
        world.say("one")
        assert world.push(1) == 1
        key = keys.events(ACCOUNT, world.conversation, 1)
        assert keys.due_at(world.items[key]) is None
        assert keys.connection(ACCOUNT, "ann", "deaf") in world.items

    def test_dead_rows_of_a_flaky_network_do_not_hide_the_living_one(self, world):
        connect(world, *(f"a-dead-{n:02d}" for n in range(20)), "z-alive")
        world.pusher.gone.update(f"a-dead-{n:02d}" for n in range(20))
        world.clock.advance(11_000)
        world.say("one")
        assert world.push(1) == 1
        left = [key.sk for key in world.items if key.sk.startswith("CONN#")]
        assert left == ["CONN#z-alive"]


@pytest.mark.invariant("I1")
def test_a_commit_read_torn_in_two_after_a_lost_response_is_still_announced(world):
    """BatchGetItem is no snapshot: RUN may be read before our write lands, and HEAD after it."""
    run = world.say("one").run
    world.begun(run)
    run_key = keys.run(ACCOUNT, world.conversation, run)
    before = dict(world.items[run_key])
    world.store.lose["finish"] = 1
    real_get, torn = world.store.get, []

    def get(account, wanted):
        seen = real_get(account, wanted)
        if run_key in seen and "finish" in world.store.written and not torn:
            torn.append(True)
            return {**seen, run_key: before}
        return seen

    world.store.get = get
    done = world.reply(run)
    assert torn
    assert isinstance(done, Committed)
    assert len(world.replies) == 1


def test_a_batch_that_runs_out_of_time_gives_back_what_it_did_not_try():
    done = []
    event = {"Records": [{"messageId": str(n), "body": str(n)} for n in range(4)]}
    answer = each_record(event, done.append, has_time=lambda: len(done) < 2)
    assert done == ["0", "1"]
    assert [each["itemIdentifier"] for each in answer["batchItemFailures"]] == ["2", "3"]


def test_a_record_that_fails_comes_back_alone():
    def carry_out(body):
        if body == "1":
            raise TransientError("later")

    event = {"Records": [{"messageId": str(n), "body": str(n)} for n in range(3)]}
    answer = each_record(event, carry_out, has_time=lambda: True)
    assert [each["itemIdentifier"] for each in answer["batchItemFailures"]] == ["1"]
