"""The files in contracts/ are sound, complete and nothing more: the same types and codes as the code has."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from jsonschema import Draft7Validator
from referencing.exceptions import Unresolvable

from tests.machines.world import ROOT
from tests.wire.contract import CONTRACTS, SCHEMAS, read_json, read_yaml, types_of, validator
from turngate.domain import frames
from turngate.domain.problems import PROBLEMS

FILES = sorted(path.relative_to(CONTRACTS).as_posix() for path in SCHEMAS.rglob("*.json"))
SOURCES = sorted((ROOT / "layers" / "turngate" / "turngate").rglob("*.py"))
MAKERS = {"ClientEvent": 0, "ephemeral": 0, "tell_watchers": 2}
"""Calls that make a frame, and which argument is its type."""


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for each in value.values() for ref in references(each)]
    if isinstance(value, list):
        return [ref for each in value for ref in references(each)]
    return []


@pytest.mark.parametrize("path", FILES)
def test_a_schema_is_sound_and_its_references_lead_somewhere(path: str) -> None:
    Draft7Validator.check_schema(read_json(CONTRACTS / path))
    try:
        list(validator(path).iter_errors({}))
        list(validator(path).iter_errors({"data": {}}))
    except Unresolvable as error:
        pytest.fail(f"{path}: {error}")
    for reference in references(read_json(CONTRACTS / path)):
        target, _, pointer = reference.partition("#/definitions/")
        found = read_json((CONTRACTS / path).parent / target) if target else read_json(CONTRACTS / path)
        assert pointer in found["definitions"], reference


def test_asyncapi_names_every_schema_once_and_nothing_else() -> None:
    document = read_yaml("asyncapi.yaml")
    messages = document["components"]["messages"]
    named = [message["payload"]["$ref"] for message in messages.values()]
    assert sorted(named) == sorted(path for path in FILES if path != "schemas/common.json")
    for message in messages.values():
        assert message["payload"]["$ref"].endswith(f"/{message['name']}.json")
    for reference in references(document):
        if reference.startswith("#/"):
            found = document
            for step in reference[2:].split("/"):
                found = found[step]
    assert document["asyncapi"].startswith("3.")


def test_asyncapi_lets_the_client_send_client_frames_and_the_server_server_frames() -> None:
    document = read_yaml("asyncapi.yaml")
    sides = {"clientFrames": ("receive", "client"), "serverFrames": ("send", "server")}
    for name, (action, side) in sides.items():
        operation = document["operations"][name]
        keys = [reference["$ref"].rpartition("/")[2] for reference in operation["messages"]]
        assert operation["action"] == action
        assert {document["components"]["messages"][key]["name"] for key in keys} == types_of(side)


def test_client_types_are_those_the_server_parses() -> None:
    assert types_of("client") == set(frames.SHAPES)


def types_in_the_code() -> set[str]:
    """Literal types handed to whatever makes a frame, and the endings a table gives."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                place = MAKERS.get(name)
                if (
                    place is not None
                    and len(node.args) > place
                    and isinstance(node.args[place], ast.Constant)
                ):
                    found.add(str(node.args[place].value))  # type: ignore[attr-defined]  # a Constant, see above
            if isinstance(node, ast.Assign) and "_MESSAGE_ENDINGS" in ast.unparse(node.targets[0]):
                found |= set(ast.literal_eval(node.value).values())
    return found


def test_server_types_are_those_the_code_makes() -> None:
    assert types_of("server") == types_in_the_code()


def test_problems_are_those_of_the_code() -> None:
    written = read_yaml("problems.yaml")
    assert written == {
        code: {
            "status": problem.status,
            "retryable": problem.retryable,
            "title": {"zh-CN": problem.zh, "en": problem.en},
        }
        for code, problem in PROBLEMS.items()
    }
    codes = read_json(SCHEMAS / "common.json")["definitions"]["ProblemCode"]["enum"]
    assert sorted(codes) == sorted(PROBLEMS)
