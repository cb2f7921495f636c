"""What stock ministack 1.5.33 does unlike AWS and this product or its tests lean on.

One module per subsystem, one function per gap. Each has a contract test in `tests/emulator` that passes with
it and sees the wrong behaviour without it (`--without <name>`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from local.emulator.patches import (
    apigateway,
    cloudformation,
    dynamodb,
    execution_starts,
    execution_states,
    lambda_,
)
from local.emulator.patches.registry import PATCHES, Patch, PatchContext

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["PATCHES", "Patch", "PatchContext", "UnknownPatchError", "apply_patches"]

_SUBSYSTEMS = (apigateway, cloudformation, dynamodb, execution_starts, execution_states, lambda_)


class UnknownPatchError(ValueError):
    """Raised when a patch is to be left out that does not exist: a typing slip would test nothing."""


def apply_patches(context: PatchContext, without: Collection[str] = ()) -> list[str]:
    """Apply all patches but those named in `without` ("all" leaves out every one); returns the names applied."""
    names = {patch.name for patch in PATCHES}
    if unknown := set(without) - names - {"all"}:
        raise UnknownPatchError(
            f"no patch named {', '.join(sorted(unknown))}; known: {', '.join(sorted(names))}"
        )
    chosen = [] if "all" in without else [patch for patch in PATCHES if patch.name not in without]
    for patch in chosen:
        patch.apply(context)
    return [patch.name for patch in chosen]
