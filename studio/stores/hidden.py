"""What a `-wal` at rest hides of the file beside it: it may belong to an older state of the file, or to another file.

A program that deletes does the same, and nothing in the two files tells which of them it was. So it is only told.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct, field

from studio.stores import rows
from studio.stores.layout import Layout

MOST_KEYS = 20_000
"""Checkpoints up to which each one is looked for. Of more, their number is compared, and what the first namespaces hold."""
MOST_GROUPS = 2_000

Key = tuple[object, ...]


class Held(Struct):
    """The addresses in a table, or of a large one how many and which last one each namespace has."""

    number: int
    keys: set[Key] = field(default_factory=set)
    groups: dict[Key, tuple[int, object]] = field(default_factory=dict)


def held(connection: sqlite3.Connection, layout: Layout) -> Held:
    """What the main file holds alone."""
    table = layout.checkpoints
    number = int(connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0])
    if number <= MOST_KEYS:
        return Held(number, keys=set(connection.execute(_each(layout))))
    if table.index is None:  # each question would go through the whole table
        return Held(number)
    query = f"SELECT thread_id, {table.ns}, count(*), max({table.id}) FROM {table.name} GROUP BY 1, 2 LIMIT {MOST_GROUPS}"
    return Held(number, groups={(thread, ns): (many, last) for thread, ns, many, last in connection.execute(query)})


def _each(layout: Layout) -> str:
    """The addresses as the rows say them: an index may be whole and lead to pages of the other file."""
    return f"SELECT {layout.checkpoints.keys} FROM {layout.checkpoints.name} NOT INDEXED"


def missing(connection: sqlite3.Connection, layout: Layout, alone: Held) -> tuple[int, bool]:
    """(how many of them are not there with the `-wal`, whether there may be more)."""
    table = layout.checkpoints
    if alone.keys:
        left = set(alone.keys)
        for key in connection.execute(_each(layout)):
            left.discard(key)
            if not left:
                break
        return len(left), False
    number = int(connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0])
    gone = max(0, alone.number - number)
    unlike = sum(_missing_of(connection, layout, group, *was) for group, was in alone.groups.items()) if table.index else 0
    return max(gone, unlike), True


def _missing_of(connection: sqlite3.Connection, layout: Layout, group: Key, many: int, last: object) -> int:
    """How many of a namespace's checkpoints are missing, as far as their number and the row of the last one tell."""
    table = layout.checkpoints
    is_last, bound = rows.compared(table.id, last, layout.utf16)
    where, values = rows.compared("thread_id", group[0], layout.utf16)
    if table.has_ns:
        in_ns, more = rows.compared(table.ns, group[1], layout.utf16)
        where, values = f"{where} AND {in_ns}", [*values, *more]
    query = f"SELECT count(*), max(CASE WHEN {is_last} THEN rowid END) FROM {table.name} WHERE {where}"
    now, rowid = connection.execute(query, [*bound, *values]).fetchone()
    row = connection.execute(f"SELECT {table.keys} FROM {table.name} WHERE rowid = ?", (rowid,)).fetchone()
    return max(many - int(now), 0 if row == (*group, last) else 1)
