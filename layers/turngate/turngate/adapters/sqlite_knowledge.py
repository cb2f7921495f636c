"""Knowledge without a server: one SQLite file per version, words by their postings and vectors by one multiplication.

SQLite's own full-text search counts a word's worth within one file, and several are searched as one; so the file
holds what `domain.ranking` says of each word, and SQLite finds it. A file is opened read-only and immutable: no lock,
no journal, no way to change it.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import sys
import tempfile
import threading
from array import array
from collections import OrderedDict
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from turngate.adapters.indexing import (
    LookedUp,
    Row,
    rows_of,
    same_content,
    search_together,
    summary_of,
    vectors_of,
)
from turngate.domain import wire
from turngate.domain.knowledge import VersionSummary, check_scope, digest_of, publishable
from turngate.domain.ranking import DEPTH, Entry, postings
from turngate.domain.search_words import query_words
from turngate.errors import KnowledgeUnavailableError, MalformedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from turngate.adapters.knowledge_files import KnowledgeFiles
    from turngate.domain.knowledge import Document, Found
    from turngate.ports import Embedder

_log = logging.getLogger(__name__)

FORMAT = 2
"""`PRAGMA user_version` of a file; another number is not read."""

_FLOAT_BYTES = 4
_MAX_OPEN = 16
_SCHEMA = f"""
PRAGMA user_version = {FORMAT};
CREATE TABLE summary (document TEXT NOT NULL);
CREATE TABLE pieces (
  id INTEGER PRIMARY KEY, document_id TEXT NOT NULL, title TEXT NOT NULL, source TEXT NOT NULL,
  number INTEGER NOT NULL, clause INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE TABLE words (word TEXT PRIMARY KEY, places BLOB NOT NULL, parts BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE vectors (data BLOB NOT NULL);
"""


@dataclass(frozen=True)
class _Opened:
    connection: sqlite3.Connection
    summary: VersionSummary
    vectors: Any
    """float32, one row a piece; None when the version was built without vectors."""


class SqliteKnowledge:
    """All versions that `files` holds. Keeps the last few open; `close` lets them go."""

    def __init__(self, files: KnowledgeFiles) -> None:
        self._files = files
        self._opened: OrderedDict[tuple[str, str, int], _Opened] = OrderedDict()
        self._lock = threading.Lock()

    def put_version(
        self,
        account: str,
        collection: str,
        version: int,
        documents: Iterable[Document],
        embedder: Embedder | None,
    ) -> VersionSummary:
        """Publish a version, whole or not at all. Without an embedder it is searched by words alone.

        Publishing the same content again gives the same summary; other content is refused (RefusedError
        `knowledge_version_exists`), as are documents outside the limits. Raises ModelUnavailableError when the
        embedder fails."""
        check_scope(account, collection, version)
        kept = publishable(documents)
        digest = digest_of(kept, embedder.model if embedder else "")
        try:
            return same_content(self.summary(account, collection, version), digest)
        except KnowledgeUnavailableError:
            _log.info("building knowledge", extra={"collection": collection, "version": version})
        rows = rows_of(kept)
        vectors = vectors_of(rows, embedder)
        summary = summary_of(account, collection, version, kept, rows, vectors, embedder)
        with tempfile.TemporaryDirectory() as folder:
            built = Path(folder) / "version.sqlite"
            _build(built, summary, rows, vectors)
            if self._files.publish(account, collection, version, built):
                return summary
        return same_content(self.summary(account, collection, version), digest)

    def summary(self, account: str, collection: str, version: int) -> VersionSummary:
        """What a version is made of. Raises KnowledgeUnavailableError."""
        with self._lock:
            return self._open(account, collection, version).summary

    def search(
        self,
        account: str,
        versions: Mapping[str, int],
        query: str,
        vector: Sequence[float] | None,
        limit: int,
    ) -> Found:
        def look_up(collection: str, version: int) -> LookedUp:
            with self._reading(account, collection, version) as opened:
                return LookedUp(opened.summary.pieces, _postings(opened, query), _by_vector(opened, vector))

        def row(collection: str, number: int) -> Row:
            with self._reading(account, collection, versions[collection]) as opened:
                return _row(opened, number)

        with self._lock:
            return search_together(versions, look_up, row, limit)

    def close(self) -> None:
        with self._lock:
            for key in list(self._opened):
                self._forget(key)

    def __enter__(self) -> SqliteKnowledge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, account: str, collection: str, version: int) -> _Opened:
        key = (account, collection, version)
        if key in self._opened:
            self._opened.move_to_end(key)
            return self._opened[key]
        path = self._files.path(account, collection, version)
        # one lock guards every use, so a connection may be used by whichever thread holds it
        address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        try:
            connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        except sqlite3.Error as error:
            raise KnowledgeUnavailableError(f"{collection} version {version} cannot be opened") from error
        try:
            opened = _read(connection)
            _check(opened, account, collection, version)
        except (sqlite3.Error, ValueError, MalformedError, KnowledgeUnavailableError) as error:
            connection.close()
            raise KnowledgeUnavailableError(f"{collection} version {version} is damaged: {error}") from error
        while len(self._opened) >= _MAX_OPEN:
            self._forget(next(iter(self._opened)))
        self._opened[key] = opened
        return opened

    @contextmanager
    def _reading(self, account: str, collection: str, version: int) -> Iterator[_Opened]:
        opened = self._open(account, collection, version)
        try:
            yield opened
        except sqlite3.Error as error:
            self._forget((account, collection, version))
            raise KnowledgeUnavailableError(f"{collection} version {version} is damaged: {error}") from error

    def _forget(self, key: tuple[str, str, int]) -> None:
        self._opened.pop(key).connection.close()


def _build(
    path: Path, summary: VersionSummary, rows: Sequence[Row], vectors: Sequence[Sequence[float]]
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO summary VALUES (?)", (wire.write_json(summary),))
        connection.executemany(
            "INSERT INTO pieces VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (number, row.document_id, row.title, row.source, row.number, row.clause, row.text)
                for number, row in enumerate(rows)
            ),
        )
        held = postings([Entry(row.title_words, row.text_words) for row in rows])
        connection.executemany(
            "INSERT INTO words VALUES (?, ?, ?)",
            (
                (word, _packed("I", places), _packed("d", places.values()))
                for word, places in sorted(held.items())
            ),
        )
        if vectors:
            import numpy as np  # noqa: PLC0415 - words alone must not pay for it

            connection.execute(
                "INSERT INTO vectors VALUES (?)", (np.asarray(vectors, dtype="<f4").tobytes(),)
            )


def _read(connection: sqlite3.Connection) -> _Opened:
    if connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
        raise KnowledgeUnavailableError("another format")
    document = connection.execute("SELECT document FROM summary").fetchone()
    summary = wire.read_json(document[0] if document else "", VersionSummary)
    blob = connection.execute("SELECT data FROM vectors").fetchone()
    if not blob:
        return _Opened(connection, summary, None)
    import numpy as np  # noqa: PLC0415 - words alone must not pay for it

    return _Opened(connection, summary, np.frombuffer(blob[0], dtype="<f4").reshape(-1, summary.dimensions))


def _check(opened: _Opened, account: str, collection: str, version: int) -> None:
    """A file that was put in another's place is worse than none."""
    summary = opened.summary
    pieces = opened.connection.execute("SELECT count(*) FROM pieces").fetchone()[0]
    vectors = pieces if summary.dimensions else 0
    if (summary.account, summary.collection, summary.version) != (account, collection, version):
        raise KnowledgeUnavailableError("a file of another version")
    if pieces != summary.pieces or vectors != (0 if opened.vectors is None else len(opened.vectors)):
        raise KnowledgeUnavailableError("an incomplete file")


def _postings(opened: _Opened, query: str) -> dict[str, dict[int, float]]:
    asked = query_words(query)
    marks = ",".join("?" * len(asked))
    rows = opened.connection.execute(f"SELECT * FROM words WHERE word IN ({marks})", asked)  # noqa: S608 - marks alone
    return {
        word: dict(zip(_unpacked("I", places), _unpacked("d", parts), strict=True))
        for word, places, parts in rows
    }


def _packed(kind: Literal["I", "d"], values: Iterable[float]) -> bytes:
    """Numbers as they lie in every file: the lowest byte first."""
    numbers: array[Any] = array(kind, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _unpacked(kind: Literal["I", "d"], data: bytes) -> array[Any]:
    numbers: array[Any] = array(kind, data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _by_vector(opened: _Opened, vector: Sequence[float] | None) -> dict[int, float]:
    if vector is None or opened.vectors is None:
        return {}
    if len(vector) != opened.summary.dimensions or not all(map(math.isfinite, vector)):
        _log.warning(
            "knowledge search degraded to words: the question's vector does not fit",
            extra={"degraded": "vector", "model": opened.summary.model, "dimensions": len(vector)},
        )
        return {}
    import numpy as np  # noqa: PLC0415 - words alone must not pay for it

    scores = opened.vectors @ np.asarray(vector, dtype="<f4")
    nearest = np.argsort(-scores, kind="stable")[:DEPTH]
    return dict(zip(nearest.tolist(), scores[nearest].tolist(), strict=True))


def _row(opened: _Opened, number: int) -> Row:
    row = opened.connection.execute(
        "SELECT document_id, title, source, number, clause, text FROM pieces WHERE id = ?", (number,)
    ).fetchone()
    if row is None:
        raise sqlite3.DatabaseError(f"piece {number} is missing")
    return Row(*row)
