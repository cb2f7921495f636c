"""A run begins: once, with its versions pinned, and with everything it has to answer."""

from __future__ import annotations

import pytest

from tests.protocol.world import ACCOUNT
from turngate.domain import keys
from turngate.domain.begin import Duplicate
from turngate.errors import BrokenInvariantError, TransientError
from turngate.protocol.beginning import Begun


class TestClaim:
    @pytest.mark.invariant("I1")
    @pytest.mark.covers("F-352", "F-373", "F-374")
    def test_the_first_execution_owns_the_run_and_every_other_is_a_duplicate(self, world):
        run = world.say("one").run
        begun = world.begun(run, "x1")
        assert (begun.turn.run, begun.turn.execution, begun.turn.epoch, begun.turn.seq) == (run, "x1", 1, 1)
        assert world.begin(run, "x2") == Duplicate("running")
        assert world.run(run).execution == "x1"

    @pytest.mark.invariant("I1")
    def test_two_executions_at_once_one_owner(self, world):
        run = world.say("one").run
        world.store.before["begin"] = lambda: world.begun(run, "x2")
        assert world.begin(run, "x1") == Duplicate("running")
        assert world.run(run).execution == "x2"

    @pytest.mark.invariant("I1", "I10")
    def test_a_repeated_begin_of_the_owner_gives_the_same_turn_and_writes_nothing(self, world):
        run = world.say("one").run
        begun = world.begun(run)
        before = world.items
        assert world.begin(run) == begun
        assert world.items == before

    @pytest.mark.invariant("I1")
    def test_a_lost_response_of_our_own_claim_is_found_by_the_retry(self, world):
        run = world.say("one").run
        world.store.lose["begin"] = 1
        with pytest.raises(TransientError):
            world.begin(run)
        assert world.begun(run).turn.execution == "x1"

    @pytest.mark.invariant("I1")
    def test_the_same_execution_begun_twice_at_once_goes_on_once_claimed(self, world):
        """A Lambda that timed out still runs beside its retry: the failed condition shows that we are the winner."""
        run = world.say("one").run
        world.store.before["begin"] = lambda: world.begun(run, "x1")
        begun = world.begun(run, "x1")
        assert begun.turn.execution == "x1"
        assert begun.turn.config_version == 1

    @pytest.mark.invariant("I9")
    @pytest.mark.parametrize("state", ["superseded", "cancelled", "timed_out"])
    def test_an_ended_run_is_not_begun(self, world, state):
        run = world.say("one").run
        if state == "superseded":
            world.say("two")
        elif state == "cancelled":
            world.cancel(run)
        else:
            world.clock.advance(80_000)
            world.sweep()
        before = world.items
        assert world.begin(run) == Duplicate(state)
        assert world.items == before

    @pytest.mark.invariant("I2", "I9")
    def test_a_run_superseded_while_it_is_being_claimed_is_a_duplicate(self, world):
        run = world.say("one").run
        world.store.before["begin"] = lambda: world.say("two")
        assert world.begin(run) == Duplicate("superseded")

    @pytest.mark.parametrize("how", ["cancel", "takeover and human reply"])
    def test_a_retry_of_the_owner_that_finds_its_run_ended_is_a_duplicate(self, world, how):
        run = world.say("one").run
        world.begun(run)
        if how == "cancel":
            world.cancel(run)
        else:
            world.hands("takeover", term=0)
            world.human("I am here")
        assert isinstance(world.begin(run), Duplicate)

    def test_a_run_that_ends_while_its_input_is_read_is_a_duplicate(self, world):
        """The answer's place is taken between claim and reading: not an error, and nothing to answer."""
        run = world.say("one").run
        query = world.store.query

        def cancel_first(*args, **options):
            world.store.query = query
            world.cancel(run)
            return query(*args, **options)

        world.store.query = cancel_first
        begun = world.begin(run)
        assert isinstance(begun, Begun)
        assert world.reply(run).kind == "not_current"

    def test_an_unknown_run_or_an_account_without_configuration_fails_loudly(self, world):
        run = world.say("one").run
        with pytest.raises(BrokenInvariantError):
            world.begin("r-unknown")
        world.store._items.pop(keys.config_active(ACCOUNT))
        with pytest.raises(BrokenInvariantError, match="configuration"):
            world.begin(run)


