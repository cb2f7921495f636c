"""Laws of conditions and actions, over any item."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
    Update,
    applied,
    holds,
)

names = st.sampled_from("abcd")
scalars = st.one_of(st.integers(-3, 3), st.booleans(), st.sampled_from(("", "a", "1")))
items = st.none() | st.dictionaries(names, scalars)
KEY = Key("T#a#C#c", "HEAD")


@given(items, names)
def test_an_item_is_either_there_or_absent(item, name):
    assert holds((Exists(),), item) != holds((Absent(),), item)
    assert holds((Absent(name),), item) == (item is None or name not in item)


@given(items, names, st.integers(-3, 3))
def test_order_is_total_over_numbers_and_empty_over_everything_else(item, name, bound):
    at_most, at_least = holds((AtMost(name, bound),), item), holds((AtLeast(name, bound),), item)
    number = item is not None and type(item.get(name)) is int
    assert (at_most or at_least) == number
    assert (at_most and at_least) == holds((Equals(name, bound),), item)


@given(items, names, scalars)
def test_only_an_equal_value_of_the_same_type_is_equal(item, name, value):
    same = item is not None and name in item and repr(item[name]) == repr(value)
    assert holds((Equals(name, value),), item) == same


@given(items, names, st.lists(st.sampled_from(("a", "1", "")), max_size=3).map(tuple))
def test_one_of_is_any_of_its_equals(item, name, values):
    assert holds((OneOf(name, values),), item) == any(holds((Equals(name, v),), item) for v in values)


@given(items, st.lists(st.builds(Equals, names, scalars) | st.builds(Absent, names), max_size=4))
def test_a_condition_is_all_of_its_terms(item, terms):
    assert holds(tuple(terms), item) == all(holds((term,), item) for term in terms)


@given(items, st.dictionaries(names, scalars), st.sets(names))
def test_an_update_sets_removes_and_leaves_the_rest(item, changes, removed):
    after = applied(Update("u", KEY, changes, tuple(removed - set(changes))), item)
    assert after is not None
    for name in "abcd":
        if name in changes:
            assert after[name] is changes[name]
        elif name in removed or item is None:
            assert name not in after
        else:
            assert after.get(name) == item.get(name)


@given(items, st.dictionaries(names, scalars))
def test_put_replaces_delete_removes_and_check_leaves(item, new):
    assert applied(Put("p", KEY, new), item) == new
    assert applied(Delete("d", KEY), item) is None
    assert applied(Check("c", KEY, ()), item) == item


@given(st.dictionaries(names, scalars))
def test_nothing_is_changed_in_place(item):
    before = dict(item)
    put = Put("p", KEY, item)
    stored = applied(put, None)
    assert stored is not None
    stored["new"] = 1
    updated = applied(Update("u", KEY, {"a": "changed"}), item)
    assert updated is not None
    assert item == before
