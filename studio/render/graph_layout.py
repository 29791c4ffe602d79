"""A small layered layout of directed graphs: ranks from top to bottom, few crossings, straight lines where they can be straight.

The steps are the well-known ones: edges that close a cycle are set aside by a depth-first search, ranks are longest paths, an
edge over several ranks gets a bend in each, ranks are ordered by the mean place of their neighbours, places in a rank are those
of least squares that keep the order. Edges that lead back up run in lanes beside the graph. Pure: equal input gives equal output.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from studio.render.graph_routes import BOX, END, LOOP, Box, Route, routed
from studio.render.graph_rows import CLOSE, parted

MOST_NODES = 200
MOST_EDGES = 1_000
MOST_BENDS = 6_000
_SWEEPS = 12
_SETTLING = 24
_GAP, _BEND_GAP = 30.0, 18.0
_ISLANDS = 5
"""Nodes without any edge in one row."""

Kind = Literal["down", "back", "self"]


class Ranked(Struct, frozen=True):
    """Which node stands in which rank, and which edges lead back up."""

    ranks: tuple[tuple[int, ...], ...]
    """Nodes of each rank from left to right, bends left out."""
    kinds: tuple[Kind, ...]
    """Of each edge: `down` leads to a later rank, `back` closes a cycle, `self` leads to its own node."""


class Layout(Struct, frozen=True):
    """Where everything is, in units of a pixel; y grows downward."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    routes: tuple[Route, ...]
    """Of each edge, in the order given."""


def lay_out(
    widths: Sequence[float], edges: Sequence[tuple[int, int]], first: int | None = None, last: int | None = None
) -> Layout | None:
    """Place nodes of these widths and route the edges between them, or None where a picture would be too big to read.

    `first` and `last` are the round ends, above and below everything else. Edges are pairs of positions in `widths`, each once.
    """
    grid = _grid(len(widths), edges, first, last)
    if grid is None:
        return None
    grid = _in_rows(grid, edges, widths)
    rights = [width / 2 for width in widths]
    for (source, _), kind in zip(edges, grid.kinds, strict=True):
        if kind == "self":
            rights[source] = widths[source] / 2 + LOOP
    ends = frozenset(end for end in (first, last) if end is not None)
    xs = _places(grid, [width / 2 for width in widths], rights)
    boxes, routes, width, height = routed(grid.rank, grid.order, xs, widths, edges, grid.kinds, grid.bends, ends)
    return Layout(width, height, boxes, routes)


def ranked(count: int, edges: Sequence[tuple[int, int]], first: int | None = None, last: int | None = None) -> Ranked | None:
    """The ranks alone, for a list instead of a picture; None where there are too many nodes or edges."""
    grid = _grid(count, edges, first, last)
    if grid is None:
        return None
    return Ranked(
        tuple(tuple(one for one in rank if one < count) for rank in grid.order if any(one < count for one in rank)), grid.kinds
    )


class _Grid(Struct):
    """Nodes and, numbered after them, bends."""

    rank: list[int]
    order: list[list[int]]
    kinds: tuple[Kind, ...]
    bends: list[list[int]]
    """Of each edge, from its source to its target."""
    above: list[list[int]]
    below: list[list[int]]
    nodes: int
    gap: float = _BEND_GAP
    """Room between two bends."""


def _grid(count: int, edges: Sequence[tuple[int, int]], first: int | None, last: int | None) -> _Grid | None:
    if count > MOST_NODES or len(edges) > MOST_EDGES:
        return None
    kinds = _kinds(count, edges, first, last)
    down = [edge for edge, kind in zip(edges, kinds, strict=True) if kind == "down"]
    grid = _bent(count, edges, kinds, _ranks(count, edges, down, first, last))
    if grid is None:
        return None
    grid.order = [[] for _ in range(max(grid.rank, default=-1) + 1)]
    for one in _by_depth(grid):
        grid.order[grid.rank[one]].append(one)
    _uncross(grid)
    return grid


