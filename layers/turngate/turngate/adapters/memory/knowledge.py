"""Knowledge versions in memory: the same results as the SQLite index, without a file and without numpy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from turngate.adapters.indexing import (
    LookedUp,
    rows_of,
    same_content,
    search_together,
    summary_of,
    vectors_of,
)
from turngate.domain.knowledge import check_scope, digest_of, publishable
from turngate.domain.ranking import Entry, postings
from turngate.domain.search_words import query_words
from turngate.errors import KnowledgeUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from turngate.adapters.indexing import Row
    from turngate.domain.knowledge import Document, Found, VersionSummary
    from turngate.ports import Embedder


class _Version:
    def __init__(self, summary: VersionSummary, rows: list[Row], vectors: list[list[float]]) -> None:
        self.summary = summary
        self.rows = rows
        self.words = postings([Entry(row.title_words, row.text_words) for row in rows])
        self.vectors = vectors

    def nearest(self, vector: Sequence[float] | None) -> dict[int, float]:
        if vector is None or len(vector) != self.summary.dimensions or not all(map(math.isfinite, vector)):
            return {}
        return {n: sum(a * b for a, b in zip(own, vector, strict=True)) for n, own in enumerate(self.vectors)}


class MemoryKnowledge:
    def __init__(self) -> None:
        self._versions: dict[tuple[str, str, int], _Version] = {}

    def put_version(
        self,
        account: str,
        collection: str,
        version: int,
        documents: Iterable[Document],
        embedder: Embedder | None,
    ) -> VersionSummary:
        """Publish a version once and for all; see SqliteKnowledge.put_version."""
        check_scope(account, collection, version)
        kept = publishable(documents)
        published = self._versions.get((account, collection, version))
        if published:
            return same_content(published.summary, digest_of(kept, embedder.model if embedder else ""))
        rows = rows_of(kept)
        vectors = vectors_of(rows, embedder)
        summary = summary_of(account, collection, version, kept, rows, vectors, embedder)
        self._versions[account, collection, version] = _Version(summary, rows, vectors)
        return summary

    def summary(self, account: str, collection: str, version: int) -> VersionSummary:
        return self._version(account, collection, version).summary

    def search(
        self,
        account: str,
        versions: Mapping[str, int],
        query: str,
        vector: Sequence[float] | None,
        limit: int,
    ) -> Found:
        def look_up(collection: str, version: int) -> LookedUp:
            held = self._version(account, collection, version)
            words = {word: held.words[word] for word in query_words(query) if word in held.words}
            return LookedUp(len(held.rows), words, held.nearest(vector))

        def row(collection: str, number: int) -> Row:
            return self._version(account, collection, versions[collection]).rows[number]

        return search_together(versions, look_up, row, limit)

    def _version(self, account: str, collection: str, version: int) -> _Version:
        check_scope(account, collection, version)
        held = self._versions.get((account, collection, version))
        if held is None:
            raise KnowledgeUnavailableError(f"{collection} version {version} is not there")
        return held
