"""An interpreter of the JSONata state language, for exactly what our machines use.

It exists so that a story can run the real ASL file in milliseconds, without AWS and without an emulator that forgives.
Whatever field, type, resource or JSONata result it does not know is an error: a machine that it runs holds no
surprises (https://states-language.net/spec.html, https://docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html).
Everything that passes between states goes through JSON first, as on AWS. Retries are counted and never waited for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from jsonata import Jsonata  # type: ignore[import-untyped]  # has no stubs
from jsonata.jexception import JException  # type: ignore[import-untyped]  # has no stubs
from jsonata.utils import Utils  # type: ignore[import-untyped]  # has no stubs

Json = Any
"""What `json.loads` gives."""
State = Mapping[str, Any]

MAX_PAYLOAD_BYTES = 256 * 1024
LAMBDA_INVOKE = "arn:aws:states:::lambda:invoke"
SEND_MESSAGE = "arn:aws:states:::sqs:sendMessage"
UNCATCHABLE = frozenset({"States.DataLimitExceeded", "States.Runtime"})

_EVERYWHERE = {"Type", "Comment"}
_GOES_ON = {"Next", "End"}
_KNOWN_FIELDS: Mapping[str, set[str]] = {
    "Task": {"Resource", "TimeoutSeconds", "Arguments", "Assign", "Output", "Retry", "Catch", *_GOES_ON},
    "Map": {"MaxConcurrency", "Items", "ItemProcessor", "Output", "Assign", "Retry", "Catch", *_GOES_ON},
    "Pass": {"Output", "Assign", *_GOES_ON},
    "Choice": {"Choices", "Default"},
    "Succeed": {"Output"},
}
_MACHINE_FIELDS = {"Comment", "QueryLanguage", "StartAt", "TimeoutSeconds", "States"}
_PROCESSOR_FIELDS = {"ProcessorConfig", "StartAt", "States"}
_RULE_FIELDS = {"Comment", "Condition", "Next"}
_RETRY_FIELDS = {"ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "JitterStrategy"}
_CATCH_FIELDS = {"Comment", "ErrorEquals", "Output", "Assign", "Next"}


class UnsupportedMachineError(Exception):
    """Raised when a machine uses something this interpreter does not know."""


class StateFailedError(Exception):
    """Raised by a task, or by the interpreter, when a state fails; `error` is its name for Retry and Catch."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        self.cause = cause


class Tasks(Protocol):
    """What the machine reaches. Both raise StateFailedError; `state` is the state that asks."""

    def invoke(self, state: str, function: str, payload: Json) -> Json: ...

    def send(self, state: str, queue_url: str, body: Json) -> None: ...


@dataclass
class Execution:
    """How one run of a machine went. `path` names every state entered, those inside a Map included; `retries` the
    failed attempts that were repeated, as (state, error)."""

    status: Literal["SUCCEEDED", "FAILED"] = "SUCCEEDED"
    output: Json = None
    path: list[str] = field(default_factory=list)
    retries: list[tuple[str, str]] = field(default_factory=list)
    error: str = ""
    cause: str = ""


@dataclass
class _Scope:
    """Variables of one `States` object: an inner one reads the outer ones and never changes them."""

    execution: Execution
    context: Mapping[str, Json]
    variables: dict[str, Json]

    def inner(self, **context: Json) -> _Scope:
        return _Scope(self.execution, {**self.context, **context}, dict(self.variables))