def _bent(count: int, edges: Sequence[tuple[int, int]], kinds: tuple[Kind, ...], rank: list[int]) -> _Grid | None:
    """The nodes in their ranks with a bend in each rank that an edge passes, not in order yet; None: too many bends."""
    grid = _Grid(rank, [], kinds, [[] for _ in edges], [[] for _ in rank], [[] for _ in rank], count)
    for at, ((source, target), kind) in enumerate(zip(edges, kinds, strict=True)):
        if kind != "down":
            continue
        before = source
        for level in range(rank[source] + 1, rank[target]):
            bend = len(rank)
            if bend - count >= MOST_BENDS:
                return None
            rank.append(level)
            grid.above.append([])
            grid.below.append([])
            grid.bends[at].append(bend)
            _join(grid, before, bend)
            before = bend
        _join(grid, before, target)
    return grid


def _in_rows(grid: _Grid, edges: Sequence[tuple[int, int]], widths: Sequence[float]) -> _Grid:
    """The same grid with its wide ranks parted into rows; a line goes straight down to its box, in the order found before."""
    rows = parted(grid.order, widths)
    made = _bent(grid.nodes, edges, grid.kinds, rows.rank) if rows is not None else None
    if rows is None or made is None:
        return grid
    place = {one: at for rank in grid.order for at, one in enumerate(rank)}
    found = {one: (place[one], place[one]) for one in range(grid.nodes)}
    for at, (source, target) in enumerate(edges):
        for bend in made.bends[at]:
            level = rows.part_of[made.rank[bend]]
            if level == grid.rank[source]:
                found[bend] = (place[source], place[target])
            elif level == grid.rank[target]:
                found[bend] = (place[target], place[source])
            else:
                passed = place[grid.bends[at][level - grid.rank[source] - 1]]
                found[bend] = (passed, passed)
    made.order = [[] for _ in rows.part_of]
    for one in sorted(found, key=lambda one: found[one]):
        made.order[made.rank[one]].append(one)
    made.gap = CLOSE
    _uncross(made)
    return made


def _join(grid: _Grid, above: int, below: int) -> None:
    grid.below[above].append(below)
    grid.above[below].append(above)


def _kinds(count: int, edges: Sequence[tuple[int, int]], first: int | None, last: int | None) -> tuple[Kind, ...]:
    """A depth-first search in the order of the nodes; an edge to a node that is being searched closes a cycle."""
    out: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    kinds: list[Kind] = ["self" if source == target else "down" for source, target in edges]
    for at, (source, target) in enumerate(edges):
        if source != target and (source == last or target == first):  # the ends stay at the ends
            kinds[at] = "back"
        else:
            out[source].append((target, at))
    for found in out:
        found.sort()
    state = [0] * count
    entered = {target for source, target in edges if source != target}
    roots = sorted(range(count), key=lambda one: (one != first, one in entered, one))
    for root in roots:
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(out[root]))]
        while stack:
            here, rest = stack[-1]
            for target, at in rest:
                if state[target] == 1 and target != here:
                    kinds[at] = "back"
                elif state[target] == 0:
                    state[target] = 1
                    stack.append((target, iter(out[target])))
                    break
            else:
                state[here] = 2
                stack.pop()
    return tuple(kinds)


def _ranks(
    count: int, edges: Sequence[tuple[int, int]], down: Sequence[tuple[int, int]], first: int | None, last: int | None
) -> list[int]:
    """Longest path from above; a node that nothing leads to stands right above the first one that it leads to."""
    out: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for source, target in down:
        out[source].append(target)
        waits[target] += 1
    floor = 0 if first is None else 1
    rank = [0 if one == first else floor for one in range(count)]
    sources = [one for one in range(count) if not waits[one]]
    ready, topological = list(reversed(sources)), []
    while ready:
        here = ready.pop()
        topological.append(here)
        for target in out[here]:
            rank[target] = max(rank[target], rank[here] + 1)
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    for one in sources:
        if one != first and out[one]:
            rank[one] = max(floor, min(rank[target] for target in out[one]) - 1)
    touched = {one for edge in edges for one in edge}
    bottom = max((rank[one] for one in range(count) if one in touched and one != last), default=floor - 1)
    if last is not None:
        bottom += 1
        rank[last] = bottom
    islands = [one for one in range(count) if one not in touched and one not in (first, last)]
    for at, one in enumerate(islands):
        rank[one] = bottom + 1 + at // _ISLANDS
    dense = {level: at for at, level in enumerate(sorted(set(rank)))}
    return [dense[level] for level in rank]


