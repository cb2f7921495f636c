"""A token bucket per principal, spent inside the accept transaction: a resend costs nothing, a race cannot overdraw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from turngate.domain.transaction import Absent, Equals, Key, Put

if TYPE_CHECKING:
    from turngate.domain.transaction import Condition, Item

_MILLI = 1000


class RateLimit(Struct, frozen=True):
    """`burst` messages at once, refilled with `per_minute` a minute."""

    burst: int = 20
    per_minute: int = 60


class Spent(Struct, frozen=True):
    put: Put


class Empty(Struct, frozen=True):
    retry_after_ms: int


def take_token(key: Key, bucket: Item | None, limit: RateLimit, now: int) -> Spent | Empty:
    """Take one token of the bucket as it was read, or say when the next one is there."""
    full = limit.burst * _MILLI
    condition: Condition
    if bucket is None:
        tokens, condition = full, (Absent(),)
    else:
        refill = max(0, now - bucket["at"]) * limit.per_minute * _MILLI // 60_000
        tokens, condition = min(full, bucket["tokens"] + refill), _as_read(bucket)
    if tokens < _MILLI:
        return Empty(retry_after_ms=-(-(_MILLI - tokens) * 60_000 // (limit.per_minute * _MILLI)))
    at = now if bucket is None else max(now, bucket["at"])
    version = 1 if bucket is None else bucket["version"] + 1
    item: Item = {"entity": "rate", "tokens": tokens - _MILLI, "at": at, "version": version}
    return Spent(Put("rate", key, item, condition))


def _as_read(bucket: Item) -> Condition:
    return (Equals("version", bucket["version"]),)
