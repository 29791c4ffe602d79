"""Ways to damage a checkpoint database: its bytes, its pages, what lies beside it, and the fields of its rows.

Each mutation is a function of a path and a random generator; the same seed damages the same file in the same way.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ormsgpack

Mutation = Callable[[Path, random.Random], None]

KEYS = ("thread_id", "checkpoint_ns", "checkpoint_id", "thread_ts", "parent_ts", "parent_checkpoint_id", "task_id", "task_path")
TAGS = ("msgpack", "json", "pickle", "bytes", "null", "msgpack+aes", "surprise", None, "", 5, "m\u202esgpack")
HOSTILE_TEXTS: tuple[Any, ...] = (
    "",
    "|",
    ":",
    "a|b:c|",
    "\0",
    "a\0b",
    "\x1b[2J\x1b]0;owned\x07",
    "\u202eevil",
    "\u2066x\u2069",
    "\x9b31m",
    "<script>alert(1)</script>",
    "[bold]x[/]",
    "é" * 300,
    "0",
    "-1",
    "head",
    "1" * 5000,
    "../../etc/passwd",
    "__interrupt__",
    "__error__",
    "__resume__",
    "__start__",
    "__end__",
    "__pregel_tasks",
    "__no_writes__",
    "__scheduled__",
    "branch:to:",
    "start:",
    "sk-proj-" + "a" * 40,
    "\U000e0041\U000e0042",
    None,
    0,
    -1,
    2**62,
    1.5,
    float("inf"),
    b"",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc3",
    b"x" * 40,
)
"""What a text column may hold in the end; bytes are stored as text that is no UTF-8, or as a blob."""


def _deep(levels: int, opening: bytes, core: bytes) -> bytes:
    return opening * levels + core


def _pickle_that_would_run() -> bytes:
    return b"cantigravity\nfly\n(S'x'\ntR."


HOSTILE_BLOBS: tuple[bytes, ...] = (
    b"",
    b"\xc1",
    b"\x80",
    b"\x90",
    b"\xc0",
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xc9\xff\xff\xff\xff\x05",
    _deep(1_000, b"\x91", b"\x01"),
    _deep(60_000, b"\x91", b"\x01"),
    _deep(20_000, b"\x81\xa1k", b"\x01"),
    _deep(30_000, b"[", b"]" * 30_000),
    _deep(9_000, b'{"a":', b"1" + b"}" * 9_000),
    b"[1",
    b"{}",
    b"[]",
    b"null",
    b"NaN",
    b'{"a":1,"a":2}',
    b'"\\ud800"',
    b"9" * 5000,
    b"\xff\xfe{\x00}\x00",
    _pickle_that_would_run(),
    b"\x80\x04\x95garbage",
    ormsgpack.packb({"v": "x", "ts": 5, "id": [], "channel_values": [], "channel_versions": 7, "versions_seen": "no"}),
    ormsgpack.packb(
        {
            "v": 4,
            "channel_values": {"a": 1},
            "channel_versions": {"a": [1]},
            "versions_seen": {"n": {"a": {}}},
            "pending_sends": [5, "x", [1]],
        }
    ),
    ormsgpack.packb(
        {
            "v": 4,
            "channel_values": None,
            "channel_versions": None,
            "versions_seen": {"__interrupt__": None},
            "updated_channels": 5,
        }
    ),
    ormsgpack.packb(
        {"v": -(2**63), "channel_values": {"__pregel_tasks": [{"node": []}], "__start__": 1, "branch:to:": 1, "": 2}}
    ),
    json.dumps(
        {"source": [], "step": "x", "parents": 5, "writes": [1], "run_id": {}, "counters_since_delta_snapshot": []}
    ).encode(),
    json.dumps({"source": "fork", "step": 1e308, "parents": {"": 1}, "writes": {"n": None, "": {"a": [1]}}}).encode(),
    json.dumps({"source": "\x1b[31m", "step": -(10**40), "writes": {"\u202e": 1}}).encode(),
    b'{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "touch owned"}}',
    ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(["os", "system", "touch owned"]))),
    ormsgpack.packb(ormsgpack.Ext(1, ormsgpack.packb(["antigravity", "fly", ["x"], "method"]))),
    ormsgpack.packb(
        {"messages": [ormsgpack.Ext(5, ormsgpack.packb(["this", "x", {"content": [1], "id": 5, "tool_calls": 3}, "m"]))]}
    ),
    ormsgpack.packb(
        [ormsgpack.Ext(9, b"\xff"), ormsgpack.Ext(3, b""), ormsgpack.Ext(2, b"\x91"), ormsgpack.Ext(6, b"\xc4\x02ab")]
    ),
)
HOSTILE_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    float("nan"),
    float("-inf"),
    -0.0,
    "",
    "\x1b[2J",
    "\u202e",
    "\0",
    b"",
    b"\xff",
    [],
    {},
    [[]],
    {"": {}},
    {1: 2},
    [None] * 50,
    "x" * 20_000,
    list(range(500)),
    "00000000000000000000000000000002.0.5",
    "branch:to:x",
    ["__start__"],
    {"id": "same"},
    [{"id": "same"}, {"id": "same"}],
    ormsgpack.Ext(1, ormsgpack.packb(["langgraph.types", "Send", ["n", {}]])),
    ormsgpack.Ext(1, ormsgpack.packb(["langgraph.types", "Send", []])),
    ormsgpack.Ext(0, b""),
    ormsgpack.Ext(5, b"\x94"),
    ormsgpack.Ext(127, b"\0"),
    ormsgpack.Ext(1, ormsgpack.packb(["langgraph.types", "Interrupt", [1]])),
)


# ---- bytes and pages


def flip_bytes(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 4, 16, 64, 400)) if content else 0):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)


def flip_near(path: Path, rng: random.Random) -> None:
    """Many flips in one small stretch: a page header, cell pointers, the record of a row."""
    content = bytearray(path.read_bytes())
    if content:
        page = _page_size(content)
        start = rng.randrange(0, max(1, len(content) // page)) * page + (100 if rng.random() < 0.1 else 0)
        for _ in range(rng.randrange(1, 12)):
            at = min(len(content) - 1, start + int(rng.expovariate(1 / 20)))
            content[at] = rng.choice((0, 1, 255, rng.randrange(256)))
    path.write_bytes(content)


def flip_header(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.randrange(1, 5)):
        if len(content) > 100:
            content[rng.randrange(16, 100)] = rng.choice((0, 1, 2, 255, rng.randrange(256)))
    path.write_bytes(content)


def flip_schema(path: Path, rng: random.Random) -> None:
    """Letters of the `CREATE TABLE` texts."""
    content = bytearray(path.read_bytes())
    at = content.find(b"CREATE TABLE")
    for _ in range(rng.randrange(1, 4)):
        if at >= 0:
            content[min(len(content) - 1, at + rng.randrange(600))] = rng.randrange(256)
    path.write_bytes(content)


def swap_pages(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    page = _page_size(content)
    count = len(content) // page
    if count > 2:
        one, other = (rng.randrange(1, count) * page for _ in range(2))
        content[one : one + page], content[other : other + page] = content[other : other + page], content[one : one + page]
    path.write_bytes(content)


def spoil_page(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    page = _page_size(content)
    count = len(content) // page
    if count > 1:
        at = rng.randrange(1, count) * page
        fill = rng.choice((bytes(page), b"\xff" * page, rng.randbytes(page), bytes(content[page : 2 * page])))
        content[at : at + page] = fill
    path.write_bytes(content)


def zero_block(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    if content:
        at, size = rng.randrange(len(content)), rng.choice((16, 200, 512, 4096, 9000))
        content[at : at + size] = bytes(len(content[at : at + size]))
    path.write_bytes(content)


def truncate(path: Path, rng: random.Random) -> None:
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.truncate(rng.choice((rng.randrange(size + 1), max(0, size - rng.randrange(1, 4096)), size // 4096 * 4096 // 2)))


def append_garbage(path: Path, rng: random.Random) -> None:
    with open(path, "ab") as file:
        file.write(rng.randbytes(rng.choice((1, 511, 4096, 20_000))))


def side_file(path: Path, rng: random.Random) -> None:
    """Something in the place of a `-wal`, `-shm` or `-journal`."""
    suffix = rng.choice(("-wal", "-wal", "-journal", "-journal", "-shm"))
    beside = Path(f"{path}{suffix}")
    if beside.exists():
        return
    magic = {"-wal": struct.pack(">II", 0x377F0682 + rng.randrange(2), 3007000), "-journal": bytes.fromhex("d9d505f920a163d7")}
    body = rng.choice((b"", bytes(32), rng.randbytes(rng.randrange(1, 9000)), path.read_bytes()[:8192]))
    beside.write_bytes(rng.choice((b"", magic.get(suffix, b""))) + body)


def real_log(path: Path, rng: random.Random) -> None:
    """A `-wal` at rest as a killed writer leaves it, whole or spoilt."""
    copy = path.with_name("writer.sqlite")
    shutil.copyfile(path, copy)
    connection = sqlite3.connect(copy, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=wal")
        connection.execute("PRAGMA synchronous=off")
        for table in _tables(connection):
            connection.execute(f'DELETE FROM "{table}" WHERE rowid % 5 = 1')
        log = Path(f"{copy}-wal").read_bytes()
        path.write_bytes(copy.read_bytes())
    except (sqlite3.Error, OSError):
        log = b""
    finally:
        connection.close()
        for name in ("", "-wal", "-shm", "-journal"):
            Path(f"{copy}{name}").unlink(missing_ok=True)
    if log:
        spoilt = bytearray(log)
        for _ in range(rng.choice((0, 0, 1, 20))):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        Path(f"{path}-wal").write_bytes(spoilt[: rng.choice((len(spoilt), rng.randrange(len(spoilt))))])


# ---- rows


def rows(
    path: Path, work: Callable[[sqlite3.Connection, str, list[str]], None], rng: random.Random, holding: tuple[str, ...] = ()
) -> None:
    """Do something to one table that has the columns `holding`; a file that is damaged already stays as it is."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.text_factory = bytes
    try:
        connection.execute("PRAGMA journal_mode=memory")
        connection.execute("PRAGMA synchronous=off")
        tables = {
            table: [row[1].decode("utf-8", "replace") for row in connection.execute(f'PRAGMA table_info("{table}")')]
            for table in _tables(connection)
        }
        fitting = [table for table, columns in tables.items() if set(holding) <= set(columns)]
        if fitting:
            table = rng.choice(fitting)
            work(connection, table, tables[table])
    except (sqlite3.Error, UnicodeError, OverflowError, TypeError, IndexError):  # what is damaged already cannot be looked up
        pass
    finally:
        connection.close()


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    names = [name.decode("utf-8", "replace") if isinstance(name, bytes) else name for (name,) in found]
    return [name for name in names if not name.startswith("sqlite_")]


