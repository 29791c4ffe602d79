"""A long thread that is one plain chain, read as its tree is read, of which only the rows in view are ever built."""

from __future__ import annotations

from collections.abc import Callable

from studio.errors import OpenError
from studio.history.tally import Tally, orphan
from studio.model import Address, Problem, Row
from studio.stores.chain import Chain
from studio.tree import CheckpointTree


class Stretch:
    """Every row is in one lane, and its number is its place."""

    namespaces = ("",)
    branch_count = 1
    lane_count = 1

    def __init__(self, thread_id: str, chain: Chain, tally: Tally, part: Callable[[int, int], CheckpointTree | None]) -> None:
        """`part` builds a tree of the rows start..stop-1 and their neighbours."""
        self.thread_id = thread_id
        self._chain = chain
        self._tally = tally
        self._part = part

    def __len__(self) -> int:
        return len(self._chain)

    def place(self, address: Address) -> int | None:
        return self._chain.index(address.checkpoint_id) if not address.checkpoint_ns else None

    def rows(self, start: int, stop: int) -> list[Row]:
        """Rows start..stop-1. Raises OpenError where the file does not give them any more."""
        part = self._part(start, stop)
        if part is None:
            raise OpenError(f"checkpoints of thread {self.thread_id} are gone from the file", "look again", "rows-gone")
        first = part.index(Address(self.thread_id, "", self._chain[start]))
        return part.rows(first, first + stop - start)

    @property
    def problems(self) -> list[Problem]:
        first = self._chain.orphan_of
        lost = [orphan(self.thread_id, "0", first)] if first is not None else []
        return [*lost, *self._tally.problems(self.thread_id)]
