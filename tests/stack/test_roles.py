"""Every role may do what its function does and nothing else, asked with the role's own credentials.

What the emulator cannot show: it evaluates identity policies as AWS does, with `dynamodb:LeadingKeys` by a patch of
ours (tests/emulator shows it), but no permission boundaries, no service control policies, no session tags.
"""

from __future__ import annotations

from functools import cache

import pytest
from botocore.exceptions import ClientError

PARTITIONS = {
    "C": "T#probe#C#c1",
    "R": "T#probe#R#r1",
    "P": "T#probe#P#p1",
    "CFG": "T#probe#CFG",
    "TKT": "TKT#probe",
    "CONN": "CONN#probe",
}
DENIED = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "ForbiddenException", "403"}

MAY = {
    "IssueTicket": {"get C", "get CFG", "query C", "put TKT"},
    "Authorize": {"get TKT", "delete TKT"},
    "Connect": {"put P", "put CONN", "batch P", "batch CONN"},
    "Disconnect": {"get CONN", "delete P", "delete CONN"},
    "AcceptMessage": {
        *("get C", "get P", "put C", "put P", "put R", "put CONN", "batch P", "batch CONN"),
        *("update C", "update P", "update R", "start turn", "send push"),
    },
    "BeginTurn": {
        *("get C", "get CFG", "query C", "query CFG", "update C", "put R", "batch R", "send push"),
    },
    "ResumePending": {"get C", "put R", "batch R"},
    "Model": {"get R", "put R", "batch R", "update R", "send push"},
    "Govern": set(),
    "Retrieve": {"put R", "batch R", "read knowledge"},
    "CommitTurn": {"get C", "put C", "put R", "update C", "update R", "send start"},
    "FailTurn": {"get C", "put C", "put R", "update C", "update R", "send start"},
    "PushEvents": {
        *("get C", "query C", "update C", "query P", "delete P", "delete CONN"),
        *("receive push", "post to connection"),
    },
    "StartRun": {"receive start", "start turn"},
    "SweepDueItems": {
        *("get C", "put C", "put R", "update C", "update R", "query due index", "send push", "send start"),
    },
    "TurnMachine": {"send push", "invoke function"},
}
"""Exactly this; `put` of a partition means PutItem, also inside a transaction."""