def some_rows(connection: sqlite3.Connection, table: str, rng: random.Random) -> list[int]:
    rowids = [row[0] for row in connection.execute(f'SELECT rowid FROM "{table}"')]
    return rng.sample(rowids, min(len(rowids), rng.choice((1, 1, 2, 5, 40))))


def set_field(connection: sqlite3.Connection, table: str, column: str, rowid: int, value: Any, as_text: bool = False) -> None:
    place = "CAST(? AS TEXT)" if as_text else "?"
    connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = {place} WHERE rowid = ?', (value, rowid))


def spoil_key(path: Path, rng: random.Random) -> None:
    """Ids, namespaces, parents, channels, numbers: odd texts, other types, broken UTF-8, another row's."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        column = rng.choice([name for name in columns if name in KEYS or name in ("idx", "channel", "type")] or columns)
        for rowid in some_rows(connection, table, rng):
            value = rng.choice(HOSTILE_TEXTS)
            if rng.random() < 0.3:
                value = rng.choice(connection.execute(f'SELECT "{rng.choice(columns)}" FROM "{table}"').fetchall())[0]
            set_field(connection, table, column, rowid, value, as_text=isinstance(value, bytes) and rng.random() < 0.7)

    rows(path, work, rng)


def spoil_tag(path: Path, rng: random.Random) -> None:
    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        for rowid in some_rows(connection, table, rng):
            if "type" in columns:
                set_field(connection, table, "type", rowid, rng.choice(TAGS))

    rows(path, work, rng)


def spoil_blob(path: Path, rng: random.Random) -> None:
    """The bytes of a value: flipped, cut, doubled, or made to hurt."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        column = rng.choice([name for name in columns if name in ("checkpoint", "metadata", "value")] or columns)
        for rowid in some_rows(connection, table, rng):
            stored = connection.execute(f'SELECT "{column}" FROM "{table}" WHERE rowid = ?', (rowid,)).fetchone()[0]
            blob = bytearray(stored if isinstance(stored, bytes) else str(stored).encode())
            way = rng.randrange(5)
            if way == 0:
                blob = bytearray(rng.choice(HOSTILE_BLOBS))
            elif way == 1 and blob:
                del blob[rng.randrange(len(blob)) :]
            elif way == 2:
                blob = blob + blob
            elif blob:
                for _ in range(rng.choice((1, 2, 8, 40))):
                    blob[rng.randrange(len(blob))] = rng.choice((rng.randrange(256), 0xC1, 0xDF, 0xC7, 0x80, 0x9F, 0xDB))
            set_field(connection, table, column, rowid, bytes(blob), as_text=rng.random() < 0.1)

    rows(path, work, rng)


