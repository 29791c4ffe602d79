"""The lines, bends and status shapes to the left of a timeline row, as pieces of (text, style).

One lane is two cells wide. Shape says status, colour says the kind of lane (main, subgraph, fork), so neither is needed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from studio.model import Row

Pieces = list[tuple[str, str]]

SHAPES = {"answered": "■", "paused": "■", "failed": "✕", "unknown": "○"}
FORK_SHAPE = "◌"
MOST_LANES = 7
"""Lanes drawn side by side; of more, those around the row under the cursor."""


def kind(row: Row) -> str:
    """The theme variable of a row's lane."""
    beside = not row.depth and row.lane > 0
    if row.checkpoint.origin == "scratch" or row.origin_checkpoint_id is not None or beside:
        return "$lane-fork"
    return "$lane-sub" if row.depth else "$lane-main"


def shape(row: Row) -> tuple[str, str]:
    """The status shape of a row and its colour."""
    mark = SHAPES.get(row.status or "", "")
    if row.status in ("paused", "answered"):
        return mark, "$wait"
    if row.status == "failed":
        return mark, "$error"
    if mark:
        return mark, kind(row)
    return (FORK_SHAPE if row.origin_checkpoint_id is not None else "●"), kind(row)


def fitting(width: int) -> int:
    """Lanes to draw in a timeline of `width` cells: the words of a row come first."""
    return min(max((width - 22) // 2, 3), MOST_LANES)


def rest_width(lane_count: int, drawn: int) -> int:
    """Cells that `rest` takes; 0 where all lanes are drawn."""
    hidden = lane_count - drawn
    return 0 if hidden <= 0 else len(str(min(hidden, 99))) + 2


def rest(row: Row, first: int, stop: int, width: int) -> tuple[str, str]:
    """`+2`: the lanes at this row that are not drawn."""
    hidden = sum(not first <= lane < stop for lane in row.lanes)
    words = "" if not hidden else f"+{hidden}" if hidden < 100 else "99+"
    return words.ljust(width), "$faint"


def window(row_lane: int, lane_count: int, most: int = MOST_LANES) -> tuple[int, int]:
    """First and one past the last lane to draw."""
    if lane_count <= most:
        return 0, max(1, lane_count)
    first = min(max(0, row_lane - most // 2), lane_count - most)
    return first, first + most


def colours(rows: Sequence[Row], after: Sequence[Row]) -> list[dict[int, str]]:
    """For each of `rows`: lane -> colour of the next row on that lane, looking into `after` too."""
    seen: dict[int, str] = {}
    for row in reversed(after):
        seen[row.lane] = kind(row)
    out: list[dict[int, str]] = []
    for row in reversed(rows):
        out.append(dict(seen))  # below this row; its own shape has its own colour
        seen[row.lane] = kind(row)
    return out[::-1]


def draw(row: Row, above: Row | None, first: int, stop: int, lane_colours: Mapping[int, str]) -> Pieces:
    """The lane part of one row: `2 * (stop - first)` cells, `‹` where some are cut off at the left. `above` is the row before.

    A lane that appears here for the first time bends out of this row: `●─╮`. A row on a lane that is not drawn has its shape at
    the edge.
    """
    own, own_style = shape(row)
    passing = set(row.lanes)  # thousands of forks pass a row as soon as a checkpoint was forked as often
    before = set(above.lanes) if above is not None else set()
    if above is not None and above.is_leaf:  # the row above may have ended the same lane
        before.discard(above.lane)
    begins = passing - before - {row.lane}
    near = {lane for lane in begins if first <= lane < stop}
    near.add(max((lane for lane in begins if lane < first), default=row.lane))
    near.add(min((lane for lane in begins if lane >= stop), default=row.lane))
    near.discard(row.lane)
    left, right = min((*begins, row.lane)), max((*begins, row.lane))
    pieces: Pieces = []
    for lane in range(first, stop):
        style = lane_colours.get(lane, "$faint")
        if lane == row.lane:
            cell, style = own, f"{own_style} bold"
        elif lane in begins:
            cell = ("╮" if lane == right else "┬") if lane > row.lane else ("╭" if lane == left else "┬")
        elif lane in passing:
            cell = "┼" if left < lane < right else "│"
        elif left < lane < right:
            cell, style = "─", _reaches(lane, row.lane, near, lane_colours)
        else:
            cell, style = " ", ""
        pieces.append((cell, style))
        pieces.append(("─", _reaches(lane, row.lane, near, lane_colours)) if left <= lane < right else (" ", ""))
    if row.lane != first and min((*row.lanes, row.lane)) < first:
        pieces[0] = ("‹", "$faint")
    if not first <= row.lane < stop:
        pieces[1 if row.lane < first else -2] = (own, f"{own_style} bold")
    return pieces


def _reaches(lane: int, own: int, begins: Iterable[int], lane_colours: Mapping[int, str]) -> str:
    """The colour of the horizontal line right of `lane`: that of the nearest lane it leads to."""
    ends = [end for end in begins if (end > lane >= own) or (end <= lane < own)]
    nearest = (min if lane >= own else max)(ends, default=own)
    return lane_colours.get(nearest, "$faint")
