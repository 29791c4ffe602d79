"""Shapes that no saver writes: sound files whose parts are of another kind, size or number than their place asks for.

Like `mutations`, each is a function of a path and a random generator. Nothing here breaks a page or a byte: what a reader takes
for granted about columns, versions, sends, writes, namespaces and tables is what goes wrong.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack

from benchmarks.mutations import Mutation, rows, set_field, some_rows, with_change
from benchmarks.odd_values import (
    CELLS,
    DELTAS,
    FIELDS,
    HOSTILE_OBJECTS,
    INDEXES,
    METADATA,
    NAMES,
    NAMESPACES,
    SENDS,
    TASK_IDS,
    TASK_PATHS,
    VERSIONS,
    WHOLE_METADATA,
    WRITTEN,
    Ext,
    packed,
    unpacked,
)

MANY = 1500
"""Rows that are added at once: enough for what is quadratic or recursive to be noticed."""
MOST_BYTES = 2 << 20
"""What added rows hold together: a file that is slow because it is large tells nothing."""


# ---- fields of rows


def _blob(connection: sqlite3.Connection, table: str, column: str, rowid: int) -> bytes:
    found = connection.execute(f'SELECT "{column}" FROM "{table}" WHERE rowid = ?', (rowid,)).fetchone()[0]
    return found if isinstance(found, bytes) else b""


def _fields(path: Path, rng: random.Random, column: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change the map that a column holds, in some rows."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        for rowid in some_rows(connection, table, rng):
            try:
                value, as_json = unpacked(_blob(connection, table, column, rowid))
                if isinstance(value, dict):
                    set_field(connection, table, column, rowid, packed(change(value), as_json))
            except (ValueError, TypeError, RecursionError):  # a row that is no map, or a value that its format cannot hold
                continue

    rows(path, work, rng, holding=(column,))


def odd_fields(path: Path, rng: random.Random) -> None:
    """One or a few fields of a checkpoint hold another kind of thing."""

    def change(value: dict[str, Any]) -> dict[str, Any]:
        names = rng.sample(sorted(FIELDS), rng.choice((1, 1, 2, 5)))
        return {**value, **{name: rng.choice(FIELDS[name]) for name in names}}

    _fields(path, rng, "checkpoint", change)


def odd_versions(path: Path, rng: random.Random) -> None:
    """Versions that do not compare, do not parse, or are not even scalars."""

    def spoilt(versions: Any) -> Any:
        if not isinstance(versions, dict) or not versions:
            return versions
        names = list(versions) if rng.random() < 0.2 else rng.sample(list(versions), rng.randrange(1, len(versions) + 1))
        same = rng.choice((None, rng.choice(VERSIONS)))
        return {**versions, **{name: rng.choice(VERSIONS) if same is None else same for name in names}}

    def change(value: dict[str, Any]) -> dict[str, Any]:
        seen = value.get("versions_seen")
        found = dict(value)
        if rng.random() < 0.7:
            found["channel_versions"] = spoilt(value.get("channel_versions"))
        if rng.random() < 0.7 and isinstance(seen, dict):
            found["versions_seen"] = {name: spoilt(versions) for name, versions in seen.items()}
        return found

    _fields(path, rng, "checkpoint", change)


def odd_channels(path: Path, rng: random.Random) -> None:
    """Channels with odd names, values of another kind, values without a version and versions without a value."""

    def change(value: dict[str, Any]) -> dict[str, Any]:
        values = value.get("channel_values")
        if not isinstance(values, dict):
            return value
        channels = dict(values)
        for _ in range(rng.choice((1, 1, 3))):
            way = rng.randrange(4)
            name = rng.choice(list(channels)) if channels else "a"
            if way == 0:
                channels.pop(name, None)
            elif way == 1:
                channels[name] = rng.choice((*HOSTILE_OBJECTS, *DELTAS))
            elif way == 2:
                name = rng.choice([one for one in NAMES if not isinstance(one, list | dict)])
                channels[name] = rng.choice((*HOSTILE_OBJECTS, *DELTAS))
                versions = value.get("channel_versions")
                if isinstance(versions, dict) and rng.random() < 0.5:
                    value = {**value, "channel_versions": {**versions, name: rng.choice(VERSIONS)}}
            else:
                channels["__pregel_tasks"] = rng.choice(SENDS)
        return {**value, "channel_values": channels}

    _fields(path, rng, "checkpoint", change)


def odd_metadata(path: Path, rng: random.Random) -> None:
    def change(value: dict[str, Any]) -> dict[str, Any]:
        names = rng.sample(sorted(METADATA), rng.choice((1, 1, 2, 6)))
        return {**value, **{name: rng.choice(METADATA[name]) for name in names}}

    _fields(path, rng, "metadata", change)


def whole_metadata(path: Path, rng: random.Random) -> None:
    """The column of metadata as number, text, another encoding, or no map at all."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        for rowid in some_rows(connection, table, rng):
            set_field(connection, table, "metadata", rowid, rng.choice(WHOLE_METADATA), as_text=rng.random() < 0.1)

    rows(path, work, rng, holding=("metadata",))


