"""Step Functions as the starter of turns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from turngate.adapters.aws import error_code, transient
from turngate.errors import BrokenInvariantError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_stepfunctions import SFNClient

MAX_NAME = 80


class StepFunctionsStarter:
    """Starts executions of one machine.

    EXPRESS machines start an execution on every call, whatever its name. STANDARD machines keep a name for 90 days
    and answer ExecutionAlreadyExists when the input differs from the first: the turn is running or has run, which is
    all the caller wants."""

    def __init__(self, client: SFNClient, machine_arn: str) -> None:
        self._client = client
        self._machine_arn = machine_arn

    def start(self, *, name: str, payload: Mapping[str, Any]) -> None:
        if not 1 <= len(name) <= MAX_NAME:
            raise BrokenInvariantError(f"an execution name has 1 to {MAX_NAME} characters, not {len(name)}")
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        with transient("states:StartExecution"):
            try:
                self._client.start_execution(stateMachineArn=self._machine_arn, name=name, input=text)
            except ClientError as error:
                if error_code(error) != "ExecutionAlreadyExists":
                    raise
