"""What the server really sends, in every situation we know, is what the contract says, field by field."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.functions.prepared import prepare, read
from tests.functions.test_events import CASES, case_id, run
from tests.machines.scripts import phrases, reads
from tests.machines.tenant import ACCOUNT, CUSTOMER
from tests.machines.world import SOCKET
from tests.wire.contract import mistakes, types_of
from turngate.errors import ModelUnavailableError
from turngate.protocol.announcing import MAX_FRAME_BYTES
from turngate.protocol.handing_over import change_hands, reply_as_human

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.machines.world import TurnWorld

READ = reads(("How long do refunds take?", {"RETURN_POLICY": 0.9}))
SAID = phrases(("p1", "Refunds take 3 working days.", ["p1.E1"]))


def answered(world: TurnWorld) -> None:
    world.say("How long do refunds take?")
    world.turn()


def overtaken_and_protected(world: TurnWorld) -> None:
    for _ in range(4):
        world.say("你好")
    world.say("谢谢")
    while world.starter.started:
        world.turn()
    world.deliver_starts()
    world.turn()


def stopped(world: TurnWorld) -> None:
    world.say("你好")
    run = world.runs()[0].run
    world.send({"type": "run.cancel", "run_id": run, "conversation_id": world.conversation})


def failed(world: TurnWorld) -> None:
    world.say("How long do refunds take?")
    world.faults["Understand"].append("KeyError")
    world.turn()


def timed_out(world: TurnWorld) -> None:
    world.say("How long do refunds take?", language="zh-CN")
    world.clock.advance(80_000)
    world.sweep()


def handed_over_and_back(world: TurnWorld) -> None:
    world.say("你好")
    who: dict[str, Any] = {"account": ACCOUNT, "conversation": world.conversation, "agent": "bob"}
    edges = (world.store, world.clock, world.ports.ids)
    change_hands(*edges, change="takeover", term=0, **who)
    world.say("谢谢")
    reply_as_human(*edges, client_message_id="h1", text="I am Bob.", writer="w", **who)
    change_hands(*edges, change="release", term=1, **who)
    for evt in range(1, world.head.evt + 1):
        order = {"kind": "event", "account": ACCOUNT, "conversation": world.conversation, "evt": evt}
        world.pushes.send(order)


def came_back(world: TurnWorld) -> None:
    for number in range(40):
        world.clock.advance(30_000)
        world.say("你好", f"n{number}")
        world.turn()
    world.pushes.sent.clear()
    world.send({"type": "resume", "conversation_id": world.conversation, "after_seq": 0})
    world.send({"type": "resume", "conversation_id": world.conversation, "after_seq": world.head.evt - 3})
    world.send({"type": "ping", "conversation_id": world.conversation})
    world.send({"type": "ping"})


def refused(world: TurnWorld) -> None:
    world.say("你好", "m1")
    world.say("你好", "m1")
    for frame in ("nonsense", '{"type":"nope"}', '{"type":"resume","conversation_id":"c0"}'):
        world.send(frame)
    for text in ("", "x" * 9000, "other words"):
        world.say(text, "m1")
    for number in range(30):
        world.say("你好", f"n{number}")


SITUATIONS: dict[str, tuple[Callable[[TurnWorld], None], list[Any], set[str]]] = {
    "answered": (
        answered,
        [READ, SAID],
        {"run.started", "run.status", "message.completed", "run.completed"},
    ),
    "quoted": (answered, [READ, *[ModelUnavailableError("timeout")] * 2], {"message.completed"}),
    "overtaken": (overtaken_and_protected, [], {"run.superseded", "message.accepted", "run.completed"}),
    "stopped": (stopped, [], {"run.cancelled"}),
    "failed": (failed, [], {"run.failed", "message.completed"}),
    "timed out": (timed_out, [], {"run.timed_out", "message.completed"}),
    "handed over": (
        handed_over_and_back,
        [],
        {"handoff.accepted", "handoff.released", "run.superseded"},
    ),
    "came back": (came_back, [], {"session.ready", "resume.gap", "pong", "run.completed"}),
    "refused": (refused, [], {"error", "message.accepted"}),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_frame_that_a_socket_gets_is_of_the_contract(name: str, story) -> None:
    act, answers, expected = SITUATIONS[name]
    world = story(*answers)
    act(world)
    frames = world.received(SOCKET)
    assert [text for frame in frames for text in mistakes(frame)] == []
    assert expected <= {frame["type"] for frame in frames}
    assert all(len(raw) <= MAX_FRAME_BYTES for raw in world.pusher.frames[SOCKET])
    numbers = sorted({frame["seq"] for frame in frames if "seq" in frame})
    if name != "came back":
        assert numbers == list(range(1, world.head.evt + 1)), "the log of a conversation has no gaps"


def test_the_situations_show_every_type_of_the_contract() -> None:
    assert set().union(*(expected for _, _, expected in SITUATIONS.values())) == types_of("server")


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_whatever_an_event_makes_the_server_say_is_of_the_contract(path, story) -> None:
    answers = read(path.with_name(f"{path.stem}.expected.json")).get("model_answers", [])
    world = prepare(story(*answers), path.parent.name)
    seen = run(world, path)
    told = [order["frame"] for order in seen["orders"] if "frame" in order]
    told += [frame for frames in seen["frames"].values() for frame in frames]
    assert [text for frame in told for text in mistakes(frame)] == []


def test_a_frame_with_a_field_too_many_or_too_few_is_noticed(story) -> None:
    world = story(READ, SAID)
    answered(world)
    for frame in world.received():
        for broken in spoiled(frame):
            assert mistakes(broken) != [], broken
    assert mistakes({"type": "message.deleted"}) == ["message.deleted is not in the contract"]


def spoiled(frame: dict[str, Any]) -> list[dict[str, Any]]:
    """The frame with one field more, with a type nobody knows, and without each of its required fields."""
    required = {"v", "type", "ts", "data", "conversation_id"} & set(frame)
    versions = [{**frame, "surplus": 1}, {**frame, "type": "message.deleted"}]
    versions += [{name: value for name, value in frame.items() if name != gone} for gone in required]
    deep = copy.deepcopy(frame)
    deep["data"]["surplus"] = 1
    return [*versions, deep]


def test_an_event_page_holds_the_frames_of_the_socket(story) -> None:
    world = story(READ, SAID)
    answered(world)
    from turngate.protocol.announcing import read_log  # noqa: PLC0415 - reads beside its use

    logged = read_log(world.store, CUSTOMER.account, world.conversation, 0, 100)
    assert logged == [frame for frame in world.received() if "seq" in frame]
