"""What the product leans on and the emulator does like AWS; no patch of ours is behind these."""

import json

import pytest
from websockets.exceptions import InvalidStatus


def test_batch_item_failures_are_redelivered_alone_and_end_in_the_dead_letter_queue(patched):
    sqs = patched.client("sqs")
    entries = [
        {"Id": "good", "MessageBody": json.dumps({"id": "good"})},
        {"Id": "bad", "MessageBody": json.dumps({"id": "bad", "bad": True})},
    ]
    sqs.send_message_batch(QueueUrl=patched["Jobs"], Entries=entries)
    dead = patched.received("JobsDead", len, within=20)
    assert dead == [{"id": "bad", "bad": True}]
    assert patched.item("seen#good")["n"] == {"N": "1"}
    assert patched.item("seen#bad")["n"] == {"N": "2"}


@pytest.mark.parametrize(("ticket", "status"), [("bad", 403), (None, 401)])
def test_the_websocket_authorizer_refuses_the_handshake(patched, ticket, status):
    with pytest.raises(InvalidStatus) as refused, patched.socket(ticket):
        pass
    assert refused.value.response.status_code == status


def test_the_context_of_the_websocket_authorizer_reaches_every_frame(patched):
    with patched.socket() as socket:
        socket.send('{"type": "x"}')
        context = json.loads(socket.recv(timeout=10))["context"]
    assert context["authorizer"] == {"account": "mall", "principalId": "guest:1"}


def test_the_context_of_the_http_authorizer_reaches_the_function(patched):
    _, _, text = patched.http("/guarded", Authorization="good")
    assert json.loads(text)["authorizer"] == {"lambda": {"account": "mall"}}


def test_posting_to_a_connection_needs_manage_connections(patched):
    endpoint = patched.emulator.connections_url(patched["SocketApi"], "live")
    with patched.socket() as socket:
        socket.send('{"type": "x"}')  # SocketFunction has the right and answers
        connection = json.loads(socket.recv(timeout=10))["context"]["connectionId"]
        outcome = patched.from_function(
            "apigatewaymanagementapi", "post_to_connection", endpoint, ConnectionId=connection, Data="x"
        )
    assert outcome == "AccessDeniedException"


def test_a_connection_that_is_closed_is_gone(patched):
    management = patched.client(
        "apigatewaymanagementapi",
        endpoint_url=patched.emulator.connections_url(patched["SocketApi"], "live"),
    )
    with patched.socket() as socket:
        socket.send('{"type": "x"}')
        connection = json.loads(socket.recv(timeout=10))["context"]["connectionId"]
        management.delete_connection(ConnectionId=connection)
        with pytest.raises(management.exceptions.GoneException):
            management.post_to_connection(ConnectionId=connection, Data=b"x")


def test_a_transaction_needs_the_right_of_each_of_its_items(patched):
    key = {"PK": {"S": "T#a#R#9"}, "SK": {"S": "-"}}
    outcome = patched.from_function(
        "dynamodb",
        "transact_write_items",
        TransactItems=[{"Delete": {"TableName": patched["Table"], "Key": key}}],
    )
    assert outcome == "AccessDeniedException"  # Put and Update are allowed, DeleteItem is not


def test_services_without_a_policy_are_denied(patched):
    outcome = patched.from_function("sqs", "send_message", QueueUrl=patched["Sent"], MessageBody="x")
    assert outcome == "AccessDenied"


def test_a_function_that_runs_out_of_time_is_killed_and_reported_by_its_machine(patched):
    described = patched.run("Express", do="short")
    assert (described["status"], described["error"]) == ("FAILED", "Sandbox.Timedout")


def test_a_function_whose_process_dies_is_reported(patched):
    assert patched.invoke("Probe", op="exit")[0] == "Runtime.ExitError"


def test_lambda_invoke_passes_payload_and_output_by_jsonata(patched):
    described = patched.run("Express", do="ask", op="echo")
    answered = json.loads(described["output"])["answered"]
    assert answered["op"] == "echo"
    assert answered["id"] == described["executionArn"]


def test_lines_of_a_function_reach_its_log_group(patched):
    patched.invoke("Probe", op="raise", error="RefusedError")
    logs = patched.client("logs")
    events = logs.filter_log_events(logGroupName=f"/aws/lambda/{patched['Probe']}")["events"]
    assert any(event["message"] == "about to raise" for event in events)


def test_a_schedule_of_one_minute_is_provisioned_for_its_function(patched):
    events = patched.client("events")
    schedules = [rule for rule in events.list_rules()["Rules"] if rule.get("ScheduleExpression")]
    assert [rule["ScheduleExpression"] for rule in schedules] == ["rate(1 minute)"]
    targets = events.list_targets_by_rule(Rule=schedules[0]["Name"])["Targets"]
    assert [target["Arn"].rpartition(":")[2].split("-")[1] for target in targets] == ["ConsumeFunction"]
