"""The rows that the real saver wrote, laid down in each layout that a SQLite file of checkpoints can have."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from studio.model import Address, WriteRow
from tests.explain.graphs import nested
from tests.factories import config, make_shop, saver_at

CHECKPOINTS = (
    "thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB"
)
WRITES = (
    "thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, task_path TEXT, idx INTEGER, "
    "channel TEXT, type TEXT, value BLOB"
)
KEY = ("thread_id", "checkpoint_ns", "checkpoint_id", "thread_ts", "task_id", "idx")


@dataclass(frozen=True)
class StoredCheckpoint:
    address: Address
    parent: str | None
    tag: str | None
    blob: bytes
    metadata: bytes


@dataclass
class Rows:
    """What a file holds, each list oldest first. `WriteRow` has no thread, so that stands beside it."""

    checkpoints: list[StoredCheckpoint] = field(default_factory=list)
    writes: list[tuple[str, WriteRow]] = field(default_factory=list)


@dataclass(frozen=True)
class SqliteLayout:
    """`columns` of both tables are named as the current release does; `old` names and drops them as LangGraph 0.1 did."""

    name: str = "current"
    checkpoints: str = "checkpoints"
    writes: str | None = "writes"
    without: tuple[str, ...] = ()
    old: bool = False
    encoding: str = "UTF-8"
    more: str = ""

    def columns(self, declared: str) -> list[str]:
        found = [column for column in declared.split(", ") if column.split()[0] not in self.without]
        names = {"checkpoint_id": "thread_ts", "parent_checkpoint_id": "parent_ts"} if self.old else {}
        return [" ".join([names.get(column.split()[0], column.split()[0]), *column.split()[1:]]) for column in found]


def record(path: Path) -> Rows:
    """A file by the real saver: the shop, a graph three levels deep, odd names, and a pickle that must not be loaded."""
    make_shop(path)
    with saver_at(path) as saver:
        graph = nested().compile(checkpointer=saver)
        graph.invoke({"topic": "tea"}, config("deep"))
        graph.invoke({"topic": "tea"}, config("z/ ödd:name|\u202e"))
    with sqlite3.connect(path) as connection:
        insert(connection, SqliteLayout(), pickled())
    connection.close()
    return read(path)


def pickled() -> StoredCheckpoint:
    address = Address("pickled", "", "1f000000-0000-6000-8000-000000000001")
    return StoredCheckpoint(address, None, "pickle", b"cantigravity\nfly\n(tR.", b'{"source": "loop", "step": 1, "parents": {}}')


def read(path: Path) -> Rows:
    """The rows of a file in the current layout, by a look of its own."""
    connection = sqlite3.connect(path)
    try:
        rows = Rows()
        for *key, parent, tag, blob, metadata in connection.execute("SELECT * FROM checkpoints ORDER BY rowid"):
            rows.checkpoints.append(StoredCheckpoint(Address(*key), parent, tag, blob, metadata))
        for thread, *row in connection.execute(
            f"SELECT {', '.join(part.split()[0] for part in WRITES.split(', '))} FROM writes ORDER BY rowid"
        ):
            rows.writes.append((thread, WriteRow(*row)))
        return rows
    finally:
        connection.close()


def seen_in(layout: SqliteLayout, rows: Rows) -> Rows:
    """The same rows as a file of this layout can tell them."""
    no_tag, no_path = "type" in layout.without, "task_path" in layout.without
    kept = [row for row in rows.checkpoints if not layout.old or not row.address.checkpoint_ns]
    writes = [entry for entry in rows.writes if layout.writes is not None and (not layout.old or not entry[1].checkpoint_ns)]
    return Rows(
        [StoredCheckpoint(row.address, row.parent, None if no_tag else row.tag, row.blob, row.metadata) for row in kept],
        [
            (
                thread,
                WriteRow(
                    row.checkpoint_ns, row.checkpoint_id, row.task_id, None if no_path else row.task_path, row.idx, row.channel,
                    None if no_tag else row.tag, row.value,
                ),
            )
            for thread, row in writes
        ],
    )  # fmt: skip


def lay_down(path: Path, layout: SqliteLayout, rows: Rows) -> None:
    """A new file with these rows in this layout."""
    connection = sqlite3.connect(path)
    try:
        connection.execute(f"PRAGMA encoding = '{layout.encoding}'")
        for name, declared in ((layout.checkpoints, CHECKPOINTS), (layout.writes, WRITES)):
            if name is not None:
                columns = layout.columns(declared)
                key = ", ".join(column.split()[0] for column in columns if column.split()[0] in KEY)
                connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join(columns)}{layout.more}, PRIMARY KEY ({key}))")
        held = seen_in(layout, rows)
        for checkpoint in held.checkpoints:
            insert(connection, layout, checkpoint)
        for thread, write in held.writes:
            insert_write(connection, layout, thread, write)
        connection.commit()
    finally:
        connection.close()


def insert(connection: sqlite3.Connection, layout: SqliteLayout, row: StoredCheckpoint) -> None:
    connection.execute(*insertion(layout, row))


def insert_write(connection: sqlite3.Connection, layout: SqliteLayout, thread: str, row: WriteRow) -> None:
    connection.execute(*write_insertion(layout, thread, row))


def insertion(layout: SqliteLayout, row: StoredCheckpoint) -> tuple[str, list[Any]]:
    values = [*_key(row.address), row.parent, row.tag, row.blob, row.metadata]
    return _insertion(layout, layout.checkpoints, CHECKPOINTS, values)


def write_insertion(layout: SqliteLayout, thread: str, row: WriteRow) -> tuple[str, list[Any]]:
    values = [
        thread,
        row.checkpoint_ns,
        row.checkpoint_id,
        row.task_id,
        row.task_path or "",
        row.idx,
        row.channel,
        row.tag,
        row.value,
    ]
    return _insertion(layout, str(layout.writes), WRITES, values)


def _insertion(layout: SqliteLayout, table: str, declared: str, values: list[Any]) -> tuple[str, list[Any]]:
    kept = [value for column, value in zip(declared.split(", "), values, strict=True) if column.split()[0] not in layout.without]
    names = ", ".join(column.split()[0] for column in layout.columns(declared))
    return f"INSERT INTO {quoted(table)} ({names}) VALUES ({', '.join('?' * len(kept))})", kept


def _key(address: Address) -> tuple[str, str, str]:
    return address.thread_id, address.checkpoint_ns, address.checkpoint_id


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


LAYOUTS = {
    "current": SqliteLayout(),
    "no-task-path": SqliteLayout("no-task-path", without=("task_path",)),
    "no-namespace": SqliteLayout("no-namespace", without=("checkpoint_ns", "task_path", "type"), old=True),
    "renamed tables with more columns": SqliteLayout(
        checkpoints='agent "checkpoints"', writes="agent_writes", more=", lineage TEXT"
    ),
    "utf-16": SqliteLayout(encoding="UTF-16"),
    "no writes": SqliteLayout(writes=None),
}
