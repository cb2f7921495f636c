"""A run ends: by its execution, by a cancel, by the sweeper; once, whoever else tries, whatever gets lost."""

from __future__ import annotations

import pytest

from tests.protocol.world import ACCOUNT
from turngate.domain import keys
from turngate.domain.finish import Ending
from turngate.domain.shapes import Draft, Usage
from turngate.errors import BrokenInvariantError, ContentionError
from turngate.protocol.finishing import Committed, NotCurrent
from turngate.protocol.retrying import ATTEMPTS


class TestReply:
    @pytest.mark.invariant("I1", "I16")
    @pytest.mark.covers("F-352", "F-353", "F-378")
    def test_a_reply_its_events_and_the_runs_end_are_one_commit(self, world):
        run = world.say("one").run
        world.begun(run)
        usage = Usage(model_calls=2, input_tokens=30, output_tokens=4)
        ending = Ending("completed", "execution", "x1", Draft(content="so", outcome="answer"), usage)
        done = world.end(run, ending)
        assert done == Committed("completed", 3, None)
        assert world.store.written[-1] == "finish"
        assert world.messages() == [(1, "R", "so"), (1, "U", "one")]
        completed, ended = world.frames()[1:]
        assert (completed["type"], completed["data"]["content"]) == ("message.completed", "so")
        assert completed["message_id"] == f"{world.conversation}.1.r"
        assert (ended["type"], ended["data"]["usage"]["model_calls"]) == ("run.completed", 2)
        item = world.run_item(run)
        assert (item["state"], item["writer"], item["ended_evt"]) == ("completed", "x1", 3)
        assert keys.due_at(item) is None
        assert (world.head.active_run, world.head.answered_through) == (None, 1)
        assert world.head.oldest_unanswered_at is None

    @pytest.mark.invariant("I1")
    @pytest.mark.covers("F-379")
    @pytest.mark.parametrize("lost", [1, 3])
    def test_a_lost_response_is_found_to_be_our_own_success(self, world, lost):
        run = world.say("one").run
        world.begun(run)
        world.store.lose["finish"] = lost
        assert world.reply(run) == Committed("completed", 3, None)
        assert world.replies == ["an answer"]

    @pytest.mark.invariant("I1", "I10")
    def test_a_repeated_commit_announces_the_stored_event_again(self, world):
        run = world.say("one").run
        done = world.answer(run)
        before = world.items
        assert world.reply(run, "other words") == done
        assert world.items == before

    @pytest.mark.invariant("I1")
    def test_a_failure_stated_after_a_commit_whose_response_was_lost_says_nothing(self, world):
        run = world.say("one").run
        done = world.answer(run, "the answer")
        assert world.fail(run) == done
        assert world.replies == ["the answer"]

    @pytest.mark.invariant("I1")
    def test_another_execution_never_commits(self, world):
        run = world.say("one").run
        world.begun(run, "x1")
        assert world.reply(run, "impostor", "x2") == NotCurrent("running")
        assert world.replies == []
        assert isinstance(world.reply(run, "mine", "x1"), Committed)
        assert world.reply(run, "late impostor", "x2") == NotCurrent("completed")
        assert world.replies == ["mine"]

    @pytest.mark.invariant("I1")
    def test_a_run_that_was_never_begun_is_left_to_its_due_time(self, world):
        run = world.say("one").run
        before = world.items
        assert world.fail(run) == NotCurrent("queued")
        assert world.items == before

    @pytest.mark.invariant("I18")
    def test_a_counter_that_moved_repeats_the_same_ending(self, world):
        """A message kept behind a protected run moves the counters and not the epoch."""
        for n in range(4):
            run = world.say(f"m{n}").run
        world.begun(run)
        world.store.before["finish"] = lambda: world.say("later")
        done = world.reply(run)
        assert isinstance(done, Committed)
        assert world.store.written[-2:] == ["accept", "finish"]

    @pytest.mark.invariant("I1")
    @pytest.mark.covers("F-623")
    def test_a_stated_failure_answers_the_message_once(self, world):
        run = world.say("one").run
        world.begun(run)
        assert isinstance(world.fail(run), Committed)
        assert world.replies == ["sorry"]
        assert world.frames()[-1]["data"]["problem"] == "model_unavailable"
        assert world.reply(run).state == "failed"
        assert world.replies == ["sorry"]

    def test_when_the_table_stays_contended_the_machine_is_told(self, world):
        run = world.say("one").run
        world.begun(run)
        world.store.drop["finish"] = ATTEMPTS
        with pytest.raises(ContentionError):
            world.reply(run)
        assert world.state(run) == "running"

    def test_an_unknown_run_fails_loudly(self, world):
        world.say("one")
        with pytest.raises(BrokenInvariantError):
            world.reply("r-unknown")


