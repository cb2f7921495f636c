"""What a hosted endpoint would refuse is refused here too, with an error the product can read."""

from __future__ import annotations

import copy
import json

import openai
import pytest

from tests.demo_model.catalogue import EVIDENCE, INTENTS
from tests.demo_model.serving import response_format, understanding_document

USER = {"role": "user", "content": json.dumps(understanding_document("退货"), ensure_ascii=False)}
CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
ASSISTANT = {"role": "assistant", "content": "Looking it up.", "tool_calls": [CALL]}


def _schema(**changes):
    form = copy.deepcopy(response_format("understanding"))
    form["json_schema"] |= changes
    return form


def _loose_schema():
    form = copy.deepcopy(response_format("understanding"))
    inner = form["json_schema"]["schema"]["properties"]["sub_questions"]["items"]
    del inner["additionalProperties"]
    return form


def _optional_schema():
    form = copy.deepcopy(response_format("understanding"))
    form["json_schema"]["schema"]["required"] = ["rewritten"]
    return form


BROKEN_REQUESTS = {
    "no messages": ({"messages": []}, "invalid_length", "messages"),
    "unknown role": ({"messages": [{"role": "bot", "content": "x"}]}, "invalid_value", "messages[0].role"),
    "null content": (
        {"messages": [{"role": "user", "content": None}]},
        "invalid_type",
        "messages[0].content",
    ),
    "empty content": (
        {"messages": [{"role": "user", "content": " "}]},
        "empty_string",
        "messages[0].content",
    ),
    "image content": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "invalid_value",
        "messages[0].content[0].type",
    ),
    "assistant last": (
        {"messages": [USER, {"role": "assistant", "content": "x"}]},
        "invalid_value",
        "messages",
    ),
    "orphan tool message": (
        {"messages": [{"role": "tool", "tool_call_id": "c9", "content": "x"}, USER]},
        "orphan_tool_message",
        "messages[0]",
    ),
    "tool call without answer": (
        {"messages": [USER, ASSISTANT, USER]},
        "unanswered_tool_call",
        "messages[2]",
    ),
    "empty tool_calls": (
        {"messages": [USER, {**ASSISTANT, "tool_calls": []}, USER]},
        "invalid_length",
        "messages[1].tool_calls",
    ),
    "tool name of 65 characters": (
        {"tools": [{"type": "function", "function": {"name": "a" * 65, "parameters": {}}}]},
        "invalid_value",
        "tools[0].function.name",
    ),
    "message too long": (
        {"messages": [{"role": "user", "content": "字" * 100_000}]},
        "context_length_exceeded",
        "messages[0].content",
    ),
    "unknown argument": ({"extra_body": {"temprature": 1}}, "unknown_argument", "temprature"),
    "temperature out of range": ({"temperature": 3}, "invalid_value", "temperature"),
    "two answers": ({"n": 2}, "invalid_value", "n"),
    "no tokens allowed": ({"max_tokens": 0}, "invalid_value", "max_tokens"),
    "no response format": ({"response_format": None}, "missing", "response_format"),
    "plain JSON mode": (
        {"response_format": {"type": "json_object"}},
        "unsupported_response_format",
        "response_format.type",
    ),
    "schema missing": (
        {"response_format": _schema(schema=None)},
        "invalid_type",
        "response_format.json_schema.schema",
    ),
    "schema name with a space": (
        {"response_format": _schema(name="under standing")},
        "invalid_value",
        "response_format.json_schema.name",
    ),
    "unknown schema name": (
        {"response_format": _schema(name="plan")},
        "unknown_schema",
        "response_format.json_schema.name",
    ),
    "strict schema that allows more": (
        {"response_format": _loose_schema()},
        "invalid_schema",
        "response_format.json_schema.schema.properties.sub_questions.items",
    ),
    "strict schema with an optional property": (
        {"response_format": _optional_schema()},
        "invalid_schema",
        "response_format.json_schema.schema",
    ),
    "prose instead of a document": (
        {"messages": [{"role": "user", "content": "hello"}]},
        "invalid_json",
        "the last message's content",
    ),
}


def _send(client: openai.OpenAI, changes):
    request = {"model": "any", "messages": [USER], "response_format": response_format("understanding")}
    return client.chat.completions.create(**(request | changes))


@pytest.mark.parametrize(("changes", "code", "param"), BROKEN_REQUESTS.values(), ids=BROKEN_REQUESTS.keys())
def test_a_broken_request_is_refused_with_its_place(client: openai.OpenAI, changes, code, param):
    with pytest.raises(openai.BadRequestError) as refused:
        _send(client, changes)
    assert refused.value.code == code
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"
    assert refused.value.body["message"]