class Interpreter:
    """One machine, ready to run. `substitutions` are its DefinitionSubstitutions."""

    def __init__(self, machine: State, substitutions: Mapping[str, str], tasks: Tasks) -> None:
        self._machine = _substituted(machine, substitutions)
        self._tasks = tasks
        if self._machine.get("QueryLanguage") != "JSONata":
            raise UnsupportedMachineError("only JSONata machines")
        _refuse_unknown("the machine", self._machine, _MACHINE_FIELDS)
        _check_states(self._machine)

    def run(self, started_with: Json, execution_id: str) -> Execution:
        """Run to the end. A failure that nothing catches gives a FAILED execution; a defect of a test raises."""
        execution = Execution()
        given = _through_json(started_with)
        scope = _Scope(execution, {"Execution": {"Id": execution_id, "Input": given}}, {})
        try:
            execution.output = self._run_states(self._machine, given, scope)
        except StateFailedError as failed:
            execution.status, execution.error, execution.cause = "FAILED", failed.error, failed.cause
        return execution

    def _run_states(self, machine: State, given: Json, scope: _Scope) -> Json:
        name = machine["StartAt"]
        while True:
            state = machine["States"][name]
            scope.execution.path.append(name)
            following, given = self._run_state(name, state, given, scope)
            if following is None:
                return given
            name = following

    def _run_state(self, name: str, state: State, given: Json, scope: _Scope) -> tuple[str | None, Json]:
        """The next state, if any, and its input."""
        seen: dict[str, Json] = {"input": given, "context": scope.context}
        attempts: dict[int, int] = {}
        while True:
            try:
                return self._attempt(name, state, seen, scope)
            except StateFailedError as failed:
                if _may_retry(state, failed, attempts):
                    scope.execution.retries.append((name, failed.error))
                    continue
                catcher = _matching(state.get("Catch", []), failed.error)
                if catcher is None:
                    raise
                told = {**seen, "errorOutput": {"Error": failed.error, "Cause": failed.cause}}
                output = (
                    _evaluate(catcher["Output"], told, scope) if "Output" in catcher else told["errorOutput"]
                )
                scope.variables.update(_evaluate(catcher.get("Assign", {}), told, scope))
                return catcher["Next"], output

    def _attempt(
        self, name: str, state: State, seen: dict[str, Json], scope: _Scope
    ) -> tuple[str | None, Json]:
        kind = state["Type"]
        if kind == "Choice":
            for rule in state["Choices"]:
                verdict = _evaluate(rule["Condition"], seen, scope)
                if not isinstance(verdict, bool):
                    raise StateFailedError(
                        "States.QueryEvaluationError", f"{name}: {verdict!r} is no boolean"
                    )
                if verdict:
                    return rule["Next"], seen["input"]
            if "Default" not in state:
                raise StateFailedError("States.NoChoiceMatched", name)
            return state["Default"], seen["input"]
        output = seen["input"]
        if kind in ("Task", "Map"):
            output = self._result_of(name, state, seen, scope)
            seen = {**seen, "result": output}
        assigned = _evaluate(state.get("Assign", {}), seen, scope)  # both see the variables as they were
        output = _evaluate(state["Output"], seen, scope) if "Output" in state else output
        scope.variables.update(assigned)
        return state.get("Next"), _limited(output)

    def _result_of(self, name: str, state: State, seen: dict[str, Json], scope: _Scope) -> Json:
        if state["Type"] == "Map":
            items = _evaluate(state["Items"], seen, scope) if "Items" in state else seen["input"]
            if not isinstance(items, list):
                raise StateFailedError("States.QueryEvaluationError", f"{name}: Items is no array")
            return [
                self._run_states(
                    state["ItemProcessor"], item, scope.inner(Map={"Item": {"Index": index, "Value": item}})
                )
                for index, item in enumerate(items)
            ]
        arguments = _limited(_evaluate(state["Arguments"], seen, scope))
        if state["Resource"] == LAMBDA_INVOKE:
            answer = self._tasks.invoke(name, arguments["FunctionName"], arguments["Payload"])
            return {
                "StatusCode": 200,
                "ExecutedVersion": "$LATEST",
                "Payload": _limited(_through_json(answer)),
            }
        self._tasks.send(name, arguments["QueueUrl"], arguments["MessageBody"])
        return {"MessageId": f"sent-by-{name}"}


