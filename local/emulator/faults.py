"""Rules that make AWS calls and Lambda invocations go wrong, as they do in production and never in an emulator.

A rule is JSON. Its match: `service`, `operation`, `function` (all glob patterns; the caller's Lambda name for
AWS calls), `contains` (texts that all occur in the request's path or body; for an invocation, in its event), `during`
(texts that all occur in the event of the invocation that makes the call), `nth` (only the n-th matching call, from
1; with `limit` also those after it), `probability` and `limit` (at most so many injections). Its action:

| action | effect on an AWS call |
|---|---|
| throttle, TransactionConflict, ProvisionedThroughputExceeded, AccessDenied, InternalServerError | that error |
| timeout | the answer comes `seconds` late, then as a cut connection |
| lost_response | executed, then the connection is cut |
| lost_response_500 | executed, then HTTP 500 |
| duplicate | executed twice, the second answer is returned |
| slow | the answer comes `seconds` late |
| crash | the Lambda that makes the call is killed |

`where` says whether an error (or the crash, or the wait) comes `before` the call is executed (the default) or
`after` it. Service `states-task` is what a Task state calls directly (operations `lambda:invoke`, `sqs:sendMessage`):
errors, `lost_response`, `duplicate` and `slow`. For Lambda invocations, whoever makes them: `kill_before`,
`kill_during` (within `seconds`, random), `kill_after`, `delay` (`seconds`), `invoke_twice` (AWS may repeat an
asynchronous one).
"""

from __future__ import annotations

import itertools
import json
import random
import threading
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

AwsAction = Literal[
    "throttle",
    "TransactionConflict",
    "ProvisionedThroughputExceeded",
    "AccessDenied",
    "InternalServerError",
    "timeout",
    "lost_response",
    "lost_response_500",
    "duplicate",
    "slow",
    "crash",
]
LambdaAction = Literal["kill_before", "kill_during", "kill_after", "delay", "invoke_twice"]
AWS_ACTIONS: frozenset[str] = frozenset(get_args(AwsAction))
LAMBDA_ACTIONS: frozenset[str] = frozenset(get_args(LambdaAction))


class FaultRuleError(ValueError):
    """Raised when a rule names an unknown action or field: a rule that never matches would prove nothing."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a rule is held against. `text` is the request (or the event of an invocation); `event` is that of the
    invocation that makes an AWS call, None when no Lambda makes it."""

    on_lambda: bool
    service: str
    operation: str
    function: str
    text: str = ""
    event: str | None = None


@dataclass(frozen=True, slots=True)
class FaultRule:
    """See the module's table. `service` is AWS's endpoint prefix (`dynamodb`, `states`, `sqs`, `execute-api`)."""

    action: str
    service: str = "*"
    operation: str = "*"
    function: str = "*"
    where: Literal["before", "after"] = "before"
    probability: float = 1.0
    nth: int | None = None
    limit: int | None = None
    seconds: float = 0.0
    contains: tuple[str, ...] = ()
    during: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: dict[str, Any]) -> FaultRule:
        """A rule from its JSON object; `FaultRuleError` names what is wrong."""
        try:
            texts: dict[str, Any] = {
                name: tuple(given[name]) for name in ("contains", "during") if name in given
            }
            rule = cls(**{**given, **texts})
        except TypeError as error:
            raise FaultRuleError(f"{given}: {error}") from error
        if rule.action not in AWS_ACTIONS | LAMBDA_ACTIONS:
            known = ", ".join(sorted(AWS_ACTIONS | LAMBDA_ACTIONS))
            raise FaultRuleError(f"no action {rule.action!r}; known: {known}")
        if rule.where not in ("before", "after"):
            raise FaultRuleError("where is 'before' or 'after'")
        if not 0 <= rule.probability <= 1:
            raise FaultRuleError("probability is between 0 and 1")
        return rule

    @property
    def on_lambda(self) -> bool:
        """Whether it concerns invocations and not AWS calls."""
        return self.action in LAMBDA_ACTIONS

    def matches(self, call: Call) -> bool:
        """Whether names and texts fit; counting and chance come after."""
        return (
            self.on_lambda == call.on_lambda
            and fnmatchcase(call.service, self.service)
            and fnmatchcase(call.operation, self.operation)
            and fnmatchcase(call.function, self.function)
            and all(text in call.text for text in self.contains)
            and (not self.during or call.event is not None)
            and all(text in (call.event or "") for text in self.during)
            and (self.action != "crash" or call.event is not None)
        )


