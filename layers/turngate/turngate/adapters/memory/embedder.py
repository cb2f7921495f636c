"""Vectors from spelling alone: texts that share letters are near each other."""

from __future__ import annotations

import math
import unicodedata
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_GRAMS = (1, 2, 3)


class HashingEmbedder:
    """Hashed character n-grams, the same on every machine. It knows no meaning and no other language: good for tests
    of what is done with vectors, never for answers."""

    def __init__(self, dimensions: int = 128) -> None:
        self.model = f"hashing-{dimensions}"
        self._dimensions = dimensions

    def embed(self, texts: Sequence[str], *, timeout_s: float | None = None) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self._dimensions
        letters = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
        for size in _GRAMS:
            for start in range(len(letters) - size + 1):
                digest = zlib.crc32(letters[start : start + size].encode("utf-8", "replace"))
                vector[(digest >> 1) % self._dimensions] += 1.0 if digest & 1 else -1.0
        length = math.sqrt(math.fsum(value * value for value in vector))
        if (
            length == 0
        ):  # nothing was said, or it cancelled out: any direction will do, but the same one always
            return [1.0] + [0.0] * (self._dimensions - 1)
        return [value / length for value in vector]
