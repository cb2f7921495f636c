"""What template.yaml keeps beyond being a valid template: one function per rule, over the template as plain data.

`sam validate --lint` knows nothing of our roles, names, keys and deadlines. A rule yields a sentence for each place
that breaks it."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.asl import read_machine, scopes, strings
from turngate import errors
from turngate.domain.accept import TURN_DEADLINE_MS
from turngate.protocol import asking
from turngate.settings import Settings
from turngate.states import retrieve, shortlisting

if TYPE_CHECKING:
    from collections.abc import Iterator

Template = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
FUNCTION, ROLE, MACHINE = "AWS::Serverless::Function", "AWS::IAM::Role", "AWS::Serverless::StateMachine"
TABLE, INDEX = {"Fn::GetAtt": ["Table", "Arn"]}, {"Fn::Sub": "${Table.Arn}/index/GSI1"}
LAMBDA_ERRORS = {
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "Runtime.ExitError",
}
SQS_ERRORS = {"SQS.AmazonSQSException", "SQS.SdkClientException"}
DATA_ACTIONS = {
    f"dynamodb:{each}"
    for each in ("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")
}
WILDCARDS = {
    ("TurnMachineRole", "logs"): "log delivery knows no narrower resource",
    ("RetrieveRole", "s3"): "every file of the one bucket",
    ("PushEventsRole", "execute-api"): "every socket of the one API and stage",
}
"""(role, service) whose resource may hold a `*`, and why."""
KEYS = {
    "IssueTicket": {"T#*#CFG", "T#*#C#*", "TKT#*"},
    "Authorize": {"TKT#*"},
    "Connect": {"T#*#P#*", "CONN#*"},
    "Disconnect": {"T#*#P#*", "CONN#*"},
    "AcceptMessage": {"T#*#C#*", "T#*#P#*", "T#*#R#*", "CONN#*"},
    "BeginTurn": {"T#*#C#*", "T#*#R#*", "T#*#CFG"},
    "ResumePending": {"T#*#C#*", "T#*#R#*"},
    "Model": {"T#*#R#*"},
    "Govern": set(),
    "Retrieve": {"T#*#R#*"},
    "CommitTurn": {"T#*#C#*", "T#*#R#*"},
    "FailTurn": {"T#*#C#*", "T#*#R#*"},
    "PushEvents": {"T#*#C#*", "T#*#P#*", "CONN#*"},
    "StartRun": set(),
    "SweepDueItems": {"T#*#C#*", "T#*#R#*"},
}
"""Kinds of items each function may touch: the rights column of ARCHITECTURE, and nothing more (rule 9)."""
MORE_SETTINGS = {
    "Authorize": {"oidc_issuer", "oidc_audience", "oidc_jwks_url", "account_claim", "customer_claim"},
    "PushEvents": {"public_http_url"},
}
"""Settings beyond those of the ports that INIT builds: the verifier of tokens is built for the first token."""
ALARMS = {
    "FailedTurnsAlarm": "'MetricName': 'FailedTurns'",
    "UndeliveredPushesAlarm": "EventsToPushDeadLetters",
    "UnstartedRunsAlarm": "RunsToStartDeadLetters",
    "SweeperFindingsAlarm": "SweeperFindings",
    "SweeperStoppedAlarm": "SweepDueItemsFunction",
    "TableThrottlesAlarm": "Table",
    "FunctionThrottlesAlarm": "Throttles",
}
"""Each alarm, and what its definition must mention."""


def resources(template: Template, kind: str) -> dict[str, Any]:
    return {name: each["Properties"] for name, each in template["Resources"].items() if each["Type"] == kind}


def machine_of(template: Template) -> dict[str, Any]:
    (properties,) = resources(template, MACHINE).values()
    return {**properties, "Definition": read_machine(ROOT / properties["DefinitionUri"])}


def statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """(role, statement) of every policy, actions and resources as lists."""
    for name, role in resources(template, ROLE).items():
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, {**statement, **{k: _as_list(statement[k]) for k in ("Action", "Resource")}}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def names_have_their_spellings(template: Template) -> Iterator[str]:
    """`CallTool`: `CallToolFunction`, `${CallToolFunctionArn}`, `functions/*/call_tool/`, and back from the folders."""
    named = set()
    for name, function in resources(template, FUNCTION).items():
        folder = function["CodeUri"]
        named.add(folder)
        if not name.endswith("Function") or not re.fullmatch(
            rf"functions/[a-z]+/{snake(name.removesuffix('Function'))}", folder
        ):
            yield f"{name} has its code in {folder}"
        if not (ROOT / folder / "handler.py").exists():
            yield f"{name}: there is no {folder}/handler.py"
    for handler in sorted((ROOT / "functions").glob("*/*/handler.py")):
        folder = handler.parent.relative_to(ROOT).as_posix()
        if folder not in named:
            yield f"no function has its code in {folder}"


def substitutions_are_what_they_say(template: Template) -> Iterator[str]:
    machine = machine_of(template)
    given = machine["DefinitionSubstitutions"]
    for name, value in given.items():
        wanted = (
            {"Fn::GetAtt": [name.removesuffix("Arn"), "Arn"]}
            if name.endswith("FunctionArn")
            else {"Ref": name.removesuffix("Url")}
        )
        if value != wanted:
            yield f"${{{name}}} is {value}"
    used = {text[2:-1] for _, text in strings(machine["Definition"]) if text.startswith("${")}
    if used != set(given):
        yield f"the machine uses {sorted(used)} and is given {sorted(given)}"


def functions_have_roles_of_their_own(template: Template) -> Iterator[str]:
    users = {**resources(template, FUNCTION), **resources(template, MACHINE)}
    for name, user in users.items():
        own = f"{name.removesuffix('Function')}Role"
        if user.get("Role") != {"Fn::GetAtt": [own, "Arn"]}:
            yield f"{name} has the role {user.get('Role')}, not {own}"
        if "Policies" in user:
            yield f"{name} has policies beside its role"
    wanted = {f"{name.removesuffix('Function')}Role" for name in users}
    for name, role in resources(template, ROLE).items():
        if name not in wanted:
            yield f"{name} belongs to nobody"
        managed = role.get("ManagedPolicyArns", [])
        if managed != ([] if name == "TurnMachineRole" else [{"Ref": "WriteLogs"}]):
            yield f"{name} has the managed policies {managed}"


def rights_have_no_wildcards(template: Template) -> Iterator[str]:
    for role, statement in statements(template):
        services = {action.partition(":")[0] for action in statement["Action"]}
        if any("*" in action for action in statement["Action"]):
            yield f"{role} may do {statement['Action']}"
        for resource in statement["Resource"]:
            if "*" in str(resource) and not all((role, service) in WILDCARDS for service in services):
                yield f"{role} may {sorted(services)} on {resource}"


def data_rights_are_fenced_by_key(template: Template) -> Iterator[str]:
    """IAM fences kinds of items; never Scan, and a request without a key is denied (`Null: false`)."""
    for role, statement in statements(template):
        actions = {action for action in statement["Action"] if action.startswith("dynamodb:")}
        if not actions:
            continue
        if actions - DATA_ACTIONS:
            yield f"{role} may {sorted(actions - DATA_ACTIONS)}"
        if statement["Resource"] == [INDEX]:
            if (role, actions) != ("SweepDueItemsRole", {"dynamodb:Query"}):
                yield f"{role} may {sorted(actions)} on the due index"
            continue
        condition = statement.get("Condition", {})
        keyed = condition.get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys")
        present = condition.get("Null", {}).get("dynamodb:LeadingKeys") == "false"
        if statement["Resource"] != [TABLE] or not keyed or not present or len(condition) != 2:
            yield f"{role} may {sorted(actions)} without a fence: {condition}"


def functions_touch_only_their_kinds_of_items(template: Template) -> Iterator[str]:
    touched: dict[str, set[str]] = {}
    for role, statement in statements(template):
        keys = (
            statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", [])
        )
        touched.setdefault(role, set()).update(keys)
    for name in resources(template, FUNCTION):
        short = name.removesuffix("Function")
        found = touched.get(f"{short}Role", set())
        if found != KEYS.get(short):
            yield f"{name} touches {sorted(found)}, not {KEYS.get(short)}"


def governance_has_no_right(template: Template) -> Iterator[str]:
    """F-093's proof: what decides can reach nothing but its log."""
    role = resources(template, ROLE)["GovernRole"]
    if set(role) != {"AssumeRolePolicyDocument", "ManagedPolicyArns"}:
        yield f"GovernRole has {sorted(role)}"
    function = resources(template, FUNCTION)["GovernFunction"]
    if set(function) - {"CodeUri", "Role"}:
        yield f"GovernFunction has {sorted(function)}"
    logs = template["Resources"]["WriteLogs"]["Properties"]["PolicyDocument"]["Statement"]
    if [(s["Action"], s["Resource"]) for s in logs] != [
        (["logs:CreateLogStream", "logs:PutLogEvents"], {"Fn::GetAtt": ["FunctionLogs", "Arn"]})
    ]:
        yield f"WriteLogs allows {logs}"


