"""What crosses a border is read strictly, and a refusal repeats nothing of what was refused."""

from __future__ import annotations

import json
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from tests.unit.assistant_example import config_document, patient
from tests.unit.every_shape import every_shape
from turngate.domain import shapes, wire
from turngate.domain.config import AssistantConfig
from turngate.domain.knowledge import Document
from turngate.domain.routing import SkillBands
from turngate.domain.shapes import (
    AllowedRoute,
    Candidate,
    Clarification,
    Draft,
    FixedAnswer,
    InputMessage,
    Part,
    Refusal,
    TenantContext,
    TurnRef,
    Usage,
)
from turngate.errors import MalformedError
from turngate.protocol.orders import PushOrder, StartOrder

TURN = {
    "account": "velo",
    "conversation": "c1",
    "run": "r1",
    "execution": "x",
    "epoch": 1,
    "seq": 2,
    "config_version": 3,
    "knowledge_pins": {"sales-kb": 4},
    "deadline": 1_900_000_000_000,
    "schema_version": 1,
}
SECRET = "Grüße an Köhler' - at `$.intents[3].secret`"
"""Hostile as a value: it imitates the place that msgspec names at the end of its messages."""
ROUTES = (
    AllowedRoute(intent_id="I", resource_name="kb", collections=("kb",)),
    Clarification(reason="incomplete", text="?"),
    Refusal(reason="disabled", text="no"),
    FixedAnswer(intent_id="I", resource_name="a", text="yes"),
)


def refusal(document: object, shape: Any, *, strictly: bool = False) -> MalformedError:
    with pytest.raises(MalformedError) as caught:
        wire.read(document, shape, strictly=strictly)
    return caught.value


@pytest.mark.parametrize(
    ("shape", "document"),
    [
        (TurnRef, {**TURN, "seq": True}),
        (TurnRef, {**TURN, "seq": "2"}),
        (TurnRef, {**TURN, "seq": 2.5}),
        (TurnRef, {**TURN, "seq": float("nan")}),
        (TurnRef, {**TURN, "seq": float("inf")}),
        (StartOrder, {"account": "a", "conversation": "c", "run": "r", "schema_version": 2}),
        (StartOrder, {"account": "a", "conversation": "c", "run": "r", "schema_version": True}),
        (TurnRef, {**TURN, "account": "velo\n"}),
        (TurnRef, {**TURN, "account": "ve#lo"}),
        (TurnRef, {**TURN, "account": "\ud800"}),
        (TurnRef, {**TURN, "account": 7}),
        (TurnRef, {**TURN, "knowledge_pins": {"kb": "1"}}),
        (TurnRef, {**TURN, "\ud800": 1}),
        (TurnRef, {name: value for name, value in TURN.items() if name != "run"}),
        (TurnRef, None),
        (TurnRef, []),
        (Usage, {"simulated": 1}),
        (Usage, {"simulated": "true"}),
        (SkillBands, {"high": float("nan")}),
        (SkillBands, {"high": float("inf")}),
        (SkillBands, {"high": 1.1}),
        (SkillBands, {"high": -0.1}),
        (SkillBands, {"high": True}),
        (SkillBands, {"high": "0.5"}),
        (SkillBands, {"explicit_action": "\ud800"}),
        (Part, {"part_id": "p1", "question": "?", "route": {"text": "no kind"}}),
        (Part, {"part_id": "p1", "question": "?", "route": {"kind": "MCP", "intent_id": "I"}}),
        (Part, {"part_id": "p1", "question": "?", "route": {"kind": "\ud800"}}),
        (Part, {"part_id": "p1", "question": "?", "route": {"kind": 1}}),
        (Document, {"document_id": "a\n", "title": "T", "text": "t"}),
        (Document, {"document_id": "a\ud800", "title": "T", "text": "t"}),
    ],
)
def test_what_lacks_its_shape_is_refused(shape: type, document: object) -> None:
    refusal(document, shape)


@pytest.mark.parametrize("number", [5, 5.0, 1.9e12])
def test_an_integer_may_arrive_as_jsonata_writes_it(number: float) -> None:
    turn = wire.read({**TURN, "deadline": number, "knowledge_pins": {"kb": number}}, TurnRef)
    assert (turn.deadline, turn.knowledge_pins) == (int(number), {"kb": int(number)})
    assert type(turn.deadline) is type(turn.knowledge_pins["kb"]) is int
    order = '{"account": "a", "conversation": "c", "run": "r", "schema_version": 1.0}'
    assert type(wire.read_json(order, StartOrder).schema_version) is int
    assert not wire.fits({**TURN, "deadline": 5.0}, TurnRef)


