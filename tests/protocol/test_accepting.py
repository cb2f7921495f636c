"""A message comes in: in AI mode, behind a protected run, to a human; once, twice, and at the same time as others."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.protocol.world import ACCOUNT, World
from turngate.domain import keys
from turngate.domain.rate import RateLimit
from turngate.errors import ContentionError, RefusedError
from turngate.protocol.finishing import Committed, NotCurrent
from turngate.protocol.retrying import ATTEMPTS


class TestInAiMode:
    @pytest.mark.covers("F-001", "F-350", "F-351", "F-640")
    def test_a_first_message_opens_the_conversation_and_queues_a_run(self, world):
        said = world.say("hello", "m1")
        assert (said.message_seq, said.duplicate, said.evt) == (1, False, 1)
        assert said.conversation == keys.conversation_id_for(ACCOUNT, "ann", "m1")
        run = world.run(said.run)
        assert (run.state, run.seq, run.epoch, run.protected) == ("queued", 1, 1, False)
        assert (run.tenant.principal, run.tenant.customer) == ("ann", "cust-ann")
        assert world.head.active_run == said.run
        assert world.event_types() == ["message.accepted"]
        assert world.frames()[0]["data"]["client_message_id"] == "m1"

    @pytest.mark.invariant("I2")
    @pytest.mark.covers("F-361", "F-362", "F-363")
    def test_a_newer_message_supersedes_the_run_before_it(self, world):
        first, second = world.say("one"), world.say("two")
        assert world.state(first.run) == "superseded"
        assert world.state(second.run) == "queued"
        superseded = world.frames()[-1]
        assert superseded["type"] == "run.superseded"
        assert superseded["run_id"] == first.run
        assert superseded["data"] == {"reason": "newer_customer_message", "by_run_id": second.run}

    @pytest.mark.invariant("I2")
    @pytest.mark.covers("F-368", "F-370", "F-371", "F-380")
    def test_a_finished_thought_about_an_older_message_is_not_said(self, world):
        first = world.say("one")
        world.begun(first.run)
        second = world.say("two")
        assert world.reply(first.run) == NotCurrent("superseded")
        assert world.replies == []
        world.answer(second.run, "to both")
        assert world.replies == ["to both"]

    @pytest.mark.invariant("I2")
    def test_a_message_that_wins_the_race_for_the_commit_wins_the_turn(self, world):
        first = world.say("one")
        world.begun(first.run)
        world.store.before["finish"] = lambda: world.say("two")
        assert world.reply(first.run) == NotCurrent("superseded")
        assert world.replies == []

    @pytest.mark.invariant("I18")
    @pytest.mark.covers("F-361")
    def test_two_messages_at_once_get_two_numbers_and_the_later_one_the_turn(self, world):
        world.say("zero")
        inner = []
        world.store.before["accept"] = lambda: inner.append(world.say("one"))
        outer = world.say("two")
        assert (inner[0].message_seq, outer.message_seq) == (2, 3)
        assert world.head.active_run == outer.run

    def test_a_message_after_an_answer_starts_afresh(self, world):
        world.answer(world.say("one").run)
        second = world.say("two")
        assert [m.text for m in world.begun(second.run).messages] == ["two"]
        assert world.head.supersedes == 0

    def test_the_language_of_the_latest_message_is_the_conversations(self, world):
        world.say("hello", language="en")
        world.say("你好", language="zh-CN")
        assert world.head.language == "zh-CN"
        world.say("?", language="")
        assert world.head.language == "zh-CN"


class TestOnce:
    @pytest.mark.invariant("I7")
    @pytest.mark.covers("F-357", "F-360", "F-376")
    @pytest.mark.parametrize("first", [True, False], ids=["first message", "later message"])
    def test_a_resend_returns_what_was_committed_and_changes_nothing(self, world, first):
        if not first:
            world.answer(world.say("zero").run)
        said = world.say("one", "m1", conversation=None)
        before = world.items
        again = world.say("one", "m1")
        assert again.duplicate
        assert (again.message_id, again.message_seq, again.run, again.evt) == (
            said.message_id,
            said.message_seq,
            said.run,
            said.evt,
        )
        assert world.items == before

    @pytest.mark.invariant("I7")
    def test_a_resend_of_the_first_message_without_its_conversation_opens_no_second_one(self, world):
        said = world.say("one", "m1")
        again = world.say("one", "m1", opening="m1")
        assert again.duplicate
        assert again.conversation == said.conversation

    @pytest.mark.invariant("I7")
    def test_a_burst_before_the_first_answer_is_one_conversation_in_any_order(self, world):
        second = world.say("two", "m2", opening="m1")
        first = world.say("one", "m1", opening="m1")
        assert first.conversation == second.conversation
        assert world.messages("U") == [(1, "U", "two"), (2, "U", "one")]

    @pytest.mark.invariant("I7")
    @pytest.mark.covers("F-359")
    @pytest.mark.parametrize("change", [{"text": "other"}, {"message_type": "form"}], ids=["text", "type"])
    def test_another_body_under_a_known_id_is_refused_and_changes_nothing(self, world, change):
        world.say("one", "m1")
        before = world.items
        with pytest.raises(RefusedError) as refused:
            world.say(**{"text": "one", "id_": "m1", **change})
        assert refused.value.code == "message_conflict"
        assert world.items == before

    @pytest.mark.covers("F-377")
    def test_the_same_text_under_a_new_id_is_a_new_message(self, world):
        assert world.say("again", "m1").message_seq == 1
        assert world.say("again", "m2").message_seq == 2

    @pytest.mark.invariant("I7")
    @pytest.mark.covers("F-358", "F-374")
    @pytest.mark.parametrize("first", [True, False], ids=["first message", "later message"])
    def test_our_own_lost_response_is_a_first_acceptance(self, world, first):
        if not first:
            world.say("zero")
        world.store.lose["accept"] = 1
        said = world.say("one", "m1")
        assert not said.duplicate
        assert world.state(said.run) == "queued"
        assert len(world.messages("U")) == (1 if first else 2)

    @pytest.mark.invariant("I7", "I8")
    @pytest.mark.parametrize("lost", [False, True])
    def test_a_resend_names_the_stored_event_also_when_it_superseded_a_run(self, world, lost):
        """An event is stored under the number of the transaction's last one: any other number pushes nothing."""
        world.say("zero")
        world.store.lose["accept"] = int(lost)
        said = world.say("one", "m1")
        assert world.say("one", "m1").evt == said.evt == 3
        assert keys.events(ACCOUNT, world.conversation, said.evt) in world.items

    @pytest.mark.invariant("I7")
    @pytest.mark.covers("F-358")
    def test_the_same_message_at_the_same_time_is_accepted_once(self, world):
        inner = []
        world.store.before["accept"] = lambda: inner.append(world.say("one", "m1"))
        outer = world.say("one", "m1", opening="m1")
        assert (inner[0].duplicate, outer.duplicate) == (False, True)
        assert outer.message_id == inner[0].message_id
        assert len(world.messages()) == 1

    def test_a_write_that_never_arrived_is_tried_again(self, world):
        world.store.drop["accept"] = ATTEMPTS - 1
        assert world.say("one").message_seq == 1

    def test_when_others_keep_winning_the_sender_is_told_to_come_back(self, world):
        world.store.drop["accept"] = ATTEMPTS
        with pytest.raises(ContentionError):
            world.say("one")
        assert not [key for key in world.items if key.sk == "HEAD"]


