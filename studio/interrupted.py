"""Runs that never ended: the studio that followed them was killed, or the machine was. What had finished is in the scratch file.

The notes hold a run as `running` until its end is kept there, with the process that follows it. Read with plain SQL, since
looking must not load what only acting needs.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from studio.model import Problem

MESSAGE = (
    "a run from here was interrupted: the studio was ended while it went on. What had finished is kept, "
    "and running its newest checkpoint goes on from there."
)
_SQL = """SELECT checkpoint_id, studio FROM runs AS run WHERE status = 'running'
AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.thread_id = run.thread_id AND later.rowid > run.rowid)"""


def this_process() -> str:
    """A name of this process that no other process gets: `id/time it started`; the time only where there is a `/proc`."""
    return f"{os.getpid()}/{_started(os.getpid())}"


def lives(process: str) -> bool:
    """Whether the process of that name still runs."""
    ident, _, started = process.partition("/")
    if not ident.isdigit():
        return False
    if started:
        return _started(int(ident)) == started
    try:
        os.kill(int(ident), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def going(notes_path: str, thread_id: str) -> list[str]:
    """The ids of the runs of a thread that a studio follows now, this one or another; [] where no notes can be read."""
    sql = "SELECT id, studio FROM runs WHERE status = 'running' AND thread_id = ?"
    return [str(ident) for ident, process in _ask(notes_path, sql, thread_id) if lives(str(process or ""))]


def problems(notes_path: str) -> list[Problem]:
    """One for each thread whose last run was interrupted; [] where there are no notes, or none that can be read."""
    found = _ask(notes_path, _SQL)
    return [Problem("interrupted-run", str(ident), MESSAGE) for ident, process in found if not lives(str(process or ""))]


def _ask(notes_path: str, sql: str, *values: str) -> list[tuple[object, object]]:
    """[] where there are no notes, or none that can be read."""
    if not os.path.exists(notes_path):
        return []
    with contextlib.suppress(sqlite3.Error, UnicodeEncodeError):
        uri = f"file:{quote(os.fsencode(notes_path))}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=0.2)) as connection:
            return connection.execute(sql, values).fetchall()
    return []


def _started(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode("ascii")
    except (OSError, IndexError):
        return ""
