"""What every knowledge index does the same way: what of a document is indexed, and what a hit looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from turngate.domain.knowledge import VersionSummary, cut, digest_of
from turngate.domain.search_words import words
from turngate.domain.shapes import Evidence
from turngate.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from turngate.domain.knowledge import Document
    from turngate.ports import Embedder


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


def evidence_of(
    collection: str, version: int, ranked: Mapping[int, float], row_of: Callable[[int], Row], limit: int
) -> list[Evidence]:
    """The first `limit` of `ranked` (best first), of each clause its best piece alone."""
    found: list[Evidence] = []
    seen: set[tuple[str, int]] = set()
    for number, score in ranked.items():
        if len(found) >= limit:
            break
        row = row_of(number)
        if (row.document_id, row.clause) in seen:
            continue
        seen.add((row.document_id, row.clause))
        found.append(
            Evidence(
                ref=f"{collection}/{row.document_id}/{row.number}",
                collection=collection,
                version=version,
                document_id=row.document_id,
                piece=row.number,
                title=row.title,
                text=row.text,
                score=score,
                source=row.source,
            )
        )
    return found
