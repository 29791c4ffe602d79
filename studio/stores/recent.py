"""Rows that were fetched a moment ago, for callers that come back for the same ones (a state, its diff, its tasks)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from studio.model import Address

V = TypeVar("V")

LIMIT_BYTES = 16 << 20
LIMIT_ASKED = 100
"""Whoever asks for more at once goes through a list: that must not push out what an open view comes back for."""
LIMIT_ITEM = 4 << 20
"""Larger rows are not kept."""


class Recent:
    """A bounded cache of rows by address, valid for one state of the file. Thread-safe."""

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._token: object = None
        self._size = 0
        self._held: OrderedDict[tuple[str, Address], tuple[Any, int]] = OrderedDict()

    def get(
        self,
        kind: str,
        token: object,
        addresses: Iterable[Address],
        fetch: Callable[[list[Address]], dict[Address, V]],
        size: Callable[[V], int],
    ) -> dict[Address, V]:
        """The rows that are there; `fetch` gets those that are not held. `token` is the state of the file before fetching."""
        wanted = list(dict.fromkeys(addresses))
        if len(wanted) > LIMIT_ASKED:
            return fetch(wanted)
        found: dict[Address, V] = {}
        with self._lock:
            if token != self._token:
                self._held.clear()
                self._size, self._token = 0, token
            missing = []
            for address in wanted:
                entry = self._held.get((kind, address))
                if entry is None:
                    missing.append(address)
                else:
                    self._held.move_to_end((kind, address))
                    found[address] = entry[0]
        if not missing:
            return found
        fetched = fetch(missing)
        with self._lock:
            if token == self._token:
                for address, value in fetched.items():
                    self._keep((kind, address), value, size(value))
        found.update(fetched)
        return {address: found[address] for address in wanted if address in found}

    def _keep(self, key: tuple[str, Address], value: object, size: int) -> None:
        if size > LIMIT_ITEM or key in self._held:
            return
        self._held[key] = (value, size)
        self._size += size
        while self._size > self._limit:
            _, (_, freed) = self._held.popitem(last=False)
            self._size -= freed
