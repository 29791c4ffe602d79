"""Which tables of a database hold checkpoints and writes, and what their columns are called.

Tables are found by their columns, so a renamed table or one with additional columns is read like any other. Three layouts
exist: `current`, `no-task-path` (before checkpoint-sqlite 3.1) and `no-namespace` (LangGraph 0.1: `thread_ts`, `parent_ts`,
no type column, raw JSON). A file may hold several such sets of tables; one of them is shown.
"""

from __future__ import annotations

import contextlib
import sqlite3

from msgspec import Struct

from studio.errors import OpenError
from studio.model import Problem
from studio.stores.table_sets import TableSet, find_sets, is_writes, key_of

NAME_ONE = "Name a database that LangGraph's SqliteSaver has written."

FOREIGN = (
    ({"agent_sessions", "agent_messages"}, "the OpenAI Agents SDK"),
    ({"sessions", "events", "app_states"}, "Google's Agent Development Kit"),
    ({"flow_states"}, "CrewAI"),
    ({"long_term_memories"}, "CrewAI"),
    ({"checkpoint_blobs", "checkpoint_writes"}, "a copy of LangGraph's PostgreSQL layout"),
    ({"agno_sessions"}, "Agno"),
)
"""Tables of other frameworks, to name them when they are opened by mistake."""


class Table(Struct, frozen=True):
    """One of the two tables. `name` is quoted for SQL; `ns` is SQL too: a column or the literal `''`."""

    name: str
    plain_name: str
    columns: frozenset[str]
    ns: str
    id: str
    index: str | None
    """Quoted name of an index that begins with the thread id and covers the keys; None where there is none."""
    strict: bool = True
    """Whether the columns of the keys are `TEXT NOT NULL`, as LangGraph makes them: a key that is NULL is damage then."""
    may_repeat: bool = False
    """No index keeps an address from standing in several rows, as in a copied table: what counts rows must look for that."""

    def or_null(self, column: str) -> str:
        """The column, or NULL where this layout does not have it."""
        return column if column in self.columns else "NULL"

    @property
    def keys(self) -> str:
        return f"thread_id, {self.ns}, {self.id}"

    @property
    def has_ns(self) -> bool:
        return self.ns != "''"


class Layout(Struct, frozen=True):
    name: str
    checkpoints: Table
    writes: Table | None
    schema_version: int
    utf16: str = ""
    """Python's name of the text encoding when the database is in UTF-16, else empty."""
    problems: tuple[Problem, ...] = ()
    sets: tuple[TableSet, ...] = ()
    """All sets of tables in the file, the one that is shown among them."""

    @property
    def parent(self) -> str:
        return "parent_ts" if self.name == "no-namespace" else "parent_checkpoint_id"


def find_layout(connection: sqlite3.Connection, shown: str, tables: str | None = None, before: str | None = None) -> Layout:
    """The layout of the set whose checkpoints are in the table called `tables`, or of the one to show where nobody chose: the one
    shown `before`; else, of those that hold rows, LangGraph's own names, then what was made first.

    Raises OpenError when no table has the columns of checkpoints, or none of them is called so.
    """
    version: int = connection.execute("PRAGMA schema_version").fetchone()[0]
    encoding = str(connection.execute("PRAGMA encoding").fetchone()[0])
    columns = columns_of_tables(connection)
    closed = [name for name in columns if _is_part(columns[name]) and not _has_rowid(connection, name)]
    sets = find_sets({name: found for name, found in columns.items() if name not in closed})
    if not sets:
        raise _refusal(shown, columns, [name for name in closed if not is_writes(columns[name])])
    chosen = _named(sets, tables, shown) if tables is not None else _to_show(connection, sets, before)
    own, writes = columns[chosen.checkpoints], chosen.writes
    key = key_of(own)
    problems = [
        Problem(
            "second-table",
            f"table {other.checkpoints}",
            f"Also looks like a table of checkpoints; {chosen.checkpoints} is shown. --tables {other.checkpoints} shows it.",
        )
        for other in sets
        if other != chosen
    ]
    problems += [
        Problem("without-rowid", f"table {name}", "A table WITHOUT ROWID cannot be read; what it holds is not shown.")
        for name in closed
    ]
    problems += [
        Problem("unnamed-table", f"table {name}", "Its name is no text that SQL could ask for, so it cannot be read.")
        for name in columns
        if not can_name(name)
    ]
    if key == "thread_ts":
        layout = "no-namespace"
    elif writes is not None and "task_path" not in columns[writes]:
        layout = "no-task-path"
    else:
        layout = "current"
    return Layout(
        layout,
        _table(connection, chosen.checkpoints, own, key),
        _table(connection, writes, columns[writes], key) if writes is not None else None,
        version,
        {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}.get(encoding, ""),
        tuple(problems),
        tuple(sets),
    )


