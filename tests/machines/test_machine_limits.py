"""The machine itself: the largest turn still fits its payload, and the stories notice when the file is broken."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.machines.interpreter import Interpreter
from tests.machines.paths import KNOWLEDGE, STATED
from tests.machines.scripts import phrases, reads
from tests.machines.world import FUNCTIONS, QUEUE_URL, ROOT, _MachineTasks
from tests.unit.assistant_example import config_document
from tools.asl import read_machine
from turngate.domain import wire
from turngate.domain.config import MAX_SLICE_BYTES, AssistantConfig, governance_slice
from turngate.domain.json_repair import MAX_BYTES as MAX_ANSWER_BYTES
from turngate.domain.understanding import MAX_SUB_QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTION = "How long do refunds take?"
READ = reads((QUESTION, {"RETURN_POLICY": 0.9}))
SAID = phrases(("p1", "Refunds take 3 working days.", ["p1.E1"]))
REFUSED = reads(("Where is my order 7?", {"ORDER_QUERY": 0.9}))


def largest_configuration() -> AssistantConfig:
    """One whose slice is as large as a configuration may be saved."""
    document = config_document()
    for intent in document["intents"]:
        intent["description"] = {"zh-CN": "-", "en": "-"}
    base = wire.read(document, AssistantConfig)
    room = MAX_SLICE_BYTES - len(wire.write_json(governance_slice(base)).encode())
    document["intents"][0]["description"]["zh-CN"] += "述" * (room // 3)
    return wire.read(document, AssistantConfig)


@pytest.mark.parametrize("letter", ["问", "x", "x\\"])
def test_the_longest_input_with_the_longest_answer_and_the_largest_configuration_fits(story, letter) -> None:
    """A payload has 256 KB, and States.DataLimitExceeded cannot be caught: the customer would wait for the sweeper."""
    width = len(json.dumps(letter, ensure_ascii=False).encode()) - 2
    share = (MAX_ANSWER_BYTES - 2000) // (MAX_SUB_QUESTIONS + 1) // width
    subs = [
        (letter * share + f" {number}", {"ORDER_QUERY": 0.9}) for number in range(1, MAX_SUB_QUESTIONS + 1)
    ]
    answer = reads(*subs, rewritten=letter * share)
    assert MAX_ANSWER_BYTES - 4000 < len(json.dumps(answer, ensure_ascii=False).encode()) <= MAX_ANSWER_BYTES
    world = story(answer, configuration=largest_configuration())
    half = 8100 // len(letter.encode())
    world.say(letter * half + " 1 2 3")
    world.say(letter * half + " 4 5 6")
    world.turn()
    done = world.turn()
    assert (done.status, done.error, done.path[-1]) == ("SUCCEEDED", "", "Replied")
    log = world.run_log(world.runs()[-1].run)
    assert [part for part, step, *_ in log if step == 20] == [
        f"p{n}" for n in range(1, MAX_SUB_QUESTIONS + 1)
    ]


def broken_machine(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    machine = copy.deepcopy(read_machine(ROOT / "statemachines" / "turn.asl.yaml"))
    change(machine["States"])
    return machine


def put(state: str, field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(states: dict[str, Any]) -> None:
        states[state][field] = value

    return change


def forget(state: str, field: str) -> Callable[[dict[str, Any]], None]:
    def change(states: dict[str, Any]) -> None:
        states[state][field].pop(next(iter(states[state][field])))

    return change


@pytest.mark.parametrize(
    ("change", "answers", "path"),
    [
        (put("AnswerParts", "Output", "{% $states.result[$ != null] %}"), [REFUSED], STATED),
        (put("AnswerParts", "Output", "{% $states.result %}"), [REFUSED], STATED),
        (put("AnswerParts", "Items", "{% $states.input.parts %}"), [READ, SAID], KNOWLEDGE),
        (put("ComposeReply", "Next", "ChooseEnding"), [READ, SAID], KNOWLEDGE),
        (put("ComposeReply", "Assign", {}), [READ, SAID], KNOWLEDGE),
        (put("AnnounceReply", "Next", "Superseded"), [READ, SAID], KNOWLEDGE),
        (forget("BeginTurn", "Assign"), [READ, SAID], KNOWLEDGE),
    ],
)
def test_a_broken_machine_goes_another_way(story, change, answers, path) -> None:
    world = story()
    world.model._answers.extend(answers)
    world.machine = Interpreter(
        broken_machine(change),
        {**{f"{name}FunctionArn": name for name in FUNCTIONS}, "EventsToPushQueueUrl": QUEUE_URL},
        _MachineTasks(world),
    )
    world.say(QUESTION)
    done = world.turn()
    assert (done.status, done.path) != ("SUCCEEDED", path)
    world.scripted = len(world.model.calls)
    world.model._answers.clear()
