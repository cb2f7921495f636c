"""The server as an OpenAI-compatible endpoint: embeddings, streams, marks, and life as a process."""

from __future__ import annotations

import base64
import json
import struct

import openai
import psutil
import pytest

from tests.demo_model.serving import response_format, start_server, stop_server, understanding_document

NAME = "turngate-demo-simulated"


def _chat(client, **changes):
    document = json.dumps(understanding_document("退的钱什么时候到账"), ensure_ascii=False)
    request = {
        "model": "any",
        "messages": [{"role": "user", "content": document}],
        "response_format": response_format("understanding"),
        **changes,
    }
    return client.chat.completions.create(**request)


def test_chat_completions_are_marked_simulated(client: openai.OpenAI):
    completion = _chat(client)
    assert completion.model == NAME
    assert completion.usage.model_dump()["simulated"] is True
    assert (
        completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    )
    assert completion.usage.prompt_tokens > 500, "the catalogue is in the prompt"
    assert completion.choices[0].finish_reason == "stop"


def test_embeddings_are_marked_simulated(client: openai.OpenAI):
    answer = client.embeddings.create(model="any", input="退货")
    assert answer.model == NAME
    assert answer.usage.model_dump()["simulated"] is True


def test_the_model_list_and_health_name_the_simulated_model(client: openai.OpenAI):
    assert [model.id for model in client.models.list()] == [NAME]
    health = client.get("/../health", cast_to=dict)
    assert health["status"] == "ok"
    assert health["simulated"] is True


def test_a_batch_of_embeddings_keeps_its_order_and_has_unit_length(client: openai.OpenAI):
    texts = ["退款多久到账", "How long does a refund take?", "红烧肉怎么做"]
    vectors = [item.embedding for item in client.embeddings.create(model="any", input=texts).data]
    assert [len(vector) for vector in vectors] == [512, 512, 512]
    assert [sum(x * x for x in vector) for vector in vectors] == pytest.approx([1, 1, 1], abs=1e-3)
    zh, en, cooking = vectors
    across = sum(a * b for a, b in zip(zh, en, strict=True))
    apart = sum(a * b for a, b in zip(zh, cooking, strict=True))
    assert across > apart + 0.2, "the same question in another language is nearer than another question"


def test_base64_and_float_carry_the_same_vector(client: openai.OpenAI):
    floats = client.embeddings.create(model="any", input=["运费"], encoding_format="float").data[0].embedding
    encoded = (
        client.embeddings.create(model="any", input=["运费"], encoding_format="base64").data[0].embedding
    )
    assert isinstance(encoded, str)
    assert struct.unpack("<512f", base64.b64decode(encoded)) == tuple(floats)


def test_the_same_request_gets_the_same_answer(client: openai.OpenAI):
    first, second = (_chat(client) for _ in range(2))
    assert first.choices == second.choices
    assert first.id == second.id
    assert first.usage == second.usage


def test_a_stream_carries_the_same_answer_and_usage(client: openai.OpenAI):
    whole = _chat(client)
    chunks = list(_chat(client, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.model_dump()["simulated"] is True
    assert {chunk.model for chunk in chunks} == {NAME}


def test_max_tokens_cuts_the_answer_and_says_so(client: openai.OpenAI):
    whole = _chat(client).choices[0].message.content
    cut = _chat(client, max_tokens=20)
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage.completion_tokens == 20
    assert whole.startswith(cut.choices[0].message.content)
    assert len(cut.choices[0].message.content) < len(whole)


def test_it_starts_light_and_a_known_catalogue_costs_little(
    client: openai.OpenAI, server_process: psutil.Process
):
    _chat(client)
    before = server_process.cpu_times()
    for _ in range(10):
        _chat(client)
    after = server_process.cpu_times()
    each = (after.user + after.system - before.user - before.system) / 10
    assert each < 0.06, f"{each * 1000:.0f} ms CPU for each call"
    assert server_process.memory_info().rss < 400 * 1024 * 1024


def test_another_process_answers_the_same_and_ends_on_sigterm_without_a_word(client: openai.OpenAI):
    other = start_server()
    used = psutil.Process(other.process.pid).cpu_times()
    texts = ["退款多久到账", "红烧肉怎么做"]
    try:
        assert other.base_url.startswith("http://127.0.0.1:")
        with openai.OpenAI(base_url=other.base_url, api_key="none-needed", max_retries=0) as fresh:
            assert _chat(fresh).choices == _chat(client).choices
            ours, theirs = (c.embeddings.create(model="any", input=texts).data for c in (client, fresh))
            assert ours == theirs
    finally:
        last_words = stop_server(other)
    assert last_words == ""
    assert used.user + used.system < 5, "seconds of CPU until it listens"
