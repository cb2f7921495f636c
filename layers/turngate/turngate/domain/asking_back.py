"""The questions that we ask: numbered offers, asked once more where the answer did not say which.

What is printed is what is kept: every number in a reply means one thing, and no more is asked than stays open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from turngate.domain.pending import MAX_OPEN, waits_for_an_answer
from turngate.domain.shapes import Clarification, Option
from turngate.domain.texts import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.config import GovernanceSlice
    from turngate.domain.pending import PendingItem
    from turngate.domain.ruling import Decision
    from turngate.domain.shapes import Candidate, Language


def guidance(offered: Sequence[Candidate], governed: GovernanceSlice, language: Language) -> Clarification:
    """Which of these intents is meant? Numbered, so that "第二个" answers it."""
    names = {intent.id: intent.name for intent in governed.intents}
    options = tuple(
        Option(
            id=candidate.id,
            name=say(names[candidate.id], language, governed.default_language),
            also=tuple(names[candidate.id].values()),
        )
        for candidate in offered
        if candidate.id in names
    )
    lead = say(governed.replies.guidance_reply, language, governed.default_language)
    return Clarification(reason="intent_guidance", text=_printed(lead, options, 1), candidates=options)


def in_language(item: PendingItem, governed: GovernanceSlice, language: Language) -> PendingItem:
    """The open question with its intents named in this language; other options have the one name they came with."""
    names = {intent.id: intent.name for intent in governed.intents if item.kind == "intent_guidance"}
    default = governed.default_language
    options = (
        replace(option, name=say(names[option.id], language, default)) if option.id in names else option
        for option in item.candidates
    )
    return replace(item, candidates=tuple(options))


def once_more(item: PendingItem, lead: str, tail: str = "") -> Clarification:
    """The question of an open item again; `tail` is said after its options."""
    text = _printed(lead, item.candidates, 1) if item.candidates else item.text
    return Clarification(
        reason=item.kind,
        text="\n".join(part for part in (text, tail) if part),
        missing_fields=item.missing_fields,
        candidates=item.candidates,
        intent_id=item.intent_id,
        given=item.given,
    )


def lead_of(item: PendingItem, governed: GovernanceSlice, language: Language) -> str:
    """What is said before the options: for intents always the same, else what was said the first time."""
    if item.kind == "intent_guidance":
        return say(governed.replies.guidance_reply, language, governed.default_language)
    around = _around_options(item.text, item.candidates, item.first_number)
    return around[0] if around else item.text.partition("\n")[0]


def numbered_on(
    decisions: Sequence[Decision], governed: GovernanceSlice, language: Language
) -> list[Decision]:
    """Each question's options numbered on from those of the one before. Beyond what can stay open, a question is only
    asked to be said again."""
    numbered: list[Decision] = []
    number, asked = 1, 0
    for decision in decisions:
        route = decision.route
        if not isinstance(route, Clarification) or not waits_for_an_answer(route):
            numbered.append(decision)
            continue
        asked += 1
        if asked > MAX_OPEN:
            text = say(governed.replies.clarify_reply, language, governed.default_language)
            again = Clarification(reason="incomplete", text=text)
            numbered.append(replace(decision, route=again, guidance=(), again=0))
            continue
        parts = _around_options(route.text, route.candidates, 1)
        if parts is not None:
            text = f"{_printed(parts[0], route.candidates, number)}{parts[1]}"
            numbered.append(replace(decision, route=replace(route, text=text), first_number=number))
            number += len(route.candidates)
        else:
            numbered.append(decision)
    return numbered


def _printed(lead: str, options: Sequence[Option], first: int) -> str:
    return "\n".join([lead, *_lines(options, first)])


def _lines(options: Sequence[Option], first: int) -> list[str]:
    return [f"{number}. {option.name}" for number, option in enumerate(options, start=first)]


def _around_options(text: str, options: Sequence[Option], first: int) -> tuple[str, str] | None:
    """What stands before and after the numbered options, None where they are not printed like that."""
    lead, found, tail = text.partition("\n" + "\n".join(_lines(options, first))) if options else ("", "", "")
    return (lead, tail) if found else None
