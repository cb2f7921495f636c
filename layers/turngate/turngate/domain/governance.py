"""The final ruling over what the model proposed: it does not classify again (F-089), it decides whether to go on.

First what the message answers of our own open questions. Then, for the rest as a whole and for each sub-question:
1. a message that is only "查一下" or only points is asked back, whatever the model made of it, and so is one in which
   it found nothing asked (NEED_CLARIFICATION);
2. a failed classification is a technical error and says so; it never widens what is allowed (ROUTING_ERROR);
3. a certain question is answered by its pre-routing rule, also inside a compound message, and mere courtesy by a
   courtesy;
4. corrections put an intent in the lead that the customer's own words make certain (F-096 … F-100);
5. a trusted candidate, at or above the threshold, goes to the contract (ROUTED), unless another one stands too close:
   then we ask, and keep the question open (NEED_CLARIFICATION);
6. below the threshold but not hopeless: public documents get one try (GLOBAL_KB_FALLBACK), or we ask;
7. otherwise it is beyond what we promise (OUT_OF_SCOPE).

Govern runs with no rights at all, so everything here is a function of its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from turngate.domain import answering_back, asking_back
from turngate.domain.arbitration import arbitrate
from turngate.domain.contract import ACTING, authorise, contract_entry, public_fallback
from turngate.domain.corrections import correct
from turngate.domain.pending import PendingChanges
from turngate.domain.preroute import COURTESY, courtesy_reply, is_social, matching_rule, rule_reply
from turngate.domain.replies import courteous, points_at_nothing, says_nothing
from turngate.domain.resuming import Resumption
from turngate.domain.route_trace import (
    Arbitration,
    ContractView,
    PartRuling,
    Resolution,
    RouteOutcome,
    RouteTrace,
    RulingEvent,
    event_of,
)
from turngate.domain.ruling import Decision
from turngate.domain.shapes import (
    Candidate,
    Clarification,
    FixedAnswer,
    Frozen,
    Part,
    Refusal,
    Route,
    SubQuestion,
    Understanding,
)
from turngate.domain.texts import normalised, phrase_form, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.domain.config import GovernanceSlice
    from turngate.domain.routing import Routing
    from turngate.domain.shapes import TenantContext, TurnInput


MAX_PARTS = 6
"""What a turn's payloads have room for: answers to our questions first, then what is asked anew."""


class Ruling(Frozen):
    """At least one part; `events` and `trace.parts` have one entry a part, in the same order."""

    parts: tuple[Part, ...]
    events: tuple[RulingEvent, ...]
    trace: RouteTrace
    pending: PendingChanges = PendingChanges()


def govern(
    turn_input: TurnInput,
    understanding: Understanding | None,
    governed: GovernanceSlice,
    tenant: TenantContext,
    resumption: Resumption | None = None,
) -> Ruling:
    """One ruling per sub-question, the same ones merged. Pure: the same arguments give the same ruling. `understanding`
    is None when nothing but answers to open questions was said; `turn_input` is what was left to understand."""
    read = understanding or Understanding(status="OK")
    back = answering_back.settle(resumption or Resumption(), read, turn_input, governed, tenant)
    decisions = list(back.decisions)
    if back.asks_something_new and understanding is not None:
        fresh = list(_decide(turn_input, read, governed, tenant))
        decisions += answering_back.or_ask_again(fresh, back, turn_input, governed)
    asked = _merged(decisions)
    decisions = asking_back.numbered_on(asked[:MAX_PARTS], governed, turn_input.language)
    parts: list[Part] = []
    rulings: list[PartRuling] = []
    for number, decision in enumerate(decisions, start=1):
        question = decision.sub_question.text
        part = Part(part_id=f"p{number}", question=question, route=decision.route, given=decision.given)
        parts.append(part)
        rulings.append(_part_ruling(part, decision, governed))
    trace = RouteTrace(
        original=back.resumption.said or turn_input.text,
        rewritten=read.rewritten,
        error=read.error,
        drift=read.drift,
        discarded=(*read.discarded, *(f"surplus_part:{each.intent_id}" for each in asked[MAX_PARTS:])),
        refused_reply=back.refused,
        offered=read.offered,
        parts=tuple(rulings),
    )
    pending = answering_back.changes(back, parts, decisions, turn_input)
    events = tuple(event_of(ruling) for ruling in rulings)
    return Ruling(parts=tuple(parts), events=events, trace=trace, pending=pending)


