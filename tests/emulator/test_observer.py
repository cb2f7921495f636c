"""Recorder and fault injection: what tests of the product count with and break things with."""

import json
import threading
import time

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError

from local.deploy import EmulatorError
from local.emulator.faults import Call, FaultPlan, FaultRule, FaultRuleError, task_error
from tests.emulator.world import code_of

KEY = {"PK": {"S": "T#a#R#fault"}, "SK": {"S": "-"}}


def put(world, partition, client=None):
    item = {"PK": {"S": partition}, "SK": {"S": "-"}}
    (client or world.client("dynamodb")).put_item(TableName=world["Table"], Item=item)


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("throttle", "ThrottlingException"),
        ("ProvisionedThroughputExceeded", "ProvisionedThroughputExceededException"),
        ("AccessDenied", "AccessDeniedException"),
        ("InternalServerError", "InternalServerError"),
        ("TransactionConflict", "TransactionConflictException"),
    ],
)
def test_an_error_before_the_call_leaves_no_trace(faulty, action, code):
    faulty.emulator.add_fault(service="dynamodb", operation="PutItem", action=action)
    assert code_of(lambda: put(faulty, f"before#{action}")) == code
    assert faulty.item(f"before#{action}") is None


def test_an_error_after_the_call_hides_that_it_was_done(faulty):
    faulty.emulator.add_fault(service="dynamodb", operation="PutItem", action="throttle", where="after")
    assert code_of(lambda: put(faulty, "after")) == "ThrottlingException"
    assert faulty.item("after") is not None


def test_a_conflict_cancels_a_transaction_with_reasons(faulty):
    faulty.emulator.add_fault(
        service="dynamodb", operation="TransactWriteItems", action="TransactionConflict"
    )
    dynamodb = faulty.client("dynamodb")
    writes = [{"Put": {"TableName": faulty["Table"], "Item": KEY | {"n": {"N": str(n)}}}} for n in range(2)]
    with pytest.raises(dynamodb.exceptions.TransactionCanceledException) as cancelled:
        dynamodb.transact_write_items(TransactItems=writes)
    assert [reason["Code"] for reason in cancelled.value.response["CancellationReasons"]] == [
        "TransactionConflict",
        "None",
    ]


@pytest.mark.parametrize("action", ["lost_response", "timeout"])
def test_a_cut_connection_is_a_connection_error(faulty, action):
    faulty.emulator.add_fault(service="dynamodb", operation="PutItem", action=action)
    with pytest.raises(HTTPClientError):
        put(faulty, f"cut#{action}")
    assert (faulty.item(f"cut#{action}") is not None) == (action == "lost_response")


def test_a_timeout_holds_the_answer_back(faulty):
    faulty.emulator.add_fault(service="dynamodb", operation="PutItem", action="timeout", seconds=1.5)
    impatient = faulty.client("dynamodb", config=Config(read_timeout=0.3))
    started = time.monotonic()
    with pytest.raises(HTTPClientError):
        put(faulty, "late", impatient)
    assert time.monotonic() - started < 1.4


def test_an_sdk_that_retries_survives_one_lost_response(faulty):
    faulty.emulator.add_fault(service="dynamodb", operation="PutItem", action="lost_response", nth=1)
    retrying = faulty.client("dynamodb", config=Config(retries={"total_max_attempts": 3}))
    put(faulty, "retried", retrying)
    assert faulty.item("retried") is not None


def test_a_duplicated_start_runs_two_express_executions(faulty):
    faulty.emulator.add_fault(service="states", operation="StartExecution", action="duplicate", limit=1)
    faulty.finished(faulty.start("Express", "doubled", do="ask", op="echo"))
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        states = faulty.emulator.records("state")
        executions = {s["execution"] for s in states if ":doubled:" in s["execution"] and s["name"] == "Ask"}
        if len(executions) == 2:
            break
        time.sleep(0.02)
    assert len(executions) == 2


def test_only_the_nth_matching_call_is_struck(faulty):
    rule = faulty.emulator.add_fault(service="dynamodb", operation="PutItem", action="throttle", nth=2)
    outcomes = [code_of(lambda n=n: put(faulty, f"nth#{n}")) for n in range(3)]
    assert outcomes == ["ok", "ThrottlingException", "ok"]
    counts = faulty.emulator.faults()[rule]
    assert (counts["matched"], counts["injected"]) == (3, 1)


