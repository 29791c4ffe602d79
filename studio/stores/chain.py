"""The root checkpoints of a thread where each has the one before as its parent: the rule, whatever the thread's length.

SQLite proves it: it joins the ids of many rows, and their parents, to one text each, and but for one id these are the same text.
No row becomes an object. What cannot be proven so (branches, repeated ids, ids of several lengths) is no chain.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from heapq import heappop, heappush
from operator import lt, ne
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from studio.history.tally import NAMED, is_skewed
from studio.model import Address, Checkpoint
from studio.stores import rows
from studio.stores.headers import HEAD_BYTES, created_at, step_and_source
from studio.stores.layout import Layout
from studio.stores.sealed import is_sealed

if TYPE_CHECKING:
    from studio.stores.forked import Forked

PAGE = 10_000
"""Rows that are proven together."""


class Space(Struct, frozen=True):
    """A namespace of a thread: its rows, and the first and the last of them in the order in which they were stored."""

    ns: str
    count: int
    first_row: int
    last_row: int


class Chain:
    """The ids of a thread's root namespace from the first checkpoint to the last, each the only child of the one before."""

    __slots__ = ("_step", "_text", "_width", "orphan_of", "spaces")

    def __init__(self, text: str, width: int, orphan_of: str | None, spaces: tuple[Space, ...]) -> None:
        """`text` is the ids, all of `width` characters, with commas between them; they ascend."""
        self._text = text
        self._width = width
        self._step = width + 1
        self.orphan_of = orphan_of
        """The parent that the first one names, which is not there."""
        self.spaces = spaces
        """All namespaces of the thread, in the order in which they came."""

    def __len__(self) -> int:
        return (len(self._text) + 1) // self._step

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._text[index * self._step : index * self._step + self._width]

    def index(self, identity: str) -> int | None:
        """The place of an id; None where it is not among them."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self[middle] < identity:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self[low] == identity else None

    def above(self, place: int) -> int | None:
        """The place of the parent."""
        return place - 1 if place else None

    def below(self, place: int) -> list[int]:
        """The places of the children, in the order in which they were stored."""
        return [place + 1] if place + 1 < len(self) else []

    def has_kin(self, place: int) -> bool:
        """Whether other rows may have the same parent, or like this one none that is here."""
        return False

    def back(self, place: int, steps: int) -> int | None:
        """So many parents up."""
        return place - steps if steps <= place else None

    def way(self, first: int, last: int, most: int) -> list[int]:
        """The places from behind `first` to `last`; none where they are more than so many, or do not lead there."""
        return list(range(first + 1, last + 1)) if last - first <= most else []

    def holding(self, part: str, most: int = 2) -> list[int]:
        """The places of the first ids that hold a text."""
        found: list[int] = []
        at = self._text.find(part) if part and "," not in part else -1
        while at >= 0 and len(found) < most:
            found.append(at // self._step)
            at = self._text.find(part, (found[-1] + 1) * self._step)
        return found

    @property
    def last_row(self) -> int:
        """The largest row number of the thread when the chain was read."""
        return max(space.last_row for space in self.spaces)


class Survey(Struct, frozen=True):
    """What is odd in a chain, by the places of the first such rows that were stored."""

    blank: list[int]
    """Without step and source."""
    skewed: list[int]
    """Older than the row before."""
    encrypted: int


class Chained(Protocol):
    """A store that proves chains."""

    def chain(self, thread_id: str, longer_than: int) -> Chain | None:
        """The root checkpoints of a thread that has more than so many, where they are proven to be one plain chain."""

    def line(self, thread_id: str, longer_than: int) -> Chain | Forked | None:
        """The same of a thread with a few branches, too, where the order of its ids is proven to be that of its numbers."""

    def survey(self, thread_id: str, chain: Chain) -> Survey | None:
        """What a pass over the chain's headers shows; None where a damaged table cannot tell, or the chain is not as it was."""

    def headers_between(self, first: Address, last: Address) -> list[Checkpoint]:
        """The headers of a namespace from one id to another; none where a damaged table cannot tell."""

    def headers_at(self, rowids: Sequence[int]) -> list[Checkpoint]: ...

    def is_inside(self, thread_id: str, ref: str, *, in_part: bool = False) -> bool:
        """Whether the id of a subgraph's checkpoint in a thread is a text, or holds it."""


class Beginning(Struct, frozen=True):
    """The first root checkpoint of a thread by its id, and what all of them have in common."""

    where: str
    values: list[object]
    of_root: str
    spaces: tuple[Space, ...]
    total: int
    first: str
    above: str | None
    """The parent that the first one names."""


