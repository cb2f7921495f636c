"""What every contestant of `make bench` is given: one question to the mall, what was said before it, the intents and
documents that a prompt shows, and what the model endpoint answers. One JSON file, so that a peer in a venv of its own
reads it without the product."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from local.tenants import MALL, read_tenant
from turngate.domain.texts import say

if TYPE_CHECKING:
    from pathlib import Path

    from turngate.domain.shapes import Language

QUESTION = "How long do refunds take?"
ANSWER = "A refund arrives 3–7 working days after we receive the returned item."
INTENT = "RETURN_POLICY"
LANGUAGE: Language = "en"
CYCLE = 10
REPLY_CHARS = 250
PIECES = 5
PIECE_CHARS = 600
_COLLECTION = "shopping-policy-kb"


@dataclass(frozen=True)
class Scenario:
    """`said` are the question and reply of earlier turns, over and over. `intents` and `documents` are what a prompt
    shows. `answers`: content of the endpoint's completion by the name of the schema asked for, "" for none."""

    question: str
    said: list[tuple[str, str]]
    intents: list[dict[str, object]]
    documents: list[str]
    answers: dict[str, str]


def mall_scenario() -> Scenario:
    config, collections = read_tenant(MALL)
    questions = [intent.examples[0] for intent in config.intents][:CYCLE]
    documents = [documents[place] for place in (0, 1) for documents in collections.values()]
    replies = [document.text[:REPLY_CHARS] for document in documents]
    written = [each for each in collections[_COLLECTION] if each.language == LANGUAGE]
    shown = sorted(written, key=lambda each: -each.text.lower().count("refund"))[:PIECES]
    candidates = [{"id": INTENT, "score": 0.93}]
    understanding = {
        "rewritten": QUESTION,
        "sub_questions": [{"text": QUESTION, "candidates": candidates}],
    }
    reply = {"part_id": "p1", "outcome": "answer", "text": ANSWER, "used": ["p1.E1"]}
    return Scenario(
        question=QUESTION,
        said=list(zip(questions, replies, strict=False)),
        intents=[
            {
                "id": intent.id,
                "name": say(intent.name, LANGUAGE, LANGUAGE),
                "description": say(intent.description, LANGUAGE, LANGUAGE),
                "examples": list(intent.examples),
            }
            for intent in config.intents
        ],
        documents=[document.text[:PIECE_CHARS] for document in shown],
        answers={
            "understanding": json.dumps(understanding, ensure_ascii=False),
            "reply": json.dumps({"parts": [reply]}, ensure_ascii=False),
            "": ANSWER,
        },
    )


def write_scenario(path: Path, scenario: Scenario) -> None:
    path.write_text(json.dumps(asdict(scenario), ensure_ascii=False), encoding="utf-8")