def _by_depth(grid: _Grid) -> list[int]:
    """All nodes and bends in the order of a depth-first walk downward: a first order without needless crossings."""
    seen = [False] * len(grid.rank)
    found: list[int] = []
    for root in sorted(range(len(grid.rank)), key=lambda one: (grid.rank[one], one)):
        stack = [root]
        while stack:
            here = stack.pop()
            if not seen[here]:
                seen[here] = True
                found.append(here)
                stack.extend(reversed(grid.below[here]))
    return found


def _uncross(grid: _Grid) -> None:
    """Order each rank by the mean place of its neighbours, down and up in turn; the order with the fewest crossings stays."""
    best, fewest, idle = [list(rank) for rank in grid.order], _crossings(grid), 0
    for sweep in range(_SWEEPS):
        if not fewest or idle > 3:
            break
        levels = range(1, len(grid.order)) if sweep % 2 == 0 else range(len(grid.order) - 2, -1, -1)
        near = grid.above if sweep % 2 == 0 else grid.below
        place = [0.0] * len(grid.rank)
        for rank in grid.order:
            for at, one in enumerate(rank):
                place[one] = at
        for level in levels:
            rank = grid.order[level]
            rank.sort(key=lambda one: sum(place[other] for other in near[one]) / len(near[one]) if near[one] else place[one])
            for at, one in enumerate(rank):
                place[one] = at
        now = _crossings(grid)
        idle = idle + 1 if now >= fewest else 0
        if now < fewest:
            best, fewest = [list(rank) for rank in grid.order], now
    grid.order = best


def _crossings(grid: _Grid) -> int:
    place = [0] * len(grid.rank)
    for rank in grid.order:
        for at, one in enumerate(rank):
            place[one] = at
    total = 0
    for rank in grid.order:
        seen: list[int] = []
        for one in rank:
            ends = sorted(place[other] for other in grid.below[one])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _places(grid: _Grid, lefts: Sequence[float], rights: Sequence[float]) -> list[float]:
    """The x of each node's and bend's middle: near its neighbours, in the order of its rank, without overlaps."""
    count = grid.nodes

    def apart(one: int, other: int) -> float:
        gap = _GAP if one < count and other < count else _BEND_GAP if one < count or other < count else grid.gap
        return (rights[one] if one < count else 0) + (lefts[other] if other < count else 0) + gap

    xs = [0.0] * len(grid.rank)
    steps: list[list[float]] = []
    for rank in grid.order:
        offsets = [0.0]
        for one, other in zip(rank, rank[1:], strict=False):
            offsets.append(offsets[-1] + apart(one, other))
        steps.append(offsets)
        for one, offset in zip(rank, offsets, strict=True):
            xs[one] = offset - offsets[-1] / 2
    for sweep in range(_SETTLING + 2):
        final = sweep >= _SETTLING
        levels = range(len(grid.order)) if sweep % 2 == 0 else range(len(grid.order) - 1, -1, -1)
        for level in levels:
            rank = grid.order[level]
            wanted, weights = [], []
            for one in rank:
                near = grid.above[one] + grid.below[one] if final else (grid.above[one] if sweep % 2 == 0 else grid.below[one])
                straight = [xs[other] for other in near if other >= count] if one >= count else []
                pull = straight or [xs[other] for other in near]
                wanted.append(sum(pull) / len(pull) if pull else xs[one])
                weights.append(4.0 if one >= count else 1.0 if pull else 0.1)
            for one, x in zip(rank, _in_order(wanted, weights, steps[level]), strict=True):
                xs[one] = x
    return xs


def _in_order(wanted: Sequence[float], weights: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """The places nearest to the wanted ones, by weighted squares, that keep their distances: adjacent violators are pooled."""
    pools: list[tuple[float, float, int]] = []
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, mass, size = want - offset, weight, 1
        while pools and pools[-1][0] > mean:
            before, heavy, many = pools.pop()
            mean = (before * heavy + mean * mass) / (heavy + mass)
            mass, size = mass + heavy, size + many
        pools.append((mean, mass, size))
    flat = [mean for mean, _, size in pools for _ in range(size)]
    return [mean + offset for mean, offset in zip(flat, offsets, strict=True)]


__all__ = ["BOX", "END", "Box", "Layout", "Ranked", "Route", "lay_out", "ranked"]
