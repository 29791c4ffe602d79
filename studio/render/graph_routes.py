"""From ranks and places to boxes and lines: heights, ports, curves, and the lanes of edges that lead back up.

Lines are written in SVG's path language. No line crosses a box: one over several ranks goes straight through each, and one that
leads back leaves the graph through the room between two ranks, or at the side where nothing stands beside its box.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

BOX = 34.0
"""Height of a box."""
END = 18.0
"""Height of a round end."""
LOOP = 34.0
"""Room at the right of a node that leads to itself."""
_SPACE = 38.0
"""Room between two ranks, without the lines that run along in it."""
_TRACK = 9.0
_LANE = 17.0
_BESIDE = 22.0
_HEAD = 6.0
"""Length of an arrow's head."""
_PAD = 14.0
_CORNER = 9.0


class Box(Struct, frozen=True):
    """A node: `x` is its middle, `y` its top."""

    x: float
    y: float
    width: float
    height: float


class Route(Struct, frozen=True):
    """An edge: its line, its arrow's head, and where its label's middle is."""

    line: str
    head: str
    label: tuple[float, float]


class _Back(Struct):
    """An edge that leads back up, on its way to a lane."""

    at: int
    source: int
    target: int
    side: int
    """1 = at the right, -1 = at the left."""
    lane: float = 0.0
    out: float | None = None
    """The y of its way out below the source's rank; None: out at the side of its box."""
    home: float | None = None


class _Frame(Struct):
    """What routing needs to know of the drawing so far."""

    rank: Sequence[int]
    order: Sequence[Sequence[int]]
    xs: list[float]
    widths: Sequence[float]
    ends: frozenset[int]
    loops: frozenset[int]
    """Nodes with a line at their right that leads to themselves."""
    tops: list[float] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)

    def half(self, one: int) -> float:
        return self.widths[one] / 2 if one < len(self.widths) else 0.0

    def reach(self, one: int, side: int) -> float:
        """How far a node and its loop reach from its middle."""
        return self.half(one) + (LOOP if side > 0 and one in self.loops else 0.0)

    def top(self, one: int) -> float:
        level = self.rank[one]
        return self.tops[level] + (self.heights[level] - self.height(one)) / 2

    def height(self, one: int) -> float:
        return END if one in self.ends else BOX

    def bottom(self, one: int) -> float:
        return self.top(one) + self.height(one)


def routed(
    rank: Sequence[int],
    order: Sequence[Sequence[int]],
    xs: list[float],
    widths: Sequence[float],
    edges: Sequence[tuple[int, int]],
    kinds: Sequence[str],
    bends: Sequence[Sequence[int]],
    ends: frozenset[int],
) -> tuple[tuple[Box, ...], tuple[Route, ...], float, float]:
    """(boxes, routes, width, height) of a graph whose nodes and bends have a rank and an x."""
    loops = frozenset(source for (source, _), kind in zip(edges, kinds, strict=True) if kind == "self")
    frame = _Frame(rank, order, xs, widths, ends, loops)
    backs = [_Back(at, *edges[at], 1) for at, kind in enumerate(kinds) if kind == "back"]
    for back in backs:
        back.side = _side(frame, back)
    tracks = _tracks(frame, backs)
    y = _PAD
    for level, members in enumerate(order):
        frame.tops.append(y)
        frame.heights.append(max((frame.height(one) for one in members), default=BOX))
        y += frame.heights[-1] + (_SPACE + _TRACK * tracks.get(level, 0) if level < len(order) - 1 else 0)
    _settle_tracks(frame, backs)
    lanes = _lanes(frame, backs)
    everything = range(len(rank))
    left = min((*(frame.xs[one] - frame.half(one) for one in everything), *(x for side, x in lanes if side < 0)), default=0.0)
    right = max(
        (*(frame.xs[one] + frame.reach(one, 1) for one in everything), *(x for side, x in lanes if side > 0)), default=0.0
    )
    shift = _PAD - left + (12 if any(side < 0 for side, _ in lanes) else 0)
    frame.xs = [x + shift for x in frame.xs]
    for back in backs:
        back.lane += shift
    below_all = max((back.out for back in backs if back.out is not None), default=0.0)
    height = max(y, below_all + 4) + _PAD
    width = right + shift + _PAD + (12 if any(side > 0 for side, _ in lanes) else 0)
    boxes = tuple(Box(frame.xs[one], frame.top(one), widths[one], frame.height(one)) for one in range(len(widths)))
    leaves, enters = _ports(frame, edges, kinds, bends)
    by_edge = {back.at: back for back in backs}
    routes = []
    for at, (source, target) in enumerate(edges):
        if kinds[at] == "self":
            routes.append(_loop(frame, source))
        elif kinds[at] == "back":
            routes.append(_back(frame, by_edge[at], backs))
        else:
            routes.append(_down(frame, source, target, bends[at], leaves[at], enters[at]))
    return boxes, tuple(routes), width, height


