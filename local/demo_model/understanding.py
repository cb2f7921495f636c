"""The task "understanding": rewrite, split and shortlist intents. It proposes; the product's code decides.

Everything in the document is data. History is only looked at to complete a follow-up that names nothing but a
detail ("那纸质的呢？", "What about paper ones?").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from local.demo_model.choosing import Waiting, choose, read_waiting
from local.demo_model.fields import JsonObject, as_choice, as_list, as_object, as_text, as_whole_number
from local.demo_model.problems import RefusedRequestError
from local.demo_model.scoring import Candidate, Catalogue, Intent, encode_questions
from local.demo_model.splitting import firm_clauses, has_content, merge_likes, possible_clauses, tidy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.demo_model.encoder import SentenceEncoder
    from local.demo_model.recent import Recent

MAX_INPUT_CHARACTERS = 32 * 1024
MAX_INTENTS = 512
MAX_EXAMPLES = 8192
MAX_CANDIDATES = 5
# both sides of a possible cut must look like some intent this much before it is made
_SURE_ENOUGH = 0.5
_FOLLOW_UP = re.compile(
    r"\s*(?:(?:那么?|那如果|如果是)(?P<zh>[^，。？！,?!]{2,16})呢"
    r"|(?:(?:and|so) )?(?:what|how) about (?P<en>[^,.;?!]{3,60}))\s*[?？。.]?\s*",
    re.IGNORECASE,
)
_POINTS_AT_NOTHING = re.compile(
    r"(?:这|那|它|他|她)(?:个|些|里|边|儿|样)?的?|(?:it|this|that|these|those|them|him|her|you|me|us)",
    re.IGNORECASE,
)
_LONGEST_CONTEXT = 120


@dataclass(frozen=True)
class UnderstandingDocument:
    """The checked content of the last user message."""

    messages: tuple[str, ...]
    last_question: str | None
    intents: tuple[Intent, ...]
    waiting: tuple[Waiting, ...] = ()


def read_document(document: JsonObject) -> UnderstandingDocument:
    """Check the document's shape; raises ``RefusedRequestError`` with the place of what is wrong."""
    as_choice(document.get("task"), "task", ("understand",))
    as_choice(document.get("language"), "language", ("zh-CN", "en"))
    messages = [
        _message(item, f"input[{index}]")
        for index, item in enumerate(as_list(document.get("input"), "input", least=1, most=200))
    ]
    if sum(map(len, messages)) > MAX_INPUT_CHARACTERS:
        message = f"input has more than {MAX_INPUT_CHARACTERS} characters"
        raise RefusedRequestError(message, "context_length_exceeded", "input")
    last_question = None
    for index, item in enumerate(as_list(document.get("history"), "history", most=200)):
        entry = as_object(item, f"history[{index}]")
        role = as_choice(entry.get("role"), f"history[{index}].role", ("customer", "assistant", "agent"))
        text = as_text(entry.get("text"), f"history[{index}].text", empty=True)
        if role == "customer" and text.strip():
            last_question = tidy(text).replace("\n", " ")
    intents = tuple(
        _intent(item, f"intents[{index}]")
        for index, item in enumerate(as_list(document.get("intents"), "intents", most=MAX_INTENTS))
    )
    if sum(len(intent.examples) for intent in intents) > MAX_EXAMPLES:
        message = f"more than {MAX_EXAMPLES} examples in all"
        raise RefusedRequestError(message, "context_length_exceeded", "intents")
    if len({intent.id for intent in intents}) < len(intents):
        raise RefusedRequestError("two intents share an id", "duplicate_id", "intents")
    waiting = read_waiting(document.get("waiting", []))
    return UnderstandingDocument(tuple(messages), last_question, intents, waiting)


def _message(item: object, place: str) -> str:
    message = as_object(item, place)
    as_whole_number(message.get("message_seq"), f"{place}.message_seq", least=0)
    return as_text(tidy(as_text(message.get("text"), f"{place}.text")), f"{place}.text")


