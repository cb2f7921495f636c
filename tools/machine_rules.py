"""What every state machine of the house keeps, beyond being valid ASL: one function per rule.

A rule takes a parsed machine and yields a sentence for each place that breaks it. They exist because neither
`sam validate` nor cfn-lint looks inside a DefinitionUri file, and the emulator accepts what AWS refuses.
"""

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jsonata import Jsonata  # type: ignore[import-untyped]  # has no stubs
from jsonata.jexception import JException  # type: ignore[import-untyped]  # has no stubs
from statelint.linter import Linter  # type: ignore[import-untyped]  # has no stubs

from tools.asl import EXPRESSION, Scope, State, edges, scopes, strings

PASCAL_CASE = re.compile(r"(?:[A-Z][a-z0-9]+)+")
PLACEHOLDER = re.compile(r"\$\{[A-Z][A-Za-z0-9]*\}")
LAMBDA_INVOKE = "arn:aws:states:::lambda:invoke"
SHARED_FUNCTION = {"Understand": "Model", "PlanToolCall": "Model", "ComposeReply": "Model"}
BACKOFF_RATE = 2.0
# AWS takes JSONata in these; statelint 3.1.0 knows numbers only
NUMERIC_FIELDS = (
    "TimeoutSeconds",
    "HeartbeatSeconds",
    "Seconds",
    "MaxConcurrency",
    "ToleratedFailureCount",
    "ToleratedFailurePercentage",
    "MaxItemsPerBatch",
    "MaxInputBytesPerBatch",
)

Rule = Callable[[State], Iterator[str]]


def is_valid_asl(machine: State) -> Iterator[str]:
    """The structure is what the language allows: fields, types, reachable states (statelint)."""
    readable = copy.deepcopy(machine)
    for scope in scopes(readable):
        for state in scope.states.values():
            _put_numbers_for_expressions(state)
    yield from Linter.validate(readable)


def says_what_it_is(machine: State) -> Iterator[str]:
    """The machine has a Comment and speaks JSONata throughout."""
    if not str(machine.get("Comment", "")).strip():
        yield "the machine has no Comment"
    if machine.get("QueryLanguage") != "JSONata":
        yield "QueryLanguage of the machine is not JSONata"
    for name, state in _states(machine):
        if state.get("QueryLanguage", "JSONata") != "JSONata":
            yield f"{name} has a QueryLanguage of its own"


def names_are_pascal_case(machine: State) -> Iterator[str]:
    """State names are PascalCase, because functions, placeholders and folders are spelled after them."""
    for name, _ in _states(machine):
        if not PASCAL_CASE.fullmatch(name):
            yield f"{name} is not PascalCase"


def expressions_parse(machine: State) -> Iterator[str]:
    """Every `{% … %}` is JSONata that Step Functions would accept; `$eval` does not exist there."""
    for place, text in strings(machine):
        if "{%" not in text and "%}" not in text:
            continue
        match = EXPRESSION.fullmatch(text)
        if not match:
            yield f"{place} is not one expression from '{{%' to '%}}': {text!r}"
            continue
        try:
            Jsonata(match.group(1))
        except JException as error:
            yield f"{place} is not JSONata: {error}"
        if re.search(r"\$eval\b", match.group(1)):
            yield f"{place} uses $eval"


def tasks_have_a_timeout(machine: State) -> Iterator[str]:
    """Every Task says how long it may take: without it, a lost call holds the machine until the end."""
    for name, task in _tasks(machine):
        if "TimeoutSeconds" not in task:
            yield f"{name} has no TimeoutSeconds"


def retries_are_named(machine: State) -> Iterator[str]:
    """Every Task retries, named errors only, with doubling waits and full jitter.

    `States.TaskFailed` would retry what a Lambda of ours refused; an AWS service refuses nothing in that sense.
    """
    for name, task in _tasks(machine):
        if not task.get("Retry"):
            yield f"{name} has no Retry"
    for name, state in _states(machine):
        for index, retry in enumerate(state.get("Retry") or []):
            for error in set(retry.get("ErrorEquals") or []) & _unnamed_errors(state):
                yield f"{name}: Retry[{index}] takes {error}, which names nothing"
            if retry.get("BackoffRate") != BACKOFF_RATE:
                yield f"{name}: Retry[{index}] has no BackoffRate {BACKOFF_RATE}"
            if retry.get("JitterStrategy") != "FULL":
                yield f"{name}: Retry[{index}] has no JitterStrategy FULL"