def timeouts_nest(template: Template) -> Iterator[str]:
    """Our longest wait < Lambda < Task < the deadline less its reserve < the machine."""
    functions, machine = resources(template, FUNCTION), machine_of(template)["Definition"]
    default = template["Globals"]["Function"]["Timeout"]
    usable = (TURN_DEADLINE_MS - asking.RESERVE_MS) / 1000
    model_ms = shortlisting.MOST_MS + asking.TRIES * asking.CALL_TIMEOUT_MS + asking.MAX_WAIT_MS
    waits = {"Model": model_ms / 1000, "Retrieve": retrieve.VECTOR_MS / 1000}
    for scope in scopes(machine):
        for state, task in scope.states.items():
            placeholder = str(task.get("Arguments", {}).get("FunctionName", ""))
            if not placeholder:
                continue
            name = placeholder[2:].removesuffix("Arn}")
            limit, wait = functions[name].get("Timeout", default), waits.get(name.removesuffix("Function"), 6)
            if not wait < limit < task["TimeoutSeconds"] < usable:
                yield f"{state}: {wait} < {limit} < {task['TimeoutSeconds']} < {usable} does not hold"
    if machine["TimeoutSeconds"] * 1000 != TURN_DEADLINE_MS + 15_000:
        yield f"the machine ends after {machine['TimeoutSeconds']} s"