def _intent(item: object, place: str) -> Intent:
    entry = as_object(item, place)
    examples = as_list(entry.get("examples"), f"{place}.examples", most=200)
    return Intent(
        id=as_text(entry.get("id"), f"{place}.id"),
        name=as_text(entry.get("name"), f"{place}.name"),
        description=as_text(entry.get("description"), f"{place}.description", empty=True),
        examples=tuple(as_text(text, f"{place}.examples[{i}]") for i, text in enumerate(examples)),
    )


def understand(
    raw: JsonObject, encoder: SentenceEncoder, catalogues: Recent[tuple[Intent, ...], Catalogue]
) -> dict[str, Any]:
    """Answer ``{"rewritten", "sub_questions": [{"text", "candidates": [{"id", "score"}]}]}``, best first; where
    questions wait, also ``reply``, and then the message is that and no question."""
    document = read_document(raw)
    reply = choose(" ".join(document.messages), document.waiting, encoder)
    if reply.is_one:
        return {"rewritten": " ".join(document.messages), "sub_questions": [], "reply": reply.as_answer()}
    catalogue = catalogues.get(document.intents)
    completed = complete_follow_up(document.messages, document.last_question)
    if completed and _says_enough(document.messages[0], catalogue, encoder):
        completed = None
    questions = [completed] if completed else _split(document.messages, catalogue, encoder)
    answer: dict[str, Any] = {
        "rewritten": completed or " ".join(document.messages).replace("\n", " "),
        "sub_questions": [
            {
                "text": question,
                "candidates": [{"id": c.id, "score": c.score} for c in ranked[:MAX_CANDIDATES]],
            }
            for question, ranked in zip(questions, _rank(questions, catalogue, encoder), strict=True)
        ],
    }
    return {**answer, "reply": reply.as_answer()} if document.waiting else answer


def _says_enough(message: str, catalogue: Catalogue, encoder: SentenceEncoder) -> bool:
    """Whether a follow-up names an intent by itself: then the last question would only drown it."""
    ranked = _rank([message], catalogue, encoder)[0]
    return bool(ranked) and ranked[0].score >= _SURE_ENOUGH


def complete_follow_up(messages: Sequence[str], last_question: str | None) -> str | None:
    """Put the customer's last question before a follow-up that only names a new topic; None for anything else."""
    if len(messages) != 1 or not last_question or len(last_question) > _LONGEST_CONTEXT:
        return None
    found = _FOLLOW_UP.fullmatch(messages[0])
    if not found:
        return None
    topic = (found["zh"] or found["en"]).strip()
    if _POINTS_AT_NOTHING.fullmatch(topic) or not has_content(topic):
        return None
    return f"{last_question} {messages[0].strip()}"


def _split(messages: Sequence[str], catalogue: Catalogue, encoder: SentenceEncoder) -> list[str]:
    possible = [possible_clauses(clause) for clause in firm_clauses(messages)]
    uncertain = [part for parts in possible if len(parts) > 1 for part in parts]
    best = {
        part: ranked[0]
        for part, ranked in zip(uncertain, _rank(uncertain, catalogue, encoder), strict=True)
        if ranked
    }

    def are_different(left: str, right: str) -> bool:
        # a side that was joined before has no rank of its own: it stays one with what follows
        one, other = best.get(left), best.get(right)
        return bool(one and other and one.id != other.id and min(one.score, other.score) >= _SURE_ENOUGH)

    return [question for parts in possible for question in merge_likes(parts, are_different)]


def _rank(questions: Sequence[str], catalogue: Catalogue, encoder: SentenceEncoder) -> list[list[Candidate]]:
    if not questions:
        return []
    vectors = encode_questions(questions, encoder)
    return [catalogue.rank(question, vector) for question, vector in zip(questions, vectors, strict=True)]
