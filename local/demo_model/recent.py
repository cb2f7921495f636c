"""Keeps what was prepared for recent prompts, within a fixed amount of memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Key = TypeVar("Key", bound="Hashable")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Makes a value for a key once and keeps it until others, used more recently, need its room.

    ``weigh`` says how many rows of vectors (2 KB each) a value holds; at most ``limit`` rows are kept, the newest
    value always.
    """

    def __init__(self, make: Callable[[Key], Value], weigh: Callable[[Value], int], limit: int) -> None:
        self._make = make
        self._weigh = weigh
        self._limit = limit
        self._kept: OrderedDict[Key, Value] = OrderedDict()
        self._rows = 0
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value:
        """The value for the key, made now if it is not kept."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self._make(key)
                self._rows += self._weigh(self._kept[key])
            self._kept.move_to_end(key)
            while self._rows > self._limit and len(self._kept) > 1:
                self._rows -= self._weigh(self._kept.popitem(last=False)[1])
            return self._kept[key]
