"""The interpreter behaves as Step Functions does where our machines could notice, and refuses what it does not know."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from tests.machines.interpreter import (
    LAMBDA_INVOKE,
    SEND_MESSAGE,
    Interpreter,
    StateFailedError,
    UnsupportedMachineError,
)


class Scripted:
    """Tasks that answer in order; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = deque(answers)
        self.asked: list[tuple[str, Any]] = []

    def invoke(self, state: str, function: str, payload: Any) -> Any:
        self.asked.append((state, payload))
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def send(self, state: str, queue_url: str, body: Any) -> None:
        self.asked.append((queue_url, body))


def task(**fields: Any) -> dict[str, Any]:
    call = {"FunctionName": "${F}", "Payload": {"given": "{% $states.input %}"}}
    return {"Type": "Task", "Resource": LAMBDA_INVOKE, "Arguments": call, "TimeoutSeconds": 1, **fields}


def machine(**states: dict[str, Any]) -> dict[str, Any]:
    return {"QueryLanguage": "JSONata", "StartAt": next(iter(states)), "States": states}


def run(definition: dict[str, Any], tasks: Scripted, given: Any = None):
    return Interpreter(definition, {"F": "f"}, tasks).run(given, "x")


RETRY = {
    "ErrorEquals": ["Busy"],
    "IntervalSeconds": 1,
    "MaxAttempts": 2,
    "BackoffRate": 2.0,
    "JitterStrategy": "FULL",
}


@pytest.mark.parametrize(
    ("definition", "named"),
    [
        (machine(A=task(End=True, HeartbeatSeconds=3)), "A: HeartbeatSeconds"),
        (machine(A={"Type": "Wait", "Seconds": 1, "End": True}), "A: a Wait state"),
        (
            machine(A=task(End=True, Retry=[{**RETRY, "MaxDelaySeconds": 3}])),
            r"A.Retry\[0\]: MaxDelaySeconds",
        ),
        (
            machine(A=task(End=True, Catch=[{"ErrorEquals": ["X"], "ResultPath": "$.x", "Next": "A"}])),
            "ResultPath",
        ),
        (
            machine(A={"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "A", "Output": 1}]}),
            "Output",
        ),
        (machine(A={**task(End=True), "Resource": "arn:aws:states:::dynamodb:getItem"}), "dynamodb:getItem"),
        (machine(A={"Type": "Map", "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED"}}}), "INLINE"),
        (machine(A={"Type": "Map", "ItemProcessor": machine(B=task(ResultSelector={}))}), "QueryLanguage"),
        ({**machine(A=task(End=True)), "QueryLanguage": "JSONPath"}, "JSONata"),
        ({**machine(A=task(End=True)), "Version": "1.0"}, "Version"),
        (machine(A={**task(End=True), "Arguments": {"FunctionName": "${G}", "Payload": 1}}), "G"),
    ],
)
def test_what_it_does_not_know_is_refused_before_anything_runs(definition, named) -> None:
    with pytest.raises(UnsupportedMachineError, match=named):
        Interpreter(definition, {"F": "f"}, Scripted())


def test_a_retry_ends_after_its_attempts_and_only_for_its_errors() -> None:
    busy = StateFailedError("Busy")
    done = run(machine(A=task(End=True, Retry=[RETRY])), Scripted(busy, busy, {"ok": 1}))
    assert (done.status, done.output["Payload"], done.retries) == (
        "SUCCEEDED",
        {"ok": 1},
        [("A", "Busy")] * 2,
    )
    spent = run(machine(A=task(End=True, Retry=[RETRY])), Scripted(busy, busy, busy, {"never": 1}))
    assert (spent.status, spent.error) == ("FAILED", "Busy")
    other = run(machine(A=task(End=True, Retry=[RETRY])), Scripted(StateFailedError("Other"), {"never": 1}))
    assert (other.status, other.error, other.retries) == ("FAILED", "Other", [])


