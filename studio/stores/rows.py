"""Between the rows of the two tables and the model: which columns are asked for, how keys are bound, what a row becomes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from studio.model import Address, Checkpoint, RawCheckpoint, WriteRow
from studio.stores.headers import HEAD_BYTES, created_at, step_and_source
from studio.stores.layout import Layout, Table
from studio.stores.sealed import is_sealed

Row = tuple[Any, ...]

SIZE = "CASE typeof(checkpoint) WHEN 'text' THEN length(CAST(checkpoint AS BLOB)) ELSE length(checkpoint) END"
"""Bytes of a checkpoint; for a blob SQLite reads them from the row's header alone."""


def header_columns(layout: Layout, head: str = f"substr(checkpoint, 1, {HEAD_BYTES})") -> str:
    table = layout.checkpoints
    behind = f"{table.or_null('metadata')}, {table.or_null('type')}"
    return f"rowid, {table.keys}, {layout.parent}, {head}, {SIZE}, {behind}"


def header_columns_before_blob(layout: Layout) -> str:
    """The part of a header that can be read when the pages behind the row's first one are damaged."""
    table = layout.checkpoints
    return f"rowid, {table.keys}, {layout.parent}, x'', length(checkpoint), NULL, {table.or_null('type')}"


def raw_columns(layout: Layout) -> str:
    """The head is not asked for: SQLite would read the whole blob for it once more."""
    return f"{header_columns(layout, head='NULL')}, checkpoint"


def write_columns(table: Table, value: str = "NULL") -> str:
    """Column 6 is the channel; `value` is the column of that name where values are wanted."""
    return f"rowid, {table.ns}, {table.id}, task_id, {table.or_null('task_path')}, idx, channel, {table.or_null('type')}, {value}"


def compared(column: str, value: object, utf16: str, operator: str = "=") -> tuple[str, list[object]]:
    """A comparison with a bound value."""
    try:
        place, bound = placed(value, utf16)
    except UnicodeEncodeError:
        return f"{column} {operator} NULL", []  # never true: no text of a UTF-8 file is read as half a surrogate pair
    return f"{column} {operator} {place}", [bound]


def placed(value: object, utf16: str) -> tuple[str, object]:
    """How a value is bound: its place in the SQL and what stands for it there.

    Text that is not UTF-8 is bound as bytes, which SQLite takes as text. UnicodeEncodeError for half a surrogate pair, which only
    UTF-16 can hold.
    """
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            stored = value.encode(utf16, "surrogatepass") if utf16 else value.encode("utf-8", "surrogateescape")
            return "CAST(? AS TEXT)", stored
    return "?", value


def in_thread(thread_id: str, after: int, utf16: str) -> tuple[str, list[object]]:
    """WHERE for one thread; new rows are looked for at the table's end instead of in the thread's whole index."""
    where, values = compared("+thread_id" if after else "thread_id", thread_id, utf16)
    return (f"WHERE {where} AND rowid > ?", [*values, after]) if after else (f"WHERE {where}", values)


def at(table: Table, address: Address, utf16: str, last: str = "=") -> tuple[str, list[object]]:
    """WHERE for the rows under one address: a look-up in the primary key. `last` compares the checkpoint id."""
    parts, values = [], []
    keys = (
        (address.thread_id, "thread_id", "="),
        (address.checkpoint_ns, table.ns, "="),
        (address.checkpoint_id, table.id, last),
    )
    for value, column, operator in keys:
        where, bound = compared(column, value, utf16, operator)
        parts.append(where)
        values += bound
    return "WHERE " + " AND ".join(parts), values


def header(row: Row) -> tuple[int, Checkpoint]:
    rowid, thread, ns, identity, parent, head, size, metadata, tag = row[:9]
    if type(thread) is not str or type(ns) is not str or type(identity) is not str:
        thread, ns, identity = text_of(thread), text_of(ns), text_of(identity)
    if type(metadata) is not bytes or type(head) is not bytes:
        metadata, head = bytes_of(metadata), bytes_of(head)
    if parent is not None and type(parent) is not str:
        parent = text_of(parent)
    step, source = step_and_source(metadata)
    return rowid, Checkpoint(
        Address(thread, ns, identity),
        parent,
        step,
        source,
        created_at(head, identity),
        (size or 0) + len(metadata),
        encrypted=isinstance(tag, str) and is_sealed(tag),
    )


