"""Add a branch of the scratch file to the opened file: in one transaction, checked under the lock and read back."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from studio.errors import PatchError, StudioError
from studio.forks import rows
from studio.forks.promote import Branch
from studio.forks.rows import NewRow, NewWrite, Tables
from studio.forks.scratch import Scratch, record_promoted
from studio.forks.writing import keeping_foreign_keys, refuse_triggers, write_transaction
from studio.model import Address
from studio.stores.base import Store
from studio.stores.rows import bytes_of, text_of
from studio.stores.sqlite_file import SqliteFile
from studio.stores.view import view_of

if TYPE_CHECKING:
    from studio.notes import Notes

_HINTS = {
    "has-triggers": "Promote into a copy of the file without triggers; the branch stays in the scratch file.",
    "fork-refused": "Add what they refer to first, then try again: the branch stays in the scratch file.",
    "locked": "Wait until that program is done, then try again: the branch stays in the scratch file.",
    "read-only": "Make the file and its folder writable, then try again: the branch stays in the scratch file.",
    "cannot-write": "The branch stays in the scratch file.",
    "no-audit": "Make that file writable, then try again: the branch stays in the scratch file.",
    "damaged": "Promote into a repaired copy of the file; the branch stays in the scratch file.",
    "unfilled": "Only the program that fills it can add rows there; the branch stays in the scratch file.",
    "without-wal": "Open the file as it is, with its -wal.",
}
_AGAIN = "Look at what would be added once more, then do it."


@contextlib.contextmanager
def told_for_promoting() -> Iterator[None]:
    """Refusals of a write with a hint that fits: what is promoted is safe in the scratch file."""
    try:
        yield
    except StudioError as error:
        if error.slug in _HINTS:
            raise PatchError(error.message, _HINTS[error.slug], error.slug) from error
        raise


def foresee(base: Store) -> None:
    """PatchError for what would make the file refuse, as far as a look that leaves no trace can tell."""
    path = base.location
    if not os.access(path, os.W_OK):
        raise PatchError(f"{path} cannot be written.", _HINTS["read-only"], "read-only")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.access(folder, os.W_OK) and not os.path.exists(path + "-wal"):
        message = f"{path} cannot be written, since SQLite keeps its journal beside it, and {folder} cannot be written."
        raise PatchError(message, _HINTS["read-only"], "read-only")

    def look(connection: sqlite3.Connection) -> None:
        tables = _tables(connection, base)
        refuse_triggers(connection, path, tables.names)
        refuse_unfilled(connection, path, tables)

    with told_for_promoting(), contextlib.closing(SqliteFile(path)) as file:
        try:
            file.look(look)
        except sqlite3.DatabaseError as error:
            raise PatchError(f"{path} is damaged: {error}.", _HINTS["damaged"], "damaged") from error


def append(base: Store, branch: Branch, scratch: Scratch, notes: Notes) -> list[str]:
    """Store the branch in the file of `base`; returns what could not be done afterwards, each as one sentence.

    PatchError when the file refuses or is not what was shown any more; then nothing is stored.
    """
    path = base.location
    shown, origins = branch.promotion, scratch.origins()
    added = [row.address for row in branch.new]
    record_promoted(scratch.path, added)  # says nothing of rows that are not in the file, if it refuses them
    entry: int | None = None
    try:
        with told_for_promoting(), write_transaction(path) as connection:
            tables = _tables(connection, base)
            refuse_triggers(connection, path, tables.names)
            refuse_unfilled(connection, path, tables)
            _check_again(connection, tables, branch)
            with keeping_foreign_keys(connection, path, tables.names):
                _insert(connection, tables, branch, path)
            _read_back(connection, tables, branch, path)
            for at in added:
                if at in origins:
                    notes.record_origin(at, *origins[at])
            entry = notes.audit_begin(path, "promote", shown.address, added, shown.writes)
    except PatchError:
        if entry is not None:  # the file did not take the finished transaction: somebody reads it, or the disk is full
            with contextlib.suppress(StudioError):
                notes.audit_refused(entry)
        raise
    assert entry is not None
    try:
        notes.audit_done(entry)
    except StudioError as error:
        return [f"The branch is stored, but its entry in the audit could not be completed. {error.message}"]
    return []


def _insert(connection: sqlite3.Connection, tables: Tables, branch: Branch, path: str) -> None:
    try:
        rows.insert(connection, tables, branch.new, branch.writes)
    except sqlite3.IntegrityError as error:
        raise PatchError(f"{path} does not take these rows ({error}). Nothing was stored.", _HINTS["cannot-write"]) from error


def refuse_unfilled(connection: sqlite3.Connection, path: str, tables: Tables) -> None:
    """PatchError when a row needs a value in a column of which LangGraph's savers know nothing."""
    names = [f"{table}.{column}" for table in tables.names for column in rows.unfilled(connection, table)]
    if names:
        message = f"{path} wants a value in {', '.join(names)} for each row, and a checkpoint has none. Nothing was stored."
        raise PatchError(message, _HINTS["unfilled"], "unfilled")


