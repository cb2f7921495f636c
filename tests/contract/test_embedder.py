"""Every Embedder gives one unit vector a text; the OpenAI one also knows how an endpoint can fail."""

from __future__ import annotations

import base64
import json
import math
import socket
import struct
import time

import pytest

from tests.contract.scripted_http import Reply, ScriptedServer
from turngate.adapters.memory.embedder import HashingEmbedder
from turngate.adapters.openai_embeddings import BATCH, OpenAIEmbedder
from turngate.errors import ModelUnavailableError


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


def embedder_of(server, timeout_s=5.0) -> OpenAIEmbedder:
    return OpenAIEmbedder(base_url=f"{server.url}/v1/", api_key="sk-canary", model="m", timeout_s=timeout_s)


def answer(vectors, form="base64") -> Reply:
    """The endpoint's answer, last vector first: `index` is what counts."""
    rows = [
        {
            "index": index,
            "embedding": base64.b64encode(struct.pack(f"<{len(v)}f", *v)).decode() if form == "base64" else v,
        }
        for index, v in enumerate(vectors)
    ]
    return Reply(json.dumps({"data": rows[::-1], "model": "m"}).encode())


def spelled(text: str) -> list[float]:
    return [3.0 * part for part in HashingEmbedder(16).embed([text])[0]]


@pytest.fixture(params=["openai base64", "openai floats", "memory"])
def embed(request, server):
    if request.param == "memory":
        return HashingEmbedder(16).embed

    def ask(texts, **bound):
        server.replies.extend(
            answer([spelled(text) for text in texts[start : start + BATCH]], request.param.split()[1])
            for start in range(0, len(texts), BATCH)
        )
        return embedder_of(server).embed(texts, **bound)

    return ask


def test_one_unit_vector_a_text_in_order(embed):
    texts = [f"文字 {n}" for n in range(BATCH + 6)]
    vectors = embed(texts)
    assert len(vectors) == len(texts)
    assert {len(vector) for vector in vectors} == {16}
    assert all(math.hypot(*vector) == pytest.approx(1) for vector in vectors)
    for text, vector in zip(texts, vectors, strict=True):
        assert vector == pytest.approx([part / 3 for part in spelled(text)], abs=1e-6)


def test_no_text_is_no_vector(embed):
    assert embed([]) == []


def test_every_embedder_may_be_given_a_bound(embed):
    assert len(embed(["text"], timeout_s=5.0)) == 1


def test_odd_texts_have_vectors_too(embed):
    vectors = embed(["", " ", "\U0001f600", "x" * 9000])
    assert all(math.hypot(*vector) == pytest.approx(1) for vector in vectors)


def test_batches_are_bounded_and_carry_the_key(server):
    server.replies.extend([answer([[1.0, 0.0]] * BATCH), answer([[1.0, 0.0]])])
    embedder_of(server).embed(["x"] * (BATCH + 1))
    assert [len(request.json()["input"]) for request in server.requests] == [BATCH, 1]
    assert {request.path for request in server.requests} == {"/v1/embeddings"}
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer sk-canary"}


def test_a_text_the_endpoint_would_refuse_does_not_cost_its_batch(server):
    server.replies.append(answer([[1.0, 0.0]] * 3))
    embedder_of(server).embed(["", "half \ud83d", "whole"])
    assert server.requests[0].json()["input"] == [".", "half ?", "whole"]


@pytest.mark.parametrize(
    ("reply", "reason", "wait"),
    [
        (Reply(b"sk-canary", 429, {"retry-after": "3"}), "rate_limited", 3_000),
        (Reply(b"sk-canary", 500), "server_error", None),
        (Reply(b"", 302, {"location": "http://127.0.0.1:1/"}), "server_error", None),
        (Reply(b""), "empty", None),
        (Reply(b"null"), "empty", None),
        (Reply(b'{"data": [{"index": 0, "embedding": "%%%"}]}'), "empty", None),
        (Reply(b'{"data": [{"index": 0, "embedding": ["a"]}]}'), "empty", None),
        (Reply(b'{"data": [{"index": 0, "embedding": [1e999]}]}'), "empty", None),
        (Reply(b'{"data": [{"index": 1, "embedding": [1.0]}]}'), "empty", None),
        (answer([[0.0, 0.0]]), "empty", None),
        (answer([[float("nan"), 0.0]]), "empty", None),
        (answer([[]]), "empty", None),
        (answer([[1.0, 0.0], [1.0, 0.0]]), "empty", None),
    ],
)
def test_a_failing_endpoint_is_named_by_reason_and_asked_once(server, reply, reason, wait):
    server.replies.append(reply)
    with pytest.raises(ModelUnavailableError) as caught:
        embedder_of(server).embed(["x"])
    assert (caught.value.reason, caught.value.retry_after_ms) == (reason, wait)
    assert "sk-canary" not in str(caught.value)
    assert len(server.requests) == 1


def test_vectors_of_different_lengths_are_refused(server):
    server.replies.append(answer([[1.0, 0.0], [1.0]]))
    with pytest.raises(ModelUnavailableError, match="different lengths"):
        embedder_of(server).embed(["x", "y"])


def test_too_slow_and_not_there(server):
    server.replies.append(Reply(never=True))
    with pytest.raises(ModelUnavailableError) as slow:
        embedder_of(server, timeout_s=0.3).embed(["x"])
    assert slow.value.reason == "timeout"
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = OpenAIEmbedder(base_url=f"http://127.0.0.1:{unused.getsockname()[1]}", api_key="", model="m")
        with pytest.raises(ModelUnavailableError) as absent:
            nobody.embed(["x"])
    assert absent.value.reason == "connection"


def test_all_batches_together_are_bounded(server):
    server.replies.extend([answer([[1.0, 0.0]] * BATCH), Reply(never=True)])
    began = time.monotonic()
    with pytest.raises(ModelUnavailableError) as caught:
        embedder_of(server, timeout_s=30).embed(["x"] * (BATCH + 1), timeout_s=0.5)
    assert caught.value.reason == "timeout"
    assert time.monotonic() - began < 5
    with pytest.raises(ModelUnavailableError) as late:
        embedder_of(server).embed(["x"], timeout_s=0)
    assert (late.value.reason, len(server.requests)) == ("timeout", 2)


def test_the_hashing_embedder_sees_shared_spelling():
    near, text, far = HashingEmbedder().embed(["退货需要几天", "退货要几天", "store opening hours"])

    def cosine(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert cosine(text, near) > 0.5 > cosine(text, far)


def test_an_endpoint_that_only_keeps_the_connection_open_is_too_slow(server):
    embedder = OpenAIEmbedder(base_url=f"{server.url}/v1", api_key="", model="m", timeout_s=0.5)
    server.replies.append(Reply(drip_s=0.05))
    began = time.monotonic()
    with pytest.raises(ModelUnavailableError) as caught:
        embedder.embed(["a"])
    assert caught.value.reason == "timeout"
    assert time.monotonic() - began < 2