# ---------------------------------------------------------------------- downward


def _ports(
    frame: _Frame, edges: Sequence[tuple[int, int]], kinds: Sequence[str], bends: Sequence[Sequence[int]]
) -> tuple[dict[int, float], dict[int, float]]:
    """Where each edge leaves its source's lower side and enters its target's upper side, as a distance from the middle."""
    leaving: dict[int, list[tuple[float, int]]] = {}
    entering: dict[int, list[tuple[float, int]]] = {}
    for at, (source, target) in enumerate(edges):
        if kinds[at] == "down":
            leaving.setdefault(source, []).append((frame.xs[bends[at][0] if bends[at] else target], at))
            entering.setdefault(target, []).append((frame.xs[bends[at][-1] if bends[at] else source], at))
    return _spread(frame, leaving), _spread(frame, entering)


def _spread(frame: _Frame, groups: dict[int, list[tuple[float, int]]]) -> dict[int, float]:
    found: dict[int, float] = {}
    for one, group in groups.items():
        room = 0.0 if one in frame.ends else min(16.0, (frame.widths[one] - 24) / len(group))
        for place, (_, at) in enumerate(sorted(group)):
            found[at] = (place - (len(group) - 1) / 2) * room
    return found


def _down(frame: _Frame, source: int, target: int, bends: Sequence[int], leaves: float, enters: float) -> Route:
    x, y = frame.xs[source] + leaves, frame.bottom(source)
    end = (frame.xs[target] + enters, frame.top(target))
    line = [f"M{_n(x)} {_n(y)}"]
    middle = ((x + end[0]) / 2, (y + end[1] - _HEAD) / 2)
    for at, bend in enumerate(bends):
        level = frame.rank[bend]
        line.append(_curve(x, y, frame.xs[bend], frame.tops[level]))
        x, y = frame.xs[bend], frame.tops[level] + frame.heights[level]
        line.append(f"V{_n(y)}")
        if at == len(bends) // 2:
            middle = (x, frame.tops[level] + frame.heights[level] / 2)
    line.append(_curve(x, y, end[0], end[1] - _HEAD))
    return Route("".join(line), _head(end[0], end[1], 0, 1), middle)


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    if abs(x - to_x) < 0.6:
        return f"L{_n(to_x)} {_n(to_y)}"
    middle = _n((y + to_y) / 2)
    return f"C{_n(x)} {middle} {_n(to_x)} {middle} {_n(to_x)} {_n(to_y)}"


def _loop(frame: _Frame, one: int) -> Route:
    x, y = frame.xs[one] + frame.half(one), frame.top(one) + frame.height(one) / 2
    end = x + _HEAD
    line = f"M{_n(x)} {_n(y - 8)}C{_n(x + 30)} {_n(y - 22)} {_n(x + 30)} {_n(y + 22)} {_n(end)} {_n(y + 8)}"
    return Route(line, _head(x, y + 8, -1, 0), (x + 23, y))


# ---------------------------------------------------------------------- back up


def _side(frame: _Frame, back: _Back) -> int:
    """The side on which both ends stand outermost, else the one that they are nearer to; the right one in doubt."""
    outer = {
        side: sum(_outermost(frame, one, side) for one in (back.source, back.target))
        for side in (1, -1)
    }  # fmt: skip
    if outer[1] != outer[-1]:
        return 1 if outer[1] > outer[-1] else -1
    middle = sum(frame.xs) / max(1, len(frame.xs))
    return 1 if frame.xs[back.source] + frame.xs[back.target] >= 2 * middle - 1 else -1


def _outermost(frame: _Frame, one: int, side: int) -> bool:
    if side > 0 and one in frame.loops:
        return False
    members = [other for other in frame.order[frame.rank[one]] if other < len(frame.widths)]
    return members[-1 if side > 0 else 0] == one


def _tracks(frame: _Frame, backs: Sequence[_Back]) -> dict[int, int]:
    """Rank -> how many lines run along below it. The y of each is settled when the ranks have theirs."""
    tracks: dict[int, int] = {}
    for back in sorted(backs, key=lambda one: (frame.rank[one.source] - frame.rank[one.target], one.at)):
        if not _outermost(frame, back.source, back.side):
            level = frame.rank[back.source]
            back.out = tracks.get(level, 0)
            tracks[level] = tracks.get(level, 0) + 1
        if not _outermost(frame, back.target, back.side):
            level = frame.rank[back.target] - 1
            back.home = tracks.get(level, 0)
            tracks[level] = tracks.get(level, 0) + 1
    return tracks


