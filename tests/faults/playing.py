"""Find the sites, play cells (one conversation each, many at a time), and have each judged by the oracle."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.faults.bench import Aim, Bench, newcomer
from tests.faults.model_proxy import ModelFault
from tests.faults.oracle import is_settled, recovery_s, verdict, waited_s
from tests.faults.places import PLACES
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.sites import Site, discover
from tests.protocol.promises import forbidden_moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.faults.actions import Cell
    from tests.faults.customer import Customer
    from turngate.domain.transaction import Item, Key

BY_NAME = {each.name: each for each in SCENARIOS}
SETTLE_S = 330.0
"""A conversation that is not settled by then never will be: 2 x 75 s + 120 s, and a minute for the last push."""
SWEEPER = "SweepDueItems"
LOOK_S, SELDOM_S = 2.0, 12.0
AGED_S = 5.0
MODEL_SITES = (
    ("Understand", "Model", "understand"),
    ("Retrieve", "Retrieve", "embed"),
    ("ComposeReply", "Model", "compose"),
)


@dataclass
class Result:
    cell: Cell
    injected: int
    broken: list[str]
    seconds: float
    recovery: float
    waited: float
    outcome: str
    conversation: str = ""
    items: dict[Key, Item] = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        return self.injected > 0

    def as_json(self) -> dict[str, Any]:
        return {
            "cell": self.cell.label,
            "scenario": self.cell.site.scenario,
            "injected": self.injected,
            "broken": self.broken,
            "seconds": round(self.seconds, 1),
            "recovery": round(self.recovery, 1),
            "waited": round(self.waited, 1),
            "outcome": self.outcome,
            "conversation": self.conversation,
        }


def find_sites(bench: Bench, scenarios: Iterable[Scenario] = SCENARIOS) -> list[Site]:
    """All sites, each in the first scenario that reaches it: every scenario is played once without a cell's fault.
    A file is fetched by a cold start only, so that site belongs to the scenario that makes one."""
    emulator = bench.stack.emulator
    chosen = tuple(scenarios)
    emulator.keep_events()
    already = len(emulator.records())
    with ThreadPoolExecutor(len(chosen)) as pool:
        undisturbed = list(pool.map(lambda each: _undisturbed(bench, each), chosen))
    emulator.keep_events(False)
    records = emulator.records()[already:]
    found: dict[tuple[str, str, str, str], Site] = {}
    for scenario, (markers, tasks) in zip(chosen, undisturbed, strict=True):
        sites = discover(records, markers, bench.functions, scenario.name)
        sites += [
            _model_site(place, bench.functions[function], task, scenario.name)
            for place, function, task in MODEL_SITES
            if task in tasks
        ]
        sites += [_invoke_site(site) for site in sites if site.kind == "lambda" and _in_machine(site.place)]
        for site in sites:
            if scenario.has(site.place) and (site.service != "s3" or scenario.alone):
                found.setdefault(site.signature, site)
    return list(found.values())


def _undisturbed(bench: Bench, scenario: Scenario) -> tuple[dict[str, str], set[str]]:
    """The markers of the conversation, and the tasks its model was asked to do."""
    aim = Aim(bench, list(scenario.rules), scenario.model_faults())
    customer = newcomer(bench, aim)
    try:
        with bench.busy:
            customer.arrive()
            scenario.play(bench, customer)
        items = settle(bench, scenario, customer, hurry=True)
    finally:
        aim.lower()
        customer.leave()
    if broken := verdict(items, customer):
        raise AssertionError(f"{scenario.name}, with nothing broken: {broken}")
    if not outcome(items).endswith(scenario.ends):
        raise AssertionError(
            f"{scenario.name} ended {outcome(items)}: the record would miss what lies behind that"
        )
    return aim.markers, {task for text, task in list(bench.proxy.asked) if customer.pad in text}


def _in_machine(place: str) -> bool:
    return any(each.in_machine for each in PLACES if each.name == place)


def _model_site(place: str, function: str, task: str, scenario: str) -> Site:
    return Site(place, "model", "model", task, "", function, during=("{conversation}",), scenario=scenario)


def _invoke_site(site: Site) -> Site:
    return Site(
        site.place,
        "invoke",
        "states-task",
        "lambda:invoke",
        "",
        "*",
        contains=(site.function, *site.contains),
        scenario=site.scenario,
    )


def play(bench: Bench, cell: Cell, *, hurry: bool = False) -> Result:
    """One cell. `hurry`: the deadline is not waited for (see Bench.age)."""
    scenario = BY_NAME[cell.site.scenario]
    model = scenario.model_faults()
    struck: ModelFault | None = None
    if cell.site.kind == "model":
        struck = _model_fault(bench, cell)
        model = [struck, *model]
        rules = list(scenario.rules)
    else:
        rules = [cell.rule(), *scenario.rules]
    aim = Aim(bench, rules, model)
    if struck is not None and struck.action.startswith("crash"):
        texts = _crash_texts(cell)
        function = cell.site.function
        struck.crash = lambda: bench.stack.emulator.crash(
            function, *[aim.markers.get(text.strip("{}"), text) for text in texts]
        )
    customer = newcomer(bench, aim)
    began = time.monotonic()
    items: dict[Key, Item] = {}
    try:
        with bench.busy:
            customer.arrive()
            scenario.play(bench, customer)
            customer.wait(customer.ended, 4.0)
        items = settle(bench, scenario, customer, hurry)
        injected = struck.injected if struck is not None else aim.injected(0)
        broken = verdict(items, customer)
    except AssertionError as error:
        injected = struck.injected if struck is not None else aim.injected(0)
        broken = [str(error)]
    finally:
        aim.lower()
        customer.leave()
    return Result(
        cell,
        injected,
        broken,
        time.monotonic() - began,
        recovery_s(items),
        waited_s(customer),
        outcome(items),
        customer.conversation,
        items,
    )


def _crash_texts(cell: Cell) -> tuple[str, ...]:
    place = next(each for each in PLACES if each.name == cell.site.place)
    return place.during


def _model_fault(bench: Bench, cell: Cell) -> ModelFault:
    return ModelFault("", cell.site.operation, cell.fault.action, cell.times, cell.fault.seconds)


def settle(bench: Bench, scenario: Scenario, customer: Customer, hurry: bool) -> dict[Key, Item]:
    """Wait until nothing is open, owed or unheard; the conversation's items then. The table is asked seldom: a look
    costs the emulator as much as a state."""
    began = time.monotonic()
    looked = began - 100
    aged = not (hurry and scenario.deadline)
    while True:
        ended = customer.wait(customer.ended, 1.0)
        now = time.monotonic()
        if now - looked > (LOOK_S if ended or hurry else SELDOM_S):
            looked = now
            items = bench.conversation(customer.conversation)
            last = max((item["last"] for key, item in items.items() if key.sk.startswith("EVT#")), default=0)
            if (is_settled(items) and len(customer.frames) >= last) or now - began > SETTLE_S:
                return items
        if hurry and not aged and now - began > AGED_S:
            bench.age(customer.conversation, 80)
            aged = True
        if hurry and now - began > LOOK_S:
            bench.sweep()
        if ended:
            time.sleep(0.5)


def outcome(items: dict[Key, Item]) -> str:
    runs = sorted(
        (each for key, each in items.items() if key.sk.startswith("RUN#")), key=lambda run: run["seq"]
    )
    return ", ".join(run["state"] for run in runs)


def run(
    bench: Bench,
    wanted: list[Cell],
    threads: int,
    *,
    hurry: bool = False,
    minutes: float = 600.0,
    heard: Callable[[Result, int], None] = lambda _result, _count: None,
) -> list[Result]:
    """Play cells until the time is over, in three parts. First those that leave the sweeper alone, under the schedule
    as deployed. Then the sweeper's own: they take away each other's passes, so it comes every ten seconds here instead
    of every minute. Then, one by one, those of scenarios that must be alone. A cell that was not reached is played once
    more: another conversation's fault may have taken its turn."""
    until = time.monotonic() + minutes * 60
    results: list[Result] = []

    def attempt(cell: Cell) -> Result | None:
        if time.monotonic() > until:
            return None
        quick = hurry or cell.site.place == SWEEPER
        first = play(bench, cell, hurry=quick)
        return first if first.reached or first.broken else play(bench, cell, hurry=quick)

    def keep(result: Result | None) -> None:
        if result is not None:
            results.append(result)
            heard(result, len(results))

    alone = [cell for cell in wanted if BY_NAME[cell.site.scenario].alone]
    together = [cell for cell in wanted if not BY_NAME[cell.site.scenario].alone]
    sweepers = [cell for cell in together if cell.site.place == SWEEPER]
    others = [cell for cell in together if cell.site.place != SWEEPER]
    for part, most in (
        ((others + sweepers, threads),) if hurry else ((others, threads), (sweepers, threads // 2))
    ):
        with ThreadPoolExecutor(most) as pool:
            for future in as_completed([pool.submit(attempt, cell) for cell in part]):
                keep(future.result())
    for cell in alone:
        keep(attempt(cell))
    for result in results:
        if (
            result.items and not result.broken
        ):  # whatever was late has come by now: nothing may have moved (I9)
            result.broken += forbidden_moves(result.items, bench.conversation(result.conversation))
    return results
