"""Where the files of published knowledge versions are kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Protocol

from turngate.domain.knowledge import check_scope
from turngate.errors import KnowledgeUnavailableError


class KnowledgeFiles(Protocol):
    """One immutable file per (account, collection, version)."""

    def path(self, account: str, collection: str, version: int) -> Path:
        """A local path of exactly that version. Raises KnowledgeUnavailableError."""

    def publish(self, account: str, collection: str, version: int, built: Path) -> bool:
        """Store a copy of `built`, whole or not at all. False, and nothing is changed, when that version is there
        already."""


def relative_path(account: str, collection: str, version: int) -> str:
    """`<account>/<collection>/<version>.sqlite`, after check_scope: no name can lead out of its folder."""
    check_scope(account, collection, version)
    return f"{account}/{collection}/{version}.sqlite"


class DirectoryFiles:
    """Files below one folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, account: str, collection: str, version: int) -> Path:
        path = self._root / relative_path(account, collection, version)
        if not path.is_file():
            raise KnowledgeUnavailableError(f"{collection} version {version} is not there")
        return path

    def publish(self, account: str, collection: str, version: int, built: Path) -> bool:
        target = self._root / relative_path(account, collection, version)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:
            copy = Path(folder) / "copy"
            shutil.copyfile(built, copy)
            with copy.open("rb") as written:
                os.fsync(written.fileno())
            try:
                os.link(copy, target)  # unlike a rename, it refuses to replace
            except FileExistsError:
                return False
        return True
