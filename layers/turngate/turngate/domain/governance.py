"""The final ruling over what the model proposed: it does not classify again (F-089), it decides whether to go on.

In this order, for the whole turn and then for each sub-question:
1. a message that is only "查一下" is asked back, whatever the model made of it (NEED_CLARIFICATION);
2. a failed classification is a technical error and says so; it never widens what is allowed (ROUTING_ERROR);
3. a certain question is answered by its pre-routing rule, also inside a compound message;
4. a trusted candidate, at or above the threshold, goes to the contract (ROUTED). Where the best one acts and another
   resource comes within `clarify_gap`, we ask instead of guessing (NEED_CLARIFICATION);
5. below the threshold but not hopeless: public documents get one try (GLOBAL_KB_FALLBACK);
6. otherwise it is beyond what we promise (OUT_OF_SCOPE).

Govern runs with no rights at all, so everything here is a function of its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from turngate.domain.contract import ACTING, authorise, contract_entry, public_fallback
from turngate.domain.preroute import is_social, matching_rule, rule_reply
from turngate.domain.shapes import (
    AllowedRoute,
    Candidate,
    Clarification,
    FixedAnswer,
    Frozen,
    Part,
    Refusal,
    SubQuestion,
)
from turngate.domain.texts import normalised, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.domain.config import GovernanceSlice, Routing
    from turngate.domain.shapes import TenantContext, TurnInput, Understanding

RouteOutcome = Literal["ROUTED", "GLOBAL_KB_FALLBACK", "OUT_OF_SCOPE", "NEED_CLARIFICATION", "ROUTING_ERROR"]
"""F-090 … F-094. ROUTED with a refusal means: we know what is asked, and the contract says why not now."""
Resolution = Literal["RESOLVED", "NO_TRUSTED", "ERROR"]
"""F-078 … F-080."""
_Ruled = AllowedRoute | Clarification | Refusal | FixedAnswer


class PartRuling(Frozen):
    """Why one part goes where it goes, with the texts an operator needs to judge it (F-605, F-606)."""

    part_id: str
    question: str
    candidates: tuple[Candidate, ...] = ()
    resolution: Resolution
    outcome: RouteOutcome
    route_kind: str
    reason: str = ""
    intent_id: str = ""
    resource_name: str = ""


class RouteTrace(Frozen):
    """The operator's view of one ruling. Holds what the customer wrote: a working text of the run, never a log line."""

    original: str
    rewritten: str
    parts: tuple[PartRuling, ...]


class RulingEvent(Frozen):
    """What a state with a table right writes as a RunEvent: codes, ids and scores, no text (F-355)."""

    part: str
    kind: Literal["route_resolved"] = "route_resolved"
    data: dict[str, Any]


class Ruling(Frozen):
    """At least one part; `events` and `trace.parts` have one entry a part, in the same order."""

    parts: tuple[Part, ...]
    events: tuple[RulingEvent, ...]
    trace: RouteTrace


class _Decision(Frozen):
    sub_question: SubQuestion
    resolution: Resolution
    outcome: RouteOutcome
    route: _Ruled


def govern(
    turn_input: TurnInput, understanding: Understanding, governed: GovernanceSlice, tenant: TenantContext
) -> Ruling:
    """One ruling per sub-question, the same ones merged. Pure: the same arguments give the same ruling."""
    decisions = _merged(_decide(turn_input, understanding, governed, tenant))
    parts: list[Part] = []
    rulings: list[PartRuling] = []
    for number, decision in enumerate(decisions, start=1):
        part = Part(part_id=f"p{number}", question=decision.sub_question.text, route=decision.route)
        parts.append(part)
        rulings.append(_part_ruling(part, decision))
    trace = RouteTrace(original=turn_input.text, rewritten=understanding.rewritten, parts=tuple(rulings))
    return Ruling(parts=tuple(parts), events=tuple(_event(ruling) for ruling in rulings), trace=trace)


def resolution_of(sub_question: SubQuestion, routing: Routing) -> Resolution:
    """Whether any candidate may be trusted (F-076)."""
    return "RESOLVED" if _trusted(sub_question, routing) else "NO_TRUSTED"


def _trusted(sub_question: SubQuestion, routing: Routing) -> tuple[Candidate, ...]:
    above = [c for c in sub_question.candidates if c.score >= routing.intent_threshold]
    return tuple(sorted(above, key=lambda c: (-c.score, c.id)))


def _decide(
    turn_input: TurnInput, understanding: Understanding, governed: GovernanceSlice, tenant: TenantContext
) -> Iterator[_Decision]:
    language, replies, default = turn_input.language, governed.replies, governed.default_language
    whole = SubQuestion(text=turn_input.text)
    if all(_is_incomplete(message.text, governed.routing) for message in turn_input.messages):
        resolution: Resolution = "ERROR" if understanding.status == "ERROR" else "NO_TRUSTED"
        asking = Clarification(reason="incomplete", text=say(replies.clarify_reply, language, default))
        yield _Decision(sub_question=whole, resolution=resolution, outcome="NEED_CLARIFICATION", route=asking)
        return
    if understanding.status == "ERROR" or not understanding.sub_questions:
        failing = Refusal(reason="ROUTING_ERROR", text=say(replies.routing_error_reply, language, default))
        yield _Decision(sub_question=whole, resolution="ERROR", outcome="ROUTING_ERROR", route=failing)
        return
    for sub_question in _worth_answering(understanding.sub_questions, governed):
        outcome, route = _rule(sub_question, turn_input, governed, tenant)
        resolution = resolution_of(sub_question, governed.routing)
        yield _Decision(sub_question=sub_question, resolution=resolution, outcome=outcome, route=route)


