"""What an endpoint and the network may do to one POST of JSON, and what comes of it."""

from __future__ import annotations

import gzip

import pytest

from tests.contract.scripted_http import Reply, ScriptedServer
from turngate.adapters.model_http import JsonEndpoint, StatusError
from turngate.errors import BrokenInvariantError, ModelUnavailableError

KEY = "sk-canary-4711"
MOST = 1000
ANSWER = b'{"answer": 42}'


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def endpoint(server) -> JsonEndpoint:
    return endpoint_at(server.url)


def endpoint_at(url, api_key=KEY) -> JsonEndpoint:
    return JsonEndpoint(url, "chat", api_key=api_key, most=MOST)


def refusal(endpoint, timeout_s=5.0) -> ModelUnavailableError:
    with pytest.raises(ModelUnavailableError) as caught:
        endpoint.post({}, timeout_s=timeout_s)
    return caught.value


# ── what is sent ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("below", "path"),
    [
        ("", "/chat"),
        ("/", "/chat"),
        ("/v1", "/v1/chat"),
        ("/v1/", "/v1/chat"),
        ("/deployments/d/?api-version=2026-01-01", "/deployments/d/chat?api-version=2026-01-01"),
        ("/v1#part", "/v1/chat"),
    ],
)
def test_the_path_is_put_under_the_base_url_and_its_query_stays(server, below, path):
    server.replies.append(Reply(ANSWER))
    assert endpoint_at(server.url + below).post({}, timeout_s=5) == ANSWER
    assert (server.requests[0].method, server.requests[0].path) == ("POST", path)


def test_an_ipv6_address_is_a_host(server, monkeypatch):
    """An IPv4-mapped one, so that the server stays on 127.0.0.1."""
    monkeypatch.setenv("NO_PROXY", "*")
    server.replies.append(Reply(ANSWER))
    endpoint_at(f"http://[::ffff:127.0.0.1]:{server.port}").post({}, timeout_s=5)
    assert server.requests[0].headers["host"] == f"[::ffff:127.0.0.1]:{server.port}"


@pytest.mark.parametrize(
    ("api_key", "header"), [(KEY, f"Bearer {KEY}"), (f" {KEY}\n", f"Bearer {KEY}"), ("", None), ("\n", None)]
)
def test_a_key_is_sent_when_there_is_one_without_the_blanks_around_it(server, api_key, header):
    server.replies.append(Reply(ANSWER))
    endpoint_at(server.url, api_key).post({}, timeout_s=5)
    assert server.requests[0].headers.get("authorization") == header


@pytest.mark.parametrize("api_key", ["sk-canary\nx: y", "sk-canary-é", "sk-canary\0"])
def test_a_key_that_no_header_carries_is_refused_and_not_shown(api_key):
    with pytest.raises(BrokenInvariantError) as caught:
        endpoint_at("http://127.0.0.1", api_key)
    assert "canary" not in str(caught.value)


def test_text_is_sent_as_it_is_and_half_a_surrogate_pair_as_a_question_mark(server, endpoint):
    server.replies.append(Reply(ANSWER))
    endpoint.post({"text": "退货 \ud83d \U0001f600"}, timeout_s=5)
    assert server.requests[0].body == '{"text": "退货 ? \U0001f600"}'.encode()


# ── what is answered ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pieces", [0, 3])
@pytest.mark.parametrize("packed", [False, True])
def test_chunked_and_packed_answers_are_read(server, endpoint, pieces, packed):
    body, headers = (gzip.compress(ANSWER), {"content-encoding": "gzip"}) if packed else (ANSWER, {})
    server.replies.append(Reply(body, headers=headers, pieces=pieces))
    assert endpoint.post({}, timeout_s=5) == ANSWER


@pytest.mark.parametrize("pieces", [0, 100])
def test_an_answer_of_the_largest_size_is_read_and_a_larger_one_is_not(server, endpoint, pieces):
    server.replies.extend([Reply(b" " * MOST, pieces=pieces), Reply(b" " * (MOST + 1), pieces=pieces)])
    assert len(endpoint.post({}, timeout_s=5)) == MOST
    assert refusal(endpoint).reason == "empty"