def moved(path: str) -> PatchError:
    return PatchError(f"{path} has changed since the rows to add were shown. Nothing was stored.", _AGAIN, "moved")


def _tables(connection: sqlite3.Connection, base: Store) -> Tables:
    tables = rows.find_tables(connection, view_of(base).tables)
    if tables is None:
        raise PatchError(f"{base.location} has no tables for checkpoints any more. Nothing was stored.", "", "no-tables")
    return tables


def _check_again(connection: sqlite3.Connection, tables: Tables, branch: Branch) -> None:
    """What was shown holds still, now that nobody else can write."""
    shown = branch.promotion
    if rows.newest_root(connection, tables, shown.address.thread_id) != (shown.head_before or ""):
        raise moved(shown.location)
    for at, blob in branch.anchors.items():
        if rows.stored_blob(connection, tables, at) != blob:
            raise moved(shown.location)
    for row in branch.new:
        if rows.stored_blob(connection, tables, row.address) is not None or rows.writes_at(connection, tables, row.address):
            raise moved(shown.location)


def _read_back(connection: sqlite3.Connection, tables: Tables, branch: Branch, path: str) -> None:
    """PatchError when the file does not hold what was inserted, byte for byte."""
    asked: dict[Address, list[NewWrite]] = {row.address: [] for row in branch.new}
    for write in branch.writes:
        asked[Address(write.thread_id, write.row.checkpoint_ns, write.row.checkpoint_id)].append(write)
    for row in branch.new:
        got = rows.stored_row(connection, tables, row.address)
        wanted = Counter(_written(write, tables) for write in asked[row.address])
        stored = Counter(tuple(map(_plain, found)) for found in rows.writes_at(connection, tables, row.address))
        if got is None or tuple(map(_plain, got)) != _expected(row, tables) or stored != wanted:
            message = f"{path} does not hold checkpoint {row.address.checkpoint_id} as it was inserted. Nothing was stored."
            raise PatchError(message, _HINTS["cannot-write"], "not-read-back")


def _expected(row: NewRow, tables: Tables) -> tuple[bytes, ...]:
    tag, blob = row.stored
    cells: dict[str, object] = {tables.parent_column: row.parent, "type": tag, "checkpoint": blob, "metadata": row.metadata}
    return tuple(_plain(cells[name]) for name in rows.row_columns(tables))


def _written(write: NewWrite, tables: Tables) -> tuple[bytes, ...]:
    row = write.row
    tag, stored = (row.tag, row.value) if row.sealed is None else (row.sealed.tag, row.sealed.blob)
    cells: dict[str, object] = {"task_id": row.task_id, "idx": row.idx, "channel": row.channel, "type": tag, "value": stored}
    cells["task_path"] = row.task_path or ""
    return tuple(_plain(cells[name]) for name in rows.write_columns(tables))


def _plain(cell: object) -> bytes:
    """A cell in one form, whether it is stored as text or as bytes."""
    return bytes_of(cell) if isinstance(cell, bytes) else bytes_of(text_of(cell))
