"""The HTTP routes answer as contracts/openapi.yaml says, byte for byte of their bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.chat.issue_ticket import handler as issue_ticket
from tests.functions.prepared import EVENTS, prepare, read
from tests.machines.aws_events import CONTEXT
from tests.machines.world import ROOT
from tests.wire.contract import inline_validator, mistakes, read_yaml
from turngate.chat import http

API = read_yaml("openapi.yaml")
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in API["paths"].items()
    for method, operation in methods.items()
}
CASES = sorted(path for path in (EVENTS / "issue_ticket").glob("*.json") if ".expected" not in path.name)


def content_of(response: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    ((kind, content),) = response["content"].items()
    return kind, content["schema"]


def test_the_routes_are_those_of_the_code_and_of_the_template() -> None:
    assert set(OPERATIONS) == set(http._ROUTES)
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    for path in API["paths"]:
        assert f"Path: {path}" in template or f'Path: "{path}"' in template


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_an_answer_is_one_of_the_documented_ones(path, story) -> None:
    prepare(story(), "issue_ticket")
    event = read(path)
    answer = issue_ticket.lambda_handler(event, CONTEXT)
    documented = OPERATIONS[event["routeKey"]]["responses"]
    assert str(answer["statusCode"]) in documented, answer
    kind, schema = content_of(documented[str(answer["statusCode"])])
    body = json.loads(answer["body"])
    assert answer["headers"]["content-type"] == f"{kind}; charset=utf-8"
    assert [error.message for error in inline_validator(schema).iter_errors(body)] == []
    if "code" in body:
        assert f"`{body['code']}`" in documented[str(answer["statusCode"])]["description"]
    for frame in body.get("events", []):
        assert mistakes(frame) == []


def test_every_documented_answer_but_busy_is_shown_by_an_event(story) -> None:
    prepare(story(), "issue_ticket")
    shown: dict[str, set[str]] = {route: {"503"} for route in OPERATIONS}
    for path in CASES:
        event = read(path)
        shown[event["routeKey"]].add(str(issue_ticket.lambda_handler(event, CONTEXT)["statusCode"]))
    documented = {route: set(operation["responses"]) for route, operation in OPERATIONS.items()}
    assert (
        documented["GET /v1/conversations/{id}/events"] - {"401"}
        == shown["GET /v1/conversations/{id}/events"]
    )
    for route in ("POST /v1/chat/guests", "POST /v1/chat/tickets"):
        assert documented[route] == shown[route]


def test_a_table_that_does_not_answer_is_busy_with_a_time_to_wait(story) -> None:
    world = prepare(story(), "issue_ticket")
    world.store.drop["issue_ticket"] = 1
    event = read(EVENTS / "issue_ticket" / "ticket.json")
    answer = issue_ticket.lambda_handler(event, CONTEXT)
    assert (answer["statusCode"], answer["headers"]["retry-after"]) == (503, "1")
    _, schema = content_of(OPERATIONS[event["routeKey"]]["responses"]["503"])
    assert inline_validator(schema).is_valid(json.loads(answer["body"]))


def test_only_the_route_for_guests_is_open() -> None:
    open_routes = {route for route, operation in OPERATIONS.items() if operation.get("security") == []}
    assert open_routes == {"POST /v1/chat/guests"}
    assert API["security"] == [{"bearer": []}]
