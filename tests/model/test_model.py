"""Every interleaving of the small worlds; the large ones are `make test-model` (`python -m tests.model`)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import turngate
from tests.model.explorer import Explorer
from tests.model.guards import ALONE, BEHIND, COVERED, DECISIONS
from tests.model.stepping import Phase, Process, Scenario
from tests.model.switches import off
from tests.model.terms import guard_name
from tests.model.worlds import SMALL
from turngate.domain.transaction import Key, Put, Transaction

REMOVALS = (*ALONE, *COVERED, *BEHIND)
GUARDED_MODULES = (
    "domain/accept.py",
    "domain/begin.py",
    "domain/budget.py",
    "domain/client_events.py",
    "domain/finish.py",
    "domain/handoff.py",
    "domain/rate.py",
    "domain/run_log.py",
    "domain/upkeep.py",
    "protocol/connecting.py",
)


@pytest.mark.invariant("I1", "I2", "I4", "I7", "I8", "I9", "I11", "I12", "I16", "I18", "I20")
@pytest.mark.parametrize("world", SMALL, ids=lambda world: world.name)
def test_no_interleaving_breaks_a_promise(world):
    explored = Explorer(world).explore()
    assert explored.violation is None, str(explored.violation)
    assert explored.complete


@pytest.mark.invariant("I1", "I2", "I4", "I7", "I8", "I9", "I11", "I12", "I16", "I18", "I20")
@pytest.mark.parametrize("removal", REMOVALS, ids=lambda removal: removal.guard)
def test_a_removed_guard_is_missed(removal):
    explored = removal.explore()
    assert explored.violation is not None, f"{removal} survives {explored.states} states"
    assert len(explored.violation.story) > 1


@pytest.mark.invariant("I1", "I4", "I7", "I8", "I20")
@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision_switched_off_is_missed(decision):
    with off(decision):
        explored = Explorer(DECISIONS[decision]).explore(max_states=200_000)
    assert explored.violation is not None


@pytest.fixture(scope="module")
def met():
    """The transactions that the small worlds write, as (guard, kind of term, attribute)."""
    found: set[tuple[str, str, str]] = set()

    def meet(made: Transaction) -> None:
        for action in made.actions:
            for term in action.condition:
                found.add((guard_name(made, action, term), type(term).__name__, getattr(term, "name", "")))

    for world in SMALL:
        Explorer(world, observe=meet).explore(max_states=20_000)
    return found


def test_every_term_of_every_condition_is_on_the_list(met):
    listed = [removal.guard for removal in REMOVALS]
    assert sorted(listed) == sorted({guard for guard, _, _ in met})


def test_the_worlds_reach_every_condition_that_the_source_spells(met):
    """A term written in the source and never met by the model would escape the list."""
    root = Path(turngate.__file__).parent
    terms = {"Absent", "AtLeast", "AtMost", "Equals", "Exists", "OneOf"}
    spelled: set[tuple[str, str]] = set()
    for module in GUARDED_MODULES:
        for node in ast.walk(ast.parse((root / module).read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in terms:
                name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
                spelled.add((node.func.id, str(name)))
    assert spelled
    assert spelled <= {(kind, name) for _, kind, name in met}


class TestTheExplorerItself:
    """A toy of two processes that read and then write: the explorer must find what a careful person finds."""

    KEY = Key("T#acme#C#c", "COUNT")

    def add(self, name: str, guarded: bool) -> Process:
        from turngate.domain.transaction import Absent, Equals  # noqa: PLC0415 - the toy's own conditions

        def run(ports):
            seen = ports.store.get("acme", (self.KEY,)).get(self.KEY)
            count = seen["n"] if seen else 0
            condition = ((Equals("n", count),) if seen else (Absent(),)) if guarded else ()
            put = Put(
                "count", self.KEY, {"n": count + 1, "by": [*(seen["by"] if seen else []), name]}, condition
            )
            ports.store.write("acme", Transaction("count", (put,)))

        return Process(name, Phase(name, run, forgets=False))

    def world(self, *, guarded: bool, count: int = 2) -> Scenario:
        def judge_move(before, after):
            lost = len(before.get(self.KEY, {}).get("by", [])) >= after[self.KEY]["n"]
            return ["an update was lost"] if lost else []

        return Scenario(
            "toy", tuple(self.add(f"p{n}", guarded) for n in range(count)), {}, lambda _: [], judge_move
        )

    def test_it_finds_the_lost_update_by_its_shortest_story(self):
        explored = Explorer(self.world(guarded=False)).explore()
        assert explored.violation is not None
        assert len(explored.violation.story) == 4
        assert "an update was lost" in str(explored.violation)

    def test_it_finds_none_where_there_is_none_and_counts_every_state(self):
        explored = Explorer(self.world(guarded=True)).explore()
        assert explored.violation is None
        assert explored.complete
        # nothing written: 2 x 2 (idle, has read); one has written: 2 x 4 (the other idle, holds the old value, holds
        # the new one, was refused); both have written, in two orders
        assert (explored.tables, explored.states) == (5, 4 + 8 + 2)
