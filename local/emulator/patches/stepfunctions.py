"""Step Functions: names, timeouts, retries and ends of executions as AWS has them."""

from __future__ import annotations

import contextvars
import copy
import json
import random
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from local.emulator import stock
from local.emulator.patches.registry import PatchContext, patch

if TYPE_CHECKING:
    from local.emulator.stock import Foreign

EXPRESS_LIMIT_SECONDS = 300
Record = dict[str, Any]


class ExecutionEndedError(BaseException):
    """Raised inside a machine whose execution has ended from outside.

    Not an `Exception`: no Catch of the machine may see it, as no Catch sees a machine's timeout on AWS.
    """


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


@patch("machine-timeout")
def end_executions_at_the_machine_timeout(context: PatchContext) -> None:
    """`TimeoutSeconds` of a machine ends it as TIMED_OUT, past every Catch; EXPRESS ends after 5 minutes anyway.

    Stock ignores the field: an execution that hangs hangs for ever, and a Catch would run where on AWS nothing
    of the machine runs any more.
    """
    states = stock.module("services.stepfunctions")
    stock_run, stock_task, stock_fail = states._run_execution, states._execute_task, states._fail_execution

    def run(arn: str) -> None:
        record = states._executions.get(arn)
        finished = threading.Event()
        if record is not None and (seconds := _machine_timeout(states, record)):
            watch = threading.Thread(
                target=contextvars.copy_context().run,
                args=(_time_out, states, record, finished, seconds),
                daemon=True,
            )
            watch.start()
        try:
            stock_run(arn)
        except ExecutionEndedError:
            return
        finally:
            finished.set()

    def task(definition: Record, given: Foreign, record: Record, ctx: Record) -> Foreign:
        _require_running(record)
        try:
            return stock_task(definition, given, record, ctx)
        finally:
            _require_running(record)

    def fail(record: Record, error: str, cause: str) -> None:
        if record["status"] == "RUNNING":
            stock_fail(record, error, cause)

    states._run_execution, states._execute_task, states._fail_execution = run, task, fail


def _require_running(record: Record) -> None:
    if record["status"] != "RUNNING":
        raise ExecutionEndedError(record["executionArn"])


def _machine_timeout(states: Foreign, record: Record) -> float | None:
    machine = states._state_machines.get(record["stateMachineArn"]) or {}
    try:
        seconds = json.loads(machine.get("definition", "{}")).get("TimeoutSeconds")
    except ValueError:
        return None
    if machine.get("type") != "EXPRESS":
        return float(seconds) if seconds else None
    return min(float(seconds or EXPRESS_LIMIT_SECONDS), EXPRESS_LIMIT_SECONDS)


def _time_out(states: Foreign, record: Record, finished: threading.Event, seconds: float) -> None:
    if finished.wait(seconds) or record["status"] != "RUNNING":
        return
    record["status"] = "TIMED_OUT"
    record["stopDate"] = states.now_iso()
    record["error"] = "States.Timeout"
    states._add_event(
        record, "ExecutionTimedOut", {"executionTimedOutEventDetails": {"error": "States.Timeout"}}
    )
    states._emit_execution_status_event(record)


@patch("failed-without-output")
def describe_a_failed_execution_without_output(context: PatchContext) -> None:
    """DescribeExecution of a failed execution has `error` and `cause`, and no `output`.

    Stock returns the error document as output, which reads like a success with a strange result.
    """
    states = stock.module("services.stepfunctions")
    stock_fail = states._fail_execution

    def fail(record: Record, error: str, cause: str) -> None:
        stock_fail(record, error, cause)
        if record["status"] == "FAILED":
            record["output"] = None

    states._fail_execution = fail


@patch("jsonata-timeouts")
def evaluate_timeouts_given_as_expressions(context: PatchContext) -> None:
    """`TimeoutSeconds` of a task may be a JSONata expression (here: remaining deadline − 10 s).

    Stock compares the text of the expression with a number and fails the execution with States.Runtime.
    """
    states = stock.module("services.stepfunctions")
    stock_task = states._execute_task

    def task(definition: Record, given: Foreign, record: Record, ctx: Record) -> Foreign:
        for name in ("TimeoutSeconds", "HeartbeatSeconds"):
            if isinstance(definition.get(name), str):
                seconds = states._jsonata_state_field(definition, name, "number", given, ctx)
                definition = {**definition, name: seconds}
        return stock_task(definition, given, record, ctx)

    states._execute_task = task


@patch("succeed-output")
def apply_the_output_of_succeed_states(context: PatchContext) -> None:
    """A Succeed state's JSONata `Output` is the result of the machine or of the Map item.

    Stock passes the state's input on and ignores the field.
    """
    states = stock.module("services.stepfunctions")
    stock_input = states._apply_input_path

    def apply(definition: Record, given: Foreign, ctx: Record | None = None) -> Foreign:
        if definition.get("Type") == "Succeed" and states._state_query_language(definition, ctx) == "JSONata":
            return states._apply_jsonata_output(definition, given, ctx, default=given)
        return stock_input(definition, given, ctx)

    states._apply_input_path = apply


@patch("retry-delays")
def bound_and_spread_the_delays_of_retries(context: PatchContext) -> None:
    """`MaxDelaySeconds` bounds a retry's delay and `JitterStrategy: FULL` spreads it between 0 and the delay.

    Stock ignores both: retries of parallel executions fall on the same instant and wait longer than written.
    """
    states = stock.module("services.stepfunctions")
    stock_find = states._find_matching_retrier
    spread = random.Random()  # noqa: S311  # a delay, not a secret

    def find(retriers: list[Record], error: str, counts: dict[int, int]) -> tuple[Record | None, int]:
        retrier, index = stock_find(retriers, error, counts)
        if retrier is None:
            return retrier, index
        delay = retry_delay(retrier, counts.get(index, 0), spread)
        return {**retrier, "IntervalSeconds": delay, "BackoffRate": 1.0}, index

    states._find_matching_retrier = find


def retry_delay(retrier: Record, attempts: int, spread: random.Random) -> float:
    """Seconds to wait before the next attempt, after `attempts` retries by this retrier."""
    delay: float = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** attempts
    delay = min(delay, retrier.get("MaxDelaySeconds", delay))
    return spread.uniform(0, delay) if retrier.get("JitterStrategy") == "FULL" else delay