class TestWhoMaySpeak:
    @pytest.mark.invariant("I6")
    @pytest.mark.covers("F-647", "F-648", "F-643")
    def test_another_users_conversation_looks_as_if_it_did_not_exist(self, world):
        mine = world.say("secret")
        before = world.items
        codes = []
        for conversation in (mine.conversation, "c-of-nobody"):
            with pytest.raises(RefusedError) as refused:
                world.say("hi", "m2", who="eve", conversation=conversation)
            codes.append(str(refused.value))
        assert codes[0] == codes[1] == "conversation_not_found"
        assert world.items == before

    @pytest.mark.invariant("I6")
    def test_a_known_message_id_of_another_user_reveals_nothing(self, world):
        mine = world.say("secret", "m1")
        with pytest.raises(RefusedError, match="conversation_not_found"):
            world.say("secret", "m1", who="eve", conversation=mine.conversation)

    @pytest.mark.covers("F-649")
    def test_two_users_with_the_same_message_id_have_conversations_of_their_own(self, world):
        mine = world.say("one", "m1")
        theirs = world.say("one", "m1", who="eve", opening="m1")
        assert theirs.conversation != mine.conversation
        assert not theirs.duplicate


class TestRate:
    def limited(self) -> World:
        return World(limit=RateLimit(burst=2, per_minute=60))

    def test_who_writes_too_fast_is_told_when_to_go_on(self):
        world = self.limited()
        world.say("1")
        world.say("2")
        with pytest.raises(RefusedError) as refused:
            world.say("3")
        assert (refused.value.code, refused.value.retry_after_ms) == ("rate_limited", 1000)
        world.clock.advance(1000)
        assert world.say("3").message_seq == 3

    def test_a_resend_costs_nothing(self):
        world = self.limited()
        for _ in range(5):
            world.say("1")
        assert world.say("2").message_seq == 2

    def test_two_conversations_of_one_principal_share_their_bucket(self):
        world = self.limited()
        world.say("1", opening="a")
        world.say("2", opening="b")
        with pytest.raises(RefusedError, match="rate_limited"):
            world.say("3", opening="c")
        world.say("4", who="bea", opening="d")

    def test_two_messages_at_once_cannot_spend_the_same_token(self):
        world = self.limited()
        world.say("1")
        world.store.before["accept"] = lambda: world.say("2")
        with pytest.raises(RefusedError, match="rate_limited"):
            world.say("3")


