"""Start the emulator: the pinned ministack with our patches, on 127.0.0.1 only, with a clean environment."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from local.emulator import stock
from local.emulator.settings import EmulatorSettings, SettingsError
from local.orphans import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local.emulator.stock import Foreign

HEALTH_PATH = "/_ministack/health"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 2 when the settings or the installed ministack cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m local.emulator", description=__doc__)
    parser.add_argument(
        "--without", action="append", default=[], metavar="PATCH", help="leave a patch out ('all': every one)"
    )
    parser.add_argument("--list-patches", action="store_true", help="print the patches with their reasons")
    options = parser.parse_args(arguments)
    try:
        stock.require_pinned_version()
        settings = EmulatorSettings.from_environment(os.environ)
    except (stock.WrongEmulatorError, SettingsError) as error:
        print(f"emulator: {error}", file=sys.stderr)
        return 2
    settings = replace(settings, without=settings.without | frozenset(options.without))
    clean = settings.ministack_environment(os.environ)
    os.environ.clear()
    os.environ.update(clean)
    # imported here: ministack reads the environment while it is imported
    from local.emulator import patches  # noqa: PLC0415

    if options.list_patches:
        for patch in patches.PATCHES:
            print(f"{patch.name}\n    {patch.reason.splitlines()[0]}")
        return 0
    try:
        serve(settings)
    except patches.UnknownPatchError as error:
        print(f"emulator: {error}", file=sys.stderr)
        return 2
    return 0


def serve(settings: EmulatorSettings) -> None:
    """Patch ministack in this process and serve it until a signal asks to end."""
    from local.emulator.observer import Observer  # noqa: PLC0415  # see main
    from local.emulator.patches import PatchContext, apply_patches  # noqa: PLC0415
    from local.emulator.patches.lambda_ import close_pools  # noqa: PLC0415

    end_with_parent()
    observer = None if settings.observe_file is None else Observer(settings.observe_file)
    application = stock.module("app").app
    apply_patches(PatchContext(settings, observer), settings.without)
    if observer is not None:
        application = observer.attach(application)
    logging.getLogger("hypercorn.access").setLevel(logging.ERROR)
    _raise_file_limit()
    try:
        asyncio.run(_serve(application, settings.port))
    finally:
        close_pools()
        if observer is not None:
            observer.close()
    # threads of ministack that wait for nobody (long polls, sleeping machines) must not hold the process
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


async def _serve(application: Foreign, port: int) -> None:
    hypercorn = stock.foreign_module("hypercorn.asyncio")
    config = stock.foreign_module("hypercorn.config").Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = "WARNING"
    config.errorlog = logging.getLogger("hypercorn.error")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    await hypercorn.serve(application, config, shutdown_trigger=stop.wait)


def _raise_file_limit() -> None:
    import resource  # noqa: PLC0415  # not on every platform

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