def test_a_float_stays_one_where_one_is_meant() -> None:
    read = wire.read(
        {"parts": [{"id": "A", "score": 1}, {"id": "B", "score": 0.5}]}, dict[str, list[Candidate]]
    )
    assert [candidate.score for candidate in read["parts"]] == [1.0, 0.5]


def test_an_integer_beyond_64_bits_is_carried_or_refused_and_never_a_crash() -> None:
    assert wire.read({**TURN, "seq": 2**80}, TurnRef).seq == 2**80
    assert wire.read_json(json.dumps({**TURN, "seq": 2**80}), TurnRef).seq == 2**80
    assert (
        wire.read(json.loads(wire.write_json(wire.read({**TURN, "seq": 2**80}, TurnRef))), TurnRef).seq
        == 2**80
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[" * 100_000,
        "9" * 5_000,
        '{"a":' * 100_000,
        '{"account": "\\ud800"}',
        '{"account": "\ud800"}',
        '{"epoch": NaN}',
        '{"epoch": 1e999}',
        "{} {}",
        b"\xff\xfe",
    ],
)
def test_a_text_that_is_no_document_is_refused(text: str | bytes) -> None:
    with pytest.raises(MalformedError):
        wire.read_json(text, TurnRef)


def test_a_document_deeper_than_python_recurses_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    refusal({"data": deep, "step": 5.5, "kind": "k", "at": 1}, shapes.RunEvent)
    refusal({"data": {"deep": deep}, "step": 5.0, "kind": "k", "at": 1}, shapes.RunEvent)


@pytest.mark.parametrize(
    ("shape", "document"),
    [
        (SkillBands, {"explicit_action": SECRET}),
        (TurnRef, {**TURN, "account": SECRET}),
        (TurnRef, {**TURN, "seq": SECRET}),
        (TurnRef, {**TURN, "knowledge_pins": {SECRET: SECRET}}),
        (Draft, {"content": "c", "outcome": SECRET}),
        (Part, {"part_id": "p1", "question": "?", "route": {"kind": SECRET}}),
        (PushOrder, {"kind": SECRET}),
        (shapes.Language, SECRET),
        (Document, {"document_id": "d", "title": "t", "text": "x", "file_date": SECRET}),
    ],
)
def test_a_refusal_repeats_nothing_of_the_document_however_it_is_logged(shape: Any, document: object) -> None:
    error = refusal(document, shape)
    told = "".join(traceback.format_exception(error)) + repr(error.__context__) + repr(error.__cause__)
    assert not {"Köhler", "secret"} & set(told.replace("`", " ").replace("'", " ").replace(".", " ").split())
    with pytest.raises(MalformedError) as caught:
        wire.read_json(json.dumps(document), shape)
    assert (str(caught.value), caught.value.__context__) == (str(error), None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "a b"}, "intents[3].id: Expected str matching regex"),
        ({"id": 7}, "intents[3].id: Expected str, got int"),
        ({"source": "theirs"}, "intents[3].source: not one of ours, seed"),
        ({"colour": "red"}, "intents[3].colour: unknown field"),
        ({"enabled": 1}, "intents[3].enabled: Expected bool, got int"),
        ({"name": {"de": "x"}}, "intents[3].name: not one of en, zh-CN"),
        ({"name": {"en": 7}}, "intents[3].name[...]: Expected str, got int"),
    ],
)
def test_a_refusal_says_where_and_what(change: dict[str, Any], said: str) -> None:
    document = config_document()
    document["intents"][3] |= change
    assert str(refusal(document, AssistantConfig, strictly=True)).startswith(said)


def test_a_kind_that_is_none_is_answered_with_those_there_are() -> None:
    part = {"part_id": "p1", "question": "?", "route": {"kind": "MCP"}}
    assert str(refusal(part, Part)) == "route.kind: not one of KB, CLARIFICATION, REFUSAL, FIXED"
    assert str(refusal({"kind": "e"}, PushOrder)) == "kind: not one of event, frame, resume"