def inside_objects(path: Path, rng: random.Random) -> None:
    """What a stored object is made of: its module, class, arguments, method; also in objects inside it."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        column = "checkpoint" if "checkpoint" in columns else "value"
        for rowid in some_rows(connection, table, rng):
            try:
                value, as_json = unpacked(_blob(connection, table, column, rowid))
                if not as_json:
                    set_field(connection, table, column, rowid, packed(changed_objects(value, rng, 0), False))
            except (ValueError, TypeError, RecursionError):
                continue

    rows(path, work, rng, holding=("type",))


def changed_objects(value: Any, rng: random.Random, depth: int) -> Any:
    """A copy in which about one object on the way is another one."""
    if depth > 20:
        return value
    if isinstance(value, Ext):
        inner = (
            ormsgpack.unpackb(value.payload, ext_hook=Ext, option=ormsgpack.OPT_NON_STR_KEYS) if value.code != 6 else [value.code]
        )
        if rng.random() < 0.5:
            inner = changed_objects(inner, rng, depth + 1)
        elif rng.random() < 0.2:
            return Ext(rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 127)), value.payload)
        else:
            inner = with_change(inner, rng, HOSTILE_OBJECTS)
        return Ext(value.code, packed(inner, False))
    if isinstance(value, dict) and value:
        name = _towards_objects(value, list(value), rng)
        return {**value, name: changed_objects(value[name], rng, depth + 1)}
    if isinstance(value, list) and value:
        at = _towards_objects(value, list(range(len(value))), rng)
        return [*value[:at], changed_objects(value[at], rng, depth + 1), *value[at + 1 :]]
    return value


def _towards_objects(value: Any, keys: list[Any], rng: random.Random) -> Any:
    better = [key for key in keys if isinstance(value[key], Ext | dict | list)]
    return rng.choice(better or keys)


def odd_writes(path: Path, rng: random.Random) -> None:
    """Rows of writes of every special channel with values of another kind, also among the pending ones of a head."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        for rowid in some_rows(connection, table, rng):
            channel = rng.choice(sorted(WRITTEN))
            value = rng.choice(WRITTEN[channel])
            as_json = "type" not in columns or rng.random() < 0.2
            try:
                blob = packed(value, as_json)
            except (ValueError, TypeError):
                continue
            if rng.random() < 0.7:
                set_field(connection, table, "channel", rowid, channel)
            set_field(connection, table, "value", rowid, blob)
            if "type" in columns:
                tag = "json" if as_json else "msgpack"
                set_field(
                    connection,
                    table,
                    "type",
                    rowid,
                    tag if rng.random() < 0.9 else rng.choice(("null", "bytes", "json", "msgpack")),
                )
            if rng.random() < 0.3:
                set_field(connection, table, "idx", rowid, rng.choice(INDEXES))

    rows(path, work, rng, holding=("channel", "value"))