def columns_of_tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Table -> columns in lower case, in the order the tables were made; without SQLite's own tables and views.

    A table that SQLite cannot open here (a virtual one whose module is not loaded) or that no statement can name has none.
    """
    found: dict[str, list[str]] = {}
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall():
        if not isinstance(name, str) or name.lower().startswith("sqlite_"):
            continue
        found[name] = []
        if can_name(name):
            with contextlib.suppress(sqlite3.OperationalError):
                found[name] = [str(row[1]).lower() for row in connection.execute(f"PRAGMA table_info({quoted(name)})")]
    return found


def can_name(name: str) -> bool:
    """Whether a statement can name this table: SQL takes neither half a surrogate pair (a byte that is no UTF-8) nor NUL."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in name


def _is_part(columns: list[str]) -> bool:
    return bool(find_sets({"": columns})) or is_writes(columns)


def _named(sets: list[TableSet], wanted: str, shown: str) -> TableSet:
    names = tuple(one.checkpoints for one in sets)
    found = next((one for one in sets if one.checkpoints == wanted), None)
    found = found or next((one for one in sets if one.checkpoints.lower() == wanted.lower()), None)
    if found is None:
        message = f"{shown} has no table {wanted!r} with the columns of checkpoints."
        raise OpenError(message, f"It has: {', '.join(names)}", "no-such-tables", candidates=names)
    return found


def _to_show(connection: sqlite3.Connection, sets: list[TableSet], before: str | None) -> TableSet:
    held = next((one for one in sets if one.checkpoints == before), None)
    if held is not None or len(sets) == 1:
        return held or sets[0]
    return min(sets, key=lambda one: (_is_empty(connection, one.checkpoints), one.checkpoints.lower() != "checkpoints"))


def _is_empty(connection: sqlite3.Connection, name: str) -> bool:
    try:
        return connection.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 1").fetchone() is None
    except sqlite3.DatabaseError:
        return False  # it is damaged, so it holds something


def _has_rowid(connection: sqlite3.Connection, name: str) -> bool:
    try:
        connection.execute(f"SELECT rowid FROM {quoted(name)} LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def _table(connection: sqlite3.Connection, name: str, columns: list[str], key: str) -> Table:
    index, unique = None, False
    for row in connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall():
        if not can_name(str(row[1])):
            continue
        parts = [part[2] for part in connection.execute(f"PRAGMA index_info({quoted(row[1])})")]
        wanted = [column for column in ("thread_id", "checkpoint_ns", key) if column in columns]
        unique = unique or bool(row[2] and not row[4] and {str(part).lower() for part in parts} <= set(wanted))
        if index is None and [str(part).lower() for part in parts[: len(wanted)]] == wanted and not row[4]:
            index = quoted(row[1])
    ns = "checkpoint_ns" if "checkpoint_ns" in columns else "''"
    return Table(quoted(name), name, frozenset(columns), ns, key, index, _is_strict(connection, name, key), not unique)


def _is_strict(connection: sqlite3.Connection, name: str, key: str) -> bool:
    keys = {"thread_id", "checkpoint_ns", key}
    found = [row for row in connection.execute(f"PRAGMA table_info({quoted(name)})") if str(row[1]).lower() in keys]
    return all(row[3] and any(word in str(row[2]).upper() for word in ("CHAR", "CLOB", "TEXT")) for row in found)


def _refusal(shown: str, tables: dict[str, list[str]], without_rowid: list[str]) -> OpenError:
    slug = "no-checkpoint-tables"
    if without_rowid:
        name = without_rowid[0]
        return OpenError(
            f"{shown} keeps its checkpoints in a table WITHOUT ROWID ({name}), which cannot be read.", slug="without-rowid"
        )
    if not tables:
        return OpenError(f"{shown} is a database without any table: there are no checkpoint tables in it.", NAME_ONE, slug)
    for names, framework in FOREIGN:
        if names <= set(tables):
            return OpenError(f"{shown} has no checkpoint tables; it looks like a database of {framework}.", NAME_ONE, slug)
    listed = ", ".join(sorted(tables)[:6]) + (", …" if len(tables) > 6 else "")
    if "checkpoints" in tables:
        columns = ", ".join(tables["checkpoints"][:12])
        return OpenError(f"{shown} has a table named checkpoints, but not with LangGraph's columns ({columns}).", NAME_ONE, slug)
    return OpenError(f"{shown} has no checkpoint tables; its tables are {listed}.", NAME_ONE, slug)


def quoted(name: str) -> str:
    """A table's or column's name for SQL."""
    return '"' + name.replace('"', '""') + '"'
