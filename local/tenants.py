"""Load a tenant into a running stack: its configuration and its documents, as versions, and activate them.

Built knowledge files are kept under `.local/knowledge`, named by what went into them, so a second start of the demo
does not embed the same documents again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turngate.adapters.indexing import same_content
from turngate.adapters.knowledge_files import DirectoryFiles
from turngate.adapters.sqlite_knowledge import FORMAT, SqliteKnowledge
from turngate.domain import keys, wire
from turngate.domain.config import AssistantConfig
from turngate.domain.knowledge import Document, decode_document, publishable
from turngate.domain.shapes import Ident
from turngate.domain.transaction import Put, Transaction
from turngate.errors import KnowledgeUnavailableError, MalformedError
from turngate.protocol.configuring import activate_config, activate_knowledge, put_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turngate.adapters.s3 import S3Files
    from turngate.ports import ConversationStore, Embedder

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / ".local" / "knowledge"
MALL = ROOT / "examples" / "mall"
VERSION = 1


class TenantError(ValueError):
    """Raised when a tenant's files cannot be used; the message names the file or the finding."""


class Loader:
    """Loads tenants into one stack. `files` is the stack's bucket."""

    def __init__(self, store: ConversationStore, files: S3Files, embedder: Embedder) -> None:
        self._store = store
        self._files = files
        self._embedder = embedder

    def load(
        self,
        config: AssistantConfig,
        collections: dict[str, list[Document]],
        *,
        private: frozenset[str] = frozenset(),
    ) -> dict[str, int]:
        """Publish and activate version 1 of everything; the number of documents per collection. `private` names the
        collections that the public fallback must not reach (F-123)."""
        public = {name: name not in private for name in collections}
        put_config(self._store, config, VERSION, collections=public)
        for name, documents in collections.items():
            self._publish(config.account, name, documents)
        activate_knowledge(self._store, config.account, dict.fromkeys(collections, VERSION))
        activate_config(self._store, config.account, VERSION)
        return {name: len(documents) for name, documents in collections.items()}

    def _publish(self, account: str, collection: str, documents: list[Document]) -> None:
        checked = publishable(documents)
        folder = BUILT / f"{FORMAT}-{_digest(checked, self._embedder.model)}"
        with SqliteKnowledge(DirectoryFiles(folder)) as knowledge:
            summary = knowledge.put_version(account, collection, VERSION, checked, self._embedder)
        built = DirectoryFiles(folder).path(account, collection, VERSION)
        if not self._files.publish(account, collection, VERSION, built):
            self._check_same(account, collection, summary.digest)
        key = keys.knowledge_version(account, collection, VERSION)
        item = {
            "entity": "knowledge_version",
            "status": "READY",
            "digest": summary.digest,
            "documents": len(checked),
        }
        self._store.write(account, Transaction("knowledge_version", (Put("version", key, item),)))

    def _check_same(self, account: str, collection: str, digest: str) -> None:
        """A version is never given other content: RefusedError `knowledge_version_exists`."""
        try:
            with SqliteKnowledge(self._files) as published:
                same_content(published.summary(account, collection, VERSION), digest)
        except KnowledgeUnavailableError as error:
            message = f"{collection}: version {VERSION} is there and cannot be read ({error}); delete it in the bucket"
            raise TenantError(message) from error


def read_tenant(folder: Path) -> tuple[AssistantConfig, dict[str, list[Document]]]:
    """A tenant's folder: config.json, and documents/<collection>/*.md. Raises TenantError."""
    collections = {
        name: [read_document(path) for path in sorted((folder / "documents" / name).glob("*.md"))]
        for name in _document_folders(folder)
    }
    return _config(folder / "config.json"), collections


