"""Every readable row of a damaged table.

A query over a damaged table ends at its first bad page, so the rows behind that page would be hidden. Here the table is
walked from both ends, rows between are tried one by one, and the index tells which rows there should be.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from studio.stores.layout import Table

PROBE_BEYOND = 1000
"""How many row numbers are tried after the last one that is known to have existed."""

Key = tuple[str, str, str]
"""(thread_id, checkpoint_ns, checkpoint_id)"""


@dataclass(slots=True)
class Salvaged:
    """The rows of one table that can be reached, by rowid."""

    keys: dict[int, Key] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    """Rowids that existed and cannot be read."""
    lost_keys: dict[int, Key] = field(default_factory=dict)
    """What the index still says about lost rows."""

    def of_thread(self, thread_id: str, after: int = 0) -> list[int]:
        return [rowid for rowid, key in self.keys.items() if key[0] == thread_id and rowid > after]

    def by_key(self) -> dict[Key, list[int]]:
        found: dict[Key, list[int]] = {}
        for rowid, key in self.keys.items():
            found.setdefault(key, []).append(rowid)
        return found


def salvage(connection: sqlite3.Connection, table: Table) -> Salvaged:
    """Walk a damaged table; never raises for damage. Text that is not UTF-8 must be handled by the connection's `text_factory`."""
    columns = f"rowid, {table.keys}"
    indexed: dict[int, Key] = {}
    index_whole = False
    if table.index is not None:
        source = f"FROM {table.name} INDEXED BY {table.index}"
        for order in ("", f"ORDER BY thread_id DESC, {table.ns} DESC, {table.id} DESC"):
            indexed.update(_until_error(connection, f"SELECT {columns} {source} {order}"))
        index_whole = not _fails(connection, f"SELECT count(*) {source} WHERE rowid > ?", -(1 << 63))
    result = Salvaged()
    backward = dict(_until_error(connection, f"SELECT {columns} FROM {table.name} NOT INDEXED ORDER BY rowid DESC"))
    last = max([*indexed, *backward], default=0)
    position = -(1 << 63)
    while True:
        reached = position
        for rowid, key in _until_error(connection, f"SELECT {columns} FROM {table.name} NOT INDEXED WHERE rowid > ? ORDER BY rowid", position):
            result.keys[rowid] = key
            reached = rowid
        if not _fails(connection, f"SELECT {columns} FROM {table.name} NOT INDEXED WHERE rowid > ? ORDER BY rowid", reached):
            break
        start = max(reached + 1, 1)
        found = None
        for rowid in range(start, max(last, start) + PROBE_BEYOND):
            row = _one(connection, f"SELECT {columns} FROM {table.name} NOT INDEXED WHERE rowid = ?", rowid)
            if isinstance(row, tuple):
                result.keys[rowid] = _key(row[1:])
                found = rowid
                break
            if row is False and rowid <= last:
                result.lost.append(rowid)
        if found is None:
            break
        position = found
    result.keys.update(backward)
    known = set(result.keys)
    lost = set(indexed) if index_whole else set(indexed).union(result.lost)
    result.lost = sorted(lost - known)
    result.lost_keys = {rowid: indexed[rowid] for rowid in result.lost if rowid in indexed}
    result.keys = dict(sorted(result.keys.items()))
    return result


def ranges(numbers: Iterable[int]) -> str:
    """`1-4, 9`"""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def _until_error(connection: sqlite3.Connection, query: str, *values: int) -> Iterator[tuple[int, Key]]:
    try:
        for row in connection.execute(query, values):
            yield row[0], _key(row[1:])
    except sqlite3.DatabaseError:
        return


def _fails(connection: sqlite3.Connection, query: str, value: int) -> bool:
    try:
        connection.execute(query, (value,)).fetchone()
    except sqlite3.DatabaseError:
        return True
    return False


def _one(connection: sqlite3.Connection, query: str, rowid: int) -> tuple[object, ...] | bool:
    """The row; True where there is none, False where it cannot be read."""
    try:
        row: tuple[object, ...] | None = connection.execute(query, (rowid,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return row if row is not None else True


def _key(row: tuple[object, ...]) -> Key:
    thread, ns, identity = (part if isinstance(part, str) else text_of(part) for part in row)
    return thread, ns, identity


def text_of(value: object) -> str:
    """An id of any stored type as text: bytes that are not UTF-8 become lone surrogates, NULL becomes empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)