def test_a_missing_field_is_named_by_its_whole_path() -> None:
    document = config_document()
    del document["intents"][3]["name"]
    error = refusal(document, AssistantConfig)
    assert (error.path, error.reason) == ("intents[3].name", "missing")
    del document["intents"]
    assert str(refusal(document, AssistantConfig)) == "intents: missing"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.kind)
def test_a_route_is_written_with_its_kind_first_and_read_back(route: shapes.Route) -> None:
    written = wire.write(Part(part_id="p1", question="?", route=route))
    assert next(iter(written["route"].items())) == ("kind", route.kind)
    assert json.loads(wire.write_json(route))["kind"] == route.kind
    assert wire.read(json.loads(json.dumps(written)), Part).route == route


def test_defaults_are_written_out() -> None:
    assert wire.write(StartOrder(account="a", conversation="c", run="r")) == {
        "account": "a",
        "conversation": "c",
        "run": "r",
        "schema_version": 1,
    }
    assert wire.write_json(InputMessage(message_seq=1, text="你好")) == (
        '{"message_seq":1,"text":"你好","message_type":"user_chat"}'
    )


def test_what_is_not_known_of_a_speaker_is_left_out_and_nothing_else() -> None:
    known = TenantContext(account="a", principal="user:p").known()
    assert known == {
        "account": "a",
        "principal": "user:p",
        "roles": ("customer",),
        "client_type": "web",
        "client_session": "",
        "capabilities": (),
    }
    assert wire.read(known, TenantContext) == TenantContext(account="a", principal="user:p")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ((), "colour: unknown field"),
        (("routing", "skills"), "routing.skills.colour: unknown field"),
        (("intents", 3), "intents[3].colour: unknown field"),
        (("pre_routing", "rules", 0), "pre_routing.rules[0].colour: unknown field"),
    ],
)
def test_a_field_nobody_knows_is_passed_over_unless_people_wrote_it(
    place: tuple[Any, ...], said: str
) -> None:
    document = config_document()
    document["routing"]["skills"] = {"high": 0.9}
    plain = wire.read(document, AssistantConfig, strictly=True)
    at: Any = document
    for step in place:
        at = at[step]
    at["colour"] = SECRET
    assert wire.read(document, AssistantConfig) == plain
    assert str(refusal(document, AssistantConfig, strictly=True)) == said
    with pytest.raises(MalformedError, match="unknown field"):
        wire.read_json(json.dumps(document), AssistantConfig, strictly=True)


def test_the_name_of_an_unknown_field_is_only_told_when_it_is_a_name() -> None:
    error = refusal({**config_document(), SECRET: 1}, AssistantConfig, strictly=True)
    assert str(error) == "...: unknown field"


def test_a_newer_schema_version_is_refused_and_an_older_field_less_is_read() -> None:
    assert str(refusal({**TURN, "schema_version": 2}, TurnRef)).startswith(
        "schema_version: Expected int <= 1"
    )
    older = {name: value for name, value in TURN.items() if name != "schema_version"}
    assert wire.read(older, TurnRef) == wire.read(TURN, TurnRef)


def test_every_shape_is_a_value_given_by_name_whose_hints_resolve() -> None:
    found = every_shape()
    assert len(found) > 50 and {TurnRef, AssistantConfig, StartOrder} <= set(found)
    for shape in found:
        assert [field.name for field in fields(shape)] == list(shape.__struct_fields__), "hints resolve"
        assert shape.__struct_config__.frozen, shape
        with pytest.raises(TypeError):
            shape("by position")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner)
    ),
    max_leaves=10,
)


@patient
@given(st.sampled_from(sorted(TURN)), JSON, st.booleans())
def test_any_value_in_any_field_is_read_or_refused(name: str, value: object, as_text: bool) -> None:
    document = {**TURN, name: value}
    try:
        read = wire.read_json(json.dumps(document), TurnRef) if as_text else wire.read(document, TurnRef)
    except MalformedError as error:
        str(error).encode()
    else:
        assert isinstance(read, TurnRef)


def test_a_number_that_may_be_missing_may_be_written_with_a_point_too() -> None:
    fact = {"fact_id": "f", "kind": "k", "fields": {}, "source_ref": "s", "observed_at": 5.0}
    assert wire.read(fact, shapes.Fact).observed_at == 5
    assert str(refusal({**fact, "observed_at": 5.5}, shapes.Fact)).startswith("observed_at: ")
