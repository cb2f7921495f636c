"""What is found in a model's answer, and above all what is not invented."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.domain.json_repair import MAX_BYTES, MAX_DEPTH, find_object

texts = st.text(max_size=12)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
documents = st.dictionaries(texts, values, max_size=4)


def agrees(found: Any, original: Any, *, last: bool) -> bool:
    """`found` says nothing that `original` does not: equal, except that what comes last may have broken off."""
    if found == original and type(found) is type(original):
        return True
    if not last or type(found) is not type(original):
        return False
    if isinstance(found, str):
        return original.startswith(found)
    if isinstance(found, list):
        pairs = list(zip(found, original, strict=False))
        same_places = len(found) <= len(original)
    elif isinstance(found, dict):
        pairs = [(found[key], original[key]) for key in found if key in original]
        same_places = list(found) == list(original)[: len(found)]
    else:
        return False
    return same_places and all(agrees(a, b, last=n == len(pairs) - 1) for n, (a, b) in enumerate(pairs))


@given(document=documents, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
@settings(max_examples=80, deadline=None)
def test_every_truncation_gives_nothing_or_only_what_was_written(document, ascii_only, indent):
    whole = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    for end in range(len(whole)):
        found = find_object(whole[:end])
        assert found is None or agrees(found, document, last=True), (whole[:end], found)
    assert find_object(whole) == document


@given(
    document=documents,
    before=st.text(alphabet="Sure! 好的，[0] \n`", max_size=20),
    after=st.text(max_size=20),
)
def test_prose_and_fences_around_an_object_change_nothing(document, before, after):
    body = json.dumps(document, ensure_ascii=False)
    assert find_object(f"{before}```json\n{body}\n```{after}") == document
    assert find_object(f"{before}{body}{after}") == document


@given(st.text(alphabet='{}[]":,\\ \nabc019.eu-d8', max_size=200))
def test_whatever_the_model_writes_gives_a_dict_or_none(answer):
    found = find_object(answer)
    assert found is None or json.loads(json.dumps(found).encode()) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('{"a": [1, 2', {"a": [1]}),
        ('{"a": [1, 2]', {"a": [1, 2]}),
        ('{"a": 1, "b": 25', {"a": 1}),
        ('{"a": 1, "b": true', {"a": 1, "b": True}),
        ('{"a": 1, "b": tru', {"a": 1}),
        ('{"a": 1, "b":', {"a": 1}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": 1, ', {"a": 1}),
        ('{"a": {"b": "un', {"a": {"b": "un"}}),
        ('{"a": ["x", "y\\', {"a": ["x", "y"]}),
        ('{"a": "\\u00e9\\u4f', {"a": "é"}),
        ('{"a": "x\\ud83d\\ude', {"a": "x"}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('Use {name} so: {"a": 1}', {"a": 1}),
        ("{}", {}),
    ],
)
def test_what_is_kept_of_a_broken_answer(answer, found):
    assert find_object(answer) == found


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I cannot answer that.",
        "null",
        "[1, 2]",
        '{"a": [{"b": 1}}',
        "{",
        "I mean { as a brace",
        '{"a',
        "{'a': 1}",
        '{"a": [1}',
    ],
)
def test_what_is_no_object_is_not_made_one(answer):
    assert find_object(answer) is None


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('{"a": {"b": 1}, "c": NaN}', {"a": {"b": 1}, "c": None}),
        ('{"a": [-Infinity, Infinity, 1e999, -1e999, 0.5]}', {"a": [None, None, None, None, 0.5]}),
        ('{"a": ' + "9" * 5000 + ', "b": 1}', {"a": None, "b": 1}),
        ('{"a": ' + "9" * 308 + "}", {"a": int("9" * 308)}),
        ('{"a": [NaN, 1', {"a": [None]}),
    ],
)
def test_a_number_that_json_cannot_hold_is_null_and_costs_nothing_else(answer, found):
    assert find_object(answer) == found


def test_half_a_surrogate_pair_can_be_stored_all_the_same():
    assert find_object('{"a": "x\\ud83d"}') == {"a": "x?"}
    assert find_object('{"a": "x\ud83d"}') == {"a": "x?"}
    assert find_object('{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def test_depth_and_size_are_capped():
    assert find_object(nested(MAX_DEPTH)) is not None
    assert find_object("[" * 60_000) is None
    longest = '{"a":"' + "x" * (MAX_BYTES - 8) + '"}'
    assert find_object(longest) is not None
    assert find_object(longest + " ") is None
    assert find_object('{"a":"' + "好" * (MAX_BYTES // 3) + '"}') is None, "the cap counts bytes"


def depth(value: Any) -> int:
    """Without recursion: what is measured may be deeper than Python's stack."""
    levels, at = 0, [value]
    while at := [inner for each in at if isinstance(each, dict | list) for inner in _inside(each)]:
        levels += 1
    return levels


def _inside(each: Any) -> list[Any]:
    return [*(each.values() if isinstance(each, dict) else each), None]


@pytest.mark.parametrize("opens", ["[", '{"k":'])
@pytest.mark.parametrize("beyond", [1, 9, 3000])
def test_what_nests_too_deep_is_null_and_costs_nothing_beside_it(opens, beyond):
    closes = "]" if opens == "[" else "}"
    levels = MAX_DEPTH - 1 + beyond
    deep = opens * levels + "1" + closes * levels
    found = find_object(f'{{"a": 1, "deep": {deep}, "b": [{deep}, 2], "c": "x"}}')
    assert found is not None
    assert (found["a"], found["b"][1], found["c"]) == (1, 2, "x")
    assert depth(found) == MAX_DEPTH
    assert find_object(f'{{"a": 1, "deep": {deep}, "c": "brok')["c"] == "brok"
    assert find_object(f'{{"a": 1, "deep": {deep[: len(opens) * levels]}')["a"] == 1


@pytest.mark.parametrize(
    "piece", ["{", '{"', "{[", '{"a":"\\', '{"a":', "\\u", '"', '{"a":1,', " ", "{}", '{"a":[', "{x}"]
)
def test_hostile_answers_cost_linear_time(piece):
    def cpu(size: int) -> float:
        answer = (piece * size)[:size]
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            find_object(answer)
            best = min(best, time.process_time() - start)
        return best

    assert cpu(MAX_BYTES) < 0.01 + 12 * cpu(MAX_BYTES // 8)
