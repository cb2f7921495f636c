"""The customer answers what we asked, and we ask: resumed questions become rulings, rulings become open questions.

What was chosen goes through the contract like any candidate: an answer of a customer is no permission either
(F-109). Everything here is a function of its arguments; the commit applies the changes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from turngate.domain import asking_back
from turngate.domain.choosing import asks, denied, named, names_of
from turngate.domain.contract import authorise
from turngate.domain.pending import Closing, Opening, PendingChanges, PendingItem, waits_for_an_answer
from turngate.domain.replies import clauses, courteous, points_at_nothing, read_form
from turngate.domain.resuming import Resumption, verified
from turngate.domain.route_trace import ResumedFrom
from turngate.domain.ruling import Decision
from turngate.domain.shapes import (
    Candidate,
    Clarification,
    FixedAnswer,
    Frozen,
    Refusal,
    SubQuestion,
)
from turngate.domain.taking import Taken
from turngate.domain.texts import normalised, say
from turngate.domain.wording import topic_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.config import GovernanceSlice
    from turngate.domain.route_trace import RouteOutcome
    from turngate.domain.shapes import Language, Part, Route, TenantContext, TurnInput, Understanding

CANCELLED = "PENDING_CANCELLED"
"""Stands for the intent in the answer to "算了"."""
_CLOSES: dict[str, Any] = {"choice": "resumed", "value": "resumed", "none": "declined", "cancel": "cancelled"}
_BESIDES = r"(?i)\s*(?:还有|以及|和|\band\b)\s*"


class Settled(Frozen):
    """Decisions for what was answered. `asks_something_new`: whether anything is left to rule on. `refused`: why the
    model's reading of an answer was not taken."""

    resumption: Resumption
    taken: tuple[Taken, ...]
    decisions: tuple[Decision, ...]
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
            taken = [each for each in taken if each.pending_id != proposal.pending_id] + [proposal]
        else:
            refused = proposal
    by_model = any(each.by == "model" for each in taken)
    decisions = [
        _answered(resumption.item(each.pending_id), each, turn_input.language, governed, tenant)
        for each in taken
    ]
    if by_model and not understanding.sub_questions:
        decisions += _left_over(taken[-1], resumption, turn_input, governed)
    return Settled(
        resumption=resumption,
        taken=tuple(taken),
        decisions=tuple(decisions),
        asks_something_new=not by_model or bool(understanding.sub_questions),
        refused=refused,
    )


def _left_over(
    taken: Taken, resumption: Resumption, turn_input: TurnInput, governed: GovernanceSlice
) -> list[Decision]:
    """What stands beside the name that the model took for the answer, and of which it says nothing: asked back."""
    names = next(
        (
            {normalised(name) for name in names_of(option)}
            for option in resumption.item(taken.pending_id).candidates
            if option.id == taken.option_id
        ),
        set[str](),
    )
    said = [
        piece
        for message in turn_input.messages
        for clause, _ in clauses(message.text)
        for piece in re.split(_BESIDES, clause)
        if normalised(piece)
    ]
    rest = [clause for clause in said if normalised(clause) not in names]
    rest = [clause for clause in rest if read_form(clause).kind == "OTHER" and not courteous(clause)]
    if not rest or not any(normalised(clause) in names for clause in said):
        return []
    text = say(governed.replies.clarify_reply, turn_input.language, governed.default_language)
    return [
        Decision(
            sub_question=SubQuestion(text=", ".join(rest)),
            resolution="NO_TRUSTED",
            outcome="NEED_CLARIFICATION",
            route=Clarification(reason="incomplete", text=text),
        )
    ]


def _answered(
    item: PendingItem, taken: Taken, language: Language, governed: GovernanceSlice, tenant: TenantContext
) -> Decision:
    replies, default = governed.replies, governed.default_language
    candidates: tuple[Candidate, ...] = ()
    intent_id, given = "", {**item.given}
    outcome: RouteOutcome = "NEED_CLARIFICATION"
    route: Route
    if taken.how == "cancel":
        text = say(replies.cancelled_reply, language, default)
        route = FixedAnswer(intent_id=CANCELLED, resource_name=item.kind, text=text)
        outcome = "ROUTED"
    elif taken.how == "none":
        reply = replies.own_words_reply if taken.reason == "own_words" else replies.none_of_these_reply
        route = Clarification(reason="incomplete", text=say(reply, language, default))
    elif taken.how == "unclear":
        return _asked_again(item, taken, language, governed)
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
    )


