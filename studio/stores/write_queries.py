"""Reading rows of `writes`: by thread, under some checkpoints, and those whose checkpoint is not stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from studio.model import Address, WriteRow
from studio.stores import rows
from studio.stores.layout import Table
from studio.stores.look import PAGE_BYTES, Look, cursor

_MOST_NAMESPACES = 5_000
ONE_BY_ONE = 32
"""Checkpoints whose writes are looked up one by one; more of one namespace are read as a range."""


class WriteQueries(Look):
    """Each method answers by one query, or row by row where the table is damaged."""

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

        def row_by_row() -> int:
            return max(self._damage.rows_of(self._connection, table).of_thread(thread_id, 0), default=0)

        return self._damage.either(table, lambda: self._summed(table, "ifnull(max(rowid), 0)", thread_id), row_by_row)

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
            if (row[-1] != thread and rows.text_of(row[-1]) != thread) or (row[1] != ns and rows.text_of(row[1]) != ns):
                raise self._damage.misled(table)
            identity = row[2]
            under = by_id.get(identity if type(identity) is str else rows.text_of(identity))
            if under is not None:
                under.append(rows.write(row[:-1], same))

    def write_bytes(self, thread_id: str) -> int | None:
        """Bytes of the values of all writes of a thread, which are not read for it; None for a damaged table."""
        writes = self._layout.writes
        if writes is None:
            return 0
        aggregate = "coalesce(sum(length(value)), 0)"
        return self._damage.either(writes, lambda: self._summed(writes, aggregate, thread_id), lambda: None)

    def written_namespaces(self, thread_id: str) -> tuple[str, ...]:
        """The namespaces that rows of `writes` name, sorted; jumps from one to the next in the index."""
        table = self._layout.writes
        if table is None or not table.has_ns:
            return ()

        def by_query() -> tuple[str, ...]:
            return tuple(islice(self._jumps(table, thread_id), _MOST_NAMESPACES))

        def row_by_row() -> tuple[str, ...]:
            known = self._damage.rows_of(self._connection, table).keys
            return tuple(sorted({ns for thread, ns, _ in known.values() if thread == thread_id})[:_MOST_NAMESPACES])

        return self._damage.either(table, by_query, row_by_row)

    def waiting(self, thread_id: str) -> list[tuple[Address, int]]:
        """Checkpoints of a thread that only have writes, with their number. Both tables are read by their keys alone."""
        table, writes = self._table, self._layout.writes
        if writes is None:
            return []
        where, values = rows.compared("thread_id", thread_id, self._layout.utf16)
        there, bound = rows.compared("c.thread_id", thread_id, self._layout.utf16)
        ns, same_ns = ("''", "") if not table.has_ns else ("checkpoint_ns", "AND c.checkpoint_ns = d.ns")
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
        """Threads that have writes and no checkpoint, with their number; by jumps where an index leads by them."""
        table, writes = self._table, self._layout.writes
        if writes is None:
            return []
        if table.index is not None and writes.index is not None:
            first = f"SELECT min(thread_id) FROM {writes.name}"
            query = (
                f"WITH RECURSIVE t(x) AS ({first} UNION ALL SELECT ({first} WHERE thread_id > x) FROM t WHERE x IS NOT NULL) "
                f"SELECT x, (SELECT count(*) FROM {writes.name} WHERE thread_id = x) FROM t "
                f"WHERE x IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {table.name} c WHERE c.thread_id = x)"
            )
        else:
            query = (
                f"SELECT thread_id, count(*) FROM {writes.name} WHERE thread_id IS NOT NULL "
                f"AND thread_id NOT IN (SELECT thread_id FROM {table.name} WHERE thread_id IS NOT NULL) "
                f"GROUP BY thread_id ORDER BY thread_id"
            )
        return [(rows.text_of(thread), number) for thread, number in self._connection.execute(query)]

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

        return tuple(sorted(self._damage.keyed(table, address, by_query, row_by_row), key=rows.write_order))

    def writes_under(self, addresses: Sequence[Address]) -> dict[Address, tuple[WriteRow, ...]]:
        """The same for several addresses, () where there are none."""
        table = self._layout.writes
        together = self._at_each(table, rows.write_columns(table, "value"), addresses) if table is not None else None
        if together is None:
            return {address: self.writes(address) for address in addresses}
        same: dict[Any, Any] = {}
        found: dict[Address, tuple[WriteRow, ...]] = dict.fromkeys(addresses, ())
        for address, under in together.items():
            found[address] = tuple(sorted((rows.write(row, same)[1] for row in under), key=rows.write_order))
        return found

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
