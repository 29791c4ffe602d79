"""Questions to tables of any size and any condition: each ends after so many rows or so much time."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from time import monotonic

from studio.stores.layout import quoted

MOST_COUNTED = 10_000
SECONDS = 2.0
_STEPS = 20_000
"""Instructions of SQLite's machine between two looks at the clock: some tenths of a millisecond."""


@contextlib.contextmanager
def in_time(connection: sqlite3.Connection, seconds: float = SECONDS) -> Iterator[None]:
    """Every statement inside ends with `sqlite3.OperationalError` (interrupted) once the time is over."""
    until = monotonic() + seconds
    connection.set_progress_handler(lambda: monotonic() > until, _STEPS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def counted(connection: sqlite3.Connection, table: str, most: int = MOST_COUNTED) -> tuple[int | None, bool]:
    """(rows up to `most`, whether there are more); None where that cannot be read."""
    try:
        with in_time(connection, 0.25):
            query = f"SELECT count(*) FROM (SELECT 1 FROM {quoted(table)} LIMIT ?)"
            number = int(connection.execute(query, (most + 1,)).fetchone()[0])
    except sqlite3.DatabaseError:
        return None, False
    return min(number, most), number > most
