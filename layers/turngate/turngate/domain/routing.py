"""What governance rules by, as data: numbers, phrase lists, corrections, and how skills are let in.

A tenant types phrases, never patterns: a list of phrases cannot hang (ARCHITECTURE, rule 7), can be read by the person
who owns it, and says exactly what it covers. Every correction names its owner and the evidence that it is needed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from turngate.domain.shapes import Frozen, Ident

MAX_CORRECTIONS = 12
"""F-101: corrections stay few. A new one needs a trace and an evaluation, not a wish."""
MAX_GROUPS = 5
"""Of `all_of`: the words found of each group are told in the trace of every part."""
MAX_FALLBACK_COLLECTIONS = 10
"""Each is named in the route of every part, and searched."""
MAX_PHRASE_CHARS = 100

Score = Annotated[float, Meta(ge=0, le=1)]
"""NaN is neither, and is refused."""
Risk = Literal["L0", "L1", "L2", "L3", "L4"]
RISKS: tuple[Risk, ...] = ("L0", "L1", "L2", "L3", "L4")


class Correction(Frozen):
    """One confusion that is known and certain (F-096 … F-100): where the customer's own words hold a phrase of every
    group of `all_of` and none of `none_of`, `to_intent` takes the place of a leading candidate of `from_intents`."""

    id: Ident
    owner: Annotated[str, Meta(min_length=1)]
    evidence: Annotated[str, Meta(min_length=1)]
    from_intents: Annotated[tuple[Ident, ...], Meta(min_length=1)]
    to_intent: Ident
    all_of: Annotated[tuple[tuple[str, ...], ...], Meta(min_length=1)]
    none_of: tuple[str, ...] = ()


class SkillBands(Frozen):
    """When a skill may start from what somebody wrote (F-085 … F-087). Defaults: S2's preset `conservative` (F-513)."""

    high: Score = 0.82
    mid: Score = 0.64
    gap: Score = 0.08
    explicit_action: Literal["required", "preferred", "optional"] = "required"
    lexical_in_mid_band: bool = True


class Routing(Frozen):
    """Numbers and lists that governance rules by. The seeds give few numbers; the others are ours
    (docs/governance.md says what they were chosen on)."""

    intent_threshold: Score = 0.5
    """A candidate at or above it is trusted (F-076)."""
    out_of_scope_below: Score = 0.35
    """A best candidate below it is hopeless: refuse. Between the two: see `unclassified` (F-091, F-092)."""
    max_candidates: Annotated[int, Meta(ge=1, le=10)] = 3
    shortlist: Annotated[int, Meta(ge=10, le=200)] = 32
    """A catalogue of more intents than this is cut to the nearest ones before a model sees it."""
    clarify_gap: Score = 0.1
    """The best intent needs this lead over a trusted candidate of another resource, else we ask (F-095, F-102)."""
    guide_between_documents: bool = True
    """Whether two collections that close are asked about too, or only intents that act."""
    fallback_collections: tuple[Ident, ...] = ()
    incomplete_expressions: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    skills: SkillBands = SkillBands()
    prefer_knowledge: bool = True
    """A question that consults gets documents, also where an intent that acts scores higher (F-103, F-104)."""
    knowledge_overrides_mid_skill: bool = True
    """A skill in the middle band never beats a document whose intent reaches that band too (F-105)."""
    action_phrases: tuple[str, ...] = ()
    """Words with which customers ask for an action: 演示, 检查, show me (F-084)."""
    consulting_phrases: tuple[str, ...] = ()
    """Words with which they ask how something works: 怎么, 如何, how do I."""
    unclassified: Literal["search", "ask"] = "search"
    """F-107: what happens between hopeless and trusted."""
    no_result: Literal["fixed", "clarify"] = "fixed"
    """F-106: what is said when documents hold nothing. Handing over at once comes with hand-off by the assistant."""
    max_risk: Risk = "L3"
    """An entry above it is blocked, whoever asks (R-16)."""
