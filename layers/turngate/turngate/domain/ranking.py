"""How texts are ranked for a question: by their words, and by two rankings that become one.

Everything here is pure and the same wherever something is looked for, in documents or in a catalogue of intents:
indexes differ in speed and never in what they find. BM25 is computed as SQLite's FTS5 does it
(https://www.sqlite.org/fts5.html#the_bm25_function), over words that we cut ourselves.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from turngate.domain.search_words import query_words, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DEPTH = 100
"""How many of the best of each ranking take part in the fusion."""
LEXICAL_WEIGHT = 0.7
"""Of the words in the fused score; the rest is the vectors'. Chosen on data: docs/retrieval.md."""
TITLE_WEIGHT = 2.0
"""What a word in a title counts, a word in the text being 1. No data speaks for another: docs/retrieval.md."""
Place = TypeVar("Place", int, tuple[str, int])
"""Where an entry stands: in one index, or in one of several that are searched together."""
_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6


class Entry(NamedTuple):
    """What one thing is found by."""

    title: list[str]
    text: list[str]


def entry(title: str, text: str) -> Entry:
    return Entry(words(title), words(text))


class WordIndex:
    """Entries are known by their place."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._postings: defaultdict[str, dict[int, float]] = defaultdict(dict)
        self._lengths: list[int] = []
        for number, (title, text) in enumerate(entries):
            self._lengths.append(len(title) + len(text))
            counts = Counter(text)
            for word, count in Counter(title).items():
                self._postings[word][number] = TITLE_WEIGHT * count
            for word, count in counts.items():
                self._postings[word][number] = self._postings[word].get(number, 0.0) + count
        self._mean = sum(self._lengths) / len(self._lengths) if self._lengths else 0.0

    def scores(self, query: str) -> dict[int, float]:
        """Score by place of every entry that holds a word of `query`, best first."""
        found: defaultdict[int, float] = defaultdict(float)
        total = len(self._lengths)
        for word in query_words(query):
            posting = self._postings.get(word, {})
            idf = max(math.log((total - len(posting) + 0.5) / (len(posting) + 0.5)), _LEAST_IDF)
            for number, count in posting.items():
                length = _K1 * (1 - _B + _B * self._lengths[number] / self._mean)
                found[number] += idf * count * (_K1 + 1) / (count + length)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def fuse(
    lexical: Mapping[Place, float], dense: Mapping[Place, float], weight: float = LEXICAL_WEIGHT
) -> dict[Place, float]:
    """One score in (0, 1] for whatever either ranking holds, best first; each ranking is stretched to 0…1 first
    (min-max), because BM25 and cosine have nothing in common. With one ranking alone, its own order."""
    if not lexical or not dense:
        return _ordered(_stretched(lexical or dense))
    left, right = _stretched(lexical), _stretched(dense)
    return _ordered(
        {key: weight * left.get(key, 0.0) + (1 - weight) * right.get(key, 0.0) for key in left | right}
    )


def _stretched(scores: Mapping[Place, float]) -> dict[Place, float]:
    best = dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:DEPTH])
    if not best:
        return {}
    low, high = min(best.values()), max(best.values())
    # the last one found is still more than one not found
    return {
        key: max((score - low) / (high - low), 0.001) if high > low else 1.0 for key, score in best.items()
    }


def _ordered(scores: Mapping[Place, float]) -> dict[Place, float]:
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
