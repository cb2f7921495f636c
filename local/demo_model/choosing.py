"""Does a message answer a question that waits?  By likeness to what was offered, and only when one offer stands out.

A value for a missing field is never guessed: this model cannot tell a city from any other word.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from local.demo_model.fields import as_list, as_object, as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.demo_model.encoder import SentenceEncoder

MAX_WAITING = 8
MAX_OPTIONS = 50
# how alike a message and a name must be, and by how much more than the next name, to be taken for a choice
ALIKE = 0.6
LEAD = 0.1
# a longer message says something of its own
_LONGEST = 60


@dataclass(frozen=True)
class Option:
    """Something that was offered."""

    id: str
    name: str


@dataclass(frozen=True)
class Waiting:
    """An open question of the assistant."""

    token: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Reply:
    """What the message chooses, of which waiting question; nothing by default."""

    question: str = "none"
    option: str = ""

    @property
    def is_one(self) -> bool:
        return bool(self.option)

    def as_answer(self) -> dict[str, str]:
        return {"resume_token": self.question, "option_id": self.option, "value": ""}


NO_REPLY = Reply()


def read_waiting(value: object) -> tuple[Waiting, ...]:
    """Check the document's ``waiting``; raises ``RefusedRequestError`` with the place of what is wrong."""
    found = []
    for index, item in enumerate(as_list(value, "waiting", most=MAX_WAITING)):
        place = f"waiting[{index}]"
        entry = as_object(item, place)
        options = [
            Option(
                as_text(as_object(each, f"{place}.options").get("option_id"), f"{place}.options"),
                as_text(as_object(each, f"{place}.options").get("name"), f"{place}.options"),
            )
            for each in as_list(entry.get("options"), f"{place}.options", most=MAX_OPTIONS)
        ]
        found.append(Waiting(as_text(entry.get("resume_token"), f"{place}.resume_token"), tuple(options)))
    return tuple(found)


def choose(message: str, waiting: Sequence[Waiting], encoder: SentenceEncoder) -> Reply:
    """The one option that the message is alike, by meaning or, for a typing error, by its letters."""
    offered = [(each.token, option) for each in waiting for option in each.options]
    if not offered or len(message) > _LONGEST:
        return NO_REPLY
    vectors = encoder.encode([message, *(option.name for _, option in offered)])
    scores = [
        max(
            float(vector @ vectors[0]),
            SequenceMatcher(None, message.casefold(), option.name.casefold()).ratio(),
        )
        for vector, (_, option) in zip(vectors[1:], offered, strict=True)
    ]
    ranked = sorted(zip(scores, range(len(offered)), strict=True), reverse=True)
    best, place = ranked[0]
    runner_up = ranked[1][0] if len(ranked) > 1 else 0.0
    if best < ALIKE or best - runner_up < LEAD:
        return NO_REPLY
    token, option = offered[place]
    return Reply(token, option.id)
