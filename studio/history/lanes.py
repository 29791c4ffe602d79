"""Lanes for a checkpoint tree: which column each row is drawn in, and which columns pass through it.

A *segment* is a chain of rows in which each is the first child of the one before. It occupies one lane from the row it branched
off to its last row. Lanes are handed out in order of appearance, lowest free one first, so a thread without forks is one line.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from heapq import heappop, heappush

from msgspec import Struct, field


class Segment(Struct):
    start: int
    """Row that this segment branched off, or its own first row."""
    first: int
    end: int
    lane: int = 0


class Lanes(Struct):
    """The lanes of rows 0..n-1, given each row's parent row (or -1) and whether the row continues its parent's lane."""

    of_row: array[int] = field(default_factory=lambda: array("i"))
    """Segment index of each row."""
    segments: list[Segment] = field(default_factory=list)
    width: int = 0
    _last_on_lane: dict[int, int] = field(default_factory=dict)

    @classmethod
    def build(cls, parents: Sequence[int], continues: Sequence[int]) -> Lanes:
        """Lanes for a whole tree. `parents[i] < i` or -1; `continues[i]`: row i stays in its parent's segment."""
        lanes = cls()
        for row, parent in enumerate(parents):
            lanes._place(row, parent, continues[row])
        lanes._colour()
        return lanes

    def _place(self, row: int, parent: int, continues: int) -> int:
        if parent >= 0 and continues:
            segment = self.of_row[parent]
            self.segments[segment].end = row
        else:
            segment = len(self.segments)
            self.segments.append(Segment(parent if parent >= 0 else row, row, row))
        self.of_row.append(segment)
        return segment

    def _colour(self) -> None:
        free: list[int] = []
        busy: list[tuple[int, int]] = []
        self.width = 0
        for segment in sorted(self.segments, key=lambda s: (s.start, s.first)):
            while busy and busy[0][0] < segment.start:
                heappush(free, heappop(busy)[1])
            if free:
                segment.lane = heappop(free)
            else:
                segment.lane = self.width
                self.width += 1
            if segment.lane:  # lane 0 is the first branch's alone, so that it stays the spine of the picture
                heappush(busy, (segment.end, segment.lane))
        self._last_on_lane = {}
        for index, segment in enumerate(self.segments):
            held = self._last_on_lane.get(segment.lane)
            if held is None or self.segments[held].end < segment.end:
                self._last_on_lane[segment.lane] = index

    def append(self, parent: int, continues: bool) -> bool:
        """Add one row at the end; False when every lane must be built anew, because a lane was given to another segment since."""
        if not (parent >= 0 and continues):
            return False
        segment = self.of_row[parent]
        if self._last_on_lane.get(self.segments[segment].lane) != segment:
            return False
        self._place(len(self.of_row), parent, True)
        return True

    def go_on(self, count: int) -> None:
        """Add rows in the lane of the row before them, which `append` or `build` has just added."""
        segment = self.of_row[-1]
        self.of_row.extend(self.of_row[-1:] * count)
        self.segments[segment].end += count

    def lane(self, row: int) -> int:
        return self.segments[self.of_row[row]].lane

    def passing(self, start: int, stop: int) -> list[set[int]]:
        """For rows start..stop-1: the lanes with a line through or at that row."""
        window: list[set[int]] = [set() for _ in range(start, stop)]
        for segment in self.segments:
            if segment.end >= start and segment.start < stop:
                for row in range(max(segment.start, start), min(segment.end + 1, stop)):
                    window[row - start].add(segment.lane)
        return window