def begin(connection: sqlite3.Connection, layout: Layout, thread_id: str, longer_than: int) -> Beginning | None:
    """None for a thread of no more than `longer_than` checkpoints, and for ids that cannot be joined to one text."""
    table = layout.checkpoints
    if table.index is None or table.ns == "''" or layout.utf16:
        return None
    where, values = rows.compared("thread_id", thread_id, layout.utf16)
    counted = f"SELECT {table.ns}, count(*), min(rowid), max(rowid) FROM {table.name} WHERE {where} GROUP BY {table.ns}"
    found = connection.execute(counted, values).fetchall()
    if sum(row[1] for row in found) <= longer_than or not all(isinstance(row[0], str) for row in found):
        return None
    spaces = tuple(Space(*row) for row in sorted(found, key=lambda row: row[2]))
    total = next((space.count for space in spaces if not space.ns), 0)
    of_root = f"FROM {table.name} WHERE {where} AND {table.ns} = ''"
    columns = f"SELECT {table.id}, {layout.parent}, thread_id {of_root} ORDER BY {table.id} LIMIT 1"
    first, above, thread = connection.execute(columns, values).fetchone() or (None, None, None)
    if type(first) is not str or not first or not first.isascii() or "," in first or thread != thread_id:
        return None
    if above is not None and type(above) is not str:
        return None
    return Beginning(where, values, of_root, spaces, total, first, above)


def read(connection: sqlite3.Connection, layout: Layout, thread_id: str, longer_than: int) -> Chain | None:
    """The chain of a thread with more checkpoints than `longer_than`; None for a shorter one, and where nothing is proven."""
    at = begin(connection, layout, thread_id, longer_than)
    found = links(connection, layout, at, 0) if at is not None else None
    return found[0] if found is not None else None


def links(connection: sqlite3.Connection, layout: Layout, at: Beginning, most: int) -> tuple[Chain, dict[int, str]] | None:
    """All rows by id as if each had the one before as its parent, and by their places the parents of those that have another.

    None where more than `most` have, where the ids do not ascend, and where the first one's parent is among them: a loop.
    """
    width, texts, last, number = len(at.first), [at.first], at.first, 1
    others: dict[int, str] = {}
    page = _page(layout, at)
    while number < at.total:
        bound = [*at.values, *at.values, *at.values, last]
        count, mine, ids, parents = connection.execute(page, bound).fetchone()
        if not count or mine != count or not ascend(last, ids, count, width):
            return None
        if parents != f"{last},{ids}"[: len(ids)]:
            above, before = parents.split(","), [last, *ids.split(",")][:-1]
            if len(above) != count:
                return None
            others.update((number + place, above[place]) for place, other in enumerate(map(ne, above, before)) if other)
            if len(others) > most:
                return None
        texts.append(ids)
        last = ids[-width:]
        number += count
    if number != at.total:
        return None
    found = Chain(",".join(texts), width, at.above or None, at.spaces)
    return None if at.above and found.index(at.above) is not None else (found, others)


def _page(layout: Layout, at: Beginning) -> str:
    """The next rows as texts. Whether a row is of the thread is asked after its parent, and so of the row, not of the index."""
    table, parent = layout.checkpoints, layout.parent
    mine = f"CASE WHEN {parent} IS NULL THEN {at.where} ELSE {at.where} END"
    return (
        "SELECT count(*), sum(mine), group_concat(id), group_concat(parent) FROM"
        f" (SELECT ifnull({parent}, '') AS parent, {mine} AS mine, {table.id} AS id"
        f" {at.of_root} AND {table.id} > ? ORDER BY {table.id} LIMIT {PAGE})"
    )


def survey(connection: sqlite3.Connection, layout: Layout, thread_id: str, chain: Chain) -> Survey | None:
    """Goes through the headers in bounded memory; None where the rows are not those of the chain."""
    table = layout.checkpoints
    where, values = rows.compared("thread_id", thread_id, layout.utf16)
    columns = f"rowid, {table.id}, substr(checkpoint, 1, {HEAD_BYTES}), {table.or_null('metadata')}, {table.or_null('type')}"
    of_root = f"FROM {table.name} WHERE {where} AND {table.ns} = '' ORDER BY {table.id}"
    blank: list[tuple[int, int]] = []
    skewed: list[tuple[int, int]] = []
    sealed: dict[object, bool] = {}
    encrypted = 0
    before: str | None = None
    place = -1
    for place, (rowid, identity, head, metadata, tag) in enumerate(connection.execute(f"SELECT {columns} {of_root}", values)):
        if type(head) is not bytes or type(metadata) is not bytes:
            head, metadata = rows.bytes_of(head), rows.bytes_of(metadata)
        at = created_at(head, identity)
        if place and is_skewed(at, before):
            _keep_first(skewed, rowid, place)
        step, source = step_and_source(metadata)
        if step is None and not source:
            _keep_first(blank, rowid, place)
        if tag not in sealed:
            sealed[tag] = isinstance(tag, str) and is_sealed(tag)
        encrypted += sealed[tag]
        before = at
    if place + 1 != len(chain) or identity != chain[place]:
        return None
    return Survey([at for _, at in sorted(blank, reverse=True)], [at for _, at in sorted(skewed, reverse=True)], encrypted)


def _keep_first(kept: list[tuple[int, int]], rowid: int, place: int) -> None:
    heappush(kept, (-rowid, place))
    if len(kept) > NAMED:
        heappop(kept)


def ascend(last: str, ids: str, count: int, width: int) -> bool:
    """Whether a text is so many ids of one width, each larger than the one before: no comma stands in one, none comes twice."""
    found = ids.split(",")
    widths = {*map(len, found)}
    return len(found) == count and widths == {width} and ids.isascii() and all(map(lt, (last, *found), found))
