"""Unzipped and compiled deployment packages, shared by every worker and kept between starts."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tempfile
import threading
import zipfile
from pathlib import Path

WORTH_COMPILING = 20  # modules; below, starting a compiler takes longer than it saves


class UnsafePackageError(ValueError):
    """Raised when a zip holds a path that would leave its directory."""


class PackageCache:
    """Zip bytes in, a read-only directory out.

    A directory is named by the sha256 of its zip, so equal packages are unzipped once, whoever deployed them.
    Large packages (layers) are compiled ahead of time for `python`: a cold start then only reads, like one on
    AWS. The few modules of a handler are compiled by their first import.
    """

    def __init__(self, directory: Path, python: Path) -> None:
        self._directory = directory
        self._python = python
        self._lock = threading.Lock()
        self._known: dict[str, Path] = {}

    def directory_of(self, package: bytes, name: str | None = None) -> Path:
        """The directory with the files of `package`.

        `name` (for example the ARN of a layer version) is remembered: the bytes behind an immutable name are
        hashed only once.
        """
        with self._lock:
            if name is not None and name in self._known:
                return self._known[name]
            digest = hashlib.sha256(package).hexdigest()[:32]
            target = self._directory / digest
            if not target.is_dir():
                self._unzip(package, target)
            if name is not None:
                self._known[name] = target
            return target

    def known(self, name: str) -> Path | None:
        """The directory of an immutable name seen before, or None."""
        with self._lock:
            return self._known.get(name)

    def _unzip(self, package: bytes, target: Path) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=self._directory))
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            for entry in archive.namelist():
                if not (scratch / entry).resolve().is_relative_to(scratch.resolve()):
                    shutil.rmtree(scratch)
                    raise UnsafePackageError(f"{entry!r} leaves the package")
            archive.extractall(scratch)
        if sum(1 for _ in scratch.rglob("*.py")) >= WORTH_COMPILING:
            self._compile(scratch, target)
        try:
            scratch.rename(target)
        except OSError:
            # another emulator with the same cache was faster; its directory is the same by name
            shutil.rmtree(scratch)
            if not target.is_dir():
                raise

    def _compile(self, scratch: Path, target: Path) -> None:
        # `unchecked-hash`: the files never change again, so no import needs to compare times
        options = ["-q", "-j", "2", "--invalidation-mode", "unchecked-hash"]
        paths = ["-s", str(scratch), "-p", str(target), str(scratch)]
        subprocess.run(  # noqa: S603  # our own interpreter on our own directory
            [str(self._python), "-m", "compileall", *options, *paths],
            check=False,  # a package may hold templates that are no valid Python
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
