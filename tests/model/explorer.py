"""Breadth-first over every interleaving of the product's own drivers.

A process is a driver of `turngate.protocol`, run over a store that suspends it at each call. To take a step, the driver
is executed again with the answers it got so far and stopped at its next call; the call is then made on the model's
table. Nothing of the protocol is written down a second time: decisions, transactions and their conditions are the
product's. The table applies a transaction with the domain's own `holds` and `applied`.

    state      = (table, time, requests under way, losses left, one local state a process)
    a step     = one read, or one transaction; a read of several items may be torn into one step an item
    a crash    = a process that never steps again. Every prefix of every schedule is a state, each state is checked, and
                 from each table everything still has to be recovered with all processes dead: crash anywhere
    a loss     = the response of a transaction never comes (TransientError); the request itself lands at any later
                 moment, or when the exploration ends, never

Drivers that try again start afresh and remember nothing but how often they tried; the explorer checks that, and uses
it: an attempt whose HEAD has moved on can only fail and start afresh, so it is started afresh at once."""

from __future__ import annotations

import resource
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.model.stepping import FRESH, IDLE, Call, Phase, Ports, StartsAfresh, Suspended
from tests.model.tables import ABSENT, FoundError, Tables
from turngate.domain.transaction import Equals, Key
from turngate.errors import ConditionFailedError, TransientError, TurngateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.model.stepping import Scenario
    from turngate.domain.transaction import Transaction


@dataclass(slots=True)
class Local:
    """Where a process is: in a phase, with answers. `call` is what it does next, None when it has ended."""

    phase: Phase | None
    history: tuple[int, ...]
    call: Call | None
    part: tuple[int | None, ...] = ()
    restarts_on_failure: bool = False
    reads: dict[int, int] = field(default_factory=dict)
    writes: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    head_evt: int | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    texts: tuple[str, ...]
    story: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*self.story, *(f"   ** {text}" for text in self.texts)])


@dataclass(slots=True)
class Exploration:
    scenario: str
    states: int = 0
    transitions: int = 0
    tables: int = 0
    depth: int = 0
    seconds: float = 0.0
    peak_mb: int = 0
    complete: bool = False
    violation: Violation | None = None
    terms: set[str] = field(default_factory=set)

    def line(self) -> str:
        end = "all" if self.complete else "stopped"
        found = "VIOLATION" if self.violation else "0 violations"
        return (
            f"{self.scenario:<34} {self.states:>9} states {self.transitions:>10} transitions {self.tables:>7} tables "
            f"depth {self.depth:>3} {self.seconds:>7.1f} s {self.peak_mb:>5} MB  {end}, {found}"
        )