def resolution_of(sub_question: SubQuestion, routing: Routing) -> Resolution:
    """Whether any candidate may be trusted (F-076)."""
    return "RESOLVED" if _trusted(sub_question.candidates, routing) else "NO_TRUSTED"


def _trusted(candidates: tuple[Candidate, ...], routing: Routing) -> tuple[Candidate, ...]:
    above = [c for c in candidates if c.score >= routing.intent_threshold]
    return tuple(sorted(above, key=lambda c: (-c.score, c.id)))


def _decide(
    turn_input: TurnInput, understanding: Understanding, governed: GovernanceSlice, tenant: TenantContext
) -> Iterator[Decision]:
    language, replies, default = turn_input.language, governed.replies, governed.default_language
    whole = SubQuestion(text=turn_input.text)
    nothing_asked = understanding.status == "OK" and not understanding.sub_questions
    if nothing_asked or all(_is_incomplete(m.text, governed.routing) for m in turn_input.messages):
        resolution: Resolution = "ERROR" if understanding.status == "ERROR" else "NO_TRUSTED"
        asking = Clarification(reason="incomplete", text=say(replies.clarify_reply, language, default))
        yield Decision(sub_question=whole, resolution=resolution, outcome="NEED_CLARIFICATION", route=asking)
        return
    if understanding.status == "ERROR":
        failing = Refusal(reason="ROUTING_ERROR", text=say(replies.routing_error_reply, language, default))
        yield Decision(sub_question=whole, resolution="ERROR", outcome="ROUTING_ERROR", route=failing)
        return
    asked = _worth_answering(understanding.sub_questions, governed)
    for sub_question in asked:
        wording = turn_input.text if len(asked) == 1 else sub_question.text
        yield _rule(sub_question, wording, turn_input, governed, tenant)


def _is_incomplete(text: str, routing: Routing) -> bool:
    form = normalised(text)
    listed = any(phrase_form(phrase) == form for phrase in routing.incomplete_expressions)
    return not form or listed or points_at_nothing(text) or says_nothing(text)


def _worth_answering(subs: tuple[SubQuestion, ...], governed: GovernanceSlice) -> tuple[SubQuestion, ...]:
    """Without greetings and fragments that the model split off, unless nothing else is there."""
    asked = [
        sub
        for sub in subs
        if not _is_incomplete(sub.text, governed.routing)
        and not is_social(matching_rule(governed.pre_routing, sub.text))
        and not courteous(sub.text)
    ]
    return tuple(asked) or subs


def _rule(
    sub_question: SubQuestion,
    wording: str,
    turn_input: TurnInput,
    governed: GovernanceSlice,
    tenant: TenantContext,
) -> Decision:
    language, replies, default = turn_input.language, governed.replies, governed.default_language
    routing = governed.routing
    given = Decision(
        sub_question=sub_question,
        resolution=resolution_of(sub_question, routing),
        outcome="NEED_CLARIFICATION",
        route=Clarification(reason="incomplete", text=say(replies.clarify_reply, language, default)),
    )
    if _is_incomplete(sub_question.text, routing):
        return given
    certain = matching_rule(governed.pre_routing, sub_question.text)
    if certain is not None:
        text = rule_reply(certain, tenant, language, default)
        answer = FixedAnswer(intent_id=certain.kind, resource_name=certain.id, text=text)
        return replace(given, outcome="ROUTED", route=answer)
    if courteous(sub_question.text):
        text = courtesy_reply(governed, language, default)
        answer = FixedAnswer(intent_id=COURTESY, resource_name=COURTESY, text=text)
        return replace(given, outcome="ROUTED", route=answer)
    candidates, applied = correct(
        sub_question.candidates,
        routing.corrections,
        wording=wording,
        original=turn_input.text,
        reachable=frozenset(e.intent_id for e in governed.contract if e.enabled),
        acting=frozenset(e.intent_id for e in governed.contract if e.enabled and e.kind in ACTING),
        threshold=routing.intent_threshold,
    )
    if applied is not None:
        outcome, route = _authorised(candidates[0].id, governed, tenant, turn_input)
        found = {"correction": applied, "outcome": outcome, "route": route, "intent_id": candidates[0].id}
        return replace(given, **found)
    verdict = arbitrate(_trusted(candidates, routing), wording, governed, tenant, language)
    if verdict.best is None:
        return replace(given, **_untrusted(sub_question, verdict.why, turn_input, governed))
    if verdict.rivals:
        offered = (verdict.best, *verdict.rivals)
        asking = asking_back.guidance(offered, governed, language)
        ids = tuple(candidate.id for candidate in offered)
        return replace(given, route=asking, guidance=ids, arbitration=verdict.why)
    outcome, route = _authorised(verdict.best.id, governed, tenant, turn_input)
    found = {"outcome": outcome, "route": route, "arbitration": verdict.why, "intent_id": verdict.best.id}
    return replace(given, **found)


