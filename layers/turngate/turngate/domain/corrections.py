"""Deterministic corrections: a few confusions that the customer's own words settle (F-096 … F-100).

They see the original words, not only the model's wording (F-065): in a turn with one question its original text, in a
compound one the sub-question, and there a phrase counts only when the customer wrote it too. They never turn a guess
into an action: an intent that acts is reached from a trusted candidate alone (F-095).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.domain.route_trace import AppliedCorrection
from turngate.domain.shapes import Candidate
from turngate.domain.texts import normalised, phrase_form

if TYPE_CHECKING:
    from turngate.domain.routing import Correction


def correct(
    candidates: tuple[Candidate, ...],
    corrections: tuple[Correction, ...],
    *,
    wording: str,
    original: str,
    reachable: frozenset[str],
    acting: frozenset[str],
    threshold: float,
) -> tuple[tuple[Candidate, ...], AppliedCorrection | None]:
    """The candidates with the corrected intent in the lead, and what was applied; the first matching one only.

    `reachable`: intents with an enabled contract entry. `acting`: those of them that act."""
    if not candidates:
        return candidates, None
    leading = candidates[0]
    said, written = normalised(wording), normalised(original)
    for correction in corrections:
        target = correction.to_intent
        if leading.id not in correction.from_intents or target not in reachable:
            continue
        if target in acting and leading.score < threshold:
            continue
        phrases = _matched(correction, said, written)
        if phrases is None:
            continue
        score = max(leading.score, threshold)
        others = tuple(c for c in candidates if c.id not in (target, leading.id))
        applied = AppliedCorrection(
            id=correction.id, from_intent=leading.id, to_intent=target, phrases=phrases
        )
        return (Candidate(id=target, score=score), *others), applied
    return candidates, None


def _matched(correction: Correction, said: str, written: str) -> tuple[str, ...] | None:
    """One phrase of each group, or None."""
    if any(phrase_form(phrase) in said for phrase in correction.none_of):
        return None
    found: list[str] = []
    for group in correction.all_of:
        phrase = next((phrase for phrase in group if _holds(phrase, said, written)), None)
        if phrase is None:
            return None
        found.append(phrase)
    return tuple(found)


def _holds(phrase: str, said: str, written: str) -> bool:
    form = phrase_form(phrase)
    return bool(form) and form in said and form in written
