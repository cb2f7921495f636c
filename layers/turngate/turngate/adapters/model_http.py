"""What HTTP statuses of a model or embedding endpoint mean to us."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from turngate.errors import ModelUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BAD_REQUEST = 400
REQUEST_TIMEOUT = 408
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500
_MAX_RETRY_AFTER_S = 3600.0


def read_within(chunks: Iterable[bytes], *, deadline: float, most: int) -> bytes:
    """All of a body, by `deadline` (time.monotonic()) and at most `most` bytes. A timeout of the HTTP client bounds
    each wait for bytes only, and endpoints under load send blank lines to keep a connection open for minutes."""
    body = bytearray()
    for chunk in chunks:
        if time.monotonic() > deadline:
            raise ModelUnavailableError("timeout", "the answer came too slowly")
        body += chunk
        if len(body) > most:
            raise ModelUnavailableError("empty", f"an answer of more than {most} bytes")
    return bytes(body)


def status_error(status: int, headers: Mapping[str, str]) -> ModelUnavailableError:
    """The error for a status that is not 2xx. Its text holds the status alone: providers echo the key and the prompt
    in their messages. Another 4xx is `rejected`: asking again would be refused again; the status tells the operator."""
    by_status = {TOO_MANY_REQUESTS: "rate_limited", REQUEST_TIMEOUT: "timeout"}
    rejected = BAD_REQUEST <= status < SERVER_ERROR
    reason = by_status.get(status, "rejected" if rejected else "server_error")
    return ModelUnavailableError(reason, f"HTTP {status}", _retry_after_ms(headers))


def _retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """`retry-after-ms` or `Retry-After` in seconds (RFC 9110, 10.2.3), at most an hour. A date is not read: providers
    send seconds, and their clock is not ours."""
    for name, factor in (("retry-after-ms", 1.0), ("retry-after", 1000.0)):
        try:
            wait = float(headers.get(name, "")) * factor
        except ValueError:
            continue
        if math.isfinite(wait) and wait >= 0:
            return round(min(wait, _MAX_RETRY_AFTER_S * 1000))
    return None