def _evaluate(value: Json, seen: Mapping[str, Json], scope: _Scope) -> Json:
    """A template with its `{% … %}` strings evaluated."""
    if isinstance(value, dict):
        return {key: _evaluate(each, seen, scope) for key, each in value.items()}
    if isinstance(value, list):
        return [_evaluate(each, seen, scope) for each in value]
    if not (isinstance(value, str) and value.startswith("{%")):
        return value
    text = value.removeprefix("{%").removesuffix("%}")
    found = _jsonata(text, seen, scope)
    if found is None and not _jsonata(f"$exists({text})", seen, scope):
        raise StateFailedError("States.QueryEvaluationError", f"{value} is undefined")
    return _through_json(found)


def _jsonata(text: str, seen: Mapping[str, Json], scope: _Scope) -> Json:
    try:
        query = Jsonata(text)
        frame = query.create_frame()
        for name, bound in {**scope.variables, "states": seen}.items():
            frame.bind(name, Utils.NULL_VALUE if bound is None else bound)
        return query.evaluate({}, frame)
    except JException as error:
        raise StateFailedError("States.QueryEvaluationError", f"{text}: {error}") from error


def _may_retry(state: State, failed: StateFailedError, attempts: dict[int, int]) -> bool:
    """Whether this state is tried again; `attempts` counts the retries of each retrier."""
    retriers = state.get("Retry", [])
    retrier = _matching(retriers, failed.error)
    if retrier is None:
        return False
    used = attempts.get(number := retriers.index(retrier), 0)
    attempts[number] = used + 1
    return bool(used < retrier["MaxAttempts"])


def _matching(rules: list[State], error: str) -> State | None:
    """The first retrier or catcher whose ErrorEquals holds this error."""
    if error in UNCATCHABLE:
        return None
    names = {error, "States.ALL"}
    if error != "States.Timeout":
        names.add("States.TaskFailed")
    return next((rule for rule in rules if names & set(rule["ErrorEquals"])), None)


def _through_json(value: Json) -> Json:
    """The value as the next state sees it; what has no JSON form is a defect, and raises."""
    return json.loads(json.dumps(value, allow_nan=False))


def _limited(value: Json) -> Json:
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > MAX_PAYLOAD_BYTES:
        raise StateFailedError("States.DataLimitExceeded", f"{size} bytes")
    return value


def _substituted(value: Json, substitutions: Mapping[str, str]) -> Json:
    if isinstance(value, dict):
        return {key: _substituted(each, substitutions) for key, each in value.items()}
    if isinstance(value, list):
        return [_substituted(each, substitutions) for each in value]
    if isinstance(value, str) and value.startswith("${"):
        name = value[2:-1]
        if name not in substitutions:
            raise UnsupportedMachineError(f"nothing to put for {value}")
        return substitutions[name]
    return value


def _refuse_unknown(where: str, mapping: State, known: set[str]) -> None:
    if unknown := sorted(set(mapping) - known):
        raise UnsupportedMachineError(f"{where}: {', '.join(unknown)}")


def _check_states(machine: State) -> None:
    for name, state in machine["States"].items():
        kind = state.get("Type")
        if kind not in _KNOWN_FIELDS:
            raise UnsupportedMachineError(f"{name}: a {kind} state")
        _refuse_unknown(name, state, _KNOWN_FIELDS[kind] | _EVERYWHERE)
        for field_name, known in (
            ("Retry", _RETRY_FIELDS),
            ("Catch", _CATCH_FIELDS),
            ("Choices", _RULE_FIELDS),
        ):
            for number, rule in enumerate(state.get(field_name, [])):
                _refuse_unknown(f"{name}.{field_name}[{number}]", rule, known)
        if kind == "Task" and state["Resource"] not in (LAMBDA_INVOKE, SEND_MESSAGE):
            raise UnsupportedMachineError(f"{name}: resource {state['Resource']}")
        if kind == "Map":
            processor = state["ItemProcessor"]
            _refuse_unknown(f"{name}.ItemProcessor", processor, _PROCESSOR_FIELDS)
            if processor.get("ProcessorConfig", {"Mode": "INLINE"}) != {"Mode": "INLINE"}:
                raise UnsupportedMachineError(f"{name}: only INLINE maps")
            _check_states(processor)
