"""Between the candidates of one sub-question: consult or act, skill or document, or too close to call.

Runs on everything that is trusted, before the contract keeps one (F-102: guidance after the guard never fires).
Natural language is no permission: words like 演示 only let a skill in among the candidates, the contract still rules
(F-109). In this order: documents for a question that consults (F-103, F-104); a skill only in its bands (F-085 …
F-087) and never in the middle band over a reliable document (F-105); a question back where two stand too close.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.domain.contract import ACTING, authorise, contract_entry, resource_key
from turngate.domain.route_trace import Arbitration
from turngate.domain.shapes import Candidate, Frozen
from turngate.domain.texts import normalised, phrase_form

if TYPE_CHECKING:
    from turngate.domain.config import ContractEntry, GovernanceSlice
    from turngate.domain.shapes import Language, TenantContext


_DIGITS = 6
"""Scores are decimals on the wire: 0.9 leads 0.8 by 0.1, not by a little less."""


class Verdict(Frozen):
    """`best` goes to the contract, unless `rivals` stand too close to it; `best` None: nothing may go on."""

    best: Candidate | None
    rivals: tuple[Candidate, ...] = ()
    why: Arbitration = ""


def arbitrate(
    trusted: tuple[Candidate, ...],
    text: str,
    governed: GovernanceSlice,
    tenant: TenantContext,
    language: Language,
) -> Verdict:
    """Decide among trusted candidates, best first. `text`: the customer's words for this sub-question."""
    acts = _says(text, governed.routing.action_phrases)
    consults = not acts and _says(text, governed.routing.consulting_phrases)
    admitted = tuple(c for c in trusted if _may_lead(c, text, governed, acts=acts))
    if not admitted:
        return Verdict(best=None, why="skill_not_admitted" if trusted else "")
    best = admitted[0]
    document = next((c for c in admitted if _kind(governed, c.id) == "KB"), None)
    if document is not None and document != best:
        why = _yields(best, document, governed, consults=consults)
        if why:
            return Verdict(best=document, why=why)
    asked_to_act = acts and _kind(governed, best.id) in ACTING
    others = tuple(c for c in admitted[1:] if _may_rival(c, text, governed, acts=asked_to_act))
    rivals = _rivals(best, others, governed, tenant, language)
    if rivals:
        return Verdict(best=best, rivals=rivals, why="too_close")
    return Verdict(best=best, why="" if best == trusted[0] else "skill_not_admitted")


def _says(text: str, phrases: tuple[str, ...]) -> bool:
    form = normalised(text)
    return any(phrase_form(phrase) in form for phrase in phrases)


def _kind(governed: GovernanceSlice, intent_id: str) -> str:
    entry = contract_entry(governed, intent_id)
    return entry.kind if entry is not None else ""


def _may_lead(candidate: Candidate, text: str, governed: GovernanceSlice, *, acts: bool) -> bool:
    """Whether a candidate may be acted on at all; only skills have bands."""
    entry, bands = contract_entry(governed, candidate.id), governed.routing.skills
    if entry is None or entry.kind != "SKILL":
        return True
    if candidate.score < bands.mid:
        return False
    is_high = candidate.score >= bands.high
    needs_action = bands.explicit_action == "required" or (
        bands.explicit_action == "preferred" and not is_high
    )
    if needs_action and not acts:
        return False
    return is_high or not bands.lexical_in_mid_band or _has_lexical_evidence(entry, text)


def _has_lexical_evidence(entry: ContractEntry, text: str) -> bool:
    return _says(text, entry.lexical)


def _may_rival(candidate: Candidate, text: str, governed: GovernanceSlice, *, acts: bool) -> bool:
    """Whether a candidate behind the best is worth asking about: not a document when an action was asked for, and not
    a skill of which no word was said."""
    entry = contract_entry(governed, candidate.id)
    if entry is None or (acts and entry.kind == "KB"):
        return False
    return entry.kind != "SKILL" or not entry.lexical or _has_lexical_evidence(entry, text)


def _yields(
    best: Candidate, document: Candidate, governed: GovernanceSlice, *, consults: bool
) -> Arbitration:
    """Why an intent that acts gives way to a trusted document; empty when it does not."""
    routing, kind = governed.routing, _kind(governed, best.id)
    if kind in ACTING and consults and routing.prefer_knowledge:
        return "knowledge_preferred"
    bands = routing.skills
    reliable = document.score >= bands.mid
    if kind == "SKILL" and best.score < bands.high and reliable and routing.knowledge_overrides_mid_skill:
        return "knowledge_over_mid_skill"
    return ""


def _rivals(
    best: Candidate,
    others: tuple[Candidate, ...],
    governed: GovernanceSlice,
    tenant: TenantContext,
    language: Language,
) -> tuple[Candidate, ...]:
    """Trusted candidates close behind the best that would end differently, and that could be chosen at all."""
    routing, kind = governed.routing, _kind(governed, best.id)
    if not kind or (kind not in ACTING and not routing.guide_between_documents):
        return ()
    gap = max(routing.clarify_gap, routing.skills.gap) if kind == "SKILL" else routing.clarify_gap
    mine = resource_key(governed, best.id, authorise(governed, best.id, tenant, language))
    return tuple(
        rival
        for rival in others
        if round(best.score - rival.score, _DIGITS) < gap
        and resource_key(governed, rival.id, authorise(governed, rival.id, tenant, language)) != mine
    )
