"""The fence around an account: every key that a store is given must belong to the account that was named (I6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.errors import BrokenInvariantError

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_ACCOUNT = ""
"""Names the few items without an account prefix: reverse connections, tickets, pairings."""


def require_account(account: str, partitions: Iterable[str]) -> None:
    """Raise BrokenInvariantError for a partition of another account, before anything is sent."""
    prefix = f"T#{account}#"
    for pk in partitions:
        inside = not pk.startswith("T#") if account == NO_ACCOUNT else pk.startswith(prefix)
        if not inside:
            raise BrokenInvariantError(f"{pk.partition('#')[0]}# key outside account {account!r}")