def private_collections(folder: Path) -> frozenset[str]:
    """What collections.json of a tenant's folder keeps from the public fallback. Without the file every collection is
    public; with it every folder of documents must be named, as `{"public": true}` or `{"public": false}`. Raises
    TenantError with everything that is wrong."""
    path = folder / "collections.json"
    if not path.exists():
        return frozenset()
    named = _named_collections(path)
    there = set(_document_folders(folder))
    wrong = [f"{name}: there is no folder documents/{name}" for name in named if name not in there]
    wrong += [f"{name}: not named here: say whether it is public" for name in sorted(there - set(named))]
    for name, about in named.items():
        if not isinstance(about, dict) or "public" not in about:
            wrong.append(f'{name}: must be {{"public": true}} or {{"public": false}}')
            continue
        if not isinstance(about["public"], bool):
            wrong.append(f"{name}.public: must be true or false, without quotes")
        wrong += [f"{name}.{field}: unknown field" for field in about if field != "public"]
    if wrong:
        raise TenantError("\n  ".join([f"{path}:", *wrong]))
    return frozenset(name for name, about in named.items() if not about["public"])


def _named_collections(path: Path) -> dict[str, Any]:
    try:
        named = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once(path))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TenantError(f"{path}: no JSON text: {error}") from error
    if not isinstance(named, dict):
        raise TenantError(f"{path}: must be an object of collections")
    return named


def _once(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Refuses a name that is given twice: JSON keeps the last one, and people mean the one they look at."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise TenantError(f"{path}: {', '.join(repeated)}: given twice")
        return dict(pairs)

    return once


def _document_folders(folder: Path) -> list[str]:
    documents = folder / "documents"
    if not documents.is_dir():
        raise TenantError(f"{documents}: no such folder")
    names = sorted(each.name for each in documents.iterdir() if each.is_dir())
    if wrong := [name for name in names if not wire.fits(name, Ident)]:
        raise TenantError(f"{documents}: no names of collections: {', '.join(wrong)}; rename the folders")
    return names


def read_bank(documents: Path) -> tuple[AssistantConfig, dict[str, list[Document]]]:
    """The second tenant of the stack tests, over the JSON documents of ../shared/data/tau2_banking."""
    read = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(documents.glob("*.json"))]
    made = [
        wire.read(
            {"document_id": each["id"], "title": each["title"], "text": each["content"], "language": "en"},
            Document,
        )
        for each in read
    ]
    return _config(ROOT / "examples" / "bank" / "config.json"), {"bank-kb": made}


def read_document(path: Path) -> Document:
    """A Markdown file with a front matter of `name: value` lines between two `---` lines. Raises RefusedError as
    `decode_document`, TenantError for a front matter that cannot be read."""
    lines = decode_document(path.read_bytes()).splitlines()
    if lines[:1] != ["---"] or "---" not in lines[1:]:
        raise TenantError(f"{path}: no front matter")
    end = lines.index("---", 1)
    given = [_field(path, line) for line in lines[1:end]]
    fields = dict(given)
    if unknown := [name for name, _ in given if name not in Document.__struct_fields__ or name == "text"]:
        raise TenantError(f"{path}: {', '.join(unknown)}: no field of a front matter")
    if len(fields) < len(given):
        repeated = sorted({name for name, _ in given if [other for other, _ in given].count(name) > 1})
        raise TenantError(f"{path}: {', '.join(repeated)}: given twice")
    known = {name: value for name, value in fields.items() if name != "confirmed_at"}
    try:
        # a front matter holds words only: "false" and "2026-01-31" are read as what the field is
        return msgspec.convert({"text": "\n".join(lines[end + 1 :]).strip(), **known}, Document, strict=False)
    except msgspec.ValidationError as error:
        raise TenantError(f"{path}: {error}") from error


def _field(path: Path, line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise TenantError(f"{path}: not a `name: value` line: {line!r}")
    return name.strip(), value.strip()


def _config(path: Path) -> AssistantConfig:
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_once(path))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TenantError(f"{path}: no JSON text: {error}") from error
    try:
        return wire.read(document, AssistantConfig, strictly=True)
    except MalformedError as error:
        raise TenantError(f"{path}: {error}") from error


def _digest(documents: Iterable[Document], model: str) -> str:
    digest = hashlib.sha256(model.encode())
    for document in documents:
        digest.update(wire.write_json(document).encode())
    return digest.hexdigest()[:24]
