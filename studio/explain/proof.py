"""Whether the rule by which a delta channel is rebuilt is the rule that its graph follows: stored snapshots tell.

The reducer is the user's code. Where the assumed one does not lead from one snapshot to the next, what lies between them is a
guess, however well its writes fit each other. Formats: a snapshot is stored every `snapshot_frequency` updates.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import is_

from studio.explain.blob import Blob
from studio.explain.cache import Bounded
from studio.explain.delta import Result
from studio.explain.reader import Reader
from studio.explain.reducers import same_value
from studio.explain.threads import Threads
from studio.model import Address, Value
from studio.value import MISSING

_KEPT = 512
_FIRST, _STEP, _MOST = 8, 48, 320
"""Checkpoints below one that are read at first, then at once, and at most, to find the next snapshot."""

Rebuild = Callable[[Blob, str], Result]
"""What the rule makes of a channel at a checkpoint, whether or not a value is stored there."""


class Proof:
    """Compares what the rule makes of a channel with the snapshot after a checkpoint, or with the one before. Thread-safe."""

    def __init__(self, reader: Reader, threads: Threads, rebuild: Rebuild, stored: Callable[[str, Value], Value]) -> None:
        self._reader = reader
        self._threads = threads
        self._rebuild = rebuild
        self._stored = stored
        self._lock = threading.Lock()
        self._told = Bounded(_KEPT)

    def contradicts(self, blob: Blob, channel: str, since: Address | None) -> bool:
        """Whether a stored snapshot of `channel` disproves the rule for what `blob` has since its last snapshot, at `since`."""
        key = (blob.address.thread_id, blob.address.checkpoint_ns, channel, since)
        with self._lock:
            told: bool | None = self._told.get(key)
        if told is None:
            told = self._tested(blob, channel, since)
            with self._lock:
                self._told.put(key, told)
        return told

    def _tested(self, blob: Blob, channel: str, since: Address | None) -> bool:
        below = self._next(blob, channel)
        if below is not None:
            return self._differs(below, channel)
        above = self._reader.blob(since) if since is not None else None
        return above is not None and self._differs(above, channel)

    def _differs(self, snapshot: Blob, channel: str) -> bool:
        """Only what a superstep made: an edit stores what somebody wanted."""
        if snapshot.source != "loop":
            return False
        ruled = self._rebuild(snapshot, channel)
        if ruled.how != "exact" or ruled.value is MISSING or not ruled.ruled:
            return False
        stored = self._stored(channel, snapshot.values[channel])
        return not same_value(*without_shared(ruled.value, stored))

    def _next(self, blob: Blob, channel: str) -> Blob | None:
        """The nearest checkpoint below that holds the channel, along supersteps."""
        passed, ahead = 0, _FIRST
        here = blob.address
        while passed < _MOST:
            way = self._threads.way_down(here, ahead)
            self._reader.prefetch(way)
            for address in way:
                found = self._reader.blob(address)
                if found is None or not found.readable or found.source != "loop":
                    return None
                if channel in found.values:
                    return found
            if len(way) < ahead:
                return None
            here, passed, ahead = way[-1], passed + len(way), _STEP
        return None


def without_shared(one: Value, other: Value) -> tuple[Value, Value]:
    """Two lists without the items at their beginning that are the very same objects: what was decoded once is one object."""
    if not (isinstance(one, list) and isinstance(other, list)):
        return one, other
    alike = min(len(one), len(other))
    alike = next((at for at, same in enumerate(map(is_, one, other)) if not same), alike)
    return one[alike:], other[alike:]
