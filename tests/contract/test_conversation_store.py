"""The one table: the DynamoDB adapter (on the emulator) and the memory adapter keep the same promises.

What only DynamoDB can answer (throttling, conflicts, a broken connection) is answered to the real client by botocore's
`before-send` hook, below the adapter: parsing, error classes and retries off are the real ones."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ReadTimeoutError

from tests.contract.conftest import TABLE
from tests.protocol.emulated_table import dynamodb_client
from turngate.adapters.dynamodb.store import DynamoDBConversationStore
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.domain import keys
from turngate.domain.fence import NO_ACCOUNT
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
from turngate.errors import BrokenInvariantError, ConditionFailedError, ContentionError, TransientError

_numbers = itertools.count()


@pytest.fixture
def account():
    """A name no other test used: the DynamoDB table is shared."""
    return f"acme{next(_numbers)}"


@pytest.fixture(params=["memory", "dynamodb"])
def store(request):
    if request.param == "memory":
        return MemoryConversationStore()
    return DynamoDBConversationStore(request.getfixturevalue("dynamodb"), TABLE)


def key(account: str, sk: str = "A", partition: str = "C#c1") -> Key:
    return Key(f"T#{account}#{partition}", sk)


def put(store, account: str, item, sk: str = "A") -> Key:
    where = key(account, sk)
    store.put_all(account, [(where, item)])
    return where


def read(store, account: str, where: Key):
    return store.get(account, [where]).get(where)


ITEM = {"n": 5, "s": "five", "t": True, "state": "queued"}
HOLDS = {
    "exists": (Exists(),),
    "absent attribute": (Absent("nowhere"),),
    "equal number": (Equals("n", 5),),
    "equal string": (Equals("s", "five"),),
    "equal bool": (Equals("t", True),),
    "one of": (OneOf("state", ("running", "queued")),),
    "at most, equal": (AtMost("n", 5),),
    "at most, less": (AtMost("n", 6),),
    "at least, equal": (AtLeast("n", 5),),
    "at least, more": (AtLeast("n", 4),),
    "all of several": (Equals("n", 5), Exists(), Absent("x"), OneOf("s", ("five",))),
}
FAILS = {
    "absent item": (Absent(),),
    "absent attribute": (Absent("n"),),
    "other number": (Equals("n", 6),),
    "number as string": (Equals("n", "5"),),
    "string as number": (Equals("s", 5),),
    "true is not one": (Equals("t", 1),),
    "one is not true": (Equals("n", True),),
    "missing attribute": (Equals("x", 5),),
    "none of": (OneOf("state", ("running", "done")),),
    "one of, missing": (OneOf("x", ("running",)),),
    "at most, more": (AtMost("n", 4),),
    "at most, missing": (AtMost("x", 4),),
    "at most, not a number": (AtMost("s", 4),),
    "at most, a bool": (AtMost("t", 4),),
    "at least, less": (AtLeast("n", 6),),
    "at least, missing": (AtLeast("x", 0),),
    "at least, not a number": (AtLeast("s", 0),),
    "one of several": (Equals("n", 5), Equals("s", "six")),
}


class TestConditions:
    @pytest.mark.parametrize("condition", HOLDS.values(), ids=HOLDS)
    def test_a_write_happens_when_its_condition_holds(self, store, account, condition):
        where = put(store, account, ITEM)
        store.write(account, Transaction("t", (Update("u", where, {"new": 1}, condition=condition),)))
        assert read(store, account, where) == {**ITEM, "new": 1}

    @pytest.mark.parametrize("together", [False, True], ids=["alone", "in a transaction"])
    @pytest.mark.parametrize("condition", FAILS.values(), ids=FAILS)
    def test_a_failed_condition_writes_nothing_and_shows_the_item(self, store, account, condition, together):
        where, other = put(store, account, ITEM), key(account, "B")
        actions = (Update("u", where, {"new": 1}, condition=condition),)
        if together:
            actions = (Put("other", other, {"x": 1}), *actions)
        with pytest.raises(ConditionFailedError) as failure:
            store.write(account, Transaction("t", actions))
        assert failure.value.transaction == "t"
        assert failure.value.failed == {"u": ITEM}
        assert store.get(account, [where, other]) == {where: ITEM}

    @pytest.mark.parametrize("together", [False, True], ids=["alone", "in a transaction"])
    @pytest.mark.parametrize(
        "term",
        [Exists(), Equals("n", 5), OneOf("s", ("a",)), AtMost("n", 5), AtLeast("n", 0)],
        ids=lambda term: type(term).__name__,
    )
    def test_a_term_on_an_item_that_does_not_exist_is_false(self, store, account, term, together):
        where, other = key(account), key(account, "B")
        actions = (Update("u", where, {"new": 1}, condition=(term,)),)
        if together:
            actions = (*actions, Put("other", other, {"x": 1}))
        with pytest.raises(ConditionFailedError) as failure:
            store.write(account, Transaction("t", actions))
        assert failure.value.failed == {"u": None}
        assert store.get(account, [where, other]) == {}

    @pytest.mark.parametrize("term", [Absent(), Absent("n")], ids=["item", "attribute"])
    def test_absent_holds_for_an_item_that_does_not_exist(self, store, account, term):
        where = key(account)
        store.write(account, Transaction("t", (Update("u", where, {"n": 1}, condition=(term,)),)))
        assert read(store, account, where) == {"n": 1}


class TestTransactions:
    def test_all_actions_apply_together(self, store, account):
        a, b, c, d = (put(store, account, {"v": sk}, sk) for sk in "ABCD")
        new = key(account, "E")
        store.write(
            account,
            Transaction(
                "t",
                (
                    Put("put", new, {"v": "new"}, (Absent(),)),
                    Update("update", a, {"w": 1}, remove=("v",), condition=(Exists(),)),
                    Delete("delete", b, (Equals("v", "B"),)),
                    Check("check", c, (Equals("v", "C"),)),
                    Put("replace", d, {"only": "this"}),
                ),
            ),
        )
        assert store.get(account, [a, b, c, d, new]) == {
            a: {"w": 1},
            c: {"v": "C"},
            d: {"only": "this"},
            new: {"v": "new"},
        }

    def test_every_failed_action_is_named_and_only_those(self, store, account):
        a, b = put(store, account, {"v": 1}, "A"), put(store, account, {"v": 2}, "B")
        missing = key(account, "C")
        with pytest.raises(ConditionFailedError) as failure:
            store.write(
                account,
                Transaction(
                    "t",
                    (
                        Update("fine", a, {"w": 1}, condition=(Equals("v", 1),)),
                        Check("check", b, (Equals("v", 3),)),
                        Delete("gone", missing, (Exists(),)),
                    ),
                ),
            )
        assert failure.value.failed == {"check": {"v": 2}, "gone": None}
        assert read(store, account, a) == {"v": 1}

    @pytest.mark.parametrize("condition", [(Equals("v", 1),), (Equals("v", 2),)], ids=["holds", "fails"])
    def test_a_check_alone_requires_and_writes_nothing(self, store, account, condition):
        where = put(store, account, {"v": 1})
        transaction = Transaction("t", (Check("check", where, condition),))
        if condition == (Equals("v", 1),):
            store.write(account, transaction)
        else:
            with pytest.raises(ConditionFailedError) as failure:
                store.write(account, transaction)
            assert failure.value.failed == {"check": {"v": 1}}
        assert read(store, account, where) == {"v": 1}

    def test_an_action_alone_may_put_update_and_delete(self, store, account):
        where = key(account)
        store.write(account, Transaction("t", (Put("p", where, {"v": 1}, (Absent(),)),)))
        with pytest.raises(ConditionFailedError) as again:
            store.write(account, Transaction("t", (Put("p", where, {"v": 2}, (Absent(),)),)))
        assert again.value.failed == {"p": {"v": 1}}
        store.write(account, Transaction("t", (Update("u", where, {}, ("v",), (Exists(),)),)))
        assert read(store, account, where) == {}
        with pytest.raises(ConditionFailedError):
            store.write(account, Transaction("t", (Delete("d", where, (Exists(), Equals("v", 1))),)))
        store.write(account, Transaction("t", (Delete("d", where, (Exists(),)),)))
        store.write(account, Transaction("t", (Delete("d", where),)))
        assert read(store, account, where) is None

    def test_an_unconditional_update_creates_its_item(self, store, account):
        where = key(account)
        store.write(account, Transaction("t", (Update("u", where, {"stopped": "why"}),)))
        assert read(store, account, where) == {"stopped": "why"}

    @pytest.mark.parametrize(
        "sks", [[], ["A", "A"], [f"{n:03d}" for n in range(101)]], ids=["empty", "same item twice", "101"]
    )
    def test_a_transaction_no_store_can_do_is_our_own_mistake(self, store, account, sks):
        actions = tuple(Put(f"p{n}", key(account, sk), {}) for n, sk in enumerate(sks))
        with pytest.raises(BrokenInvariantError):
            store.write(account, Transaction("t", actions))

    def test_a_hundred_actions_are_one_transaction(self, store, account):
        wanted = [key(account, f"{n:03d}") for n in range(100)]
        store.write(account, Transaction("t", tuple(Put(k.sk, k, {"n": 1}, (Absent(),)) for k in wanted)))
        assert len(store.get(account, wanted)) == 100

    def test_of_many_writers_with_the_same_condition_one_wins(self, store, account):
        where, count = put(store, account, {"v": 0}), 24

        def write(n: int) -> bool:
            both = (
                Update("u", where, {"v": 1, "by": n}, condition=(Equals("v", 0),)),
                Put("mine", key(account, f"W{n:02d}"), {"n": n}, (Absent(),)),
            )
            try:
                store.write(account, Transaction("t", both))
            except (ConditionFailedError, ContentionError):
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            won = [n for n, ok in enumerate(pool.map(write, range(count))) if ok]
        assert len(won) == 1
        seen = store.get(account, [where, *(key(account, f"W{n:02d}") for n in range(count))])
        assert seen == {where: {"v": 1, "by": won[0]}, key(account, f"W{won[0]:02d}"): {"n": won[0]}}


class TestValues:
    VALUES = (
        "",
        "退货需要几天？ 🙂 \u0000 \u2028",
        0,
        -(10**18),
        10**37,
        True,
        False,
        None,
        b"",
        b"\x00\xff",
        [],
        {},
        [1, "two", None, [b"3", {"four": [True]}]],
        {"": 1, "中文": {"deep": [{"er": None}]}, "a.b": "dots", "#": "hash"},
    )

    @pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:24])
    def test_every_value_comes_back_as_it_was_written(self, store, account, value):
        where = key(account)
        store.write(account, Transaction("t", (Put("p", where, {"v": value, "other": 1}),)))
        assert read(store, account, where) == {"v": value, "other": 1}
        store.write(account, Transaction("t", (Update("u", where, {"again": value}),)))
        seen = read(store, account, where)
        assert seen == {"v": value, "other": 1, "again": value}
        assert type(seen["again"]) is type(value)

    def test_reserved_words_are_names_like_others(self, store, account):
        where = put(store, account, {"name": "n", "state": "s", "data": "d", "ttl": 5, "at": 1})
        condition = (Equals("name", "n"), OneOf("state", ("s",)), AtLeast("ttl", 5), Absent("size"))
        store.write(account, Transaction("t", (Update("u", where, {"size": 1}, ("data",), condition),)))
        assert read(store, account, where) == {"name": "n", "state": "s", "ttl": 5, "at": 1, "size": 1}

    def test_what_a_caller_does_to_its_items_changes_nothing_stored(self, store, account):
        item = {"v": [1]}
        where = put(store, account, item)
        item["v"].append(2)
        read(store, account, where)["v"].append(3)
        assert read(store, account, where) == {"v": [1]}

    def test_a_float_is_refused(self, store, account):
        with pytest.raises(BrokenInvariantError):
            store.write(account, Transaction("t", (Put("p", key(account), {"v": {"deep": [0.1]}}),)))


class TestReading:
    def test_get_returns_those_that_exist(self, store, account):
        a = put(store, account, {"v": 1}, "A")
        elsewhere = Key(f"T#{account}#C#c2", "A")
        store.put_all(account, [(elsewhere, {"v": 2})])
        wanted = [a, key(account, "B"), elsewhere]
        assert store.get(account, wanted) == {a: {"v": 1}, elsewhere: {"v": 2}}
        assert store.get(account, [key(account, "B")]) == {}

    def test_query_gives_a_range_in_key_order_with_both_ends(self, store, account):
        for n in (3, 1, 10, 2, 7):
            put(store, account, {"n": n}, keys.message_sk(n, "U"))
        put(store, account, {"n": 99}, "HEAD")
        pk = key(account).pk

        def found(**options):
            return [(item["n"], item["sk"]) for item in store.query(account, pk, **options)]

        everything = {"first": "MSG#", "last": "MSG#~"}
        assert [n for n, _ in found(**everything, limit=10)] == [1, 2, 3, 7, 10]
        assert [n for n, _ in found(**everything, limit=2)] == [1, 2]
        assert [n for n, _ in found(**everything, limit=3, newest_first=True)] == [10, 7, 3]
        ends = {"first": keys.message_sk(2, "U"), "last": keys.message_sk(7, "U")}
        assert found(**ends, limit=10) == [(n, keys.message_sk(n, "U")) for n in (2, 3, 7)]
        assert found(first="X", last="Y", limit=10) == []
        assert found(first="Y", last="X", limit=10) == []

    def test_query_stays_in_its_partition(self, store, account):
        put(store, account, {"v": 1}, "A")
        store.put_all(account, [(Key(f"T#{account}#C#c10", "A"), {"v": 2})])
        assert [
            item["v"] for item in store.query(account, f"T#{account}#C#c1", first="A", last="Z", limit=9)
        ] == [1]

    def test_keys_sort_by_their_utf8_bytes(self, store, account):
        names = ["z", "é", "中", "a", "😀", "~"]
        for name in names:
            put(store, account, {"name": name}, f"X#{name}")
        found = store.query(account, key(account).pk, first="X#", last="X#\U0010ffff", limit=9)
        assert [item["name"] for item in found] == sorted(names, key=str.encode)

    def test_a_write_is_seen_by_the_next_read(self, store, account):
        where = key(account)
        for n in range(20):
            store.write(account, Transaction("t", (Update("u", where, {"n": n}),)))
            assert read(store, account, where) == {"n": n}


class TestPutAll:
    def test_it_replaces_whole_items(self, store, account):
        a = put(store, account, {"v": 1, "w": 2}, "A")
        b = key(account, "B")
        store.put_all(account, [(a, {"v": 3}), (b, {"v": 4})])
        assert store.get(account, [a, b]) == {a: {"v": 3}, b: {"v": 4}}

    def test_no_items_are_no_request(self, store, account):
        store.put_all(account, [])

    def test_twenty_five_fit_and_one_more_does_not(self, store, account):
        batch = [(key(account, f"{n:02d}"), {"n": n}) for n in range(26)]
        with pytest.raises(BrokenInvariantError):
            store.put_all(account, batch)
        store.put_all(account, batch[:25])
        assert len(store.query(account, key(account).pk, first="0", last="9", limit=99)) == 25


class TestDueIndex:
    def due(self, store, where: Key, until: int, limit: int = 1000) -> list[Key]:
        shard = int(keys.due(where, 0)["GSI1PK"].removeprefix("DUE#"))
        return [found for found in store.due(shard, until, limit) if found.pk == where.pk]

    def test_an_item_is_due_exactly_while_it_carries_the_keys(self, store, account):
        where = key(account)
        put(store, account, {"v": 1, **keys.due(where, 5_000)})
        assert self.due(store, where, 4_999) == []
        assert self.due(store, where, 5_000) == [where]
        assert keys.due_at(read(store, account, where)) == 5_000
        store.write(account, Transaction("t", (Update("u", where, keys.due(where, 9_000)),)))
        assert self.due(store, where, 8_999) == []
        assert self.due(store, where, 9_000) == [where]
        store.write(account, Transaction("t", (Update("u", where, {}, keys.DUE_ATTRIBUTES, (Exists(),)),)))
        assert self.due(store, where, 10**12) == []

    def test_the_oldest_come_first_and_no_more_than_asked(self, store, account):
        wanted = [key(account, sk) for sk in ("c", "a", "b")]
        store.put_all(account, [(k, {**keys.due(k, 1_000 + n)}) for n, k in enumerate(wanted)])
        assert self.due(store, wanted[0], 10**12) == wanted
        shard = int(keys.due(wanted[0], 0)["GSI1PK"].removeprefix("DUE#"))
        assert len(store.due(shard, 10**12, 2)) == 2

    def test_a_deleted_item_owes_nothing(self, store, account):
        where = key(account)
        put(store, account, keys.due(where, 1))
        store.write(account, Transaction("t", (Delete("d", where),)))
        assert self.due(store, where, 10**12) == []


@pytest.mark.invariant("I6")
@pytest.mark.covers("F-640")
class TestFence:
    def test_no_call_reaches_into_another_account(self, store, account):
        theirs = put(store, f"{account}x", {"secret": 1})
        mine = key(account)
        calls = [
            lambda: store.get(account, [mine, theirs]),
            lambda: store.query(account, theirs.pk, first="A", last="Z", limit=1),
            lambda: store.put_all(account, [(mine, {}), (theirs, {})]),
            lambda: store.write(
                account, Transaction("t", (Put("a", mine, {}), Update("b", theirs, {"x": 1})))
            ),
            lambda: store.write(account, Transaction("t", (Delete("d", theirs),))),
            lambda: store.write(
                account, Transaction("t", (Put("a", mine, {}), Check("c", theirs, (Exists(),))))
            ),
            lambda: store.get(NO_ACCOUNT, [theirs]),
            lambda: store.get(account, [keys.ticket("0")]),
        ]
        for call in calls:
            with pytest.raises(BrokenInvariantError):
                call()
        assert read(store, account, mine) is None
        assert read(store, f"{account}x", theirs) == {"secret": 1}

    def test_items_of_no_account_are_reached_without_one(self, store, account):
        where = keys.ticket(account)
        store.put_all(NO_ACCOUNT, [(where, {"v": 1})])
        assert store.get(NO_ACCOUNT, [where]) == {where: {"v": 1}}


class _Raw:
    """The body of a canned answer, as botocore streams it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: object):
        yield self._body


