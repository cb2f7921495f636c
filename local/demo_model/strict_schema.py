"""The rules a strict ``json_schema`` must keep, checked here so that they do not fail first in production.

Source: OpenAI, structured outputs, "supported schemas": the root is an object, every object lists all its
properties as required and forbids others.
"""

from __future__ import annotations

import re

from local.demo_model.fields import JsonObject, as_object, as_text
from local.demo_model.problems import RefusedRequestError

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DEEPEST = 10
_WHERE = "response_format.json_schema"


def check_response_format(value: object) -> str:
    """Check the whole ``response_format`` of a request and return its schema's name."""
    if value is None:
        raise RefusedRequestError("response_format is required here", "missing", "response_format")
    chosen = as_object(value, "response_format")
    if chosen.get("type") != "json_schema":
        message = "this model only answers with response_format.type = json_schema"
        raise RefusedRequestError(message, "unsupported_response_format", "response_format.type")
    described = as_object(chosen.get("json_schema"), _WHERE)
    name = as_text(described.get("name"), f"{_WHERE}.name")
    if not _NAME.fullmatch(name):
        message = f"{_WHERE}.name must be 1 to 64 letters, digits, _ or -"
        raise RefusedRequestError(message, "invalid_value", f"{_WHERE}.name")
    schema = as_object(described.get("schema"), f"{_WHERE}.schema")
    if schema.get("type") != "object":
        raise _refused("the root must be of type object", f"{_WHERE}.schema")
    if described.get("strict") is True:
        _check_strict(schema, f"{_WHERE}.schema", 0)
    return name


def _check_strict(node: object, place: str, depth: int) -> None:
    if isinstance(node, list):
        for index, item in enumerate(node):
            _check_strict(item, f"{place}[{index}]", depth)
        return
    if not isinstance(node, dict):
        return
    if depth > _DEEPEST:
        raise _refused(f"more than {_DEEPEST} levels", place)
    if "properties" in node or node.get("type") == "object":
        _check_object(node, place)
    for key, inner in node.items():
        if key in {"properties", "$defs", "definitions"} and isinstance(inner, dict):
            for name, member in inner.items():
                _check_strict(member, f"{place}.{key}.{name}", depth + 1)
        elif key in {"items", "anyOf"}:
            _check_strict(inner, f"{place}.{key}", depth + 1)


def _check_object(node: JsonObject, place: str) -> None:
    if node.get("additionalProperties") is not False:
        raise _refused("additionalProperties must be false", place)
    properties = as_object(node.get("properties", {}), f"{place}.properties")
    required = node.get("required", [])
    if not isinstance(required, list) or set(map(str, required)) != set(properties):
        raise _refused("required must list every property", place)


def _refused(reason: str, place: str) -> RefusedRequestError:
    return RefusedRequestError(f"Invalid schema for response_format: {reason}", "invalid_schema", place)
