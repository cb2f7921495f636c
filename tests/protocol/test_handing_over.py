"""Takeover, pick-up, human reply and release: the AI is silent while a human owns the conversation, and after."""

from __future__ import annotations

import pytest

from tests.protocol.world import ACCOUNT, World
from turngate.domain import keys
from turngate.errors import ContentionError, RefusedError
from turngate.protocol.finishing import NotCurrent
from turngate.protocol.retrying import ATTEMPTS


def refused(call) -> str:
    with pytest.raises(RefusedError) as refusal:
        call()
    return refusal.value.code


class TestTakeover:
    @pytest.mark.invariant("I4")
    @pytest.mark.covers("F-002", "F-028", "F-364", "F-367")
    @pytest.mark.parametrize("begun", [False, True])
    def test_it_ends_the_open_run_and_no_reply_of_it_is_committed(self, world, begun):
        run = world.say("one").run
        if begun:
            world.begun(run)
        assert world.hands("takeover", term=0) is None
        head = world.head
        assert (head.mode, head.agent, head.term, head.epoch) == ("HUMAN", "bob", 1, 2)
        assert (head.active_run, head.protected_run, head.oldest_unanswered_at) == (None, None, None)
        assert world.run_item(run)["reason"] == "human_takeover"
        assert world.items[keys.budget(ACCOUNT, run)]["stopped"] == "human_takeover"
        assert world.reply(run) == NotCurrent("superseded")
        assert world.replies == []
        assert world.event_types()[-2:] == ["handoff.accepted", "run.superseded"]

    @pytest.mark.invariant("I4")
    def test_a_takeover_that_meets_a_commit_keeps_the_reply_out(self, world):
        run = world.say("one").run
        world.begun(run)
        world.store.before["finish"] = lambda: world.hands("takeover", term=0)
        assert world.reply(run) == NotCurrent("superseded")
        assert world.replies == []

    @pytest.mark.invariant("I4")
    def test_a_commit_that_meets_a_takeover_stays_and_the_takeover_happens(self, world):
        run = world.say("one").run
        world.begun(run)
        world.store.before["takeover"] = lambda: world.reply(run)
        world.hands("takeover", term=0)
        assert (world.replies, world.head.mode, world.state(run)) == (["an answer"], "HUMAN", "completed")

    @pytest.mark.invariant("I10")
    @pytest.mark.parametrize("lost", [False, True])
    def test_its_replay_changes_nothing(self, world, lost):
        world.say("one")
        if lost:
            world.store.lose["takeover"] = 1
        world.hands("takeover", term=0)
        before = world.items
        world.hands("takeover", term=0)
        assert world.items == before

    @pytest.mark.invariant("I10")
    def test_a_replay_after_the_release_is_refused_and_changes_nothing(self, world):
        world.say("one")
        world.hands("takeover", term=0)
        world.hands("release", term=1)
        before = world.items
        assert refused(lambda: world.hands("takeover", term=0)) == "handoff_conflict"
        assert world.items == before

    def test_a_second_agent_is_refused(self, world):
        world.say("one")
        world.hands("takeover", term=0)
        assert refused(lambda: world.hands("takeover", term=0, agent="cy")) == "handoff_conflict"
        assert refused(lambda: world.hands("takeover", term=1, agent="cy")) == "handoff_conflict"
        assert world.head.agent == "bob"

    def test_of_two_agents_at_once_one_gets_it(self, world):
        world.say("one")
        world.store.before["takeover"] = lambda: world.hands("takeover", term=0, agent="cy")
        assert refused(lambda: world.hands("takeover", term=0, agent="bob")) == "handoff_conflict"
        assert world.head.agent == "cy"

    def test_of_a_conversation_that_does_not_exist_nothing_is_said(self):
        world = World(conversation="c-none")
        assert refused(lambda: world.hands("takeover", term=0)) == "conversation_not_found"

    def test_a_contended_table_is_said_to_be_one(self, world):
        world.say("one")
        world.store.drop["takeover"] = ATTEMPTS
        with pytest.raises(ContentionError):
            world.hands("takeover", term=0)

    @pytest.mark.invariant("I20", "I4")
    def test_a_protected_run_does_not_survive_a_takeover(self, world):
        for n in range(4):
            run = world.say(f"m{n}").run
        world.say("behind")
        world.hands("takeover", term=0)
        assert world.state(run) == "superseded"
        world.hands("release", term=1)
        begun = world.begun(world.head.active_run)
        assert [m.text for m in begun.messages] == ["m0", "m1", "m2", "m3", "behind"]


