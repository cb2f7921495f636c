"""End a server whose parent is gone: after a `kill -9` nobody else stops it. Standard library only, for every venv."""

from __future__ import annotations

import os
import signal
import threading
import time

_PERIOD_S = 1.0


def end_with_parent() -> None:
    """Watch from a daemon thread; once this process has another parent than now, ask it to stop as SIGTERM does."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PERIOD_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