def _asked_again(item: PendingItem, taken: Taken, language: Language, governed: GovernanceSlice) -> Decision:
    """The same question once more, as a new one: it may be answered as long, and is not asked a third time."""
    replies, default = governed.replies, governed.default_language
    asked = asking_back.in_language(item, governed, language)
    lead = {
        "no_such_option": say(replies.no_such_option_reply, language, default),
        "one_first": say(replies.one_at_a_time_reply, language, default),
    }.get(taken.reason) or asking_back.lead_of(item, governed, language)
    tail = say(replies.own_words_reply, language, default) if taken.reason == "own_words" else ""
    route = asking_back.once_more(asked, lead, tail)
    return Decision(
        sub_question=SubQuestion(text=item.question),
        resolution="RESOLVED",
        outcome="NEED_CLARIFICATION",
        route=route,
        resumed=_resumed_from(item, taken),
        again=item.again + 1,
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


def or_ask_again(
    fresh: list[Decision], back: Settled, turn_input: TurnInput, governed: GovernanceSlice
) -> list[Decision]:
    """What we would ask back anyway, right after a question of ours, was a failed answer to it: that is asked again,
    once. What would be answered, searched, refused or failed without an open question is so with one, too."""
    again = back.resumption.asked_last
    item = next((each for each in back.resumption.waiting if each.pending_id in again), None)
    text = turn_input.text
    meant_as_one = back.refused not in ("", "reply_to_nothing_open") or points_at_nothing(text)
    if item is None or back.taken or (asks(text) and not meant_as_one):
        return fresh
    options, first = item.candidates, item.first_number
    is_about_it = named(options, text) or bool(denied(options, text, first))
    if not all(_is_failed_answer(decision, is_about_it) for decision in fresh):
        return fresh
    unclear = Taken(pending_id=item.pending_id, how="unclear", text=text, reason="which_one")
    decision = _asked_again(item, unclear, turn_input.language, governed)
    candidates = fresh[0].sub_question.candidates
    return [
        replace(
            decision,
            sub_question=SubQuestion(text=item.question, candidates=candidates),
            resolution=fresh[0].resolution,
        )
    ]


def _is_failed_answer(decision: Decision, is_about_it: bool) -> bool:
    """Asked back because it says nothing by itself; or beyond what we promise, and yet it speaks of what we offered
    ("not the product search")."""
    route = decision.route
    if isinstance(route, Clarification):
        return route.reason == "incomplete" and not decision.arbitration
    return is_about_it and decision.outcome == "OUT_OF_SCOPE" and decision.resumed is None


def changes(
    back: Settled, parts: Sequence[Part], decisions: Sequence[Decision], turn_input: TurnInput
) -> PendingChanges:
    """What the commit does to open questions: close what was answered, close what is asked anew or was answered by a
    fuller question about the same, open what is asked."""
    closed = {each.pending_id: _CLOSES[each.how] for each in back.taken if each.how in _CLOSES}
    opened: list[Opening] = []
    for part, decision in zip(parts, decisions, strict=True):
        route = decision.route
        if not isinstance(route, Clarification) or not waits_for_an_answer(route):
            continue
        opening = Opening(
            part_id=part.part_id,
            question=part.question,
            clarification=route,
            first_number=decision.first_number,
            again=decision.again,
        )
        opened.append(opening)
        if decision.resumed is not None:
            closed.setdefault(decision.resumed.pending_id, "replaced")
    for item in back.resumption.open:
        if any(_asks_the_same(item, opening.clarification, opening.question) for opening in opened):
            closed.setdefault(item.pending_id, "replaced")
        elif any(_settles(decision, item, turn_input.text) for decision in decisions):
            closed.setdefault(item.pending_id, "resumed")
    return PendingChanges(
        opened=tuple(opened),
        closed=tuple(Closing(pending_id=name, state=state) for name, state in closed.items()),
    )


def _asks_the_same(item: PendingItem, asked: Clarification, question: str) -> bool:
    """Whether the new question makes the open one needless: the same offer or gap, about the same thing."""
    same_offer = {option.id for option in item.candidates} == {option.id for option in asked.candidates}
    same_gap = item.intent_id == asked.intent_id and item.missing_fields == asked.missing_fields
    same_words = normalised(item.question) == normalised(question)
    return (
        item.kind == asked.reason and same_gap and (same_words or (same_offer and _related(item, question)))
    )


def _settles(decision: Decision, item: PendingItem, text: str) -> bool:
    """A fuller question about the same thing that leads to one of the offered intents answers the guidance too, and
    so does one that says the name of what was offered."""
    option = next((option for option in item.candidates if option.id == decision.intent_id), None)
    if item.kind != "intent_guidance" or option is None or decision.resumed is not None:
        return False
    said = f"{text}\n{decision.sub_question.text}"
    return named((option,), said) or _related(item, said)


def _related(item: PendingItem, said: str) -> bool:
    """Whether what is said is about the thing that the open question is about: they share a word, one that names no
    option where both have such, and no number of one stands against another of the other."""
    named = topic_words(" ".join(name for o in item.candidates for name in (o.name, *o.also)))
    was, now = topic_words(item.question), topic_words(said)
    numbers = [{word for word in words if any(map(str.isdigit, word))} for words in (was, now)]
    if all(numbers) and not numbers[0] & numbers[1]:
        return False
    things = (was - named, now - named)
    return bool(things[0] & things[1] if all(things) else was & now)
