"""The list of fidelity patches: each one named, with its reason, and removable on its own."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.emulator.observer import Observer
    from local.emulator.settings import EmulatorSettings


@dataclass(frozen=True, slots=True)
class PatchContext:
    """What a patch may need: the settings of this emulator, and the observer of tests when it is on."""

    settings: EmulatorSettings
    observer: Observer | None


@dataclass(frozen=True, slots=True)
class Patch:
    """A named change to ministack. `reason` says what AWS does and what the stock emulator does instead."""

    name: str
    reason: str
    apply: Callable[[PatchContext], None]


PATCHES: list[Patch] = []


def patch(name: str) -> Callable[[Callable[[PatchContext], None]], Callable[[PatchContext], None]]:
    """Register the decorated function under `name`; its docstring is the reason."""

    def register(apply: Callable[[PatchContext], None]) -> Callable[[PatchContext], None]:
        PATCHES.append(Patch(name, cleandoc(apply.__doc__ or ""), apply))
        return apply

    return register