def queues_have_dead_letters(template: Template) -> Iterator[str]:
    """What fails four times is kept for a person, and no message comes back while it is still being handled."""
    queues, functions = resources(template, "AWS::SQS::Queue"), resources(template, FUNCTION)
    default = template["Globals"]["Function"]["Timeout"]
    for name, function in functions.items():
        for event in function.get("Events", {}).values():
            if event["Type"] != "SQS":
                continue
            queue = queues[event["Properties"]["Queue"]["Fn::GetAtt"][0]]
            target = queue.get("RedrivePolicy", {}).get("deadLetterTargetArn", {}).get("Fn::GetAtt", [""])[0]
            if target not in queues or queues[target].get("MessageRetentionPeriod", 0) < 7 * 86_400:
                yield f"{name}: its queue has no dead letter queue that keeps a week"
            if queue.get("VisibilityTimeout", 30) < 6 * function.get("Timeout", default):
                yield f"{name}: its messages come back while it may still work on them"
            if event["Properties"].get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
                yield f"{name}: one bad record brings the whole batch back"
    for name, queue in queues.items():
        if queue.get("SqsManagedSseEnabled") is not True:
            yield f"{name} is not encrypted"


def logs_expire_and_hold_no_payload(template: Template) -> Iterator[str]:
    for name, group in resources(template, "AWS::Logs::LogGroup").items():
        if "RetentionInDays" not in group:
            yield f"{name} keeps everything for ever"
    config = template["Globals"]["Function"]["LoggingConfig"]
    if config.get("LogGroup") != {"Ref": "FunctionLogs"} or config.get("LogFormat") != "JSON":
        yield f"functions log by {config}"
    for name, function in resources(template, FUNCTION).items():
        if "LoggingConfig" in function:
            yield f"{name} logs somewhere else"
    logging = machine_of(template)["Logging"]
    if logging["IncludeExecutionData"] is not False or "Destinations" not in logging:
        yield f"the machine logs by {logging}"


