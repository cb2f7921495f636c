"""How entries are ranked by words, and how two rankings become one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.domain.ranking import Entry, by_words, fuse, postings
from turngate.domain.search_words import words


def test_two_rankings_are_stretched_and_weighed():
    fused = fuse({1: 10.0, 2: 5.0, 3: 0.0}, {3: 0.9, 2: 0.8, 4: 0.7}, weight=0.6)
    assert fused == pytest.approx({1: 0.6, 2: 0.5, 3: 0.4006, 4: 0.0004})
    assert list(fused) == [1, 2, 3, 4]


def test_one_ranking_alone_keeps_its_order_and_none_gives_none():
    assert list(fuse({5: 0.1, 6: 0.3}, {})) == [6, 5]
    assert list(fuse({}, {5: 0.1, 6: 0.3})) == [6, 5]
    assert fuse({7: 0.1}, {}) == {7: 1.0}
    assert fuse({}, {}) == {}


numbers = st.dictionaries(st.integers(0, 150), st.floats(-1, 1), max_size=120)


@given(numbers, numbers)
def test_a_fused_ranking_is_ordered_and_within_bounds(lexical, dense):
    fused = fuse(lexical, dense)
    assert set(fused) <= set(lexical) | set(dense)
    assert all(0 < score <= 1.0000001 for score in fused.values())
    assert list(fused.values()) == sorted(fused.values(), reverse=True)


def scores(question: str, *texts: str) -> dict[int, float]:
    entries = [Entry(words(title), words(text)) for title, _, text in (t.partition("|") for t in texts)]
    held = postings(entries)
    return by_words({word: held[word] for word in words(question) if word in held}, len(entries))


def test_a_rare_word_outweighs_a_common_one_and_a_title_outweighs_a_text():
    found = scores("七天退货", "退货|七天内", "换货|七天内", "保修|七天内 退货", "发票|七天内", "配送|七天内")
    assert list(found)[:2] == [0, 2]
    assert found[0] > found[2]


def test_a_word_that_everything_holds_still_says_a_little():
    assert min(scores("退货", "退货|a", "退货|b", "退货|c").values()) > 0.1


def test_a_longer_text_holds_less_of_a_word():
    found = scores("退货", "|退货 一二三四五六七八九十", "|退货", "|三四")
    assert list(found) == [1, 0]


def test_what_shares_no_word_is_not_found():
    assert scores("invoice", "退货|", "换货|") == {}
    assert scores("退货") == {}
