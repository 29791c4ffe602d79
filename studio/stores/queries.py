"""Reading one connection: each method answers by one query, or row by row where the table is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from studio.model import Address, Checkpoint, RawCheckpoint, WriteRow
from studio.stores import rows
from studio.stores.base import ThreadKeys
from studio.stores.damage import Damage
from studio.stores.headers import HEAD_BYTES, created_at, is_uuid6
from studio.stores.layout import Layout, Table
from studio.stores.outline import Outline

_MOST_JUMPS = 64
"""Namespaces that are looked for one by one; where there are more, a thread is gone through."""
_MOST_NAMESPACES = 5_000
T = TypeVar("T")

PAGE_BYTES = 8 << 20
"""Blobs that a page of a scan holds; one look of some milliseconds reads them."""
ONE_BY_ONE = 32
"""Checkpoints whose writes are looked up one by one; more of one namespace are read as a range."""


class Queries:
    """The queries of one look at a file. Made anew for each look; what was learned about damage outlives it."""

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

    # ---- lists

    def threads(self, last: object, size: int) -> tuple[list[ThreadKeys], object]:
        """Up to `size` threads after the raw id `last` (None: from the first), and the raw id to go on from (None: the end)."""
        return self._damage.either(
            self._table,
            lambda: self._threads_by_index(last, size),
            lambda: _threads_of(self._damage.rows_of(self._connection, self._table).keys.values(), last, size),
        )

    def _threads_by_index(self, last: object, size: int) -> tuple[list[ThreadKeys], object]:
        table = self._table
        start, values = ("", []) if last is None else rows.compared("WHERE thread_id", last, self._layout.utf16, ">")
        group = "thread_id" if table.ns == "''" else f"thread_id, {table.ns}"
        columns = f"thread_id, {table.ns}, count(*), max({table.id})"
        page: list[ThreadKeys] = []
        current: object = None
        namespaces: dict[str, tuple[int, str]] = {}
        query = f"SELECT {columns} FROM {table.name} {start} GROUP BY {group} ORDER BY {group}"
        for thread, ns, number, latest in self._connection.execute(query, values):
            if _falls(current if namespaces else last, thread):
                raise self._damage.misled(table)
            if namespaces and thread != current:
                page.append(_thread_keys(rows.text_of(current), namespaces))
                namespaces = {}
                if len(page) == size:
                    return page, current
            current = thread
            namespaces[rows.text_of(ns)] = (number, rows.text_of(latest))
        if namespaces:
            page.append(_thread_keys(rows.text_of(current), namespaces))
        return page, None

    def namespaces(self, thread_id: str) -> tuple[str, ...]:
        def by_query() -> set[str]:
            table = self._table
            found = self._jumped(table, thread_id) if table.index is not None and table.ns != "''" else None
            if found is not None:
                return found
            return {rows.text_of(ns) for (ns,) in self._in_thread(table, f"DISTINCT {table.ns}", thread_id)}

        def row_by_row() -> set[str]:
            known = self._damage.rows_of(self._connection, self._table).keys
            return {ns for thread, ns, _ in known.values() if thread == thread_id}

        return tuple(sorted(self._damage.either(self._table, by_query, row_by_row)))

    def _jumped(self, table: Table, thread_id: str) -> set[str] | None:
        """The namespaces of a thread by jumps in the index, whatever its length; None where they are too many for that."""
        where, values = rows.compared("thread_id", thread_id, self._layout.utf16)
        query = f"SELECT min({table.ns}), thread_id FROM {table.name} WHERE {where}"
        nameless = f"SELECT 1 FROM {table.name} WHERE {where} AND {table.ns} IS NULL LIMIT 1"
        found = {""} if self._connection.execute(nameless, values).fetchone() else set()
        last, thread = self._connection.execute(query, values).fetchone()
        while last is not None:
            if rows.text_of(thread) != thread_id:
                raise self._damage.misled(table)
            found.add(rows.text_of(last))
            if len(found) > _MOST_JUMPS:
                return None
            after, more = rows.compared(table.ns, last, self._layout.utf16, ">")
            last, thread = self._connection.execute(f"{query} AND {after}", [*values, *more]).fetchone()
        return found

    def written_namespaces(self, thread_id: str) -> tuple[str, ...]:
        """The namespaces that rows of `writes` name, sorted; jumps from one to the next in the index."""
        table = self._layout.writes
        if table is None or table.ns == "''":
            return ()
        where, values = rows.compared("thread_id", thread_id, self._layout.utf16)
        query = f"SELECT min({table.ns}) FROM {table.name} WHERE {where}"

        def by_query() -> tuple[str, ...]:
            found: list[str] = []
            (last,) = self._connection.execute(query, values).fetchone()
            while last is not None and len(found) < _MOST_NAMESPACES:
                found.append(rows.text_of(last))
                after, more = rows.compared(table.ns, last, self._layout.utf16, ">")
                (last,) = self._connection.execute(f"{query} AND {after}", [*values, *more]).fetchone()
            return tuple(found)

        def row_by_row() -> tuple[str, ...]:
            known = self._damage.rows_of(self._connection, table).keys
            return tuple(sorted({ns for thread, ns, _ in known.values() if thread == thread_id})[:_MOST_NAMESPACES])

        return self._damage.either(table, by_query, row_by_row)

    def outline(self, thread_id: str) -> Outline | None:
        """None where ids do not tell which checkpoints are the first and the last, and where the table is damaged."""
        return self._damage.either(self._table, lambda: self._outline(thread_id), lambda: None)

    def _outline(self, thread_id: str) -> Outline | None:
        table = self._table
        size = f"{rows.SIZE} + ifnull(length({table.or_null('metadata')}), 0)"
        sealed = f"instr({table.or_null('type')}, '+') > 0"
        where, values = rows.in_thread(thread_id, 0, self._layout.utf16)
        query = f"SELECT {table.ns}, {table.id}, {self._layout.parent}, {size}, {sealed}, thread_id FROM {table.name} {where}"
        links: list[tuple[str, str, str | None]] = []
        total = encrypted = 0
        for ns, identity, parent, row_size, is_closed, thread in self._connection.execute(query, values):
            if thread != thread_id and rows.text_of(thread) != thread_id:
                raise self._damage.misled(table)
            if type(ns) is not str or type(identity) is not str or not is_uuid6(identity):
                return None
            links.append((ns, identity, parent))
            total += row_size or 0
            encrypted += is_closed or 0
        if not links:
            return None
        ends = [min(links, key=_link_id), max(links, key=_link_id)]
        first_at, last_at = self._times_of([Address(thread_id, ns, identity) for ns, identity, _ in ends])
        return Outline(tuple(links), total, first_at, last_at, encrypted)

    def _times_of(self, ends: list[Address]) -> list[str | None]:
        """When two checkpoints of a thread were made, in one query."""
        table = self._table
        found = [rows.at(table, address, self._layout.utf16) for address in ends]
        either = " OR ".join(f"({where.removeprefix('WHERE ')})" for where, _ in found)
        columns = f"{table.ns}, {table.id}, substr(checkpoint, 1, {HEAD_BYTES})"
        bound = [value for _, values in found for value in values]
        read = self._connection.execute(f"SELECT {columns} FROM {table.name} WHERE {either}", bound)
        heads = {(rows.text_of(ns), rows.text_of(identity)): rows.bytes_of(head) for ns, identity, head in read}
        # an index may promise too much: then the id alone tells
        return [created_at(heads.get((at.checkpoint_ns, at.checkpoint_id), b""), at.checkpoint_id) for at in ends]

    def checkpoints(self, thread_id: str, after: int) -> list[tuple[int, Checkpoint]]:
        def by_query() -> list[tuple[int, Checkpoint]]:
            where, values = rows.in_thread(thread_id, after, self._layout.utf16)
            query = f"SELECT {rows.header_columns(self._layout)} FROM {self._table.name} {where}"
            found = rows.headers(self._connection.execute(query, values), thread_id)
            if found is None:
                raise self._damage.misled(self._table)
            found.sort(key=cursor)
            return found

        def row_by_row() -> list[tuple[int, Checkpoint]]:
            rowids = self._damage.rows_of(self._connection, self._table).of_thread(thread_id, after)
            return [rows.header(row) for rowid in rowids if (row := self._header_row(rowid)) is not None]

        return self._damage.either(self._table, by_query, row_by_row)

    def write_headers(self, thread_id: str, after: int = 0) -> list[tuple[int, WriteRow]]:
        table = self._layout.writes
        if table is None:
            return []
        columns = rows.write_columns(table)
        same: dict[Any, Any] = {}

        def by_query() -> list[tuple[int, WriteRow]]:
            return [rows.write(row, same) for row in self._in_thread(table, columns, thread_id, after)]

        def row_by_row() -> list[tuple[int, WriteRow]]:
            rowids = self._damage.rows_of(self._connection, table).of_thread(thread_id, after)
            return [rows.write(row, same) for rowid in rowids if (row := self._row(table, columns, rowid)) is not None]

        return sorted(self._damage.either(table, by_query, row_by_row), key=cursor)

    def writes_end(self, thread_id: str) -> int:
        """The row of the thread's last write, 0 without any; read from the index."""
        table = self._layout.writes
        if table is None:
            return 0

        def by_query() -> int:
            where, values = rows.in_thread(thread_id, 0, self._layout.utf16)
            return int(self._connection.execute(f"SELECT ifnull(max(rowid), 0) FROM {table.name} {where}", values).fetchone()[0])

        def row_by_row() -> int:
            return max(self._damage.rows_of(self._connection, table).of_thread(thread_id, 0), default=0)

        return self._damage.either(table, by_query, row_by_row)

    def task_keys(self, thread_id: str) -> list[tuple[str, str, str]]:
        """(namespace, checkpoint id, task id) of every task that wrote; where there is an index, from that alone."""
        table = self._layout.writes
        if table is None:
            return []
        columns = f"{table.ns}, {table.id}, task_id"

        def by_query() -> list[tuple[str, str, str]]:
            found = self._in_thread(table, f"DISTINCT {columns}", thread_id)
            return [(rows.text_of(ns), rows.text_of(identity), rows.text_of(task)) for ns, identity, task in found]

        def row_by_row() -> list[tuple[str, str, str]]:
            rowids = self._damage.rows_of(self._connection, table).of_thread(thread_id, 0)
            found = (self._row(table, columns, rowid) for rowid in rowids)
            return [(rows.text_of(row[0]), rows.text_of(row[1]), rows.text_of(row[2])) for row in found if row is not None]

        return self._damage.either(table, by_query, row_by_row)

    def write_headers_under(self, addresses: Sequence[Address]) -> dict[Address, list[WriteRow]]:
        """Rows without values under some checkpoints, as they were stored; many of one namespace are read in one range."""
        table = self._layout.writes
        if table is None:
            return {}
        columns = rows.write_columns(table)
        same: dict[Any, Any] = {}

        def by_query() -> dict[Address, list[tuple[int, WriteRow]]]:
            spaces: dict[tuple[str, str], list[Address]] = {}
            for address in addresses:
                spaces.setdefault((address.thread_id, address.checkpoint_ns), []).append(address)
            read: dict[Address, list[tuple[int, WriteRow]]] = {}
            for inside in spaces.values():
                if len(inside) < ONE_BY_ONE or not all(address.checkpoint_id.isascii() for address in inside):
                    for address in inside:
                        read[address] = [rows.write(row, same) for row in self._at(table, columns, address)]
                else:
                    self._in_range(table, columns, inside, read, same)
            return read

        def row_by_row() -> dict[Address, list[tuple[int, WriteRow]]]:
            read = {}
            for address in addresses:
                rowids = self._damage.rowids_at(self._connection, table, address)
                under = (self._row(table, columns, rowid) for rowid in rowids)
                read[address] = [rows.write(row, same) for row in under if row is not None]
            return read

        found = self._damage.either(table, by_query, row_by_row)
        return {address: [row for _, row in sorted(under, key=cursor)] for address, under in found.items()}

    def _in_range(
        self,
        table: Table,
        columns: str,
        inside: Sequence[Address],
        read: dict[Address, list[tuple[int, WriteRow]]],
        same: dict[Any, Any],
    ) -> None:
        """Rows under checkpoints of one namespace, whose ids lie close together when they are of one branch."""
        thread, ns = inside[0].thread_id, inside[0].checkpoint_ns
        by_id = {address.checkpoint_id: read.setdefault(address, []) for address in inside}
        first, last = min(by_id), max(by_id)
        where, values = rows.at(table, Address(thread, ns, first), self._layout.utf16, ">=")
        query = f"SELECT {columns}, thread_id FROM {table.name} {where} AND {table.id} <= ?"
        for row in self._connection.execute(query, [*values, last]):
            if rows.text_of(row[-1]) != thread or rows.text_of(row[1]) != ns:
                raise self._damage.misled(table)
            under = by_id.get(rows.text_of(row[2]))
            if under is not None:
                under.append(rows.write(row[:-1], same))

    def rowids(self, thread_id: str) -> list[int]:
        """Checkpoints of a thread, oldest first."""
        return self._damage.either(
            self._table,
            lambda: sorted(rowid for (rowid,) in self._in_thread(self._table, "rowid", thread_id)),
            lambda: self._damage.rows_of(self._connection, self._table).of_thread(thread_id),
        )

    def census(self, thread_id: str, upto: int, writes_upto: int) -> tuple[int, object] | None:
        """(checkpoints up to a row, (id of the one at it, number of writes up to a row of theirs)); None for damaged tables."""
        writes = self._layout.writes

        def count_writes() -> int:
            if writes is None:
                return 0
            where, values = rows.in_thread(thread_id, 0, self._layout.utf16)
            query = f"SELECT count(*) FROM {writes.name} {where} AND rowid <= ?"
            return int(self._connection.execute(query, [*values, writes_upto]).fetchone()[0])

        def by_query() -> tuple[int, object]:
            where, values = rows.in_thread(thread_id, 0, self._layout.utf16)
            query = f"SELECT count(*), max(CASE WHEN rowid = ? THEN {self._table.id} END) FROM {self._table.name} {where}"
            number, last = self._connection.execute(f"{query} AND rowid <= ?", [upto, *values, upto]).fetchone()
            return number, (None if last is None else rows.text_of(last), count_writes())

        return self._damage.either(self._table, by_query, lambda: None)

    def write_bytes(self, thread_id: str) -> int | None:
        """Bytes of the values of all writes of a thread, which are not read for it; None for a damaged table."""
        writes = self._layout.writes
        if writes is None:
            return 0

        def by_query() -> int:
            where, values = rows.in_thread(thread_id, 0, self._layout.utf16)
            query = f"SELECT coalesce(sum(length(value)), 0) FROM {writes.name} {where}"
            return int(self._connection.execute(query, values).fetchone()[0])

        return self._damage.either(writes, by_query, lambda: None)

    def count(self) -> int:
        return int(self._connection.execute(f"SELECT count(*) FROM {self._table.name}").fetchone()[0])

    # ---- writes whose checkpoint is not there

    def waiting(self, thread_id: str) -> list[tuple[Address, int]]:
        """Checkpoints of a thread that only have writes, with their number. Both tables are read by their keys alone."""
        table, writes = self._table, self._layout.writes
        if writes is None:
            return []
        where, values = rows.compared("thread_id", thread_id, self._layout.utf16)
        there, bound = rows.compared("c.thread_id", thread_id, self._layout.utf16)
        ns, same_ns = ("''", "") if table.ns == "''" else ("checkpoint_ns", "AND c.checkpoint_ns = d.ns")
        stored = f"SELECT 1 FROM {table.name} c WHERE {there} {same_ns} AND c.{table.id} = d.id"
        distinct = f"SELECT DISTINCT {ns} AS ns, {writes.id} AS id FROM {writes.name} WHERE {where}"
        lost = self._connection.execute(f"SELECT ns, id FROM ({distinct}) d WHERE NOT EXISTS ({stored})", [*values, *bound])
        return self._numbered(Address(thread_id, rows.text_of(ns), rows.text_of(identity)) for ns, identity in lost.fetchall())

    def waiting_of(self, addresses: Iterable[Address]) -> list[tuple[Address, int]]:
        """The same of these checkpoints alone, whatever the thread's length."""
        table = self._layout.checkpoints

        def is_lost(address: Address) -> bool:
            at, key = rows.at(table, address, self._layout.utf16)
            return self._connection.execute(f"SELECT 1 FROM {table.name} {at} LIMIT 1", key).fetchone() is None

        return [one for one in self._numbered(filter(is_lost, addresses)) if one[1]]

    def _numbered(self, addresses: Iterable[Address]) -> list[tuple[Address, int]]:
        """Checkpoints with the number of their writes."""
        writes = self._layout.writes
        found: list[tuple[Address, int]] = []
        if writes is None:
            return found
        for address in addresses:
            at, key = rows.at(writes, address, self._layout.utf16)
            number = self._connection.execute(f"SELECT count(*) FROM {writes.name} {at}", key).fetchone()[0]
            found.append((address, number))
        return found

    def leftover(self) -> list[tuple[str, int]]:
        """Threads that have writes and no checkpoint, with their number; jumps from thread to thread in the index."""
        table, writes = self._table, self._layout.writes
        if writes is None:
            return []
        first = f"SELECT min(thread_id) FROM {writes.name}"
        query = (
            f"WITH RECURSIVE t(x) AS ({first} UNION ALL SELECT ({first} WHERE thread_id > x) FROM t WHERE x IS NOT NULL) "
            f"SELECT x, (SELECT count(*) FROM {writes.name} WHERE thread_id = x) FROM t "
            f"WHERE x IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {table.name} c WHERE c.thread_id = x)"
        )
        return [(rows.text_of(thread), number) for thread, number in self._connection.execute(query)]

    # ---- whole rows

    def raw(self, address: Address) -> RawCheckpoint | None:
        """Where a row repeats an address, the later one."""

        def by_query() -> RawCheckpoint | None:
            found = list(self._at(self._table, rows.raw_columns(self._layout), address))
            return rows.raw(found[-1]) if found else None

        def row_by_row() -> RawCheckpoint | None:
            rowids = self._damage.rowids_at(self._connection, self._table, address)
            return next((row for rowid in reversed(rowids) if (row := self._raw_row(rowid)) is not None), None)

        return self._damage.either(self._table, by_query, row_by_row)

    def writes(self, address: Address) -> tuple[WriteRow, ...]:
        table = self._layout.writes
        if table is None:
            return ()
        columns = rows.write_columns(table, "value")
        same: dict[Any, Any] = {}

        def by_query() -> list[WriteRow]:
            return [rows.write(row, same)[1] for row in self._at(table, columns, address)]

        def row_by_row() -> list[WriteRow]:
            found = []
            for rowid in self._damage.rowids_at(self._connection, table, address):
                row = self._row(table, columns, rowid) or self._row(table, rows.write_columns(table), rowid)
                if row is not None:
                    found.append(rows.write(row, same)[1])
            return found

        return tuple(sorted(self._damage.either(table, by_query, row_by_row), key=rows.write_order))

    def raw_page(self, rowids: Sequence[int]) -> tuple[list[RawCheckpoint], int]:
        """Rows until `PAGE_BYTES` are reached, and how many rowids were used up."""
        found, size, done = [], 0, 0
        while done < len(rowids) and size < PAGE_BYTES:
            row = self._raw_row(rowids[done])
            if row is not None:
                found.append(row)
                size += rows.raw_size(row)
            done += 1
        return found, done

    def writes_page(self, rowids: Sequence[int]) -> tuple[list[WriteRow], int]:
        """The same for rows of writes."""
        table = self._layout.writes
        found: list[WriteRow] = []
        if table is None:
            return found, len(rowids)
        columns = rows.write_columns(table, "value")
        same: dict[Any, Any] = {}
        size = done = 0
        while done < len(rowids) and size < PAGE_BYTES:
            row = self._row(table, columns, rowids[done])
            if row is not None:
                found.append(rows.write(row, same)[1])
                size += len(found[-1].value or b"")
            done += 1
        return found, done

    # ---- one row, one statement

    def _raw_row(self, rowid: int) -> RawCheckpoint | None:
        row = self._row(self._table, rows.raw_columns(self._layout), rowid)
        if row is None:
            header = self._header_row(rowid)
            row = (*header, b"") if header is not None else None  # its state is lost, its place in the tree is not
        return rows.raw(row) if row is not None else None

    def _header_row(self, rowid: int) -> rows.Row | None:
        """A header; where the metadata behind a damaged blob cannot be read, what stands before it."""
        row = self._row(self._table, rows.header_columns(self._layout), rowid)
        return row if row is not None else self._row(self._table, rows.header_columns_before_blob(self._layout), rowid)

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
        key = [address.thread_id, address.checkpoint_ns, address.checkpoint_id]
        for row in self._connection.execute(f"SELECT {columns}, {table.keys} FROM {table.name} {where}", values):
            if [rows.text_of(value) for value in row[-3:]] != key:
                raise self._damage.misled(table)
            yield row[:-3]