def answering(endpoint: str, status: int, body: dict[str, object]) -> DynamoDBConversationStore:
    """A store whose client gets this answer to every request."""
    client = dynamodb_client(endpoint)

    def answer(request, **_: object) -> AWSResponse:
        headers = {"content-type": "application/x-amz-json-1.0"}
        return AWSResponse(request.url, status, headers, _Raw(json.dumps(body).encode()))

    client.meta.events.register("before-send.dynamodb", answer)
    return DynamoDBConversationStore(client, TABLE)


def refusing(endpoint: str, code: str, status: int = 400, **fields: object) -> DynamoDBConversationStore:
    return answering(endpoint, status, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", **fields})


WRITES = {
    "alone": lambda a: Transaction("t", (Put("one", key(a), {"v": 1}, (Absent(),)),)),
    "together": lambda a: Transaction("t", (Put("one", key(a), {"v": 1}), Put("two", key(a, "B"), {"v": 2}))),
}
CONTENTION = [
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "TransactionConflictException",
    "TransactionInProgressException",
]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
class TestWhatDynamoDBAnswers:
    """Errors of the service, in the error families of ours."""

    @pytest.mark.parametrize("code", CONTENTION)
    def test_throttles_and_conflicts_are_contention(self, emulator, account, write, code):
        with pytest.raises(ContentionError, match=code):
            refusing(emulator, code).write(account, write(account))

    @pytest.mark.parametrize("code", ["InternalServerError", "ServiceUnavailable"])
    def test_a_server_error_leaves_the_outcome_open(self, emulator, account, write, code):
        with pytest.raises(TransientError, match=code):
            refusing(emulator, code, status=500).write(account, write(account))

    @pytest.mark.parametrize(
        "code", ["ValidationException", "AccessDeniedException", "ResourceNotFoundException"]
    )
    def test_what_cannot_be_right_later_fails_loudly(self, emulator, account, write, code):
        with pytest.raises(BrokenInvariantError, match=code):
            refusing(emulator, code, message="no").write(account, write(account))

    def test_a_lost_response_is_a_transient_error_after_one_request(self, emulator, account, write):
        client = dynamodb_client(emulator)
        sent = []

        def lose(request, **_: object) -> None:
            sent.append(request)
            raise ReadTimeoutError(endpoint_url=request.url)

        client.meta.events.register("before-send.dynamodb", lose)
        with pytest.raises(TransientError) as failure:
            DynamoDBConversationStore(client, TABLE).write(account, write(account))
        assert type(failure.value) is TransientError
        assert len(sent) == 1


class TestCancelledTransactions:
    def cancelled(self, emulator, account, *reasons: dict[str, object]):
        store = refusing(emulator, "TransactionCanceledException", CancellationReasons=list(reasons))
        store.write(account, WRITES["together"](account))

    @pytest.mark.parametrize(
        "code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]
    )
    def test_a_conflict_or_throttle_inside_is_contention(self, emulator, account, code):
        with pytest.raises(ContentionError, match=code):
            self.cancelled(emulator, account, {"Code": "None"}, {"Code": code})

    def test_a_failed_condition_beside_a_conflict_is_a_failed_condition(self, emulator, account):
        item = {"PK": {"S": "p"}, "SK": {"S": "s"}, "v": {"N": "7"}}
        with pytest.raises(ConditionFailedError) as failure:
            self.cancelled(
                emulator,
                account,
                {"Code": "TransactionConflict"},
                {"Code": "ConditionalCheckFailed", "Item": item},
            )
        assert failure.value.failed == {"two": {"v": 7}}

    def test_a_malformed_action_fails_loudly(self, emulator, account):
        with pytest.raises(BrokenInvariantError, match="ValidationError"):
            self.cancelled(emulator, account, {"Code": "ValidationError"}, {"Code": "None"})


class TestPartialAnswers:
    def test_a_batch_read_that_left_keys_unread_is_contention(self, emulator, account):
        unread = {TABLE: {"Keys": [{"PK": {"S": "x"}, "SK": {"S": "y"}}]}}
        store = answering(emulator, 200, {"Responses": {}, "UnprocessedKeys": unread})
        with pytest.raises(ContentionError):
            store.get(account, [key(account), key(account, "B")])

    def test_a_batch_write_that_left_items_unwritten_is_contention(self, emulator, account):
        unwritten = {TABLE: [{"PutRequest": {"Item": {"PK": {"S": "x"}, "SK": {"S": "y"}}}}]}
        store = answering(emulator, 200, {"UnprocessedItems": unwritten})
        with pytest.raises(ContentionError):
            store.put_all(account, [(key(account), {"v": 1})])

    @pytest.mark.parametrize(
        "call",
        [
            lambda s, a: s.get(a, [key(a)]),
            lambda s, a: s.get(a, [key(a), key(a, "B")]),
            lambda s, a: s.query(a, key(a).pk, first="A", last="B", limit=1),
            lambda s, a: s.put_all(a, [(key(a), {})]),
            lambda s, _: s.due(0, 1, 1),
        ],
        ids=["get", "get many", "query", "put_all", "due"],
    )
    def test_a_throttled_call_of_any_kind_is_contention(self, emulator, account, call):
        with pytest.raises(ContentionError):
            call(refusing(emulator, "ThrottlingException"), account)


@pytest.mark.invariant("I1")
def test_a_write_repeated_after_a_lost_response_is_the_same_success(dynamodb, account):
    """The token stands for the whole request (INVARIANTS, facts 2 and 4): the same request may come again, a changed
    one is judged by its condition."""
    store, where = DynamoDBConversationStore(dynamodb, TABLE), key(account)

    def once(writer: str) -> Transaction:
        return Transaction(
            "t", (Put("one", where, {"writer": writer}, (Absent(),)), Put("two", key(account, "B"), {"v": 1}))
        )

    store.write(account, once("me"))
    store.write(account, once("me"))
    with pytest.raises(ConditionFailedError) as failure:
        store.write(account, once("you"))
    assert failure.value.failed == {"one": {"writer": "me"}}
