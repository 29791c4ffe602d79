"""Rows as they go into a database: into columns that exist there, INSERT only.

The four layouts of LangGraph's SQLite saver differ in few columns; a table may carry more, or another
name. Nothing here alters a table or touches a row that is there.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from msgspec import Struct

from studio.errors import OpenError, PatchError
from studio.model import Address, Sealed, WriteRow
from studio.stores.layout import find_layout
from studio.stores.rows import bytes_of, placed, text_of

CHECKPOINTS = """CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT,
    type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
)"""
WRITES = """CREATE TABLE writes (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,
    task_path TEXT NOT NULL DEFAULT '', idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
)"""


class NewRow(Struct, frozen=True):
    """A checkpoint row to insert."""

    address: Address
    parent: str | None
    tag: str | None
    blob: bytes
    metadata_tag: str | None
    metadata: bytes
    sealed: Sealed | None = None
    """Where the row that this one was made from is encrypted: this one is stored the same way."""

    @property
    def stored(self) -> tuple[str | None, bytes]:
        """Tag and bytes as they go into the file."""
        return (self.tag, self.blob) if self.sealed is None else (self.sealed.tag, self.sealed.close(self.blob))


class NewWrite(Struct, frozen=True):
    """A row of `writes` to insert, with the thread that `WriteRow` leaves out."""

    thread_id: str
    row: WriteRow


class Tables(Struct, frozen=True):
    """Where checkpoints and writes are in one database."""

    checkpoints: str
    writes: str | None
    checkpoint_columns: frozenset[str]
    write_columns: frozenset[str]
    checkpoints_sql: str
    writes_sql: str | None
    utf16: str
    """Python's name of the text encoding when the database is in UTF-16, else empty."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.checkpoints, self.writes) if self.writes is not None else (self.checkpoints,)

    @property
    def id_column(self) -> str:
        return "checkpoint_id" if "checkpoint_id" in self.checkpoint_columns else "thread_ts"

    @property
    def parent_column(self) -> str:
        return "parent_checkpoint_id" if "parent_checkpoint_id" in self.checkpoint_columns else "parent_ts"

    @property
    def has_namespaces(self) -> bool:
        return "checkpoint_ns" in self.checkpoint_columns


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def find_tables(connection: sqlite3.Connection, chosen: str | None = None) -> Tables | None:
    """The tables that the reader of this file takes as checkpoints and writes, whatever their names; None when there are none.

    `chosen` names the checkpoints of the set that is meant.
    """
    try:
        layout = find_layout(connection, "", chosen)
    except OpenError:
        return None
    texts = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    writes = layout.writes
    return Tables(
        layout.checkpoints.plain_name,
        writes.plain_name if writes else None,
        layout.checkpoints.columns,
        writes.columns if writes else frozenset(),
        texts[layout.checkpoints.plain_name],
        texts[writes.plain_name] if writes else None,
        layout.utf16,
    )


def create_as(sql: str, name: str) -> str:
    """A CREATE TABLE text under another table name, and only if that table is not there yet."""
    body = re.sub(
        r"""^\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:(?:"(?:[^"]|"")*"|\[[^\]]*\]|`[^`]*`|'[^']*'|[^\s("'`\[]+)\s*\.\s*)?"""
        r"""(?:"(?:[^"]|"")*"|\[[^\]]*\]|`[^`]*`|'(?:[^']|'')*'|[^\s("'`\[]+)\s*""",
        "",
        sql,
        count=1,
        flags=re.IGNORECASE,
    )
    return f"CREATE TABLE IF NOT EXISTS {quote(name)} {body}"


_KEY_COLUMNS = ("thread_id", "checkpoint_ns", "checkpoint_id", "thread_ts", "task_id", "idx")
_KNOWN = frozenset({
    *_KEY_COLUMNS, "parent_checkpoint_id", "parent_ts", "type", "checkpoint", "metadata", "metadata_type",
    "task_path", "channel", "value",
})  # fmt: skip
"""Columns that LangGraph's savers fill, in any of the layouts."""


