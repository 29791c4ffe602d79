"""Code to paste: a checkpoint opened with the user's own graph, and a test that replays it. Both work on a private copy.

LangGraph's saver knows one name for each of its tables. Where a file calls them otherwise, the code copies the thread's rows
under the names that the saver knows.
"""

from __future__ import annotations

import json

from msgspec import Struct

from studio.model import Address


class Source(Struct, frozen=True):
    """The file that the code opens; `checkpoints` and `writes` are its tables where they do not bear LangGraph's names."""

    path: str
    checkpoints: str | None = None
    writes: str | None = None
    with_wal: bool = True

    @property
    def is_renamed(self) -> bool:
        return self.checkpoints is not None


_UNDER_OUR_NAMES = '''
# SqliteSaver only finds tables named checkpoints and writes, and this file has {names}.
TABLES = {tables}


def under_langgraph_names(path, thread_id):
    """A database in memory that holds one thread under the names that SqliteSaver knows."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    SqliteSaver(database).setup()
    database.execute("ATTACH DATABASE ? AS source", (str(path),))
    for table, theirs in TABLES.items():
        there = {{row[1] for row in database.execute("SELECT * FROM pragma_table_info(?, 'source')", (theirs,))}}
        ours = [row[1] for row in database.execute("SELECT * FROM pragma_table_info(?, 'main')", (table,))]
        columns = ", ".join(name for name in ours if name in there)
        quoted = theirs.replace('"', '""')
        rows = f'SELECT {{columns}} FROM source."{{quoted}}" WHERE thread_id = ?'
        database.execute(f"INSERT INTO main.{{table}} ({{columns}}) {{rows}}", (thread_id,))
    database.commit()
    database.execute("DETACH DATABASE source")
    return database

'''


def as_python(address: Address, source: Source) -> str:
    """Python code that opens this checkpoint with the user's own graph."""
    config = json.dumps(_config(address), indent=4).replace("\n", "\n    ")
    connect = _connect(source, "copy", "config")
    return f"""import os
import shutil
import sqlite3
import tempfile

from langgraph.checkpoint.sqlite import SqliteSaver
{_helper(source)}
SOURCE = {json.dumps(source.path)}
copy = os.path.join(tempfile.mkdtemp(), "checkpoints.sqlite")  # SqliteSaver may change the file it opens
{_copying(source)}

config = {{"configurable": {config}}}
# `builder` is your StateGraph
graph = builder.compile(checkpointer=SqliteSaver({connect}))
print(graph.get_state(config))
# new_config = graph.update_state(config, {{"channel": "value"}}, as_node="node")
# graph.invoke(None, new_config)
"""


def as_test(address: Address, source: Source, next_nodes: tuple[str | None, ...] | None) -> str:
    """A pytest skeleton that replays this checkpoint on a private copy of the file."""
    nodes = ", ".join(json.dumps(name or "?")[1:-1] for name in next_nodes or ()) or "nothing"  # a name must not end the text
    if next_nodes is None:
        nodes = "not known from the file"
    config = json.dumps({"configurable": _config(address)}, indent=4)
    copying = _copying(source).replace("\n", "\n    ")
    return f'''"""Replays one stored checkpoint on a private copy; next to run there: {nodes}."""

import os
import shutil
import sqlite3

from langgraph.checkpoint.sqlite import SqliteSaver

from your_module import graph
{_helper(source)}
SOURCE = {json.dumps(source.path)}
CONFIG = {config}


def test_replay_from_checkpoint(tmp_path):
    copy = str(tmp_path / "checkpoints.sqlite")
    {copying}
    graph.checkpointer = SqliteSaver({_connect(source, "copy", "CONFIG")})
    result = graph.invoke(None, CONFIG)
    assert result  # say here what must hold
'''


def _config(address: Address) -> dict[str, str]:
    return {
        "thread_id": address.thread_id,
        "checkpoint_ns": address.checkpoint_ns,
        "checkpoint_id": address.checkpoint_id,
    }


def _copying(source: Source) -> str:
    """Lines that copy the file, with what only its log holds."""
    if not source.with_wal:
        return "shutil.copy(SOURCE, copy)  # without its -wal"
    return """for suffix in ("", "-wal"):  # the last rows may still be in the log beside it
    if os.path.exists(SOURCE + suffix):
        shutil.copy(SOURCE + suffix, copy + suffix)"""


def _connect(source: Source, copy: str, config: str) -> str:
    if source.is_renamed:
        return f'under_langgraph_names({copy}, {config}["configurable"]["thread_id"])'
    return f"sqlite3.connect({copy}, check_same_thread=False)"


def _helper(source: Source) -> str:
    if source.checkpoints is None:
        return ""
    tables = {"checkpoints": source.checkpoints} | ({"writes": source.writes} if source.writes is not None else {})
    return _UNDER_OUR_NAMES.format(names=" and ".join(json.dumps(name) for name in tables.values()), tables=json.dumps(tables))
