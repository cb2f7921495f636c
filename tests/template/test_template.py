"""The template keeps the rules of the house; each rule is shown to fail on a template that breaks it."""

from __future__ import annotations

import copy
import io
import os
import subprocess
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from local.deploy import build
from local.emulator.template_file import load_template
from tests.template import template_rules as rules

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROOT = rules.ROOT
SAM = ROOT / ".venvs" / "sam" / "bin" / "sam"
MB = 1024 * 1024
needs_sam = pytest.mark.skipif(not SAM.exists(), reason=".venvs/sam is missing: run `make setup`")


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return load_template(ROOT / "template.yaml")


def rule_name(rule: Any) -> str:
    return str(rule.__name__)


@pytest.mark.parametrize("rule", rules.RULES, ids=rule_name)
def test_the_template_keeps(rule, template) -> None:
    assert list(rule(template)) == []


def at(template: Any, *path: str | int) -> Any:
    for key in path:
        template = template[key]
    return template


def put(*path: str | int, value: Any) -> Callable[[Any], None]:
    def change(template: Any) -> None:
        at(template, *path[:-1])[path[-1]] = value

    return change


def drop(*path: str | int) -> Callable[[Any], None]:
    def change(template: Any) -> None:
        del at(template, *path[:-1])[path[-1]]

    return change


def properties(name: str, *rest: str | int) -> tuple[str | int, ...]:
    return "Resources", name, "Properties", *rest


def statement(role: str, index: int, *rest: str | int) -> tuple[str | int, ...]:
    return properties(role, "Policies", 0, "PolicyDocument", "Statement", index, *rest)


MODEL = statement("ModelRole", 0)
UNFENCED = {"Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": rules.TABLE}


