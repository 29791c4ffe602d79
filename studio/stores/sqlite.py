"""The store over LangGraph's SQLite tables (`SqliteSaver`, `AsyncSqliteSaver`), in every layout since 0.1.

Lists are answered from the covering index of the primary key and from the first bytes of a row; values are fetched by key.
A query that meets a damaged page is answered again row by row (`salvage`), so that one bad row hides no other.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from studio.errors import OpenError
from studio.model import Address, Checkpoint, Problem, RawCheckpoint, WriteRow
from studio.stores.base import Capability, ThreadKeys
from studio.stores.headers import HEAD_BYTES, created_at, is_uuid6, step_and_source
from studio.stores.layout import Layout, Table, find_layout
from studio.stores.outline import Outline
from studio.stores.recent import Recent
from studio.stores.salvage import Salvaged, ranges, salvage, text_of
from studio.stores.sqlite_file import SqliteFile

T = TypeVar("T")

THREADS_PER_LOOK = 256
SCAN_BYTES = 8 << 20
"""Blobs that a scan holds at a time; one look of a few milliseconds reads them."""
SCAN_ROWS = 2000


class SqliteStore:
    """One SQLite file as a `Store`. Cursors are rowids; `size_bytes` of a header is its checkpoint plus its metadata, without writes.

    `ignore_wal` shows the main file alone where the two disagree.
    Raises OpenError when the file is no such database.
    """

    kind = "sqlite"

    def __init__(self, location: str, *, ignore_wal: bool = False) -> None:
        self._file = SqliteFile(location, ignore_wal=ignore_wal)
        self.location = self._file.location
        self._held = threading.local()
        self._problems: dict[tuple[str, str], Problem] = {}
        self._salvaged: dict[str, tuple[object, Salvaged]] = {}
        self._recent = Recent()
        self._known_layout: Layout | None = None
        try:
            self._look(lambda connection, layout: None)
            if not ignore_wal:
                self._compare_with_wal()
        except sqlite3.DatabaseError as error:
            self._file.close()
            raise OpenError(f"{self.location} is damaged: {error}.", "Look for another copy of it.", "damaged") from error
        except OpenError:
            self._file.close()
            raise

    @property
    def layout(self) -> str:
        return self._layout.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        found = {Capability.LIVE}
        if self._layout.writes is not None:
            found.add(Capability.WRITES)
        if self._layout.name != "no-namespace":
            found |= {Capability.NAMESPACES, Capability.RAW_FORK}
        return frozenset(found)

    @property
    def other_tables(self) -> tuple[str, ...]:
        """Tables of the file that time travel does not rewind."""
        return self._layout.others

    def token(self) -> object:
        held = getattr(self._held, "token", None)
        return held if held is not None else self._file.token()

    def problems(self) -> list[Problem]:
        return [*self._file.problems(), *self._layout.problems, *self._problems.values()]

    def close(self) -> None:
        self._file.close()

    def together(self, work: Callable[[], T]) -> T:
        """Run `work` with all reads that this thread does in it on one snapshot and one connection.

        For many small reads in a row. It must be short, since it holds a transaction, and repeatable, since it runs again
        when the file moved under it.
        """
        return self._look(lambda connection, layout: work())

    # ---- lists

    def threads(self) -> Iterator[ThreadKeys]:
        last: object = None
        first = True
        count = 8  # the first ones are there at once
        while first or last is not None:
            page, last = self._look(lambda connection, layout, last=last, count=count: self._thread_page(connection, layout, last, count))
            yield from page
            first, count = False, THREADS_PER_LOOK
        self._look(self._find_leftover_writes)

    def _thread_page(self, connection: sqlite3.Connection, layout: Layout, last: object, count: int) -> tuple[list[ThreadKeys], object]:
        """Up to `count` threads after `last`, and the raw id to go on from (None at the end)."""
        table = layout.checkpoints
        if not self._is_damaged(table):
            try:
                return self._thread_page_by_index(connection, table, last, count)
            except sqlite3.DatabaseError as error:
                _only_damage(error)
        gathered: dict[str, dict[str, list[str]]] = {}
        for thread, ns, identity in self._rows_of(connection, table).keys.values():
            if last is None or thread > str(last):
                gathered.setdefault(thread, {}).setdefault(ns, []).append(identity)
        keys = sorted(gathered)[:count]
        return [_thread_keys(key, {ns: (len(ids), max(ids)) for ns, ids in gathered[key].items()}) for key in keys], (
            keys[-1] if len(gathered) > count else None
        )

    def _thread_page_by_index(self, connection: sqlite3.Connection, table: Table, last: object, count: int) -> tuple[list[ThreadKeys], object]:
        start, values = ("", []) if last is None else _where("thread_id", last, ">", self._layout.utf16)
        page: list[ThreadKeys] = []
        current: object = None
        namespaces: dict[str, tuple[int, str]] = {}
        group = "thread_id" if table.ns == "''" else f"thread_id, {table.ns}"
        rows = connection.execute(
            f"SELECT thread_id, {table.ns}, count(*), max({table.id}) FROM {table.name} {start} GROUP BY {group} ORDER BY {group}", values
        )
        for thread, ns, number, latest in rows:
            if namespaces and thread != current:
                page.append(_thread_keys(text_of(current), namespaces))
                namespaces = {}
                if len(page) == count:
                    return page, current
            current = thread
            namespaces[text_of(ns)] = (number, text_of(latest))
        if namespaces:
            page.append(_thread_keys(text_of(current), namespaces))
        return page, None

    def namespaces(self, thread_id: str) -> tuple[str, ...]:
        """The namespaces of one thread, sorted."""

        def read(connection: sqlite3.Connection, layout: Layout) -> tuple[str, ...]:
            table = layout.checkpoints
            if not self._is_damaged(table):
                try:
                    where, values = self._in_thread(thread_id, 0)
                    rows = connection.execute(f"SELECT DISTINCT {table.ns} FROM {table.name} {where}", values)
                    return tuple(sorted(text_of(ns) for (ns,) in rows))
                except sqlite3.DatabaseError as error:
                    _only_damage(error)
            return tuple(sorted({ns for thread, ns, _ in self._rows_of(connection, table).keys.values() if thread == thread_id}))

        return self._look(read)

    def outline(self, thread_id: str) -> Outline | None:
        """A thread without its metadata and blobs; None where ids do not tell which checkpoints are the first and the last."""

        def read(connection: sqlite3.Connection, layout: Layout) -> Outline | None:
            table = layout.checkpoints
            if self._is_damaged(table) or not table.has("metadata"):
                return None
            where, values = self._in_thread(thread_id, 0)
            columns = f"{table.ns}, {table.id}, {layout.parent}, {_SIZE} + ifnull(length(metadata), 0)"
            try:
                rows = connection.execute(f"SELECT {columns} FROM {table.name} {where}", values).fetchall()
                links, sizes = [row[:3] for row in rows], [row[3] or 0 for row in rows]
                if not links or not all(type(row[0]) is str and type(row[1]) is str and is_uuid6(row[1]) for row in links):
                    return None
                by_id = (min(links, key=_link_id), max(links, key=_link_id))
                times = [self._created_at(connection, table, Address(thread_id, link[0], link[1])) for link in by_id]
            except sqlite3.DatabaseError as error:
                _only_damage(error)
                return None
            return Outline(tuple(links), sum(sizes), times[0], times[1])

        return self._look(read)

    def _created_at(self, connection: sqlite3.Connection, table: Table, address: Address) -> str | None:
        where, values = self._at(table, address)
        row = connection.execute(f"SELECT substr(checkpoint, 1, {HEAD_BYTES}) FROM {table.name} {where}", values).fetchone()
        return created_at(_bytes(row[0]), address.checkpoint_id)

    def checkpoints(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, Checkpoint]]:
        def read(connection: sqlite3.Connection, layout: Layout) -> list[tuple[int, Checkpoint]]:
            table = layout.checkpoints
            columns = _header_columns(layout)
            if not self._is_damaged(table):
                try:
                    where, values = self._in_thread(thread_id, after)
                    rows = connection.execute(f"SELECT {columns} FROM {table.name} {where}", values)
                    found = [self._header(row) for row in rows]
                    found.sort(key=_cursor)
                    self._check_ids(thread_id, found)
                    return found
                except sqlite3.DatabaseError as error:
                    _only_damage(error)
            found = []
            for rowid in self._rows_of(connection, table).of_thread(thread_id, after):
                row = self._one_header(connection, layout, rowid)
                if row is not None:
                    found.append(self._header(row))
            self._check_ids(thread_id, found)
            return found

        return self._look(read)

    def write_headers(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, WriteRow]]:
        def read(connection: sqlite3.Connection, layout: Layout) -> list[tuple[int, WriteRow]]:
            table = layout.writes
            if table is None:
                return []
            columns = _write_columns(table, "NULL")
            same: dict[Any, Any] = {}  # rows repeat a few texts: keep one object of each
            if not self._is_damaged(table):
                try:
                    where, values = self._in_thread(thread_id, after)
                    found = [self._write(row, same) for row in connection.execute(f"SELECT {columns} FROM {table.name} {where}", values)]
                    found.sort(key=_cursor)
                    self._find_waiting_writes(connection, layout, thread_id)
                    return found
                except sqlite3.DatabaseError as error:
                    _only_damage(error)
            found = []
            for rowid in self._rows_of(connection, table).of_thread(thread_id, after):
                row = self._try_row(connection, table, columns, rowid)
                if row is not None:
                    found.append(self._write(row, same))
            return found

        return self._look(read)

    # ---- rows by key

    def raw(self, addresses: Iterable[Address]) -> dict[Address, RawCheckpoint]:
        def read(connection: sqlite3.Connection, layout: Layout, wanted: Sequence[Address]) -> dict[Address, RawCheckpoint]:
            found: dict[Address, RawCheckpoint] = {}
            for address in wanted:
                row = self._raw_row(connection, layout, address)
                if row is not None:
                    found[address] = row
            return found

        return self._recent.get("raw", self.token(), addresses, lambda wanted: self._look(lambda c, layout: read(c, layout, wanted)), _raw_size)

    def _raw_row(self, connection: sqlite3.Connection, layout: Layout, address: Address) -> RawCheckpoint | None:
        table = layout.checkpoints
        columns = f"{_header_columns(layout)}, {table.or_null('type')}, checkpoint"
        if not self._is_damaged(table):
            try:
                where, values = self._at(table, address)
                rows = connection.execute(f"SELECT {columns} FROM {table.name} {where}", values).fetchall()
                return self._raw(rows[-1], address) if rows else None
            except sqlite3.DatabaseError as error:
                _only_damage(error)
        for rowid in reversed(self._rowids_at(connection, table, address)):
            row = self._try_row(connection, table, columns, rowid)
            if row is not None:
                return self._raw(row, address)
            header = self._one_header(connection, layout, rowid)
            if header is not None:
                return self._raw((*header, None, b""), address)
        return None

    def writes(self, addresses: Iterable[Address]) -> dict[Address, tuple[WriteRow, ...]]:
        def read(connection: sqlite3.Connection, layout: Layout, wanted: Sequence[Address]) -> dict[Address, tuple[WriteRow, ...]]:
            table = layout.writes
            if table is None:
                return {}
            return {address: self._write_rows(connection, table, address) for address in wanted}

        found = self._recent.get(
            "writes", self.token(), addresses, lambda wanted: self._look(lambda c, layout: read(c, layout, wanted)), _writes_size
        )
        return {address: rows for address, rows in found.items() if rows}

    def _write_rows(self, connection: sqlite3.Connection, table: Table, address: Address) -> tuple[WriteRow, ...]:
        columns = _write_columns(table, "value")
        found: list[WriteRow] = []
        same: dict[Any, Any] = {}
        done = False
        if not self._is_damaged(table):
            try:
                where, values = self._at(table, address)
                found = [self._write(row, same)[1] for row in connection.execute(f"SELECT {columns} FROM {table.name} {where}", values)]
                done = True
            except sqlite3.DatabaseError as error:
                _only_damage(error)
        if not done:
            found = []
            for rowid in self._rowids_at(connection, table, address):
                row = self._try_row(connection, table, columns, rowid) or self._try_row(connection, table, _write_columns(table, "NULL"), rowid)
                if row is not None:
                    found.append(self._write(row, same)[1])
        return tuple(sorted(found, key=_write_order))

    # ---- streams

    def scan(self, thread_id: str | None = None) -> Iterator[RawCheckpoint]:
        threads = [thread_id] if thread_id is not None else (keys.thread_id for keys in self.threads())
        batch: list[str] = []
        for thread in threads:
            batch.append(thread)
            if len(batch) == 64:
                yield from self._scan_threads(batch)
                batch = []
        yield from self._scan_threads(batch)

    def _scan_threads(self, threads: list[str]) -> Iterator[RawCheckpoint]:
        todo = self._look(lambda connection, layout: self._scan_plan(connection, layout, threads))
        position = 0
        while position < len(todo):
            rows, position = self._look(lambda connection, layout, start=position: self._scan_page(connection, layout, todo, start))
            while rows:
                yield rows.pop()

    def _scan_plan(self, connection: sqlite3.Connection, layout: Layout, threads: list[str]) -> list[int]:
        """Rowids in the order in which they are read: thread by thread, oldest first."""
        table = layout.checkpoints
        plan: list[int] = []
        for thread in threads:
            rowids: list[int] | None = None
            if not self._is_damaged(table):
                try:
                    where, values = self._in_thread(thread, 0)
                    rowids = sorted(row[0] for row in connection.execute(f"SELECT rowid FROM {table.name} {where}", values))
                except sqlite3.DatabaseError as error:
                    _only_damage(error)
            plan.extend(self._rows_of(connection, table).of_thread(thread) if rowids is None else rowids)
        return plan

    def _scan_page(self, connection: sqlite3.Connection, layout: Layout, todo: list[int], start: int) -> tuple[list[RawCheckpoint], int]:
        """Rows from `start` on, newest first (to be popped from the end), and where the next page starts."""
        columns = f"{_header_columns(layout)}, {layout.checkpoints.or_null('type')}, checkpoint"
        found: list[RawCheckpoint] = []
        size = 0
        position = start
        while position < len(todo) and size < SCAN_BYTES and position - start < SCAN_ROWS:
            row = self._try_row(connection, layout.checkpoints, columns, todo[position])
            if row is not None:
                raw = self._raw(row)
                size += _raw_size(raw)
                found.append(raw)
            position += 1
        found.reverse()
        return found, position

    def scan_writes(self, thread_id: str, channels: Sequence[str]) -> Iterator[WriteRow]:
        """Ordered by (namespace, checkpoint id, task_path, task_id, idx)."""
        wanted = frozenset(channels)
        todo = self._look(lambda connection, layout: self._writes_plan(connection, layout, thread_id, wanted))
        position = 0
        while position < len(todo):
            rows, position = self._look(lambda connection, layout, start=position: self._writes_page(connection, layout, todo, start))
            yield from rows

    def _writes_plan(self, connection: sqlite3.Connection, layout: Layout, thread_id: str, channels: frozenset[str]) -> list[int]:
        table = layout.writes
        if table is None or not channels:
            return []
        columns = _write_columns(table, "NULL")
        rows: list[tuple[Any, ...]] | None = None
        if not self._is_damaged(table):
            try:
                where, values = self._in_thread(thread_id, 0)
                rows = [row for row in connection.execute(f"SELECT {columns} FROM {table.name} {where}", values) if row[6] in channels]
            except sqlite3.DatabaseError as error:
                _only_damage(error)
        if rows is None:
            tried = (self._try_row(connection, table, columns, rowid) for rowid in self._rows_of(connection, table).of_thread(thread_id))
            rows = [row for row in tried if row is not None and row[6] in channels]
        rows.sort(key=lambda row: (text_of(row[1]), text_of(row[2]), text_of(row[4]), text_of(row[3]), row[5]))
        return [row[0] for row in rows]

    def _writes_page(self, connection: sqlite3.Connection, layout: Layout, todo: list[int], start: int) -> tuple[list[WriteRow], int]:
        table = layout.writes
        assert table is not None
        columns = _write_columns(table, "value")
        found: list[WriteRow] = []
        same: dict[Any, Any] = {}
        size, position = 0, start
        while position < len(todo) and size < SCAN_BYTES and position - start < SCAN_ROWS:
            row = self._try_row(connection, table, columns, todo[position])
            if row is not None:
                write = self._write(row, same)[1]
                size += len(write.value or b"")
                found.append(write)
            position += 1
        return found, position

    # ---- one look

    @property
    def _layout(self) -> Layout:
        assert self._known_layout is not None
        return self._known_layout

    def _look(self, read: Callable[[sqlite3.Connection, Layout], T]) -> T:
        held: tuple[sqlite3.Connection, Layout] | None = getattr(self._held, "now", None)
        if held is not None:
            return self._read(*held, read)

        def attempt(connection: sqlite3.Connection) -> T:
            layout = self._known_layout
            if layout is None or layout.schema_version != connection.execute("PRAGMA schema_version").fetchone()[0]:
                connection.text_factory = _lenient  # a newer saver may add a column to a file that is open here
                layout = self._known_layout = find_layout(connection, self.location)
            connection.text_factory = str
            self._held.now, self._held.token = (connection, layout), self._file.token()
            try:
                return self._read(connection, layout, read)
            finally:
                self._held.now = self._held.token = None

        return self._file.look(attempt)

    @staticmethod
    def _read(connection: sqlite3.Connection, layout: Layout, read: Callable[[sqlite3.Connection, Layout], T]) -> T:
        try:
            return read(connection, layout)
        except sqlite3.OperationalError as error:
            if "decode" not in str(error).lower() or connection.text_factory is _lenient:
                raise
        connection.text_factory = _lenient  # slower, so only for files that hold other text than UTF-8
        return read(connection, layout)

    def _in_thread(self, thread_id: str, after: int) -> tuple[str, list[object]]:
        """WHERE for one thread; for new rows the table's end is read, not the thread's whole index."""
        where, values = _where("+thread_id" if after else "thread_id", thread_id, "=", self._layout.utf16)
        return (f"{where} AND rowid > ?", [*values, after]) if after else (where, values)

    def _at(self, table: Table, address: Address) -> tuple[str, list[object]]:
        utf16 = self._layout.utf16
        if (address.thread_id + address.checkpoint_ns + address.checkpoint_id).isascii():
            return (f"WHERE thread_id = ? AND {table.ns} = ? AND {table.id} = ?",
                    [address.thread_id, address.checkpoint_ns, address.checkpoint_id])
        parts: list[str] = []
        values: list[object] = []
        for column, value in (("thread_id", address.thread_id), (table.ns, address.checkpoint_ns), (table.id, address.checkpoint_id)):
            where, bound = _where(column, value, "=", utf16)
            parts.append(where.removeprefix("WHERE "))
            values.extend(bound)
        return "WHERE " + " AND ".join(parts), values

    def _header(self, row: tuple[Any, ...]) -> tuple[int, Checkpoint]:
        rowid, thread, ns, identity, parent, head, size, metadata = row[:8]
        if type(thread) is not str or type(ns) is not str or type(identity) is not str:
            thread, ns, identity = text_of(thread), text_of(ns), text_of(identity)
        if type(metadata) is not bytes or type(head) is not bytes:
            metadata, head = _bytes(metadata), _bytes(head)
        if parent is not None and type(parent) is not str:
            parent = text_of(parent)
        step, source = step_and_source(metadata)
        return rowid, Checkpoint(
            Address(thread, ns, identity), parent, step, source, created_at(head, identity), (size or 0) + len(metadata)
        )

    def _raw(self, row: tuple[Any, ...], address: Address | None = None) -> RawCheckpoint:
        _, header = self._header(row)
        tag, blob = row[8], row[9]
        metadata_tag = "json" if row[7] is not None else None
        return RawCheckpoint(header, None if tag is None else text_of(tag), _bytes(blob), metadata_tag, _bytes(row[7]))

    def _write(self, row: tuple[Any, ...], same: dict[Any, Any]) -> tuple[int, WriteRow]:
        rowid, ns, identity, task, path, idx, channel, tag, value = row
        if type(ns) is not str or type(identity) is not str or type(task) is not str or type(channel) is not str:
            ns, identity, task, channel = text_of(ns), text_of(identity), text_of(task), text_of(channel)
        keep = same.setdefault
        return rowid, WriteRow(
            keep(ns, ns), keep(identity, identity), keep(task, task), path if path is None else keep(path, text_of(path)),
            idx if isinstance(idx, int) else 0, keep(channel, channel), tag if tag is None else keep(tag, text_of(tag)),
            None if value is None else _bytes(value),
        )

    # ---- damage and oddities

    def _is_damaged(self, table: Table) -> bool:
        found = self._salvaged.get(table.plain_name)
        return found is not None and found[0] == self.token()

    def _rows_of(self, connection: sqlite3.Connection, table: Table) -> Salvaged:
        """The readable rows of a damaged table; found once per state of the file."""
        token = self.token()
        held = self._salvaged.get(table.plain_name)
        if held is None or held[0] != token:
            factory = connection.text_factory
            connection.text_factory = _lenient
            found = salvage(connection, table)
            connection.text_factory = factory
            held = self._salvaged[table.plain_name] = (token, found)
            where = f"table {table.plain_name}"
            self._problems.pop(("damaged", where), None)
            if found.lost:
                threads = sorted({key[0] for key in found.lost_keys.values()})
                of = f" (threads {', '.join(threads[:5])}{', …' if len(threads) > 5 else ''})" if threads else ""
                self._report("damaged", where, f"{len(found.lost)} rows cannot be read{of}: rows {ranges(found.lost)}.")
        return held[1]

    def _rowids_at(self, connection: sqlite3.Connection, table: Table, address: Address) -> list[int]:
        wanted = (address.thread_id, address.checkpoint_ns, address.checkpoint_id)
        return [rowid for rowid, key in self._rows_of(connection, table).keys.items() if key == wanted]

    def _try_row(self, connection: sqlite3.Connection, table: Table, columns: str, rowid: int) -> tuple[Any, ...] | None:
        try:
            row: tuple[Any, ...] | None = connection.execute(f"SELECT {columns} FROM {table.name} WHERE rowid = ?", (rowid,)).fetchone()
            return row
        except sqlite3.DatabaseError as error:
            _only_damage(error)
            self._report("damaged", f"table {table.plain_name} row {rowid}", "This row cannot be read whole.")
            return None

    def _one_header(self, connection: sqlite3.Connection, layout: Layout, rowid: int) -> tuple[Any, ...] | None:
        """A header row; where the metadata behind the blob cannot be read, what stands before it."""
        row = self._try_row(connection, layout.checkpoints, _header_columns(layout), rowid)
        if row is None:
            table = layout.checkpoints
            less = f"rowid, {table.keys}, {layout.parent}, x'', length(checkpoint), NULL"
            row = self._try_row(connection, table, less, rowid)
        return row

    def _check_ids(self, thread_id: str, found: list[tuple[int, Checkpoint]]) -> None:
        seen: set[tuple[str, str]] = set()
        for rowid, header in found:
            key = (header.checkpoint_ns, header.checkpoint_id)
            if key in seen:
                self._report("duplicate-id", f"thread {thread_id}, checkpoint {key[1]}", f"The id occurs again in row {rowid}.")
            elif not key[1]:
                self._report("empty-id", f"thread {thread_id}, row {rowid}", "This checkpoint has an empty id.")
            seen.add(key)

    def _find_waiting_writes(self, connection: sqlite3.Connection, layout: Layout, thread_id: str) -> None:
        """Writes under a checkpoint that is not there (yet); LangGraph stores the two one after the other."""
        prefix = f"thread {thread_id}, "
        for key in [key for key in self._problems if key[0] == "write-without-checkpoint" and key[1].startswith(prefix)]:
            del self._problems[key]
        writes, table = layout.writes, layout.checkpoints
        assert writes is not None
        if self._is_damaged(table):
            return
        where, values = _where("w.thread_id", thread_id, "=", layout.utf16)
        same_ns = "" if table.ns == "''" else "AND c.checkpoint_ns = w.checkpoint_ns"
        ns = "''" if table.ns == "''" else "w.checkpoint_ns"
        try:
            rows = connection.execute(
                f"SELECT {ns}, w.{writes.id}, count(*) FROM {writes.name} w {where} AND NOT EXISTS (SELECT 1 FROM {table.name} c "
                f"WHERE c.thread_id = w.thread_id {same_ns} AND c.{table.id} = w.{writes.id}) GROUP BY 1, 2", values,
            ).fetchall()
            for ns_value, identity, number in rows:
                at = Address(thread_id, text_of(ns_value), text_of(identity))
                under = self._write_rows(connection, writes, at)
                tasks = ", ".join(dict.fromkeys(row.task_id for row in under[:20]))
                channels = ", ".join(dict.fromkeys(row.channel for row in under[:20]))
                place = f" in {at.checkpoint_ns}" if at.checkpoint_ns else ""
                self._report(
                    "write-without-checkpoint", f"{prefix}checkpoint {at.checkpoint_id}{place}",
                    f"{number} writes wait for a checkpoint that is not stored (channels {channels}; tasks {tasks}).",
                )
        except sqlite3.DatabaseError as error:
            if not isinstance(error, sqlite3.OperationalError):
                _only_damage(error)
            else:
                raise

    def _find_leftover_writes(self, connection: sqlite3.Connection, layout: Layout) -> None:
        """Writes of threads that have no checkpoint at all."""
        writes, table = layout.writes, layout.checkpoints
        if writes is None or self._is_damaged(writes) or self._is_damaged(table):
            return
        try:
            rows = connection.execute(
                f"WITH RECURSIVE t(x) AS (SELECT min(thread_id) FROM {writes.name} UNION ALL "
                f"SELECT (SELECT min(thread_id) FROM {writes.name} WHERE thread_id > x) FROM t WHERE x IS NOT NULL) "
                f"SELECT x, (SELECT count(*) FROM {writes.name} WHERE thread_id = x) FROM t WHERE x IS NOT NULL "
                f"AND NOT EXISTS (SELECT 1 FROM {table.name} c WHERE c.thread_id = x)"
            ).fetchall()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            return
        for thread, number in rows:
            self._report("write-without-checkpoint", f"thread {text_of(thread)}", f"{number} writes of a thread without any checkpoint.")

    def _compare_with_wal(self) -> None:
        """A `-wal` of an older state beside a newer file makes SQLite show less than the file alone holds: say so."""
        token = self._file.token()
        if token[1] is None or token[1][0] == 0:
            return
        def count(store: SqliteStore) -> int:
            return store._look(lambda c, layout: int(c.execute(f"SELECT count(*) FROM {layout.checkpoints.name}").fetchone()[0]))
        try:
            shown = count(self)
            alone = SqliteStore(self.location, ignore_wal=True)
        except (OpenError, sqlite3.DatabaseError):
            return
        try:
            hidden = count(alone) - shown
        except (OpenError, sqlite3.DatabaseError):
            return
        finally:
            alone.close()
        if hidden > 0 and self._file.token() == token:
            self._report(
                "wal-disagrees", f"{self.location}-wal",
                f"The -wal beside the file hides {hidden} checkpoints that the file alone holds; it seems to belong to an older state. "
                "Open a copy of the file without its -wal to see them.",
            )

    def _report(self, kind: str, where: str, message: str) -> None:
        self._problems[kind, where] = Problem(kind, where, message)


_SIZE = "CASE typeof(checkpoint) WHEN 'text' THEN length(CAST(checkpoint AS BLOB)) ELSE length(checkpoint) END"


def _header_columns(layout: Layout) -> str:
    table = layout.checkpoints
    return f"rowid, {table.keys}, {layout.parent}, substr(checkpoint, 1, {HEAD_BYTES}), {_SIZE}, {table.or_null('metadata')}"


def _write_columns(table: Table, value: str) -> str:
    return f"rowid, {table.ns}, {table.id}, task_id, {table.or_null('task_path')}, idx, channel, {table.or_null('type')}, {value}"


def _where(column: str, value: object, operator: str, utf16: str) -> tuple[str, list[object]]:
    """A comparison with a bound value; text with bytes that are not UTF-8 is bound as bytes and turned into text by SQLite."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            stored = value.encode(utf16, "surrogatepass") if utf16 else value.encode("utf-8", "surrogateescape")
            return f"WHERE {column} {operator} CAST(? AS TEXT)", [stored]
    return f"WHERE {column} {operator} ?", [value]


