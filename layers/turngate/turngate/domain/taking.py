"""What one text says to the questions that are open, by its form and its names alone.

What only points ("第二个", "都不是", "好的") means what was asked last; what names a thing or states a value finds its
question by that, in S1's order (F-035). Where a text contradicts itself or leaves several possible, it is unclear, and
nothing is chosen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from turngate.domain import choosing
from turngate.domain.replies import OTHER, ReplyForm, clauses, courteous, read_form
from turngate.domain.shapes import Frozen
from turngate.domain.texts import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.pending import PendingItem
    from turngate.domain.shapes import Option

How = Literal["choice", "value", "none", "cancel", "unclear"]
Reason = Literal["", "no_such_option", "which_one", "one_first", "own_words"]
_CORRECTS = (
    r"(?i)\s*(?:不对|错了|说错|我说错|啊不|哦不|应该|我是说|除|但|不过|只"
    r"|(?:no|not|wait|sorry|actually|i mean|except|but|only|just)\b)"
)
_MOST_ANSWERS = 8
"""Clauses: who says more is not choosing among what we offered."""
_MOST_AT_ONCE = 4
"""Choices that one message may make of one offer; each is a part, and a turn has room for six."""
_CERTAIN_IN_FRONT = ("ORDINAL", "SEVERAL", "ALL", "LAST", "NONE", "CANCEL")


class Taken(Frozen):
    """How an open question was answered; several choices of one question are several of these. `unclear`: it was
    meant, but not which ("就这个" of two): ask again. `reason` says why it is unclear, or with `none` that the customer
    could not choose. `text` is the customer's message or the part of it that answers."""

    pending_id: str
    how: How
    text: str
    option_id: str = ""
    field: str = ""
    value: str = ""
    reason: Reason = ""
    by: Literal["rule", "model"] = "rule"


