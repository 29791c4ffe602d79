"""A small thread-safe map that forgets what was not used for longest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


LEAST = 4
"""Entries that are kept whatever they cost."""


class LRU(Generic[K, V]):
    """Keeps at most `size` entries, and no more than cost `most` together, in whatever unit the caller counts (bytes)."""

    def __init__(self, size: int, most: int = 0) -> None:
        self._size = size
        self._most = most
        self._cost = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V, cost: int = 0) -> None:
        with self._lock:
            old = self._entries.pop(key, None)
            self._cost += cost - (old[1] if old is not None else 0)
            self._entries[key] = value, cost
            while len(self._entries) > self._size or self._is_dear():
                _, (_, freed) = self._entries.popitem(last=False)
                self._cost -= freed

    def _is_dear(self) -> bool:
        return bool(self._most) and self._cost > self._most and len(self._entries) > LEAST