def errors_have_one_way_out(machine: State) -> Iterator[str]:
    """In a scope, Catches lead to one clean-up state, and every Task before it has one, itself or around it.

    What can only follow the clean-up is past its help: those states may catch into one last resort of their own,
    which must not lead back.
    """
    caught_around: dict[tuple[str, ...], bool] = {}
    for scope in scopes(machine):
        targets = {name: _catch_targets(state) for name, state in scope.states.items()}
        every = sorted(set().union(*targets.values()))
        clean_up = [name for name in every if _is_clean_up(name, targets, scope)]
        if every and not clean_up:
            place = " / ".join(scope.around) or "the machine"
            yield f"Catches of {place} lead to {', '.join(every)}, not to one state and a last resort after it"
        past_help = {name for target in clean_up for name in _reachable(target, scope)}
        inherited = caught_around.get(scope.around, False)
        for name, state in scope.states.items():
            caught = bool(targets[name]) or inherited
            caught_around[(*scope.around, name)] = caught
            if state.get("Type") == "Task" and not caught and name not in past_help:
                yield f"{name} has no Catch"


def placeholders_are_spelled_after_states(machine: State) -> Iterator[str]:
    """A Lambda is called as `${<State>FunctionArn}` by `lambda:invoke`; nothing is pasted in."""
    for place, text in strings(machine):
        if "${" in text and not PLACEHOLDER.fullmatch(text):
            yield f"{place} is not one placeholder: {text!r}"
        if re.search(r"\barn:aws[\w-]*:(?!states:::)", text):
            yield f"{place} holds an ARN: {text!r}"
    for name, task in _tasks(machine):
        resource = str(task.get("Resource", ""))
        if resource != LAMBDA_INVOKE:
            if "lambda" in resource or "${" in resource:
                yield f"{name} calls {resource}, not {LAMBDA_INVOKE}"
            continue
        function = _function_name(task)
        wanted = f"${{{SHARED_FUNCTION.get(name, name)}FunctionArn}}"
        if function != wanted:
            yield f"{name} calls {function}, not {wanted}"


RULES: tuple[Rule, ...] = (
    is_valid_asl,
    says_what_it_is,
    names_are_pascal_case,
    expressions_parse,
    tasks_have_a_timeout,
    retries_are_named,
    errors_have_one_way_out,
    placeholders_are_spelled_after_states,
)


def missing_folders(machine: State, root: Path) -> Iterator[str]:
    """Functions that a machine calls and that have no `functions/<group>/<name>/handler.py`."""
    for name, task in _tasks(machine):
        function = re.fullmatch(r"\$\{(\w+)FunctionArn\}", _function_name(task))
        if not function:
            continue
        folder = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", function.group(1)).lower()
        if not list((root / "functions").glob(f"*/{folder}/handler.py")):
            yield f"{name}: there is no functions/*/{folder}/handler.py"


def _states(machine: State) -> Iterator[tuple[str, State]]:
    for scope in scopes(machine):
        yield from scope.states.items()


def _tasks(machine: State) -> Iterator[tuple[str, State]]:
    yield from ((name, state) for name, state in _states(machine) if state.get("Type") == "Task")


def _catch_targets(state: State) -> set[str]:
    return {edge.target for edge in edges(state) if edge.kind == "catch"}


def _is_clean_up(name: str, targets: dict[str, set[str]], scope: Scope) -> bool:
    after = _reachable(name, scope)
    before = {target for state, found in targets.items() if state not in after for target in found}
    last_resort = {target for state, found in targets.items() if state in after for target in found}
    return before == {name} and name not in last_resort and len(last_resort) <= 1


def _reachable(start: str, scope: Scope) -> set[str]:
    """`start` and every state of the scope that can follow it."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in scope.states and name not in found:
            found.add(name)
            waiting += [edge.target for edge in edges(scope.states[name])]
    return found


def _unnamed_errors(state: State) -> set[str]:
    return {"States.ALL", "States.TaskFailed"} if state.get("Resource") == LAMBDA_INVOKE else {"States.ALL"}


def _function_name(task: State) -> str:
    arguments = task.get("Arguments")
    return str(arguments.get("FunctionName", "")) if isinstance(arguments, dict) else ""


def _put_numbers_for_expressions(value: dict[str, Any]) -> None:
    for key, inner in value.items():
        if key in NUMERIC_FIELDS and isinstance(inner, str) and EXPRESSION.fullmatch(inner):
            value[key] = 1
        elif key == "ItemBatcher" and isinstance(inner, dict):
            _put_numbers_for_expressions(inner)