class TestFairness:
    """I20: who never stops typing is answered."""

    def burst(self, world, count: int, every_ms: float = 500):
        said = []
        for n in range(count):
            said.append(world.say(f"m{n}"))
            world.clock.advance(every_ms)
        return said

    @pytest.mark.invariant("I20")
    def test_the_third_supersede_makes_a_protected_run(self, world):
        said = self.burst(world, 4)
        assert [world.run(s.run).protected for s in said] == [False, False, False, True]
        assert [world.state(s.run) for s in said] == ["superseded"] * 3 + ["queued"]
        assert world.head.protected_run == said[3].run

    @pytest.mark.invariant("I20")
    @pytest.mark.parametrize(("waited", "protected"), [(19_999, False), (20_000, True)])
    def test_twenty_seconds_without_a_reply_make_a_protected_run(self, world, waited, protected):
        world.say("one")
        world.clock.advance(waited)
        assert world.run(world.say("two").run).protected is protected

    @pytest.mark.invariant("I20")
    def test_messages_behind_a_protected_run_are_kept_and_start_nothing(self, world):
        protected = self.burst(world, 4)[3].run
        later = world.say("later")
        assert (later.run, later.message_seq) == (None, 5)
        assert world.head.active_run == protected
        assert world.head.epoch == world.run(protected).epoch
        frame = world.frames()[-1]
        assert (frame["type"], frame["data"]["behind_run"]) == ("message.accepted", protected)

    @pytest.mark.invariant("I20", "I8")
    def test_the_end_of_a_protected_run_starts_the_next_for_what_waited(self, world):
        protected = self.burst(world, 4)[3].run
        world.say("later")
        world.say("still later")
        assert [m.text for m in world.begun(protected).messages] == ["m0", "m1", "m2", "m3"]
        done = world.reply(protected, "to four")
        assert isinstance(done, Committed)
        assert done.next_run == world.head.active_run
        following = world.run(done.next_run)
        assert (following.trigger, following.protected, following.state) == ("S", False, "queued")
        assert [m.text for m in world.begun(done.next_run).messages] == ["later", "still later"]
        world.reply(done.next_run, "to two")
        assert world.replies == ["to four", "to two"]
        assert world.head.active_run is None

    @pytest.mark.invariant("I20", "I8")
    @pytest.mark.parametrize("how", ["cancel", "fail", "sweep"])
    def test_however_a_protected_run_ends_what_waited_is_served(self, world, how):
        protected = self.burst(world, 4)[3].run
        world.say("later")
        world.begun(protected)
        if how == "cancel":
            world.cancel(protected)
        elif how == "fail":
            world.fail(protected)
        else:
            world.clock.advance(80_000)
            assert world.sweep().timed_out == 1
            assert [order["run"] for order in world.starts.sent] == [world.head.active_run]
        assert [m.text for m in world.begun(world.head.active_run, "x2").messages] == ["later"]

    @pytest.mark.invariant("I20")
    def test_a_message_that_meets_the_end_of_the_protected_run_starts_its_own(self, world):
        protected = self.burst(world, 4)[3].run
        world.begun(protected)
        world.store.before["accept"] = lambda: world.reply(protected)
        later = world.say("later")
        assert world.head.active_run == later.run
        assert world.state(later.run) == "queued"

    @pytest.mark.invariant("I20", "I8")
    def test_a_message_that_slips_in_before_the_protected_commit_is_served_after_it(self, world):
        protected = self.burst(world, 4)[3].run
        world.begun(protected)
        world.store.before["finish"] = lambda: world.say("later")
        done = world.reply(protected, "to four")
        assert isinstance(done, Committed)
        assert [m.text for m in world.begun(done.next_run).messages] == ["later"]

    @pytest.mark.invariant("I20")
    def test_a_customer_who_sends_every_half_second_for_two_minutes_is_answered(self, world):
        """Turns take four seconds: without protection none would ever end."""
        world.store.watching = False
        answered: list[int] = []
        busy_until = 0
        for n in range(240):
            world.say(f"m{n}")
            active = world.head.active_run
            if active and world.state(active) == "queued":
                world.begun(active, f"x{n}")
                busy_until = world.clock.now_ms() + 4000
            elif active and world.clock.now_ms() >= busy_until:
                done = world.reply(active, "answer", world.run(active).execution)
                assert isinstance(done, Committed)
                answered.append(world.clock.now_ms())
            world.clock.advance(500)
        gaps = [after - before for before, after in pairwise(answered)]
        assert len(answered) >= 15
        assert max(gaps) <= 20_000


class TestToAHuman:
    @pytest.mark.invariant("I4")
    @pytest.mark.covers("F-002", "F-004")
    def test_in_human_mode_a_message_is_kept_and_no_run_starts(self, world):
        first = world.say("one")
        world.hands("takeover", term=0)
        second = world.say("two")
        assert second.run is None
        assert world.head.active_run is None
        assert world.state(first.run) == "superseded"
        assert world.messages("U") == [(1, "U", "one"), (2, "U", "two")]
        assert world.event_types()[-1] == "message.accepted"

    @pytest.mark.invariant("I7")
    def test_a_resend_in_human_mode_is_a_resend(self, world):
        world.say("one", "m1")
        world.hands("takeover", term=0)
        world.say("two", "m2")
        before = world.items
        assert world.say("two", "m2").duplicate
        assert world.say("one", "m1").duplicate
        assert world.items == before

    @pytest.mark.invariant("I4")
    def test_a_message_that_meets_a_takeover_starts_nothing(self, world):
        world.say("one")
        world.store.before["accept"] = lambda: world.hands("takeover", term=0)
        assert world.say("two").run is None
        assert world.head.mode == "HUMAN"
