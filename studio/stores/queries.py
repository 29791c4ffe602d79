"""Reading one connection: each method answers by one query, or row by row where the table is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from studio.history.gathered import Gathered
from studio.history.packed import BATCH
from studio.model import Address, Checkpoint, RawCheckpoint
from studio.stores import chain as chains
from studio.stores import forked, rows
from studio.stores.base import ThreadKeys
from studio.stores.chain import Chain, Survey
from studio.stores.forked import Forked
from studio.stores.headers import HEAD_BYTES, created_at, is_uuid6
from studio.stores.layout import Table
from studio.stores.look import PAGE_BYTES, cursor
from studio.stores.outline import Outline, Summary
from studio.stores.summaries import summaries
from studio.stores.write_queries import WriteQueries

T = TypeVar("T")

_MOST_JUMPS = 64
"""Namespaces that are looked for one by one; where there are more, a thread is gone through."""

_ROWS_AT_ONCE = 64
"""Whole rows that one statement reads, one after another."""


class Queries(WriteQueries):
    """The queries of one look at a file."""

    # ---- lists

    def threads(self, last: object, size: int) -> tuple[list[ThreadKeys], object]:
        """Up to `size` threads after the raw id `last` (None: from the first), and the raw id to go on from (None: the end)."""
        return self._damage.either(
            self._table,
            lambda: self._threads_by_index(last, size),
            lambda: _threads_of(self._damage.rows_of(self._connection, self._table).named(), last, size),
        )

    def _threads_by_index(self, last: object, size: int) -> tuple[list[ThreadKeys], object]:
        table = self._table
        start, values = ("", []) if last is None else rows.compared("WHERE thread_id", last, self._layout.utf16, ">")
        group = f"thread_id, {table.ns}" if table.has_ns else "thread_id"
        number = f"count(DISTINCT {table.id})" if table.may_repeat else "count(*)"
        columns = f"thread_id, {table.ns}, {number}, max({table.id})"
        page: list[ThreadKeys] = []
        current = ""
        namespaces: dict[str, tuple[int, str]] = {}
        query = f"SELECT {columns} FROM {table.name} {start} GROUP BY {group} ORDER BY {group}"
        for thread, ns, number, latest in self._connection.execute(query, values):
            if type(thread) is not str or type(ns) is not str or type(latest) is not str:
                raise self._odd(table, thread, ns, latest)
            if not namespaces:
                if _falls(last, thread):
                    raise self._damage.misled(table)
            elif thread != current:
                if _falls(current, thread):
                    raise self._damage.misled(table)
                page.append(_thread_keys(current, namespaces))
                namespaces = {}
                if len(page) == size:
                    return page, current
            current = thread
            namespaces[ns] = (number, latest)
        if namespaces:
            page.append(_thread_keys(current, namespaces))
        return page, None

    def namespaces(self, thread_id: str) -> tuple[str, ...]:
        def by_query() -> set[str]:
            table = self._table
            found = self._jumped(table, thread_id) if table.index is not None and table.has_ns else None
            if found is not None:
                return found
            return {rows.text_of(ns) for (ns,) in self._in_thread(table, f"DISTINCT {table.ns}", thread_id)}

        def row_by_row() -> set[str]:
            known = self._damage.rows_of(self._connection, self._table).keys
            return {ns for thread, ns, _ in known.values() if thread == thread_id}

        return tuple(sorted(self._damage.either(self._table, by_query, row_by_row)))

    def _jumped(self, table: Table, thread_id: str) -> set[str] | None:
        """The namespaces of a thread by jumps in the index; None where they are too many for that."""
        where, values = rows.compared("thread_id", thread_id, self._layout.utf16)
        nameless = f"SELECT 1 FROM {table.name} WHERE {where} AND {table.ns} IS NULL LIMIT 1"
        found = {""} if self._connection.execute(nameless, values).fetchone() else set()
        for ns in self._jumps(table, thread_id):
            found.add(ns)
            if len(found) > _MOST_JUMPS:
                return None
        return found

    def summaries(self, batch: Sequence[ThreadKeys]) -> dict[str, Summary]:
        """Those of a batch of threads that one query tells of; none of a damaged table."""
        return self._damage.either(self._table, lambda: summaries(self._connection, self._layout, batch), dict)

    def outline(self, thread_id: str) -> Outline | None:
        """None where ids do not tell which checkpoints are the first and the last, one repeats, or the table is damaged."""
        return self._damage.either(self._table, lambda: self._outline(thread_id), lambda: None)

    def _outline(self, thread_id: str) -> Outline | None:
        table = self._table
        size = f"{rows.SIZE} + ifnull(length({table.or_null('metadata')}), 0)"
        sealed = f"instr({table.or_null('type')}, '+') > 0"
        where, values = rows.in_thread(thread_id, 0, self._layout.utf16)
        columns = (
            f"{table.ns}, {table.id}, {self._layout.parent}, {size}, {sealed}, substr(checkpoint, 1, {HEAD_BYTES}), thread_id"
        )
        links: list[tuple[str, str, str | None]] = []
        total = encrypted = 0
        first = last = ""
        heads: tuple[object, object] = (b"", b"")
        for ns, identity, parent, row_size, is_closed, head, thread in self._connection.execute(
            f"SELECT {columns} FROM {table.name} {where}", values
        ):
            if thread != thread_id and rows.text_of(thread) != thread_id:
                raise self._damage.misled(table)
            if type(ns) is not str or type(identity) is not str or not is_uuid6(identity):
                return None
            links.append((ns, identity, parent))
            total += row_size or 0
            encrypted += is_closed or 0
            if not first or identity < first:
                first, heads = identity, (head, heads[1])
            if identity > last:
                last, heads = identity, (heads[0], head)
        if not links or (table.may_repeat and len({link[:2] for link in links}) < len(links)):
            return None
        first_at, last_at = (
            created_at(rows.bytes_of(head), identity) for head, identity in zip(heads, (first, last), strict=True)
        )
        return Outline(tuple(links), total, first_at, last_at, encrypted)

    def chain(self, thread_id: str, longer_than: int) -> Chain | None:
        return self._damage.either(
            self._table, lambda: chains.read(self._connection, self._layout, thread_id, longer_than), lambda: None
        )

    def line(self, thread_id: str, longer_than: int) -> Chain | Forked | None:
        return self._damage.either(
            self._table, lambda: forked.read(self._connection, self._layout, thread_id, longer_than), lambda: None
        )

    def is_inside(self, thread_id: str, ref: str, *, in_part: bool) -> bool:
        """Whether the id of a subgraph's checkpoint in a thread is a text, or holds it."""
        table = self._table
        where, values = rows.compared("thread_id", thread_id, self._layout.utf16)
        same = f"instr({table.id}, ?)" if in_part else f"{table.id} = ?"
        query = f"SELECT 1 FROM {table.name} WHERE {where} AND {table.ns} <> '' AND {same} LIMIT 1"
        return self._connection.execute(query, [*values, ref]).fetchone() is not None

    def survey(self, thread_id: str, found: Chain) -> Survey | None:
        return self._damage.either(
            self._table, lambda: chains.survey(self._connection, self._layout, thread_id, found), lambda: None
        )

    def headers_between(self, first: Address, last: Address) -> list[Checkpoint]:
        """Of one namespace, from one id to another; none where the table is damaged."""

        def by_query() -> list[Checkpoint]:
            where, values = rows.at(self._table, first, self._layout.utf16, ">=")
            until, bound = rows.compared(self._table.id, last.checkpoint_id, self._layout.utf16, "<=")
            columns = rows.header_columns(self._layout)
            query = f"SELECT {columns} FROM {self._table.name} {where} AND {until} ORDER BY {self._table.id}"
            return [rows.header(row)[1] for row in self._connection.execute(query, [*values, *bound])]

        return self._damage.either(self._table, by_query, list)

    def headers_at(self, rowids: Sequence[int]) -> list[Checkpoint]:
        return [rows.header(row)[1] for rowid in rowids if (row := self._header_row(rowid)) is not None]

    def checkpoints(self, thread_id: str, after: int) -> list[tuple[int, Checkpoint]]:
        def by_query() -> list[tuple[int, Checkpoint]]:
            where, values = rows.in_thread(thread_id, after, self._layout.utf16)
            query = f"SELECT {rows.header_columns(self._layout)} FROM {self._table.name} {where}"
            found = rows.headers(self._connection.execute(query, values), thread_id, self._table, self._odd)
            if found is None:
                raise self._damage.misled(self._table)
            found.sort(key=cursor)
            return found

        def row_by_row() -> list[tuple[int, Checkpoint]]:
            rowids = self._damage.rows_of(self._connection, self._table).of_thread(thread_id, after)
            return [rows.header(row) for rowid in rowids if (row := self._header_row(rowid)) is not None]

        return self._damage.either(self._table, by_query, row_by_row)

    def gather(self, thread_id: str) -> Gathered | None:
        """The headers of a thread by their cursors, packed as they are read.

        None where they are to be listed: the table is damaged, or a row has no address of its own.
        """

        def by_query() -> Gathered | None:
            where, values = rows.in_thread(thread_id, 0, self._layout.utf16)
            query = f"SELECT {rows.header_columns(self._layout)} FROM {self._table.name} {where}"
            reading, found = self._connection.execute(query, values), Gathered(thread_id)
            while page := reading.fetchmany(BATCH):
                headers = rows.headers(page, thread_id, self._table, self._odd)
                if headers is None:
                    raise self._damage.misled(self._table)
                if not found.take(headers):
                    return None
            found.sort()
            return found

        return self._damage.either(self._table, by_query, lambda: None)

    def rowids(self, thread_id: str) -> list[int]:
        """Checkpoints of a thread, oldest first."""
        return self._damage.either(
            self._table,
            lambda: sorted(rowid for (rowid,) in self._in_thread(self._table, "rowid", thread_id)),
            lambda: self._damage.rows_of(self._connection, self._table).of_thread(thread_id),
        )

    def metadata(self, thread_id: str, ns: str, take: Callable[[bytes], T]) -> dict[str, T]:
        """Checkpoint id -> what `take` makes of its metadata, for a namespace; where a row repeats an id, the later one."""
        table = self._table

        def by_query() -> dict[str, T]:
            thread_is, bound = rows.compared("thread_id", thread_id, self._layout.utf16)
            ns_is, more = rows.compared(table.ns, ns, self._layout.utf16)
            query = f"SELECT {table.keys}, {table.or_null('metadata')} FROM {table.name} WHERE {thread_is} AND {ns_is}"
            found = {}
            for thread, space, identity, stored in self._connection.execute(query, [*bound, *more]):
                if (rows.text_of(thread), rows.text_of(space)) != (thread_id, ns):
                    raise self._damage.misled(table)
                found[rows.text_of(identity)] = take(rows.bytes_of(stored))
            return found

        def row_by_row() -> dict[str, T]:
            keys = self._damage.rows_of(self._connection, table).keys
            mine = (rowid for rowid, key in sorted(keys.items()) if key[:2] == (thread_id, ns))
            return {keys[rowid][2]: take(rows.bytes_of(row[7])) for rowid in mine if (row := self._header_row(rowid)) is not None}

        return self._damage.either(table, by_query, row_by_row)

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

    # ---- whole rows

    def raw(self, address: Address) -> RawCheckpoint | None:
        """Where a row repeats an address, the later one."""

        def by_query() -> RawCheckpoint | None:
            found = list(self._at(self._table, rows.raw_columns(self._layout), address))
            return rows.raw(found[-1]) if found else None

        def row_by_row() -> RawCheckpoint | None:
            rowids = self._damage.rowids_at(self._connection, self._table, address)
            columns = rows.raw_columns(self._layout)
            return next((row for rowid in reversed(rowids) if (row := self._raw_row(rowid, columns)) is not None), None)

        return self._damage.either(self._table, by_query, row_by_row)

    def raws(self, addresses: Sequence[Address]) -> dict[Address, RawCheckpoint]:
        """Those that are there."""
        together = self._at_each(self._table, rows.raw_columns(self._layout), addresses)
        if together is not None:
            return {address: rows.raw(under[-1]) for address, under in together.items()}
        return {address: row for address in addresses if (row := self.raw(address)) is not None}

    def raw_page(self, rowids: Sequence[int]) -> tuple[list[RawCheckpoint], int]:
        """Rows until `PAGE_BYTES` are reached, and how many rowids were used up."""
        columns = rows.raw_columns(self._layout)

        def one_by_one() -> tuple[list[RawCheckpoint], int]:
            found, size, done = [], 0, 0
            while done < len(rowids) and size < PAGE_BYTES:
                row = self._raw_row(rowids[done], columns)
                if row is not None:
                    found.append(row)
                    size += rows.raw_size(row)
                done += 1
            return found, done

        return self._damage.either(self._table, lambda: self._raw_rows(rowids, columns), one_by_one)

    def _raw_rows(self, rowids: Sequence[int], columns: str) -> tuple[list[RawCheckpoint], int]:
        """`raw_page` by one statement for many rows, as long as they ascend; those that are gone are left out."""
        found: list[RawCheckpoint] = []
        size = done = 0
        while done < len(rowids) and size < PAGE_BYTES:
            page = _ascending(rowids, done)
            wanted = ", ".join("?" * len(page))
            query = f"SELECT {columns} FROM {self._table.name} WHERE rowid IN ({wanted}) ORDER BY rowid"
            done += len(page)
            for row in self._connection.execute(query, page):
                found.append(rows.raw(row))
                size += rows.raw_size(found[-1])
                if size >= PAGE_BYTES:
                    done += page.index(row[0]) + 1 - len(page)
                    break
        return found, done

    # ---- one row, one statement

    def _raw_row(self, rowid: int, columns: str) -> RawCheckpoint | None:
        row = self._row(self._table, columns, rowid)
        if row is None:
            header = self._header_row(rowid)
            row = (*header, b"") if header is not None else None  # its state is lost, its place in the tree is not
        return rows.raw(row) if row is not None else None

    def _header_row(self, rowid: int) -> rows.Row | None:
        """A header; where the metadata behind a damaged blob cannot be read, what stands before it."""
        row = self._row(self._table, rows.header_columns(self._layout), rowid)
        return row if row is not None else self._row(self._table, rows.header_columns_before_blob(self._layout), rowid)