class Explorer:
    """One exploration of one scenario, with or without a mutation of its transactions."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        mutate: Callable[[Transaction], Transaction] | None = None,
        stories: bool = True,
        observe: Callable[[Transaction], object] | None = None,
    ) -> None:
        self.scenario = scenario
        self.mutate = mutate or (lambda transaction: transaction)
        self.observe = observe or (lambda _: None)
        self.stories = stories
        self.tables = Tables(scenario)
        self.answers: list[tuple[Any, int]] = []
        self.answer_ids: dict[Any, int] = {}
        self.locals: list[list[Local]] = []
        self.local_ids: list[dict[Any, int]] = []
        self.requests: list[Transaction | None] = [None]
        self.request_ids: dict[int, int] = {}
        self.parents: dict[bytes, tuple[bytes, str]] = {}
        self.twins = self._twins()
        names = len(scenario.processes)
        self.shape = struct.Struct(f">IBHB{names}H")

    def _twins(self) -> list[int | None]:
        places = {process.name: place for place, process in enumerate(self.scenario.processes)}
        return [places[p.twin_of] if p.twin_of is not None else None for p in self.scenario.processes]

    # ---- processes

    def answer_id(self, identity: Any, given: Any, now: int) -> int:
        known = self.answer_ids.get((identity, now))
        if known is None:
            known = self.answer_ids[identity, now] = len(self.answers)
            self.answers.append((given, now))
        return known

    def local_id(self, place: int, phase: Phase, history: tuple[int, ...], table: int, now: int) -> int:
        """Where the process is after these answers; follows the process into its next phases while no call is made."""
        outcome = self.execute(phase, history, now)
        while not isinstance(outcome, Call):
            if isinstance(outcome, StartsAfresh):
                return FRESH
            if problems := phase.check(outcome, self.tables.view(table), now):
                raise FoundError(*problems)
            following = phase.then(outcome)
            if following is None:
                return self.known_local(place, ("end",), _ended)
            phase, history = following, ()
            outcome = self.execute(phase, history, now)
        call = outcome
        return self.known_local(
            place, (phase.name, history), lambda: self.suspended(phase, history, call, now)
        )

    def known_local(self, place: int, identity: Any, make: Callable[[], Local]) -> int:
        known = self.local_ids[place].get(identity)
        if known is None:
            known = self.local_ids[place][identity] = len(self.locals[place])
            self.locals[place].append(make())
        return known

    def execute(self, phase: Phase, history: tuple[int, ...], now: int, *, sleeps: bool = False) -> Any:
        """What the driver does after these answers: a call, an outcome, or another attempt."""
        may_read_clock = phase.reads_clock_first or history
        ports = Ports(
            [self.answers[each] for each in history],
            now if may_read_clock else None,
            phase.due,
            sleeps or not phase.forgets,
        )
        try:
            return phase.run(ports)
        except Suspended as suspended:
            return suspended.call
        except StartsAfresh as afresh:
            again, fresh = (
                self.execute(phase, history, now, sleeps=True),
                self.execute(phase, (), now),
            )
            assert again == fresh, f"{phase.name} remembers something between attempts"
            return afresh
        except TransientError:
            return StartsAfresh()  # its state machine or queue tries again
        except TurngateError as error:
            return error

    def suspended(self, phase: Phase, history: tuple[int, ...], call: Call, now: int) -> Local:
        if call.kind != "write":
            return Local(phase, history, call)
        self.observe(call.what)
        transaction = self.mutate(call.what)
        local = Local(phase, history, Call("write", transaction))
        failed = self.answer_id(("doomed",), ConditionFailedError(transaction.name, {}), now)
        if phase.forgets and transaction.name in {"accept", "finish", "human_reply"}:
            after = self.execute(phase, (*history, failed), now)
            local.restarts_on_failure = isinstance(after, StartsAfresh)
        for action in transaction.actions:
            if action.key.sk == "HEAD":
                for term in action.condition:
                    if isinstance(term, Equals) and term.name == "evt":
                        local.head_evt = int(term.value)
        return local

    # ---- steps

    def explore(self, *, max_states: int = 10**9) -> Exploration:
        """Every reachable state, or up to the first objection."""
        began = time.monotonic()
        result = Exploration(self.scenario.name)
        try:
            self._explore(result, max_states)
        except _FoundAt as found:
            result.violation = Violation(found.problems, tuple(self.story(found.state, found.label)))
        result.tables = len(self.tables)
        result.seconds = time.monotonic() - began
        result.peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        return result

    def _explore(self, result: Exploration, max_states: int) -> None:
        processes = self.scenario.processes
        self.locals = [[] for _ in processes]
        self.local_ids = [{} for _ in processes]
        for place, process in enumerate(processes):
            idle = Local(process.start, (), None)
            self.locals[place] = [idle, idle]
        first_table = self.tables.table_id(
            {key: self.tables.item_id(item) for key, item in self.scenario.table.items()}, 0
        )
        start = (first_table, 0, 0, self.scenario.losses, *([IDLE] * len(processes)))
        packed = self.shape.pack(*start)
        seen, frontier = {packed}, [packed]
        while frontier:
            following = []
            for here in frontier:
                try:
                    for after, label in self.steps(self.shape.unpack(here)):
                        result.transitions += 1
                        there = self.shape.pack(*after)
                        if there not in seen:
                            seen.add(there)
                            following.append(there)
                            if self.stories:
                                self.parents[there] = (here, label)
                except _FoundInStep as found:
                    raise _FoundAt(found.problems, here, found.label) from found
                if len(seen) > max_states:
                    result.states = len(seen)
                    return
            frontier = following
            result.depth += 1
            result.states = len(seen)
        result.complete = True

    def steps(self, state: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
        table, moment, request, losses = state[:4]
        where = state[4:]
        if moment + 1 < len(self.scenario.times):
            yield (table, moment + 1, request, losses, *where), "clock"
        if request:
            yield from self.landing(state)
        now = self.scenario.times[moment]
        for place, current in enumerate(where):
            if current == IDLE and not self.may_start(place, where, table, now):
                continue
            try:
                if current in {IDLE, FRESH}:
                    current = self.fresh(place, table, moment, now)  # noqa: PLW2901 - the same process, begun
                local = self.locals[place][current]
                if local.call is None:
                    continue
                for changes in self.step(place, local, state):
                    yield self.moved(state, place, *changes)
            except FoundError as found:
                raise _FoundInStep(tuple(found.args), f"{place}") from found

    def may_start(self, place: int, where: Sequence[int], table: int, now: int) -> bool:
        twin = self.twins[place]
        if twin is not None and where[twin] == IDLE:
            return False
        return self.scenario.processes[place].enabled(self.tables.view(table), now)

    def fresh(self, place: int, table: int, moment: int, now: int) -> int:
        phase = self.scenario.processes[place].start
        identity = ("fresh", moment if phase.reads_clock_first else 0)
        known = self.local_ids[place].get(identity)
        if known is None:
            known = self.local_ids[place][identity] = self.local_id(place, phase, (), table, now)
        return known

    def step(
        self, place: int, local: Local, state: tuple[int, ...]
    ) -> Iterator[tuple[int, int, int, int, str]]:
        """(table, request, losses, local, label) after each way the next call can go."""
        table, moment, request, losses = state[:4]
        now = self.scenario.times[moment]
        call = local.call
        assert call is not None
        if call.kind != "write":
            if self.scenario.torn and call.kind == "get" and len(call.what[1]) > 1:
                yield from (
                    (table, request, losses, after, label)
                    for after, label in self.torn(place, local, table, now)
                )
                return
            memo = (table << 4) | moment
            after = local.reads.get(memo)
            if after is None:
                answer = self.read(call, table, now)
                after = local.reads[memo] = self.local_id(
                    place, local.phase, (*local.history, answer), table, now
                )
            yield table, request, losses, after, "reads"
            return
        memo = (table << 4) | moment
        known = local.writes.get(memo)
        if known is None:
            known = local.writes[memo] = self.written(place, local, table, now)
        result, after, succeeded = known
        yield result, request, losses, after, "writes" if succeeded else "is refused"
        if losses and not request:
            lost = self.answer_id(("lost",), TransientError("lost"), now)
            waiting = self.local_id(place, local.phase, (*local.history, lost), table, now)
            number = self.request_ids.get(id(call.what))
            if number is None:
                number = self.request_ids[id(call.what)] = len(self.requests)
                self.requests.append(call.what)
            yield table, number, losses - 1, waiting, "hears nothing of its write"

    def written(self, place: int, local: Local, table: int, now: int) -> tuple[int, int, bool]:
        assert local.call is not None
        outcome = self.tables.apply(table, local.call.what)
        if isinstance(outcome, ConditionFailedError):
            shown = tuple((name, self.tables.item_id(item)) for name, item in outcome.failed.items())
            answer = self.answer_id(("failed", local.call.what.name, shown), outcome, now)
            return table, self.local_id(place, local.phase, (*local.history, answer), table, now), False
        answer = self.answer_id(("ok",), None, now)
        return outcome, self.local_id(place, local.phase, (*local.history, answer), outcome, now), True

    def landing(self, state: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
        table, moment, request, losses = state[:4]
        transaction = self.requests[request]
        assert transaction is not None
        try:
            outcome = self.tables.apply(table, transaction)
        except FoundError as found:
            raise _FoundInStep(tuple(found.args), "late") from found
        after = table if isinstance(outcome, ConditionFailedError) else outcome
        landed = (after, moment, 0, losses, *self.restarted(state[4:], after))
        yield landed, "late write lands" if after != table else "late write is refused"

    def moved(
        self,
        state: tuple[int, ...],
        place: int,
        table: int,
        request: int,
        losses: int,
        local: int,
        label: str,
    ) -> tuple[tuple[int, ...], str]:
        where = list(state[4:])
        where[place] = local
        places = self.restarted(where, table) if table != state[0] else where
        return (table, state[1], request, losses, *places), f"{place} {label}"

    def restarted(self, where: Sequence[int], table: int) -> list[int]:
        """Attempts that can only fail now, started afresh."""
        evt = self.tables[table].evt
        return [
            FRESH
            if current > FRESH
            and (local := self.locals[place][current]).restarts_on_failure
            and local.head_evt is not None
            and local.head_evt < evt
            else current
            for place, current in enumerate(where)
        ]

    def read(self, call: Call, table: int, now: int) -> int:
        items = self.tables[table].items
        if call.kind == "get":
            wanted: tuple[Key, ...] = call.what[1]
            shown = tuple(items.get(key, ABSENT) for key in wanted)
            return self.got(wanted, shown, now)
        _, pk, options = call.what
        asked = dict(options)
        found = sorted(key.sk for key in items if key.pk == pk and asked["first"] <= key.sk <= asked["last"])
        if asked.get("newest_first"):
            found.reverse()
        rows = [(sk, items[Key(pk, sk)]) for sk in found[: asked["limit"]]]
        given = [{**(self.tables.items[item] or {}), "sk": sk} for sk, item in rows]
        return self.answer_id(("query", tuple(rows)), given, now)

    def got(self, wanted: tuple[Key, ...], shown: tuple[int, ...], now: int) -> int:
        given = {
            key: self.tables.items[item] for key, item in zip(wanted, shown, strict=True) if item != ABSENT
        }
        return self.answer_id(("get", wanted, shown), given, now)

    def torn(self, place: int, local: Local, table: int, now: int) -> Iterator[tuple[int, str]]:
        """Each item of a batch read may be from a moment of its own."""
        assert local.call is not None
        wanted: tuple[Key, ...] = local.call.what[1]
        part = local.part or (None,) * len(wanted)
        for index, key in enumerate(wanted):
            if part[index] is not None:
                continue
            filled = (*part[:index], self.tables[table].items.get(key, ABSENT), *part[index + 1 :])
            if None not in filled:
                answer = self.got(wanted, filled, now)  # type: ignore[arg-type]  # no None is left
                yield (
                    self.local_id(place, local.phase, (*local.history, answer), table, now),
                    "reads the rest",
                )
                continue
            identity = ("part", local.phase.name, local.history, filled)
            made = Local(local.phase, local.history, local.call, filled)
            yield self.known_local(place, identity, lambda made=made: made), f"reads {key.sk}"

    # ---- stories

    def story(self, state: bytes, last: str) -> Iterator[str]:
        steps: list[tuple[bytes, str]] = [(state, last)]
        while state in self.parents:
            state, label = self.parents[state]
            steps.append((state, label))
        for number, (before, label) in enumerate(reversed(steps), 1):
            yield f"{number:>3}. {self.told(self.shape.unpack(before), label)}"

    def told(self, state: tuple[int, ...], label: str) -> str:
        if label == "clock":
            return "time passes"
        if label.startswith("late"):
            request = self.requests[state[2]]
            return f"the lost request ({request.name if request else '?'}) arrives after all: {label}"
        place_text, _, what = label.partition(" ")
        place = int(place_text)
        process = self.scenario.processes[place]
        current = state[4 + place]
        now = self.scenario.times[state[1]]
        if current in {IDLE, FRESH}:
            current = self.fresh(place, state[0], state[1], now)
        local = self.locals[place][current]
        call = local.call
        object_ = ""
        if call is not None and call.kind == "write":
            object_ = f" {call.what.name}"
        elif call is not None and call.kind == "get":
            object_ = " " + ", ".join(key.sk.split("#")[0] for key in call.what[1])
        elif call is not None:
            object_ = " messages"
        return f"{process.name} [{local.phase.name}] {what or 'then'}{object_}"


def _ended() -> Local:
    return Local(None, (), None)


class _FoundInStep(Exception):
    def __init__(self, problems: tuple[str, ...], label: str) -> None:
        self.problems = problems
        self.label = label


class _FoundAt(Exception):
    def __init__(self, problems: tuple[str, ...], state: bytes, label: str) -> None:
        self.problems = problems
        self.state = state
        self.label = label
