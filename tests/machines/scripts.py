"""What the scripted model is told to answer."""

from __future__ import annotations

from typing import Any


def reads(*subs: tuple[str, dict[str, float]], rewritten: str = "") -> dict[str, Any]:
    """The model's answer to Understand: sub-questions, each with scored intents."""
    return {
        "rewritten": rewritten or " ".join(text for text, _ in subs),
        "sub_questions": [
            {"text": text, "candidates": [{"id": i, "score": s} for i, s in scores.items()]}
            for text, scores in subs
        ],
    }


def phrases(*parts: tuple[str, str, list[str]]) -> dict[str, Any]:
    """The model's answer to ComposeReply: (part, text, refs used); an empty text declines."""
    return {
        "parts": [
            {"part_id": part, "outcome": "answer" if text else "decline", "text": text, "used": used}
            for part, text, used in parts
        ]
    }