class FaultPlan:
    """The rules in force and what they did. One seeded generator decides every chance and every random time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._rules: dict[str, FaultRule] = {}
        self._seen: dict[str, int] = {}
        self._injected: dict[str, int] = {}
        self._random = random.Random(0)  # noqa: S311  # reproducible faults, not secrets

    def add(self, rule: FaultRule) -> str:
        """Put a rule in force; returns its id."""
        with self._lock:
            identity = f"fault-{next(self._numbers)}"
            self._rules[identity] = rule
            self._seen[identity] = self._injected[identity] = 0
            return identity

    def clear(self, seed: int = 0) -> None:
        """Drop all rules and counts and start the random numbers anew."""
        with self._lock:
            self._rules.clear()
            self._seen.clear()
            self._injected.clear()
            self._random.seed(seed)

    def remove(self, identity: str) -> dict[str, dict[str, Any]]:
        """Drop one rule; its last report, empty when there is no such rule."""
        last = {name: found for name, found in self.report().items() if name == identity}
        with self._lock:
            self._rules.pop(identity, None)
            self._seen.pop(identity, None)
            self._injected.pop(identity, None)
        return last

    def decide(self, call: Call) -> FaultRule | None:
        """The first rule that strikes this call, counted as injected; None when the call is left alone."""
        with self._lock:
            for identity, rule in self._rules.items():
                if rule.matches(call):
                    self._seen[identity] += 1
                    if self._strikes(identity, rule):
                        self._injected[identity] += 1
                        return rule
        return None

    def uniform(self, highest: float) -> float:
        """A reproducible random number between 0 and `highest`."""
        with self._lock:
            return self._random.uniform(0, highest)

    def report(self) -> dict[str, dict[str, Any]]:
        """Per rule id: the rule, how many calls it `matched`, how many it `injected`."""
        with self._lock:
            return {
                identity: {
                    "rule": asdict(rule),
                    "matched": self._seen[identity],
                    "injected": self._injected[identity],
                }
                for identity, rule in self._rules.items()
            }

    def _strikes(self, identity: str, rule: FaultRule) -> bool:
        if rule.limit is not None and self._injected[identity] >= rule.limit:
            return False
        if rule.nth is not None and rule.limit is not None:
            return self._seen[identity] >= rule.nth
        if rule.nth is not None:
            return self._seen[identity] == rule.nth
        return rule.probability >= 1 or self._random.random() < rule.probability


_ERRORS = {
    "throttle": ("ThrottlingException", "Rate exceeded", 400),
    "ProvisionedThroughputExceeded": (
        "ProvisionedThroughputExceededException",
        "The level of configured provisioned throughput for the table was exceeded.",
        400,
    ),
    "AccessDenied": ("AccessDeniedException", "not authorized (injected)", 400),
    "InternalServerError": ("InternalServerError", "Internal server error", 500),
    "lost_response_500": ("InternalServerError", "Internal server error", 500),
}


_INVOKE_ERRORS = {
    "throttle": "Lambda.TooManyRequestsException",
    "AccessDenied": "Lambda.AWSLambdaException",
    "lost_response": "Lambda.SdkClientException",
}
"""What the Lambda integration reports (Step Functions developer guide, Handle transient Lambda service exceptions)."""


def task_error(operation: str, action: str) -> str:
    """The error name a Task state sees, for example `SQS.ThrottlingException`."""
    service = operation.partition(":")[0]
    if action == "timeout":
        return "States.Timeout"
    if service == "lambda":
        return _INVOKE_ERRORS.get(action, "Lambda.ServiceException")
    prefix = {"sqs": "SQS", "dynamodb": "DynamoDB"}.get(service, service)
    return f"{prefix}.{_ERRORS.get(action, _ERRORS['InternalServerError'])[0]}"


def error_answer(action: str, items: int) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the AWS JSON error for an action.

    A TransactionConflict cancels a transaction of `items` items, the first of which is named as the cause; for
    a single-item call (`items` = 0) it is TransactionConflictException.
    """
    document: dict[str, Any]
    if action == "TransactionConflict" and items:
        reasons = [{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}]
        reasons += [{"Code": "None"}] * (items - 1)
        codes = ", ".join(reason["Code"] for reason in reasons)
        message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
        name, status = "TransactionCanceledException", 400
        document = {"__type": name, "message": message, "Message": message, "CancellationReasons": reasons}
    elif action == "TransactionConflict":
        name, status = "TransactionConflictException", 400
        document = {"__type": name, "message": "Transaction is ongoing for the item"}
    else:
        name, message, status = _ERRORS[action]
        document = {"__type": name, "message": message}
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-ErrorType": name}
    return status, headers, json.dumps(document).encode()