def odd_tasks(path: Path, rng: random.Random) -> None:
    """Positions, paths and ids of the tasks that wrote."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        odd = {"idx": INDEXES, "task_path": TASK_PATHS, "task_id": TASK_IDS}
        names = [name for name in odd if name in columns]
        same = rng.random() < 0.3
        for rowid in some_rows(connection, table, rng):
            name = rng.choice(names)
            value = odd[name][0] if same else rng.choice(odd[name])
            set_field(connection, table, name, rowid, value, as_text=isinstance(value, bytes) and rng.random() < 0.5)

    rows(path, work, rng, holding=("channel", "task_id"))


def odd_namespaces(path: Path, rng: random.Random) -> None:
    """A whole namespace under another name, in both tables or in one, or some of its rows."""
    old, new = None, rng.choice(NAMESPACES)
    both, some = rng.random() < 0.7, rng.random() < 0.3
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.text_factory = bytes
        try:
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                name = table.decode("utf-8", "replace")
                columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
                if b"checkpoint_ns" not in columns:
                    continue
                found = [row[0] for row in connection.execute(f'SELECT DISTINCT checkpoint_ns FROM "{name}" ORDER BY 1')]
                old = (rng.choice(found) if found else b"") if old is None else old
                where = " AND rowid % 3 = 0" if some else ""
                connection.execute(
                    f'UPDATE OR IGNORE "{name}" SET checkpoint_ns = ? WHERE CAST(checkpoint_ns AS TEXT) = CAST(? AS TEXT){where}',
                    (new, old),
                )
                if not both:
                    break
        except (sqlite3.Error, OverflowError):
            pass


# ---- numbers and classes of rows


def other_class(path: Path, rng: random.Random) -> None:
    """The same content as integer, real, text or blob, in columns without a type, so that it stays so."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        connection.execute(f"CREATE TABLE plain ({', '.join(_quoted(name) for name in columns)})")
        connection.execute(f'INSERT INTO plain SELECT * FROM "{table}"')
        connection.execute(f'DROP TABLE "{table}"')
        connection.execute(f'ALTER TABLE plain RENAME TO "{table}"')
        column = _quoted(rng.choice(columns))
        kind = rng.choice(("TEXT", "BLOB", "INTEGER", "REAL"))
        part = rng.choice(("", " WHERE rowid % 2 = 0", " WHERE rowid % 7 = 1"))
        connection.execute(f'UPDATE "{table}" SET {column} = CAST({column} AS {kind}){part}')

    rows(path, work, rng)


def more_rows(path: Path, rng: random.Random) -> None:
    """Many rows more like one of those there: a fan, a chain, namespaces, threads, ids of other classes."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        rowids = some_rows(connection, table, rng)
        own = next((name for name in ("checkpoint_id", "thread_ts") if name in columns), columns[0])
        parent = next((name for name in columns if name.startswith("parent_")), own)
        names = [name for name in (own, "checkpoint_ns", "thread_id", "task_id", "idx") if name in columns]
        column, chained = rng.choice(names), rng.random() < 0.5
        listed, many = ", ".join(_quoted(name) for name in columns), rng.choice((3, 40, MANY))
        connection.execute("BEGIN")
        for rowid in rowids[:1]:
            sizes = " + ".join(f"ifnull(length({_quoted(name)}), 0)" for name in columns)
            first, size = connection.execute(f'SELECT "{own}", {sizes} FROM "{table}" WHERE rowid = ?', (rowid,)).fetchone()
            before: Any = first
            for number in range(min(many, MOST_BYTES // max(size, 1))):
                new = _another(first, number, rng) if column in (own, "thread_id", "task_id") else _another(b"a:b", number, rng)
                values = {column: new, **({parent: before} if chained and column == own and parent != own else {})}
                given = ", ".join("?" if name in values else _quoted(name) for name in columns)
                connection.execute(
                    f'INSERT OR IGNORE INTO "{table}" ({listed}) SELECT {given} FROM "{table}" WHERE rowid = ?',
                    (*(values[name] for name in columns if name in values), rowid),
                )
                before = new
        connection.execute("COMMIT")

    rows(path, work, rng)


def _another(value: Any, number: int, rng: random.Random) -> Any:
    """A key like this one, seldom of another class."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    if rng.random() < 0.01:
        return rng.choice((number, float(number), text.encode(), text.upper(), f"{text}\0", f" {text}", None))
    return f"{text}{number:06d}"


# ---- tables


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def other_file(path: Path, rng: random.Random) -> None:
    """The same rows in a file of another encoding, page size and vacuum, with tables declared in another way."""
    made = path.with_name("made.sqlite")
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(made, isolation_level=None)) as target:
            source.text_factory = bytes
            for pragma in (
                f"encoding = '{rng.choice(('UTF-8', 'UTF-16le', 'UTF-16be'))}'",
                f"page_size = {rng.choice((512, 1024, 65536))}",
                f"auto_vacuum = {rng.randrange(3)}", f"user_version = {rng.choice((0, -1, 2**31 - 1))}",
                "journal_mode = memory",
                "synchronous = off",
            ):  # fmt: skip
                target.execute(f"PRAGMA {pragma}")
            target.execute("BEGIN")
            for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                if not name.startswith(b"sqlite_"):
                    _copied(source, target, name.decode("utf-8", "replace"), rng)
            target.execute("COMMIT")
        made.replace(path)
    except (sqlite3.Error, UnicodeError, OverflowError):  # a file that is damaged already stays as it is
        pass
    finally:
        made.unlink(missing_ok=True)
        Path(f"{made}-journal").unlink(missing_ok=True)


