"""One observation per gap: what AWS shows, and what the stock emulator shows instead.

An observation is a function of a deployed contract app. With its patch it must equal `aws`, without it `stock`:
the second half proves that the test can see the gap at all.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.emulator.world import code_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.emulator.world import World


@dataclass(frozen=True)
class Contract:
    patch: str
    question: str
    aws: Any
    stock: Any
    observe: Callable[[World], Any]


CONTRACTS: list[Contract] = []
HANG_SECONDS = 2.5


def contract(patch, *, aws, stock):
    def register(observe):
        CONTRACTS.append(Contract(patch, observe.__name__, aws, stock, observe))
        return observe

    return register


# Lambda


@contract("lambda-runtime", aws="RefusedError", stock="Runtime.HandlerError")
def error_type_of_an_exception(world):
    return world.invoke("Probe", op="raise", error="RefusedError")[0]


@contract("lambda-runtime", aws=True, stock=False)
def environment_stays_warm_after_an_exception(world):
    before = world.invoke("Probe", op="echo")[1]["pid"]
    world.invoke("Probe", op="raise", error="RefusedError")
    return world.invoke("Probe", op="echo")[1]["pid"] == before


@contract("lambda-runtime", aws=False, stock=True)
def packages_of_the_emulator_are_importable(world):
    return world.invoke("Probe", op="info")[1]["sees_ministack"]


@contract("lambda-runtime", aws=[], stock=["GATEWAY_PORT", "MINISTACK_REGION"])
def variables_of_the_host_that_reach_the_function(world):
    seen = world.invoke("Probe", op="info")[1]["environment"]
    return [name for name in ("GATEWAY_PORT", "MINISTACK_REGION") if name in seen]


@contract("lambda-runtime", aws="code first", stock="layers first")
def order_of_code_and_layers_on_the_path(world):
    body = world.invoke("Probe", op="info")[1]
    task_root = body["environment"]["LAMBDA_TASK_ROOT"]
    layer = next(entry for entry in body["path"] if entry.endswith("/python"))
    return "code first" if body["path"].index(task_root) < body["path"].index(layer) else "layers first"


@contract("lambda-runtime", aws=4, stock=6)
def workers_that_serve_six_calls_at_once(world):
    with ThreadPoolExecutor(6) as pool:
        answers = pool.map(lambda _: world.invoke("Probe", op="sleep", seconds=0.5)[1]["pid"], range(6))
        return len(set(answers))


# Step Functions


@contract("express-names-repeat", aws=2, stock="ExecutionAlreadyExists")
def executions_of_one_name_on_an_express_machine(world):
    name = f"twice-{uuid.uuid4()}"
    first = world.start("Express", name, do="nothing")
    outcome = code_of(lambda: world.start("Express", name, do="nothing"))
    if outcome != "ok":
        return outcome
    second = world.start("Express", name, do="nothing")
    return len({first, second})


@contract(
    "standard-start-idempotent", aws=("same", "ExecutionAlreadyExists"), stock=("ExecutionAlreadyExists",) * 2
)
def second_start_of_a_running_standard_execution_with_same_and_with_other_input(world):
    name = f"once-{uuid.uuid4()}"
    first = world.start("Standard", name, do="hang")
    again = []
    same = code_of(lambda: again.append(world.start("Standard", name, do="hang")))
    other = code_of(lambda: world.start("Standard", name, do="nothing"))
    return ("same" if again == [first] else same), other


@contract("sync-start-express-only", aws="StateMachineTypeNotSupported", stock="ok")
def synchronous_start_of_a_standard_machine(world):
    states = world.client("stepfunctions")
    return code_of(
        lambda: states.start_sync_execution(stateMachineArn=world["Standard"], input='{"do": "nothing"}')
    )


@contract("express-no-status-events", aws={"Standard"}, stock={"Standard", "Express"})
def machines_that_publish_status_events(world):
    executions = {
        world.run(machine, do="nothing")["executionArn"]: machine for machine in ("Express", "Standard")
    }
    standard = next(arn for arn, machine in executions.items() if machine == "Standard")

    def has_ended(events):
        return any(
            (e["detail"]["executionArn"], e["detail"]["status"]) == (standard, "SUCCEEDED") for e in events
        )

    events = world.received("StatusEvents", has_ended)
    assert has_ended(events), "the rule has to work for STANDARD, or silence proves nothing"
    return {
        executions[e["detail"]["executionArn"]] for e in events if e["detail"]["executionArn"] in executions
    }


@contract("machine-timeout", aws=("TIMED_OUT", "States.Timeout", 0), stock=("SUCCEEDED", None, 1))
def end_of_a_machine_that_hangs_and_how_often_a_state_ran_after_it(world):
    described = world.run("Hanging")
    time.sleep(max(0.0, HANG_SECONDS - 1))  # until the task itself has ended: then a Catch or Next could run
    history = world.client("stepfunctions").get_execution_history(executionArn=described["executionArn"])
    after = [event for event in history["events"] if event["type"] == "SucceedStateEntered"]
    return described["status"], described.get("error"), len(after)


@contract("failed-without-output", aws=False, stock=True)
def failed_execution_has_an_output(world):
    described = world.run("Express", do="ask", op="raise", error="RefusedError")
    assert described["status"] == "FAILED"
    return described.get("output") is not None


@contract("jsonata-timeouts", aws="States.Timeout", stock="States.Runtime")
def error_of_a_task_that_exceeds_a_timeout_given_as_expression(world):
    return world.run("Express", do="in-time", seconds=1)["error"]


@contract("succeed-output", aws={"answered": {"do": "nothing"}}, stock={"do": "nothing"})
def output_of_a_machine_that_ends_in_succeed(world):
    return json.loads(world.run("Express", do="nothing")["output"])


@contract("succeed-output", aws=[{"answer": 1}, {"answer": 2}], stock=[1, 2])
def results_of_a_map_whose_items_end_in_succeed(world):
    world.run("Express", do="map", items=[1, 2])
    return world.received("Sent", len)[-1]["answers"]


@contract("machine-role", aws=("FAILED", "SQS.AmazonSQSException"), stock=("SUCCEEDED", None))
def end_of_a_machine_whose_role_may_not_send(world):
    described = world.run("Standard", do="map", items=[])
    return described["status"], described.get("error")


@contract("retry-delays", aws="FAILED", stock="RUNNING")
def state_after_five_seconds_of_a_retry_that_is_bounded_to_one(world):
    return world.run("Express", within=5, do="retry")["status"]


@contract("no-start-delay", aws=True, stock=False)
def first_state_is_entered_within_140_ms(world):
    def delay(execution):
        states = world.client("stepfunctions")
        world.finished(execution)
        events = states.get_execution_history(executionArn=execution)["events"]
        return (events[1]["timestamp"] - events[0]["timestamp"]).total_seconds()

    return min(delay(world.start("Express", do="nothing")) for _ in range(5)) < 0.14


# API Gateway


@contract("http-api-body", aws=(200, 401, 403, 200), stock=(404, 404, 404, 404))
def routes_and_lambda_authorizer_of_a_sam_http_api(world):
    return (
        world.http("/open/x")[0],
        world.http("/guarded")[0],
        world.http("/guarded", Authorization="bad")[0],
        world.http("/guarded", Authorization="good")[0],
    )


@contract("http-api-body", aws=(401, 401, 200), stock=(404, 404, 404))
def jwt_authorizer_of_a_sam_http_api(world):
    token = _token(world)
    head, payload, signature = token.split(".")
    forged = f"{head}.{payload}.{signature[::-1]}"
    return tuple(
        world.http("/claimed", Authorization=f"Bearer {shown}")[0] for shown in ("x.y.z", forged, token)
    )


_PASSWORD = "Passw0rd!x"


def _token(world):
    cognito = world.client("cognito-idp")
    user = f"user-{uuid.uuid4()}"
    cognito.admin_create_user(UserPoolId=world["Users"], Username=user, MessageAction="SUPPRESS")
    cognito.admin_set_user_password(
        UserPoolId=world["Users"], Username=user, Password=_PASSWORD, Permanent=True
    )
    answer = cognito.initiate_auth(
        ClientId=world["UsersClient"],
        AuthFlow="USER_PASSWORD_AUTH",
        AuthParameters={"USERNAME": user, "PASSWORD": _PASSWORD},
    )
    return answer["AuthenticationResult"]["IdToken"]


@contract("http-api-body", aws=(204, "https://shop.example", 403), stock=(403, None, 403))
def preflight_of_a_known_and_of_an_unknown_origin(world):
    ask = {"method": "OPTIONS", "Access-Control-Request-Method": "GET"}
    known, headers, _ = world.http("/open/x", Origin="https://shop.example", **ask)
    unknown, _, _ = world.http("/open/x", Origin="https://evil.example", **ask)
    return known, headers["Access-Control-Allow-Origin"], unknown


@contract("websocket-dispatch", aws=("Internal server error", False), stock=(None, True))
def frame_after_a_failing_route_and_whether_it_tells_the_exception(world):
    with world.socket() as socket:
        socket.send('{"type": "fail"}')
        text = socket.recv(timeout=10)
    message = json.loads(text)["message"] if text.startswith("{") else None
    return message, "secret detail" in text


@contract("websocket-frames-concurrent", aws=["quick", "slow"], stock=["slow", "quick"])
def order_of_answers_to_a_slow_and_a_quick_frame(world):
    with ThreadPoolExecutor(2) as pool:  # two warm workers, so that only the order is observed
        list(pool.map(lambda _: _answers(world, {"type": "warm", "seconds": 0.3}), range(2)))
    return [frame["type"] for frame in _answers(world, {"type": "slow", "seconds": 1}, {"type": "quick"})]


@contract("connection-times", aws=(True, True), stock=(False, False))
def connected_at_is_constant_and_get_connection_tells_it(world):
    management = _management(world)
    with world.socket() as socket:
        contexts = []
        for _ in range(2):
            socket.send('{"type": "x"}')
            contexts.append(json.loads(socket.recv(timeout=10))["context"])
        told = management.get_connection(ConnectionId=contexts[0]["connectionId"])
    return contexts[0]["connectedAt"] == contexts[1]["connectedAt"], "ConnectedAt" in told


@contract("connections-post-limit", aws=("ok", "PayloadTooLargeException"), stock=("ok", "ok"))
def posts_of_128_kilobytes_and_of_one_byte_more(world):
    management = _management(world)
    with world.socket() as socket:
        socket.send('{"type": "x"}')
        connection = json.loads(socket.recv(timeout=10))["context"]["connectionId"]
        drained = threading.Thread(target=_drain, args=(socket,))
        drained.start()
        outcomes = tuple(
            code_of(
                lambda size=size: management.post_to_connection(ConnectionId=connection, Data=b"x" * size)
            )
            for size in (128 * 1024, 128 * 1024 + 1)
        )
    drained.join()
    return outcomes


def _drain(socket):
    for _ in socket:
        pass


def _answers(world, *frames):
    with world.socket() as socket:
        for frame in frames:
            socket.send(json.dumps(frame))
        return [json.loads(socket.recv(timeout=10))["frame"] for _ in frames]


def _management(world):
    return world.client(
        "apigatewaymanagementapi", endpoint_url=world.emulator.connections_url(world["SocketApi"], "live")
    )


# DynamoDB and CloudFormation


@contract("table-ttl", aws=("ENABLED", "ttl"), stock=("DISABLED", None))
def time_to_live_of_a_table_after_deployment(world):
    described = world.client("dynamodb").describe_time_to_live(TableName=world["Table"])[
        "TimeToLiveDescription"
    ]
    return described["TimeToLiveStatus"], described.get("AttributeName")


_OWN, _OTHER = "T#a#R#1", "T#a#C#1"
_DENIED = "AccessDeniedException"


@contract("dynamodb-leading-keys", aws=("ok", _DENIED), stock=(_DENIED, _DENIED))
def item_of_an_allowed_and_of_a_fenced_partition(world):
    return tuple(
        world.from_function("dynamodb", "put_item", TableName=world["Table"], Item=_key(partition))
        for partition in (_OWN, _OTHER)
    )


@contract("dynamodb-leading-keys", aws=("ok", _DENIED), stock=(_DENIED, _DENIED))
def query_of_an_allowed_and_of_a_fenced_partition(world):
    return tuple(
        world.from_function(
            "dynamodb",
            "query",
            TableName=world["Table"],
            KeyConditionExpression="#pk = :pk AND begins_with(SK, :sk)",
            ExpressionAttributeNames={"#pk": "PK"},
            ExpressionAttributeValues={":pk": {"S": partition}, ":sk": {"S": "-"}},
        )
        for partition in (_OWN, _OTHER)
    )


@contract("dynamodb-leading-keys", aws=("ok", _DENIED), stock=(_DENIED, _DENIED))
def query_of_an_allowed_and_of_a_fenced_index_partition(world):
    return tuple(
        world.from_function(
            "dynamodb",
            "query",
            TableName=world["Table"],
            IndexName="GSI1",
            KeyConditionExpression="GSI1PK = :pk",
            ExpressionAttributeValues={":pk": {"S": partition}},
        )
        for partition in (_OWN, _OTHER)
    )


@contract("dynamodb-leading-keys", aws=("ok", _DENIED), stock=(_DENIED, _DENIED))
def transaction_within_the_fence_and_one_with_an_item_beyond_it(world):
    return tuple(
        world.from_function(
            "dynamodb",
            "transact_write_items",
            TransactItems=[
                {"Put": {"TableName": world["Table"], "Item": _key(_OWN)}},
                {"Put": {"TableName": world["Table"], "Item": _key(partition)}},
            ],
        )
        for partition in ("T#a#R#2", _OTHER)
    )


@contract("dynamodb-leading-keys", aws=("ok", _DENIED), stock=(_DENIED, _DENIED))
def batch_within_the_fence_and_one_with_an_item_beyond_it(world):
    return tuple(
        world.from_function(
            "dynamodb",
            "batch_write_item",
            RequestItems={world["Table"]: [{"PutRequest": {"Item": _key(p)}} for p in (_OWN, partition)]},
        )
        for partition in ("T#a#R#2", _OTHER)
    )


def _key(partition):
    return {"PK": {"S": partition}, "SK": {"S": "-"}}
