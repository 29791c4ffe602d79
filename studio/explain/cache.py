"""A small least-recently-used map, bounded by count and by cost."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Bounded:
    """Keeps what was used last: at most `limit` items, and as many as cost no more than `cost` together, but never fewer than
    `least`, so that a single large one is not fetched again for each question about it. `cost` is in whatever unit the caller
    counts (bytes).

    Not thread-safe by itself.
    """

    def __init__(self, limit: int, cost: int = 0, *, least: int = 1) -> None:
        self._limit = limit
        self._most = cost
        self._least = least
        self._cost = 0
        self._items: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        entry = self._items.get(key)
        if entry is None:
            return None
        self._items.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: T, cost: int = 0) -> T:
        old = self._items.pop(key, None)
        if old is not None:
            self._cost -= old[1]
        self._items[key] = (value, cost)
        self._cost += cost
        while len(self._items) > self._limit or (self._most and self._cost > self._most and len(self._items) > self._least):
            _, (_, freed) = self._items.popitem(last=False)
            self._cost -= freed
        return value

    def clear(self) -> None:
        self._items.clear()
        self._cost = 0