def _ascending(rowids: Sequence[int], start: int) -> list[int]:
    """The next rows that stand in the order of their numbers, at most `_ROWS_AT_ONCE`."""
    page = list(rowids[start : start + _ROWS_AT_ONCE])
    falls = next((at for at in range(1, len(page)) if page[at] <= page[at - 1]), len(page))
    return page[:falls]


def _threads_of(keys: Iterable[tuple[str, str, str]], last: object, size: int) -> tuple[list[ThreadKeys], object]:
    threads: dict[str, dict[str, list[str]]] = {}
    for thread, ns, identity in keys:
        if last is None or thread > rows.text_of(last):
            threads.setdefault(thread, {}).setdefault(ns, []).append(identity)
    page = sorted(threads)[:size]
    found = [_thread_keys(thread, {ns: (len(set(ids)), max(ids)) for ns, ids in threads[thread].items()}) for thread in page]
    return found, page[-1] if len(threads) > size else None


def _thread_keys(thread_id: str, namespaces: dict[str, tuple[int, str]]) -> ThreadKeys:
    if len(namespaces) == 1:
        ((ns, (number, latest)),) = namespaces.items()
        return ThreadKeys(thread_id, (ns,), number, latest)
    latest = namespaces[""][1] if "" in namespaces else max(entry[1] for entry in namespaces.values())
    return ThreadKeys(thread_id, tuple(sorted(namespaces)), sum(entry[0] for entry in namespaces.values()), latest)


def _falls(before: object, thread: object) -> bool:
    """Whether a thread comes out of its order, as in a damaged index: it could come again and again. Known for plain names."""
    return isinstance(before, str) and isinstance(thread, str) and before.isascii() and thread.isascii() and thread < before
