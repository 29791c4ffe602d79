"""Write transactions on a scratch file, or on a user's own file when that was asked for: everything is stored, or nothing."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from studio.errors import OpenError, PatchError
from studio.forks.rows import find_tables, quote
from studio.model import Address
from studio.stores.rows import lenient
from studio.stores.sniff import refuse_odd_side_files
from studio.stores.sqlite_file import SqliteFile, turn

BUSY_SECONDS = 10.0
"""How long a write waits for another program to finish its own."""
PAUSE_SECONDS = 0.03
"""Between two tries; this process can read meanwhile."""
COMMIT_SECONDS = 2.0
"""How long a finished transaction waits for readers of a file without a write-ahead log."""


def check_writable(address: Address) -> None:
    """PatchError for ids that are not UTF-8: they can be read, but neither LangGraph nor a copy could write them again."""
    named = (("thread", address.thread_id), ("namespace", address.checkpoint_ns), ("checkpoint id", address.checkpoint_id))
    for what, text in named:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            message = f"The {what} {text!r} is not valid UTF-8, so that nothing can be stored under it."
            raise PatchError(message, "Such a thread can be read, but not forked or run.", "bad-id") from error


@contextlib.contextmanager
def write_transaction(path: str, timeout: float | None = None) -> Iterator[sqlite3.Connection]:
    """A connection inside BEGIN IMMEDIATE on an existing file: all that is done in it is stored, or nothing.

    PatchError when another writer holds the file, or when the file cannot be written.
    """
    with contextlib.ExitStack() as held:
        connection = _when_free(held, path, "BEGIN IMMEDIATE", timeout)
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise _cannot_write(path, error) from error
            raise


def refuse_triggers(connection: sqlite3.Connection, path: str, tables: Collection[str]) -> None:
    """PatchError when triggers of a user's own file would act on what is inserted into these tables: they may change or delete
    other rows, and a fork only ever adds its own."""
    on = connection.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' ORDER BY name")
    wanted = {table.lower() for table in tables}
    names = [str(name) for name, table in on if str(table).lower() in wanted]
    if names:
        raise PatchError(
            f"{path} has triggers on its tables ({', '.join(names)}), which may change other rows. Nothing was stored.",
            "Fork into the scratch file: leave out --in-place.",
            "has-triggers",
        )


@contextlib.contextmanager
def keeping_foreign_keys(connection: sqlite3.Connection, path: str, tables: Collection[str]) -> Iterator[None]:
    """PatchError when what is inserted inside refers to rows that are not there. SQLite itself only sees to that for a program
    that asks for it, and the rows of one that does not may be wrong already: those stay out of the count."""
    ruled = [table for table in tables if connection.execute(f"PRAGMA foreign_key_list({quote(table)})").fetchone()]
    before = {table: _dangling(connection, table) for table in ruled}
    yield
    for table in ruled:
        added = _dangling(connection, table) - before[table]
        if added:
            named = ", ".join(sorted({str(parent) for parent, _ in added}))
            raise PatchError(
                f"{path} does not take these rows (FOREIGN KEY constraint failed: table {table} refers to {named}, where no such"
                " row is). Nothing was stored.",
                "Add what they refer to first, or fork into the scratch file: leave out --in-place.",
                "fork-refused",
            )


def _dangling(connection: sqlite3.Connection, table: str) -> Counter[tuple[object, object]]:
    """How often each foreign key of a table leads nowhere; none where SQLite cannot follow them at all."""
    try:
        return Counter((row[2], row[3]) for row in connection.execute(f"PRAGMA foreign_key_check({quote(table)})"))
    except sqlite3.OperationalError:  # the key names no unique column: SQLite would refuse each insert of a program that asks
        return Counter()


def check_triggers(path: str) -> None:
    """The same before another process writes: PatchError when LangGraph's inserts into this file would set off triggers."""
    with write_transaction(path) as connection:
        tables = find_tables(connection)
        if tables is not None:
            refuse_triggers(connection, path, tables.names)


def foresee_triggers(path: str) -> None:
    """The same before anything is written, by a look that leaves no trace."""

    def look(connection: sqlite3.Connection) -> None:
        tables = find_tables(connection)
        if tables is not None:
            refuse_triggers(connection, path, tables.names)

    with contextlib.closing(SqliteFile(path)) as file:
        file.look(look)


def use_wal(path: str) -> None:
    """Switch a file to a write-ahead log; SQLite does not wait by itself when another process does the same at this moment."""
    with contextlib.ExitStack() as held:
        _when_free(held, path, "PRAGMA journal_mode = WAL")


def _when_free(held: contextlib.ExitStack, path: str, statement: str, timeout: float | None = None) -> sqlite3.Connection:
    """A connection on which `statement` was done, closed by `held`, with this process' turn: no look of ours may be under way,
    since its close would drop our locks. The turn is given back while another program has the file."""
    patience = BUSY_SECONDS if timeout is None else timeout
    until = time.monotonic() + patience
    while True:
        with contextlib.ExitStack() as attempt:
            attempt.enter_context(turn(path))
            try:
                refuse_odd_side_files(path)
                connection = attempt.enter_context(contextlib.closing(_connect(path)))
                connection.execute(statement)
                connection.execute(f"PRAGMA busy_timeout = {int(COMMIT_SECONDS * 1000)}")
            except OpenError as error:
                raise PatchError(f"{error.message} Nothing was stored.", error.hint, "cannot-write") from error
            except sqlite3.Error as error:
                if not _is_locked(error) or time.monotonic() >= until:
                    raise _cannot_write(path, error, patience) from error
            else:
                held.enter_context(attempt.pop_all())
                return connection
        time.sleep(PAUSE_SECONDS)


def _connect(path: str) -> sqlite3.Connection:
    uri = Path(path).absolute().as_uri() + "?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
    connection.text_factory = lenient  # a cell may hold text that is not UTF-8
    return connection


def _is_locked(error: sqlite3.Error) -> bool:
    return "locked" in str(error) or "busy" in str(error)


def _cannot_write(path: str, error: sqlite3.Error, waited: float = COMMIT_SECONDS) -> PatchError:
    text = str(error)
    if _is_locked(error):
        return PatchError(
            f"{path} stayed locked for {waited:g} seconds: another program is writing to it. Nothing was stored.",
            "Wait until that program is done, or fork into another file with --scratch FILE.",
            "locked",
        )
    if "readonly" in text or "unable to open" in text:
        return PatchError(
            f"{path} cannot be written ({text}). Nothing was stored.",
            "Fork into a scratch file (--scratch FILE) in a folder where you may write.",
            "read-only",
        )
    if isinstance(error, sqlite3.IntegrityError):
        return PatchError(
            f"{path} does not take these rows ({text}). Nothing was stored.",
            "Its tables have rules of their own: fork into another file with --scratch FILE.",
            "cannot-write",
        )
    return PatchError(f"{path}: {text}. Nothing was stored.", "", "cannot-write")