def _is_incomplete(text: str, routing: Routing) -> bool:
    form = normalised(text)
    return not form or any(normalised(phrase) == form for phrase in routing.incomplete_expressions)


def _worth_answering(subs: tuple[SubQuestion, ...], governed: GovernanceSlice) -> tuple[SubQuestion, ...]:
    """Without greetings and fragments that the model split off, unless nothing else is there."""
    asked = [
        sub
        for sub in subs
        if not _is_incomplete(sub.text, governed.routing)
        and not is_social(matching_rule(governed.pre_routing, sub.text))
    ]
    return tuple(asked) or subs


def _rule(
    sub_question: SubQuestion, turn_input: TurnInput, governed: GovernanceSlice, tenant: TenantContext
) -> tuple[RouteOutcome, _Ruled]:
    language, replies, default = turn_input.language, governed.replies, governed.default_language
    if _is_incomplete(sub_question.text, governed.routing):
        text = say(replies.clarify_reply, language, default)
        return "NEED_CLARIFICATION", Clarification(reason="incomplete", text=text)
    certain = matching_rule(governed.pre_routing, sub_question.text)
    if certain is not None:
        text = rule_reply(certain, tenant, language, default)
        return "ROUTED", FixedAnswer(intent_id=certain.kind, resource_name=certain.id, text=text)
    trusted = _trusted(sub_question, governed.routing)
    if trusted:
        return _rule_trusted(trusted, turn_input, governed, tenant)
    best = max((candidate.score for candidate in sub_question.candidates), default=0.0)
    fallback = public_fallback(governed)
    if fallback is not None and best >= governed.routing.out_of_scope_below:
        return "GLOBAL_KB_FALLBACK", fallback
    return "OUT_OF_SCOPE", Refusal(
        reason="OUT_OF_SCOPE", text=say(replies.out_of_scope_reply, language, default)
    )


def _rule_trusted(
    trusted: tuple[Candidate, ...], turn_input: TurnInput, governed: GovernanceSlice, tenant: TenantContext
) -> tuple[RouteOutcome, _Ruled]:
    """The best candidate decides; a lower one never takes the place of one the contract refuses."""
    language, best = turn_input.language, trusted[0]
    route = authorise(governed, best.id, tenant, language)
    rivals = _rivals(trusted, route, turn_input, governed, tenant)
    if rivals:
        offered = (best, *rivals)
        names = {
            intent.id: say(intent.name, language, governed.default_language) for intent in governed.intents
        }
        lines = "".join(f"\n- {names.get(candidate.id, candidate.id)}" for candidate in offered)
        text = say(governed.replies.clarify_reply, language, governed.default_language) + lines
        ids = tuple(candidate.id for candidate in offered)
        return "NEED_CLARIFICATION", Clarification(reason="intent_guidance", text=text, candidates=ids)
    if isinstance(route, Refusal) and route.reason == "disabled":
        return "OUT_OF_SCOPE", route
    return "ROUTED", route


def _rivals(
    trusted: tuple[Candidate, ...],
    route: _Ruled,
    turn_input: TurnInput,
    governed: GovernanceSlice,
    tenant: TenantContext,
) -> tuple[Candidate, ...]:
    """Trusted candidates too close to a best one that acts, and that would end differently (F-095)."""
    entry = contract_entry(governed, trusted[0].id)
    if entry is None or entry.kind not in ACTING:
        return ()
    return tuple(
        rival
        for rival in trusted[1:]
        if trusted[0].score - rival.score < governed.routing.clarify_gap
        and authorise(governed, rival.id, tenant, turn_input.language) != route
    )


def _merged(decisions: Iterator[_Decision]) -> list[_Decision]:
    """Sub-questions with the same wording and the same end are one."""
    kept: list[_Decision] = []
    for decision in decisions:
        form = normalised(decision.sub_question.text)
        if not any(normalised(k.sub_question.text) == form and k.route == decision.route for k in kept):
            kept.append(decision)
    return kept


def _part_ruling(part: Part, decision: _Decision) -> PartRuling:
    route = decision.route
    resource = (
        {"reason": route.reason}
        if isinstance(route, Clarification | Refusal)
        else {"intent_id": route.intent_id, "resource_name": route.resource_name}
    )
    return PartRuling(
        part_id=part.part_id,
        question=part.question,
        candidates=decision.sub_question.candidates,
        resolution=decision.resolution,
        outcome=decision.outcome,
        route_kind=route.kind,
        **resource,
    )


def _event(ruling: PartRuling) -> RulingEvent:
    data = ruling.model_dump(mode="json", exclude={"part_id", "question"})
    return RulingEvent(part=ruling.part_id, data=data)
