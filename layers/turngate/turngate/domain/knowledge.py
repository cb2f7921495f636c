"""Documents, and the pieces they are cut into: the same for every index."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

from turngate.domain import wire
from turngate.domain.shapes import Frozen
from turngate.errors import BrokenInvariantError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from turngate.domain.shapes import Evidence

MAX_DOCUMENT_BYTES = 256 * 1024
MAX_PIECE = 1200
"""Characters. A clause up to this length is never cut; neighbours are kept together up to it."""

DocumentId = Annotated[str, Meta(pattern=r"^[^\s/#\x00-\x1f\x7f\ud800-\udfff]{1,200}\Z")]
"""`/` separates the parts of a reference and `#` those of a key."""

_SCOPE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@|-]{0,127}")


class Document(Frozen):
    """One document of a collection (F-146). File date, effective date and import time are three things (F-147);
    `imported_at` and `confirmed_at` are epoch milliseconds. `version` is the owner's label for it. A document that is
    not `enabled` is never indexed."""

    document_id: DocumentId
    title: str
    text: str
    topic: str = ""
    language: str = ""
    country: str = ""
    channel: str = ""
    customer_scope: str = ""
    version: str = ""
    enabled: bool = True
    source: str = ""
    business_owner: str = ""
    file_date: date | None = None
    effective_from: date | None = None
    imported_at: int | None = None
    confirmed_at: int | None = None


class Piece(Frozen):
    """What is indexed and quoted. Pieces of one clause share its number; `heading` holds the headings that the text
    stands under and does not itself begin with."""

    number: int
    clause: int
    heading: str
    text: str

    @property
    def quoted(self) -> str:
        return f"{self.heading}\n{self.text}" if self.heading else self.text


class Found(NamedTuple):
    """What a search gave: the best pieces over all collections, and the collections that could not be read."""

    pieces: list[Evidence]
    unreadable: tuple[str, ...] = ()


class VersionSummary(Frozen):
    """One immutable version of a collection. `digest` is over the documents and the embedding model's name."""

    account: str
    collection: str
    version: int
    documents: int
    pieces: int
    model: str
    dimensions: int
    digest: str


def check_scope(account: str, collection: str, version: int) -> None:
    """Names become paths and keys: an odd one is a BrokenInvariantError before anything is touched (I6)."""
    for name in (account, collection):
        if not _SCOPE_NAME.fullmatch(name):
            raise BrokenInvariantError(f"not a name that may scope knowledge: {name[:40]!r}")
    if not 0 <= version < 1 << 53:
        raise BrokenInvariantError(f"not a version: {version}")


def decode_document(raw: bytes) -> str:
    """The text of a file. Raises RefusedError `document_empty`, `document_too_large` or `document_not_utf8`."""
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise RefusedError("document_too_large", f"{len(raw)} bytes, at most {MAX_DOCUMENT_BYTES}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RefusedError("document_not_utf8", f"byte {error.start}") from error
    if not text.strip():
        raise RefusedError("document_empty")
    return text


def publishable(documents: Iterable[Document]) -> tuple[Document, ...]:
    """The enabled documents by id, each within the limits. Raises RefusedError, also `document_duplicate`: two
    documents of one id would be one source with two contents."""
    checked: dict[str, Document] = {}
    for document in documents:
        if not document.enabled:
            continue
        try:
            decode_document(document.text.encode())
            document.title.encode()
        except UnicodeEncodeError as error:
            raise RefusedError("document_not_utf8", document.document_id) from error
        except RefusedError as error:
            raise RefusedError(error.code, f"{document.document_id} {error.detail}".strip()) from error
        if document.document_id in checked:
            raise RefusedError("document_duplicate", document.document_id)
        checked[document.document_id] = document
    return tuple(checked[key] for key in sorted(checked))


def digest_of(documents: Sequence[Document], model: str) -> str:
    """SHA-256 (hex) that is equal when the same content is published again."""
    content = {"model": model, "documents": [wire.write(document) for document in documents]}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# Cutting (F-149)

_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})\s+(?P<words>\S.*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_BREAKS = (
    re.compile(r"\n[ \t]*\n\s*"),
    re.compile(r"\n"),
    re.compile(r"[。！？；]+[”’」』）]*|[.!?;]+[\"')\]]*\s+"),
    re.compile(r"[，、]|[ ,]"),
)
"""Where a clause that is too long may be cut: between paragraphs, lines, sentences, and last between words."""


def cut(document: Document) -> tuple[Piece, ...]:
    """The pieces of a document in its order; together they hold all of it. A clause is a heading with what stands
    under it. Whole clauses go together up to MAX_PIECE; only a longer one is cut, and keeps its headings."""
    pieces: list[Piece] = []
    open_heading, open_text = "", ""

    def add(heading: str, text: str) -> None:
        if text.strip():
            trimmed = text.strip("\n")
            pieces.append(Piece(number=len(pieces), clause=clause, heading=heading, text=trimmed))

    def close() -> None:
        nonlocal open_text
        add(open_heading, open_text)
        open_text = ""

    clause = 0
    for above, own, text in _clauses(document.text):
        if len(open_text) + len(text) > MAX_PIECE:
            close()
        clause += 1
        if len(text) <= MAX_PIECE:
            open_heading, open_text = (open_heading if open_text else above), open_text + text
            continue
        for number, part in enumerate(_parts(text)):
            add(above if number == 0 else own, part)
        clause += 1
    close()
    return tuple(pieces)


def _clauses(text: str) -> Iterator[tuple[str, str, str]]:
    """(headings above, headings with its own, text) of each clause; a heading without a body belongs to the next."""
    path: dict[int, str] = {}
    above = own = ""
    lines: list[str] = []
    fenced = bare = False
    for line in text.splitlines(keepends=True):
        fenced ^= bool(_FENCE.match(line))
        heading = None if fenced else _HEADING.match(line)
        if heading:
            if lines and not bare:
                yield above, own, "".join(lines)
                lines = []
            if not lines:
                level = len(heading["marks"])
                above = " > ".join(path[key] for key in sorted(path) if key < level)
            level = len(heading["marks"])
            path = {key: words for key, words in path.items() if key < level} | {
                level: heading["words"].strip()
            }
            own = " > ".join(path[key] for key in sorted(path))
            bare = True
        elif line.strip():
            bare = False
        lines.append(line)
    if lines:
        yield above, own, "".join(lines)


def _parts(text: str, finest: int = 0) -> Iterator[str]:
    """`text` in parts of at most MAX_PIECE, cut as coarsely as that allows."""
    if len(text) <= MAX_PIECE:
        yield text
        return
    if finest == len(_BREAKS):
        yield from (text[start : start + MAX_PIECE] for start in range(0, len(text), MAX_PIECE))
        return
    ends = [match.end() for match in _BREAKS[finest].finditer(text)] + [len(text)]
    part_start = atom_start = 0
    for end in ends:
        if end - part_start > MAX_PIECE and atom_start - part_start > MAX_PIECE // 4:  # never a heading alone
            yield text[part_start:atom_start]
            part_start = atom_start
        if end - part_start > MAX_PIECE:
            yield from _parts(text[part_start:end], finest + 1)
            part_start = end
        atom_start = end
    if part_start < len(text):
        yield text[part_start:]
