"""The task "reply": answer each part by quoting one to three sentences of its evidence, or decline.

There is no text of its own in here. A quote is verbatim, so what the documents do not say is never said, and an
instruction hidden in a document is at most quoted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from local.demo_model.fields import JsonObject, as_choice, as_list, as_object, as_text
from local.demo_model.problems import RefusedRequestError
from local.demo_model.recent import Recent
from local.demo_model.scoring import encode_questions
from local.demo_model.sentences import Sentence, join, quotable
from local.demo_model.wording import is_mostly_chinese, likeness, rarity, shared_weight, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.demo_model.encoder import SentenceEncoder, Vectors

MAX_QUOTES = 3
MAX_PARTS = 20
MAX_EVIDENCE = 50
_LONGEST_ANSWER = 400
_KEPT_ROWS = 20_000
_MOST_SENTENCES = 300
# cosine with the sentence, cosine with the sentence under its titles, shared telling words; across languages, where
# no words can be shared, the cosines count for them
_WEIGHTS = (0.35, 0.35, 0.3)
_WEIGHTS_ACROSS = (0.5, 0.5, 0.0)
# added for the order of preference only: the asked language
_OWN_LANGUAGE = 0.1
# who asks for an amount or a time wants a sentence that holds a number
_HOLDS_NUMBER = 0.05
_ASKS_NUMBER = re.compile(
    r"多久|多少|多长|多大|几|什么时候|何时|费用|价格|期限|how (?:long|much|many|soon|often|old|big)|when|what time",
    re.IGNORECASE,
)
# how one asks is no topic: "保修多久" is about 保修, and not about every title that says 多久
_ASKING = frozenset(
    [
        "怎么",
        "么样",
        "什么",
        "为什",
        "如何",
        "多少",
        "多久",
        "多长",
        "多大",
        "几天",
        "哪些",
        "哪个",
        "哪里",
        "哪儿",
    ]
)
_NUMBER = re.compile(r"\d|[一二三四五六七八九十百千万两半]\s*(?:个|天|日|周|月|年|小时|分|元|次|%)")
# a sentence that starts with a condition answers a question that names it, and others less well
_CONDITIONAL = -0.04
_CONDITION = re.compile(r"如果|如需|若|超过|仍|(?:if|unless|when|once|otherwise)\b", re.IGNORECASE)
# the search that found the evidence ranked it too: its first passage is worth this much more than its last
_RANK = 0.04
# a fit below this does not speak about the question
_ENOUGH = 0.32
# further quotes must come this close to the best one; the sentence after it may be weaker
_NEAR_BEST = 0.06
_NEAR_BEST_NEXT = 0.12
_SAME_SAYING = 0.75


@dataclass(frozen=True)
class Evidence:
    """One retrieved passage; ``ref`` is unique within its part."""

    ref: str
    title: str
    text: str


@dataclass(frozen=True)
class ReplyPart:
    """One question and what may be quoted for it."""

    part_id: str
    question: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class _Quote:
    position: int
    ref: str
    sentence: Sentence
    fit: float
    preference: float


@dataclass(frozen=True)
class Passage:
    """A passage's sentences, their words, and two vectors each: alone, and under the passage's titles."""

    sentences: tuple[Sentence, ...]
    words: tuple[frozenset[str], ...]
    alone: Vectors
    titled: Vectors


def recent_passages(encoder: SentenceEncoder) -> Recent[tuple[str, str], Passage]:
    """The passages of recent prompts by title and text, prepared: the same documents are quoted again and again."""
    return Recent(lambda key: _prepare(*key, encoder), lambda passage: 2 * len(passage.sentences), _KEPT_ROWS)


def _prepare(title: str, text: str, encoder: SentenceEncoder) -> Passage:
    sentences = quotable(text)[:_MOST_SENTENCES]
    titled = [" ".join(filter(None, (title, s.heading, s.text))) for s in sentences]
    vectors = encoder.encode([*(s.text for s in sentences), *titled])
    count = len(sentences)
    words = tuple(terms(text) for text in titled)
    return Passage(tuple(sentences), words, vectors[:count], vectors[count:])


def read_document(document: JsonObject) -> tuple[tuple[ReplyPart, ...], bool]:
    """Check the document's shape; returns the parts and whether Chinese is asked for."""
    as_choice(document.get("task"), "task", ("reply",))
    chinese = as_choice(document.get("language"), "language", ("zh-CN", "en")) == "zh-CN"
    parts = tuple(
        _part(item, f"parts[{index}]")
        for index, item in enumerate(as_list(document.get("parts"), "parts", least=1, most=MAX_PARTS))
    )
    if len({part.part_id for part in parts}) < len(parts):
        raise RefusedRequestError("two parts share an id", "duplicate_id", "parts")
    return parts, chinese