def test_the_size_counts_unpacked(server, endpoint):
    bomb = gzip.compress(b" " * (64 << 20))
    assert len(bomb) < 1 << 17
    server.replies.append(Reply(bomb, headers={"content-encoding": "gzip"}))
    assert refusal(endpoint).reason == "empty"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"not packed", headers={"content-encoding": "gzip"}),
        Reply(ANSWER, headers={"content-length": "99"}, hang_up=True),
        Reply(cut=True),
    ],
    ids=["badly packed", "shorter than announced", "no answer"],
)
def test_a_broken_answer_is_a_connection_error_and_is_asked_once(server, endpoint, reply):
    server.replies.append(reply)
    assert refusal(endpoint).reason == "connection"
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server, endpoint, status):
    server.replies.extend([Reply(b"", status, {"location": f"{server.url}/elsewhere"}), Reply(ANSWER)])
    error = refusal(endpoint)
    assert isinstance(error, StatusError)
    assert (error.status, error.reason, str(error)) == (
        status,
        "server_error",
        f"server_error: HTTP {status}",
    )
    assert len(server.requests) == 1


def test_a_refusal_larger_than_an_answer_may_be_is_still_named_by_its_status(server, endpoint):
    server.replies.append(Reply(b" " * (MOST + 1), 429, {"retry-after": "1"}))
    assert refusal(endpoint).reason == "rate_limited"


# ── connections ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pieces", [0, 3])
def test_a_connection_is_used_again_after_a_whole_answer(server, endpoint, pieces):
    server.replies.extend([Reply(ANSWER, pieces=pieces)] * 3)
    assert [endpoint.post({}, timeout_s=5) for _ in range(3)] == [ANSWER] * 3
    assert server.connections == 1


@pytest.mark.parametrize("spoilt", [Reply(b" " * (1 << 18)), Reply(b"{}", 500), Reply(drip_s=0.02)])
def test_a_connection_is_not_used_again_after_anything_else(server, endpoint, spoilt):
    server.replies.extend([spoilt, Reply(ANSWER)])
    refusal(endpoint, timeout_s=0.3)
    assert endpoint.post({}, timeout_s=5) == ANSWER
    assert server.connections == 2


def test_a_connection_that_was_closed_meanwhile_is_replaced(server, endpoint):
    server.replies.extend([Reply(ANSWER, hang_up=True), Reply(ANSWER)])
    endpoint.post({}, timeout_s=5)
    assert server.hung_up.wait(5)
    assert endpoint.post({}, timeout_s=5) == ANSWER
    assert (len(server.requests), server.connections) == (2, 2)


def test_a_kept_connection_that_is_cut_before_it_answers_is_replaced_once(server, endpoint):
    """Its death may be unseen when the request is sent: after a freeze of the sandbox, or by a moment."""
    server.replies.extend([Reply(ANSWER), Reply(cut=True), Reply(ANSWER)])
    endpoint.post({}, timeout_s=5)
    assert endpoint.post({"n": 2}, timeout_s=5) == ANSWER
    assert [request.json() for request in server.requests] == [{}, {"n": 2}, {"n": 2}]
    assert server.connections == 2


def test_an_endpoint_that_cuts_new_connections_too_is_asked_twice_at_most(server, endpoint):
    server.replies.extend([Reply(ANSWER), Reply(cut=True), Reply(cut=True), Reply(ANSWER)])
    endpoint.post({}, timeout_s=5)
    assert refusal(endpoint).reason == "connection"
    assert len(server.requests) == 3


def test_a_kept_connection_that_stays_silent_is_a_timeout_and_asked_once(server, endpoint):
    server.replies.extend([Reply(ANSWER), Reply(never=True)])
    endpoint.post({}, timeout_s=5)
    assert refusal(endpoint, timeout_s=0.3).reason == "timeout"
    assert len(server.requests) == 2


def test_a_connection_that_was_idle_for_long_is_not_tried(server):
    endpoint = JsonEndpoint(server.url, "chat", api_key=KEY, most=MOST, max_idle_s=0)
    server.replies.extend([Reply(ANSWER)] * 2)
    endpoint.post({}, timeout_s=5)
    endpoint.post({}, timeout_s=5)
    assert server.connections == 2