@pytest.mark.parametrize(
    ("rule", "change", "problem"),
    [
        (
            rules.names_have_their_spellings,
            put(*properties("GovernFunction", "CodeUri"), value="functions/turn/retrieve"),
            "GovernFunction has its code in functions/turn/retrieve",
        ),
        (rules.names_have_their_spellings, drop("Resources", "GovernFunction"), "functions/turn/govern"),
        (
            rules.names_have_their_spellings,
            put(*properties("GovernFunction", "CodeUri"), value="functions/pure/govern"),
            "no functions/pure/govern/handler.py",
        ),
        (
            rules.substitutions_are_what_they_say,
            put(
                *properties("TurnMachine", "DefinitionSubstitutions", "GovernFunctionArn"),
                value={"Fn::GetAtt": ["ModelFunction", "Arn"]},
            ),
            "${GovernFunctionArn} is",
        ),
        (
            rules.substitutions_are_what_they_say,
            put(
                *properties("TurnMachine", "DefinitionSubstitutions", "OldFunctionArn"),
                value={"Fn::GetAtt": ["OldFunction", "Arn"]},
            ),
            "OldFunctionArn",
        ),
        (
            rules.functions_have_roles_of_their_own,
            put(*properties("GovernFunction", "Role"), value={"Fn::GetAtt": ["ModelRole", "Arn"]}),
            "not GovernRole",
        ),
        (
            rules.functions_have_roles_of_their_own,
            put(*properties("ModelFunction", "Policies"), value=["AmazonDynamoDBFullAccess"]),
            "ModelFunction has policies",
        ),
        (
            rules.functions_have_roles_of_their_own,
            put(
                *properties("ModelRole", "ManagedPolicyArns"),
                value=["arn:aws:iam::aws:policy/AdministratorAccess"],
            ),
            "AdministratorAccess",
        ),
        (
            rules.functions_have_roles_of_their_own,
            put(
                "Resources",
                "SpareRole",
                value={"Type": rules.ROLE, "Properties": {"ManagedPolicyArns": [{"Ref": "WriteLogs"}]}},
            ),
            "SpareRole belongs to nobody",
        ),
        (rules.rights_have_no_wildcards, put(*MODEL, "Action", value="dynamodb:*"), "ModelRole may do"),
        (rules.rights_have_no_wildcards, put(*MODEL, "Resource", value="*"), "on *"),
        (
            rules.rights_have_no_wildcards,
            put(
                *statement("StartRunRole", 1, "Resource"),
                value={"Fn::Sub": "arn:aws:states:*:*:stateMachine:*"},
            ),
            "StartRunRole may ['states']",
        ),
        (
            rules.data_rights_are_fenced_by_key,
            put(*MODEL, "Action", value=["dynamodb:Scan"]),
            "dynamodb:Scan",
        ),
        (rules.data_rights_are_fenced_by_key, drop(*MODEL, "Condition"), "without a fence"),
        (rules.data_rights_are_fenced_by_key, drop(*MODEL, "Condition", "Null"), "without a fence"),
        (
            rules.data_rights_are_fenced_by_key,
            put(*MODEL, "Condition", "Null", value={"dynamodb:LeadingKeys": "true"}),
            "without a fence",
        ),
        (
            rules.data_rights_are_fenced_by_key,
            put(*MODEL, value={"Effect": "Allow", "Action": "dynamodb:Query", "Resource": rules.INDEX}),
            "ModelRole may ['dynamodb:Query'] on the due index",
        ),
        (
            rules.functions_touch_only_their_kinds_of_items,
            put(*MODEL, "Condition", "ForAllValues:StringLike", "dynamodb:LeadingKeys", value=["T#*"]),
            "ModelFunction touches ['T#*']",
        ),
        (
            rules.governance_has_no_right,
            put(*properties("GovernRole", "Policies"), value=[{"PolicyDocument": {"Statement": [UNFENCED]}}]),
            "GovernRole has",
        ),
        (
            rules.governance_has_no_right,
            put(*properties("GovernFunction", "Environment"), value={"Variables": {"TABLE_NAME": "t"}}),
            "GovernFunction has",
        ),
        (
            rules.governance_has_no_right,
            put(*properties("WriteLogs", "PolicyDocument", "Statement"), value=[UNFENCED]),
            "WriteLogs allows",
        ),
        (rules.timeouts_nest, put(*properties("ModelFunction", "Timeout"), value=50), "Understand: "),
        (rules.timeouts_nest, put(*properties("ModelFunction", "Timeout"), value=40), "ComposeReply: "),
        (rules.timeouts_nest, put("Globals", "Function", "Timeout", value=5), "Govern: "),
        (
            rules.queues_have_dead_letters,
            drop(*properties("EventsToPushQueue", "RedrivePolicy")),
            "PushEventsFunction",
        ),
        (
            rules.queues_have_dead_letters,
            put(*properties("RunsToStartDeadLetters", "MessageRetentionPeriod"), value=60),
            "StartRunFunction",
        ),
        (
            rules.queues_have_dead_letters,
            put(*properties("EventsToPushQueue", "VisibilityTimeout"), value=30),
            "come back while",
        ),
        (
            rules.queues_have_dead_letters,
            drop(*properties("StartRunFunction", "Events", "Orders", "Properties", "FunctionResponseTypes")),
            "whole batch",
        ),
        (
            rules.queues_have_dead_letters,
            drop(*properties("EventsToPushQueue", "SqsManagedSseEnabled")),
            "not encrypted",
        ),
        (
            rules.logs_expire_and_hold_no_payload,
            drop(*properties("FunctionLogs", "RetentionInDays")),
            "FunctionLogs keeps",
        ),
        (
            rules.logs_expire_and_hold_no_payload,
            put(*properties("TurnMachine", "Logging", "IncludeExecutionData"), value=True),
            "the machine logs",
        ),
        (
            rules.logs_expire_and_hold_no_payload,
            put(*properties("GovernFunction", "LoggingConfig"), value={"LogFormat": "Text"}),
            "GovernFunction logs",
        ),
        (
            rules.logs_expire_and_hold_no_payload,
            drop("Globals", "Function", "LoggingConfig", "LogGroup"),
            "functions log by",
        ),
        (
            rules.alarms_watch_what_they_say,
            drop("Resources", "SweeperStoppedAlarm"),
            "there is no SweeperStoppedAlarm",
        ),
        (
            rules.alarms_watch_what_they_say,
            put(*properties("FailedTurnsAlarm", "MetricName"), value="Invocations"),
            "FailedTurnsAlarm does not watch",
        ),
        (
            rules.alarms_watch_what_they_say,
            drop(*properties("TableThrottlesAlarm", "AlarmDescription")),
            "tells nobody",
        ),
        (
            rules.environments_are_exactly_what_ports_need,
            put(*properties("RetrieveFunction", "Environment", "Variables", "MODEL_API_KEY"), value="k"),
            "RetrieveFunction is given",
        ),
        (
            rules.environments_are_exactly_what_ports_need,
            drop(*properties("AcceptMessageFunction", "Environment", "Variables", "TURN_MACHINE_ARN")),
            "AcceptMessageFunction is given",
        ),
        (
            rules.environments_are_exactly_what_ports_need,
            put(*properties("ConnectFunction", "Environment", "Variables", "TABLE"), value="t"),
            "which Settings does not know",
        ),
    ],
)
def test_a_template_that_breaks_a_rule_is_named(rule, change, problem, template) -> None:
    broken = copy.deepcopy(template)
    change(broken)
    found = list(rule(broken))
    assert any(problem in text for text in found), found