class TestAgainstEachOther:
    """Whoever's transaction is first ends the run; everyone else learns whose ending counts."""

    ENDINGS = ("reply", "fail", "cancel", "sweep", "supersede", "takeover")

    def do(self, world, ending: str, run: str):
        match ending:
            case "reply":
                return world.reply(run)
            case "fail":
                return world.fail(run)
            case "cancel":
                return world.cancel(run)
            case "sweep":
                world.clock.advance(80_000)
                return world.sweep()
            case "supersede":
                return world.say("newer")
            case "takeover":
                return world.hands("takeover", term=0)

    @pytest.mark.invariant("I1", "I2", "I4", "I9")
    @pytest.mark.covers("F-366", "F-367", "F-374", "F-380")
    @pytest.mark.parametrize("last", ["reply", "fail", "cancel", "sweep"])
    @pytest.mark.parametrize("first", ENDINGS)
    def test_the_first_ending_counts_and_a_later_one_changes_nothing(self, world, first, last):
        if (first, last) == ("supersede", "sweep"):
            last = "cancel"  # the sweep would rightly end the newer run
        run = world.say("one").run
        world.begun(run)
        self.do(world, first, run)
        before, state = world.items, world.state(run)
        assert state in {"completed", "failed", "cancelled", "timed_out", "superseded"}
        self.do(world, last, run)
        after = world.items
        postponed = {k for k in before if before[k] != after.get(k)}
        assert {k.sk.partition("#")[0] for k in postponed} <= {"EVT"}
        assert set(after) == set(before)

    @pytest.mark.invariant("I1", "I2", "I4", "I9")
    @pytest.mark.parametrize("slow", ["reply", "fail", "cancel"])
    @pytest.mark.parametrize("fast", ENDINGS)
    def test_of_two_endings_at_once_one_counts(self, world, fast, slow):
        run = world.say("one").run
        world.begun(run)
        world.store.before["finish"] = lambda: self.do(world, fast, run)
        result = self.do(world, slow, run)
        writers = {"reply": "x1", "fail": "x1", "cancel": "stop-1", "sweep": f"sweeper-{run}"}
        if writers.get(fast) == writers[slow]:
            assert isinstance(result, Committed)  # the same writer: it is our own ending that we found
        else:
            assert isinstance(result, NotCurrent)
        assert len(world.replies) == (fast in {"reply", "fail", "sweep"})


class TestCancel:
    @pytest.mark.covers("F-372", "F-379")
    @pytest.mark.invariant("I1")
    def test_a_cancel_ends_the_run_silently_and_raises_the_epoch(self, world):
        run = world.say("one").run
        world.begun(run)
        done = world.cancel(run)
        assert isinstance(done, Committed)
        assert (world.state(run), world.head.epoch, world.head.active_run) == ("cancelled", 2, None)
        assert world.head.answered_through == 1
        assert world.event_types()[-1] == "run.cancelled"
        assert world.items[keys.budget(ACCOUNT, run)]["stopped"] == "cancelled"

    def test_a_queued_run_can_be_cancelled_too(self, world):
        run = world.say("one").run
        assert isinstance(world.cancel(run), Committed)

    @pytest.mark.invariant("I10")
    def test_a_repeated_cancel_is_the_same_cancel(self, world):
        run = world.say("one").run
        done = world.cancel(run)
        before = world.items
        assert world.cancel(run) == done
        assert world.items == before

    @pytest.mark.covers("F-379")
    def test_a_cancel_that_comes_too_late_leaves_the_reply(self, world):
        run = world.say("one").run
        world.answer(run)
        assert world.cancel(run) == NotCurrent("completed")
        assert world.replies == ["an answer"]

    def test_the_message_after_a_cancel_is_answered_alone(self, world):
        world.cancel(world.say("never mind").run)
        assert [m.text for m in world.begun(world.say("this").run).messages] == ["this"]
