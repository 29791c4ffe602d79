"""One look at a file: a connection with what was learned about its layout and its damage, and the few ways to ask it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, TypeVar

from studio.model import Address
from studio.stores import rows
from studio.stores.damage import Damage
from studio.stores.layout import Layout, Table
from studio.stores.text_keys import OddKeys

T = TypeVar("T")

PAGE_BYTES = 8 << 20
"""Values that a page of a scan holds; one look of some milliseconds reads them."""

_TOGETHER, _AT_ONCE = 8, 32
"""Addresses from which on they are looked up together, and at most in one statement: preparing a long one costs more than
running a short one again."""


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

    def _odd(self, table: Table, *keys: object) -> Exception:
        """To raise where a key is no text: damage where the columns forbid it, else the table is to be read another way."""
        if table.strict and None in keys:
            return self._damage.misled(table, "Its index has entries without a key; it is read without.")
        return OddKeys()

    def _row(self, table: Table, columns: str, rowid: int) -> rows.Row | None:
        return self._damage.row(self._connection, table, columns, rowid)

    def _in_thread(self, table: Table, columns: str, thread_id: str, after: int = 0) -> Iterator[rows.Row]:
        where, values = rows.in_thread(thread_id, after, self._layout.utf16)
        for row in self._connection.execute(f"SELECT {columns}, thread_id FROM {table.name} {where}", values):
            if row[-1] != thread_id and rows.text_of(row[-1]) != thread_id:
                raise self._damage.misled(table)
            yield row[:-1]

    def _summed(self, table: Table, aggregate: str, thread_id: str) -> int:
        """An aggregate over the rows of one thread, which is never NULL."""
        where, values = rows.in_thread(thread_id, 0, self._layout.utf16)
        query = f"SELECT {aggregate}, min(thread_id), max(thread_id) FROM {table.name} {where}"
        found, *threads = self._connection.execute(query, values).fetchone()
        if any(thread is not None and rows.text_of(thread) != thread_id for thread in threads):
            raise self._damage.misled(table)
        return int(found)

    def _jumps(self, table: Table, thread_id: str) -> Iterator[str]:
        """The named namespaces of a thread in their order, by jumps from one to the next in the index, whatever its length.

        What the index says of each is looked up in the row that it leads to: an entry is found by what it says itself.
        """
        where, values = rows.compared("thread_id", thread_id, self._layout.utf16)
        query = f"SELECT min({table.ns}), rowid FROM {table.name} WHERE {where}"
        led_to = f"SELECT thread_id, {table.ns} FROM {table.name} WHERE rowid = ?"
        last, rowid = self._connection.execute(query, values).fetchone()
        while last is not None:
            row = self._connection.execute(led_to, (rowid,)).fetchone()
            if row is None or [rows.text_of(key) for key in row] != [thread_id, rows.text_of(last)]:
                raise self._damage.misled(table)
            yield rows.text_of(last)
            after, more = rows.compared(table.ns, last, self._layout.utf16, ">")
            last, rowid = self._connection.execute(f"{query} AND {after}", [*values, *more]).fetchone()

    def _at(self, table: Table, columns: str, address: Address) -> Iterator[rows.Row]:
        key = (address.thread_id, address.checkpoint_ns, address.checkpoint_id)
        values: Sequence[object] = key
        if is_plain(address):
            query = _select_at(columns, table.name, table.ns, table.id)
        else:
            where, values = rows.at(table, address, self._layout.utf16)
            query = f"SELECT {columns}, {table.keys} FROM {table.name} {where}"
        for row in self._connection.execute(query, values):
            if row[-3:] != key and tuple(map(rows.text_of, row[-3:])) != key:
                raise self._damage.misled(table)
            yield row[:-3]

    def _at_each(self, table: Table, columns: str, addresses: Sequence[Address]) -> dict[Address, list[rows.Row]] | None:
        """Rows under the addresses that have any, by few statements; None where they are to be asked for one by one: few of them,
        ids that are not bound as they are, a damaged table."""
        if len(addresses) < _TOGETHER or not all(map(is_plain, addresses)):
            return None
        return self._damage.either(table, lambda: self._looked_up(table, columns, addresses), lambda: None)

    def _looked_up(self, table: Table, columns: str, addresses: Sequence[Address]) -> dict[Address, list[rows.Row]]:
        found: dict[Address, list[rows.Row]] = {}
        for start in range(0, len(addresses), _AT_ONCE):
            keys = [(one.thread_id, one.checkpoint_ns, one.checkpoint_id) for one in addresses[start : start + _AT_ONCE]]
            query = _select_at_each(columns, table.name, table.ns, table.id, len(keys))
            for row in self._connection.execute(query, [part for key in keys for part in key]):
                number = row[-1]
                if row[-4:-1] != keys[number]:
                    raise self._damage.misled(table)
                found.setdefault(addresses[start + number], []).append(row[:-4])
        return found


def is_plain(address: Address) -> bool:
    """Whether an address is bound as it is, and comes back as the same text."""
    return f"{address.thread_id}{address.checkpoint_ns}{address.checkpoint_id}".isascii()


@cache
def _select_at(columns: str, table: str, ns: str, identity: str) -> str:
    """The look-up of one plain address; asked for each thread of a list, so its text is put together once."""
    keys = f"thread_id, {ns}, {identity}"
    return f"SELECT {columns}, {keys} FROM {table} WHERE thread_id = ? AND {ns} = ? AND {identity} = ?"


@lru_cache(maxsize=16)
def _select_at_each(columns: str, table: str, ns: str, identity: str, number: int) -> str:
    """The look-up of some plain addresses: SQLite goes from each of the keys into the index. The last column counts the keys."""
    keys = f"thread_id, {ns}, {identity}"
    wanted = ", ".join(f"(?, ?, ?, {at})" for at in range(number))
    return (
        f"WITH wanted(k1, k2, k3, k) AS (VALUES {wanted}) SELECT {columns}, {keys}, k FROM wanted CROSS JOIN {table} "
        f"WHERE thread_id = k1 AND {ns} = k2 AND {identity} = k3"
    )


def cursor(entry: tuple[int, Any]) -> int:
    return entry[0]
