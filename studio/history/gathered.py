"""All headers of a thread from one reading of a file, packed as they come: the whole list of them never exists."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

from studio.history.packed import Packed
from studio.model import Checkpoint


class Gathered:
    """Headers with the cursor of each, ascending; where base and scratch file are laid over each other, the base's come first."""

    def __init__(self, thread_id: str) -> None:
        self.headers = Packed(thread_id)
        self.encrypted = 0
        self._cursors = array("q")
        self._ascends = True

    def take(self, found: Sequence[tuple[int, Checkpoint]]) -> bool:
        """Take in rows with their cursors; False when one repeats an address, or has none."""
        rows = [header for _, header in found]
        cursors = array("q", [cursor for cursor, _ in found])
        self.encrypted += sum(header.encrypted for header in rows)
        joined = self._cursors[-1:] + cursors
        self._ascends = self._ascends and all(one < other for one, other in zip(joined, joined[1:], strict=False))
        self._cursors += cursors
        return self.headers.add(rows) == len(rows) and all(header.checkpoint_id for header in rows)

    def sort(self) -> None:
        """By the cursors: an index gives its rows in another order."""
        if not self._ascends:
            order = array("i", sorted(range(len(self._cursors)), key=self._cursors.__getitem__))
            self.headers, self._ascends = self.headers.in_order(order), True
            self._cursors = array("q", map(self._cursors.__getitem__, order))

    @property
    def end(self) -> int:
        """The cursor of the last row, 0 without any."""
        return self._cursors[-1] if self._cursors else 0

    def before(self, cursor: int) -> int:
        """How many rows stand before a cursor."""
        return bisect_left(self._cursors, cursor)
