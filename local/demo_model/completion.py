"""Writes chat completions the way the API does: one document, or a stream of chunks."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

from local.demo_model import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from local.demo_model.chat_request import ChatRequest

MODEL = "turngate-demo-simulated"
_CHUNK_CHARACTERS = 48


def usage(prompt_tokens: int, completion_tokens: int | None = None) -> dict[str, Any]:
    """The ``usage`` object; embeddings have no completion. ``simulated`` marks everything this server says."""
    counts: dict[str, Any] = {"prompt_tokens": prompt_tokens}
    if completion_tokens is not None:
        counts["completion_tokens"] = completion_tokens
    counts["total_tokens"] = prompt_tokens + (completion_tokens or 0)
    return {**counts, "simulated": True}


def complete(request: ChatRequest, answer: dict[str, Any]) -> dict[str, Any]:
    """A ``chat.completion`` with the answer as JSON text, cut with ``finish_reason: length`` at max_tokens."""
    whole = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    content = whole if request.max_tokens is None else tokens.cut(whole, request.max_tokens)
    message = {"role": "assistant", "content": content, "refusal": None}
    finish = "stop" if content == whole else "length"
    digest = hashlib.sha256(f"{request.schema_name}\n{request.document}".encode()).hexdigest()
    return {
        "id": f"chatcmpl-simulated-{digest[:24]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": usage(request.prompt_tokens, tokens.count(content)),
    }


def stream(request: ChatRequest, completion: dict[str, Any]) -> Iterator[str]:
    """The same completion as server-sent events, ended by ``[DONE]``; usage in a last chunk when asked for."""
    choice = completion["choices"][0]
    content: str = choice["message"]["content"]
    pieces = [content[i : i + _CHUNK_CHARACTERS] for i in range(0, len(content), _CHUNK_CHARACTERS)]
    deltas: list[dict[str, str]] = [
        {"role": "assistant", "content": ""},
        *({"content": piece} for piece in pieces),
    ]
    for delta in deltas:
        yield _event(completion, [{"index": 0, "delta": delta, "finish_reason": None}])
    yield _event(completion, [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])
    if request.include_usage:
        yield _event(completion, [], completion["usage"])
    yield "data: [DONE]\n\n"


def _event(
    completion: dict[str, Any], choices: list[dict[str, Any]], counted: dict[str, Any] | None = None
) -> str:
    chunk = {key: completion[key] for key in ("id", "created", "model")}
    chunk |= {"object": "chat.completion.chunk", "choices": choices, "usage": counted}
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"
