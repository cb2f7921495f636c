"""Any OpenAI-compatible chat endpoint as the model: what is asked, and how the answer is read."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from turngate.adapters.model_http import JsonEndpoint, StatusError
from turngate.domain.json_repair import find_object
from turngate.domain.shapes import Usage
from turngate.errors import ModelUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ANSWER_BYTES = 1 << 20
_FORMAT_REFUSED = frozenset({400, 422})


class OpenAIChatModel:
    """One model behind one endpoint. Asks for `json_schema` (strict); an endpoint that refuses that and takes
    `json_object` is remembered, and then finds the schema in its instructions."""

    def __init__(self, *, base_url: str, api_key: str, model: str) -> None:
        self._model = model
        self._endpoint = JsonEndpoint(base_url, "chat/completions", api_key=api_key, most=MAX_ANSWER_BYTES)
        self._takes_schema = True

    def complete_json(
        self, *, system: str, user: str, schema_name: str, schema: Mapping[str, Any], timeout_s: float
    ) -> tuple[dict[str, Any], Usage]:
        """One answer. `timeout_s` bounds the whole of it, both attempts at a format included."""
        deadline = time.monotonic() + timeout_s
        strict = {
            "type": "json_schema",
            "json_schema": {"name": schema_name, "schema": dict(schema), "strict": True},
        }
        described = (
            f"{system}\n\nAnswer with one JSON object and nothing else. It follows this JSON Schema:\n"
            f"{json.dumps(schema, ensure_ascii=False)}"
        )
        if self._takes_schema:
            try:
                return self._ask(system, user, strict, timeout_s)
            except StatusError as error:
                if error.status not in _FORMAT_REFUSED:
                    raise
        answer = self._ask(described, user, {"type": "json_object"}, deadline - time.monotonic())
        self._takes_schema = False
        return answer

    def _ask(
        self, system: str, user: str, response_format: Mapping[str, Any], timeout_s: float
    ) -> tuple[dict[str, Any], Usage]:
        """One HTTP call."""
        request = {
            "model": self._model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "response_format": response_format,
        }
        return _read(self._endpoint.post(request, timeout_s=timeout_s))


def _read(body: bytes) -> tuple[dict[str, Any], Usage]:
    """The object in the first choice's content, and what it cost."""
    try:
        completion = json.loads(body)
        choice = completion["choices"][0]
        content = choice["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise ModelUnavailableError("empty", "not a chat completion") from None
    found = find_object(content) if isinstance(content, str) else None
    if found is None:
        raise ModelUnavailableError(
            "empty", f"no JSON object, finish_reason {choice.get('finish_reason')!r:.40}"
        )
    return found, _usage(completion.get("usage"))


def _usage(reported: object) -> Usage:
    """Counts as the endpoint reports them; 0 where it reports nothing sensible. `simulated` is our demo model's."""
    usage = reported if isinstance(reported, dict) else {}
    return Usage(
        model_calls=1,
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        simulated=usage.get("simulated") is True,
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
