"""Access to ministack's own modules.

The patches replace private functions of one exact, untyped release, so its modules are `Any` here on purpose
and are imported late: `ministack.app` reads its configuration from the environment while it is imported.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Foreign = Any  # a value of untyped foreign code: a ministack module, record, handler or ASGI callable
Json = Any  # a decoded JSON value

PINNED_VERSION = "1.5.33"


class WrongEmulatorError(RuntimeError):
    """Raised when the installed ministack is not the release the patches were written for."""


def require_pinned_version() -> None:
    """Refuse any ministack but `PINNED_VERSION`; patches of private functions fit one release only."""
    try:
        found = version("ministack")
    except PackageNotFoundError:
        found = "none"
    if found != PINNED_VERSION:
        raise WrongEmulatorError(
            f"the local emulator needs ministack=={PINNED_VERSION} and found {found}; "
            "run `make setup`, which installs it into .venvs/emulator"
        )


def module(name: str) -> Foreign:
    """The module `ministack.<name>` of the pinned release."""
    return importlib.import_module(f"ministack.{name}")


def foreign_module(name: str) -> Foreign:
    """An untyped module of a library that ministack brings along."""
    return importlib.import_module(name)
