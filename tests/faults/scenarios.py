"""Conversations whose every call is a target. Most of the spine is in an ordinary turn; what only trouble reaches
(FailTurn, StartRun, the sweeper) needs a first fault, which belongs to the scenario and not to the cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.faults.bench import QUESTION
from tests.faults.customer import PATIENCE_S, CustomerError
from tests.faults.model_proxy import ModelFault
from tests.faults.places import UNDERSTAND

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.bench import Bench
    from tests.faults.customer import Customer

SECOND = "And for gift cards, {pad}?"
UNCLEAR = "price of Arch 5"
"""Of the phone, or of a part for it: the assistant asks which."""
THINKS_S = 3.0
"""How long the model thinks where a second message has to arrive meanwhile."""


@dataclass(frozen=True)
class Scenario:
    """`play` is what the customer does; `rules` what is broken from the start; `places` whose calls are its cells
    (empty: all that need no trouble to be reached); `thinks` how often the model takes its time; `deadline` whether a
    run ends only by its deadline; `alone` whether no other conversation may run beside it; `ends` how the last run ends
    without a cell's fault."""

    name: str
    play: Callable[[Bench, Customer], None]
    rules: tuple[dict[str, Any], ...] = ()
    thinks: int = 0
    places: tuple[str, ...] = ()
    deadline: bool = False
    alone: bool = False
    ends: str = "completed"

    def model_faults(self) -> list[ModelFault]:
        return [ModelFault("", "understand", "slow", self.thinks, THINKS_S)] if self.thinks else []

    def has(self, place: str) -> bool:
        """Whether the calls of this place are this scenario's."""
        return place in self.places if self.places else place not in AFTER_TROUBLE


AFTER_TROUBLE = frozenset({"FailTurn", "StartRun", "SweepDueItems"})


def ask(_bench: Bench, customer: Customer) -> None:
    customer.say(QUESTION.format(pad=customer.pad))


def overtake(_bench: Bench, customer: Customer) -> None:
    customer.say(QUESTION.format(pad=customer.pad))
    customer.say(SECOND.format(pad=customer.pad), 1)


def burst(_bench: Bench, customer: Customer) -> None:
    customer.say_at_once(
        [QUESTION.format(pad=customer.pad), *["…"] * 3]
    )  # the run of the last one is protected
    customer.say(SECOND.format(pad=customer.pad), 4)


def answer(_bench: Bench, customer: Customer) -> None:
    """Be asked which of two is meant, and say so."""
    customer.say(UNCLEAR)
    if not customer.wait(customer.ended, PATIENCE_S):
        raise CustomerError("was not asked back")
    customer.say("1", 1)


def ask_cold(bench: Bench, customer: Customer) -> None:
    bench.forget_workers("BeginTurn", "Retrieve")
    ask(bench, customer)


_NOT_UNDERSTOOD = {
    "action": "AccessDenied",
    "service": "dynamodb",
    "operation": "BatchWriteItem",
    "during": ("{conversation}", UNDERSTAND),
}
_NOT_STARTED = {
    "action": "AccessDenied",
    "service": "states",
    "operation": "StartExecution",
    "during": ("{message}",),
}
_NOT_ANNOUNCED = {
    "action": "AccessDenied",
    "service": "states-task",
    "operation": "sqs:sendMessage",
    "contains": ("{conversation}",),
}
_NOT_FAILED = {
    "action": "AccessDenied",
    "service": "dynamodb",
    "operation": "BatchGetItem",
    "function": "*-FailTurnFunction-*",
    "during": ("{conversation}",),
}
SCENARIOS = (
    Scenario("turn", ask),
    Scenario("overtaken", overtake, thinks=1, places=("AcceptMessage.overtaking",)),
    Scenario("behind a protected run", burst, thinks=9, places=("AcceptMessage.stored", "CommitTurn")),
    Scenario("answering", answer, places=("ResumePending", "CommitTurn.closing")),
    Scenario("failing", ask, (_NOT_UNDERSTOOD,), places=("FailTurn",), ends="failed"),
    Scenario("unstarted", ask, (_NOT_STARTED,), places=("StartRun", "SweepDueItems")),
    Scenario("unannounced", ask, (_NOT_ANNOUNCED,), places=("SweepDueItems",)),
    Scenario(
        "stuck",
        ask,
        (_NOT_UNDERSTOOD, _NOT_FAILED),
        places=("SweepDueItems",),
        deadline=True,
        ends="timed_out",
    ),
    Scenario("cold", ask_cold, places=("BeginTurn", "Retrieve"), alone=True),
)
