"""Which number each row of a tree gets: at first sight in topological order, never changed, kept while a tree is built anew."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from studio.history.facts import Key
from studio.history.node import NO_ROW, Links
from studio.history.numbers import Numbers


class Numbering:
    def __init__(self) -> None:
        self.counters = {"base": 0, "scratch": 0}
        self.by_number: dict[str, int] = {}
        """But for those in `in_order`."""
        self.in_order = array("i")
        """Rows whose number is their place in this list: nearly all of a long thread."""
        self.others: list[int] = []
        """The rest."""
        self.held: dict[Key, tuple[str, int]] = {}
        """Number and count of inner rows that rows had before the tree was built anew."""

    def hold(self, numbers: Numbers, keys: Iterable[Key]) -> None:
        """Rows with these keys get the numbers again that they had."""
        held = numbers.of(keys)
        # of rows that are all gone no number is in use: the next fork is s1 again, as for whoever opens the file now
        kept = {number.startswith("s") for number, _ in held.values()}
        before = numbers.counters
        self.counters = {"base": before["base"] if held else 0, "scratch": before["scratch"] if True in kept else 0}
        self.held = held

    def go_on(self, links: Links, slots: range) -> None:
        """The next numbers of the base, in the order of these rows."""
        at = self.counters["base"]
        self.counters["base"] += len(slots)
        links.places[slots.start : slots.stop] = array("i", range(at, at + len(slots)))
        if at == len(self.in_order):
            self.in_order.extend(slots)
        else:
            self.others.extend(slots)
            self.by_number.update((str(at + count), slot) for count, slot in enumerate(slots))

    def name(self, links: Links, slot: int, number: str) -> None:
        links.numbers[slot] = number
        self.by_number[number] = slot
        self.others.append(slot)

    def find(self, number: str) -> int:
        found = self.by_number.get(number, NO_ROW)
        if found < 0 and number.isascii() and number.isdigit() and len(number) < 12 and str(int(number)) == number:
            at = int(number)
            found = self.in_order[at] if at < len(self.in_order) else NO_ROW
        return found

    def tops(self, links: Links) -> Iterator[int]:
        """Rows that stand among no other's inner ones, by their numbers."""
        within = links.within
        others = [slot for slot in self.others if slot not in within]
        plain = (slot for slot in self.in_order if slot not in within)
        if not others:
            return plain

        def order(slot: int) -> tuple[bool, tuple[int, ...]]:
            number = links.number(slot)
            return number.startswith("s"), tuple(int(part) for part in number.lstrip("s").split("."))

        return heapq.merge(plain, sorted(others, key=order), key=order)


def topological(links: Links, fresh: range, order: Callable[[int], Any], give: Callable[[int], None]) -> None:
    """Call `give` for new rows, each after the one it is drawn from, ties by time and id.

    Outer namespaces come first, as inner numbers begin with theirs.
    """
    first = fresh.start
    pending = bytearray(b"\1") * len(fresh)
    below, beside = array("i", [NO_ROW]) * len(fresh), array("i", [NO_ROW]) * len(fresh)
    ready = []
    for slot in fresh:
        above = links.drawn_from[slot] - first
        if above >= 0:
            beside[slot - first], below[above] = below[above], slot
        else:
            ready.append((order(slot), slot))
    heapq.heapify(ready)
    while ready:
        slot = heapq.heappop(ready)[1]
        while True:
            give(slot)
            pending[slot - first] = 0
            child = below[slot - first]
            if child < 0 or ready or beside[child - first] >= 0:
                break
            slot = child  # nothing to compare it with
        while child >= 0:
            heapq.heappush(ready, (order(child), child))
            child = beside[child - first]
    left = [slot for slot in fresh if pending[slot - first]]
    for slot in sorted(left, key=order):  # only reached by records that contradict each other
        links.drawn_from[slot] = NO_ROW
        give(slot)
