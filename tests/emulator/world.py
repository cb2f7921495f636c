"""The contract app on one emulator, with the few questions the tests ask it."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from websockets.sync.client import connect

from local.deploy import Emulator, deploy, host_runtime, start_emulator
from local.emulator.settings import EmulatorSettings

APP = Path(__file__).parent / "app" / "template.yaml"


@dataclass(frozen=True)
class World:
    """An emulator with the contract app deployed."""

    emulator: Emulator
    outputs: dict

    def __getitem__(self, name):
        return self.outputs[name]

    def client(self, service, **options):
        return self.emulator.client(service, **options)

    def invoke(self, function, **event):
        """(error type or None, the decoded answer)"""
        answer = self.client("lambda").invoke(FunctionName=self[function], Payload=json.dumps(event))
        body = json.loads(answer["Payload"].read())
        return (body.get("errorType") if "FunctionError" in answer else None), body

    def from_function(self, service, method, endpoint=None, **arguments):
        """A call to AWS with the rights of ProbeFunction: "ok", or the error's code."""
        error, body = self.invoke(
            "Probe", op="aws", service=service, method=method, arguments=arguments, endpoint=endpoint
        )
        assert error is None, body
        return "ok" if "ok" in body else body["message"].partition("(")[2].partition(")")[0]

    def start(self, machine, name=None, **given):
        arguments = {"name": name} if name else {}
        return self.client("stepfunctions").start_execution(
            stateMachineArn=self[machine], input=json.dumps(given), **arguments
        )["executionArn"]

    def finished(self, execution, within=15.0):
        """The description of an execution that has ended, or of one still running after `within` seconds."""
        states = self.client("stepfunctions")
        until = time.monotonic() + within
        while True:
            described = states.describe_execution(executionArn=execution)
            if described["status"] != "RUNNING" or time.monotonic() > until:
                return described
            time.sleep(0.01)

    def run(self, machine, within=15.0, **given):
        return self.finished(self.start(machine, **given), within)

    def received(self, queue, enough, within=10.0):
        """Bodies from a queue, until `enough(bodies)` or the time is over."""
        sqs = self.client("sqs")
        bodies = []
        until = time.monotonic() + within
        while not enough(bodies) and time.monotonic() < until:
            got = sqs.receive_message(QueueUrl=self[queue], WaitTimeSeconds=1, MaxNumberOfMessages=10)
            for message in got.get("Messages", []):
                bodies.append(json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=self[queue], ReceiptHandle=message["ReceiptHandle"])
        return bodies

    def http(self, path, method="GET", **headers):
        """(status, headers, text) of a request to the HTTP API."""
        url = self.emulator.http_url(self["Api"]) + path
        request = urllib.request.Request(url, method=method, headers=headers)  # noqa: S310  # loopback
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310  # loopback
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read().decode()

    def socket(self, ticket="good"):
        query = f"?ticket={ticket}" if ticket else ""
        return connect(self.emulator.websocket_url(self["SocketApi"], "live") + query)

    def item(self, partition):
        key = {"PK": {"S": partition}, "SK": {"S": "-"}}
        return (
            self.client("dynamodb")
            .get_item(TableName=self["Table"], Key=key, ConsistentRead=True)
            .get("Item")
        )


def code_of(call):
    """What an AWS call came to: "ok", or the error's code."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "ok"


@contextlib.contextmanager
def world(tmp_path_factory, name, **settings):
    work_dir = tmp_path_factory.mktemp(name)
    with start_emulator(EmulatorSettings(**settings), work_dir=work_dir, observe=True) as emulator:
        outputs = deploy(
            APP,
            emulator,
            "contract",
            {"PythonRuntime": host_runtime(), "ConnectionsEndpoint": emulator.endpoint},
        )
        yield World(emulator, outputs)


def skip_without_setup():
    root = Path(__file__).resolve().parents[2]
    for venv in ("emulator", "runtime"):
        if not (root / ".venvs" / venv / "bin" / "python").exists():
            pytest.skip(f".venvs/{venv} is missing: run `make setup`")
