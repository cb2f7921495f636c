"""Whatever a client sends is a frame or a coded refusal, and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.assistant_example import patient
from turngate.domain import frames, wire
from turngate.domain.frames import MAX_FRAME_BYTES, MAX_TEXT_BYTES, client_message_id_of, parse_frame
from turngate.domain.problems import PROBLEMS
from turngate.errors import RefusedError


def message(**fields: object) -> str:
    frame = {"type": "message.send", "client_message_id": "m1", "text": "hello", **fields}
    return json.dumps(frame, ensure_ascii=False)


def refused(body: str | None, *, is_base64: bool = False) -> str:
    with pytest.raises(RefusedError) as error:
        parse_frame(body, is_base64=is_base64)
    return error.value.code


DEEP = '{"type":"ping","a":' + "[" * 5000 + "]" * 5000 + "}"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, "frame_empty"),
        ("", "frame_empty"),
        (" \n\t", "frame_empty"),
        ("hello", "frame_not_json"),
        ("{", "frame_not_json"),
        ("[]", "frame_not_json"),
        ('"ping"', "frame_not_json"),
        ("\ufeff{}", "frame_not_json"),
        ('{"type":"ping"} {}', "frame_not_json"),
        (DEEP, "frame_too_deep"),
        ('{"a":' * 9 + "1" + "}" * 9, "frame_too_deep"),
        ("[" * 9, "frame_too_deep"),
        (json.dumps({"type": "ping", "x": "y" * MAX_FRAME_BYTES}), "frame_too_large"),
        (json.dumps({"type": "ping", "x": "中" * 11_000}, ensure_ascii=False), "frame_too_large"),
        ("{}", "frame_unknown_type"),
        ('{"type":"subscribe"}', "frame_unknown_type"),
        ('{"type":["ping"]}', "frame_unknown_type"),
        ('{"type":{"ping":1}}', "frame_unknown_type"),
        ('{"type":null}', "frame_unknown_type"),
        ('{"type":"PING"}', "frame_unknown_type"),
        ('{"type":"action.submit"}', "not_supported"),
        ('{"type":"agent.message"}', "not_supported"),
        ('{"type":"message.send"}', "frame_invalid"),
        (message(client_message_id="a#b"), "frame_invalid"),
        (message(client_message_id=""), "frame_invalid"),
        (message(client_message_id="m1\n"), "frame_invalid"),
        (message(client_message_id="x" * 129), "frame_invalid"),
        (message(client_message_id=7), "frame_invalid"),
        (message(text=7), "frame_invalid"),
        (message(text=None), "frame_invalid"),
        (message(message_type="shout"), "frame_invalid"),
        (message(conversation_id="T#acme"), "frame_invalid"),
        (message(language="de"), "frame_invalid"),
        ('{"type":"run.cancel","run_id":"r1"}', "frame_invalid"),
        ('{"type":"resume","after_seq":-1}', "frame_invalid"),
        ('{"type":"resume","after_seq":"1"}', "frame_invalid"),
        ('{"type":"resume","after_seq":1.5}', "frame_invalid"),
        ('{"type":"resume","after_seq":NaN}', "frame_invalid"),
        ('{"type":"resume","after_seq":5.0}', "frame_invalid"),
        ('{"type":"resume","after_seq":true}', "frame_invalid"),
        ('{"type":"typing","on":1}', "frame_invalid"),
        (message(language="\ud800"), "frame_invalid"),
        ('{"type":"ack"}', "frame_invalid"),
        (message(text=""), "text_empty"),
        (message(text=" \n\u3000"), "text_empty"),
        (message(text="\x00\x01"), "text_empty"),
        (message(text="\u200b\u2060\ufeff"), "text_empty"),
        (message(text="x" * (MAX_TEXT_BYTES + 1)), "text_too_long"),
        (message(text="中" * 2731), "text_too_long"),
        ('{"type":"message.send","client_message_id":"m1","text":"\\ud800"}', "frame_not_text"),
    ],
)
def test_what_is_wrong_with_a_frame_is_said_by_its_code(body: str | None, code: str) -> None:
    assert refused(body) == code


def test_binary_frames_are_refused_whatever_they_hold() -> None:
    assert refused("eyJ0eXBlIjoicGluZyJ9", is_base64=True) == "frame_not_text"
    assert refused(None, is_base64=True) == "frame_not_text"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (message(), frames.MessageSend),
        (message(text="x" * MAX_TEXT_BYTES), frames.MessageSend),
        (message(text="中" * 2730), frames.MessageSend),
        (message(text="[{" * 20), frames.MessageSend),
        (message(text='\\"{[' * 20), frames.MessageSend),
        (message(some_future_field={"a": [1]}), frames.MessageSend),
        ('{"type":"ping"}', frames.Ping),
        ('{"type":"resume","conversation_id":"c1","after_seq":7}', frames.Resume),
        ('{"type":"resume","after_seq":' + "9" * 30 + "}", frames.Resume),
        ('{"type":"ping","\\ud800":"\\ud800"}', frames.Ping),
        ('{"type":"ack","seq":7}', frames.Ack),
        ('{"type":"typing"}', frames.Typing),
        ('{"type":"run.cancel","run_id":"r1","conversation_id":"c1"}', frames.RunCancel),
        ('{"type":"ping","a":' * 1 + "[[[[[[[1]]]]]]]" + "}", frames.Ping),
    ],
)
def test_what_is_within_the_limits_is_a_frame(body: str, kind: type) -> None:
    assert type(parse_frame(body)) is kind


def test_a_control_character_becomes_a_space_and_line_ends_stay() -> None:
    frame = parse_frame(message(text="one\x0btwo\r\n\tthree\x00"))
    assert isinstance(frame, frames.MessageSend)
    assert frame.text == "one two\r\n\tthree "


def test_the_refusal_of_a_field_names_it_and_repeats_none_of_its_content() -> None:
    with pytest.raises(RefusedError) as error:
        parse_frame(message(client_message_id="<script>", language="xx"))
    assert error.value.detail == "client_message_id, language"
    with pytest.raises(RefusedError) as error:
        parse_frame('{"type":"message.send","language":"\\ud800"}')
    assert error.value.detail == "client_message_id, language, text"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
TYPES = st.sampled_from(
    ["message.send", "run.cancel", "resume", "ping", "ack", "typing", "action.submit", "nope"]
)
NAMES = st.sampled_from(
    [
        "client_message_id",
        "text",
        "message_type",
        "conversation_id",
        "opening",
        "language",
        "run_id",
        "after_seq",
        "seq",
        "on",
        "type",
    ]
)


def outcome(body: str, *, is_base64: bool = False) -> None:
    try:
        frame = parse_frame(body, is_base64=is_base64)
    except RefusedError as error:
        assert error.code in PROBLEMS
        json.dumps([error.code, error.detail], ensure_ascii=False).encode()
    else:
        wire.write_json(frame).encode()


@patient
@given(st.text(st.characters(exclude_categories=())), st.booleans())
@example('{"type":' + "9" * 5000 + "}", False)
@example('{"type":"resume","after_seq":' + "9" * 4000 + "}", False)
@example('{"type":"message.send","client_message_id":"\\ud83d","text":"x"}', False)
@example("\ud800", False)
def test_any_text_is_a_frame_or_a_refusal_of_the_catalogue(body: str, is_base64: bool) -> None:
    outcome(body, is_base64=is_base64)
    client_message_id_of(body)


@patient
@given(st.binary())
def test_any_bytes_are_a_frame_or_a_refusal_of_the_catalogue(raw: bytes) -> None:
    outcome(raw.decode("latin-1"))
    outcome(raw.decode("utf-8", "surrogateescape"))


@patient
@given(st.dictionaries(NAMES, JSON), TYPES | JSON, st.booleans())
def test_any_json_object_is_a_frame_or_a_refusal_of_the_catalogue(
    fields: dict[str, object], kind: object, ascii_only: bool
) -> None:
    outcome(json.dumps({**fields, "type": kind}, ensure_ascii=ascii_only))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (message(client_message_id="m-7", text=""), "m-7"),
        (message(client_message_id="a#b"), None),
        (message(client_message_id=7), None),
        ('{"client_message_id":"\\ud800"}', None),
        ("[1]", None),
        ("nonsense", None),
        ("[" * 100_000, None),
        (None, None),
    ],
)
def test_an_error_names_the_message_only_by_an_id_that_could_be_one(
    body: str | None, found: str | None
) -> None:
    assert client_message_id_of(body) == found
