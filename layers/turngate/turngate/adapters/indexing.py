"""What every knowledge index does the same way: what of a document is indexed, and what a hit looks like."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from turngate.domain.knowledge import Found, VersionSummary, cut, digest_of
from turngate.domain.ranking import by_words, fuse
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


class LookedUp(NamedTuple):
    """What one version holds for a question: how many pieces in all, the postings of the question's words, and the
    cosines of the nearest pieces."""

    pieces: int
    words: Mapping[str, Mapping[int, float]]
    dense: Mapping[int, float]


def search_together(
    versions: Mapping[str, int],
    look_up: Callable[[str, int], LookedUp],
    row_of: Callable[[str, int], Row],
    limit: int,
) -> Found:
    """One ranking over several collections, as if their pieces stood in one: what a word is worth is counted over all
    of them, and their scores are stretched together. Each by itself, the best of a bad lot looks as good as the best of
    all, and a collection loses on its own topic, because there everybody uses its words. Of equals the collection
    named first comes first, and what two of them say in the same words is found once.

    `look_up` and `row_of` (a piece by collection and number) raise KnowledgeUnavailableError for a collection that
    cannot be read, and then the others answer."""
    names = list(versions)
    held: dict[int, LookedUp] = {}
    for order, (collection, version) in enumerate(versions.items()):
        try:
            held[order] = look_up(collection, version)
        except KnowledgeUnavailableError as error:
            _log_unreadable(collection, version, error)
    found: defaultdict[str, dict[tuple[int, int], float]] = defaultdict(dict)
    dense: dict[tuple[int, int], float] = {}
    for order, version_held in held.items():
        for word, places in version_held.words.items():
            found[word].update({(order, number): part for number, part in places.items()})
        dense |= {(order, number): score for number, score in version_held.dense.items()}
    ranked = fuse(by_words(found, sum(each.pieces for each in held.values())), dense)
    readable = {names[order]: versions[names[order]] for order in held}
    pieces = [(names[order], number, score) for (order, number), score in ranked.items()]
    best = _best(pieces, readable, row_of, limit)
    return Found(best, tuple(collection for collection in versions if collection not in readable))


def _log_unreadable(collection: str, version: int, error: KnowledgeUnavailableError) -> None:
    about = {"collection": collection, "version": version, "reason": str(error)}
    _log.warning("knowledge cannot be read", extra=about)


def _best(
    ranked: Sequence[tuple[str, int, float]],
    readable: dict[str, int],
    row_of: Callable[[str, int], Row],
    limit: int,
) -> list[Evidence]:
    """The first `limit` of `ranked` (collection, number, score; best first), of each clause its best piece alone. Takes
    what turns out to be unreadable from `readable`."""
    found: list[Evidence] = []
    seen: set[tuple[str, str, int] | str] = set()
    for collection, number, score in ranked:
        if len(found) >= limit:
            break
        if collection not in readable:
            continue
        try:
            row = row_of(collection, number)
        except KnowledgeUnavailableError as error:
            _log_unreadable(collection, readable.pop(collection), error)
            return _best(ranked, readable, row_of, limit)  # anew: what it said first, another may say too
        clause = (collection, row.document_id, row.clause)
        if clause in seen or row.text in seen:
            continue
        seen |= {clause, row.text}
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
