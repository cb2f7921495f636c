"""Any OpenAI-compatible `/embeddings` endpoint as the embedder: what is asked, and how the answer is read."""

from __future__ import annotations

import base64
import binascii
import json
import math
import sys
import time
from array import array
from typing import TYPE_CHECKING, Any

from turngate.adapters.model_http import JsonEndpoint
from turngate.errors import ModelUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH = 64
MAX_ANSWER_BYTES = 4 << 20


class OpenAIEmbedder:
    """One embedding model behind one endpoint. `timeout_s` bounds each request of at most 64 texts."""

    def __init__(self, *, base_url: str, api_key: str, model: str, timeout_s: float = 10.0) -> None:
        self.model = model
        self._timeout_s = timeout_s
        self._endpoint = JsonEndpoint(base_url, "embeddings", api_key=api_key, most=MAX_ANSWER_BYTES)

    def embed(self, texts: Sequence[str], *, timeout_s: float | None = None) -> list[list[float]]:
        """One unit-length vector a text, in order; all of one length. Raises ModelUnavailableError: `empty` when the
        endpoint answers anything else than that."""
        ends = math.inf if timeout_s is None else time.monotonic() + timeout_s
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            left = min(self._timeout_s, ends - time.monotonic())
            vectors += self._request(texts[start : start + BATCH], left)
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelUnavailableError("empty", "vectors of different lengths")
        return vectors

    def _request(self, texts: Sequence[str], timeout_s: float) -> list[list[float]]:
        request = {
            "model": self.model,
            # endpoints refuse a whole batch for a blank text in it
            "input": [text if text.strip() else "." for text in texts],
            "encoding_format": "base64",
        }
        answer = self._endpoint.post(request, timeout_s=timeout_s)
        try:
            rows = sorted(json.loads(answer)["data"], key=lambda row: int(row["index"]))
            if [row["index"] for row in rows] != list(range(len(texts))):
                raise ModelUnavailableError("empty", f"{len(rows)} vectors for {len(texts)} texts")
            vectors = [_unit(_numbers(row["embedding"])) for row in rows]
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError, binascii.Error):
            raise ModelUnavailableError("empty", "not an embeddings answer") from None
        return vectors


def _numbers(embedding: Any) -> array[float]:  # noqa: ANN401 - whatever the endpoint sent
    """Base64 of little-endian float32, or a list for endpoints that do not know base64."""
    if isinstance(embedding, str):
        values = array("f", base64.b64decode(embedding, validate=True))
        if sys.byteorder == "big":
            values.byteswap()
        return values
    return array("f", embedding)


def _unit(values: array[float]) -> list[float]:
    length = math.sqrt(math.fsum(value * value for value in values))
    if not math.isfinite(length) or length == 0:
        raise ModelUnavailableError("empty", "a vector without a direction")
    return [value / length for value in values]
