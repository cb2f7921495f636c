"""``POST /v1/embeddings``: checks the request and writes vectors as floats or as base64 of little-endian float32."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from local.demo_model import tokens
from local.demo_model.encoder import DIMENSIONS
from local.demo_model.fields import JsonObject, as_choice, as_list, as_text
from local.demo_model.problems import RefusedRequestError

if TYPE_CHECKING:
    from local.demo_model.encoder import Vectors

MAX_INPUTS = 2048
MAX_INPUT_TOKENS = 8192
_ARGUMENTS = frozenset({"model", "input", "encoding_format", "dimensions", "user"})


@dataclass(frozen=True)
class EmbeddingsRequest:
    """A checked request."""

    texts: tuple[str, ...]
    as_base64: bool
    prompt_tokens: int


def read_embeddings_request(body: JsonObject) -> EmbeddingsRequest:
    """Check the request; raises ``RefusedRequestError``. Token arrays are not supported."""
    for name in body:
        if name not in _ARGUMENTS:
            message = f"Unrecognized request argument supplied: {name}"
            raise RefusedRequestError(message, "unknown_argument", name)
    as_text(body.get("model"), "model")
    if body.get("dimensions", DIMENSIONS) != DIMENSIONS:
        raise RefusedRequestError(f"dimensions must be {DIMENSIONS}", "invalid_value", "dimensions")
    form = as_choice(body.get("encoding_format", "float"), "encoding_format", ("float", "base64"))
    given = body.get("input")
    items = [given] if isinstance(given, str) else as_list(given, "input", least=1, most=MAX_INPUTS)
    texts = tuple(as_text(item, f"input[{index}]") for index, item in enumerate(items))
    counts = [tokens.count(text) for text in texts]
    if max(counts) > MAX_INPUT_TOKENS:
        message = f"input[{counts.index(max(counts))}] is longer than {MAX_INPUT_TOKENS} tokens"
        raise RefusedRequestError(message, "context_length_exceeded", "input")
    return EmbeddingsRequest(texts=texts, as_base64=form == "base64", prompt_tokens=sum(counts))


def write_vectors(vectors: Vectors, *, as_base64: bool) -> list[dict[str, Any]]:
    """The ``data`` list of the response, in the order of the input."""
    rows = vectors.astype("<f4")
    return [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(row.tobytes()).decode() if as_base64 else row.tolist(),
        }
        for index, row in enumerate(rows)
    ]
