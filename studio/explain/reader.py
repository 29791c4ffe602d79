"""Decoded checkpoints and grouped rows of a store, each fetched once as long as they are in use."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from studio.explain.blob import Blob, read_blob
from studio.explain.cache import Bounded
from studio.model import Address, RawCheckpoint, WriteRow
from studio.stores.base import Store

_BLOBS, _BLOB_BYTES = 400, 16_000_000
"""A pass over a thread reads up to 192 checkpoints ahead, and looks at those before it explains them: none may go between."""
_ROWS, _ROW_BYTES = 1024, 16_000_000
_LEAST = 4
"""Checkpoints and groups of rows that are kept however large they are: one, its parent, and what made that."""


class Reader:
    """Caches in front of `Store.raw` and `Store.writes`. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.RLock()
        self._blobs = Bounded(_BLOBS, _BLOB_BYTES, least=_LEAST)
        self._rows = Bounded(_ROWS, _ROW_BYTES, least=_LEAST)

    def blob(self, address: Address) -> Blob | None:
        """The decoded checkpoint, None when it is not there."""
        with self._lock:
            kept: Blob | None = self._blobs.get(address)
        if kept is not None:
            return kept
        raw = self.store.raw([address]).get(address)
        return self.take(raw) if raw is not None else None

    def take(self, raw: RawCheckpoint) -> Blob:
        """Decode and keep a row that somebody has fetched; what is kept of the same bytes is taken as it is."""
        with self._lock:
            kept: Blob | None = self._blobs.get(raw.header.address)
        if kept is not None and kept.raw == raw:
            return kept
        blob = read_blob(raw)
        with self._lock:
            return self._blobs.put(raw.header.address, blob, len(raw.blob))

    def rows(self, addresses: Sequence[Address]) -> Mapping[Address, tuple[WriteRow, ...]]:
        """The rows under each of the addresses, () where there are none."""
        found: dict[Address, tuple[WriteRow, ...]] = {}
        with self._lock:
            for address in addresses:
                kept = self._rows.get(address)
                if kept is not None:
                    found[address] = kept
        missing = [address for address in addresses if address not in found]
        if missing:
            read = self.store.writes(missing)
            with self._lock:
                for address in missing:
                    rows = found[address] = read.get(address, ())
                    self._rows.put(address, rows, _cost(rows))
        return found

    def keep_rows(self, address: Address, rows: tuple[WriteRow, ...]) -> None:
        """Keep the rows under a checkpoint that somebody has fetched."""
        with self._lock:
            self._rows.put(address, rows, _cost(rows))

    def rows_at(self, address: Address | None) -> tuple[WriteRow, ...]:
        return self.rows([address])[address] if address is not None else ()

    def prefetch(self, addresses: Sequence[Address]) -> None:
        """Read some checkpoints in few looks at the store, with their rows and those of their parents."""
        with self._lock:
            missing = [address for address in addresses if self._blobs.get(address) is None]
        blobs = [self.take(raw) for raw in self.store.raw(missing).values()] if missing else []
        above = [blob.parent for blob in blobs if blob.parent is not None]
        self.rows([*(blob.address for blob in blobs), *above])


def _cost(rows: Sequence[WriteRow]) -> int:
    return 200 + sum(len(row.value or b"") for row in rows)
