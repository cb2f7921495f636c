"""Which intents a model is shown of a catalogue too large to show: the ones that words and vectors find nearest.

A shortlist decides nothing (embeddings see neither direction nor negation): it must only hold the right intent, so
it is long. Chosen on data, like its weight: docs/governance.md. An intent that is not on it cannot become a candidate.
"""

from __future__ import annotations

from operator import mul
from typing import TYPE_CHECKING

from turngate.domain.ranking import Entry, by_words, fuse, postings
from turngate.domain.search_words import query_words, words
from turngate.domain.texts import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.config import GovernanceSlice
    from turngate.domain.shapes import HistoryMessage, Language, TurnInput

WORDS_WEIGH = 0.3
"""Of the words in the fused score: an intent's few examples are found by meaning more than by spelling."""


class Catalogue:
    """The intents of one configuration in one language, ready to be searched. `texts`: what a vector stands for, one an
    intent, in the order of the configuration."""

    def __init__(self, governed: GovernanceSlice, language: Language) -> None:
        named = [say(i.name, language, governed.default_language) for i in governed.intents]
        about = [
            " ".join((say(intent.description, language, governed.default_language), *intent.examples))
            for intent in governed.intents
        ]
        self.texts = [f"{name}. {text}" for name, text in zip(named, about, strict=True)]
        self._words = postings([Entry(words(n), words(a)) for n, a in zip(named, about, strict=True)])

    def nearest(
        self,
        questions: Sequence[str],
        vectors: Sequence[Sequence[float]] = (),
        own_vectors: Sequence[Sequence[float]] = (),
    ) -> list[int]:
        """Places of the intents, nearest first, by the question they fit best. `vectors` are the questions' and
        `own_vectors` those of `texts`, all of unit length; without them the words decide alone."""
        lexical: dict[int, float] = {}
        for question in questions:
            held = {word: self._words[word] for word in query_words(question) if word in self._words}
            for place, score in by_words(held, len(self.texts)).items():
                lexical[place] = max(score, lexical.get(place, 0.0))
        dense = {
            place: max(sum(map(mul, vector, own)) for vector in vectors)
            for place, own in enumerate(own_vectors)
            if vectors
        }
        ranked = fuse(lexical, dense, WORDS_WEIGH)
        return [*ranked, *(place for place in range(len(self.texts)) if place not in ranked)]


def looked_for(turn_input: TurnInput, history: Sequence[HistoryMessage]) -> list[str]:
    """What a catalogue is searched for: the message, and the message after the one before it, because "那纸质的呢" is
    about what was asked then."""
    before = next((message.text for message in reversed(history) if message.role == "customer"), "")
    return [turn_input.text, *([f"{before}\n{turn_input.text}"] if before else [])]
