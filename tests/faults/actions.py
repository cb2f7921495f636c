"""What can go wrong at a site, as fault rules: the columns of the matrix.

| kind of call | faults |
|---|---|
| read | crash, throttle, ProvisionedThroughputExceeded, access denied, timeout, slow |
| write | those, TransactionConflict, crash and timeout after it, lost response, HTTP 500 after it, duplicate |
| send | as a write, without DynamoDB's own |
| lambda | killed before, during and after its work, held up, invoked twice |
| invoke | throttled, lost response, timeout: where the machine invokes it |

Each once, and where a second try exists also twice in a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.faults.model_proxy import ACTIONS as MODEL_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.faults.sites import Site

READ_TIMEOUT_S = 5.5
"""Longer than the product's clients wait (5 s)."""
SLOW_S = 2.0
HELD_S = 3.0
MODEL_TIMEOUT_S = 21.0
"""Longer than a model call may take (20 s)."""
ONCE, TWICE = 1, 2


@dataclass(frozen=True, slots=True)
class Fault:
    """`action` as the rule language has it; `where` before or after the call."""

    action: str
    where: str = "before"
    seconds: float = 0.0
    times: tuple[int, ...] = (ONCE, TWICE)

    @property
    def label(self) -> str:
        sided = self.action in ("crash", "timeout")
        return f"{self.action} {self.where}" if sided else self.action


_COMMON = (
    Fault("crash"),
    Fault("throttle"),
    Fault("AccessDenied"),
    Fault("timeout", seconds=READ_TIMEOUT_S),
    Fault("slow", seconds=SLOW_S, times=(ONCE,)),
)
_DONE_ANYWAY = (
    Fault("crash", "after"),
    Fault("timeout", "after", READ_TIMEOUT_S),
    Fault("lost_response"),
    Fault("duplicate", times=(ONCE,)),
)
_DYNAMODB = (Fault("ProvisionedThroughputExceeded"),)
FAULTS = {
    "write": (
        *_COMMON,
        *_DONE_ANYWAY,
        *_DYNAMODB,
        Fault("TransactionConflict"),
        Fault("lost_response_500", times=(ONCE,)),
    ),
    "send": (*_COMMON, *_DONE_ANYWAY),
    "read": (*_COMMON, *_DYNAMODB),
    "lambda": (
        Fault("kill_before"),
        Fault("kill_during", seconds=0.15),
        Fault("kill_after"),
        Fault("delay", seconds=HELD_S, times=(ONCE,)),
        Fault("invoke_twice", times=(ONCE,)),
    ),
    "task": (
        Fault("throttle"),
        Fault("AccessDenied"),
        Fault("timeout"),
        Fault("timeout", "after"),
        Fault("lost_response"),
        Fault("duplicate", times=(ONCE,)),
        Fault("slow", seconds=SLOW_S, times=(ONCE,)),
    ),
    "invoke": (Fault("throttle"), Fault("lost_response"), Fault("timeout")),
    "model": tuple(
        Fault(
            action,
            seconds={"slow": SLOW_S, "timeout": MODEL_TIMEOUT_S}.get(action, 0.0),
            times=(ONCE,) if action in ("slow", "duplicate") else (ONCE, TWICE),
        )
        for action in MODEL_ACTIONS
    ),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one site, so many times in a row."""

    site: Site
    fault: Fault
    times: int

    @property
    def label(self) -> str:
        return f"{self.site.label} · {self.fault.label} · {'once' if self.times == ONCE else 'twice'}"

    def rule(self) -> dict[str, Any]:
        """The rule, with markers still in braces. Faults of S3 are XML in life: only those that need no body."""
        return {
            "action": self.fault.action,
            "service": self.site.service,
            "operation": self.site.operation,
            "function": self.site.function,
            "where": self.fault.where,
            "seconds": self.fault.seconds,
            "nth": self.site.nth,
            "limit": self.times,
            "contains": self.site.contains,
            "during": self.site.during,
        }


def cells(sites: Iterable[Site]) -> Iterator[Cell]:
    """The whole matrix."""
    for site in sites:
        for fault in FAULTS[site.kind]:
            for times in fault.times:
                if _meaningful(site, fault):
                    yield Cell(site, fault, times)


def _meaningful(site: Site, fault: Fault) -> bool:
    if site.service != "dynamodb":
        return fault.action not in ("ProvisionedThroughputExceeded", "TransactionConflict")
    return True