def spoil_inside(path: Path, rng: random.Random) -> None:
    """One place inside a well-formed value holds something that has no business there."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        column = rng.choice([name for name in columns if name in ("checkpoint", "metadata", "value")] or columns)
        for rowid in some_rows(connection, table, rng):
            stored = connection.execute(f'SELECT "{column}" FROM "{table}" WHERE rowid = ?', (rowid,)).fetchone()[0]
            found = changed_inside(stored if isinstance(stored, bytes) else b"", rng)
            if found is not None:
                set_field(connection, table, column, rowid, found)

    rows(path, work, rng)


def changed_inside(blob: bytes, rng: random.Random) -> bytes | None:
    """A msgpack or JSON value with something else in one or a few places; None where it cannot be read or written."""
    is_json = blob[:1] in (b"{", b"[")
    try:
        if is_json:
            value = json.loads(blob)
        else:
            value = ormsgpack.unpackb(blob, ext_hook=_as_ext, option=ormsgpack.OPT_NON_STR_KEYS)
        for _ in range(rng.choice((1, 1, 2, 6))):
            value = with_change(value, rng)
        if is_json:
            return json.dumps(value, default=str).encode("utf-8", "surrogatepass")
        return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)
    except (ValueError, TypeError, RecursionError):
        return None


def _as_ext(code: int, payload: bytes) -> Any:
    return ormsgpack.Ext(code, payload)


def with_change(value: Any, rng: random.Random, others: tuple[Any, ...] = HOSTILE_VALUES) -> Any:
    """A copy of the value in which one place, reached by a random walk, is something else, gone, or there twice."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        if rng.random() < 0.1:
            return {**value, rng.choice(("", "\x1b[2J", "\u202e", "__pregel_tasks", "branch:to:q", "0")): value[key]}
        return {**value, key: with_change(value[key], rng, others)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.15:
            return [*value, value[at]]
        return [*value[:at], with_change(value[at], rng, others), *value[at + 1 :]]
    return rng.choice(others)


def mix_rows(path: Path, rng: random.Random) -> None:
    """Rows that lose their place: deleted, given another's blob, parents in a ring."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        rowids = some_rows(connection, table, rng)
        way = rng.randrange(4)
        parent = next((name for name in columns if name.startswith("parent_")), None)
        identity = next((name for name in ("checkpoint_id", "thread_ts") if name in columns), None)
        for at, rowid in enumerate(rowids):
            other = rowids[(at + 1) % len(rowids)]
            if way == 0:
                connection.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (rowid,))
            elif way == 1 and parent and identity:
                connection.execute(
                    f'UPDATE "{table}" SET "{parent}" = (SELECT "{identity}" FROM "{table}" WHERE rowid = ?) WHERE rowid = ?',
                    (other, rowid),
                )
            elif way == 2:
                column = rng.choice(columns)
                connection.execute(
                    f'UPDATE OR IGNORE "{table}" SET "{column}" = (SELECT "{column}" FROM "{table}" WHERE rowid = ?) '
                    "WHERE rowid = ?",
                    (other, rowid),
                )
            else:
                connection.execute(
                    f'UPDATE OR IGNORE "{table}" SET rowid = ? WHERE rowid = ?', (rng.choice((-5, 0, 2**62, rowid + 7)), rowid)
                )

    rows(path, work, rng)


def without_key(path: Path, rng: random.Random) -> None:
    """The table again without its primary key, with some rows twice."""

    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        connection.execute(f'CREATE TABLE copied AS SELECT * FROM "{table}"')
        connection.execute(f"INSERT INTO copied SELECT * FROM copied WHERE rowid % {rng.randrange(1, 9)} = 0")
        connection.execute(f'DROP TABLE "{table}"')
        connection.execute(f'ALTER TABLE copied RENAME TO "{table}"')

    rows(path, work, rng)


def change_schema(path: Path, rng: random.Random) -> None:
    def work(connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        column = rng.choice(columns)
        connection.execute(
            rng.choice(
                (
                    f'DROP TABLE "{table}"',
                    f'ALTER TABLE "{table}" RENAME TO "other ""{table}"',
                    f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "x{column}"',
                    f'ALTER TABLE "{table}" ADD COLUMN "extra" TEXT',
                    f'CREATE VIEW odd AS SELECT * FROM "{table}"',
                    f'CREATE TRIGGER t AFTER UPDATE ON "{table}" BEGIN DELETE FROM "{table}"; END',
                )
            )
        )

    rows(path, work, rng)


def _page_size(content: bytes | bytearray) -> int:
    size = int.from_bytes(content[16:18], "big")
    return 65536 if size == 1 else size if size >= 512 and size & (size - 1) == 0 else 4096


MUTATIONS: tuple[Mutation, ...] = (
    flip_bytes,
    flip_bytes,
    flip_near,
    flip_near,
    flip_header,
    flip_schema,
    swap_pages,
    spoil_page,
    zero_block,
    truncate,
    append_garbage,
    side_file,
    real_log,
    spoil_key,
    spoil_key,
    spoil_key,
    spoil_tag,
    spoil_blob,
    spoil_blob,
    spoil_inside,
    spoil_inside,
    spoil_inside,
    mix_rows,
    without_key,
    change_schema,
)


def mutate(path: Path, rng: random.Random, ways: tuple[Mutation, ...] = MUTATIONS) -> list[str]:
    """Damage a file in one to three ways; returns their names. Those of rows come first: they need a file that opens."""
    chosen = rng.sample(range(len(ways)), rng.choice((1, 1, 1, 2, 3)))
    names = []
    for at in sorted(chosen, reverse=True):
        ways[at](path, rng)
        names.append(ways[at].__name__)
    return names
