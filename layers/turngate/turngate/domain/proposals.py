"""The sub-questions and candidates of a model's answer, as far as they can be read, and the names of the rest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from turngate.domain.shapes import Candidate, SubQuestion
from turngate.domain.texts import normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from turngate.domain.config import GovernanceSlice

MAX_DISCARDED = 6
"""Entries of one code in an understanding's `discarded`; beyond it the counts alone tell."""
_DISCARDED_CHARS = 64
_LARGE = 10**9


class Dropped:
    """What was not believed: counts by code, and for the trace the first few with what they named."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.what: list[str] = []

    def add(self, code: str, what: object = "") -> None:
        self.counts[code] += 1
        entry = f"{code}:{str(what)[:_DISCARDED_CHARS]}" if what != "" else code
        same = sum(1 for other in self.what if other.partition(":")[0] == code)
        if entry not in self.what and same < MAX_DISCARDED:
            self.what.append(entry)

    def unless_all(
        self, code: str, subs: list[SubQuestion], unwanted: Callable[[SubQuestion], bool]
    ) -> list[SubQuestion]:
        """`subs` without the unwanted ones, which are named; all of them when nothing else would be left."""
        out = dict.fromkeys(sub.text for sub in subs if unwanted(sub))
        if len(out) == len(subs):
            return subs
        for text in out:
            self.add(code, text)
        return [sub for sub in subs if sub.text not in out]

    def by_code(self) -> dict[str, int]:
        return {code: count for code, count in sorted(self.counts.items()) if count}


def read_sub_questions(
    entries: list[Any], governed: GovernanceSlice, longest: int, dropped: Dropped
) -> list[SubQuestion]:
    """One sub-question a wording, in the order asked. What was said of it more than once is put together, and stands
    where it first had a candidate."""
    known, most = {intent.id for intent in governed.intents}, governed.routing.max_candidates
    texts: dict[str, str] = {}
    candidates: dict[str, list[Candidate]] = {}
    for entry in entries:
        text = entry.get("text") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(text, str) or not 0 < len(text.strip()) <= longest:
            dropped.add("bad_sub_question")
            continue
        form = normalised(text)
        if form in texts:
            dropped.add("same_sub_question", text.strip())
        if not candidates.get(form):
            texts.pop(form, None)
            texts[form] = text.strip()
        candidates.setdefault(form, []).extend(_read_candidates(entry.get("candidates"), known, dropped))
    subs = []
    for form, text in texts.items():
        kept = best_of(candidates[form], most)
        dropped.counts["surplus_candidate"] += len(candidates[form]) - len(
            kept
        )  # nothing to tell: they rank below
        subs.append(SubQuestion(text=text, candidates=kept))
    return subs


def _read_candidates(offered: object, known: set[str], dropped: Dropped) -> Iterator[Candidate]:
    if not isinstance(offered, list):
        dropped.add("bad_candidate")
        return
    for each in offered:
        candidate = _read_candidate(each, known, dropped)
        if candidate is not None:
            yield candidate


def _read_candidate(offered: object, known: set[str], dropped: Dropped) -> Candidate | None:
    identity = offered.get("id") if isinstance(offered, dict) else None
    if not isinstance(offered, dict) or not isinstance(identity, str):
        dropped.add("bad_candidate")
        return None
    if identity not in known:
        dropped.add("unknown_intent", identity)
        return None
    score = offered.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:  # NaN is not
        dropped.add("bad_score", f"{identity}={_shown(score)}")
        return None
    return Candidate(id=identity, score=float(score))


def _shown(score: object) -> str:
    """Of a list its type alone, and of a number with thousands of digits, which Python refuses to write."""
    if isinstance(score, list | dict) or (isinstance(score, int) and abs(score) >= _LARGE):
        return type(score).__name__
    return repr(score)


def best_of(candidates: Iterable[Candidate], most: int) -> tuple[Candidate, ...]:
    """Each id once with its best score, best first; ties in a fixed order, so that a turn can be replayed."""
    scores: dict[str, float] = {}
    for candidate in candidates:
        scores[candidate.id] = max(candidate.score, scores.get(candidate.id, 0.0))
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Candidate(id=identity, score=score) for identity, score in ranked[:most])
