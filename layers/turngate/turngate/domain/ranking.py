"""How texts are ranked for a question: by their words (BM25, cut by ourselves), and by two rankings that become one.

Everything here is pure and the same wherever something is looked for, in documents or in a catalogue of intents:
indexes differ in speed and never in what they find. What a word is worth is decided over all that is searched
together, and not where it stands: a word that half of a collection holds says much among many collections.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEPTH = 100
"""How many of the best of each ranking take part in the fusion."""
LEXICAL_WEIGHT = 0.7
"""Of the words in the fused score; the rest is the vectors'. Chosen on data: docs/retrieval.md."""
TITLE_WEIGHT = 2.0
"""What a word in a title counts, a word in the text being 1. No data speaks for another: docs/retrieval.md."""
_K1, _B = 1.2, 0.75

Place = TypeVar("Place", int, tuple[int, int])
"""Where an entry stands: in one index, or in one of several (by their order) that are searched together."""


class Entry(NamedTuple):
    """What one thing is found by."""

    title: list[str]
    text: list[str]


def postings(entries: Sequence[Entry]) -> dict[str, dict[int, float]]:
    """Which entries hold a word, by place, and how much of one: BM25's frequency, saturated and weighed by length."""
    lengths = [len(title) + len(text) for title, text in entries]
    mean = sum(lengths) / len(entries) if entries else 0.0
    found: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for place, (title, text) in enumerate(entries):
        counts: defaultdict[str, float] = defaultdict(float)
        for said, weight in ((title, TITLE_WEIGHT), (text, 1.0)):
            for word in said:
                counts[word] += weight
        length = _K1 * (1 - _B + _B * lengths[place] / mean)
        for word, count in counts.items():
            found[word][place] = count * (_K1 + 1) / (count + length)
    return dict(found)


def by_words(held: Mapping[str, Mapping[Place, float]], total: int) -> dict[Place, float]:
    """BM25 scores, best first, from the postings of a question's words among `total` entries."""
    scores: defaultdict[Place, float] = defaultdict(float)
    for places in held.values():
        worth = math.log(1 + (total - len(places) + 0.5) / (len(places) + 0.5))
        for place, part in places.items():
            scores[place] += worth * part
    return _ordered(scores)


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
