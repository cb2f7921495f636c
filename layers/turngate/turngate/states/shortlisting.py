"""What of a catalogue Understand offers to the model: all of a small one, a shortlist of a large one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from turngate.domain.shortlist import Catalogue, looked_for
from turngate.errors import ModelUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.config import GovernanceSlice
    from turngate.domain.shapes import HistoryMessage, Language, TurnInput, TurnRef
    from turngate.ports import Embedder
    from turngate.wiring import Ports

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
    """`embedder` is kept alive, so that no other gets its id."""

    embedder: Embedder
    catalogue: Catalogue
    vectors: list[list[float]] | None = None


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
    """Never fails: without vectors, words alone choose."""
    most = governed.routing.shortlist
    if len(governed.intents) <= most:
        return Offer(governed)
    embedder = ports.embedder
    kept = _catalogue(embedder, turn, turn_input.language, governed)
    questions = looked_for(turn_input, history)
    try:
        if kept.vectors is None:
            kept.vectors = embedder.embed(kept.catalogue.texts)
        vectors, own, degraded = embedder.embed(questions), kept.vectors, ""
        if len(vectors[0]) != len(
            own[0]
        ):  # another model answers now: the next turn embeds the catalogue anew
            kept.vectors, degraded = None, "other_length"
    except ModelUnavailableError as error:
        vectors, own, degraded = [], [], error.reason
    places = kept.catalogue.nearest(questions, *(() if degraded else (vectors, own)))
    offered = tuple(governed.intents[place] for place in places[:most])
    narrowed = replace(governed, intents=offered)
    return Offer(narrowed, "words" if degraded else "words_and_vectors", degraded)


def _catalogue(embedder: Embedder, turn: TurnRef, language: Language, governed: GovernanceSlice) -> _Kept:
    key = (id(embedder), turn.account, turn.config_version, language)
    kept = _kept.get(key)
    if kept is None:
        if len(_kept) >= _KEPT:
            _kept.clear()
        kept = _kept[key] = _Kept(embedder, Catalogue(governed, language))
    return kept