def _settle_tracks(frame: _Frame, backs: Sequence[_Back]) -> None:
    for back in backs:
        if back.out is not None:
            level = frame.rank[back.source]
            back.out = frame.tops[level] + frame.heights[level] + 12 + _TRACK * back.out
        if back.home is not None:
            level = frame.rank[back.target] - 1
            under = frame.tops[level] + frame.heights[level] if level >= 0 else 0.0
            back.home = under + 12 + _TRACK * back.home


def _lanes(frame: _Frame, backs: Sequence[_Back]) -> list[tuple[int, float]]:
    """Give each edge its lane beside the ranks that it passes, shorter ones further in; (side, x) of all lanes."""
    taken: list[tuple[int, int, int, float]] = []
    edge = [
        {side: max((side * frame.xs[one] + frame.reach(one, side) for one in members), default=0.0) for side in (1, -1)}
        for members in frame.order
    ]
    for back in sorted(backs, key=lambda one: (frame.rank[one.source] - frame.rank[one.target], one.at)):
        high, low = frame.rank[back.target], frame.rank[back.source]
        first, last = high - (back.home is not None), low + (back.out is not None)
        away = max(edge[level][back.side] for level in range(high, low + 1)) + _BESIDE
        for side, above, below, x in taken:
            if side == back.side and above <= last and below >= first:
                away = max(away, side * x + _LANE)
        back.lane = back.side * away
        taken.append((back.side, first, last, back.lane))
    return [(side, x) for side, _, _, x in taken]


def _back(frame: _Frame, back: _Back, backs: Sequence[_Back]) -> Route:
    side, lane = back.side, back.lane
    source, target = back.source, back.target
    points: list[tuple[float, float]] = []
    if back.out is None:
        y = frame.top(source) + frame.height(source) / 2 + _slot(backs, back, source)
        points += [(frame.xs[source] + side * frame.half(source), y), (lane, y)]
    else:
        x = frame.xs[source] + side * frame.half(source) * 0.72
        points += [(x, frame.bottom(source)), (x, back.out), (lane, back.out)]
    leaves = points[-1][1]
    if back.home is None:
        y = frame.top(target) + frame.height(target) / 2 + _slot(backs, back, target)
        x = frame.xs[target] + side * frame.half(target)
        points += [(lane, y), (x + side * _HEAD, y)]
        head = _head(x, y, -side, 0)
    else:
        x = frame.xs[target] + side * frame.half(target) * 0.72
        points += [(lane, back.home), (x, back.home), (x, frame.top(target) - _HEAD)]
        head = _head(x, frame.top(target), 0, 1)
    enters = back.home if back.home is not None else y
    return Route(_rounded(points), head, (lane, (leaves + enters) / 2))


def _slot(backs: Sequence[_Back], back: _Back, one: int) -> float:
    """Lines at the same side of a box stand apart."""
    same = [
        other
        for other in backs
        if other.side == back.side
        and ((other.source == one and other.out is None) or (other.target == one and other.home is None))
    ]
    return (same.index(back) - (len(same) - 1) / 2) * min(10.0, 24.0 / len(same))


def _rounded(points: Sequence[tuple[float, float]]) -> str:
    """A line along right angles with round corners."""
    line = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        size = min(_CORNER, _far(before, here) / 2, _far(here, after) / 2)
        start, stop = _toward(here, before, size), _toward(here, after, size)
        line.append(f"L{_n(start[0])} {_n(start[1])}Q{_n(here[0])} {_n(here[1])} {_n(stop[0])} {_n(stop[1])}")
    line.append(f"L{_n(points[-1][0])} {_n(points[-1][1])}")
    return "".join(line)


def _far(one: tuple[float, float], other: tuple[float, float]) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _toward(here: tuple[float, float], there: tuple[float, float], by: float) -> tuple[float, float]:
    far = _far(here, there) or 1.0
    return here[0] + (there[0] - here[0]) * by / far, here[1] + (there[1] - here[1]) * by / far


def _head(x: float, y: float, dx: int, dy: int) -> str:
    """The head of an arrow whose tip is at a point, along an axis."""
    back_x, back_y = x - dx * (_HEAD + 1), y - dy * (_HEAD + 1)
    wide = 4.2
    return (
        f"M{_n(x)} {_n(y)}L{_n(back_x - dy * wide)} {_n(back_y - dx * wide)}L{_n(back_x + dy * wide)} {_n(back_y + dx * wide)}Z"
    )


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