def _threads_of(keys: Iterable[tuple[str, str, str]], last: object, size: int) -> tuple[list[ThreadKeys], object]:
    threads: dict[str, dict[str, list[str]]] = {}
    for thread, ns, identity in keys:
        if last is None or thread > rows.text_of(last):
            threads.setdefault(thread, {}).setdefault(ns, []).append(identity)
    page = sorted(threads)[:size]
    found = [_thread_keys(thread, {ns: (len(ids), max(ids)) for ns, ids in threads[thread].items()}) for thread in page]
    return found, page[-1] if len(threads) > size else None


def _thread_keys(thread_id: str, namespaces: dict[str, tuple[int, str]]) -> ThreadKeys:
    latest = namespaces[""][1] if "" in namespaces else max(entry[1] for entry in namespaces.values())
    return ThreadKeys(thread_id, tuple(sorted(namespaces)), sum(entry[0] for entry in namespaces.values()), latest)


def _falls(before: object, thread: object) -> bool:
    """Whether a thread comes out of its order, as in a damaged index: it could come again and again. Known for plain names."""
    return isinstance(before, str) and isinstance(thread, str) and before.isascii() and thread.isascii() and thread < before


def _link_id(link: tuple[str, str, str | None]) -> str:
    return link[1]


def cursor(entry: tuple[int, Any]) -> int:
    return entry[0]
