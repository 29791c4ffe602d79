"""A rank that is too wide to be read stands in rows, like bricks: the lines to a row pass between the boxes above it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

WIDE = 1_000.0
"""Pixels from which a rank is parted."""
CLOSE = 8.0
"""Room between two lines that pass through a row."""
_BESIDE = 36.0
"""Room that a box takes beside its own width."""
_ROW = 72.0
_FEWEST = 4
"""Boxes of a rank that is never parted."""


class Rows(Struct, frozen=True):
    """New ranks, and for each the old one that it is a part of."""

    rank: list[int]
    part_of: list[int]


def parted(order: Sequence[Sequence[int]], widths: Sequence[float]) -> Rows | None:
    """All nodes after wide ranks were parted; None where none is wide. `order` names nodes and, numbered after them, bends."""
    count = len(widths)
    rank = [0] * count
    part_of: list[int] = []
    for level, members in enumerate(order):
        nodes = [one for one in members if one < count]
        rows = _rows([widths[one] for one in nodes])
        for at, one in enumerate(nodes):
            rank[one] = len(part_of) + at % rows
        part_of.extend([level] * rows)
    return Rows(rank, part_of) if len(part_of) > len(order) else None


def _rows(widths: Sequence[float]) -> int:
    """The fewest rows that can be read without scrolling aside, or that make the rank about as high as wide."""
    count, whole = len(widths), sum(widths)
    if count <= _FEWEST or whole + _BESIDE * count <= WIDE:
        return 1
    for rows in range(2, count):
        wide = whole / rows + _BESIDE * count / rows + CLOSE * (count - count / rows)
        if wide <= WIDE or wide <= 1.5 * rows * _ROW:
            return rows
    return 1
