"""The customer answers what we asked, and we ask: resumed questions become rulings, rulings become open questions.

What was chosen goes through the contract like any candidate: an answer of a customer is no permission either
(F-109). Everything here is a function of its arguments; the commit applies the changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from turngate.domain.contract import authorise
from turngate.domain.pending import Closing, Opening, PendingChanges, PendingItem, waits_for_an_answer
from turngate.domain.resuming import Resumption, Taken, verified
from turngate.domain.route_trace import ResumedFrom
from turngate.domain.ruling import Decision
from turngate.domain.shapes import (
    Candidate,
    Clarification,
    FixedAnswer,
    Frozen,
    Option,
    Refusal,
    SubQuestion,
)
from turngate.domain.texts import normalised, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.config import GovernanceSlice
    from turngate.domain.pending import PendingKind
    from turngate.domain.route_trace import RouteOutcome
    from turngate.domain.shapes import Language, Part, Route, TenantContext, TurnInput, Understanding

CANCELLED = "PENDING_CANCELLED"
"""Stands for the intent in the answer to "算了"."""
_SHORT = 24
"""Latin letters, of which a Chinese character counts two: what says so little, while we wait for an answer, was meant
as one."""
_CLOSES: dict[str, Any] = {"choice": "resumed", "value": "resumed", "none": "declined", "cancel": "cancelled"}


class Settled(Frozen):
    """Decisions for what was answered. `texts`: what the customer wrote as answers. `asks_something_new`: whether
    anything is left to rule on. `refused`: why the model's reading of an answer was not taken."""

    resumption: Resumption
    taken: tuple[Taken, ...]
    decisions: tuple[Decision, ...]
    texts: tuple[str, ...]
    asks_something_new: bool
    refused: str = ""


def settle(
    resumption: Resumption,
    understanding: Understanding,
    turn_input: TurnInput,
    governed: GovernanceSlice,
    tenant: TenantContext,
) -> Settled:
    """Rule on everything that was answered, by rules before and by the model's verified proposal now."""
    taken, refused = list(resumption.taken), ""
    if understanding.reply is not None:
        proposal = verified(understanding.reply, resumption, turn_input.text)
        if isinstance(proposal, Taken):
            taken.append(proposal)
        else:
            refused = proposal
    by_model = any(each.by == "model" for each in taken)
    decisions = tuple(
        _answered(resumption.item(each.pending_id), each, turn_input.language, governed, tenant)
        for each in taken
    )
    return Settled(
        resumption=resumption,
        taken=tuple(taken),
        decisions=decisions,
        texts=tuple(each.text for each in taken if each.by == "rule"),
        asks_something_new=not by_model or bool(understanding.sub_questions),
        refused=refused,
    )


def _answered(
    item: PendingItem, taken: Taken, language: Language, governed: GovernanceSlice, tenant: TenantContext
) -> Decision:
    replies, default = governed.replies, governed.default_language
    candidates: tuple[Candidate, ...] = ()
    intent_id, given = "", {**item.given}
    outcome: RouteOutcome = "NEED_CLARIFICATION"
    keeps_open = False
    route: Route
    if taken.how == "cancel":
        text = say(replies.cancelled_reply, language, default)
        route = FixedAnswer(intent_id=CANCELLED, resource_name=item.kind, text=text)
        outcome = "ROUTED"
    elif taken.how == "none":
        route = Clarification(reason="incomplete", text=say(replies.none_of_these_reply, language, default))
    elif taken.how == "unclear":
        lead = replies.no_such_option_reply if taken.reason == "no_such_option" else replies.guidance_reply
        route = _ask_again(item, say(lead, language, default))
        keeps_open = True
    else:
        is_guidance = item.kind == "intent_guidance"
        intent_id = taken.option_id if is_guidance else item.intent_id
        if not is_guidance and item.missing_fields:
            given[item.missing_fields[0]] = taken.option_id or taken.value
        candidates = (Candidate(id=intent_id, score=1.0),)
        route = authorise(governed, intent_id, tenant, language)
        refused = isinstance(route, Refusal) and route.reason == "disabled"
        outcome = "OUT_OF_SCOPE" if refused else "ROUTED"
    return Decision(
        sub_question=SubQuestion(text=item.question, candidates=candidates),
        resolution="RESOLVED",
        outcome=outcome,
        route=route,
        intent_id=intent_id,
        given=given,
        resumed=_resumed_from(item, taken),
        keeps_open=keeps_open,
    )