def test_a_retry_of_an_error_that_nobody_raises_is_named(template, tmp_path) -> None:
    machine = (ROOT / "statemachines" / "turn.asl.yaml").read_text(encoding="utf-8")
    broken = copy.deepcopy(template)
    for written, named in (
        ("TimeoutError", "TimeoutError"),
        ("BrokenInvariantError", "BrokenInvariantError"),
    ):
        path = tmp_path / f"{named}.asl.yaml"
        path.write_text(machine.replace("ContentionError", written), encoding="utf-8")
        at(broken, *properties("TurnMachine"))["DefinitionUri"] = str(path)
        assert f"Govern retries {named}" in list(rules.retries_name_known_errors(broken))


def test_every_port_of_a_handler_can_be_built_from_settings_that_exist() -> None:
    ports = rules.settings_of_ports()
    assert ports["model"] == {"model_base_url", "model_name", "model_api_key"}
    for handler in (ROOT / "functions").glob("*/*/handler.py"):
        assert set(rules.warm_ports(handler)) <= set(ports), handler


def validate(template: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "SAM_CLI_TELEMETRY": "0",
    }
    command = [str(SAM), "validate", "--lint", "--template-file", str(template)]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - the pinned SAM CLI


@needs_sam
def test_sam_finds_nothing_to_say_about_the_template_and_would_have(tmp_path) -> None:
    sound = validate(ROOT / "template.yaml", tmp_path)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    broken = tmp_path / "template.yaml"
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    broken.write_text(text.replace("VisibilityTimeout: 60", "VisibilityTimeOut: 60", 1), encoding="utf-8")
    assert validate(broken, tmp_path).returncode != 0


@pytest.fixture(scope="module")
def built() -> Path:
    return build(ROOT / "template.yaml", ROOT / ".build" / "stack").parent


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def zipped_size_of(folder: Path) -> int:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return written.tell()


@needs_sam
def test_layers_and_functions_stay_within_their_sizes(built, template) -> None:
    """BUDGETS: base at most 12 MB zipped; a function 60 MB unzipped, with the embedded search engine 130."""
    assert zipped_size_of(built / "BaseLayer") <= 12 * MB
    common = [each["Ref"] for each in template["Globals"]["Function"]["Layers"]]
    for name, function in rules.resources(template, rules.FUNCTION).items():
        layers = {*common, *(each["Ref"] for each in function.get("Layers", []))}
        size = size_of(built / name) + sum(size_of(built / layer) for layer in layers)
        assert size_of(built / name) > 0, name
        assert size <= (130 if "SearchLayer" in layers else 60) * MB, f"{name}: {size / MB:.1f} MB"
