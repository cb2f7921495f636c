"""Step Functions, how executions start: names, types and the events they publish."""

from __future__ import annotations

import contextvars
import copy
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from local.emulator import stock
from local.emulator.patches.registry import PatchContext, patch

if TYPE_CHECKING:
    from local.emulator.stock import Foreign

Record = dict[str, Any]


def _is_express(states: Foreign, record: Record) -> bool:
    machine = states._state_machines.get(record["stateMachineArn"]) or {}
    return bool(machine.get("type") == "EXPRESS")


@patch("no-start-delay")
def start_executions_without_a_constant_delay(context: PatchContext) -> None:
    """An execution starts at once.

    Stock sleeps 150 ms before the first state of every execution.
    """
    states = stock.module("services.stepfunctions")
    stock_run = states._run_execution
    starting = threading.local()

    class Time:
        """The `time` module, without the one sleep that comes before any state."""

        def __getattr__(self, name: str) -> Foreign:
            return getattr(time, name)

        def sleep(self, seconds: float) -> None:
            if getattr(starting, "first", False):
                starting.first = False
            else:
                time.sleep(seconds)

    def run(arn: str) -> Foreign:
        starting.first = True
        return stock_run(arn)

    states.time = Time()
    states._run_execution = run


@patch("express-names-repeat")
def start_express_executions_of_one_name_again(context: PatchContext) -> None:
    """A name used twice on an EXPRESS machine starts two executions, each with an id of its own.

    AWS never deduplicates Express starts (StartExecution: "not idempotent for EXPRESS"); their ARN ends in
    `express:<machine>:<name>:<unique>`. Stock answers ExecutionAlreadyExists, which hides every duplicate.
    """
    states = stock.module("services.stepfunctions")
    responses = stock.module("core.responses")
    stock_start = states._start_execution

    def start(data: Record) -> Foreign:
        arn = states._resolve_state_machine_arn(data.get("stateMachineArn", ""))
        machine = states._state_machines.get(arn) if arn else None
        if machine is None or machine.get("type") != "EXPRESS":
            return stock_start(data)
        name = data.get("name") or str(uuid.uuid4())
        record = _new_record(states, machine, name, data)
        states._executions[record["executionArn"]] = record
        runner = threading.Thread(
            target=contextvars.copy_context().run,
            args=(lambda: states._run_execution(record["executionArn"]),),
            daemon=True,
        )
        runner.start()
        return responses.json_response(
            {"executionArn": record["executionArn"], "startDate": record["startDate"]}
        )

    states._start_execution = start


def _new_record(states: Foreign, machine: Record, name: str, data: Record) -> Record:
    scope = f"{states.get_region()}:{states.get_account_id()}"
    arn = f"arn:aws:states:{scope}:express:{machine['name']}:{name}:{uuid.uuid4()}"
    now = states.now_iso()
    given = data.get("input", "{}")
    started = {"input": given, "roleArn": machine["roleArn"]}
    event = {"id": 1, "type": "ExecutionStarted", "timestamp": now, "executionStartedEventDetails": started}
    return {
        "executionArn": arn,
        "stateMachineArn": machine["stateMachineArn"],
        "name": name,
        "status": "RUNNING",
        "startDate": now,
        "stopDate": None,
        "input": given,
        "inputDetails": {"included": True},
        "output": None,
        "outputDetails": {"included": True},
        "testCase": "",
        "mockAttempts": {},
        "encryptionConfiguration": copy.deepcopy(
            machine.get("encryptionConfiguration") or states._default_encryption()
        ),
        "events": [event],
    }


@patch("standard-start-idempotent")
def answer_a_repeated_standard_start_with_the_running_execution(context: PatchContext) -> None:
    """StartExecution with the name and input of a running STANDARD execution succeeds and starts nothing.

    AWS: idempotent while it runs, ExecutionAlreadyExists for another input or a closed execution. Stock always
    answers ExecutionAlreadyExists.
    """
    states = stock.module("services.stepfunctions")
    responses = stock.module("core.responses")
    stock_start = states._start_execution

    def start(data: Record) -> Foreign:
        arn = states._resolve_state_machine_arn(data.get("stateMachineArn", ""))
        machine = states._state_machines.get(arn) if arn else None
        if machine is not None and data.get("name") and machine.get("type", "STANDARD") == "STANDARD":
            scope = f"{states.get_region()}:{states.get_account_id()}"
            wanted = f"arn:aws:states:{scope}:execution:{machine['name']}:{data['name']}"
            running = states._executions.get(wanted)
            same = running and running["status"] == "RUNNING" and running["input"] == data.get("input", "{}")
            if running and same:
                return responses.json_response({"executionArn": wanted, "startDate": running["startDate"]})
        return stock_start(data)

    states._start_execution = start


@patch("sync-start-express-only")
def refuse_a_synchronous_start_of_a_standard_machine(context: PatchContext) -> None:
    """StartSyncExecution on a STANDARD machine is StateMachineTypeNotSupported.

    Stock runs it, so a template that switched the type would pass every test and fail on AWS.
    """
    states = stock.module("services.stepfunctions")
    responses = stock.module("core.responses")
    stock_start = states._start_sync_execution

    def start(data: Record) -> Foreign:
        arn = states._resolve_state_machine_arn(data.get("stateMachineArn", ""))
        machine = states._state_machines.get(arn) if arn else None
        if machine is not None and machine.get("type", "STANDARD") != "EXPRESS":
            return responses.error_response_json(
                "StateMachineTypeNotSupported",
                "This operation is not supported by this type of state machine",
                400,
            )
        return stock_start(data)

    states._start_sync_execution = start


@patch("express-no-status-events")
def publish_no_status_events_of_express_executions(context: PatchContext) -> None:
    """EXPRESS executions publish no status changes to EventBridge.

    AWS publishes them for STANDARD only. Stock publishes for both, so a rule that never fires on AWS would
    seem to work.
    """
    states = stock.module("services.stepfunctions")
    stock_emit = states._emit_execution_status_event

    def emit(record: Record) -> None:
        if not _is_express(states, record):
            stock_emit(record)

    states._emit_execution_status_event = emit