def _resumed_from(item: PendingItem, taken: Taken) -> ResumedFrom:
    return ResumedFrom(
        pending_id=item.pending_id,
        kind=item.kind,
        how=taken.how,
        by=taken.by,
        option_id=taken.option_id,
        field=taken.field,
        reason=taken.reason,
        text=taken.text,
        value=taken.value,
    )


def _ask_again(item: PendingItem, lead: str) -> Clarification:
    names = tuple(option.name for option in item.candidates)
    return Clarification(
        reason=item.kind,
        text=_numbered(lead, names) if names else item.text,
        missing_fields=item.missing_fields,
        candidates=item.candidates,
        intent_id=item.intent_id,
        given=item.given,
    )


def guidance(offered: Sequence[Candidate], governed: GovernanceSlice, language: Language) -> Clarification:
    """Which of these intents is meant? Numbered, so that "第二个" answers it."""
    default = governed.default_language
    names = {intent.id: intent.name for intent in governed.intents}
    options = tuple(
        Option(
            id=candidate.id,
            name=say(names[candidate.id], language, default),
            also=tuple(names[candidate.id].values()),
        )
        for candidate in offered
        if candidate.id in names
    )
    lead = say(governed.replies.guidance_reply, language, default)
    text = _numbered(lead, tuple(option.name for option in options))
    return Clarification(reason="intent_guidance", text=text, candidates=options)


def _numbered(lead: str, names: tuple[str, ...]) -> str:
    return "\n".join([lead, *(f"{number}. {name}" for number, name in enumerate(names, start=1))])


def or_ask_again(fresh: list[Decision], back: Settled, turn_input: TurnInput) -> list[Decision]:
    """While we wait for an answer, a few words that mean nothing else were an unclear answer, and so was what the
    model took for an answer that nobody offered: ask again instead of refusing it."""
    waiting = [item for item in back.resumption.waiting if item.candidates or item.missing_fields]
    lost = all(decision.resolution != "RESOLVED" and decision.outcome != "ROUTED" for decision in fresh)
    length = sum(1 if character.isascii() else 2 for character in normalised(turn_input.text))
    says_little = length <= _SHORT or bool(back.refused)
    if not waiting or not lost or back.taken or not says_little:
        return fresh
    item = max(waiting, key=lambda item: (item.asked_seq, item.pending_id))
    unclear = Taken(pending_id=item.pending_id, how="unclear", text=turn_input.text, reason="which_one")
    return [
        replace(
            decision,
            sub_question=SubQuestion(text=item.question, candidates=decision.sub_question.candidates),
            outcome="NEED_CLARIFICATION",
            route=_ask_again(item, item.text.partition("\n")[0]),
            resumed=_resumed_from(item, unclear),
            keeps_open=True,
        )
        for decision in fresh[:1]
    ]


def changes(back: Settled, parts: Sequence[Part], decisions: Sequence[Decision]) -> PendingChanges:
    """What the commit does to open questions: close what was answered, close what is asked anew or was answered by a
    fuller question, open what is asked."""
    closed = {each.pending_id: _CLOSES[each.how] for each in back.taken if each.how in _CLOSES}
    opened: list[Opening] = []
    for part, decision in zip(parts, decisions, strict=True):
        route = decision.route
        if isinstance(route, Clarification) and not decision.keeps_open and waits_for_an_answer(route):
            opened.append(Opening(part_id=part.part_id, question=part.question, clarification=route))
    for item in back.resumption.open:
        if any(_asks_the_same(item, opening.clarification, opening.question) for opening in opened):
            closed.setdefault(item.pending_id, "replaced")
        elif item.kind == "intent_guidance" and any(_settles(decision, item) for decision in decisions):
            closed.setdefault(item.pending_id, "resumed")
    return PendingChanges(
        opened=tuple(opened),
        closed=tuple(Closing(pending_id=name, state=state) for name, state in closed.items()),
    )


def _asks_the_same(item: PendingItem, asked: Clarification, question: str) -> bool:
    kind: PendingKind = item.kind
    same_offer = {option.id for option in item.candidates} == {option.id for option in asked.candidates}
    same_question = normalised(item.question) == normalised(question)
    if kind == "intent_guidance":
        return kind == asked.reason and (same_offer or same_question)
    return (
        kind == asked.reason
        and item.intent_id == asked.intent_id
        and item.missing_fields == asked.missing_fields
        and (same_question or same_offer)
    )


def _settles(decision: Decision, item: PendingItem) -> bool:
    """A fuller question that leads to one of the offered intents answers the guidance too."""
    return decision.resumed is None and decision.intent_id in {option.id for option in item.candidates}
