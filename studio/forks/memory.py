"""Rows for a database that lives in the child's memory alone: what a preview works on, so that no file is written."""

from __future__ import annotations

import base64
import contextlib
import sqlite3
from collections.abc import Iterable
from typing import Any

from studio.errors import PatchError
from studio.forks import rows
from studio.forks.rows import NewRow, NewWrite


def tables(checkpoints_sql: str, writes_sql: str, carried: Iterable[NewRow], moved: Iterable[NewWrite]) -> dict[str, Any]:
    """Tables of these layouts that hold these rows, as JSON; bytes are `{"b64": ...}`."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(rows.create_as(checkpoints_sql, "checkpoints"))
        connection.execute(rows.create_as(writes_sql, "writes"))
        found = rows.find_tables(connection)
        if found is None:
            raise PatchError("This file's tables cannot be made again in memory.", "Fork without a preview.", "no-tables")
        rows.insert(connection, found, carried, moved, carried=True)
        return {"tables": [_table(connection, name, sql) for name, sql in _made(connection)]}


def _made(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()


def _table(connection: sqlite3.Connection, name: str, sql: str) -> dict[str, Any]:
    found = connection.execute(f"SELECT * FROM {rows.quote(name)}")
    columns = [column[0] for column in found.description]
    return {"name": name, "sql": sql, "columns": columns, "rows": [[_cell(cell) for cell in row] for row in found]}


def _cell(cell: object) -> object:
    return {"b64": base64.b64encode(cell).decode("ascii")} if isinstance(cell, bytes) else cell
