"""What of a catalogue Understand offers to the model: all of a small one, a shortlist of a large one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from turngate.domain.shortlist import Catalogue, looked_for
from turngate.errors import ModelUnavailableError
from turngate.protocol.asking import MIN_CALL_MS, RESERVE_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.config import GovernanceSlice
    from turngate.domain.shapes import HistoryMessage, Language, TurnInput, TurnRef
    from turngate.ports import Clock, Embedder
    from turngate.wiring import Ports

MOST_MS = 4_000
"""All the waiting for vectors in one turn: words alone find the intent nearly as often (docs/governance.md)."""
PAUSE_MS = 60_000
"""How long an embedder that was too slow, or gave a catalogue no vectors, is not asked for that catalogue again: it
would cost every turn."""
BATCH = 64
"""Texts of a catalogue embedded at once; what was embedded before time ran out is kept for the next turn."""
_KEPT = 8


@dataclass(frozen=True, slots=True)
class Offer:
    """`governed` holds the offered intents, nearest first. `by`: how they were chosen; `all` is the whole catalogue.
    `degraded` says why vectors had no part."""

    governed: GovernanceSlice
    by: Literal["all", "words", "words_and_vectors"] = "all"
    degraded: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the shortlist; empty when there is none."""
        return () if self.by == "all" else tuple(intent.id for intent in self.governed.intents)


@dataclass(slots=True)
class _Kept:
    """`embedder` is kept alive, so that no other gets its id. `vectors`: of the first texts, of all when finished.
    `not_before`: epoch ms until which nothing is asked."""

    embedder: Embedder
    catalogue: Catalogue
    vectors: list[list[float]] = field(default_factory=list)
    not_before: int = 0


_kept: dict[tuple[int, str, int, Language], _Kept] = {}
"""Catalogues of configuration versions, which never change, for as long as the function stays warm. Vectors are not
stored with the configuration: they would have to be made anew whenever the embedding model changes."""


def shortlist(
    ports: Ports,
    turn: TurnRef,
    turn_input: TurnInput,
    history: Sequence[HistoryMessage],
    governed: GovernanceSlice,
) -> Offer:
    """Never fails, and waits for vectors at most 4 s and never past what the turn has left for the model: without them,
    words alone choose."""
    most = governed.routing.shortlist
    if len(governed.intents) <= most:
        return Offer(governed)
    kept = _catalogue(ports.embedder, turn, turn_input.language, governed)
    questions = looked_for(turn_input, history)
    vectors, degraded = _vectors(kept, questions, turn, ports.clock)
    places = kept.catalogue.nearest(questions, *((vectors, kept.vectors) if vectors else ()))
    offered = tuple(governed.intents[place] for place in places[:most])
    narrowed = replace(governed, intents=offered)
    return Offer(narrowed, "words" if degraded else "words_and_vectors", degraded)


def _vectors(kept: _Kept, questions: list[str], turn: TurnRef, clock: Clock) -> tuple[list[list[float]], str]:
    """The questions' vectors, once the catalogue has its own; or none, and why."""
    now, texts = clock.now_ms(), kept.catalogue.texts
    ends = min(now + MOST_MS, turn.deadline - RESERVE_MS - MIN_CALL_MS)
    if now < kept.not_before:
        return [], "paused"
    vectors: list[list[float]] = []
    while not vectors:
        left_ms = ends - clock.now_ms()
        if left_ms <= 0:
            return [], "deadline"
        batch = texts[len(kept.vectors) :][:BATCH]
        try:
            found = _embed(kept.embedder, batch or questions, left_ms)
        except ModelUnavailableError as error:
            if batch or error.reason == "timeout":
                kept.not_before = clock.now_ms() + PAUSE_MS
            return [], error.reason
        if batch:
            kept.vectors += found
        else:
            vectors = found
    if len({len(vector) for vector in (*kept.vectors, *vectors)}) > 1:
        kept.vectors = []  # another model answers now: the next turn embeds the catalogue anew
        return [], "other_length"
    return vectors, ""


def _embed(embedder: Embedder, texts: Sequence[str], left_ms: int) -> list[list[float]]:
    """One vector a text, of one length and of numbers only. Raises ModelUnavailableError."""
    vectors = embedder.embed(texts, timeout_s=left_ms / 1000)
    if len(vectors) != len(texts):
        raise ModelUnavailableError("empty", f"{len(vectors)} vectors for {len(texts)} texts")
    if len({len(vector) for vector in vectors}) > 1 or not all(math.isfinite(sum(v)) for v in vectors):
        raise ModelUnavailableError("empty", "not vectors of one length")
    return vectors


def _catalogue(embedder: Embedder, turn: TurnRef, language: Language, governed: GovernanceSlice) -> _Kept:
    key = (id(embedder), turn.account, turn.config_version, language)
    kept = _kept.get(key)
    if kept is None:
        if len(_kept) >= _KEPT:
            _kept.clear()
        kept = _kept[key] = _Kept(embedder, Catalogue(governed, language))
    return kept
