"""Every event in events/ goes through its real handler; what must come of it stands beside it.

`<case>.expected.json` says at least: `output` or `raises`; `orders` put into events-to-push, `starts` of the machine,
`queued` into runs-to-start and `frames` by connection where there are any; `model_answers` is what the model is told to
say. Of an object (also of one written as JSON text), what is not named is free; a list has exactly its elements."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import fields

from tests.functions.prepared import EVENTS, prepare, read
from tests.machines.aws_events import CONTEXT
from tests.machines.world import ROOT, WITH_PORTS
from tests.protocol.world import START
from tests.unit.every_shape import every_shape
from turngate.domain import keys

if TYPE_CHECKING:
    from pathlib import Path

CASES = sorted(path for path in EVENTS.glob("*/*.json") if not path.name.endswith(".expected.json"))
SHAPES = [
    (
        {field.name for field in fields(shape) if field.required},
        {*shape.__struct_fields__, str(shape.__struct_config__.tag_field)},
    )
    for shape in every_shape()
]
"""Names of the fields that a document of each shape must have, and of those that it may have."""
STATES = {path.parent.name for path in (ROOT / "functions" / "turn").glob("*/handler.py")} - {"start_run"}
HANDLERS = {path.parent.name: path.parent for path in (ROOT / "functions").glob("*/*/handler.py")}


def case_id(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def run(world, path: Path) -> dict[str, Any]:
    """Everything one can see of one event."""
    folder = HANDLERS[path.parent.name].relative_to(ROOT)
    handler = importlib.import_module(".".join((*folder.parts, "handler")))
    try:
        seen: dict[str, Any] = {"output": handler.lambda_handler(read(path), CONTEXT)}
    except AssertionError:
        raise
    except Exception as error:  # what the Lambda runtime would report
        seen = {"raises": type(error).__name__}
    seen["orders"] = world.pushes.sent
    seen["starts"] = [order for _, order in world.starter.started]
    seen["queued"] = world.starts.sent
    seen["frames"] = {
        connection: [json.loads(frame) for frame in frames]
        for connection, frames in world.pusher.frames.items()
        if frames
    }
    return json.loads(json.dumps(seen))


def differences(expected: Any, seen: Any, place: str = "") -> list[str]:
    if isinstance(expected, dict) and isinstance(seen, dict):
        return [
            text
            for key, value in expected.items()
            for text in (
                differences(value, seen[key], f"{place}/{key}")
                if key in seen
                else [f"{place}/{key} is missing"]
            )
        ]
    if isinstance(expected, list) and isinstance(seen, list) and len(expected) == len(seen):
        return [
            text
            for index, (left, right) in enumerate(zip(expected, seen, strict=True))
            for text in differences(left, right, f"{place}/{index}")
        ]
    if (
        isinstance(expected, str)
        and isinstance(seen, str)
        and expected.startswith("{")
        and seen.startswith("{")
    ):
        return differences(json.loads(expected), json.loads(seen), f"{place}/(json)")
    return [] if expected == seen else [f"{place}: {seen!r}, not {expected!r}"]


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_an_event_leads_to_what_stands_beside_it(path: Path, story) -> None:
    expected = read(path.with_name(f"{path.stem}.expected.json"))
    world = prepare(story(*expected.pop("model_answers", [])), path.parent.name)
    seen = run(world, path)
    nothing = {"orders": [], "starts": [], "queued": [], "frames": {}}
    for name, empty in nothing.items():
        assert bool(seen[name]) == bool(expected.get(name, empty)), {name: seen[name]}
    assert differences({**nothing, **expected}, seen) == []


def is_read(path: Path) -> bool:
    """Whether it is the payload of a state, and not one that is refused anyway."""
    expected = read(path.with_name(f"{path.stem}.expected.json"))
    return path.parent.name in STATES and expected.get("raises") != "MalformedError"


@pytest.mark.parametrize("path", [path for path in CASES if is_read(path)], ids=case_id)
def test_a_payload_of_a_newer_release_leads_to_the_same(path: Path, story, tmp_path) -> None:
    """While a deployment is under way, functions of two releases serve one turn."""
    expected = read(path.with_name(f"{path.stem}.expected.json"))
    world = prepare(story(*expected.pop("model_answers", [])), path.parent.name)
    newer = tmp_path / path.parent.name / path.name
    newer.parent.mkdir()
    payload, grown = with_new_fields(read(path))
    newer.write_text(json.dumps(payload), encoding="utf-8")
    assert grown > 0
    assert differences(expected, run(world, newer)) == []


def with_new_fields(value: Any) -> tuple[Any, int]:
    """The same with a field more in each document of a shape of ours, and how many there are."""
    if isinstance(value, list):
        grown = [with_new_fields(each) for each in value]
        return [each for each, _ in grown], sum(count for _, count in grown)
    if not isinstance(value, dict):
        return value, 0
    inner = {name: with_new_fields(each) for name, each in value.items()}
    document = {name: each for name, (each, _) in inner.items()}
    count = sum(count for _, count in inner.values())
    known = value and any(required <= set(value) <= named for required, named in SHAPES)
    return ({**document, "of_a_newer_release": {"a": [1]}}, count + 1) if known else (document, count)


def test_every_function_has_events_and_every_event_its_function_and_its_expectation() -> None:
    assert {path.parent.name for path in CASES} == set(HANDLERS)
    expected = {path.name.removesuffix(".expected.json") for path in EVENTS.glob("*/*.expected.json")}
    assert expected == {path.stem for path in CASES}
    assert len(WITH_PORTS) == len(HANDLERS) - 1, "govern alone has no ports"


@pytest.mark.invariant("I10")
@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_an_event_delivered_again_changes_nothing_more(path: Path, story) -> None:
    """Business state only: what was asked of the model, connections seen and tickets issued are no business."""
    answers = read(path.with_name(f"{path.stem}.expected.json")).get("model_answers", [])
    world = prepare(story(*answers, *answers), path.parent.name)
    run(world, path)
    before = business(world)
    run(world, path)
    assert business(world) == before


def business(world) -> dict[Any, Any]:
    """Without the due times: that a follow-up was asked for again is no business either."""
    kept = ("HEAD", "MSG#", "EVT#", "RUN#", "IDEM#")
    return {
        key: {name: value for name, value in item.items() if name not in keys.DUE_ATTRIBUTES}
        for key, item in world.store.snapshot().items()
        if key.sk.startswith(kept)
    }


def test_a_difference_is_found_wherever_it_is() -> None:
    assert differences({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2, "c": 3}], "d": 4}) == []
    assert differences({"a": [1]}, {"a": [1, 2]}) == ["/a: [1, 2], not [1]"]
    assert differences({"a": {"b": None}}, {"a": {}}) == ["/a/b is missing"]
    assert differences({"a": '{"b": 1}'}, {"a": '{"b": 2, "c": 3}'}) == ["/a/(json)/b: 2, not 1"]


def test_the_events_speak_of_the_world_that_is_prepared() -> None:
    text = (EVENTS / "accept_message" / "cancel.json").read_text(encoding="utf-8")
    conversation = keys.conversation_id_for("velo", "user:ann", "m-1")
    assert conversation in text
    assert keys.run_id_for("velo", conversation, 1) in text
    assert str(START) in text
