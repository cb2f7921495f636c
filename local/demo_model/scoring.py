"""How well a question fits each intent of a catalogue, as a calibrated number from 0 to 1.

Four measures are blended by a logistic function: nearest example, mean of the three nearest, name or description
(all cosines), and the share of the question's telling words that the intent knows. The weights were fitted by
leave-one-out over a catalogue in both languages, in each language alone and against questions out of scope, then
rounded; ``measure.py`` repeats the measurement on any catalogue.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from local.demo_model.wording import rarity, shared_weight, terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from local.demo_model.encoder import SentenceEncoder, Vectors

# nearest example, three nearest examples, name or description, shared telling words, constant
WEIGHTS = (8.0, 6.0, 9.0, 3.5, -9.5)
_NEAREST = 3
_KEPT_CATALOGUES = 8
# the first characters carry a customer's question; the rest only dilutes the vector
_LONGEST_TEXT = 1000


@dataclass(frozen=True)
class Intent:
    """One entry of the catalogue in the prompt."""

    id: str
    name: str
    description: str
    examples: tuple[str, ...]

    def headings(self) -> tuple[str, ...]:
        """What the intent is called: texts to compare with when it has no examples too."""
        return tuple(text for text in (self.name, self.description) if text.strip()) or (self.id,)


@dataclass(frozen=True)
class Candidate:
    """An intent and how well it fits: 0 not at all, 1 certainly."""

    id: str
    score: float


class Catalogue:
    """Intents prepared for scoring: their vectors and words are computed once."""

    def __init__(self, intents: Sequence[Intent], encoder: SentenceEncoder) -> None:
        self._intents = tuple(intents)
        self._vectors: list[tuple[Vectors, Vectors]] = []
        texts = [text for intent in intents for text in (*intent.headings(), *intent.examples)]
        vectors = encoder.encode(texts) if texts else np.empty((0, 0), dtype=np.float32)
        self._words: list[frozenset[str]] = []
        start = 0
        for intent in intents:
            middle = start + len(intent.headings())
            end = middle + len(intent.examples)
            examples = vectors[middle:end] if intent.examples else vectors[start:middle]
            self._vectors.append((vectors[start:middle], examples))
            self._words.append(frozenset().union(*(terms(text) for text in texts[start:end])))
            start = end
        self._rarity: Mapping[str, float] = rarity(self._words)

    def measures(self, question: str, vector: Vectors) -> list[tuple[float, float, float, float]]:
        """The four measures of each intent, in catalogue order; ``vector`` has shape (512,)."""
        asked = terms(question)
        found = []
        for (headings, examples), words in zip(self._vectors, self._words, strict=True):
            nearest = np.sort(examples @ vector)[::-1][:_NEAREST]
            heading = float((headings @ vector).max())
            shared = shared_weight(asked, words, self._rarity)
            found.append((float(nearest[0]), float(nearest.mean()), heading, shared))
        return found

    def rank(self, question: str, vector: Vectors) -> list[Candidate]:
        """All intents, best first; equal scores keep the catalogue's order. Scores have three decimals."""
        ranked = [
            Candidate(intent.id, calibrate(measured))
            for intent, measured in zip(self._intents, self.measures(question, vector), strict=True)
        ]
        return sorted(ranked, key=lambda candidate: -candidate.score)


def calibrate(measures: Sequence[float]) -> float:
    """Blend the four measures into a score from 0 to 1, three decimals."""
    *slopes, constant = WEIGHTS
    level = constant + sum(slope * measure for slope, measure in zip(slopes, measures, strict=True))
    return round(float(1.0 / (1.0 + np.exp(-level))), 3)


class Catalogues:
    """The last few catalogues, prepared: the same part of the prompt comes with every turn."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder
        self._kept: OrderedDict[tuple[Intent, ...], Catalogue] = OrderedDict()
        self._lock = threading.Lock()

    def prepared(self, intents: tuple[Intent, ...]) -> Catalogue:
        """The prepared catalogue of these intents; the least recently used one makes room."""
        with self._lock:
            if intents not in self._kept:
                self._kept[intents] = Catalogue(intents, self._encoder)
            self._kept.move_to_end(intents)
            while len(self._kept) > _KEPT_CATALOGUES:
                self._kept.popitem(last=False)
            return self._kept[intents]


def encode_questions(questions: Sequence[str], encoder: SentenceEncoder) -> Vectors:
    """Vectors of the questions in one batch, long ones by their beginning."""
    return encoder.encode([question[:_LONGEST_TEXT] for question in questions])
