"""Run a command and print its wall time and the peak memory of everything it started.

    python -m tools.measured COMMAND [ARGUMENT …]

Memory is the proportional set size (shared pages divided among their users), sampled every second and summed over the
command and its descendants. The command's exit code is passed on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import psutil

PERIOD_S = 1.0
MEGABYTE = 1 << 20


class Sampler:
    """Watches a process tree from a thread."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak = 0

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.is_set():
            self.peak = max(self.peak, tree_memory(self._root))
            self._done.wait(PERIOD_S)


def tree_memory(root: psutil.Process) -> int:
    """Bytes of a process and its descendants; those that end meanwhile count as nothing."""
    total = 0
    try:
        processes = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def main(command: list[str]) -> int:
    if not command:
        print(__doc__)
        return 2
    began = time.monotonic()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which has the same terminal
    process = subprocess.Popen(command, preexec_fn=_heed_interrupts)  # noqa: S603, PLW1509 - our own Makefile's command
    with Sampler(process.pid) as sampler:
        code = process.wait()
    print(f"wall {time.monotonic() - began:.0f} s, peak memory {sampler.peak / MEGABYTE:.0f} MB", flush=True)
    return code


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
