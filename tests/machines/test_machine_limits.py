"""The machine itself: the largest turn still fits its payload, and the stories notice when the file is broken."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.machines.interpreter import Interpreter
from tests.machines.paths import KNOWLEDGE, STATED
from tests.machines.scripts import phrases, reads
from tests.machines.tenant import ACCOUNT, DOCUMENTS
from tests.machines.world import FUNCTIONS, QUEUE_URL, ROOT, _MachineTasks
from tests.unit.assistant_example import config_document
from tools.asl import read_machine
from turngate.domain import keys, wire
from turngate.domain.checking import validate_config
from turngate.domain.config import AssistantConfig
from turngate.domain.json_repair import MAX_BYTES as MAX_ANSWER_BYTES
from turngate.domain.understanding import MAX_SUB_QUESTIONS

if TYPE_CHECKING:
    from tests.machines.interpreter import Execution
    from tests.machines.world import TurnWorld

QUESTION = "How long do refunds take?"
READ = reads((QUESTION, {"RETURN_POLICY": 0.9}))
SAID = phrases(("p1", "Refunds take 3 working days.", ["p1.E1"]))
REFUSED = reads(("Where is my order 7?", {"ORDER_QUERY": 0.9}))


def with_examples(document: dict[str, Any], length: int) -> None:
    for intent in document["intents"]:
        intent["examples"] = ["例" * length] * 30 if length else []


def with_refusal(document: dict[str, Any], length: int) -> None:
    document["not_connected_reply"] = {"zh-CN": "r" * max(length, 1)}


def with_names(document: dict[str, Any], length: int) -> None:
    for number, intent in enumerate(document["intents"]):
        intent["name"] = {"zh-CN": f"{number}" + "名" * length, "en": f"{number}" + "号" * length}


def with_guidance(document: dict[str, Any], length: int) -> None:
    document["guidance_reply"] = {"zh-CN": "g" * max(length, 1)}


Change = Callable[[dict[str, Any], int], None]


def largest_configuration(*changes: Change) -> AssistantConfig:
    """One that is accepted, each change in its turn made as large as it may be."""
    document = config_document()
    document["routing"]["max_candidates"] = 10
    document["languages"] = ["zh-CN"]  # a text that is lacking in English is said in Chinese
    for change in changes:
        accepted, refused = 0, 8200
        while refused - accepted > 1:
            tried = copy.deepcopy(document)
            change(tried, between := (accepted + refused) // 2)
            if validate_config(wire.read(tried, AssistantConfig), dict.fromkeys(DOCUMENTS, True)):
                refused = between
            else:
                accepted = between
        change(document, accepted)
    return wire.read(document, AssistantConfig)


def longest_answer(letter: str, scores: dict[str, float]) -> dict[str, Any]:
    width = len(json.dumps(letter, ensure_ascii=False).encode()) - 2
    share = (MAX_ANSWER_BYTES - 2000) // (MAX_SUB_QUESTIONS + 1) // width
    subs = [(letter * share + f" {number}", scores) for number in range(1, MAX_SUB_QUESTIONS + 1)]
    answer = reads(*subs, rewritten=letter * share)
    assert MAX_ANSWER_BYTES - 4000 < len(json.dumps(answer, ensure_ascii=False).encode()) <= MAX_ANSWER_BYTES
    return answer


def ask_at_length(world: TurnWorld, letter: str) -> Execution:
    half = 8100 // len(letter.encode())
    world.say(letter * half + " 1 2 3")
    world.say(letter * half + " 4 5 6")
    world.turn()
    return world.turn()


LARGEST = {
    "a large catalogue": ((with_examples,), {"ORDER_QUERY": 0.9}),
    "a long reply, six times": ((with_refusal, with_examples), {"ORDER_QUERY": 0.9}),
    "a long question back, six times": (
        (with_names, with_guidance, with_examples),
        {"ORDER_QUERY": 0.9, "PARTS_SEARCH": 0.89, "RETURN_POLICY": 0.88, "REPAIR_GUIDE": 0.87},
    ),
}


@pytest.mark.parametrize("letter", ["问", "x", "x\\", "\\" * 15 + "x"])
@pytest.mark.parametrize("which", LARGEST)
def test_the_longest_input_with_the_longest_answer_and_the_largest_configuration_fits(
    story, letter, which
) -> None:
    """A payload has 256 KB, and States.DataLimitExceeded cannot be caught: the customer would wait for the sweeper."""
    changes, scores = LARGEST[which]
    world = story(longest_answer(letter, scores), configuration=largest_configuration(*changes))
    done = ask_at_length(world, letter)
    assert (done.status, done.error, done.path[-1]) == ("SUCCEEDED", "", "Replied")
    log = world.run_log(world.runs()[-1].run)
    ruled = {part: data for part, step, _, data in log if step == 20}
    assert list(ruled) == [f"p{n}" for n in range(1, MAX_SUB_QUESTIONS + 1)]
    asked = len(scores) > 1
    assert all((data["route_kind"] == "CLARIFICATION") is asked for data in ruled.values())


def test_the_limit_of_a_text_is_needed(story) -> None:
    """What saving refuses would end a turn without a word: here it was stored past the check."""
    document = wire.write(largest_configuration(with_refusal, with_examples))
    document["not_connected_reply"]["zh-CN"] *= 4
    world = story(longest_answer("x", {"ORDER_QUERY": 0.9}))
    key = keys.config_version(ACCOUNT, 1)
    stored = {**world.store.snapshot()[key], "config": wire.write_json(wire.read(document, AssistantConfig))}
    world.store.put_all(ACCOUNT, [(key, stored)])
    assert ask_at_length(world, "x").error == "States.DataLimitExceeded"


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