def _part(item: object, place: str) -> ReplyPart:
    part = as_object(item, place)
    evidence = []
    for index, entry in enumerate(as_list(part.get("evidence"), f"{place}.evidence", most=MAX_EVIDENCE)):
        where = f"{place}.evidence[{index}]"
        given = as_object(entry, where)
        title = as_text(given.get("title"), f"{where}.title", empty=True)
        text = as_text(given.get("text"), f"{where}.text")
        evidence.append(Evidence(as_text(given.get("ref"), f"{where}.ref"), title, text))
    if len({entry.ref for entry in evidence}) < len(evidence):
        raise RefusedRequestError("two pieces of evidence share a ref", "duplicate_id", f"{place}.evidence")
    identity = as_text(part.get("part_id"), f"{place}.part_id")
    question = as_text(part.get("question"), f"{place}.question")
    return ReplyPart(identity, question, tuple(evidence))


def reply(
    raw: JsonObject, encoder: SentenceEncoder, passages: Recent[tuple[str, str], Passage]
) -> dict[str, Any]:
    """Answer ``{"parts": [{"part_id", "outcome": "answer" | "decline", "text", "used": [ref]}]}`` in part order."""
    parts, chinese = read_document(raw)
    vectors = encode_questions([part.question for part in parts], encoder)
    answers = []
    for part, vector in zip(parts, vectors, strict=True):
        quotes = choose_quotes(weigh(part, vector, passages, chinese=chinese))
        used = list(dict.fromkeys(quote.ref for quote in quotes))
        outcome = "answer" if quotes else "decline"
        text = join([quote.sentence.text for quote in quotes])
        answers.append({"part_id": part.part_id, "outcome": outcome, "text": text, "used": used})
    return {"parts": answers}


def weigh(
    part: ReplyPart, vector: Vectors, passages: Recent[tuple[str, str], Passage], *, chinese: bool
) -> list[_Quote]:
    """Every sentence of the part's evidence with how well it fits the question, in reading order."""
    conditional = bool(_CONDITION.search(part.question))
    wants_number = bool(_ASKS_NUMBER.search(part.question))
    prepared = [passages.get((entry.title, entry.text)) for entry in part.evidence]
    weights = rarity(words for passage in prepared for words in passage.words)
    asked = terms(part.question) - _ASKING
    asked_in_chinese = is_mostly_chinese(part.question)
    found: list[_Quote] = []
    for rank, (entry, passage) in enumerate(zip(part.evidence, prepared, strict=True)):
        near, near_titled = passage.alone @ vector, passage.titled @ vector
        for index, sentence in enumerate(passage.sentences):
            same = sentence.chinese is asked_in_chinese
            own, titled, shared = _WEIGHTS if same else _WEIGHTS_ACROSS
            fit = own * float(near[index]) + titled * float(near_titled[index])
            fit += shared * shared_weight(asked, passage.words[index], weights)
            preference = fit + _RANK * (1 - rank / len(prepared))
            preference += _OWN_LANGUAGE if sentence.chinese is chinese else 0.0
            preference += _HOLDS_NUMBER if wants_number and _NUMBER.search(sentence.text) else 0.0
            preference += _CONDITIONAL if not conditional and _CONDITION.match(sentence.text) else 0.0
            found.append(_Quote(len(found), entry.ref, sentence, round(fit, 4), round(preference, 4)))
    return found


def choose_quotes(weighed: Sequence[_Quote]) -> list[_Quote]:
    """The best sentence and up to two more that come close, say something else and are in its language."""
    ranked = sorted(
        (quote for quote in weighed if quote.fit >= _ENOUGH),
        key=lambda quote: (-quote.preference, quote.position),
    )
    if not ranked:
        return []
    best, *others = ranked
    chosen = [best]
    for quote in others:
        follows = quote.ref == best.ref and quote.position == best.position + 1
        nearness = _NEAR_BEST_NEXT if follows else _NEAR_BEST
        if len(chosen) == MAX_QUOTES or quote.preference < best.preference - nearness:
            continue
        length = sum(len(kept.sentence.text) for kept in chosen) + len(quote.sentence.text)
        same_language = quote.sentence.chinese is best.sentence.chinese
        repeats = any(_say_the_same(quote, kept) for kept in chosen)
        if same_language and not repeats and length <= _LONGEST_ANSWER:
            chosen.append(quote)
    return sorted(chosen, key=lambda quote: quote.position)


def _say_the_same(one: _Quote, other: _Quote) -> bool:
    return likeness(terms(one.sentence.text), terms(other.sentence.text), {}) >= _SAME_SAYING