class TestPickUp:
    def waiting(self, world) -> None:
        """HUMAN mode without an agent, as a hand-off by the AI leaves it."""
        world.say("one")
        world.hands("takeover", term=0)
        world.store._items[keys.head(ACCOUNT, world.conversation)].pop("agent")

    def test_an_agent_picks_up_what_waits(self, world):
        self.waiting(world)
        world.hands("accept_handoff", term=1)
        assert (world.head.agent, world.head.term, world.head.epoch) == ("bob", 1, 2)
        assert world.frames()[-1]["data"] == {"agent": "bob", "reason": "picked_up"}

    @pytest.mark.invariant("I10")
    @pytest.mark.parametrize("lost", [False, True])
    def test_its_replay_changes_nothing(self, world, lost):
        self.waiting(world)
        if lost:
            world.store.lose["accept_handoff"] = 1
        world.hands("accept_handoff", term=1)
        before = world.items
        world.hands("accept_handoff", term=1)
        assert world.items == before

    def test_of_two_agents_at_once_one_gets_it(self, world):
        self.waiting(world)
        world.store.before["accept_handoff"] = lambda: world.hands("accept_handoff", term=1, agent="cy")
        assert refused(lambda: world.hands("accept_handoff", term=1)) == "handoff_conflict"
        assert world.head.agent == "cy"

    def test_what_the_ai_owns_or_another_term_cannot_be_picked_up(self, world):
        world.say("zero")
        assert refused(lambda: world.hands("accept_handoff", term=0)) == "handoff_conflict"
        world = World()
        self.waiting(world)
        assert refused(lambda: world.hands("accept_handoff", term=0)) == "handoff_conflict"


class TestHumanReply:
    def taken(self, world) -> None:
        world.say("one")
        world.hands("takeover", term=0)

    @pytest.mark.covers("F-006", "F-369")
    @pytest.mark.invariant("I4")
    def test_it_is_told_as_it_is_and_answers_everything_before_it(self, world):
        self.taken(world)
        evt = world.human("Hello, Bob here")
        assert world.messages("H") == [(2, "H", "Hello, Bob here")]
        assert (world.head.answered_through, world.head.evt) == (2, evt)
        frame = world.frames()[-1]
        assert (frame["type"], frame["data"]["content"]) == ("message.completed", "Hello, Bob here")
        assert frame["data"]["agent"] == "bob"
        assert world.hands("release", term=1) is None

    @pytest.mark.invariant("I7", "I10")
    @pytest.mark.parametrize("lost", [False, True])
    def test_a_resend_is_the_same_reply(self, world, lost):
        self.taken(world)
        if lost:
            world.store.lose["human_reply"] = 1
        evt = world.human("hi", "h1")
        before = world.items
        assert world.human("hi", "h1") == evt
        assert world.items == before

    @pytest.mark.invariant("I7")
    def test_another_text_under_the_same_id_is_refused(self, world):
        self.taken(world)
        world.human("hi", "h1")
        assert refused(lambda: world.human("ho", "h1")) == "message_conflict"

    @pytest.mark.invariant("I7")
    def test_the_same_reply_at_the_same_time_is_said_once(self, world):
        self.taken(world)
        world.store.before["human_reply"] = lambda: world.human("hi", "h1", writer="w-other")
        world.human("hi", "h1")
        assert world.messages("H") == [(2, "H", "hi")]

    @pytest.mark.invariant("I18")
    def test_a_customer_message_at_the_same_time_moves_it_back_by_one(self, world):
        self.taken(world)
        world.store.before["human_reply"] = lambda: world.say("two")
        world.human("hi")
        assert world.messages("UH") == [(1, "U", "one"), (2, "U", "two"), (3, "H", "hi")]

    @pytest.mark.invariant("I4")
    def test_only_the_agent_who_has_the_conversation_speaks_in_it(self, world):
        world.say("one")
        assert refused(lambda: world.human("hi")) == "handoff_conflict"
        world.hands("takeover", term=0)
        assert refused(lambda: world.human("hi", agent="cy")) == "handoff_conflict"
        world.hands("release", term=1)
        assert refused(lambda: world.human("hi")) == "handoff_conflict"
        assert world.messages("H") == []

    @pytest.mark.invariant("I4")
    def test_a_reply_that_meets_the_release_is_refused(self, world):
        self.taken(world)
        world.store.before["human_reply"] = lambda: world.hands("release", term=1)
        assert refused(lambda: world.human("hi")) == "handoff_conflict"
        assert world.messages("H") == []