def headers(
    found: Iterable[Row], thread_id: str, table: Table, odd: Callable[..., Exception]
) -> list[tuple[int, Checkpoint]] | None:
    """`header` for the rows of one thread, with one object for each id that they share; None when one is of another thread.

    Where a key is no text, what `odd` makes of the table and the keys is raised.
    """
    out: list[tuple[int, Checkpoint]] = []
    ids: dict[str, str] = {}
    words: dict[str, str] = {}
    sealed: dict[Any, bool] = {}
    for row in found:
        rowid, thread, ns, identity, parent, head, size, metadata, tag = row
        if thread != thread_id and text_of(thread) != thread_id:
            return None
        if type(ns) is not str or type(identity) is not str or type(thread) is not str:
            raise odd(table, thread, ns, identity)
        if type(metadata) is not bytes or type(head) is not bytes:
            out.append(header(row))
            continue
        ids[identity] = identity
        if parent is not None:
            parent = ids.get(parent, parent) if type(parent) is str else text_of(parent)
        step, source = step_and_source(metadata)
        if source is not None:
            source = words.setdefault(source, source)
        if tag not in sealed:
            sealed[tag] = isinstance(tag, str) and is_sealed(tag)
        address = Address(thread_id, words.setdefault(ns, ns), identity)
        bytes_in_all = (size or 0) + len(metadata)
        at = created_at(head, identity)
        out.append((rowid, Checkpoint(address, parent, step, source, at, bytes_in_all, encrypted=sealed[tag])))
    return out


def raw(row: Row) -> RawCheckpoint:
    tag, blob = row[8], bytes_of(row[9])
    return RawCheckpoint(
        header(row if row[5] is not None else (*row[:5], blob[:HEAD_BYTES], *row[6:]))[1],
        tag if tag is None else text_of(tag),
        blob,
        "json" if row[7] is not None else None,
        bytes_of(row[7]),
    )


def write(row: Row, same: dict[Any, Any]) -> tuple[int, WriteRow]:
    """`same` keeps one object of each text: rows repeat a few of them thousands of times."""
    rowid, ns, identity, task, path, idx, channel, tag, value = row
    if type(ns) is not str or type(identity) is not str or type(task) is not str or type(channel) is not str:
        ns, identity, task, channel = text_of(ns), text_of(identity), text_of(task), text_of(channel)
    keep = same.setdefault
    return rowid, WriteRow(
        keep(ns, ns),
        keep(identity, identity),
        keep(task, task),
        path if path is None else keep(path, path if type(path) is str else text_of(path)),
        idx if isinstance(idx, int) else 0,
        keep(channel, channel),
        tag if tag is None else keep(tag, tag if type(tag) is str else text_of(tag)),
        value if value is None or type(value) is bytes else bytes_of(value),
    )


def write_order(row: WriteRow) -> tuple[str, str, int]:
    """How LangGraph applies the writes under a checkpoint."""
    return row.task_path or "", row.task_id, row.idx


def by_checkpoint(entry: tuple[int, WriteRow]) -> tuple[str, str, str, str, int]:
    row = entry[1]
    return row.checkpoint_ns, row.checkpoint_id, *write_order(row)


def raw_size(row: RawCheckpoint) -> int:
    """About what a row takes in memory."""
    return len(row.blob) + len(row.metadata) + 600


def writes_size(rows: tuple[WriteRow, ...]) -> int:
    return sum(len(row.value or b"") + 400 for row in rows) + 100


def text_of(value: object) -> str:
    """An id of any stored type as text: bytes that are not UTF-8 become lone surrogates, NULL becomes empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return lenient(value)
    return "" if value is None else str(value)


def bytes_of(value: object) -> bytes:
    """A stored blob; text (JSON that other writers store as such) in UTF-8."""
    if isinstance(value, bytes):
        return value
    return b"" if value is None else text_of(value).encode("utf-8", "surrogateescape")


def lenient(data: bytes) -> str:
    """A `text_factory` for files with text that is not UTF-8; slower than `str`."""
    return data.decode("utf-8", "surrogateescape")


def only_damage(error: sqlite3.DatabaseError) -> None:
    """Return after damage of the file; raise again what another attempt or the caller must deal with."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if not name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_TOOBIG")):
        raise error
