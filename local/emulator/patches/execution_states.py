"""Step Functions, how states run and end: timeouts, outputs, retries and rights."""

from __future__ import annotations

import contextvars
import json
import random
import threading
from contextvars import ContextVar
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


_role: ContextVar[str] = ContextVar("role", default="")


@patch("machine-role")
def enforce_the_role_of_machines(context: PatchContext) -> None:
    """A Task may call only what its machine's role allows (lambda, sqs, states and dynamodb integrations).

    AWS assumes the role for each call. Stock calls with no role at all: a forgotten policy would be seen first
    in production.
    """
    if not context.settings.auth:
        return
    states = stock.module("services.stepfunctions")
    stock_task, stock_invoke = states._execute_task, states._invoke_resource

    def task(definition: Record, given: Foreign, record: Record, ctx: Record) -> Foreign:
        machine = states._state_machines.get(record["stateMachineArn"]) or {}
        token = _role.set(machine.get("roleArn", ""))
        try:
            return stock_task(definition, given, record, ctx)
        finally:
            _role.reset(token)

    def invoke(resource: str, given: Foreign) -> Foreign:
        wanted = needed_right(resource, given if isinstance(given, dict) else {}, states)
        if wanted is not None and not _role_allows(states, *wanted):
            action, target = wanted
            service = action.partition(":")[0]
            raise states._ExecutionError(
                _ACCESS_ERRORS[service],
                f"{_role.get()} is not authorized to perform: {action} on resource: {target}",
            )
        return stock_invoke(resource, given)

    states._execute_task, states._invoke_resource = task, invoke


_ACCESS_ERRORS = {
    "lambda": "Lambda.AWSLambdaException",
    "sqs": "SQS.AmazonSQSException",
    "states": "StepFunctions.AccessDeniedException",
    "dynamodb": "DynamoDB.AccessDeniedException",
}


def needed_right(resource: str, given: Record, states: Foreign) -> tuple[str, str] | None:
    """The IAM action and the ARN a Task's resource needs; None for integrations that are not checked here."""
    scope = f"{states.get_region()}:{states.get_account_id()}"
    if ":function:" in resource:
        return "lambda:InvokeFunction", resource
    service, _, operation = resource.partition(":states:::")[2].removesuffix(".sync:2").partition(":")
    match service, operation:
        case "lambda", "invoke":
            name = str(given.get("FunctionName", ""))
            arn = name if name.startswith("arn:") else f"arn:aws:lambda:{scope}:function:{name}"
            return "lambda:InvokeFunction", arn
        case "sqs", "sendMessage":
            queue = str(given.get("QueueUrl", "")).rpartition("/")[2]
            return "sqs:SendMessage", f"arn:aws:sqs:{scope}:{queue}"
        case "states", "startExecution":
            return "states:StartExecution", str(given.get("StateMachineArn", ""))
        case "dynamodb", _:
            table = str(given.get("TableName", ""))
            action = operation[:1].upper() + operation[1:]
            return f"dynamodb:{action}", f"arn:aws:dynamodb:{scope}:table/{table}"
    return None


def _role_allows(states: Foreign, action: str, target: str) -> bool:
    evaluator = stock.module("core.iam_evaluator")
    role, account = _role.get(), states.get_account_id()
    asked = evaluator.EvalContext(
        principal_arn=role,
        principal_type="AssumedRole",
        principal_account=account,
        action=action,
        resource_arn=target,
        region=states.get_region(),
        service_context={},
        principal_keys={},
    )
    policies = evaluator._gather_role_policies(role.rpartition("/")[2], account)
    return bool(evaluator.evaluate(asked, policies).decision == "Allow")
