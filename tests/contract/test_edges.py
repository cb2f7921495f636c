"""Queue, sockets, starter, clock and ids: the adapters that talk to AWS and the ones in memory behave alike.

The AWS ones speak to a scripted server in AWS's own wire formats, so that real clients, signing and error parsing run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.scripted_http import Reply, ScriptedServer
from turngate.adapters import aws
from turngate.adapters.apigateway import ApiGatewayPusher
from turngate.adapters.memory.edges import FixedClock, MemoryPusher, MemoryQueue, MemoryStarter, SeededIds
from turngate.adapters.sqs import SqsQueue
from turngate.adapters.stepfunctions import StepFunctionsStarter
from turngate.adapters.system import SystemClock, SystemIds
from turngate.errors import BrokenInvariantError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable

MACHINE = "arn:aws:states:eu-central-1:000000000000:stateMachine:turn"


@pytest.fixture
def server(monkeypatch):
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():
        monkeypatch.setenv(name, value)
    with ScriptedServer() as running:
        yield running


def aws_error(code: str, status: int) -> Reply:
    return Reply(json.dumps({"__type": code, "message": "no"}).encode(), status, {"x-amzn-errortype": code})


@dataclass
class Rig:
    """A port with the levers a test needs, whatever is behind it."""

    port: Any
    succeed: Callable[[], object]
    fail: Callable[[], object]
    gone: Callable[[str], object]
    seen: Callable[[], list[Any]]


def nothing(*_: object) -> None:
    """Memory adapters succeed unless told otherwise."""


@pytest.fixture(params=["sqs", "memory"])
def queue(request, server) -> Rig:
    if request.param == "memory":
        memory = MemoryQueue()
        return Rig(memory, nothing, lambda: setattr(memory, "down", True), nothing, lambda: memory.sent)
    url = f"{server.url}/000000000000/events"
    port = SqsQueue(aws.client("sqs", endpoint=server.url), url)

    def seen() -> list[Any]:
        bodies = [request.json() for request in server.requests]
        assert all(body["QueueUrl"] == url for body in bodies)
        return [json.loads(body["MessageBody"]) for body in bodies]

    return Rig(
        port,
        lambda: server.replies.append(Reply(b'{"MessageId": "m"}')),
        lambda: server.replies.append(aws_error("ServiceUnavailable", 503)),
        nothing,
        seen,
    )


def test_a_queue_sends_json_unchanged(queue):
    body = {"conversation": "c1", "text": "退货\U0001f600", "n": [1, 2.5, None]}
    queue.succeed()
    queue.port.send(body)
    assert queue.seen() == [body]


def test_a_queue_that_is_down_is_transient(queue):
    queue.fail()
    with pytest.raises(TransientError):
        queue.port.send({})


@pytest.fixture(params=["stepfunctions", "memory"])
def starter(request, server) -> Rig:
    if request.param == "memory":
        memory = MemoryStarter()
        return Rig(memory, nothing, lambda: setattr(memory, "down", True), nothing, lambda: memory.started)
    port = StepFunctionsStarter(aws.client("stepfunctions", endpoint=server.url), MACHINE)

    def seen() -> list[Any]:
        bodies = [request.json() for request in server.requests]
        assert all(body["stateMachineArn"] == MACHINE for body in bodies)
        return [(body["name"], json.loads(body["input"])) for body in bodies]

    started = Reply(b'{"executionArn": "e", "startDate": 1}')
    return Rig(
        port,
        lambda: server.replies.append(started),
        lambda: server.replies.append(aws_error("ServiceUnavailable", 503)),
        nothing,
        seen,
    )


def test_every_start_is_passed_on_a_repeated_name_too(starter):
    starter.succeed()
    starter.succeed()
    starter.port.start(name="r1", payload={"text": "退货"})
    starter.port.start(name="r1", payload={"text": "退货"})
    assert starter.seen() == [("r1", {"text": "退货"})] * 2


def test_a_machine_that_cannot_be_started_is_transient(starter):
    starter.fail()
    with pytest.raises(TransientError):
        starter.port.start(name="r1", payload={})


@pytest.mark.parametrize("name", ["", "x" * 81])
def test_a_name_the_service_would_refuse_is_our_own_fault(starter, name):
    with pytest.raises(BrokenInvariantError):
        starter.port.start(name=name, payload={})
    assert starter.seen() == []


def test_an_execution_that_exists_already_counts_as_started(server):
    starter = StepFunctionsStarter(aws.client("stepfunctions", endpoint=server.url), MACHINE)
    server.replies.append(aws_error("ExecutionAlreadyExists", 400))
    starter.start(name="r1", payload={})
    assert len(server.requests) == 1


@pytest.fixture(params=["apigateway", "apigateway without error type", "memory"])
def pusher(request, server) -> Rig:
    if request.param == "memory":
        memory = MemoryPusher()
        return Rig(
            memory,
            nothing,
            lambda: memory.failing.add("c1="),
            memory.gone.add,
            lambda: memory.frames["c1="],
        )
    # the emulator answers 410 without the header that names the exception
    gone = aws_error("GoneException", 410) if request.param == "apigateway" else Reply(b"{}", 410)
    return Rig(
        ApiGatewayPusher(aws.client("apigatewaymanagementapi", endpoint=f"{server.url}/prod")),
        lambda: server.replies.append(Reply()),
        lambda: server.replies.append(aws_error("InternalServerError", 500)),
        lambda _: server.replies.append(gone),
        lambda: [
            r.body for r in server.requests if (r.method, r.path) == ("POST", "/prod/@connections/c1%3D")
        ],
    )


def test_a_frame_reaches_its_socket_byte_by_byte(pusher):
    pusher.succeed()
    assert pusher.port.post("c1=", '{"text":"退货"}'.encode()) == "delivered"
    assert pusher.seen() == ['{"text":"退货"}'.encode()]


def test_a_closed_socket_is_told_apart_from_a_failure(pusher):
    pusher.gone("c1=")
    assert pusher.port.post("c1=", b"{}") == "gone"
    pusher.fail()
    with pytest.raises(TransientError):
        pusher.port.post("c1=", b"{}")


@pytest.mark.parametrize(
    ("code", "status"),
    [("LimitExceededException", 429), ("PayloadTooLargeException", 413), ("ForbiddenException", 403)],
)
def test_a_client_that_takes_nothing_is_its_own_trouble(server, code, status):
    pusher = ApiGatewayPusher(aws.client("apigatewaymanagementapi", endpoint=f"{server.url}/prod"))
    server.replies.append(aws_error(code, status))
    assert pusher.post("c1=", b"{}") == "refused"


def test_an_aws_client_tries_once_and_gives_up_soon(server):
    queue = SqsQueue(aws.client("sqs", endpoint=server.url, read_timeout_s=0.3), f"{server.url}/0/q")
    server.replies.append(Reply(never=True))
    with pytest.raises(TransientError, match="sqs:SendMessage: ReadTimeoutError"):
        queue.send({})
    server.replies.append(aws_error("Throttling", 400))
    with pytest.raises(TransientError, match="Throttling"):
        queue.send({})
    assert len(server.requests) == 2


def test_clocks_give_epoch_milliseconds_and_wait():
    fixed = FixedClock(1_700_000_000_000)
    fixed.sleep_ms(1.5)
    fixed.sleep_ms(1.5)
    fixed.advance(997)
    assert fixed.now_ms() == 1_700_000_001_000
    system = SystemClock()
    before = system.now_ms()
    system.sleep_ms(2)
    assert 1_700_000_000_000 < before < system.now_ms()


@pytest.mark.parametrize("ids", [SystemIds(), SeededIds(7)])
def test_tokens_are_256_bits_and_fractions_uniform(ids):
    tokens = {ids.token() for _ in range(200)}
    assert len(tokens) == 200
    assert all(len(token) == 43 and token.replace("-", "a").replace("_", "a").isalnum() for token in tokens)
    fractions = [ids.fraction() for _ in range(2000)]
    assert all(0 <= fraction < 1 for fraction in fractions)
    assert sum(fractions) / len(fractions) == pytest.approx(0.5, abs=0.05)


def test_seeded_ids_repeat():
    first, second, other = SeededIds(1), SeededIds(1), SeededIds(2)
    assert [first.token(), first.fraction()] == [second.token(), second.fraction()]
    assert first.token() != other.token()
