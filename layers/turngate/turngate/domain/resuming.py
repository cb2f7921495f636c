"""Is this message the next step of something we asked, or something new?  (F-031 … F-037, F-041, F-042)

Rules decide first, by the form of the message and by what was really shown; they never guess among several. What they
cannot decide goes to Understand, whose proposal `verified` holds against the offer. This layer says which question is
answered and how, never which intent a new message has (F-037).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from turngate.domain import choosing
from turngate.domain.pending import PendingItem
from turngate.domain.replies import courteous, read_form
from turngate.domain.shapes import Frozen, Option
from turngate.domain.taking import Taken, Tried, choice_of, unclear_to, value_of
from turngate.domain.texts import normalised
from turngate.domain.wording import places_of, spelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.shapes import InputMessage, ProposedReply

_ONLY_ACKNOWLEDGE = ("YES", "THIS", "ANY", "WAIT")
_NAMES_NO_OPTION = ("SEVERAL", "ALL", "ANY", "THIS", "YES", "NO", "NONE", "CANCEL", "WAIT")


class Resumption(Frozen):
    """What a turn finds open, in the order of trying, and what of it the rules saw answered. `asked_last`: the ids of
    the questions that our last reply asked and never asked before: they may be asked once more. `said`: all that the
    customer wrote in this turn, answers and the rest."""

    open: tuple[PendingItem, ...] = ()
    taken: tuple[Taken, ...] = ()
    asked_last: tuple[str, ...] = ()
    said: str = ""

    def item(self, pending_id: str) -> PendingItem:
        return next(item for item in self.open if item.pending_id == pending_id)

    @property
    def waiting(self) -> tuple[PendingItem, ...]:
        """What is still unanswered: Understand may propose an answer to it, and no other."""
        gone = {taken.pending_id for taken in self.taken if taken.how != "unclear"}
        return tuple(item for item in self.open if item.pending_id not in gone and item.kind != "approval")


def resume(
    items: Sequence[PendingItem], messages: Sequence[InputMessage]
) -> tuple[Resumption, tuple[InputMessage, ...]]:
    """Try every message on every open item; the messages, or their rests, that nothing claimed are new. What answers
    one question twice was corrected: the last clear answer stands."""
    tried = Tried(items, min((message.message_seq for message in messages), default=0))
    taken: list[Taken] = []
    fresh: list[tuple[InputMessage, bool]] = []
    for message in messages:
        claims, rest = tried.claims(message.text)
        if not claims and taken and read_form(message.text).kind == "NO":
            claims = [unclear_to(tried.of(taken[-1].pending_id), message.text, "which_one")]
        if not claims:
            fresh.append((message, False))
            continue
        if read_form(message.text).kind in _ONLY_ACKNOWLEDGE and claims[0].how == "unclear":
            fresh.append((message, True))
        while rest:
            more, behind = tried.claims(rest)
            if not more:
                break
            claims, rest = tried.consistent([*claims, *more]), behind
        if not claims:  # what it says contradicts itself, and was asked before
            fresh.append((message, False))
            continue
        taken = _with(taken, claims)
        if rest:
            fresh.append((replace(message, text=rest), False))
    # "好的" beside a question is courtesy, and "这个" beside one belongs to it
    said_more = any(not acknowledges and not courteous(message.text) for message, acknowledges in fresh)
    if said_more:
        beside = {message.text for message, acknowledges in fresh if acknowledges}
        taken = [each for each in taken if each.how != "unclear" or each.text not in beside]
    left = tuple(message for message, acknowledges in fresh if said_more or not acknowledges)
    asked_last = tuple(item.pending_id for item in tried.asked_last)
    said = "\n".join(message.text for message in messages)
    return Resumption(open=tuple(items), taken=tuple(taken), asked_last=asked_last, said=said), left


def _with(taken: list[Taken], claims: Sequence[Taken]) -> list[Taken]:
    """The later answer to a question stands; but a mere "好的" undoes no clear one."""
    for pending_id in dict.fromkeys(claim.pending_id for claim in claims):
        new = [claim for claim in claims if claim.pending_id == pending_id]
        before = [each for each in taken if each.pending_id == pending_id]
        settled = any(each.how != "unclear" for each in before)
        unclear = new[0].how == "unclear" and read_form(new[0].text).kind in _ONLY_ACKNOWLEDGE
        if settled and unclear:
            continue
        taken = [each for each in taken if each.pending_id != pending_id] + new
    return taken


def verified(reply: ProposedReply, resumption: Resumption, text: str) -> Taken | str:
    """The model's proposal, if it stays within what is open and what was offered, contradicts nothing in the text,
    and if a value is one the customer wrote; else the code of what is wrong with it."""
    item = next((item for item in resumption.waiting if item.resume_token == reply.resume_token), None)
    if item is None:
        return "reply_to_nothing_open"
    if item.candidates:
        option = next((option for option in item.candidates if option.id == reply.option_id), None)
        if option is None:
            return "option_not_offered"
        return _objection(item, option, text) or choice_of(item, option, text, "model")
    value = reply.value.strip()
    if len(item.missing_fields) != 1 or not normalised(value) or not _says(text, value):
        return "value_not_said"
    if choosing.denied((Option(id="value", name=value),), text):
        return "value_denied"
    return value_of(item, text, value, "model")


def _objection(item: PendingItem, option: Option, text: str) -> str:
    """Why this option cannot be what the text chooses; empty when nothing speaks against it."""
    options, first = item.candidates, item.first_number
    form = read_form(text)
    refused = choosing.denied(options, text, first)
    said = choosing.mentioned(options, text, first)
    only = len(options) == 1
    if option.id in refused:
        return "option_denied"
    if form.kind in _NAMES_NO_OPTION and not (only and form.kind in ("YES", "THIS", "ALL")):
        return "option_not_said"
    if said and option.id not in said and not said & refused:
        return "other_option_said"
    if form.kind == "ORDINAL" and options.index(option) != form.number - first:
        return "other_option_said"
    if item.kind != "intent_guidance" and choosing.foreign_code(options, option, text):
        return "other_code_said"
    return ""


def _says(text: str, value: str) -> bool:
    return bool(places_of(normalised(value), spelled(text)))