def _authorised(
    intent_id: str, governed: GovernanceSlice, tenant: TenantContext, turn_input: TurnInput
) -> tuple[RouteOutcome, Route]:
    """The best candidate decides; a lower one never takes the place of one the contract refuses."""
    route = authorise(governed, intent_id, tenant, turn_input.language)
    refused = isinstance(route, Refusal) and route.reason == "disabled"
    return ("OUT_OF_SCOPE" if refused else "ROUTED"), route


def _untrusted(
    sub_question: SubQuestion, why: Arbitration, turn_input: TurnInput, governed: GovernanceSlice
) -> dict[str, object]:
    """Nothing may go on: public documents, a question back, or a refusal (F-091, F-092, F-107); never a tool."""
    language, replies, default = turn_input.language, governed.replies, governed.default_language
    best = max((candidate.score for candidate in sub_question.candidates), default=0.0)
    fallback = public_fallback(governed)
    if best < governed.routing.out_of_scope_below:
        text = say(replies.out_of_scope_reply, language, default)
        refusal = Refusal(reason="OUT_OF_SCOPE", text=text)
        return {"outcome": "OUT_OF_SCOPE", "route": refusal, "arbitration": why or "hopeless"}
    if governed.routing.unclassified == "ask":
        return {"arbitration": why or "unclassified_ask"}
    if fallback is None:
        text = say(replies.out_of_scope_reply, language, default)
        refusal = Refusal(reason="OUT_OF_SCOPE", text=text)
        return {"outcome": "OUT_OF_SCOPE", "route": refusal, "arbitration": why or "unclassified_search"}
    return {"outcome": "GLOBAL_KB_FALLBACK", "route": fallback, "arbitration": why or "unclassified_search"}


def _merged(decisions: list[Decision]) -> list[Decision]:
    """Sub-questions with the same wording and the same end are one."""
    kept: list[Decision] = []
    for decision in decisions:
        form = normalised(decision.sub_question.text)
        if not any(normalised(k.sub_question.text) == form and k.route == decision.route for k in kept):
            kept.append(decision)
    return kept


def _part_ruling(part: Part, decision: Decision, governed: GovernanceSlice) -> PartRuling:
    route = decision.route
    entry = contract_entry(governed, decision.intent_id) if decision.intent_id else None
    contract = (
        ContractView(**{name: getattr(entry, name) for name in ContractView.__struct_fields__})
        if entry is not None
        else None
    )
    stated = isinstance(route, Clarification | Refusal)
    return PartRuling(
        part_id=part.part_id,
        question=part.question,
        resumed=decision.resumed,
        candidates=decision.sub_question.candidates,
        resolution=decision.resolution,
        correction=decision.correction,
        arbitration=decision.arbitration,
        guidance=decision.guidance,
        outcome=decision.outcome,
        contract=contract,
        route_kind=route.kind,
        fallback=getattr(route, "fallback", False),
        reason=route.reason if isinstance(route, Clarification | Refusal) else "",
        intent_id=decision.intent_id if stated else route.intent_id,  # type: ignore[union-attr]  # stated ones are out
        resource_name=(entry.resource_name if entry else "") if stated else route.resource_name,  # type: ignore[union-attr]  # as above
    )