def unfilled(connection: sqlite3.Connection, table: str) -> list[str]:
    """Columns that need a value, have none by themselves, and that no saver of LangGraph fills."""
    return [
        name
        for name, kind, notnull, default, key in _columns(connection, table)
        if notnull and default is None and name.lower() not in _KNOWN and not (key and kind.upper() == "INTEGER")
    ]


def without_rules(connection: sqlite3.Connection, table: str, sql: str) -> str:
    """A CREATE TABLE text; where the table has rules of its own that forks could break, one with the known columns alone."""
    rules = connection.execute(f"PRAGMA foreign_key_list({quote(table)})").fetchone() or unfilled(connection, table)
    unique = any(row[3] == "u" for row in connection.execute(f"PRAGMA index_list({quote(table)})"))
    if not (rules or unique or re.search(r"\bCHECK\s*\(", sql, re.IGNORECASE)):
        return sql
    known = [(name, kind) for name, kind, *_ in _columns(connection, table) if name.lower() in _KNOWN]
    columns = ", ".join(f"{quote(name)} {kind}".rstrip() for name, kind in known)
    key = ", ".join(quote(name) for name, _ in known if name.lower() in _KEY_COLUMNS)
    return f"CREATE TABLE {quote(table)} ({columns}, PRIMARY KEY ({key}))"


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str, bool, object, bool]]:
    """(name, type, is NOT NULL, default, is part of the key)"""
    found = connection.execute(f"PRAGMA table_info({quote(table)})")
    return [(str(name), str(kind), bool(notnull), default, bool(key)) for _, name, kind, notnull, default, key in found]


def newest_id(connection: sqlite3.Connection, tables: Tables, thread_id: str) -> str:
    """The largest checkpoint id of a thread over all its namespaces; "" when there is none."""
    row = connection.execute(
        f"SELECT max({tables.id_column}) FROM {quote(tables.checkpoints)} WHERE thread_id = ?", (thread_id,)
    ).fetchone()
    return str(row[0]) if row and row[0] is not None else ""


def newest_root(connection: sqlite3.Connection, tables: Tables, thread_id: str) -> str:
    """The largest checkpoint id in a thread's root namespace, which LangGraph resumes; "" when there is none."""
    where = "thread_id = ? AND checkpoint_ns = ''" if tables.has_namespaces else "thread_id = ?"
    row = connection.execute(
        f"SELECT max({tables.id_column}) FROM {quote(tables.checkpoints)} WHERE {where}", (thread_id,)
    ).fetchone()
    return text_of(row[0]) if row and row[0] is not None else ""


def row_columns(tables: Tables) -> list[str]:
    """What a checkpoint's row holds beside its address, as far as the file has columns for it."""
    return [name for name in (tables.parent_column, "type", "checkpoint", "metadata") if name in tables.checkpoint_columns]


def write_columns(tables: Tables) -> list[str]:
    """The same of a row of `writes`."""
    names = ("task_id", "idx", "channel", "type", "value", "task_path")
    return [name for name in names if name in tables.write_columns]


def stored_row(connection: sqlite3.Connection, tables: Tables, address: Address) -> tuple[object, ...] | None:
    """The cells of `row_columns` at an address, None when there is no such row."""
    where, values = _key(tables, address)
    names = ", ".join(map(quote, row_columns(tables)))
    found: tuple[object, ...] | None = connection.execute(
        f"SELECT {names} FROM {quote(tables.checkpoints)} WHERE {where}", values
    ).fetchone()
    return found


def writes_at(connection: sqlite3.Connection, tables: Tables, address: Address) -> list[tuple[object, ...]]:
    """The cells of `write_columns` of all writes under a checkpoint."""
    if tables.writes is None:
        return []
    column = "checkpoint_id" if "checkpoint_id" in tables.write_columns else "thread_ts"
    where, values = f"thread_id = ? AND {column} = ?", [address.thread_id, address.checkpoint_id]
    if "checkpoint_ns" in tables.write_columns:
        where, values = f"{where} AND checkpoint_ns = ?", [*values, address.checkpoint_ns]
    names = ", ".join(map(quote, write_columns(tables)))
    return connection.execute(f"SELECT {names} FROM {quote(tables.writes)} WHERE {where}", values).fetchall()