class Probe:
    """One call of each kind that any role of the stack may or must not make."""

    def __init__(self, world, role):
        credentials = world.stack.emulator.client("sts").assume_role(
            RoleArn=role_arn(world, role), RoleSessionName="probe"
        )["Credentials"]
        self._options = {
            "aws_access_key_id": credentials["AccessKeyId"],
            "aws_secret_access_key": credentials["SecretAccessKey"],
            "aws_session_token": credentials["SessionToken"],
        }
        self._world = world
        self.calls = {**self._table_calls(), **self._other_calls()}

    def allowed(self):
        return {name for name, call in self.calls.items() if self._passes(call)}

    def _client(self, service, **options):
        return self._world.stack.emulator.client(service, **{**options, **self._options})

    @staticmethod
    def _passes(call):
        try:
            call()
        except ClientError as error:
            return error.response["Error"]["Code"] not in DENIED
        return True

    def _table_calls(self):
        dynamodb, table = self._client("dynamodb"), self._world.stack.outputs["TableName"]
        calls = {"scan": lambda: dynamodb.scan(TableName=table, Limit=1)}
        calls["query due index"] = lambda: dynamodb.query(
            TableName=table,
            IndexName="GSI1",
            KeyConditionExpression="GSI1PK = :p",
            ExpressionAttributeValues={":p": {"S": "DUE#0"}},
        )
        for kind, pk in PARTITIONS.items():
            key = {"PK": {"S": pk}, "SK": {"S": "-"}}
            calls |= {
                f"get {kind}": lambda key=key: dynamodb.get_item(TableName=table, Key=key),
                f"put {kind}": lambda key=key: dynamodb.put_item(TableName=table, Item=key),
                f"update {kind}": lambda key=key: dynamodb.update_item(
                    TableName=table,
                    Key=key,
                    UpdateExpression="SET probed = :v",
                    ExpressionAttributeValues={":v": {"N": "1"}},
                ),
                f"delete {kind}": lambda key=key: dynamodb.delete_item(TableName=table, Key=key),
                f"batch {kind}": lambda key=key: dynamodb.batch_write_item(
                    RequestItems={table: [{"PutRequest": {"Item": key}}]}
                ),
                f"query {kind}": lambda pk=pk: dynamodb.query(
                    TableName=table,
                    KeyConditionExpression="PK = :p",
                    ExpressionAttributeValues={":p": {"S": pk}},
                ),
            }
        return calls

    def _other_calls(self):
        outputs, emulator = self._world.stack.outputs, self._world.stack.emulator
        queues, storage = self._client("sqs"), self._client("s3")
        socket = self._client(
            "apigatewaymanagementapi",
            endpoint_url=emulator.connections_url(outputs["ChatSocketApiId"], "live"),
        )
        push, start = outputs["EventsToPushQueueUrl"], outputs["RunsToStartQueueUrl"]
        bucket = outputs["KnowledgeBucketName"]
        return {
            "send push": lambda: queues.send_message(QueueUrl=push, MessageBody=_NO_ORDER),
            "send start": lambda: queues.send_message(QueueUrl=start, MessageBody=_NO_ORDER),
            "receive push": lambda: queues.receive_message(QueueUrl=push, VisibilityTimeout=0),
            "receive start": lambda: queues.receive_message(QueueUrl=start, VisibilityTimeout=0),
            "start turn": lambda: self._client("stepfunctions").start_execution(
                stateMachineArn=outputs["TurnMachineArn"], input="{}"
            ),
            "invoke function": lambda: self._client("lambda").invoke(
                FunctionName=self._world.function_names["Govern"], Payload=b"{}"
            ),
            "read knowledge": lambda: storage.get_object(
                Bucket=bucket, Key="knowledge/mall/support-kb/1.sqlite"
            ),
            "write knowledge": lambda: storage.put_object(Bucket=bucket, Key="knowledge/probe", Body=b""),
            "post to connection": lambda: socket.post_to_connection(ConnectionId="probe", Data=b"{}"),
        }


_NO_ORDER = '{"kind": "frame", "account": "probe", "frame": {}}'


@cache
def _roles(client):
    return [role for page in client.get_paginator("list_roles").paginate() for role in page["Roles"]]


def role_arn(world, role):
    (arn,) = [
        each["Arn"]
        for each in _roles(world.stack.emulator.client("iam"))
        if f"-{role}Role-" in each["RoleName"]
    ]
    return arn


def test_every_role_of_the_stack_is_probed(world):
    names = {role["RoleName"].split("-")[1] for role in _roles(world.stack.emulator.client("iam"))}
    assert {name.removesuffix("Role") for name in names if name.endswith("Role")} == set(MAY)


@pytest.mark.invariant("I6")
@pytest.mark.parametrize("role", MAY)
def test_a_role_may_do_what_its_function_does_and_nothing_else(world, role):
    assert Probe(world, role).allowed() == MAY[role]


def test_a_transaction_is_judged_item_by_item(world):
    """The model's role may write its run's partition; one item of HEAD's partition beside it refuses both."""
    probe = Probe(world, "Model")
    dynamodb, table = probe._client("dynamodb"), world.stack.outputs["TableName"]

    def put(kind):
        return {"Put": {"TableName": table, "Item": {"PK": {"S": PARTITIONS[kind]}, "SK": {"S": "t"}}}}

    dynamodb.transact_write_items(TransactItems=[put("R")])
    with pytest.raises(ClientError) as refused:
        dynamodb.transact_write_items(TransactItems=[put("R"), put("C")])
    assert refused.value.response["Error"]["Code"] in DENIED