def alarms_watch_what_they_say(template: Template) -> Iterator[str]:
    alarms = resources(template, "AWS::CloudWatch::Alarm")
    for name, mentioned in ALARMS.items():
        if name not in alarms:
            yield f"there is no {name}"
        elif mentioned not in str(alarms[name]):
            yield f"{name} does not watch {mentioned}"
    for name, alarm in alarms.items():
        if not alarm.get("AlarmDescription") or "AlarmActions" not in alarm:
            yield f"{name} tells nobody what to do"


def retries_name_known_errors(template: Template) -> Iterator[str]:
    """A name that nothing raises is a retry that never happens."""
    for scope in scopes(machine_of(template)["Definition"]):
        for state, task in scope.states.items():
            for error in (e for retry in task.get("Retry", []) for e in retry["ErrorEquals"]):
                ours = getattr(errors, error, None)
                if not (isinstance(ours, type) and issubclass(ours, errors.TransientError)) and (
                    error not in LAMBDA_ERRORS | SQS_ERRORS
                ):
                    yield f"{state} retries {error}"


def environments_are_exactly_what_ports_need(template: Template) -> Iterator[str]:
    known = {each.name for each in fields(Settings)}
    for name, function in resources(template, FUNCTION).items():
        short = name.removesuffix("Function")
        given = {v.lower() for v in function.get("Environment", {}).get("Variables", {})}
        wanted = set(MORE_SETTINGS.get(short, ()))
        for port in warm_ports(ROOT / function["CodeUri"] / "handler.py"):
            wanted |= settings_of_ports()[port]
        if given - known:
            yield f"{name} sets {sorted(given - known)}, which Settings does not know"
        if given != wanted:
            yield f"{name} is given {sorted(given)}, its ports need {sorted(wanted)}"


@cache
def warm_ports(handler: Path) -> tuple[str, ...]:
    """The ports that a handler names in `wiring.live(…)`."""
    for node in ast.walk(ast.parse(handler.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "wiring.live":
            return tuple(str(ast.literal_eval(argument)) for argument in node.args)
    return ()


@cache
def settings_of_ports() -> dict[str, set[str]]:
    """Port name → settings that building it requires, read from wiring.py."""
    wiring = ROOT / "layers" / "turngate" / "turngate" / "wiring.py"
    (ports,) = (
        node
        for node in ast.walk(ast.parse(wiring.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name == "Ports"
    )
    found: dict[str, set[str]] = {}
    for method in (node for node in ports.body if isinstance(node, ast.FunctionDef)):
        text = ast.unparse(method)
        found[method.name] = set(re.findall(r"settings\.require\('(\w+)'\)", text))
    return found


RULES = (
    names_have_their_spellings,
    substitutions_are_what_they_say,
    functions_have_roles_of_their_own,
    rights_have_no_wildcards,
    data_rights_are_fenced_by_key,
    functions_touch_only_their_kinds_of_items,
    governance_has_no_right,
    timeouts_nest,
    queues_have_dead_letters,
    logs_expire_and_hold_no_payload,
    alarms_watch_what_they_say,
    retries_name_known_errors,
    environments_are_exactly_what_ports_need,
)
