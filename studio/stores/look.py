"""One look at a file: a connection with what was learned about its layout and its damage, and the few ways to ask it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from studio.model import Address
from studio.stores import rows
from studio.stores.damage import Damage
from studio.stores.layout import Layout, Table

T = TypeVar("T")

PAGE_BYTES = 8 << 20
"""Values that a page of a scan holds; one look of some milliseconds reads them."""


class Look:
    """Made anew for each look; what was learned about damage outlives it."""

    def __init__(self, connection: sqlite3.Connection, layout: Layout, damage: Damage) -> None:
        self._connection = connection
        self._layout = layout
        self._damage = damage
        self._table = layout.checkpoints

    def apart(self, read: Callable[[sqlite3.Connection, Layout], T]) -> T:
        """Run a reading of other tables on this connection. Text comes as whatever bytes it has."""
        factory, self._connection.text_factory = self._connection.text_factory, rows.lenient
        try:
            return read(self._connection, self._layout)
        finally:
            self._connection.text_factory = factory

    def _row(self, table: Table, columns: str, rowid: int) -> rows.Row | None:
        return self._damage.row(self._connection, table, columns, rowid)

    def _in_thread(self, table: Table, columns: str, thread_id: str, after: int = 0) -> Iterator[rows.Row]:
        where, values = rows.in_thread(thread_id, after, self._layout.utf16)
        for row in self._connection.execute(f"SELECT {columns}, thread_id FROM {table.name} {where}", values):
            if row[-1] != thread_id and rows.text_of(row[-1]) != thread_id:
                raise self._damage.misled(table)
            yield row[:-1]

    def _at(self, table: Table, columns: str, address: Address) -> Iterator[rows.Row]:
        where, values = rows.at(table, address, self._layout.utf16)
        key = (address.thread_id, address.checkpoint_ns, address.checkpoint_id)
        for row in self._connection.execute(f"SELECT {columns}, {table.keys} FROM {table.name} {where}", values):
            if row[-3:] != key and tuple(map(rows.text_of, row[-3:])) != key:
                raise self._damage.misled(table)
            yield row[:-3]


def cursor(entry: tuple[int, Any]) -> int:
    return entry[0]
