"""Long texts as DynamoDB keeps them: compressed, because a write costs by the kilobyte (docs/measured.md). Short ones
stay readable in the console; they would cost the same."""

from __future__ import annotations

import zlib

READABLE_BYTES = 640
"""With its keys, an item of this much text costs one unit as it is."""


def pack(text: str) -> str | bytes:
    """The text itself, or its zlib stream (RFC 1950) when it is long."""
    raw = text.encode()
    return text if len(raw) <= READABLE_BYTES else zlib.compress(raw)


def unpack(stored: str | bytes) -> str:
    """What `pack` was given."""
    return stored if isinstance(stored, str) else zlib.decompress(stored).decode()
