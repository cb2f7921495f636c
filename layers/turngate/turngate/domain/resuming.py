"""Is this message the next step of something we asked, or something new?  (F-031 … F-037, F-041, F-042)

Rules decide first, by the form of the message and by what was really shown; they never guess among several. What they
cannot decide goes to Understand, whose proposal `verified` holds against the offer. This layer says which question is
answered and how, never which intent a new message has (F-037).
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from turngate.domain.figures import codes_in
from turngate.domain.pending import PendingItem
from turngate.domain.replies import ReplyForm, core, divide, read_form
from turngate.domain.shapes import Frozen, Option
from turngate.domain.texts import normalised

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from turngate.domain.shapes import InputMessage, ProposedReply

_LEAST_CORE = 2
_MOST_BESIDE_NAME = 6
"""Normalised characters beside a name or an id ("那块", "please"): more is a sentence of its own."""
_MOST_BESIDE_VALUE = 20
_LONG_NUMBER = r"(?<![A-Za-z0-9_-])\d{6,}(?![A-Za-z0-9_-])"
_ASKS = (
    r"(?i)[?？]|[吗呢么]|怎|多久|多少|什么|哪|谁|如何|是否"
    r"|\b(?:what|how|when|where|which|who|why)\b|^\s*(?:can|could|is|are|do|does|did|will)\b"
)


class Taken(Frozen):
    """How an open question was answered. `unclear`: it was meant, but not which ("就这个" of two): ask again, keep it
    open. `reason` says why it is unclear. `text` is the customer's message or the part of it that answers."""

    pending_id: str
    how: Literal["choice", "value", "none", "cancel", "unclear"]
    text: str
    option_id: str = ""
    field: str = ""
    value: str = ""
    reason: Literal["", "no_such_option", "which_one"] = ""
    by: Literal["rule", "model"] = "rule"


class Resumption(Frozen):
    """What a turn finds open, in the order of trying, and what of it the rules saw answered."""

    open: tuple[PendingItem, ...] = ()
    taken: tuple[Taken, ...] = ()

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
    """Try every message on every open item; the messages, or their rests, that nothing claimed are new."""
    taken: dict[str, Taken] = {}
    fresh: list[InputMessage] = []
    for message in messages:
        first, rest = divide(message.text)
        left = [item for item in items if item.pending_id not in taken]
        claimed = _claim(left, first)
        if claimed is None:
            fresh.append(message)
            continue
        taken[claimed.pending_id] = claimed
        if rest and not (claimed.how == "cancel" and read_form(rest).kind == "CANCEL"):
            fresh.append(replace(message, text=rest))
    return Resumption(open=tuple(items), taken=tuple(taken.values())), tuple(fresh)


def _claim(items: Sequence[PendingItem], text: str) -> Taken | None:
    """The first definite claim, else the first unclear one. "算了" means what was asked last, whatever its kind."""
    form = read_form(text)
    if form.kind == "CANCEL":
        latest = max(items, key=lambda item: (item.asked_seq, item.pending_id), default=None)
        return Taken(pending_id=latest.pending_id, how="cancel", text=text) if latest else None
    claims = [claim for item in items if (claim := claim_of(item, text, form)) is not None]
    return next((claim for claim in claims if claim.how != "unclear"), claims[0] if claims else None)


def claim_of(item: PendingItem, text: str, form: ReplyForm) -> Taken | None:
    """What one item makes of a message; None when the rules see no answer to it."""
    if item.kind == "approval":
        return None
    if item.candidates:
        return _chosen(item, text, form)
    return _supplied(item, text, form)


def _chosen(item: PendingItem, text: str, form: ReplyForm) -> Taken | None:
    options = item.candidates
    only = options[0] if len(options) == 1 else None
    match form.kind:
        case "ORDINAL":
            if form.number > len(options):
                return _unclear(item, text, "no_such_option")
            return _choice(item, text, options[form.number - 1])
        case "LAST":
            return _choice(item, text, options[-1])
        case "THIS" | "YES":
            return _choice(item, text, only) if only else _unclear(item, text, "which_one")
        case "NONE":
            return Taken(pending_id=item.pending_id, how="none", text=text)
        case "NO":
            return Taken(pending_id=item.pending_id, how="none", text=text) if only else None
    named = list(_named(options, text))
    if len(named) == 1:
        return _choice(item, text, named[0])
    return _unclear(item, text, "which_one") if named else None


def _named(options: Sequence[Option], text: str) -> Iterator[Option]:
    """Options that the text names, asking nothing and saying little else: by id, by a whole name, or by a part that
    names no other. Where one name lies within another, the longer one is meant."""
    if re.search(_ASKS, text):
        return
    form, inner = normalised(text), core(text)
    whole = {
        option.id: max((len(name) for name in _names(option) if name in form), default=0)
        for option in options
    }
    longest = max(whole.values())
    if longest:
        for option in options:
            if whole[option.id] == longest and len(form) - longest <= _MOST_BESIDE_NAME:
                yield option
        return
    if len(inner) >= _LEAST_CORE:
        yield from (option for option in options if any(inner in name for name in _names(option)))


def _names(option: Option) -> set[str]:
    return {
        form
        for name in (option.id, option.name, *option.also)
        if len(form := normalised(name)) >= _LEAST_CORE
    }


def _supplied(item: PendingItem, text: str, form: ReplyForm) -> Taken | None:
    """A code or a long number that stands almost alone is the one field that is missing. Anything else needs to be
    understood: a name or a city looks like any other word."""
    if form.kind != "OTHER" or len(item.missing_fields) != 1 or re.search(_ASKS, text):
        return None
    values = {*codes_in(text), *re.findall(_LONG_NUMBER, unicodedata.normalize("NFKC", text))}
    if len(values) != 1:
        return None
    value = values.pop()
    if len(normalised(text)) - len(normalised(value)) > _MOST_BESIDE_VALUE:
        return None
    return _value(item, text, as_written(text, value), "rule")


def as_written(text: str, value: str) -> str:
    """The value with the letters the customer used; codes are compared case folded."""
    folded = unicodedata.normalize("NFKC", text)
    place = folded.casefold().find(value.casefold())
    return folded[place : place + len(value)] if place >= 0 else value


def verified(reply: ProposedReply, resumption: Resumption, text: str) -> Taken | str:
    """The model's proposal, if it stays within what is open and what was offered, and if a value is one the customer
    wrote; else the code of what is wrong with it."""
    item = next((item for item in resumption.waiting if item.resume_token == reply.resume_token), None)
    if item is None:
        return "reply_to_nothing_open"
    if item.candidates:
        option = next((option for option in item.candidates if option.id == reply.option_id), None)
        return _choice(item, text, option, "model") if option else "option_not_offered"
    value = reply.value.strip()
    if len(item.missing_fields) != 1 or not normalised(value) or normalised(value) not in normalised(text):
        return "value_not_said"
    return _value(item, text, value, "model")


def _choice(item: PendingItem, text: str, option: Option, by: Literal["rule", "model"] = "rule") -> Taken:
    return Taken(pending_id=item.pending_id, how="choice", text=text, option_id=option.id, by=by)


def _value(item: PendingItem, text: str, value: str, by: Literal["rule", "model"]) -> Taken:
    field = item.missing_fields[0]
    return Taken(pending_id=item.pending_id, how="value", text=text, field=field, value=value, by=by)


def _unclear(item: PendingItem, text: str, reason: Literal["no_such_option", "which_one"]) -> Taken:
    return Taken(pending_id=item.pending_id, how="unclear", text=text, reason=reason)
