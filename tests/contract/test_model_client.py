"""Every ModelClient makes the same of what a model writes; the OpenAI one also of what an endpoint does."""

from __future__ import annotations

import json
import logging
import socket
import time
import traceback

import pytest

from tests.contract.scripted_http import Reply, ScriptedServer
from turngate.adapters.memory.model import ScriptedModelClient
from turngate.adapters.openai_chat import MAX_ANSWER_BYTES, OpenAIChatModel
from turngate.errors import BrokenInvariantError, ModelUnavailableError

KEY = "sk-canary-4711"
QUESTION = "退货需要几天?"
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def completion(content, usage=None, finish="stop") -> Reply:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Reply(json.dumps(body | ({"usage": usage} if usage else {})).encode())


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def model(server):
    return OpenAIChatModel(base_url=f"{server.url}/v1", api_key=KEY, model="m")


def ask(model, timeout_s=5.0):
    return model.complete_json(
        system="You route.", user=QUESTION, schema_name="reply", schema=SCHEMA, timeout_s=timeout_s
    )


def refusal(model, timeout_s=5.0) -> ModelUnavailableError:
    with pytest.raises(ModelUnavailableError) as caught:
        ask(model, timeout_s)
    return caught.value


@pytest.fixture(params=["openai", "memory"])
def says(request, server, model):
    """A function that makes the adapter's model write a text and returns the adapter."""

    def prepare(content: str):
        if request.param == "memory":
            return ScriptedModelClient([content])
        server.replies.append(completion(content))
        return model

    return prepare


@pytest.mark.covers("F-439")
@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"text": "可以"}', {"text": "可以"}),
        ('Sure:\n```json\n{"text": "yes"}\n```\nAnything else?', {"text": "yes"}),
        ('{"text": "yes", "score": 0.7', {"text": "yes"}),
        ('<think>{"text": "no"}? No.</think>{"text": "yes"}', {"text": "yes"}),
        ('{"nothing": ["of", "the", "schema"]}', {"nothing": ["of", "the", "schema"]}),
    ],
    ids=["plain", "fenced", "truncated", "thought aloud", "wrong schema passes through"],
)
def test_an_object_is_found_in_what_the_model_wrote(says, content, found):
    answer, usage = ask(says(content))
    assert answer == found
    assert usage.model_calls == 1
    assert not usage.simulated


@pytest.mark.covers("F-439")
@pytest.mark.parametrize("content", ["I would say yes.", "", "[1]", "null", '{"te'])
def test_an_answer_without_an_object_is_empty(says, content):
    assert refusal(says(content)).reason == "empty"


@pytest.mark.parametrize(
    "reply",
    [
        completion(None),
        completion([{"type": "text", "text": "{}"}]),
        completion(None, finish="length"),
        Reply(b""),
        Reply(b"null"),
        Reply(b'{"choices": []}'),
        Reply(b'{"choices": null}'),
        Reply(b'{"choices": ["x"]}'),
        Reply(b"[" * 100_000),
        Reply(b"<html>not here</html>", headers={"content-type": "text/html"}),
    ],
)
def test_a_null_or_foreign_completion_is_empty(server, model, reply):
    server.replies.append(reply)
    assert refusal(model).reason == "empty"


@pytest.mark.parametrize(
    ("status", "headers", "reason", "wait"),
    [
        (429, {"retry-after": "7"}, "rate_limited", 7_000),
        (429, {"retry-after-ms": "250", "retry-after": "1"}, "rate_limited", 250),
        (429, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, "rate_limited", None),
        (429, {"retry-after": "-1"}, "rate_limited", None),
        (429, {"retry-after": "1e9"}, "rate_limited", 3_600_000),
        (500, {}, "server_error", None),
        (503, {"retry-after": "2"}, "server_error", 2_000),
        (408, {}, "timeout", None),
        (401, {}, "rejected", None),
    ],
)
def test_a_refusing_endpoint_is_named_by_reason_and_asked_once(server, model, status, headers, reason, wait):
    server.replies.append(Reply(b'{"error": {"message": "no"}}', status, headers))
    error = refusal(model)
    assert (error.reason, error.retry_after_ms) == (reason, wait)
    assert len(server.requests) == 1


def test_a_model_that_is_too_slow_is_a_timeout(server, model):
    server.replies.append(Reply(never=True))
    assert refusal(model, timeout_s=0.3).reason == "timeout"
    assert len(server.requests) == 1


