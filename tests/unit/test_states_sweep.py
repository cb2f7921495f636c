"""The sweep runs twice a minute, ends before its function is killed, and speaks the conversation's language."""

from __future__ import annotations

import pytest

from tests.protocol.world import ACCOUNT, World
from turngate.adapters.memory.edges import FixedClock
from turngate.domain.problems import PROBLEMS
from turngate.states import sweep
from turngate.wiring import Ports


@pytest.fixture
def world() -> World:
    return World()


def ports_of(world: World) -> Ports:
    return Ports(
        store=world.store,
        clock=world.clock,
        ids=world.ids,
        runs_to_start=world.starts,
        events_to_push=world.pushes,
    )


@pytest.mark.invariant("I8")
def test_two_passes_start_thirty_seconds_apart(world) -> None:
    began = world.clock.now_ms()
    first, second = sweep.sweep_twice(ports_of(world), writer="s")
    assert world.clock.now_ms() - began == sweep.PAUSE_MS
    assert (first.progress, second.progress) == (0, 0)


@pytest.mark.invariant("I8")
def test_what_falls_due_between_the_passes_is_found_by_the_second(world) -> None:
    world.say("hello")
    first, second = sweep.sweep_twice(ports_of(world), writer="s")
    assert (first.started_again, second.started_again) == (0, 1)


def test_a_pass_ends_in_time_although_more_is_due(world) -> None:
    class SlowClock(FixedClock):
        def now_ms(self) -> int:
            self.advance(sweep.PASS_MS / 4)
            return super().now_ms()

    for number in range(30):
        world.say(f"m{number}", conversation=None, opening=f"m{number}")
    world.clock.advance(11_000)
    slow = ports_of(world)
    slow.__dict__["clock"] = SlowClock(world.clock.now_ms())
    assert sweep.sweep_once(slow, writer="s").started_again < 30


@pytest.mark.parametrize(("language", "text"), [("en", "en"), ("zh-CN", "zh"), ("", "both")])
def test_a_timeout_is_stated_in_the_language_of_the_conversation(world, language, text) -> None:
    problem = PROBLEMS["turn_timed_out"]
    run = world.say("hello", language=language).run
    world.clock.advance(80_000)
    sweep.sweep_once(ports_of(world), writer="s")
    assert world.state(run) == "timed_out"
    assert world.replies == [
        {"en": problem.en, "zh": problem.zh, "both": f"{problem.zh}\n{problem.en}"}[text]
    ]
    assert world.pushes.sent[-1]["account"] == ACCOUNT