def _thread_keys(thread_id: str, namespaces: dict[str, tuple[int, str]]) -> ThreadKeys:
    latest = namespaces[""][1] if "" in namespaces else max(entry[1] for entry in namespaces.values())
    return ThreadKeys(thread_id, tuple(sorted(namespaces)), sum(entry[0] for entry in namespaces.values()), latest)


def _only_damage(error: sqlite3.DatabaseError) -> None:
    """Go on after damage; raise again what another attempt or the caller must deal with (locks, text, a wrong query)."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_TOOBIG")):
        return
    raise error


def _link_id(link: tuple[str, str, str | None]) -> str:
    return link[1]


def _cursor(entry: tuple[int, Any]) -> int:
    return entry[0]


def _write_order(row: WriteRow) -> tuple[str, str, int]:
    return row.task_path or "", row.task_id, row.idx


def _bytes(value: object) -> bytes:
    """A stored blob; text (JSON that other writers store as such) in UTF-8."""
    if isinstance(value, bytes):
        return value
    return b"" if value is None else text_of(value).encode("utf-8", "surrogateescape")


def _raw_size(raw: RawCheckpoint) -> int:
    return len(raw.blob) + len(raw.metadata) + 600


def _writes_size(rows: tuple[WriteRow, ...]) -> int:
    return sum(len(row.value or b"") + 400 for row in rows) + 100


def _lenient(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