def test_a_whole_tool_exchange_before_the_task_is_accepted(client: openai.OpenAI):
    answered = {"role": "tool", "tool_call_id": "c1", "content": "found"}
    assert _send(client, {"messages": [USER, ASSISTANT, answered, USER]}).choices


def test_content_in_text_parts_is_accepted(client: openai.OpenAI):
    half = len(USER["content"]) // 2
    parts = [{"type": "text", "text": text} for text in (USER["content"][:half], USER["content"][half:])]
    whole = _send(client, {})
    assert _send(client, {"messages": [{"role": "user", "content": parts}]}).choices == whole.choices


BROKEN_DOCUMENTS = {
    "other task": (understanding_document("x", task="reply"), "task"),
    "other language": (understanding_document("x", language="fr"), "language"),
    "no input": (understanding_document(), "input"),
    "blank message": (understanding_document("\u0007 "), "input[0].text"),
    "sequence number as text": (
        understanding_document(input=[{"message_seq": "1", "text": "x"}]),
        "input[0].message_seq",
    ),
    "unknown speaker": (
        understanding_document("x", history=[{"role": "system", "text": "x"}]),
        "history[0].role",
    ),
    "example that is no text": (
        understanding_document("x", intents=[{**INTENTS[0], "examples": [1]}]),
        "intents[0].examples[0]",
    ),
    "the same intent twice": (understanding_document("x", intents=[INTENTS[0], INTENTS[0]]), "intents"),
    "half a surrogate pair": (understanding_document("退货\ud83d"), "input[0].text"),
}


@pytest.mark.parametrize(("document", "param"), BROKEN_DOCUMENTS.values(), ids=BROKEN_DOCUMENTS.keys())
def test_a_broken_understanding_document_is_refused_with_its_place(client, document, param):
    with pytest.raises(openai.BadRequestError) as refused:
        _send(client, {"messages": [{"role": "user", "content": json.dumps(document)}]})
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"part_id": "p1", "question": "x"}, "parts[0].evidence"),
        (
            {"part_id": "p1", "question": "x", "evidence": [{**EVIDENCE[0], "text": ""}]},
            "parts[0].evidence[0].text",
        ),
        ({"part_id": "p1", "question": "x", "evidence": [EVIDENCE[0], EVIDENCE[0]]}, "parts[0].evidence"),
        ({"part_id": None, "question": "x", "evidence": []}, "parts[0].part_id"),
    ],
)
def test_a_broken_reply_document_is_refused_with_its_place(client, part, param):
    content = json.dumps({"task": "reply", "language": "en", "parts": [part]})
    changes = {
        "messages": [{"role": "user", "content": content}],
        "response_format": response_format("reply"),
    }
    with pytest.raises(openai.BadRequestError) as refused:
        _send(client, changes)
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"input": ""}, "empty_string"),
        ({"input": []}, "invalid_length"),
        ({"input": [[1, 2, 3]]}, "invalid_type"),
        ({"input": ["x"] * 2049}, "invalid_length"),
        ({"input": "字" * 8193}, "context_length_exceeded"),
        ({"dimensions": 256}, "invalid_value"),
    ],
)
def test_a_broken_embeddings_request_is_refused(client: openai.OpenAI, changes, code):
    with pytest.raises(openai.BadRequestError) as refused:
        client.embeddings.create(**({"model": "any", "input": "x"} | changes))
    assert refused.value.code == code


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff\xfe", b'{"a": NaN}', b"[" * 200_000])
def test_a_body_that_is_no_json_object_is_refused(client: openai.OpenAI, raw):
    with pytest.raises(openai.BadRequestError) as refused:
        client.post("/embeddings", cast_to=dict, content=raw)
    assert refused.value.code in {"invalid_json", "invalid_type"}


def test_a_body_over_the_limit_is_refused_as_too_large(client: openai.OpenAI):
    with pytest.raises(openai.APIStatusError) as refused:
        client.embeddings.create(model="any", input=["字" * 3_000_000])
    assert refused.value.status_code == 413


def test_unknown_routes_and_methods_get_error_documents(client: openai.OpenAI):
    with pytest.raises(openai.NotFoundError) as unknown:
        client.files.list()
    assert unknown.value.code == "unknown_url"
    with pytest.raises(openai.APIStatusError) as wrong_method:
        client.get("/embeddings", cast_to=dict)
    assert wrong_method.value.status_code == 405
