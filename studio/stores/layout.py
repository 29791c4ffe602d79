"""Which tables of a database hold checkpoints and writes, and what their columns are called.

Tables are found by their columns, so a renamed table or one with additional columns is read like any other. Three layouts
exist: `current`, `no-task-path` (before checkpoint-sqlite 3.1) and `no-namespace` (LangGraph 0.1: `thread_ts`, `parent_ts`,
no type column, raw JSON).
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass, field

from studio.errors import OpenError
from studio.model import Problem

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


@dataclass(frozen=True, slots=True)
class Table:
    """One of the two tables. `name` is quoted for SQL; `ns` is SQL too: a column or the literal `''`."""

    name: str
    plain_name: str
    columns: frozenset[str]
    ns: str
    id: str
    index: str | None
    """Quoted name of an index that begins with the thread id and covers the keys; None where there is none."""

    def or_null(self, column: str) -> str:
        """The column, or NULL where this layout does not have it."""
        return column if column in self.columns else "NULL"

    @property
    def keys(self) -> str:
        return f"thread_id, {self.ns}, {self.id}"


@dataclass(frozen=True, slots=True)
class Layout:
    name: str
    checkpoints: Table
    writes: Table | None
    schema_version: int
    utf16: str = ""
    """Python's name of the text encoding when the database is in UTF-16, else empty."""
    problems: tuple[Problem, ...] = field(default=())

    @property
    def parent(self) -> str:
        return "parent_ts" if self.name == "no-namespace" else "parent_checkpoint_id"


def find_layout(connection: sqlite3.Connection, shown: str) -> Layout:
    """Raises OpenError when no table has the columns of checkpoints."""
    version: int = connection.execute("PRAGMA schema_version").fetchone()[0]
    encoding = str(connection.execute("PRAGMA encoding").fetchone()[0])
    tables = {
        name: [row[1].lower() for row in connection.execute(f"PRAGMA table_info({_quote(name)})")]
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
        if isinstance(name, str) and not name.startswith("sqlite_")
    }
    found = [name for name, columns in tables.items() if _is_checkpoints(set(columns))]
    usable = [name for name in found if _has_rowid(connection, name)]
    if not usable:
        raise _refusal(shown, tables, found)
    problems = []
    usable.sort(key=lambda name: name.lower() != "checkpoints")
    chosen = usable[0]
    old = "thread_ts" in tables[chosen] and "checkpoint_id" not in tables[chosen]
    key = "thread_ts" if old else "checkpoint_id"
    candidates = [
        name
        for name, columns in tables.items()
        if {"thread_id", key, "task_id", "idx", "channel", "value"} <= set(columns) and _has_rowid(connection, name)
    ]
    candidates.sort(key=lambda name: (name.lower() != "writes", _distance(name, chosen)))
    writes = candidates[0] if candidates else None
    for extra in usable[1:]:
        problems.append(Problem("second-table", f"table {extra}", f"Also looks like a table of checkpoints; {chosen} is shown."))
    if old:
        name = "no-namespace"
    elif writes is not None and "task_path" not in tables[writes]:
        name = "no-task-path"
    else:
        name = "current"
    return Layout(
        name,
        _table(connection, chosen, tables[chosen], key),
        _table(connection, writes, tables[writes], key) if writes is not None else None,
        version,
        {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}.get(encoding, ""),
        tuple(problems),
    )


def _is_checkpoints(columns: set[str]) -> bool:
    return {"thread_id", "checkpoint_id", "checkpoint", "metadata", "parent_checkpoint_id"} <= columns or {
        "thread_id",
        "thread_ts",
        "parent_ts",
        "checkpoint",
    } <= columns


def _has_rowid(connection: sqlite3.Connection, name: str) -> bool:
    try:
        connection.execute(f"SELECT rowid FROM {_quote(name)} LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def _table(connection: sqlite3.Connection, name: str, columns: list[str], key: str) -> Table:
    index = None
    for row in connection.execute(f"PRAGMA index_list({_quote(name)})").fetchall():
        parts = [part[2] for part in connection.execute(f"PRAGMA index_info({_quote(row[1])})")]
        wanted = [column for column in ("thread_id", "checkpoint_ns", key) if column in columns]
        if [str(part).lower() for part in parts[: len(wanted)]] == wanted and not row[4]:
            index = _quote(row[1])
            break
    ns = "checkpoint_ns" if "checkpoint_ns" in columns else "''"
    return Table(_quote(name), name, frozenset(columns), ns, key, index)


def _refusal(shown: str, tables: dict[str, list[str]], without_rowid: list[str]) -> OpenError:
    slug = "no-checkpoint-tables"
    if without_rowid:
        name = without_rowid[0]
        return OpenError(f"{shown} keeps its checkpoints in a table WITHOUT ROWID ({name}), which cannot be read.", slug=slug)
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


def _distance(name: str, other: str) -> int:
    """Smaller for names with the same affixes: `a_checkpoints` goes with `a_writes`."""
    bare = re.sub(r"checkpoints?", "", other.lower())
    return 0 if bare and bare in name.lower() else 1


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