class Tried:
    """The open questions, and what texts say to them. `first_seq` numbers the turn's first message."""

    def __init__(self, items: Sequence[PendingItem], first_seq: int) -> None:
        self._items = tuple(item for item in items if item.kind != "approval")
        self._latest = _newest(items)
        self._choices = _newest([item for item in self._items if item.candidates])
        is_last_said = any(first_seq <= item.asked_seq + 1 for item in self._latest)
        self._last_said = tuple(item for item in self._latest if is_last_said and item.kind != "approval")
        self.asked_last = tuple(item for item in self._last_said if not item.again)

    def of(self, pending_id: str) -> PendingItem:
        return next(item for item in self._items if item.pending_id == pending_id)

    def claims(self, text: str) -> tuple[list[Taken], str]:
        """What the text answers, and what else it says. Nothing claimed: the text is something new."""
        form = read_form(text)
        if form.kind != "OTHER":
            return self._by_very_name(form, text) or self._by_form(form, text), ""
        named = self._by_name(text) or self._by_value(text)
        return (named, "") if named else self._by_clauses(text)

    def _by_clauses(self, text: str) -> tuple[list[Taken], str]:
        """Answers in front, and what follows them. A name in front of anything but another answer is a sentence."""
        said: list[tuple[ReplyForm, str]] = []
        rest = text
        for clause, behind in clauses(text):
            form = read_form(clause)
            if form == OTHER and courteous(clause):
                form = ReplyForm("YES")
            if form == OTHER and not self._chosen_by_name(clause):
                break
            said.append((form, clause))
            rest = behind
            if len(said) > _MOST_ANSWERS:
                break
        if not said or len(said) > _MOST_ANSWERS or (not rest and said[0][1] == text.strip()):
            return [], ""
        standing = _standing(said)
        if rest and (not standing or said[-1][0].kind == "NO" or _takes_back(rest)):
            return [], ""
        names_only = all(form.kind == "OTHER" for form, _ in standing)
        if rest and names_only and (len(choosing.values_in(text)) > 1 or not self.claims(rest)[0]):
            return [], ""
        if not standing:
            return self._without_choice(said, text), ""
        claims = [
            each
            for form, clause in standing
            for each in (
                self._chosen_by_name(clause) if form.kind == "OTHER" else self._by_form(form, clause)
            )
        ]
        return self.consistent(claims), rest if claims else ""

    def _without_choice(self, said: Sequence[tuple[ReplyForm, str]], text: str) -> list[Taken]:
        """Of several clauses none chooses: a no takes back what was said, a thanks or a good-bye says nothing to us."""
        if any(form.kind == "NO" for form, _ in said):
            only = self._only_one_offered()
            return [_taken(only, "none", text)] if only else self._asking(self._last_said, text, "which_one")
        if any(read_form(clause).kind == "OTHER" for _, clause in said):
            return []
        return self._by_form(said[0][0], text)

    def consistent(self, claims: Sequence[Taken]) -> list[Taken]:
        """Several places or several names of one question are several answers; a place and another name contradict
        each other, and so does a choice beside a refusal."""
        kept: list[Taken] = []
        for pending_id in dict.fromkeys(each.pending_id for each in claims):
            own = {each.option_id: each for each in claims if each.pending_id == pending_id}
            text = " ".join(dict.fromkeys(each.text for each in own.values()))
            by_place = {read_form(each.text).kind != "OTHER" for each in own.values()}
            if len(own) > 1 and (len(by_place) > 1 or any(each.how != "choice" for each in own.values())):
                kept += self._asking([self.of(pending_id)], text, "which_one")
            else:
                kept += self._several(list(own.values()), text)
        return kept

    def _by_very_name(self, form: ReplyForm, text: str) -> list[Taken]:
        """An option that is called like a form ("其他", "Cancel") is meant by its name; a number stays a number."""
        said = normalised(text)
        options = [
            (item, option)
            for item in self._choices
            for option in item.candidates
            if said in {normalised(name) for name in choosing.names_of(option)}
        ]
        return [choice_of(*options[0], text)] if len(options) == 1 and form.kind != "ORDINAL" else []

    def _by_form(self, form: ReplyForm, text: str) -> list[Taken]:
        match form.kind:
            case "CANCEL":
                claims = [_taken(item, "cancel", text) for item in self._latest]
            case "NONE":
                claims = [_taken(item, "none", text) for item in self._choices]
            case "ORDINAL":
                claims = self._by_places((form.number,), text)
            case "LAST":
                claims = self._by_places((-1,), text)
            case "SEVERAL":
                claims = self._several(self._by_places(form.numbers, text), text)
            case "ALL":
                claims = self._every_one(form, text)
            case "ANY":
                claims = self._undecided(text)
            case "THIS" | "YES" | "WAIT":
                claims = self._acknowledged(form, text)
            case _:
                only = self._only_one_offered() if form.kind == "NO" else None
                claims = [_taken(only, "none", text)] if only else []
        return claims

    def _by_places(self, numbers: Sequence[int], text: str) -> list[Taken]:
        """The options printed at these places by the reply that offered last; -1 is the last one printed."""
        claims: list[Taken] = []
        for number in numbers:
            hits = [
                (item, item.candidates[place])
                for item in self._choices
                if 0 <= (place := number - item.first_number) < len(item.candidates)
            ]
            if number == -1 and self._choices:
                last = max(self._choices, key=lambda item: item.first_number)
                hits = [(i, i.candidates[-1]) for i in self._choices if i.first_number == last.first_number]
            if len(hits) == 1:
                claims.append(choice_of(*hits[0], text))
                continue
            ending = self._by_name(text) if not hits and len(numbers) == 1 else []
            if any(claim.how == "choice" for claim in ending):
                return ending
            return self._asking(
                [i for i, _ in hits] or self._choices, text, "which_one" if hits else "no_such_option"
            )
        return claims

    def _several(self, claims: list[Taken], text: str) -> list[Taken]:
        """Several intents are several questions; of several orders one has to come first."""
        items = list(dict.fromkeys(each.pending_id for each in claims))
        blocked = [self.of(i) for i in items if sum(each.pending_id == i for each in claims) > 1]
        if len(claims) <= _MOST_AT_ONCE and all(item.kind == "intent_guidance" for item in blocked):
            return claims
        return self._asking(blocked, text, "one_first")

    def _every_one(self, form: ReplyForm, text: str) -> list[Taken]:
        item = self._choices[0] if len(self._choices) == 1 else None
        if item is None or (form.numbers and len(item.candidates) not in (1, *form.numbers)):
            return self._asking(self._choices, text, "which_one")
        return self._several([choice_of(item, option, text) for option in item.candidates], text)

    def _undecided(self, text: str) -> list[Taken]:
        """Somebody who cannot choose is asked once more, and then in words of their own."""
        again = self._asking(self._last_said, text, "own_words")
        return again or [_taken(item, "none", text, reason="own_words") for item in self._last_said]

    def _acknowledged(self, form: ReplyForm, text: str) -> list[Taken]:
        only = self._only_one_offered()
        if only and form.kind != "WAIT":
            return [choice_of(only, only.candidates[0], text)]
        return self._asking(self._last_said, text, "which_one")

    def _only_one_offered(self) -> PendingItem | None:
        """The question that was asked last, if it was the only one and offered one thing: yes and no answer it."""
        item = self._last_said[0] if len(self._last_said) == 1 else None
        return item if item and len(item.candidates) == 1 else None

    def _asking(self, items: Sequence[PendingItem], text: str, reason: Reason) -> list[Taken]:
        """Unclear, if these may be asked once more: only what we said last, and only once."""
        return [unclear_to(item, text, reason) for item in items if item in self.asked_last]

    def _by_name(self, text: str) -> list[Taken]:
        unclear: list[Taken] = []
        for item in self._items:
            if not item.candidates:
                continue
            pointed = choosing.pointed_at(item.candidates, text, item.first_number)
            if pointed.surely:
                return self._several([choice_of(item, option, text) for option in pointed.options], text)
            if pointed.options:
                unclear += self._asking([item], text, "which_one")
        return unclear

    def _chosen_by_name(self, text: str) -> list[Taken]:
        return [claim for claim in self._by_name(text) if claim.how == "choice"]

    def _by_value(self, text: str) -> list[Taken]:
        """A number that stands alone is the one field that is missing, where one question alone misses one. Anything
        else needs to be understood: a name or a city looks like any other word."""
        asked = _newest([i for i in self._items if not i.candidates and len(i.missing_fields) == 1])
        values = choosing.values_in(text)
        if len(asked) != 1 or len(values) != 1 or choosing.asks(text):
            return []
        (value,) = values
        if not choosing.is_numberlike(value) or not choosing.alone_with(text, value):
            return []
        return [value_of(asked[0], text, choosing.as_written(text, value), "rule")]


