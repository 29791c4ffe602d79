"""What else lies in a database with checkpoints: LangGraph's long-term store and node cache, and the tables of an application.

Tables may have any size and any content. Rows are read page by page, a long value only by its beginning until the whole of it is
asked for, and each question ends after `bounded.SECONDS`.
"""

from __future__ import annotations

import codecs
import sqlite3
from collections.abc import Sequence

from msgspec import Struct, field

from studio.lazy import lazy
from studio.stores.bounded import counted, in_time
from studio.stores.layout import Layout, can_name, columns_of_tables, quoted
from studio.stores.rows import compared, text_of
from studio.stores.table_sets import is_checkpoints, is_writes

WHOLE_BYTES = 64 << 10
"""A value of a store or cache up to this size is read whole in a list."""
HEAD_BYTES = 400
NAME_BYTES = 2_000
"""How much of a namespace or a key is read in a list."""
MOST_COLUMNS = 24
MOST_NAMESPACES = 200
MOST_IN_NAMESPACE = 1_000
_ROWIDS = ("rowid", "_rowid_", "oid")

Plain = int | float | str | bytes | None


class Shape(Struct, frozen=True):
    """How the entries of a kind of table are named."""

    namespace: str
    separator: str
    value: str
    encoding: str | None


STORE = Shape("prefix", ".", "value", None)
CACHE = Shape("ns", ",", "val", "encoding")
SHAPES = {"store": STORE, "cache": CACHE}


class Neighbour(Struct, frozen=True):
    """One table of the file. `kind` is store, cache, checkpoints, writes or other."""

    name: str
    kind: str
    rows: int | None
    """Up to a bound; None where the table cannot be read."""
    more: bool
    """There are more than `rows`."""
    columns: tuple[str, ...]
    shown: bool
    """Its checkpoints or writes are those that the studio shows."""


class Cell(Struct, frozen=True):
    """A stored value, or its first bytes: `size` counts all of them."""

    value: Plain
    size: int = 0
    whole: bool = True


class Page(Struct, frozen=True):
    """Rows as column -> cell."""

    rows: list[dict[str, Cell]] = field(default_factory=list)
    more: bool = False
    lost: str = ""
    """Why the rows end before their time: damage, or a question that took too long."""
    unread: tuple[str, ...] = ()
    """Columns that no query can name, since their names are no UTF-8."""
    beyond: tuple[str, ...] = ()
    """Columns after the first `MOST_COLUMNS`."""


def tables(connection: sqlite3.Connection, layout: Layout) -> list[Neighbour]:
    """All tables but SQLite's own, in the order they were made."""
    shown = {layout.checkpoints.plain_name, *([layout.writes.plain_name] if layout.writes is not None else [])}
    found = []
    for name, columns in columns_of_tables(connection).items():
        rows, more = counted(connection, name) if can_name(name) else (None, False)
        found.append(Neighbour(name, kind_of(columns), rows, more, tuple(columns), name in shown))
    return found


def kind_of(columns: Sequence[str]) -> str:
    """What a table with these columns, in lower case, holds."""
    has = set(columns)
    if is_checkpoints(has):
        return "checkpoints"
    if is_writes(has):
        return "writes"
    if {"prefix", "key", "value", "created_at", "updated_at"} <= has:
        return "store"
    return "cache" if {"ns", "key", "encoding", "val"} <= has else "other"


def namespaces(connection: sqlite3.Connection, layout: Layout, table: Neighbour) -> tuple[list[tuple[str, int, bool]], bool]:
    """((namespace, entries up to a bound, whether there are more) of a store or cache, whether there are more namespaces)."""
    column = SHAPES[table.kind].namespace
    found: list[tuple[str, int, bool]] = []
    name = quoted(table.name)
    try:
        with in_time(connection):
            if not _has_index(connection, table.name, column):
                inside = f"SELECT {column} FROM {name} LIMIT {MOST_IN_NAMESPACE * 10}"
                query = f"SELECT {column}, count(*) FROM ({inside}) GROUP BY 1 LIMIT {MOST_NAMESPACES + 1}"
                found = [(text_of(space), number, table.more) for space, number in connection.execute(query)]
                return found[:MOST_NAMESPACES], len(found) > MOST_NAMESPACES or table.more
            where, values = f"{column} IS NOT NULL", list[object]()
            while True:
                space = connection.execute(f"SELECT min({column}) FROM {name} WHERE {where}", values).fetchone()[0]
                if space is None:
                    return found, False
                if len(found) == MOST_NAMESPACES:
                    return found, True
                same, bound = compared(column, space, layout.utf16)
                query = f"SELECT count(*) FROM (SELECT 1 FROM {name} WHERE {same} LIMIT {MOST_IN_NAMESPACE + 1})"
                number = connection.execute(query, bound).fetchone()[0]
                found.append((text_of(space), min(number, MOST_IN_NAMESPACE), number > MOST_IN_NAMESPACE))
                where, values = compared(column, space, layout.utf16, ">")
    except sqlite3.DatabaseError:
        return found, True


_SURROGATE = lazy("[\ud800-\udfff]")


