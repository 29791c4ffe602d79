"""The root checkpoints of a long thread that has a few branches, in the order of their numbers, without its tree.

Numbers are given parents first, ties by time and id. Where the times ascend with the ids, and no checkpoint has a smaller id than
its parent, that is the order of the ids. SQLite joins ids, parents and times of many rows to one text each; the rows whose parent
is not the one before, few in most threads, are all that is remembered beside the ids.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import repeat
from operator import le

from studio.stores import chain as chains
from studio.stores.chain import Beginning, Chain
from studio.stores.layout import Layout

_MOST = 2_000
"""Rows that do not follow the one before; a thread with more of them is left to its tree."""
_TIME, _UTC = 32, "+00:00"
"""Characters of a time as LangGraph writes it, and how it ends."""


class Forked(Chain):
    """The ids of a thread's root namespace in the order of their numbers, and where each hangs."""

    __slots__ = ("_above", "_below")

    def __init__(self, plain: Chain, above: dict[int, int | None]) -> None:
        """`above`: the place of the parent of each row that does not follow the one before; None where it has none here."""
        super().__init__(plain._text, plain._width, None, plain.spaces)
        self._above = above
        self._below: dict[int, list[int]] = {}
        for place, parent in above.items():
            if parent is not None:
                self._below.setdefault(parent, super().below(parent) if parent + 1 not in above else []).append(place)

    def put_in_order(self, stored_as: Callable[[str], int]) -> None:
        """`stored_as` gives the row number of an id."""
        for places in self._below.values():
            if len(places) > 1:
                places.sort(key=lambda place: stored_as(self[place]))

    def above(self, place: int) -> int | None:
        return self._above[place] if place in self._above else place - 1

    def below(self, place: int) -> list[int]:
        known = self._below.get(place)
        if known is not None:
            return known
        return super().below(place) if place + 1 not in self._above else []

    def has_kin(self, place: int) -> bool:
        above = self.above(place)
        return above is None or len(self.below(above)) > 1

    def back(self, place: int, steps: int) -> int | None:
        at: int | None = place
        while steps and at is not None:
            at, steps = self.above(at), steps - 1
        return at

    def way(self, first: int, last: int, most: int) -> list[int]:
        found: list[int] = []
        at: int | None = last
        while at is not None and at > first and len(found) < most:
            found.append(at)
            at = self.above(at)
        return found[::-1] if at == first else []


def read(connection: sqlite3.Connection, layout: Layout, thread_id: str, longer_than: int) -> Chain | Forked | None:
    """`chain.read`, which also takes threads with a few branches, several beginnings, or parents that are not there."""
    at = chains.begin(connection, layout, thread_id, longer_than)
    found = chains.links(connection, layout, at, _MOST) if at is not None else None
    if at is None or found is None:
        return None
    plain, named = found
    if not named:
        return plain
    places = {place: plain.index(parent) if parent else None for place, parent in named.items()}
    if any(parent is not None and parent >= place for place, parent in places.items()):
        return None
    if not _rise(_times(connection, layout, at), len(plain)):
        return None
    forked = Forked(plain, {0: None, **places})
    rowid = f"SELECT rowid {at.of_root} AND {layout.checkpoints.id} = ?"
    forked.put_in_order(lambda identity: int(connection.execute(rowid, [*at.values, identity]).fetchone()[0]))
    return forked


def _time() -> str:
    """A checkpoint's own time where it stands as `headers.created_at` reads it without a search; else nothing, which is found by
    the length of what is joined."""
    is_there = "substr(checkpoint, 2, 2) = x'a176' AND substr(checkpoint, 5, 5) = x'a27473d920'"
    return f"CASE WHEN {is_there} THEN CAST(substr(checkpoint, 10, {_TIME}) AS TEXT) END"


def _times(connection: sqlite3.Connection, layout: Layout, at: Beginning) -> list[str | None]:
    """The times of all rows by id, many in one text. A pass of its own, for threads with branches alone: a time stands at the
    beginning of a record, and SQLite reads all of a record to get there."""
    of_one = f"SELECT {_time()} AS at, {layout.checkpoints.id} AS id {at.of_root}"
    rows = f"{of_one} AND {layout.checkpoints.id} > ? ORDER BY id LIMIT {chains.PAGE}"
    page = f"SELECT count(*), group_concat(at), max(id) FROM ({rows})"
    found: list[str | None] = []
    last = ""
    while True:
        count, moments, last = connection.execute(page, [*at.values, last]).fetchone()
        if not count:
            return found
        found.append(moments)


def _rise(texts: Sequence[str | None], number: int) -> bool:
    """Whether so many times stand in some texts, none before the one in front of it. Equal offsets compare as text."""
    last, count = "", 0
    for text in texts:
        times = (text or "").split(",")
        count += len(times)
        if {*map(len, times)} != {_TIME} or not all(map(str.endswith, times, repeat(_UTC))) or not _are_times(times):
            return False
        if not all(map(le, [last, *times], times)):
            return False
        last = times[-1]
    return count == number


def _are_times(texts: Iterable[str]) -> bool:
    try:
        return all(map(datetime.fromisoformat, texts))
    except ValueError:
        return False
