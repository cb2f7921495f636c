"""A JSON line per AWS call, Lambda invocation and machine state: what a test counts requests and units from."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from local.emulator.stock import Json


class Recorder:
    """Appends to one file; lines are whole and in order of their ending."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._file = file.open("a", encoding="utf-8")

    def write(self, kind: str, **fields: Json) -> None:
        """One line: `time` (epoch seconds), `kind` (aws, lambda, state, fault) and the fields."""
        line = json.dumps({"time": round(time.time(), 6), "kind": kind, **fields}, ensure_ascii=False)
        with self._lock:
            if not self._file.closed:
                self._file.write(line + "\n")
                self._file.flush()

    def close(self) -> None:
        """End the file."""
        with self._lock:
            self._file.close()
