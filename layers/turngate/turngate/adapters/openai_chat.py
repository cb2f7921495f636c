"""Any OpenAI-compatible chat endpoint as the model, by the openai SDK.

Only the model function imports this module: the SDK alone costs three times boto3's import.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import openai

from turngate.adapters.model_http import read_within, status_error
from turngate.domain.json_repair import find_object
from turngate.domain.shapes import Usage
from turngate.errors import ModelUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai.types.chat.completion_create_params import ResponseFormat

MAX_ANSWER_BYTES = 1 << 20
_CONNECT_TIMEOUT_S = 3.0
_FORMAT_REFUSED = frozenset({400, 422})


class OpenAIChatModel:
    """One model behind one endpoint. Asks for `json_schema` (strict); an endpoint that refuses that and takes
    `json_object` is remembered, and then finds the schema in its instructions."""

    def __init__(self, *, base_url: str, api_key: str, model: str) -> None:
        self._model = model
        # a local endpoint needs no key, but the SDK insists on one
        self._client = openai.OpenAI(base_url=base_url, api_key=api_key or "none", max_retries=0)
        self._takes_schema = True

    def complete_json(
        self, *, system: str, user: str, schema_name: str, schema: Mapping[str, Any], timeout_s: float
    ) -> tuple[dict[str, Any], Usage]:
        """One answer. `timeout_s` bounds the whole of it, both attempts at a format included."""
        deadline = time.monotonic() + timeout_s
        strict: ResponseFormat = {
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
            except openai.APIStatusError as error:
                if error.status_code not in _FORMAT_REFUSED:
                    raise status_error(error.status_code, error.response.headers) from None
        try:
            answer = self._ask(described, user, {"type": "json_object"}, deadline - time.monotonic())
        except openai.APIStatusError as error:
            raise status_error(error.status_code, error.response.headers) from None
        self._takes_schema = False
        return answer

    def _ask(
        self, system: str, user: str, response_format: ResponseFormat, timeout_s: float
    ) -> tuple[dict[str, Any], Usage]:
        """One HTTP call. Errors are raised without their cause: it holds what the endpoint said, and endpoints repeat
        keys and prompts. An APIStatusError goes to the caller."""
        if timeout_s <= 0:
            raise ModelUnavailableError("timeout", "no time left")
        try:
            with self._client.chat.completions.with_streaming_response.create(
                model=self._model,
                messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
                response_format=response_format,
                timeout=openai.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S)),
            ) as response:
                body = read_within(
                    response.iter_bytes(), deadline=time.monotonic() + timeout_s, most=MAX_ANSWER_BYTES
                )
        except openai.APITimeoutError:
            raise ModelUnavailableError("timeout", f"no answer in {timeout_s:.1f} s") from None
        except openai.APIConnectionError:
            raise ModelUnavailableError("connection") from None
        return _read(body)


def _read(body: bytes) -> tuple[dict[str, Any], Usage]:
    """The object in the first choice's content, and what it cost. Read from the bytes: the SDK's own classes accept
    anything that the endpoint sends."""
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
