"""Client frames: what the schema allows is parsed, what it forbids is refused, and the examples are real."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.assistant_example import patient
from tests.wire.contract import read_yaml, types_of, validator
from turngate.domain.frames import SHAPES, parse_frame
from turngate.errors import RefusedError

EXAMPLES = [
    (f"{message['name']}: {example['name']}", message["name"], example["payload"])
    for message in read_yaml("asyncapi.yaml")["components"]["messages"].values()
    for example in message.get("examples", [])
]
BEYOND_A_SCHEMA = {"text_too_long", "text_empty", "frame_too_large", "frame_not_text", "frame_too_deep"}
"""Limits in bytes, blank texts and half characters: refused though the schema cannot say so."""


def is_valid(kind: str, frame: Any) -> bool:
    return validator(f"schemas/client/{kind}.json").is_valid(frame)


def verdict(frame: Any) -> str:
    try:
        parse_frame(json.dumps(frame))
    except RefusedError as refused:
        return refused.code
    return "parsed"


def test_every_client_frame_has_an_example() -> None:
    assert {kind for _, kind, _ in EXAMPLES} == types_of("client")


@pytest.mark.parametrize(
    ("kind", "frame"), [each[1:] for each in EXAMPLES], ids=[each[0] for each in EXAMPLES]
)
def test_an_example_is_valid_and_parses(kind: str, frame: dict[str, Any]) -> None:
    assert is_valid(kind, frame)
    assert type(parse_frame(json.dumps(frame, ensure_ascii=False))) is SHAPES[kind]


@pytest.mark.parametrize(
    ("kind", "frame"), [each[1:] for each in EXAMPLES], ids=[each[0] for each in EXAMPLES]
)
def test_an_unknown_field_of_a_newer_client_is_ignored(kind: str, frame: dict[str, Any]) -> None:
    newer = {**frame, "since_v9": {"a": [1]}}
    assert is_valid(kind, newer)
    assert parse_frame(json.dumps(newer)) == parse_frame(json.dumps(frame))


ODD = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        1.5,
        10**20,
        "",
        " ",
        "a#b",
        "x" * 129,
        "en",
        "de",
        "form",
        [],
        {},
        ["m1"],
        {"a": 1},
        "m1",
    ]
)


@patient
@given(st.sampled_from([each[1:] for each in EXAMPLES]), st.data())
def test_what_a_schema_forbids_is_refused_and_what_it_allows_is_parsed(example, data) -> None:
    kind, frame = example
    names = [name for name in frame if name != "type"] + [
        "language",
        "conversation_id",
        "after_seq",
        "on",
        "opening",
    ]
    changed = {**frame, data.draw(st.sampled_from(names)): data.draw(ODD)}
    gone = data.draw(st.none() | st.sampled_from(sorted(changed)))
    changed = {name: value for name, value in changed.items() if name != gone}
    said = verdict(changed)
    if not is_valid(kind, changed):
        assert said not in ("parsed", "internal"), changed
    else:
        assert said == "parsed" or said in BEYOND_A_SCHEMA, (said, changed)


@pytest.mark.parametrize(
    ("kind", "frame"),
    [
        ("message.send", {"type": "message.send", "client_message_id": "m1"}),
        ("message.send", {"type": "message.send", "client_message_id": "a#b", "text": "x"}),
        ("message.send", {"type": "message.send", "client_message_id": "m1", "text": ""}),
        ("message.send", {"type": "message.send", "client_message_id": "m1", "text": "x" * 8193}),
        (
            "message.send",
            {"type": "message.send", "client_message_id": "m1", "text": "x", "message_type": "x"},
        ),
        ("run.cancel", {"type": "run.cancel", "run_id": "r1"}),
        ("resume", {"type": "resume", "after_seq": -1}),
        ("ping", {"type": "ping", "conversation_id": 7}),
        ("ack", {"type": "ack", "seq": "7"}),
        ("typing", {"type": "typing", "on": "yes"}),
        ("typing", {"type": "typing", "on": 1}),
    ],
)
def test_an_invalid_frame_is_refused_by_both(kind: str, frame: dict[str, Any]) -> None:
    assert not is_valid(kind, frame)
    assert verdict(frame) != "parsed"