def test_a_rule_can_strike_the_calls_of_one_function_only(faulty):
    faulty.emulator.add_fault(
        service="dynamodb", operation="PutItem", function="*-ProbeFunction-*", action="throttle"
    )
    assert code_of(lambda: put(faulty, "by-root")) == "ok"
    outcome = faulty.from_function("dynamodb", "put_item", TableName=faulty["Table"], Item=KEY)
    assert outcome == "ThrottlingException"


def test_a_post_to_a_connection_can_be_struck(faulty):
    faulty.emulator.add_fault(
        service="execute-api", operation="PostToConnection", action="AccessDenied", limit=1
    )
    with faulty.socket() as socket:
        socket.send('{"type": "x"}')
        assert json.loads(socket.recv(timeout=10))["message"] == "Internal server error"


def test_what_a_task_state_calls_directly_can_be_struck(faulty):
    faulty.emulator.add_fault(service="states-task", operation="sqs:sendMessage", action="throttle")
    described = faulty.run("Express", do="map", items=[1])
    assert (described["status"], described["error"]) == ("FAILED", "SQS.ThrottlingException")


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("throttle", "Lambda.TooManyRequestsException"),
        ("lost_response", "Lambda.SdkClientException"),
        ("timeout", "States.Timeout"),
    ],
)
def test_an_invocation_by_the_machine_fails_by_the_name_aws_gives_it(action, error):
    """A machine retries by name: a wrong one would test its Catch instead."""
    assert task_error("lambda:invoke", action) == error


@pytest.mark.parametrize("action", ["kill_before", "kill_after", "kill_during"])
def test_a_killed_worker_fails_its_invocation_and_the_next_one_is_cold(faulty, action):
    before = faulty.invoke("Probe", op="echo")[1]["pid"]
    faulty.emulator.add_fault(function="*-ProbeFunction-*", action=action, limit=1, seconds=0.2)
    assert faulty.invoke("Probe", op="sleep", seconds=0.5)[0] == "Runtime.ExitError"
    assert faulty.invoke("Probe", op="echo")[1]["pid"] != before


def test_a_delayed_invocation_takes_longer(faulty):
    faulty.invoke("Probe", op="echo")
    faulty.emulator.add_fault(function="*-ProbeFunction-*", action="delay", seconds=0.4)
    started = time.monotonic()
    assert faulty.invoke("Probe", op="echo")[0] is None
    assert time.monotonic() - started >= 0.4


def test_an_invocation_can_be_made_twice(faulty):
    calls = faulty.invoke("Short", op="echo")[1]["calls"]
    faulty.emulator.add_fault(function="*-ShortFunction-*", action="invoke_twice", limit=1)
    assert faulty.invoke("Short", op="echo")[1]["calls"] == calls + 2


def test_with_a_limit_the_nth_call_and_those_after_it_are_struck(faulty):
    rule = faulty.emulator.add_fault(
        service="dynamodb", operation="PutItem", action="throttle", nth=2, limit=2
    )
    outcomes = [code_of(lambda n=n: put(faulty, f"from#{n}")) for n in range(4)]
    assert outcomes == ["ok", "ThrottlingException", "ThrottlingException", "ok"]
    report = faulty.emulator.drop_fault(rule)
    assert (report["matched"], report["injected"]) == (4, 2)
    assert rule not in faulty.emulator.faults()


def test_a_rule_can_strike_the_requests_that_contain_a_text(faulty):
    faulty.emulator.add_fault(service="dynamodb", action="throttle", contains=["PutItem-mine", '"SK"'])
    assert code_of(lambda: put(faulty, "PutItem-yours")) == "ok"
    assert code_of(lambda: put(faulty, "PutItem-mine")) == "ThrottlingException"


def test_a_rule_can_strike_the_calls_made_for_one_event(faulty):
    """The calls themselves look alike: what tells them apart is the event their Lambda is busy with."""
    faulty.emulator.add_fault(service="dynamodb", action="throttle", during=["conversation-7"])
    calls = {"TableName": faulty["Table"], "Item": KEY}
    outcomes = []
    for marker in ("conversation-8", "conversation-7"):
        answer = faulty.invoke(
            "Probe", op="aws", service="dynamodb", method="put_item", arguments=calls, marker=marker
        )[1]
        outcomes.append("ok" in answer)
    assert outcomes == [True, False]
    assert code_of(lambda: put(faulty, "conversation-7")) == "ok", "nobody's invocation"


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_lambda_can_crash_at_one_of_its_calls(faulty, where):
    faulty.emulator.add_fault(service="dynamodb", operation="PutItem", action="crash", where=where, limit=1)
    item = KEY | {"PK": {"S": f"T#a#R#crash-{where}"}}
    call = {"TableName": faulty["Table"], "Item": item}
    error, _ = faulty.invoke("Probe", op="aws", service="dynamodb", method="put_item", arguments=call)
    assert error == "Runtime.ExitError"
    assert (faulty.item(f"T#a#R#crash-{where}") is not None) == (where == "after")