class TestRelease:
    @pytest.mark.covers("F-017", "F-001")
    @pytest.mark.invariant("I8", "I4")
    def test_unanswered_messages_start_a_run_in_the_same_transaction(self, world):
        old = world.say("one").run
        world.begun(old)
        world.hands("takeover", term=0)
        world.say("two")
        run = world.hands("release", term=1)
        head = world.head
        assert (head.mode, head.agent, head.term, head.active_run) == ("AI", None, 2, run)
        assert world.run(run).trigger == "S"
        assert world.messages("S") == [(3, "S", "")]
        assert [m.text for m in world.begun(run).messages] == ["one", "two"]
        assert world.reply(old) == NotCurrent("superseded")
        world.reply(run, "to both")
        assert world.replies == ["to both"]

    def test_nothing_unanswered_starts_nothing(self, world):
        world.answer(world.say("one").run)
        world.hands("takeover", term=0)
        assert world.hands("release", term=1) is None
        assert (world.head.mode, world.head.active_run, world.head.seq) == ("AI", None, 1)

    @pytest.mark.invariant("I10")
    @pytest.mark.parametrize("lost", [False, True])
    def test_its_replay_changes_nothing_and_names_the_same_run(self, world, lost):
        world.say("one")
        world.hands("takeover", term=0)
        if lost:
            world.store.lose["release"] = 1
        run = world.hands("release", term=1)
        before = world.items
        assert world.hands("release", term=1) == run
        assert world.items == before
        assert run == world.head.active_run

    @pytest.mark.invariant("I8")
    def test_a_message_that_meets_the_release_is_answered(self, world):
        world.answer(world.say("one").run)
        world.hands("takeover", term=0)
        world.store.before["release"] = lambda: world.say("two")
        run = world.hands("release", term=1)
        assert [m.text for m in world.begun(run).messages] == ["two"]

    def test_only_the_agent_who_has_it_gives_it_back_and_only_with_the_term_it_saw(self, world):
        world.say("one")
        assert refused(lambda: world.hands("release", term=0)) == "handoff_conflict"
        world.hands("takeover", term=0)
        assert refused(lambda: world.hands("release", term=1, agent="cy")) == "handoff_conflict"
        assert refused(lambda: world.hands("release", term=0)) == "handoff_conflict"
        assert refused(lambda: world.hands("release", term=2)) == "handoff_conflict"

    @pytest.mark.invariant("I4")
    def test_after_a_second_takeover_the_run_of_the_release_is_silent(self, world):
        world.say("one")
        world.hands("takeover", term=0)
        run = world.hands("release", term=1)
        world.begun(run)
        world.hands("takeover", term=2)
        assert world.reply(run) == NotCurrent("superseded")
        assert world.replies == []
