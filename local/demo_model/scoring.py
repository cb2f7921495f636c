"""How well a question fits each intent of a catalogue, as a calibrated number from 0 to 1.

Two things are told apart, because different measures show them:

* *Is this about anything here?* Nearest example, mean of the three nearest, name or description (all cosines), and
  the share of the question's telling words that an intent knows, blended to a level. The highest level of all
  intents, through a logistic function, is the score of the best intent.
* *Which one?* The level again, plus a ridge classifier trained on nothing but the texts of this catalogue, which
  finds what separates neighbours. Behind the best one, scores fall with the distance in this preference: two
  intents that are hard to tell apart end up close together, so that the product can ask.

The numbers were fitted by leave-one-out on two catalogues, in both languages and in each alone, against questions
out of scope, then rounded; ``measure.py`` repeats the measurement on any catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from local.demo_model.recent import Recent
from local.demo_model.wording import rarity, shared_weight, terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from local.demo_model.encoder import Vectors

# nearest example, three nearest examples, name or description, shared telling words; then the constant
LEVEL_WEIGHTS = (8.0, 6.0, 9.0, 3.5)
LEVEL_CONSTANT = -9.5
# what the classifier's output (0 … 1) counts beside a level, and how fast scores fall behind the best
SEPARATION_WEIGHT = 14.0
PREFERENCE_SCALE = 5.0
_RIDGE = 1.0
_BIAS = 0.3
_NEAREST = 3
_KEPT_ROWS = 20_000
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


class Encoder(Protocol):
    """Turns texts into unit vectors of shape (len(texts), dimensions)."""

    def encode(self, texts: Sequence[str]) -> Vectors: ...


class Catalogue:
    """Intents prepared for scoring: their vectors, their words and the classifier are computed once."""

    def __init__(self, intents: Sequence[Intent], encoder: Encoder) -> None:
        self._intents = tuple(intents)
        self._headings: list[Vectors] = []
        self._examples: list[Vectors] = []
        self._words: list[frozenset[str]] = []
        texts = [text for intent in intents for text in (*intent.headings(), *intent.examples)]
        vectors = encoder.encode(texts)
        owners: list[int] = []
        for number, intent in enumerate(intents):
            start = len(owners)
            middle = start + len(intent.headings())
            end = middle + len(intent.examples)
            self._headings.append(vectors[start:middle])
            self._examples.append(vectors[middle:end] if intent.examples else vectors[start:middle])
            self._words.append(frozenset().union(*(terms(text) for text in texts[start:end])))
            owners += [number] * (end - start)
        self._rarity: Mapping[str, float] = rarity(self._words)
        self._classifier = _separate(vectors, owners)
        self.rows = len(texts)

    def _level(self, number: int, asked: frozenset[str], vector: Vectors) -> float:
        nearest = np.sort(self._examples[number] @ vector)[::-1][:_NEAREST]
        heading = (self._headings[number] @ vector).max()
        shared = shared_weight(asked, self._words[number], self._rarity)
        measures = (nearest[0], nearest.mean(), heading, shared)
        return float(sum(weight * measure for weight, measure in zip(LEVEL_WEIGHTS, measures, strict=True)))

    def rank(self, question: str, vector: Vectors) -> list[Candidate]:
        """All intents, best first; equal scores keep the catalogue's order. ``vector`` has shape (512,).

        Scores have three decimals, so that the last bits of a vector do not show.
        """
        if not self._intents:
            return []
        asked = terms(question)
        levels = np.array([self._level(number, asked, vector) for number in range(len(self._intents))])
        preference = levels + SEPARATION_WEIGHT * (np.append(vector, _BIAS) @ self._classifier)
        best = 1.0 / (1.0 + np.exp(-(levels.max() + LEVEL_CONSTANT)))
        scores = best * np.exp((preference - preference.max()) / PREFERENCE_SCALE)
        ranked = [
            Candidate(intent.id, round(float(score), 3))
            for intent, score in zip(self._intents, scores, strict=True)
        ]
        return sorted(ranked, key=lambda candidate: -candidate.score)


def _separate(vectors: Vectors, owners: Sequence[int]) -> NDArray[np.floating]:
    """Ridge regression of "belongs to intent n" on the vectors: shape (dimensions + 1, number of intents)."""
    if not owners:
        return np.zeros((1, 0))
    rows = np.column_stack([vectors, np.full(len(owners), _BIAS)]).astype(np.float64)
    belongs = np.eye(max(owners) + 1)[list(owners)]
    return np.linalg.solve(rows.T @ rows + _RIDGE * np.eye(rows.shape[1]), rows.T @ belongs)


def recent_catalogues(encoder: Encoder) -> Recent[tuple[Intent, ...], Catalogue]:
    """The catalogues of recent prompts, prepared: the same part of the prompt comes with every turn."""
    return Recent(lambda intents: Catalogue(intents, encoder), lambda catalogue: catalogue.rows, _KEPT_ROWS)


def encode_questions(questions: Sequence[str], encoder: Encoder) -> Vectors:
    """Vectors of the questions in one batch, long ones by their beginning."""
    return encoder.encode([question[:_LONGEST_TEXT] for question in questions])