def test_a_catch_hands_the_error_on_and_cannot_catch_a_payload_that_is_too_large() -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "Output": "{% $states.errorOutput %}", "Next": "B"}]
    definition = machine(A=task(Next="B", Catch=catch), B={"Type": "Succeed"})
    caught = run(definition, Scripted(StateFailedError("Broken", "why")))
    assert (caught.path, caught.output) == (["A", "B"], {"Error": "Broken", "Cause": "why"})
    large = run(definition, Scripted({"text": "x" * 300_000}))
    assert (large.status, large.error) == ("FAILED", "States.DataLimitExceeded")


def test_null_is_a_value_and_undefined_is_an_error() -> None:
    definition = machine(
        A=task(Assign={"kept": "{% $states.result.Payload.kept %}"}, Output="{% $kept_before %}", End=True)
    )
    undefined = run(definition, Scripted({"kept": None}))
    assert undefined.error == "States.QueryEvaluationError"
    definition = machine(
        A=task(Assign={"kept": "{% $states.result.Payload.kept %}"}, Output={}, Next="B"),
        B=task(Output="{% $kept %}", End=True),
    )
    assert run(definition, Scripted({"kept": None}, {})).output is None
    assert run(definition, Scripted({"other": None}, {})).error == "States.QueryEvaluationError"


def test_assign_and_output_see_the_variables_as_they_were() -> None:
    definition = machine(
        A={"Type": "Pass", "Assign": {"n": 1}, "Output": {}, "Next": "B"},
        B={"Type": "Pass", "Assign": {"n": "{% $n + 1 %}"}, "Output": "{% $n %}", "Next": "C"},
        C={"Type": "Pass", "Output": ["{% $states.input %}", "{% $n %}"], "End": True},
    )
    assert run(definition, Scripted()).output == [1, 2]


def test_a_map_keeps_arrays_of_one_and_its_variables_to_itself() -> None:
    inner = {
        "StartAt": "B",
        "States": {"B": task(Assign={"v": "changed"}, Output="{% $states.result.Payload %}", End=True)},
    }
    definition = machine(
        A={"Type": "Pass", "Assign": {"v": "outer"}, "Output": "{% $states.input %}", "Next": "M"},
        M={
            "Type": "Map",
            "Items": "{% $states.input %}",
            "ItemProcessor": inner,
            "Output": {"all": "{% $append([], $states.result[$ != null]) %}", "v": "{% $v %}"},
            "End": True,
        },
    )
    assert run(definition, Scripted({"p": 1}), [1]).output == {"all": [{"p": 1}], "v": "outer"}
    assert run(definition, Scripted(None, {"p": 2}), [1, 2]).output["all"] == [{"p": 2}]
    assert run(definition, Scripted(None), [1]).output["all"] == []
    assert run(definition, Scripted(), {"no": "array"}).error == "States.QueryEvaluationError"


def test_what_cannot_be_written_as_json_is_a_defect() -> None:
    with pytest.raises(TypeError):
        run(machine(A=task(End=True)), Scripted({"set": {1}}))
    with pytest.raises(ValueError, match="Out of range"):
        run(machine(A=task(End=True)), Scripted({"score": float("nan")}))


def test_a_choice_takes_the_first_true_rule_and_nothing_but_booleans() -> None:
    def choose(condition: str, **rest: Any) -> dict[str, Any]:
        rules = [{"Condition": "{% $states.input = 0 %}", "Next": "B"}, {"Condition": condition, "Next": "B"}]
        return machine(
            A={"Type": "Choice", "Choices": rules, **rest}, B={"Type": "Succeed", "Output": "chosen"}
        )

    assert run(choose("{% $states.input = 1 %}"), Scripted(), 1).output == "chosen"
    assert run(choose("{% $states.input = 1 %}"), Scripted(), 2).error == "States.NoChoiceMatched"
    assert run(choose("{% 'yes' %}"), Scripted(), 2).error == "States.QueryEvaluationError"


def test_messages_are_sent_to_their_queue() -> None:
    send = {"Type": "Task", "Resource": SEND_MESSAGE, "End": True}
    tasks = Scripted()
    run(
        machine(A={**send, "Arguments": {"QueueUrl": "q", "MessageBody": "{% $states.input %}"}}),
        tasks,
        {"n": 1},
    )
    assert tasks.asked == [("q", {"n": 1})]
