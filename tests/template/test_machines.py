"""The state machines keep the rules of the house; each rule is shown to fail on a machine that breaks it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools import machine_diagrams, machine_rules
from tools.asl import State, machine_files, machine_name, read_machine

ROOT = Path(__file__).resolve().parents[2]
SOUND = ROOT / "tests" / "tools" / "machines" / "statemachines" / "order.asl.yaml"


@pytest.fixture(scope="module")
def product_machines() -> dict[str, State]:
    files = machine_files(ROOT)
    if not files:
        pytest.fail("statemachines/ holds no *.asl.yaml: there is nothing to deploy and nothing to check")
    return {machine_name(path): read_machine(path) for path in files}


def rule_name(rule: machine_rules.Rule) -> str:
    return rule.__name__


@pytest.mark.parametrize("rule", machine_rules.RULES, ids=rule_name)
def test_every_machine_of_the_product_keeps(
    rule: machine_rules.Rule, product_machines: dict[str, State]
) -> None:
    problems = [f"{name}: {text}" for name, machine in product_machines.items() for text in rule(machine)]
    assert problems == []


@pytest.mark.covers("F-663")
def test_every_function_that_a_machine_calls_has_its_folder(product_machines: dict[str, State]) -> None:
    problems = [
        text for machine in product_machines.values() for text in machine_rules.missing_folders(machine, ROOT)
    ]
    assert problems == []


@pytest.mark.covers("F-009")
@pytest.mark.usefixtures("product_machines")
def test_pages_of_the_machines_are_not_stale() -> None:
    stale = [path.relative_to(ROOT).as_posix() for path in machine_diagrams.stale_pages(ROOT)]
    assert stale == [], "run `python -m tools.machine_diagrams`"


@pytest.mark.parametrize("rule", machine_rules.RULES, ids=rule_name)
def test_a_sound_machine_breaks_no_rule(rule: machine_rules.Rule) -> None:
    assert list(rule(read_machine(SOUND))) == []


def put(*path: str | int, value: Any) -> Callable[[State], None]:
    """A change that puts `value` at a place of the machine."""

    def change(machine: State) -> None:
        place: Any = machine
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def drop(*path: str | int) -> Callable[[State], None]:
    """A change that takes a place of the machine away."""

    def change(machine: State) -> None:
        place: Any = machine
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return change


READ = ("States", "ReadOrder")
FAIL = ("States", "FailOrder")
INNER = ("States", "CheckItems", "ItemProcessor", "States")
RETRY = (*READ, "Retry", 0)


@pytest.mark.parametrize(
    ("rule", "change", "problem"),
    [
        (machine_rules.is_valid_asl, put(*READ, "Next", value="Nowhere"), "Nowhere"),
        (machine_rules.is_valid_asl, put(*READ, "ResultPath", value="$.x"), "ResultPath"),
        (machine_rules.is_valid_asl, put("TimeoutSeconds", value="{% 60 %}"), "TimeoutSeconds"),
        (machine_rules.is_valid_asl, drop(*INNER, "CheckItem", "End"), "CheckItem"),
        (machine_rules.says_what_it_is, drop("Comment"), "no Comment"),
        (machine_rules.says_what_it_is, put("QueryLanguage", value="JSONPath"), "not JSONata"),
        (machine_rules.says_what_it_is, put(*READ, "QueryLanguage", value="JSONPath"), "ReadOrder has a"),
        (
            machine_rules.names_are_pascal_case,
            put("States", "read_order", value={"Type": "Succeed"}),
            "read_order is",
        ),
        (
            machine_rules.names_are_pascal_case,
            put(*INNER, "checkItem", value={"Type": "Succeed"}),
            "checkItem is",
        ),
        (
            machine_rules.expressions_parse,
            put(*READ, "Arguments", "Payload", value="{% $states.input.( %}"),
            "States.ReadOrder.Arguments.Payload is not JSONata",
        ),
        (machine_rules.expressions_parse, put(*READ, "Output", value=" {% 1 %}"), "not one expression"),
        (machine_rules.expressions_parse, put(*READ, "Output", value="a {% 1"), "not one expression"),
        (
            machine_rules.expressions_parse,
            put("States", "HasItems", "Choices", 0, "Condition", value="{% $eval('1') %}"),
            "States.HasItems.Choices[0].Condition uses $eval",
        ),
        (
            machine_rules.tasks_have_a_timeout,
            drop(*READ, "TimeoutSeconds"),
            "ReadOrder has no TimeoutSeconds",
        ),
        (
            machine_rules.tasks_have_a_timeout,
            drop(*INNER, "CheckItem", "TimeoutSeconds"),
            "CheckItem has no TimeoutSeconds",
        ),
        (machine_rules.retries_are_named, drop(*READ, "Retry"), "ReadOrder has no Retry"),
        (machine_rules.retries_are_named, put(*RETRY, "ErrorEquals", value=["States.ALL"]), "States.ALL"),
        (
            machine_rules.retries_are_named,
            put(*RETRY, "ErrorEquals", value=["States.TaskFailed"]),
            "States.TaskFailed",
        ),
        (machine_rules.retries_are_named, drop(*RETRY, "BackoffRate"), "no BackoffRate 2.0"),
        (machine_rules.retries_are_named, put(*RETRY, "BackoffRate", value=1.5), "no BackoffRate 2.0"),
        (machine_rules.retries_are_named, drop(*RETRY, "JitterStrategy"), "no JitterStrategy FULL"),
        (machine_rules.errors_have_one_way_out, drop(*READ, "Catch"), "ReadOrder has no Catch"),
        (
            machine_rules.errors_have_one_way_out,
            put(*READ, "Catch", 0, "Next", value="Done"),
            "Done, FailOrder",
        ),
        (
            machine_rules.placeholders_are_spelled_after_states,
            put(*READ, "Arguments", "FunctionName", value="${OtherFunctionArn}"),
            "ReadOrder calls ${OtherFunctionArn}, not ${ReadOrderFunctionArn}",
        ),
        (
            machine_rules.placeholders_are_spelled_after_states,
            put(*READ, "Resource", value="${ReadOrderFunctionArn}"),
            "not arn:aws:states:::lambda:invoke",
        ),
        (
            machine_rules.placeholders_are_spelled_after_states,
            put("States", "Announce", "Arguments", "QueueUrl", value="https://${Queue}"),
            "not one placeholder",
        ),
        (
            machine_rules.placeholders_are_spelled_after_states,
            put("States", "Announce", "Arguments", "QueueUrl", value="arn:aws:sqs:eu-west-1:1:q"),
            "holds an ARN",
        ),
    ],
)
def test_a_machine_that_breaks_a_rule_is_named(
    rule: machine_rules.Rule, change: Callable[[State], None], problem: str
) -> None:
    machine = read_machine(SOUND)
    change(machine)
    assert any(problem in text for text in rule(machine)), list(rule(machine))


def test_tasks_inside_a_map_are_covered_by_the_catch_around_them() -> None:
    machine = read_machine(SOUND)
    drop(*INNER, "CheckItem", "Catch")(machine)
    assert list(machine_rules.errors_have_one_way_out(machine)) == []
    drop("States", "CheckItems", "Catch")(machine)
    assert list(machine_rules.errors_have_one_way_out(machine)) == ["CheckItem has no Catch"]


def with_announcement_after_clean_up() -> State:
    machine = read_machine(SOUND)
    put(*FAIL, "Next", value="Announce")(machine)
    drop("States", "Announce", "Catch")(machine)
    drop("States", "Failed")(machine)
    return machine


def test_what_follows_the_clean_up_needs_no_catch_and_may_have_a_last_resort() -> None:
    machine = with_announcement_after_clean_up()
    assert list(machine_rules.errors_have_one_way_out(machine)) == []
    resort = [{"ErrorEquals": ["States.ALL"], "Next": "Empty"}]
    put("States", "Announce", "Catch", value=resort)(machine)
    put(*FAIL, "Catch", value=resort)(machine)
    assert list(machine_rules.errors_have_one_way_out(machine)) == []


def test_what_follows_the_clean_up_must_not_lead_back_to_it() -> None:
    machine = with_announcement_after_clean_up()
    put("States", "Announce", "Catch", value=[{"ErrorEquals": ["States.ALL"], "Next": "FailOrder"}])(machine)
    problem, *_ = machine_rules.errors_have_one_way_out(machine)
    assert problem.startswith("Catches of the machine lead to FailOrder, not to one state and a last resort")


def test_a_wildcard_may_retry_a_service_but_never_a_function_of_ours() -> None:
    machine = read_machine(SOUND)
    put("States", "Announce", "Retry", 0, "ErrorEquals", value=["States.TaskFailed"])(machine)
    assert list(machine_rules.retries_are_named(machine)) == []
    put(*RETRY, "ErrorEquals", value=["States.TaskFailed"])(machine)
    assert len(list(machine_rules.retries_are_named(machine))) == 1


def test_states_of_the_model_share_its_function() -> None:
    call = {
        "Type": "Task",
        "Resource": machine_rules.LAMBDA_INVOKE,
        "Arguments": {"FunctionName": "${ModelFunctionArn}", "Payload": {"task": "understand"}},
    }
    understand = {"StartAt": "Understand", "States": {"Understand": call}}
    govern = {"StartAt": "Govern", "States": {"Govern": call}}
    rule = machine_rules.placeholders_are_spelled_after_states
    assert list(rule(understand)) == []
    assert list(rule(govern)) == ["Govern calls ${ModelFunctionArn}, not ${GovernFunctionArn}"]


def test_a_function_without_a_folder_is_named(tmp_path: Path) -> None:
    for folder in ("read_order", "check_item"):
        (tmp_path / "functions" / "turn" / folder).mkdir(parents=True)
        (tmp_path / "functions" / "turn" / folder / "handler.py").touch()
    assert list(machine_rules.missing_folders(read_machine(SOUND), tmp_path)) == [
        "FailOrder: there is no functions/*/fail_order/handler.py"
    ]