def entries(
    connection: sqlite3.Connection,
    layout: Layout,
    table: Neighbour,
    *,
    namespace: str | None = None,
    key: str | None = None,
    start: int = 0,
    limit: int = 50,
    whole: bool = False,
) -> Page:
    """Rows of a table: of a store or cache those in a namespace (or below it) and of a key, in the order of the two.

    `whole` reads the values whole, whatever their size.
    """
    columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({quoted(table.name)})")]
    unread = tuple(name for name in columns if _SURROGATE.search(name))
    columns = [name for name in columns if name not in unread]
    shape = SHAPES.get(table.kind)
    read = columns if shape is not None else columns[:MOST_COLUMNS]
    left_out = unread, tuple(columns[len(read) :])
    conditions, values, order = [], list[object](), ""
    if shape is not None:
        order = f"ORDER BY {shape.namespace}, key"
        if namespace is not None:
            same, bound = compared(shape.namespace, namespace, layout.utf16)
            below = namespace + shape.separator
            start_of, bound_below = compared(f"substr({shape.namespace}, 1, {len(below)})", below, layout.utf16)
            conditions.append(f"({same} OR {start_of})")
            values += [*bound, *bound_below]
        if key is not None:
            same, bound = compared("key", key, layout.utf16)
            conditions.append(same)
            values += bound
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    reader = _Reader(connection, table, layout.utf16, shape, whole)
    rest = f"FROM {quoted(table.name)} {where} {order} LIMIT ? OFFSET ?"
    page: list[dict[str, Cell]] = []
    try:
        with in_time(connection):
            for row in connection.execute(f"SELECT {reader.selected(read)} {rest}", [*values, limit + 1, start]):
                if len(page) == limit:
                    return Page(page, True, "", *left_out)
                page.append(reader.cells(read, row))
    except sqlite3.DatabaseError as error:
        slow = error.sqlite_errorname == "SQLITE_INTERRUPT"
        return Page(page, True, "it takes too long to read on" if slow else f"the table is damaged: {error}", *left_out)
    return Page(page, False, "", *left_out)


class _Reader:
    """Reads cells by their beginning: through a row's id where it has one, since an expression would load a value whole."""

    def __init__(self, connection: sqlite3.Connection, table: Neighbour, utf16: str, shape: Shape | None, whole: bool) -> None:
        self._connection = connection
        self._table = table
        self._shape = shape
        self._whole = whole
        self._encoding, self._errors = (utf16, "surrogatepass") if utf16 else ("utf-8", "surrogateescape")
        self._rowid = next((name for name in _ROWIDS if name not in table.columns), None)
        try:
            connection.execute(f"SELECT {self._rowid or 'NULL'} FROM {quoted(table.name)} LIMIT 0")
            probe = connection.execute(
                "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table.name,)
            ).fetchone()
            if probe is None or str(probe[0]).lstrip().upper().startswith("CREATE VIRTUAL"):
                self._rowid = None
        except sqlite3.OperationalError:  # WITHOUT ROWID
            self._rowid = None

    def selected(self, columns: Sequence[str]) -> str:
        parts = [self._rowid or "NULL"]
        for column in columns:
            name = quoted(column)
            parts.append(f"typeof({name})")
            if self._rowid is not None:
                parts.append(f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name} END")
            else:
                most = self._most(column)
                cut = name if most is None else f"substr({name}, 1, {most})"
                parts.append(f"CASE WHEN typeof({name}) IN ('text', 'blob') THEN CAST({cut} AS BLOB) ELSE {name} END")
                parts.append(f"length(CAST({name} AS BLOB))")
        return ", ".join(parts)

    def cells(self, columns: Sequence[str], row: tuple[object, ...]) -> dict[str, Cell]:
        width = 2 if self._rowid is not None else 3
        found = {}
        for at, column in enumerate(columns):
            kind, value, *size = row[1 + at * width : 1 + (at + 1) * width]
            if kind not in ("text", "blob"):
                found[column] = Cell(value if isinstance(value, int | float) else None)
            elif self._rowid is not None:
                found[column] = self._by_rowid(column, row[0], kind == "text")
            else:
                raw = value if isinstance(value, bytes) else b""
                length = size[0] if isinstance(size[0], int) else len(raw)
                found[column] = self._cell(raw, length, kind == "text")
        return found

    def _by_rowid(self, column: str, rowid: object, text: bool) -> Cell:
        if not isinstance(rowid, int):
            return Cell(None, 0, False)
        with self._connection.blobopen(self._table.name, column, rowid, readonly=True) as blob:
            size, most = len(blob), self._most(column)
            raw = blob.read() if most is None or size <= most else blob.read(HEAD_BYTES if most == WHOLE_BYTES else most)
        return self._cell(raw, size, text)

    def _most(self, column: str) -> int | None:
        """Bytes of this column to read; None for all."""
        if self._whole:
            return None
        if self._shape is None:
            return HEAD_BYTES
        return WHOLE_BYTES if column.lower() == self._shape.value else NAME_BYTES

    def _cell(self, raw: bytes, size: int, text: bool) -> Cell:
        whole = len(raw) >= size
        if not text:
            return Cell(raw, size, whole)
        decoder = codecs.getincrementaldecoder(self._encoding)(self._errors)
        return Cell(decoder.decode(raw, final=whole), size, whole)


def _has_index(connection: sqlite3.Connection, table: str, column: str) -> bool:
    for row in connection.execute(f"PRAGMA index_list({quoted(table)})").fetchall():
        first = connection.execute(f"PRAGMA index_info({quoted(row[1])})").fetchone()
        if first is not None and str(first[2]).lower() == column and not row[4]:
            return True
    return False