class TestPins:
    @pytest.mark.invariant("I11", "I12")
    def test_a_run_keeps_the_versions_it_began_with(self, world):
        run = world.say("one").run
        first = world.begun(run)
        world.activate(2, {"help": 5, "new": 1})
        again = world.begun(run)
        assert (again.turn.config_version, again.turn.knowledge_pins) == (1, {"help": 1})
        assert first.turn == again.turn

    @pytest.mark.invariant("I11")
    def test_a_run_begun_after_an_activation_uses_it(self, world):
        run = world.say("one").run
        world.activate(2, {"help": 5})
        turn = world.begun(run).turn
        assert (turn.config_version, turn.knowledge_pins) == (2, {"help": 5})

    @pytest.mark.invariant("I11")
    def test_the_pins_of_a_lost_claim_are_those_that_were_stored(self, world):
        run = world.say("one").run
        world.store.lose["begin"] = 1
        with pytest.raises(TransientError):
            world.begin(run)
        world.activate(2, {"help": 5})
        assert world.begun(run).turn.config_version == 1

    @pytest.mark.invariant("I12")
    def test_an_account_without_knowledge_pins_nothing(self, world):
        world.store._items.pop(keys.knowledge_pins(ACCOUNT))
        assert world.begun(world.say("one").run).turn.knowledge_pins == {}


class TestJoinedInput:
    def test_a_run_answers_everything_after_the_last_answer(self, world):
        world.answer(world.say("zero").run)
        world.say("one")
        world.say("two")
        begun = world.begun(world.say("three").run)
        assert [(m.message_seq, m.text) for m in begun.messages] == [(2, "one"), (3, "two"), (4, "three")]
        assert not begun.truncated
        assert [(h.role, h.text) for h in begun.history] == [("customer", "zero"), ("assistant", "an answer")]

    @pytest.mark.parametrize(("count", "truncated"), [(20, False), (21, True), (30, True)])
    def test_beyond_twenty_messages_it_takes_the_newest_and_says_so(self, world, count, truncated):
        world.say("first")
        world.hands("takeover", term=0)
        for n in range(count - 1):
            world.say(f"m{n}")
        begun = world.begun(world.hands("release", term=1))
        assert len(begun.messages) == 20
        assert begun.messages[-1].text == f"m{count - 2}"
        assert begun.truncated is truncated

    @pytest.mark.parametrize(
        ("sizes", "kept", "truncated"),
        [
            ([8192, 8192], 2, False),
            ([8192, 8193], 1, True),
            ([20_000], 1, False),
            ([5, 20_000], 1, True),
            ([4000, 4000, 4000, 4000], 4, False),
        ],
    )
    def test_beyond_sixteen_kilobytes_of_utf8_it_takes_the_newest(self, world, sizes, kept, truncated):
        run = None
        for n, size in enumerate(sizes):
            run = world.say("退" * (size // 3) + "x" * (size % 3), f"m{n}").run
        begun = world.begun(run)
        assert len(begun.messages) == kept
        assert begun.truncated is truncated
        assert begun.messages[-1].message_seq == len(sizes)

    def test_history_is_the_newest_and_shortened_and_ends_at_the_last_answer(self, world):
        for n in range(30):
            world.answer(world.say(f"question {n}").run, "y" * 500)
        begun = world.begun(world.say("now").run)
        assert len(begun.history) == 24
        assert begun.history[-2].text == "question 29"
        assert begun.history[-1].text == "y" * 399 + "…"
        assert [m.text for m in begun.messages] == ["now"]

    def test_what_a_human_said_is_history_and_answers_what_was_before_it(self, world):
        world.say("one")
        world.hands("takeover", term=0)
        world.human("I am here")
        world.say("two")
        begun = world.begun(world.hands("release", term=1))
        assert [(h.role, h.text) for h in begun.history] == [("customer", "one"), ("agent", "I am here")]
        assert [m.text for m in begun.messages] == ["two"]

    def test_the_turns_language_and_type_are_the_messages(self, world):
        begun = world.begun(world.say("你好", language="zh-CN", message_type="form").run)
        assert (begun.language, begun.run.message_type) == ("zh-CN", "form")
