"""Any OpenAI-compatible `/embeddings` endpoint as the embedder.

By urllib3, which botocore brings: Understand and Retrieve embed a question each turn, and the openai SDK would cost
Retrieve more import time than everything else it loads.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import sys
import time
from array import array
from typing import TYPE_CHECKING, Any

import urllib3
from urllib3.exceptions import HTTPError, NewConnectionError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError

from turngate.adapters.model_http import read_within, status_error
from turngate.errors import ModelUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BATCH = 64
MAX_ANSWER_BYTES = 4 << 20
_CHUNK = 1 << 16
_CONNECT_TIMEOUT_S = 3.0
_OK = 200


class OpenAIEmbedder:
    """One embedding model behind one endpoint. `timeout_s` bounds each request of at most 64 texts."""

    def __init__(self, *, base_url: str, api_key: str, model: str, timeout_s: float = 10.0) -> None:
        self.model = model
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._timeout_s = timeout_s
        self._timeout = urllib3.Timeout(connect=min(timeout_s, _CONNECT_TIMEOUT_S), read=timeout_s)
        self._pool = urllib3.PoolManager(retries=False)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One unit-length vector a text, in order; all of one length. Raises ModelUnavailableError: `empty` when the
        endpoint answers anything else than that."""
        vectors = [
            vector
            for start in range(0, len(texts), BATCH)
            for vector in self._request(texts[start : start + BATCH])
        ]
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelUnavailableError("empty", "vectors of different lengths")
        return vectors

    def _request(self, texts: Sequence[str]) -> Iterator[list[float]]:
        body = {
            "model": self.model,
            "input": [_sendable(text) for text in texts],
            "encoding_format": "base64",
        }
        try:
            response = self._pool.request(
                "POST",
                self._url,
                body=json.dumps(body).encode(),
                headers=self._headers,
                timeout=self._timeout,
                redirect=False,
                preload_content=False,
            )
            answer = self._body(response)
        except NewConnectionError:  # urllib3 counts it among the timeouts
            raise ModelUnavailableError("connection") from None
        except HTTPTimeoutError:
            raise ModelUnavailableError("timeout") from None
        except HTTPError:
            raise ModelUnavailableError("connection") from None
        if response.status != _OK:
            raise status_error(response.status, response.headers)
        try:
            rows = sorted(json.loads(answer)["data"], key=lambda row: int(row["index"]))
            if [row["index"] for row in rows] != list(range(len(texts))):
                raise ModelUnavailableError("empty", f"{len(rows)} vectors for {len(texts)} texts")
            vectors = [_unit(_numbers(row["embedding"])) for row in rows]
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError, binascii.Error):
            raise ModelUnavailableError("empty", "not an embeddings answer") from None
        return iter(vectors)

    def _body(self, response: urllib3.BaseHTTPResponse) -> bytes:
        """The connection is used again after a whole answer, and closed after anything else."""
        deadline = time.monotonic() + self._timeout_s
        try:
            body = read_within(
                iter(lambda: response.read1(_CHUNK), b""), deadline=deadline, most=MAX_ANSWER_BYTES
            )
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return body


def _sendable(text: str) -> str:
    """Endpoints refuse a whole batch for a blank text or half a surrogate pair in it."""
    return text.encode("utf-8", "replace").decode() if text.strip() else "."


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