def stored_blob(connection: sqlite3.Connection, tables: Tables, address: Address) -> bytes | None:
    """The blob at an address, None when there is no such row."""
    where, values = _key(tables, address)
    row = connection.execute(f"SELECT checkpoint FROM {quote(tables.checkpoints)} WHERE {where}", values).fetchone()
    if row is None:
        return None
    return bytes_of(row[0])


def has_thread(connection: sqlite3.Connection, tables: Tables, thread_id: str) -> bool:
    query = f"SELECT 1 FROM {quote(tables.checkpoints)} WHERE thread_id = ? LIMIT 1"
    return connection.execute(query, (thread_id,)).fetchone() is not None


def _key(tables: Tables, address: Address) -> tuple[str, tuple[str, ...]]:
    if tables.has_namespaces:
        return (
            f"thread_id = ? AND checkpoint_ns = ? AND {tables.id_column} = ?",
            (address.thread_id, address.checkpoint_ns, address.checkpoint_id),
        )
    return f"thread_id = ? AND {tables.id_column} = ?", (address.thread_id, address.checkpoint_id)


def insert(
    connection: sqlite3.Connection,
    tables: Tables,
    rows: Iterable[NewRow],
    writes: Iterable[NewWrite] = (),
    *,
    carried: bool = False,
) -> None:
    """Insert rows into the columns that exist. `carried` rows are copies of stored ones: those already there stay as they are.

    PatchError when a column that these tables lack would have to hold something, sqlite3.IntegrityError when a new row is there.
    """
    # Said here, since a table's own ON CONFLICT clause may replace the row that is there.
    verb = "INSERT OR IGNORE" if carried else "INSERT OR ABORT"
    for row in rows:
        tag, blob = row.stored
        values: dict[str, object] = {
            "thread_id": row.address.thread_id,
            "checkpoint_ns": row.address.checkpoint_ns,
            tables.id_column: row.address.checkpoint_id,
            tables.parent_column: row.parent,
            "type": tag,
            "checkpoint": blob,
            "metadata_type": row.metadata_tag,
            "metadata": row.metadata,
        }
        if row.address.checkpoint_ns and not tables.has_namespaces:
            raise PatchError("This file's layout has no namespaces, so a subgraph checkpoint cannot be stored in it.")
        if tag not in (None, "json") and "type" not in tables.checkpoint_columns:
            raise PatchError(f"This file's layout has no column for the value type {tag!r}.")
        _insert(connection, f"{verb} INTO {quote(tables.checkpoints)}", tables.checkpoint_columns, values, tables.utf16)
    for write in writes:
        if tables.writes is None:
            raise PatchError("This file has no table of writes, which this fork needs.")
        sealed = write.row.sealed
        values = {
            "thread_id": write.thread_id,
            "checkpoint_ns": write.row.checkpoint_ns,
            "checkpoint_id" if "checkpoint_id" in tables.write_columns else "thread_ts": write.row.checkpoint_id,
            "task_id": write.row.task_id,
            "task_path": write.row.task_path or "",
            "idx": write.row.idx,
            "channel": write.row.channel,
            "type": write.row.tag if sealed is None else sealed.tag,
            "value": write.row.value if sealed is None else sealed.blob,
        }
        _insert(connection, f"{verb} INTO {quote(tables.writes)}", tables.write_columns, values, tables.utf16)


def _insert(connection: sqlite3.Connection, into: str, columns: frozenset[str], values: dict[str, object], utf16: str) -> None:
    names = [name for name in values if name in columns]
    places, bound = zip(*(placed(values[name], utf16) for name in names), strict=True)
    connection.execute(f"{into} ({', '.join(map(quote, names))}) VALUES ({', '.join(places)})", bound)
