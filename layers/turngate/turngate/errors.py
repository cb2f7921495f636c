"""Every error Turngate raises on purpose.

    TurngateError
    ├── TransientError            nothing is decided yet; the state machine retries it by this name
    │   ├── ContentionError       other writers kept winning; or the table throttled
    │   ├── ModelUnavailableError the model or embedding endpoint: 429, 5xx, connection, too late
    │   └── KnowledgeUnavailableError  the index cannot be read right now
    ├── RefusedError              the caller is told, with a stable code of contracts/problems.yaml
    ├── BrokenInvariantError      something that cannot be was seen: fail loudly, wake a person
    │   └── MalformedError        a document lacks the shape it should have
    └── ConditionFailedError      a transaction's condition did not hold: an answer to the protocol, never to a user

Step Functions sees the class name as the error name (ASL `ErrorEquals`); a Retry names `TransientError`'s
subclasses one by one, because Step Functions does not know inheritance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turngate.domain.transaction import Item


class TurngateError(Exception):
    """Base of all errors raised on purpose."""


class TransientError(TurngateError):
    """Raised when nothing was decided and trying again may help."""


class ContentionError(TransientError):
    """Raised when the table throttled, conflicted, or other writers won for as long as we were allowed to try."""


class ModelUnavailableError(TransientError):
    """Raised when the model or embedding endpoint gave no usable answer in time. `reason` is stable: `timeout`,
    `rate_limited`, `server_error`, `connection`, `empty`, `rejected` (the endpoint refuses what we ask or who asks)."""

    def __init__(self, reason: str, detail: str = "", retry_after_ms: int | None = None) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.retry_after_ms = retry_after_ms


class KnowledgeUnavailableError(TransientError):
    """Raised when a pinned knowledge version cannot be read: missing file, damaged file, engine down."""


class RefusedError(TurngateError):
    """Raised when the caller's request is refused. `code` names an entry of contracts/problems.yaml (RFC 9457)."""

    def __init__(self, code: str, detail: str = "", retry_after_ms: int | None = None) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = detail
        self.retry_after_ms = retry_after_ms


class BrokenInvariantError(TurngateError):
    """Raised when a state that cannot exist was read, or an input of our own making is malformed."""


class MalformedError(BrokenInvariantError):
    """Raised when a payload, an order or a stored item lacks its shape. `path` (`intents[3].id`, empty: the whole
    document) and `reason` name fields and types of ours, and nothing that the document holds."""

    def __init__(self, path: str, reason: str) -> None:
        path = path.removeprefix(".")
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


class ConditionFailedError(TurngateError):
    """Raised by a store when conditions of a transaction did not hold.

    `failed` maps the name of each failed action to the item as it was seen then (None: it did not exist)."""

    def __init__(self, transaction: str, failed: Mapping[str, Item | None]) -> None:
        super().__init__(f"{transaction}: {', '.join(failed)}")
        self.transaction = transaction
        self.failed = failed
