"""How long the whole stack takes to start, and what memory it holds after all that the other tests asked of it."""

from __future__ import annotations

import os
from contextlib import suppress
from urllib.parse import urlsplit

import psutil

START_S = 60
MEGABYTES = 1536


def processes_of(stack):
    """The emulator with its workers, and the model: other suites of the same run have some of their own."""
    emulator = psutil.Process(stack.emulator.process_id)
    yield from (emulator, *emulator.children(recursive=True))
    port = urlsplit(stack.model.base_url).port
    models = [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE
        and any(each.laddr and each.laddr.port == port for each in child.net_connections() if not each.raddr)
    ]
    assert len(models) == 1
    yield from models


def test_the_stack_starts_fast_and_stays_light(started, report):
    world, took = started
    held = {}
    for process in processes_of(world.stack):
        with suppress(psutil.Error):  # it ended meanwhile, and holds nothing
            name = "Lambda workers" if "awslambdaric" in process.cmdline() else "emulator and demo model"
            held[name] = held.get(name, 0) + process.memory_full_info().pss / 2**20
    quiet = os.getloadavg()[0] < (os.cpu_count() or 1)
    workers = sum(world.stack.emulator.census().values())
    shares = ", ".join(f"{name} {size:.0f}" for name, size in held.items())
    report(
        f"stack: started in {took:.1f} s (load {os.getloadavg()[0]:.1f}), holds {sum(held.values()):.0f} MB "
        f"(pages that processes share counted once): {shares}; {workers} workers"
    )
    assert sum(held.values()) <= MEGABYTES
    assert took <= START_S or not quiet
