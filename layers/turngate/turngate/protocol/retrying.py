"""How long the protocol insists: full jitter, bounded, on the caller's clock (so tests do not sleep)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.errors import ContentionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.ports import Clock, Ids

ATTEMPTS = 12
_BASE_MS = 10
_CAP_MS = 400


def attempts(clock: Clock, ids: Ids, what: str) -> Iterator[int]:
    """Yield attempt numbers, sleeping between them; raise ContentionError when they are used up."""
    for attempt in range(ATTEMPTS):
        if attempt:
            clock.sleep_ms(ids.fraction() * min(_CAP_MS, _BASE_MS * 2**attempt))
        yield attempt
    raise ContentionError(f"{what}: other writers won {ATTEMPTS} times")
