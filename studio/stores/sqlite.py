"""The store over LangGraph's SQLite tables (`SqliteSaver`, `AsyncSqliteSaver`), in every layout since 0.1.

Lists are answered from the covering index of the primary key and from the first bytes of a row; values are fetched by key.
A query that meets a damaged page is answered again row by row (`queries`, `damage`), so that one bad row hides no other.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

from studio.errors import OpenError
from studio.history.gathered import Gathered
from studio.model import Address, Checkpoint, Problem, RawCheckpoint, WriteRow
from studio.stores import rows, text_keys, waiting
from studio.stores.base import Capability, ThreadKeys
from studio.stores.bounded import counted
from studio.stores.chain import Chain, Survey
from studio.stores.damage import Damage, Saved
from studio.stores.forked import Forked
from studio.stores.hidden import Held, held, missing
from studio.stores.layout import Layout, find_layout
from studio.stores.odd_ids import odd_ids
from studio.stores.outline import Outline, Summary
from studio.stores.queries import Queries
from studio.stores.recent import Recent
from studio.stores.sqlite_file import SqliteFile
from studio.stores.table_sets import CountedSet
from studio.stores.text_keys import OddKeys
from studio.stores.view import View
from studio.stores.wal import is_in_use

T = TypeVar("T")

FIRST_THREADS, MORE_THREADS = 8, 256
"""Threads read in one look: few at first, so that they are there at once."""
ALL_THREADS = 100_000
"""The same where no index leads by thread, so that each look goes through the whole table."""
SCAN_THREADS, SCAN_ROWS = 64, 2000
"""How much of a scan is planned, and read, in one look."""


class SqliteStore:
    """One SQLite file as a `Store`. Cursors are rowids; `size_bytes` of a header is its checkpoint and metadata, without writes.

    `tables` names the checkpoints of the set to show where the file holds several. `ignore_wal` shows the main file alone, for a
    `-wal` that belongs to another state of it. Raises OpenError when the file is no such database.
    """

    kind = "sqlite"
    layout: str
    capabilities: frozenset[Capability]

    def __init__(self, location: str, *, tables: str | None = None, ignore_wal: bool = False) -> None:
        self._file = SqliteFile(location, ignore_wal=ignore_wal)
        self.location = self._file.location
        self._held = threading.local()
        self._damage = Damage(self.token, lambda: self._file.is_cut)
        self._recent = Recent()
        self._waiting: dict[str, set[Address]] = {}
        """Thread -> checkpoints that had only writes when it was looked at last."""
        self._keys_as_text = self._told_keys = False
        self._asked_keys: object = None
        self._layout: Layout | None = None
        self._asked = tables
        self.view = View(tables, ignore_wal)
        """What is shown; once the file was read, with the name of its table whether or not that was asked for."""
        try:
            self._look(lambda queries: None)
            if not ignore_wal:
                self._compare_with_wal()
        except OpenError:
            self._file.close()
            raise

    def token(self) -> object:
        held = getattr(self._held, "token", None)
        return held if held is not None else self._file.token()

    def problems(self) -> list[Problem]:
        layout = self._layout
        return [*self._file.problems(), *(layout.problems if layout is not None else ()), *self._damage.problems()]

    def close(self) -> None:
        self._file.close()

    def together(self, work: Callable[[], T]) -> T:
        """Run `work` with all reads that this thread does in it on one snapshot and one connection.

        For many small reads in a row. It must be short, since it holds a transaction, and repeatable, since it runs again
        when the file moved under it.
        """
        return self._look(lambda queries: work())

    def peek(self, read: Callable[[sqlite3.Connection, Layout], T]) -> T:
        """One look at whatever else the file holds, beside the tables that this store reads."""
        return self._look(lambda queries: queries.apart(read))

    def table_sets(self) -> list[CountedSet]:
        """All sets of checkpoints and writes in this file, with what each holds."""

        def read(connection: sqlite3.Connection, layout: Layout) -> list[CountedSet]:
            return [
                CountedSet(
                    one.checkpoints, one.writes, *counted(connection, one.checkpoints),
                    one.checkpoints == layout.checkpoints.plain_name,
                )
                for one in layout.sets
            ]  # fmt: skip

        return self.peek(read)

    # ---- lists

    def threads(self) -> Iterator[ThreadKeys]:
        last: object = None
        layout = self._layout
        quick = layout is not None and layout.checkpoints.index is not None
        size, more = (FIRST_THREADS, MORE_THREADS) if quick else (ALL_THREADS, ALL_THREADS)
        while True:
            page, last = self._look(partial(Queries.threads, last=last, size=size))
            yield from page
            if last is None:
                break
            size = more
        self._look(self._note_leftover_writes)

    def namespaces(self, thread_id: str) -> tuple[str, ...]:
        """The namespaces of one thread, sorted."""
        return self._look(lambda queries: queries.namespaces(thread_id))

    def written_namespaces(self, thread_id: str) -> tuple[str, ...]:
        """The namespaces that a thread's writes name, sorted."""
        return self._look(lambda queries: queries.written_namespaces(thread_id))

    def summaries(self, batch: Sequence[ThreadKeys]) -> dict[str, Summary]:
        """What a list says of threads that follow each other in it; those for which it takes a look of its own are left out."""
        found = self._look(lambda queries: queries.summaries(batch))
        for keys in batch:
            if (summary := found.get(keys.thread_id)) is not None and summary.encrypted:
                self._note_mixture(keys.thread_id, summary.encrypted, keys.checkpoints)
        return found

    def outline(self, thread_id: str) -> Outline | None:
        """A thread without its metadata and blobs; None where ids do not tell which checkpoints are the first and the last."""
        found = self._look(lambda queries: queries.outline(thread_id))
        if found is not None:
            self._note_mixture(thread_id, found.encrypted, len(found.links))
        return found

    def chain(self, thread_id: str, longer_than: int) -> Chain | None:
        return self._look(lambda queries: queries.chain(thread_id, longer_than))

    def line(self, thread_id: str, longer_than: int) -> Chain | Forked | None:
        return self._look(lambda queries: queries.line(thread_id, longer_than))

    def is_inside(self, thread_id: str, ref: str, *, in_part: bool = False) -> bool:
        return self._look(lambda queries: queries.is_inside(thread_id, ref, in_part=in_part))

    def survey(self, thread_id: str, chain: Chain) -> Survey | None:
        found = self._look(lambda queries: queries.survey(thread_id, chain))
        if found is not None:
            self._note_mixture(thread_id, found.encrypted, len(chain))
        return found

    def headers_between(self, first: Address, last: Address) -> list[Checkpoint]:
        return self._look(lambda queries: queries.headers_between(first, last))

    def headers_at(self, rowids: Sequence[int]) -> list[Checkpoint]:
        return self._look(lambda queries: queries.headers_at(rowids))

    def checkpoints(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, Checkpoint]]:
        found = self._look(lambda queries: queries.checkpoints(thread_id, after))
        self._note_odd_ids(thread_id, found)
        if not after:
            self._note_mixture(thread_id, sum(header.encrypted for _, header in found), len(found))
        return found

    def gather(self, thread_id: str) -> Gathered | None:
        """`checkpoints` of a whole thread in columns; None where only those tell."""
        found = self._look(lambda queries: queries.gather(thread_id))
        if found is not None:
            self._note_mixture(thread_id, found.encrypted, len(found.headers))
        return found

    def metadata(self, thread_id: str, ns: str, take: Callable[[bytes], T]) -> Mapping[str, T]:
        return self._look(lambda queries: queries.metadata(thread_id, ns, take))

    def census(self, thread_id: str, upto: int, writes_upto: int) -> tuple[int, object] | None:
        return self._look(lambda queries: queries.census(thread_id, upto, writes_upto))

    def write_bytes(self, thread_id: str) -> int | None:
        """Bytes of the values of all writes of a thread; None where a damaged table does not tell."""
        return self._look(lambda queries: queries.write_bytes(thread_id))

    def write_headers(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, WriteRow]]:
        waits: set[Address] | None = None

        def read(queries: Queries) -> list[tuple[int, WriteRow]]:
            nonlocal waits
            found = queries.write_headers(thread_id, after)
            waits = self._note_waiting_writes(queries, thread_id, [row for _, row in found] if after else None)
            return found

        found = self._look(read)
        if waits is not None:
            self._waiting[thread_id] = waits
        return found

    def writes_end(self, thread_id: str) -> int:
        def read(queries: Queries) -> int:
            self._note_waiting_writes(queries, thread_id)
            return queries.writes_end(thread_id)

        return self._look(read)

    def task_keys(self, thread_id: str) -> Sequence[tuple[str, str, str]]:
        return self._look(lambda queries: queries.task_keys(thread_id))

    # ---- rows by key

    def write_headers_under(self, addresses: Iterable[Address]) -> dict[Address, Sequence[WriteRow]]:
        wanted = list(addresses)
        found = self._look(lambda queries: queries.write_headers_under(wanted))
        return {address: under for address, under in found.items() if under}

    def raw(self, addresses: Iterable[Address]) -> dict[Address, RawCheckpoint]:
        def read(wanted: Sequence[Address]) -> dict[Address, RawCheckpoint]:
            return self._look(lambda queries: queries.raws(wanted))

        return self._recent.get("raw", self.token(), addresses, read, rows.raw_size)

    def writes(self, addresses: Iterable[Address]) -> dict[Address, tuple[WriteRow, ...]]:
        def read(wanted: Sequence[Address]) -> dict[Address, tuple[WriteRow, ...]]:
            return self._look(lambda queries: queries.writes_under(wanted))

        found = self._recent.get("writes", self.token(), addresses, read, rows.writes_size)
        return {address: under for address, under in found.items() if under}

    def writes_lost(self, address: Address) -> bool:
        """Whether writes under a checkpoint may be missing because of damage; known once they were read."""
        layout = self._layout
        return layout is not None and layout.writes is not None and self._damage.lost_under(layout.writes, address)

    def later_lost(self, address: Address) -> bool:
        """Whether a checkpoint of the same namespace with a larger id cannot be read; known once the thread was listed."""
        return self._layout is not None and self._damage.lost_after(self._layout.checkpoints, address)

    # ---- streams

    def scan(self, thread_id: str | None = None) -> Iterator[RawCheckpoint]:
        """Thread by thread; the file is not held between two pages of rows."""
        threads = (keys.thread_id for keys in self.threads()) if thread_id is None else iter([thread_id])
        while batch := list(islice(threads, SCAN_THREADS)):
            todo = self._look(partial(_rowids, threads=batch))
            while todo:
                found, done = self._look(partial(Queries.raw_page, rowids=todo[:SCAN_ROWS]))
                del todo[:done]
                found.reverse()
                while found:  # each row is let go of as soon as it was handed out
                    yield found.pop()

    def scan_writes(self, thread_id: str, channels: Sequence[str]) -> Iterator[WriteRow]:
        """Ordered by (namespace, checkpoint id, task_path, task_id, idx)."""
        wanted = frozenset(channels)
        found = [entry for entry in self._look(lambda queries: queries.write_headers(thread_id)) if entry[1].channel in wanted]
        todo = [rowid for rowid, _ in sorted(found, key=rows.by_checkpoint)]
        while todo:
            page, done = self._look(partial(Queries.writes_page, rowids=todo[:SCAN_ROWS]))
            del todo[:done]
            yield from page

    # ---- one look

    def _look(self, read: Callable[[Queries], T]) -> T:
        held: tuple[sqlite3.Connection, Queries] | None = getattr(self._held, "now", None)
        if held is not None:
            return _read(*held, read)

        while True:
            try:
                return self._look_once(read)
            except OddKeys:
                self._keys_as_text = True

    def _look_once(self, read: Callable[[Queries], T]) -> T:
        saved: Saved | None = None

        def attempt(connection: sqlite3.Connection) -> T:
            nonlocal saved
            saved = self._damage.saved()
            self._held.token = self._file.token()
            try:
                queries = Queries(connection, self._as_it_can_be_read(connection, self._layout_now(connection)), self._damage)
                self._held.now = (connection, queries)
                return _read(connection, queries, read)
            finally:
                self._held.now = self._held.token = None

        def undo() -> None:
            nonlocal saved
            if saved is not None:
                self._damage.restore(saved)
                saved = None

        try:
            return self._file.look(attempt, undo)
        except sqlite3.DatabaseError as error:  # the schema itself, or what no way around it helps
            raise OpenError(f"{self.location} is damaged: {error}.", "Look for another copy of it.", "damaged") from error

    def _layout_now(self, connection: sqlite3.Connection) -> Layout:
        """Known, unless the schema changed: a newer saver adds a column to a file that is open here."""
        found = self._layout
        if found is None or found.schema_version != connection.execute("PRAGMA schema_version").fetchone()[0]:
            connection.text_factory = rows.lenient
            found = find_layout(connection, self.location, self._asked, self.view.tables)
            connection.text_factory = str
            self._layout, self.view = found, View(found.checkpoints.plain_name, self.view.without_wal)
            self.layout = found.name
            capabilities = {Capability.LIVE} if found.writes is None else {Capability.LIVE, Capability.WRITES}
            if found.name != "no-namespace":
                capabilities |= {Capability.NAMESPACES, Capability.RAW_FORK}
            self.capabilities = frozenset(capabilities)
        return found

    def _as_it_can_be_read(self, connection: sqlite3.Connection, layout: Layout) -> Layout:
        """The layout as it is, unless keys in these tables are no text."""
        if not self._keys_as_text and self._asked_keys != (now := self.token()):
            self._asked_keys = now
            self._keys_as_text = text_keys.are_odd(connection, layout)
        if not self._keys_as_text:
            return layout
        if not self._told_keys:
            self._told_keys = True
            for problem in text_keys.problems(connection, layout):
                self._damage.report(problem.kind, problem.where, problem.message)
        return text_keys.as_text(connection, layout)

    # ---- oddities

    def _note_odd_ids(self, thread_id: str, found: Sequence[tuple[int, Checkpoint]]) -> None:
        for problem in odd_ids(thread_id, found):
            self._damage.report(problem.kind, problem.where, problem.message)

    def _note_mixture(self, thread_id: str, encrypted: int, number: int) -> None:
        where = f"thread {thread_id}"
        if 0 < encrypted < number:
            message = f"{encrypted} of its {number} checkpoints are encrypted, the others are in clear."
            self._damage.report("mixed-encryption", where, message)

    def _note_waiting_writes(
        self, queries: Queries, thread_id: str, grown: Sequence[WriteRow] | None = None
    ) -> set[Address] | None:
        """The checkpoints of a thread that have only writes; None for a damaged table.

        Of a thread that was gone through before and has `grown`, only its new writes and those that waited then are looked at:
        whoever deletes a checkpoint makes the tree, and with it this, be read anew.
        """
        waits: set[Address] | None = None

        def read() -> None:
            nonlocal waits
            before = self._waiting.get(thread_id)
            if grown is None or before is None:
                found = queries.waiting(thread_id)
            else:
                new = {Address(thread_id, row.checkpoint_ns, row.checkpoint_id) for row in grown}
                found = queries.waiting_of(sorted({*before, *new}))
            waits = {address for address, _ in found}
            self._damage.replace(waiting.KIND, f"thread {thread_id}, ", waiting.in_words(queries, found))

        self._note(read)
        return waits

    def _note_leftover_writes(self, queries: Queries) -> None:
        self._note(lambda: self._damage.replace(waiting.LEFTOVER, "", waiting.without_thread(queries)))

    def _note(self, work: Callable[[], None]) -> None:
        """Compare the two tables, unless one of them is damaged."""
        layout = self._layout
        if layout is None or self._damage.is_damaged(layout.checkpoints):
            return
        try:
            work()
        except sqlite3.DatabaseError as error:
            rows.only_damage(error)

    def _compare_with_wal(self) -> None:
        """A `-wal` of an older state or of another file makes SQLite show less, or other things, than the file alone holds."""
        token = self._file.token()
        wal = token[1]
        if wal is None or wal[0] == 0 or is_in_use(f"{self._file.path}-shm"):
            return  # the log of a program at work is its own; what it shows less was deleted
        alone = self._held_alone()
        if alone is None:
            return
        try:
            number, more = self.peek(lambda connection, layout: missing(connection, layout, alone))
        except OpenError as error:
            number, more = alone.number, False
            told = error.message.removeprefix(self.location).strip()
            words = f"With its -wal the file {told} Alone it holds {number} checkpoints: "
        else:
            many = "1 checkpoint" if number == 1 else f"{number} checkpoints"
            words = f"{'At least ' if more else ''}{many} of the file alone cannot be seen with its -wal: deleted by it, or "
        if number > 0 and self._file.token() == token:
            self._damage.report(
                "wal-disagrees",
                f"{self._file.path}-wal",
                f"{words}the -wal belongs to an older state of the file, or to another one. "
                "--without-wal shows the file without it.",
            )

    def _held_alone(self) -> Held | None:
        """What the main file holds; None where it holds no checkpoints that can be read."""
        for tables in dict.fromkeys((self.view.tables, self._asked)):  # a log of another file may show tables of other names
            try:
                alone = SqliteStore(self.location, tables=tables, ignore_wal=True)
            except OpenError:
                continue
            try:
                return alone.peek(held)
            except OpenError:
                return None
            finally:
                alone.close()
        return None


def _read(connection: sqlite3.Connection, queries: Queries, read: Callable[[Queries], T]) -> T:
    """Text is taken as UTF-8, and read again byte by byte in the few files that hold other text."""
    try:
        return read(queries)
    except sqlite3.OperationalError as error:
        if "decode" not in str(error).lower() or connection.text_factory is rows.lenient:
            raise
    connection.text_factory = rows.lenient
    return read(queries)


def _rowids(queries: Queries, threads: Sequence[str]) -> list[int]:
    return [rowid for thread in threads for rowid in queries.rowids(thread)]
