"""The two stores stay equal over random command sequences: what a test shows in memory holds on DynamoDB.

The full run: `TURNGATE_STORE_EXAMPLES=2000 pytest tests/contract/test_stores_agree.py`."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.protocol.emulated_table import create_table, dynamodb_client
from turngate.adapters.dynamodb.store import DynamoDBConversationStore
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.domain import keys
from turngate.domain.transaction import (
    Absent,
    AtLeast,
    AtMost,
    Check,
    Delete,
    Equals,
    Exists,
    Key,
    OneOf,
    Put,
    Transaction,
    Update,
)
from turngate.errors import ConditionFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = int(os.environ.get("TURNGATE_STORE_EXAMPLES", "40"))
STEPS = 40
QUICK = EXAMPLES < 100
TABLE = "agreement"
_serials = itertools.count()

# few names and values: commands meet each other's items all the time
NAMES = ("n", "s", "state", "mode")
ACCOUNT = "acme"
PARTITIONS = (f"T#{ACCOUNT}#C#c1", f"T#{ACCOUNT}#R#r1")
SORT_KEYS = ("HEAD", "MSG#1", "MSG#2", "退货")
SERIAL = Key(PARTITIONS[0], "SERIAL")
EVERYTHING = [SERIAL, *(Key(pk, sk) for pk in PARTITIONS for sk in SORT_KEYS)]
numbers = st.integers(-2, 3)
strings = st.sampled_from(("", "a", "b", "AI", "退", "1"))
scalars = st.one_of(numbers, strings, st.booleans())
values = st.recursive(
    st.one_of(scalars, st.none(), st.binary(max_size=3), st.integers(-(10**30), 10**30)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(NAMES)
items = st.dictionaries(names, values, max_size=4)
terms = st.one_of(
    st.just(Exists()),
    st.just(Absent()),
    st.builds(Absent, names),
    st.builds(Equals, names, scalars),
    st.builds(OneOf, names, st.lists(strings, min_size=1, max_size=3).map(tuple)),
    st.builds(AtMost, names, numbers),
    st.builds(AtLeast, names, numbers),
)
conditions = st.one_of(st.just(()), st.just(()), st.lists(terms, max_size=2).map(tuple))
places = st.sampled_from(EVERYTHING[1:])
due_times = st.none() | st.integers(0, 3)


@st.composite
def actions(draw: st.DrawFn, place: Key, name: str) -> Put | Update | Check | Delete:
    kind = draw(st.sampled_from(("put", "put", "update", "update", "update", "check", "delete")))
    condition = draw(conditions)
    if kind == "put":
        return Put(name, place, owing(place, draw(items), draw(due_times)), condition)
    if kind == "update":
        changes = draw(st.dictionaries(names, values, min_size=1, max_size=3))
        removed = tuple(sorted(draw(st.sets(names, max_size=2)) - set(changes)))
        if draw(st.booleans()):
            removed += keys.DUE_ATTRIBUTES
        return Update(name, place, changes, removed, condition)
    if kind == "check":
        return Check(name, place, condition or (Exists(),))
    return Delete(name, place, condition)


@st.composite
def transactions(draw: st.DrawFn) -> Transaction:
    chosen = draw(st.lists(places, min_size=1, max_size=4, unique=True))
    return Transaction("t", tuple(draw(actions(place, f"a{n}")) for n, place in enumerate(chosen)))


def owing(place: Key, item: dict[str, Any], due: int | None) -> dict[str, Any]:
    return item if due is None else {**item, **keys.due(place, due)}


class Agreement(RuleBasedStateMachine):
    """Each command goes to both stores; answers, refusals and, after every step, the whole tables are equal."""

    dynamodb: DynamoDBConversationStore
    writes = 0
    failures = 0

    def __init__(self) -> None:
        super().__init__()
        self.memory = MemoryConversationStore()
        for place in EVERYTHING:
            self.dynamodb.write(ACCOUNT, Transaction("clear", (Delete("d", place),)))

    def both(self, call: Callable[[Any], Any]) -> Any:
        outcomes = [self.outcome(call, store) for store in (self.memory, self.dynamodb)]
        assert outcomes[0] == outcomes[1]
        return outcomes[0]

    def outcome(self, call: Callable[[Any], Any], store: Any) -> Any:
        try:
            return call(store)
        except ConditionFailedError as failure:
            return ("failed", dict(failure.failed))

    @rule(several=st.lists(transactions(), min_size=1, max_size=6))
    def write(self, several: list[Transaction]) -> None:
        for transaction in several:
            made = transaction
            if len(made.actions) > 1 or isinstance(made.actions[0], Check):
                # DynamoDB answers a repeated request with its earlier success (INVARIANTS, fact 2); the product's
                # transactions never repeat, as each carries an event number or a writer
                serial = Put("serial", SERIAL, {"n": next(_serials)})
                made = Transaction(made.name, (*made.actions, serial))
            outcome = self.both(lambda store, made=made: store.write(ACCOUNT, made))
            type(self).writes += 1
            type(self).failures += outcome is not None
            self.tables_are_equal()

    @rule(chosen=st.lists(places, min_size=1, max_size=8, unique=True))
    def get(self, chosen: list[Key]) -> None:
        self.both(lambda store: store.get(ACCOUNT, chosen))

    @rule(
        pk=st.sampled_from(PARTITIONS),
        first=st.sampled_from((*SORT_KEYS, " ")),
        last=st.sampled_from((*SORT_KEYS, "A", "\U0010ffff")),
        limit=st.integers(1, 4),
        newest_first=st.booleans(),
    )
    def query(self, pk: str, first: str, last: str, limit: int, newest_first: bool) -> None:
        options = {"first": first, "last": last, "limit": limit, "newest_first": newest_first}
        self.both(lambda store: store.query(ACCOUNT, pk, **options))

    @rule(chosen=st.lists(st.tuples(places, items, due_times), max_size=4, unique_by=lambda each: each[0]))
    def put_all(self, chosen: list[tuple[Key, dict[str, Any], int | None]]) -> None:
        batch = [(place, owing(place, item, due)) for place, item, due in chosen]
        self.both(lambda store: store.put_all(ACCOUNT, batch))

    @rule(pk=st.sampled_from(PARTITIONS), until=st.integers(0, 4), limit=st.integers(1, 5))
    def due(self, pk: str, until: int, limit: int) -> None:
        shard = int(keys.due(Key(pk, "HEAD"), 0)["GSI1PK"].removeprefix("DUE#"))
        self.both(lambda store: store.due(shard, until, limit))

    @invariant()
    def tables_are_equal(self) -> None:
        assert self.dynamodb.get(ACCOUNT, EVERYTHING) == self.memory.snapshot()


@pytest.fixture
def store(emulator):
    """A table of its own: the due index is read over all accounts."""
    client = dynamodb_client(emulator)
    create_table(client, TABLE)
    yield DynamoDBConversationStore(client, TABLE)
    client.close()


def test_both_stores_stay_equal_over_random_commands(store, capsys):
    class Against(Agreement):
        pass

    Against.dynamodb = store
    run_state_machine_as_test(
        Against,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=QUICK,
            phases=(Phase.generate,) if QUICK else tuple(Phase),  # shrinking costs minutes here
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    with capsys.disabled():
        print(  # noqa: T201 - the figure of this test
            f"\nstores agree: {Against.writes} writes, {Against.failures} of them refused by a condition"
        )
    assert Against.writes >= 5 * EXAMPLES
    assert 0.1 < Against.failures / Against.writes < 0.9
