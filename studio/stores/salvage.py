"""Every readable row of a damaged table.

A query over a damaged table ends at its first bad page, so the rows behind that page would be hidden. Here the table is
walked from both ends, rows between are tried one by one, and the index tells which rows there should be.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf
from time import monotonic

from msgspec import Struct, field

from studio.stores.layout import Table
from studio.stores.rows import text_of

PROBE_BEYOND = 1000
"""How many row numbers are tried after the last one that is known to have existed."""
SECONDS = 3.0
"""How long a damaged table is walked row by row; what was found until then is shown."""
PROBE_MOST = 50_000
"""How many row numbers are tried one by one in a table; a damaged row number may be anything up to 2^63."""
FIRST = -(1 << 63)
_EMPTY = "\0\0"
"""In the place of a key that is NULL where the columns forbid it."""

Key = tuple[str, str, str]
"""(thread_id, checkpoint_ns, checkpoint_id)"""


class Salvaged(Struct):
    """The rows of one table that can be reached, by rowid in rising order."""

    keys: dict[int, Key] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    """Rowids that existed and cannot be read."""
    lost_keys: dict[int, Key] = field(default_factory=dict)
    """What the index still says about lost rows."""
    whole: bool = True
    """False where rows may be missing that neither table nor index tells of."""
    _by_key: dict[Key, list[int]] = field(default_factory=dict)
    _by_thread: dict[str, list[int]] = field(default_factory=dict)

    def named(self) -> Iterator[Key]:
        """The keys of all rows, those that cannot be read included: an index names the same."""
        yield from self.keys.values()
        yield from self.lost_keys.values()

    def of_thread(self, thread_id: str, after: int = 0) -> list[int]:
        self._index()
        return [rowid for rowid in self._by_thread.get(thread_id, ()) if rowid > after or not after]

    def at(self, key: Key) -> list[int]:
        self._index()
        return self._by_key.get(key, [])

    def _index(self) -> None:
        if self.keys and not self._by_key:
            by_key: dict[Key, list[int]] = {}
            for rowid, key in self.keys.items():
                by_key.setdefault(key, []).append(rowid)
                self._by_thread.setdefault(key[0], []).append(rowid)
            self._by_key = by_key


def salvage(connection: sqlite3.Connection, table: Table) -> Salvaged:
    """Walk a damaged table; never raises for damage. The connection's `text_factory` must take any bytes."""
    select = f"SELECT rowid, {table.keys} FROM {table.name}"
    indexed, index_whole = _by_index(connection, table, select)
    backward, _ = _walked(connection, table, f"{select} NOT INDEXED ORDER BY rowid DESC")
    last = max([*indexed, *backward], default=0)
    result = Salvaged()
    failed: list[int] = []
    known = sorted({*indexed, *backward})
    budget, until = PROBE_MOST, monotonic() + SECONDS
    position: int | None = FIRST
    while position is not None:
        forward = f"{select} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
        walked, ended = _walked(connection, table, forward, position)
        result.keys.update(walked)
        # row numbers of a damaged page can fall: to go on from a lower one would be to walk the same rows for ever
        position = max([position, *walked])
        if ended:
            break
        result.whole = index_whole
        start, stop = max(position + 1, 1), max(last, position + 1, 1) + PROBE_BEYOND
        tries = [
            *range(start, min(stop, start + budget)),
            *islice((rowid for rowid in known if rowid >= start + budget), PROBE_MOST),
        ]
        position = _probe(connection, table, f"{select} NOT INDEXED WHERE rowid = ?", tries, last, result, failed, until)
        budget -= (position if position is not None else start) - start if budget else 0
        budget = max(budget, PROBE_BEYOND)
    result.keys.update(backward)
    # the walk from the end lost the row beside the damage: `sqlite3` steps on before it hands a row out
    before = min(backward, default=None)
    beside = [rowid for rowid in known if rowid not in result.keys and (before is None or rowid < before)][-1:]
    _probe(connection, table, f"{select} NOT INDEXED WHERE rowid = ?", beside, last, result, failed, inf)
    empty, empty_entries = _emptied(result.keys, indexed), _emptied(indexed, result.keys)
    if empty_entries:
        result.whole = index_whole = False
        indexed = {rowid: key for rowid, key in indexed.items() if rowid not in empty_entries}
    result.keys = {rowid: result.keys[rowid] for rowid in sorted(result.keys.keys() - empty)}
    lost = set(indexed) if index_whole else {*indexed, *failed, *empty}
    result.lost = sorted(lost - result.keys.keys())
    result.lost_keys = {rowid: indexed[rowid] for rowid in result.lost if rowid in indexed}
    return result


def _emptied(keys: dict[int, Key], others: dict[int, Key]) -> set[int]:
    """Rows whose keys lie where a file was cut or a page was never written: zeros, read as NULL or as NULs that end a text.

    A text with NULs at its end is believed where the other source has it too.
    """
    return {
        rowid
        for rowid, key in keys.items()
        if _EMPTY in key or (key[2].endswith("\0") or key[1].endswith("\0") or key[0].endswith("\0")) and others.get(rowid) != key
    }


def ranges(numbers: Iterable[int]) -> str:
    """`1-4, 9`"""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _by_index(connection: sqlite3.Connection, table: Table, select: str) -> tuple[dict[int, Key], bool]:
    """What the index says (both ends, up to the first bad page of each), and whether it could be read whole."""
    if table.index is None:
        return {}, False
    source = f"{select} INDEXED BY {table.index}"
    found, _ = _walked(connection, table, source)
    if not _fails(connection, f"SELECT count(*) FROM ({source} WHERE rowid > ?)", FIRST):
        return found, True
    found.update(_walked(connection, table, f"{source} ORDER BY thread_id DESC, {table.ns} DESC, {table.id} DESC")[0])
    return found, False


def _probe(
    connection: sqlite3.Connection,
    table: Table,
    query: str,
    tries: Iterable[int],
    last: int,
    result: Salvaged,
    failed: list[int],
    until: float,
) -> int | None:
    """Try row after row; the first one that can be read again, or None."""
    for rowid in tries:
        if monotonic() > until:
            return None
        try:
            row = connection.execute(query, (rowid,)).fetchone()
        except sqlite3.DatabaseError:
            if rowid <= last:
                failed.append(rowid)
            continue
        if row is not None:
            result.keys[rowid] = _key(row, table)
            return rowid
    return None


def _walked(connection: sqlite3.Connection, table: Table, query: str, *values: int) -> tuple[dict[int, Key], bool]:
    """The rows that a query gives before an error, and whether it came to its end."""
    found: dict[int, Key] = {}
    try:
        for row in connection.execute(query, values):
            found[row[0]] = _key(row, table)
    except sqlite3.DatabaseError:
        return found, False
    return found, True


def _fails(connection: sqlite3.Connection, query: str, value: int) -> bool:
    try:
        connection.execute(query, (value,)).fetchone()
    except sqlite3.DatabaseError:
        return True
    return False


def _key(row: tuple[object, ...], table: Table) -> Key:
    if table.strict and None in row:
        return _EMPTY, _EMPTY, _EMPTY
    return text_of(row[1]), text_of(row[2]), text_of(row[3])