def _takes_back(rest: str) -> bool:
    """Whether what follows an answer corrects, limits or denies it: "不要", "but not the first"."""
    clause = next((clause for clause, _ in clauses(rest)), rest)
    return bool(re.match(_CORRECTS, clause)) or (choosing.refuses(clause) and not choosing.asks(clause))


def _newest(items: Sequence[PendingItem]) -> tuple[PendingItem, ...]:
    """Those that one reply asked, the last one that asked any."""
    latest = max((item.asked_seq for item in items), default=0)
    return tuple(item for item in items if item.asked_seq == latest)


def _standing(said: Sequence[tuple[ReplyForm, str]]) -> list[tuple[ReplyForm, str]]:
    """What remains of answers said one after another: "不对" takes back what stands before it, a choice overrides a
    refusal and a refusal a choice."""
    kept: list[tuple[ReplyForm, str]] = []
    for form, clause in said:
        if form.kind == "NO":
            kept = []
        elif form.kind in ("CANCEL", "NONE"):
            kept = [(form, clause)]
        elif form.kind in _CERTAIN_IN_FRONT or form == OTHER:
            kept = [each for each in kept if each[0].kind not in ("CANCEL", "NONE")] + [(form, clause)]
    return kept


def _taken(item: PendingItem, how: How, text: str, reason: Reason = "") -> Taken:
    return Taken(pending_id=item.pending_id, how=how, text=text, reason=reason)


def unclear_to(item: PendingItem, text: str, reason: Reason) -> Taken:
    return _taken(item, "unclear", text, reason)


def choice_of(item: PendingItem, option: Option, text: str, by: Literal["rule", "model"] = "rule") -> Taken:
    return Taken(pending_id=item.pending_id, how="choice", text=text, option_id=option.id, by=by)


def value_of(item: PendingItem, text: str, value: str, by: Literal["rule", "model"]) -> Taken:
    field = item.missing_fields[0]
    return Taken(pending_id=item.pending_id, how="value", text=text, field=field, value=value, by=by)
