"""What is wrong with the texts that customers read, and with the names that they choose among."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from msgspec.structs import replace

from turngate.domain.config import MAX_NAME_CHARS, MAX_TEXT_BYTES, AssistantConfig
from turngate.domain.finding import Finding
from turngate.domain.replies import read_form
from turngate.domain.shapes import Frozen, Language
from turngate.domain.standard_replies import MessageTypeReplies, StandardReplies
from turngate.domain.texts import normalised, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turngate.domain.config import Intent
    from turngate.domain.shapes import Texts

_LOGIN_PLACEHOLDERS = ("{customer}", "{principal}")
_LONGEST_ID = "x" * 128
"""As long as an id that replaces a placeholder may be."""
_PLACEHOLDER = r"\{\s*[^\W\d][\w .-]{0,63}\}"
_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Fillers that Unicode counts as letters and symbols and nobody sees."""


class SaidText(Frozen):
    """One text in one language. `shown`: to customers, not to the model alone. `placeholders`: what is replaced."""

    path: str
    language: Language
    text: str
    shown: bool = True
    placeholders: tuple[str, ...] = ()

    @property
    def longest(self) -> str:
        """The text with the longest ids in it that it may be said with."""
        text = self.text
        for placeholder in self.placeholders:
            text = text.replace(placeholder, _LONGEST_ID)
        return text


def json_bytes(text: str) -> int:
    """UTF-8 bytes that the text takes in a payload; quotes, backslashes and line ends count two."""
    escaped = sum(1 for character in text if character in '"\\\n\t\r')
    return len(text.encode()) + escaped


def text_findings(config: AssistantConfig) -> Iterator[Finding]:
    """A text is there in every language, can be seen, fits, and holds nothing that stays unreplaced."""
    missing: dict[str, list[Language]] = {}
    for said in every_text(config):
        if said.language in config.languages and not is_visible(said.text):
            missing.setdefault(said.path, []).append(said.language)
        elif said.text:
            yield from _flaws(said)
    for path, languages in missing.items():
        message = f"no {' and no '.join(languages)} text that can be seen: write it"
        yield Finding(code="missing_text", path=path, message=message)


def _flaws(said: SaidText) -> Iterator[Finding]:
    if (size := json_bytes(said.longest)) > MAX_TEXT_BYTES:
        longest = " with the longest ids" if said.placeholders else ""
        message = (
            f"the {said.language} text takes {size} bytes{longest}; at most {MAX_TEXT_BYTES}: shorten it"
        )
        yield Finding(code="text_too_long", path=said.path, message=message)
    if printable(said.text) != said.text:
        message = f"the {said.language} text holds control characters: type them out of it"
        yield Finding(code="control_character", path=said.path, message=message)
    for found in dict.fromkeys(re.findall(_PLACEHOLDER, said.text)):
        if said.shown and found not in said.placeholders:
            message = (
                f"{found} would be shown as it stands: only the reply of an AUTH_CONTEXT rule has placeholders, "
                f"{' and '.join(_LOGIN_PLACEHOLDERS)}"
            )
            yield Finding(code="unknown_placeholder", path=said.path, message=message)


def is_visible(text: str) -> bool:
    """Whether there is anything to see: not only spaces, control and format characters, and marks on nothing."""
    return any(unicodedata.category(c)[0] in "LNPS" and c not in _BLANK_LETTERS for c in text)


def every_text(config: AssistantConfig) -> Iterator[SaidText]:
    """Every text of a configuration in every language; an empty one for a language that is lacking."""
    for path, texts in _replies(config):
        yield from _in_each_language(config, path, texts)
    for index, intent in enumerate(config.intents):
        yield from _in_each_language(config, f"intents/{index}/name", intent.name)
        for said in _in_each_language(config, f"intents/{index}/description", intent.description):
            yield replace(said, shown=False)
    for index, rule in enumerate(config.pre_routing.rules):
        replaced = _LOGIN_PLACEHOLDERS if rule.kind == "AUTH_CONTEXT" else ()
        for said in _in_each_language(config, f"pre_routing/rules/{index}/reply", rule.reply):
            yield replace(said, placeholders=replaced)
        if rule.reply_guest is not None:
            yield from _in_each_language(config, f"pre_routing/rules/{index}/reply_guest", rule.reply_guest)


def _in_each_language(config: AssistantConfig, path: str, texts: Texts) -> Iterator[SaidText]:
    for language in dict.fromkeys([*config.languages, *texts]):
        yield SaidText(path=path, language=language, text=texts.get(language, ""))


def _replies(config: AssistantConfig) -> Iterator[tuple[str, Texts]]:
    for name in StandardReplies.__struct_fields__:
        yield name, getattr(config, name)
    for name in MessageTypeReplies.__struct_fields__:
        yield f"message_type_replies/{name}", getattr(config.message_type_replies, name)
    for action, texts in config.system_replies.items():
        yield f"system_replies/{action}", texts


def name_findings(intents: Iterable[Intent]) -> Iterator[Finding]:
    """Customers are offered the names of enabled intents as options, and answer with them: each must be a short line,
    nobody else's, and nothing that answers without naming anything ("取消", "第一个")."""
    offered = [(index, intent) for index, intent in enumerate(intents) if intent.enabled]
    owner = {normalised(intent.id): intent.id for _, intent in offered}
    for index, intent in offered:
        path = f"intents/{index}/name"
        if read_form(intent.id).kind != "OTHER":
            message = f"{intent.id} is what customers answer a question of ours with: choose another id"
            yield Finding(code="name_is_a_reply", path=f"intents/{index}/id", message=message)
        for name in dict.fromkeys(intent.name.values()):
            if not is_visible(name):
                continue
            form = normalised(name)
            if not form:
                message = f"“{name}” has no letter or digit to choose it by: write a word"
                yield Finding(code="name_without_words", path=path, message=message)
            elif owner.setdefault(form, intent.id) != intent.id:
                message = f"“{name}” already names {owner[form]}, and customers choose by name: change one"
                yield Finding(code="duplicate_name", path=path, message=message)
            if read_form(name).kind != "OTHER":
                message = f"“{name}” is what customers answer a question of ours with: choose another name"
                yield Finding(code="name_is_a_reply", path=path, message=message)
            if len(name) > MAX_NAME_CHARS:
                message = f"{len(name)} characters; at most {MAX_NAME_CHARS}: say more in the description"
                yield Finding(code="name_too_long", path=path, message=message)
            if name.splitlines() != [name]:
                message = f"“{name.splitlines()[0]} …” has several lines: write one"
                yield Finding(code="name_of_several_lines", path=path, message=message)
