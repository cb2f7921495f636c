"""The key table: no id reaches into another kind of item, another conversation or another account."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.domain import keys
from turngate.domain.fence import NO_ACCOUNT, require_account
from turngate.domain.transaction import Key
from turngate.errors import BrokenInvariantError

ids = st.text(st.sampled_from(string.ascii_letters + string.digits + "-_.:@|中退"), min_size=1, max_size=20)

OF_AN_ACCOUNT = {
    "head": keys.head,
    "conversation message": lambda a, i: keys.message(a, i, 1, "U"),
    "events": lambda a, i: keys.events(a, i, 1),
    "remembered message": lambda a, i: keys.message_idempotency(a, "c", i),
    "remembered message of": lambda a, i: keys.message_idempotency(a, i, "m"),
    "run": lambda a, i: keys.run(a, "c", i),
    "run of": lambda a, i: keys.run(a, i, "r"),
    "watcher": lambda a, i: keys.watcher(a, "c", i),
    "budget": keys.budget,
    "run event": lambda a, i: keys.run_event(a, "r", i, 1, "kind"),
    "run event kind": lambda a, i: keys.run_event(a, "r", "p", 1, i),
    "working": lambda a, i: keys.working(a, "r", "p", i),
    "knowledge version": lambda a, i: keys.knowledge_version(a, i, 1),
    "rate": keys.rate,
    "connection": lambda a, i: keys.connection(a, "p", i),
    "connection of": lambda a, i: keys.connection(a, i, "c"),
}
OF_NO_ACCOUNT = {"ticket": keys.ticket, "reverse connection": keys.reverse_connection}


@pytest.mark.invariant("I6")
@pytest.mark.covers("F-640")
class TestAccounts:
    @pytest.mark.parametrize("make", OF_AN_ACCOUNT.values(), ids=OF_AN_ACCOUNT)
    @given(account=ids, id_=ids)
    def test_a_key_belongs_to_its_account_and_to_no_other(self, make, account, id_):
        key = make(account, id_)
        assert keys.account_of(key) == account
        require_account(account, [key.pk])
        for other in (f"{account}x", account[:-1] or f"y{account}", NO_ACCOUNT):
            with pytest.raises(BrokenInvariantError):
                require_account(other, [key.pk])

    @pytest.mark.parametrize("make", OF_AN_ACCOUNT.values(), ids=OF_AN_ACCOUNT)
    @pytest.mark.parametrize("bad", ["", "#", "a#b", "b#C#c1", "a\x00", "a\nb", "\x1f"])
    def test_an_id_with_a_separator_or_control_character_makes_no_key(self, make, bad):
        with pytest.raises(BrokenInvariantError):
            make("acme", bad)
        with pytest.raises(BrokenInvariantError):
            make(bad, "id")

    @pytest.mark.parametrize("make", OF_NO_ACCOUNT.values(), ids=OF_NO_ACCOUNT)
    def test_keys_without_account_are_reached_without_one_only(self, make):
        key = make("abc")
        require_account(NO_ACCOUNT, [key.pk])
        with pytest.raises(BrokenInvariantError):
            require_account("abc", [key.pk])
        with pytest.raises(BrokenInvariantError):
            keys.account_of(key)
        with pytest.raises(BrokenInvariantError):
            make("a#b")

    @pytest.mark.parametrize("pk", ["T#", "T", "", "CONN#x", "X#acme#C#c"])
    def test_the_account_of_a_strange_key_is_an_error(self, pk):
        with pytest.raises(BrokenInvariantError):
            keys.account_of(Key(pk, "HEAD"))

    @given(st.tuples(ids, ids), st.tuples(ids, ids))
    def test_different_ids_make_different_keys(self, one, other):
        same = one == other
        assert (keys.run("a", *one) == keys.run("a", *other)) == same
        assert (keys.connection("a", *one) == keys.connection("a", *other)) == same
        assert (keys.working("a", "r", *one) == keys.working("a", "r", *other)) == same


class TestOrder:
    @given(st.lists(st.integers(0, 9_999_999_999), min_size=2, max_size=5))
    def test_numbers_in_keys_sort_as_numbers(self, numbers):
        in_order = sorted(numbers)
        assert sorted(keys.message_sk(n, "U") for n in numbers) == [keys.message_sk(n, "U") for n in in_order]
        assert sorted(keys.events_sk(n) for n in numbers) == [keys.events_sk(n) for n in in_order]

    @given(st.integers(0, 2**42), st.integers(0, 2**42))
    def test_due_times_sort_as_numbers_and_come_back(self, one, other):
        key = keys.head("a", "c")
        first, second = (keys.due(key, ms) for ms in (one, other))
        assert keys.due_at(first) == one
        assert (first["GSI1SK"] < second["GSI1SK"]) == (one < other)
        assert first["GSI1PK"] == second["GSI1PK"]
        assert set(first) == set(keys.DUE_ATTRIBUTES)

    def test_an_item_without_due_keys_owes_nothing(self):
        assert keys.due_at({"state": "completed"}) is None

    def test_due_items_spread_over_all_shards(self):
        runs = {keys.due(keys.run("a", f"c{n}", "r"), 1)["GSI1PK"] for n in range(400)}
        events = {keys.due(keys.events("a", f"c{n}", 1), 1)["GSI1PK"] for n in range(400)}
        assert runs == {keys.due_partition(n) for n in keys.RUN_SHARDS}
        assert events == {keys.due_partition(n) for n in keys.EVENT_SHARDS}
        assert not runs & events


class TestDerivedIds:
    @pytest.mark.invariant("I7")
    @given(ids, ids, ids)
    def test_a_first_message_names_its_conversation_by_who_and_what(self, account, principal, opening):
        made = keys.conversation_id_for(account, principal, opening)
        assert made == keys.conversation_id_for(account, principal, opening)
        others = {
            keys.conversation_id_for(f"{account}x", principal, opening),
            keys.conversation_id_for(account, f"{principal}x", opening),
            keys.conversation_id_for(account, principal, f"{opening}x"),
        }
        assert made not in others
        assert len(made) == 32
        keys.head(account, made)

    @given(ids, ids, st.integers(1, 10**9))
    def test_a_run_is_named_by_its_trigger(self, account, conversation, seq):
        made = keys.run_id_for(account, conversation, seq)
        assert made != keys.run_id_for(account, conversation, seq + 1)
        assert len(made) == 32
        keys.run(account, conversation, made)
