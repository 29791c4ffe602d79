"""Display order and lanes of a tree's rows: by number at the top level, each row before the subgraph rows that ran from it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from studio.history.lanes import Lanes
from studio.history.node import NO_ROW, Links


def lay_out(links: Links, tops: Iterable[int]) -> Lanes:
    """Order all rows anew, given those of the top level by their numbers."""
    order = array("i")
    for top in _parents_first(links, tops):
        if top not in links.inner:
            order.append(top)
            continue
        stack = [top]
        while stack:
            slot = stack.pop()
            order.append(slot)
            stack.extend(reversed(links.inner.get(slot, ())))
    links.order = order
    for index, slot in enumerate(order):
        links.index[slot] = index
        links.lane_child[slot] = NO_ROW
    parents, continues = array("i"), bytearray()
    for slot in order:
        parent, goes_on = line(links, slot, links.index[slot])
        parents.append(parent)
        continues.append(goes_on)
    return Lanes.build(parents, continues)


def _parents_first(links: Links, tops: Iterable[int]) -> Iterator[int]:
    """Keep the number order but for rows whose parent was seen later: those wait for it."""
    order = array("i", tops)
    waits_for, done = bytearray(len(links)), bytearray(len(links))
    for slot in order:
        waits_for[slot] = 1
    held: dict[int, list[int]] = {}
    for top in order:
        stack = [top]
        while stack:
            slot = stack.pop()
            parent = links.drawn_from[slot]
            if parent >= 0 and waits_for[parent] and not done[parent]:
                held.setdefault(parent, []).append(slot)
                continue
            done[slot] = 1
            yield slot
            stack.extend(reversed(held.pop(slot, [])))
    for slots in held.values():
        yield from slots


def line(links: Links, slot: int, at: int) -> tuple[int, bool]:
    """(row the line of a row at some place comes from or -1, stays in that row's lane)."""
    above = links.drawn_from[slot]
    if above < 0 or not 0 <= links.index[above] < at:
        return -1, False
    same_track = links.parent[slot] == above and links.headers.ns(above) == links.headers.ns(slot)
    if same_track and links.lane_child[above] in (NO_ROW, slot):
        links.lane_child[above] = slot
        return links.index[above], True
    return links.index[above], False
