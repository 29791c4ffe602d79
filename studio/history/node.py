"""The rows of a growing checkpoint tree with their links to others, in columns; a row becomes an object when it is asked for."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from msgspec import Struct

from studio.history.facts import Key
from studio.history.namespaces import depth
from studio.history.packed import Packed
from studio.model import Checkpoint

NO_ROW = -1


class Node(Struct, frozen=True, gc=False):
    """A row as it is now; other rows are named by their slots, NO_ROW where there is none."""

    slot: int
    checkpoint: Checkpoint
    key: Key
    number: str
    parent: int
    drawn_from: int
    children: Sequence[int]
    depth: int
    index: int


class Links:
    """What each slot of `headers` is linked to."""

    def __init__(self, headers: Packed) -> None:
        self.headers = headers
        self.parent = array("i")
        """By stored link, in the same namespace, when it is there."""
        self.drawn_from = array("i")
        """Row that the line comes from: parent, origin of a fork, or the caller of a subgraph."""
        self.first_child = array("i")
        self.families: dict[int, list[int]] = {}
        """All children of the rows that have several."""
        self.inner: dict[int, list[int]] = {}
        """Rows of subgraphs that were called from a row, in first-seen order."""
        self.inner_count: dict[int, int] = {}
        self.within: set[int] = set()
        """They stand among the inner rows of another one."""
        self.lane_child = array("i")
        """The child that goes on in a row's lane."""
        self.places = array("i")
        """The number, where it counts the rows of the base."""
        self.numbers: dict[int, str] = {}
        """Every other number."""
        self.order = array("i")
        """Slots as they are displayed."""
        self.index = array("i")
        """Where in that order each stands. The last column to grow: a row is there once it stands in it."""

    def make_room(self, upto: int | None = None) -> range:
        """Take in the slots that came since, or those before one of them; returns them."""
        fresh = range(len(self.index), len(self.headers) if upto is None else upto)
        nothing = array("i", [NO_ROW]) * len(fresh)
        for column in (self.parent, self.drawn_from, self.first_child, self.lane_child, self.places, self.index):
            column.extend(nothing)
        return fresh

    def __len__(self) -> int:
        return len(self.index)

    def slot(self, key: Key) -> int:
        """NO_ROW for a key that is not there."""
        found = self.headers.find(*key)
        return found if found < len(self.index) else NO_ROW

    def number(self, slot: int) -> str:
        place = self.places[slot]
        return str(place) if place >= 0 else self.numbers.get(slot, "")

    def children(self, slot: int) -> Sequence[int]:
        found = self.families.get(slot)
        if found is not None:
            return found
        first = self.first_child[slot]
        return (first,) if first >= 0 else ()

    def take_child(self, parent: int, child: int) -> None:
        first = self.first_child[parent]
        if first < 0:
            self.first_child[parent] = child
        else:
            self.families.setdefault(parent, [first]).append(child)

    def lose_child(self, parent: int, child: int) -> None:
        left = [one for one in self.children(parent) if one != child]
        self.first_child[parent] = left[0] if left else NO_ROW
        self.families.pop(parent, None)
        if len(left) > 1:
            self.families[parent] = left

    def take_inner(self, holder: int, slot: int) -> None:
        self.inner.setdefault(holder, []).append(slot)
        self.within.add(slot)

    def node(self, slot: int) -> Node:
        headers = self.headers
        header = headers.header(slot)
        key = (header.checkpoint_ns, header.checkpoint_id)
        number, children = self.number(slot), tuple(self.children(slot))
        return Node(
            slot, header, key, number, self.parent[slot], self.drawn_from[slot], children, depth(key[0]), self.index[slot]
        )
