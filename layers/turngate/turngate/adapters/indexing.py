"""What every knowledge index does the same way: what of a document is indexed, and what a hit looks like."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turngate.domain.knowledge import Found, VersionSummary, cut, digest_of
from turngate.domain.ranking import fuse
from turngate.domain.search_words import words
from turngate.domain.shapes import Evidence
from turngate.errors import KnowledgeUnavailableError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from turngate.domain.knowledge import Document
    from turngate.ports import Embedder

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Row:
    """One piece of one document, as it is quoted."""

    document_id: str
    title: str
    source: str
    number: int
    clause: int
    text: str

    @property
    def title_words(self) -> list[str]:
        return words(self.title)

    @property
    def text_words(self) -> list[str]:
        return words(self.text)


def rows_of(documents: Iterable[Document]) -> list[Row]:
    """The pieces of all documents, in order; an index numbers them from 0."""
    return [
        Row(document.document_id, document.title, document.source, piece.number, piece.clause, piece.quoted)
        for document in documents
        for piece in cut(document)
    ]


def vectors_of(rows: Sequence[Row], embedder: Embedder | None) -> list[list[float]]:
    """One vector a row, none at all without an embedder. Raises ModelUnavailableError."""
    return embedder.embed([f"{row.title}\n{row.text}" for row in rows]) if embedder and rows else []


def summary_of(
    account: str,
    collection: str,
    version: int,
    documents: Sequence[Document],
    rows: Sequence[Row],
    vectors: Sequence[Sequence[float]],
    embedder: Embedder | None,
) -> VersionSummary:
    model = embedder.model if embedder else ""
    return VersionSummary(
        account=account,
        collection=collection,
        version=version,
        documents=len(documents),
        pieces=len(rows),
        model=model,
        dimensions=len(vectors[0]) if vectors else 0,
        digest=digest_of(documents, model),
    )


def same_content(published: VersionSummary, digest: str) -> VersionSummary:
    """`published` when it holds that content; a version is never given another (RefusedError
    `knowledge_version_exists`)."""
    if published.digest != digest:
        raise RefusedError("knowledge_version_exists", f"{published.collection} version {published.version}")
    return published


def search_together(
    versions: Mapping[str, int],
    ranked: Callable[[str, int], tuple[Mapping[int, float], Mapping[int, float]]],
    row_of: Callable[[str, int], Row],
    limit: int,
) -> Found:
    """One ranking over several collections: their scores are fused together, because a score that was stretched within
    its own collection makes the best of a bad lot look as good as the best of all.

    `ranked` gives a version's scores by words and by vectors, `row_of` a piece by collection and number; both raise
    KnowledgeUnavailableError for a collection that cannot be read, and then the others answer."""
    lexical: dict[tuple[str, int], float] = {}
    dense: dict[tuple[str, int], float] = {}
    readable: dict[str, int] = {}
    for collection, version in versions.items():
        try:
            by_words, by_vectors = ranked(collection, version)
        except KnowledgeUnavailableError as error:
            _log_unreadable(collection, version, error)
            continue
        readable[collection] = version
        lexical |= {(collection, number): score for number, score in by_words.items()}
        dense |= {(collection, number): score for number, score in by_vectors.items()}
    pieces = _best(fuse(lexical, dense), readable, row_of, limit)
    return Found(pieces, tuple(collection for collection in versions if collection not in readable))


def _log_unreadable(collection: str, version: int, error: KnowledgeUnavailableError) -> None:
    about = {"collection": collection, "version": version, "reason": str(error)}
    _log.warning("knowledge cannot be read", extra=about)


def _best(
    ranked: Mapping[tuple[str, int], float],
    readable: dict[str, int],
    row_of: Callable[[str, int], Row],
    limit: int,
) -> list[Evidence]:
    """The first `limit` of `ranked` (best first), of each clause its best piece alone. Takes what turns out to be
    unreadable from `readable`."""
    found: list[Evidence] = []
    seen: set[tuple[str, str, int]] = set()
    for (collection, number), score in ranked.items():
        if len(found) >= limit:
            break
        if collection not in readable:
            continue
        try:
            row = row_of(collection, number)
        except KnowledgeUnavailableError as error:
            _log_unreadable(collection, readable.pop(collection), error)
            found = [piece for piece in found if piece.collection != collection]
            continue
        if (collection, row.document_id, row.clause) in seen:
            continue
        seen.add((collection, row.document_id, row.clause))
        found.append(
            Evidence(
                ref=f"{collection}/{row.document_id}/{row.number}",
                collection=collection,
                version=readable[collection],
                document_id=row.document_id,
                piece=row.number,
                title=row.title,
                text=row.text,
                score=score,
                source=row.source,
            )
        )
    return found
