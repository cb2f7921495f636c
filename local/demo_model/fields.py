"""Typed reading of untrusted JSON: every wrong shape becomes a refusal that names its place."""

from __future__ import annotations

import json
from typing import Any, Never

from local.demo_model.problems import RefusedRequestError

JsonObject = dict[str, Any]


def decode(raw: bytes | str, place: str) -> JsonObject:
    """Parse one JSON object. Not UTF-8, not JSON, NaN, too deep or another type is refused."""
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RefusedRequestError(f"{place} is not valid JSON: {error}", "invalid_json", place) from error
    return as_object(value, place)


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def as_object(value: object, place: str) -> JsonObject:
    """The value as a JSON object."""
    if not isinstance(value, dict):
        raise RefusedRequestError(f"{place} must be an object", "invalid_type", place)
    return value


def as_list(value: object, place: str, *, most: int, least: int = 0) -> list[Any]:
    """The value as a list of ``least`` to ``most`` items."""
    if not isinstance(value, list):
        raise RefusedRequestError(f"{place} must be an array", "invalid_type", place)
    if not least <= len(value) <= most:
        raise RefusedRequestError(f"{place} must have {least} to {most} items", "invalid_length", place)
    return value


def as_text(value: object, place: str, *, empty: bool = False) -> str:
    """The value as a string, not blank unless ``empty`` allows it."""
    if not isinstance(value, str):
        found = "null" if value is None else type(value).__name__
        raise RefusedRequestError(f"{place} must be a string, not {found}", "invalid_type", place)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RefusedRequestError(f"{place} holds half a surrogate pair", "invalid_value", place) from error
    if not empty and not value.strip():
        raise RefusedRequestError(f"{place} must not be empty", "empty_string", place)
    return value


def as_choice(value: object, place: str, choices: tuple[str, ...]) -> str:
    """The value as one of the given words."""
    if not isinstance(value, str) or value not in choices:
        raise RefusedRequestError(f"{place} must be one of: {', '.join(choices)}", "invalid_value", place)
    return value


def as_whole_number(value: object, place: str, *, least: int) -> int:
    """The value as an integer (a boolean is none) of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise RefusedRequestError(f"{place} must be an integer of at least {least}", "invalid_value", place)
    return value
