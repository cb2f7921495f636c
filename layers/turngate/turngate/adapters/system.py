"""The machine's own clock and randomness."""

from __future__ import annotations

import secrets
import time

_TOKEN_BYTES = 32
_FLOAT_BITS = 53


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep_ms(self, ms: float) -> None:
        time.sleep(ms / 1000)


class SystemIds:
    """The operating system's random numbers: a forked or frozen process must not repeat its parent's."""

    def token(self) -> str:
        return secrets.token_urlsafe(_TOKEN_BYTES)

    def fraction(self) -> float:
        return secrets.randbits(_FLOAT_BITS) / (1 << _FLOAT_BITS)
