"""What we are compared with: the turn as one writes it in an afternoon, with the openai SDK and a sqlite file.

It reads the last messages, asks which intent is meant, asks for an answer from five documents, and keeps both
messages. It has no governance, no retrieval (the documents are given), no events, no retries of its own and no log, and
it is the same for all lengths of a conversation."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openai import OpenAI

if TYPE_CHECKING:
    from bench.worker import Stopwatch

WINDOW = 24
"""Messages of history in a prompt, as many as ours shows."""
_TABLE = """
CREATE TABLE message (conversation TEXT, seq INTEGER, role TEXT, content TEXT, PRIMARY KEY (conversation, seq))
  WITHOUT ROWID
"""
_LAST = "SELECT seq, role, content FROM message WHERE conversation = ? ORDER BY seq DESC LIMIT ?"
_ADD = "INSERT INTO message VALUES (?, ?, ?, ?)"
_STRICT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "understanding",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"intent": {"type": "string"}},
            "required": ["intent"],
            "additionalProperties": False,
        },
    },
}

Messages = list[dict[str, str]]


class Prompts:
    """The two calls of a turn, for the plain loop and for peers alike. `packed`: the history goes as JSON into the one
    user message; the SDK spends most of a call on walking through a list of messages."""

    def __init__(self, scenario: dict[str, Any], base_url: str, *, packed: bool = False) -> None:
        self._packed = packed
        self._client: Any = OpenAI(base_url=base_url, api_key="none")
        intents = json.dumps(scenario["intents"], ensure_ascii=False)
        self._classify = f"Say which of these intents the last message means, as JSON.\n{intents}"
        self._answer = "Answer the last message from these documents only.\n" + "\n\n".join(
            scenario["documents"]
        )

    def intents_of(self, history: Messages, question: str) -> list[str]:
        content = self._ask(self._classify, history, question, response_format=_STRICT)
        return [
            candidate["id"]
            for part in json.loads(content)["sub_questions"]
            for candidate in part["candidates"]
        ]

    def answer(self, history: Messages, question: str) -> str:
        return self._ask(self._answer, history, question)

    def _ask(self, system: str, history: Messages, question: str, **more: object) -> str:
        if self._packed:
            document = {"history": history, "question": question}
            history, question = [], json.dumps(document, ensure_ascii=False)
        messages = [
            {"role": "system", "content": system},
            *history,
            {"role": "user", "content": question},
        ]
        completion = self._client.chat.completions.create(model="fake", messages=messages, **more)
        return str(completion.choices[0].message.content)


class PlainLoop:
    packed = False

    def __init__(self, scenario: dict[str, Any], base_url: str) -> None:
        self._prompts = Prompts(scenario, base_url, packed=self.packed)
        self._question: str = scenario["question"]
        self._said: list[list[str]] = scenario["said"]
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")
        self._file = sqlite3.connect(Path(self._folder.name, "messages.sqlite"), isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute(_TABLE)

    def seed(self, turns: int, conversation: str | None = None) -> str:
        conversation = conversation or uuid.uuid4().hex
        last = self._file.execute(_LAST, (conversation, 1)).fetchone()
        seq, rows = last[0] if last else 0, []
        for number in range(turns):
            question, reply = self._said[number % len(self._said)]
            rows.append((conversation, seq + 2 * number + 1, "user", question))
            rows.append((conversation, seq + 2 * number + 2, "assistant", reply))
        self._file.execute("BEGIN")
        self._file.executemany(_ADD, rows)
        self._file.execute("COMMIT")
        return conversation

    def turn(self, conversation: str, watch: Stopwatch) -> str:
        with watch.step("turn"):
            rows = self._file.execute(_LAST, (conversation, WINDOW)).fetchall()
            last = rows[0][0] if rows else 0
            history = [{"role": role, "content": content} for _, role, content in reversed(rows)]
            self._prompts.intents_of(history, self._question)
            reply = self._prompts.answer(history, self._question)
            self._file.execute("BEGIN IMMEDIATE")
            self._file.execute(_ADD, (conversation, last + 1, "user", self._question))
            self._file.execute(_ADD, (conversation, last + 2, "assistant", reply))
            self._file.execute("COMMIT")
        return reply


class PackedLoop(PlainLoop):
    """The same, sending two messages a call as ours does. Stricter on us than what the budget names."""

    packed = True