def _copied(source: sqlite3.Connection, target: sqlite3.Connection, table: str, rng: random.Random) -> None:
    info = source.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
    columns = [row[1].decode("utf-8", "replace") for row in info]
    key = [name for name, row in zip(columns, info, strict=True) if row[5]]
    order = rng.sample(columns, len(columns)) if rng.random() < 0.4 else columns
    named = {name: rng.choice((name, name, name, name.upper(), name.title())) if rng.random() < 0.2 else name for name in columns}
    kind = rng.choice(
        ("", " TEXT", " BLOB", " INTEGER", " REAL", " NUMERIC", " TEXT COLLATE NOCASE", " VARCHAR(3) NOT NULL DEFAULT 'x'")
    )
    declared = [_quoted(named[name]) + (kind if rng.random() < 0.6 else "") for name in order]
    if rng.random() < 0.3:
        declared.append(f"odd AS ({_quoted(named[order[0]])}) {rng.choice(('STORED', 'VIRTUAL'))}")
    whole = bool(key) and rng.random() < 0.7
    if whole:
        declared.append(f"PRIMARY KEY ({', '.join(_quoted(named[name]) for name in key)})")
    as_view = rng.random() < 0.1
    stored = f"{table} data" if as_view else table
    without = " WITHOUT ROWID" if whole and rng.random() < 0.6 else ""
    target.execute(f"CREATE TABLE {_quoted(stored)} ({', '.join(declared)}){without}")
    if rng.random() < 0.3:
        target.execute(f"CREATE INDEX {_quoted('by ' + table)} ON {_quoted(stored)} ({_quoted(named[rng.choice(columns)])} DESC)")
    listed = ", ".join(_quoted(name) for name in order)
    into = ", ".join(_quoted(named[name]) for name in order)
    places = ", ".join("?" * len(order))
    for row in source.execute(f"SELECT {listed} FROM {_quoted(table)}"):
        values = [_as_stored(value) for value in row]
        target.execute(f"INSERT OR IGNORE INTO {_quoted(stored)} ({into}) VALUES ({places})", values)
    if as_view:
        target.execute(f"CREATE VIEW {_quoted(table)} AS SELECT * FROM {_quoted(stored)}")


def _as_stored(value: Any) -> Any:
    """Text was read as bytes; what is UTF-8 and no msgpack of a map is text again."""
    if isinstance(value, bytes) and value[:1] not in (b"{", b"[") and len(value) < 300:
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return value


NEIGHBOURS = (
    ("store", "prefix, key, value, created_at, updated_at, expires_at, ttl_minutes"),
    ("cache", "ns, key, expiry, encoding, val"),
    ("vec'\"\u202e", 'a, "b c", "\x1b[2J", ""'),
)


def odd_neighbours(path: Path, rng: random.Random) -> None:
    """Stores, caches and tables with odd names beside the checkpoints, each row of anything."""
    name, columns = rng.choice(NEIGHBOURS)
    width = columns.count(",") + 1
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            connection.execute(f"DROP TABLE IF EXISTS {_quoted(name)}")
            connection.execute(f"CREATE TABLE {_quoted(name)} ({columns})")
            for _ in range(rng.choice((0, 1, 8, 60))):
                cells: Sequence[Any] = [rng.choice(CELLS) for _ in range(width)]
                connection.execute(f"INSERT INTO {_quoted(name)} VALUES ({', '.join('?' * width)})", cells)
        except sqlite3.Error:  # a file that is damaged already
            pass


SHAPES: tuple[Mutation, ...] = (
    odd_fields, odd_fields, odd_versions, odd_versions, odd_channels, odd_channels, odd_metadata, whole_metadata,
    inside_objects,
    inside_objects, odd_writes, odd_writes, odd_writes, odd_tasks, odd_namespaces, other_class, more_rows, other_file,
    odd_neighbours,
)  # fmt: skip
