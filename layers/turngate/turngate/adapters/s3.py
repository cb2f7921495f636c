"""Published knowledge versions in an S3 bucket, each fetched once into this machine's own folder."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from botocore.exceptions import BotoCoreError, ClientError

from turngate.adapters.aws import http_status, transient
from turngate.adapters.knowledge_files import relative_path
from turngate.errors import KnowledgeUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 20
MAX_CACHED_BYTES = 300 << 20
"""Of the 512 MB that a function's /tmp has by default."""
_EXISTS = frozenset({409, 412})


class S3Files:
    """Objects `<prefix><account>/<collection>/<version>.sqlite`. Versions are immutable, so a fetched one is never
    asked for again; its SHA-256 travels as metadata and is checked before the file can be seen."""

    def __init__(  # the client's class is made at run time
        self,
        client: Any,  # noqa: ANN401 - see above
        bucket: str,
        cache: Path,
        prefix: str = "knowledge/",
        most_cached_bytes: int = MAX_CACHED_BYTES,
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._cache = cache
        self._prefix = prefix
        self._most_cached_bytes = most_cached_bytes

    def path(self, account: str, collection: str, version: int) -> Path:
        name = relative_path(account, collection, version)
        path = self._cache / name
        if path.is_file():
            return path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fetch(name, path)
        except ClientError as error:
            raise KnowledgeUnavailableError(
                f"{collection} version {version}: HTTP {http_status(error)}"
            ) from error
        except (BotoCoreError, OSError) as error:
            raise KnowledgeUnavailableError(
                f"{collection} version {version}: {type(error).__name__}"
            ) from error
        return path

    def _make_room(self, size: int) -> None:
        """A warm function must not fill its disk with versions nobody asks for any more: the oldest go first. SQLite
        keeps reading a file it has open."""
        kept = sorted(self._cache.rglob("*.sqlite"), key=lambda each: each.stat().st_mtime, reverse=True)
        room = self._most_cached_bytes - size
        for each in kept:
            room -= each.stat().st_size
            if room < 0:
                each.unlink(missing_ok=True)

    def _fetch(self, name: str, path: Path) -> None:
        answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
        self._make_room(answer["ContentLength"])
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder:
            partial = Path(folder) / "partial"
            digest = hashlib.sha256()
            with partial.open("wb") as file:
                for chunk in answer["Body"].iter_chunks(_CHUNK):
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != answer.get("Metadata", {}).get("sha256"):
                raise KnowledgeUnavailableError(f"{name} is damaged")
            partial.replace(path)

    def publish(self, account: str, collection: str, version: int, built: Path) -> bool:
        """Raises TransientError. `If-None-Match: *` lets the first writer win (S3 answers the others 409 or 412)."""
        name = relative_path(account, collection, version)
        with transient("s3:PutObject"), built.open("rb") as file:
            digest = hashlib.sha256()
            for chunk in _chunks(file):
                digest.update(chunk)
            file.seek(0)
            try:
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=self._prefix + name,
                    Body=file,
                    IfNoneMatch="*",
                    Metadata={"sha256": digest.hexdigest()},
                )
            except ClientError as error:
                if http_status(error) not in _EXISTS:
                    raise
                return False
        return True


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