def test_an_endpoint_that_is_not_there_is_a_connection_error():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        model = OpenAIChatModel(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, model="m")
        assert refusal(model).reason == "connection"


def test_no_time_left_asks_nothing(server, model):
    assert refusal(model, timeout_s=0).reason == "timeout"
    assert server.requests == []


def test_usage_is_counted_and_simulation_is_told(server, model):
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    server.replies.append(completion("{}", usage | {"simulated": True}))
    server.replies.append(completion("{}", usage | {"prompt_tokens": "many", "simulated": "no"}))
    _, told = ask(model)
    assert (told.input_tokens, told.output_tokens, told.simulated) == (12, 3, True)
    _, odd = ask(model)
    assert (odd.input_tokens, odd.output_tokens, odd.simulated) == (0, 3, False)


def test_the_request_asks_for_the_schema_strictly(server, model):
    server.replies.append(completion("{}"))
    ask(model)
    sent = server.requests[0].json()
    assert server.requests[0].path == "/v1/chat/completions"
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert sent["messages"][1]["content"] == QUESTION
    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
    }


@pytest.mark.covers("F-425")
def test_an_endpoint_that_knows_no_schema_gets_it_in_words_from_then_on(server, model):
    unknown = Reply(b'{"error": {"message": "response_format.type json_schema is unavailable"}}', 400)
    server.replies.extend([unknown, completion('{"text": "a"}'), completion('{"text": "b"}')])
    assert [ask(model)[0]["text"], ask(model)[0]["text"]] == ["a", "b"]
    formats = [request.json()["response_format"]["type"] for request in server.requests]
    assert formats == ["json_schema", "json_object", "json_object"]
    assert json.dumps(SCHEMA) in server.requests[1].json()["messages"][0]["content"]


def test_a_request_that_is_wrong_in_both_formats_changes_nothing_for_the_next(server, model):
    server.replies.extend([Reply(b"{}", 400), Reply(b"{}", 400), completion("{}")])
    assert refusal(model).reason == "rejected"
    ask(model)
    assert server.requests[-1].json()["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_what_the_endpoint_says_and_the_key_stay_out_of_errors_and_logs(server, model, status, caplog):
    echo = json.dumps({"error": {"message": f"Incorrect API key {KEY}; you sent {QUESTION}"}}).encode()
    server.replies.extend([Reply(echo, status)] * 2)
    with caplog.at_level(logging.INFO):
        error = refusal(model)
    written = "".join(traceback.format_exception(error)) + caplog.text
    assert KEY not in written
    assert QUESTION not in written
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_script_notices_calls_too_many_and_too_few():
    with ScriptedModelClient([{"text": "a"}, ModelUnavailableError("timeout")]) as script:
        assert ask(script)[0] == {"text": "a"}
        assert refusal(script).reason == "timeout"
        with pytest.raises(BrokenInvariantError, match="unexpected model call 3"):
            ask(script)
    assert [call.user for call in script.calls] == [QUESTION] * 3
    with pytest.raises(BrokenInvariantError, match="1 scripted answers"), ScriptedModelClient([{}]):
        pass


def test_an_endpoint_that_only_keeps_the_connection_open_is_too_slow(server, model):
    """Endpoints under load send blank lines for minutes; each wait for bytes is short, the whole is not."""
    server.replies.append(Reply(drip_s=0.05))
    began = time.monotonic()
    with pytest.raises(ModelUnavailableError) as caught:
        model.complete_json(system="s", user="u", schema_name="n", schema=SCHEMA, timeout_s=0.5)
    assert caught.value.reason == "timeout"
    assert time.monotonic() - began < 2


def test_an_answer_without_end_is_cut_off(server, model):
    server.replies.append(Reply(b" " * (MAX_ANSWER_BYTES + 1)))
    assert refusal(model).reason == "empty"


@pytest.mark.parametrize(
    "address", ["api.example/v1", "127.0.0.1:9/v1", "ftp://api.example/v1", "http://", ""]
)
def test_an_address_of_another_kind_is_refused_before_a_key_is_sent_to_it(address):
    with pytest.raises(BrokenInvariantError, match="begins with https"):
        OpenAIChatModel(base_url=address, api_key="k", model="m")
