"""Keys that are no text: NULL, bytes or numbers in the columns that LangGraph makes `TEXT NOT NULL`.

A table that was copied (`CREATE TABLE ... AS SELECT`, a data frame, an application's own columns) has lost these constraints, so
a key may be anything. SQL compares NULL with nothing and bytes with no text: a row that a list shows could not be asked for.
Such tables are read through a temporary view in which each key is the text of it, and NULL the empty one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from studio.model import Problem
from studio.stores.bounded import in_time
from studio.stores.layout import Layout, Table, quoted

KIND = "odd-key"
_SECONDS = 5.0


class OddKeys(Exception):
    """A row has a key that is no text, so its table is to be read `as_text`."""


def are_odd(connection: sqlite3.Connection, layout: Layout) -> bool:
    """Whether a key of one of the tables is no text; only looked for where the columns allow it.

    A table that is too large or too damaged to tell counts as one with text: what is read of it tells then.
    """
    for table in _tables(layout):
        if table.strict:
            continue
        try:
            with in_time(connection, _SECONDS):
                if connection.execute(f"SELECT 1 FROM {table.name} WHERE {_is_other(table)} LIMIT 1").fetchone() is not None:
                    return True
        except sqlite3.DatabaseError:
            continue
    return False


def as_text(connection: sqlite3.Connection, layout: Layout) -> Layout:
    """The same layout over views that live as long as the connection and are no part of the file."""
    writes = _view(connection, layout.writes) if layout.writes is not None else None
    return msgspec.structs.replace(layout, checkpoints=_view(connection, layout.checkpoints), writes=writes)


def problems(connection: sqlite3.Connection, layout: Layout) -> Iterator[Problem]:
    """One for each table with keys that are NULL or bytes; numbers are as good as their text."""
    for table in _tables(layout):
        where = " OR ".join(f"typeof({column}) IN ('null', 'blob')" for column in _columns(table))
        try:
            with in_time(connection, _SECONDS):
                number, first = connection.execute(f"SELECT count(*), min(rowid) FROM {table.name} WHERE {where}").fetchone()
        except sqlite3.DatabaseError:
            continue
        if number:
            have, are = ("row has", "it is") if number == 1 else ("rows have", "they are")
            yield Problem(
                KIND,
                f"table {table.plain_name}, row {first}" + (" and others" if number > 1 else ""),
                f"{number} {have} a thread id, namespace or checkpoint id that is NULL or bytes; {are} shown under its text, "
                "NULL as the empty one. LangGraph does not find such a row.",
            )


def _tables(layout: Layout) -> tuple[Table, ...]:
    return (layout.checkpoints,) if layout.writes is None else (layout.checkpoints, layout.writes)


def _columns(table: Table) -> tuple[str, ...]:
    return ("thread_id", table.ns, table.id) if table.has_ns else ("thread_id", table.id)


def _is_other(table: Table) -> str:
    return " OR ".join(f"typeof({column}) <> 'text'" for column in _columns(table))


def _view(connection: sqlite3.Connection, table: Table) -> Table:
    name = f"temp.{quoted(f'text keys of {table.plain_name}')}"
    keys = _columns(table)
    others = sorted(table.columns - set(keys))
    columns = [
        "rowid AS rowid",
        *(f"ifnull(CAST({key} AS TEXT), '') AS {key}" for key in keys),
        *(quoted(column) for column in others if column != "rowid"),
    ]
    connection.execute(f"CREATE TEMP VIEW IF NOT EXISTS {name} AS SELECT {', '.join(columns)} FROM main.{table.name}")
    return msgspec.structs.replace(table, name=name, index=None, may_repeat=True)