def test_a_slow_answer_is_late_and_good(faulty):
    faulty.emulator.add_fault(service="dynamodb", operation="PutItem", action="slow", seconds=0.4)
    started = time.monotonic()
    put(faulty, "slow")
    assert time.monotonic() - started >= 0.4
    assert faulty.item("slow") is not None


def test_a_running_invocation_can_be_killed_from_outside(faulty):
    def kill():
        until = time.monotonic() + 10
        while not faulty.emulator.crash(faulty["Probe"], '"seconds": 9.5') and time.monotonic() < until:
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    assert faulty.invoke("Probe", op="sleep", seconds=9.5)[0] == "Runtime.ExitError"
    killer.join(10)


@pytest.mark.parametrize(
    "rule",
    [
        {"action": "explode"},
        {"action": "throttle", "servise": "sqs"},
        {"action": "throttle", "probability": 2},
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(faulty, rule):
    with pytest.raises(EmulatorError, match="error"):
        faulty.emulator.add_fault(**rule)
    with pytest.raises(FaultRuleError):
        FaultRule.parse(rule)


def test_chances_are_the_same_for_the_same_seed():
    def struck(seed):
        plan = FaultPlan()
        plan.clear(seed)
        plan.add(FaultRule("throttle", probability=0.3))
        return [plan.decide(Call(False, "dynamodb", "PutItem", "")) is not None for _ in range(200)]

    assert struck(1) == struck(1)
    assert struck(1) != struck(2)
    assert 30 <= sum(struck(1)) <= 90


def test_the_record_names_the_calling_function_and_holds_the_decoded_request(faulty):
    faulty.from_function("dynamodb", "put_item", TableName=faulty["Table"], Item=KEY)
    call = next(
        record for record in reversed(faulty.emulator.records("aws")) if record["operation"] == "PutItem"
    )
    assert call["caller"] == faulty["Probe"]
    assert call["request"]["Item"] == KEY
    assert call["bytes"] > 50
    assert call["status"] == 200
    assert "Boto3" in call["user_agent"]


def test_the_record_has_every_invocation_with_its_outcome(faulty):
    faulty.invoke("Probe", op="raise", error="RefusedError")
    invocation = faulty.emulator.records("lambda")[-1]
    assert invocation["function"] == faulty["Probe"]
    assert (invocation["outcome"], invocation["error"]) == ("error", "RefusedError")
    assert invocation["ms"] > 0


def test_events_are_recorded_only_when_asked_for(faulty):
    faulty.invoke("Probe", op="echo", marker=1)
    assert "event" not in faulty.emulator.records("lambda")[-1]
    faulty.emulator.keep_events()
    faulty.invoke("Probe", op="echo", marker=2)
    faulty.emulator.keep_events(False)
    invocation = faulty.emulator.records("lambda")[-1]
    assert invocation["event"] == {"op": "echo", "marker": 2}


def test_bodies_of_calls_are_recorded_only_when_asked_for(faulty):
    put(faulty, "body#1")
    assert "body" not in faulty.emulator.records("aws")[-1]
    faulty.emulator.keep_events()
    put(faulty, "body#2")
    faulty.emulator.keep_events(False)
    assert "body#2" in faulty.emulator.records("aws")[-1]["body"]


def test_a_call_names_the_invocation_that_made_it(faulty):
    faulty.from_function("dynamodb", "put_item", TableName=faulty["Table"], Item=KEY)
    invocation = faulty.emulator.records("lambda")[-1]["request_id"]
    assert invocation in {call["invocation"] for call in faulty.emulator.records("aws")}


def test_the_record_has_every_state_also_inside_a_map(faulty):
    execution = faulty.run("Express", do="map", items=[1, 2])["executionArn"]
    names = [state["name"] for state in faulty.emulator.records("state") if state["execution"] == execution]
    assert sorted(names) == ["Announce", "AnswerEach", "AskOne", "AskOne", "ChooseQuestion"]


def test_injected_faults_are_recorded(faulty):
    faulty.emulator.add_fault(service="dynamodb", operation="PutItem", action="throttle", limit=1)
    with pytest.raises(ClientError):
        put(faulty, "recorded")
    assert faulty.emulator.records("fault")[-1]["action"] == "throttle"
