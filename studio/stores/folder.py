"""A folder as a location: which of its files are to be opened, and which are databases by their name alone.

A database that is empty, cut, zeroed or not readable does not begin like one. It is told by its name, so that nobody takes its
folder for one without it.
"""

from __future__ import annotations

import os

from msgspec import Struct

from studio.errors import OpenError
from studio.model import Problem
from studio.stores.sniff import JOURNAL_MAGIC, MAGIC, SIDES, begins_like_checkpoint, first_bytes, read_header, why

MAX_ENTRIES = 5000
"""Entries of a folder that are looked at."""
SESSION_NAMES = (".jsonl", ".jsonl.gz")
DATABASE_NAMES = (".sqlite", ".sqlite3", ".db", ".db3")
SOMETHING_ELSE = "no-checkpoint-tables"
"""Why a whole database of another program is refused, which is no loss in a folder."""

_LOG_MAGIC = b"\x37\x7f\x06"


class Listing(Struct):
    """What lies directly in a folder, by name."""

    databases: list[str]
    """Files that begin like a database, or like one checkpoint exported by hand."""
    named: list[str]
    """Files that have a database's name, or its log beside them, and do not begin like one or cannot be read."""
    sessions: list[str]
    """Transcripts; only looked for where there are databases: a folder of transcripts alone is one location."""
    problems: list[Problem]
    """Logs without their database; more entries than are looked at."""

    @property
    def to_try(self) -> list[str]:
        """All that may be opened one by one."""
        return sorted([*self.databases, *self.named, *self.sessions])


def listing(folder: str) -> Listing:
    """Raises OpenError when the folder cannot be read."""
    entries, more = _entries(folder)
    found = Listing([], [], [], [])
    may_be_sessions = []
    for name in sorted(entries):
        path = os.path.join(folder, name)
        known = name.lower().endswith(DATABASE_NAMES) or any(name + suffix in entries for suffix in SIDES)
        try:
            head = first_bytes(path)
        except OSError:
            head = b""
        if head.startswith(MAGIC) or begins_like_checkpoint(head):
            found.databases.append(path)
        elif name.endswith(SESSION_NAMES):
            may_be_sessions.append(path)
        elif known and not os.path.isdir(path):
            found.named.append(path)
        elif head.startswith((_LOG_MAGIC, JOURNAL_MAGIC)) or name.lower().endswith(_SIDES_OF_DATABASES):
            _note_alone(found, entries, folder, name)
    if found.databases and may_be_sessions:
        from studio.stores.transcripts import is_transcript

        found.sessions = [path for path in may_be_sessions if is_transcript(path)]
    if more:
        words = f"It has more than {MAX_ENTRIES:,} entries, and only so many were looked at. Name a file in it to open that one."
        found.problems.append(Problem("folder-too-large", folder, words))
    return found


_SIDES_OF_DATABASES = tuple(name + suffix for name in DATABASE_NAMES for suffix in SIDES)


def _entries(folder: str) -> tuple[set[str], bool]:
    found: set[str] = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(found) >= MAX_ENTRIES:
                    return found, True
                found.add(entry.name)
    except OSError as error:
        raise OpenError(f"The folder {folder} cannot be read: {why(error)}.", slug="unreadable") from error
    return found, False


def _note_alone(found: Listing, entries: set[str], folder: str, name: str) -> None:
    """A log, or what else lies beside a database, without the database: said once for it."""
    base = next((name.removesuffix(suffix) for suffix in SIDES if name.endswith(suffix)), name)
    path = os.path.join(folder, base)
    if base == name or base in entries or any(problem.where == path for problem in found.problems):
        return
    try:
        read_header(path)
    except OpenError as error:
        found.problems.append(problem_of(path, error))


def problem_of(path: str, error: OpenError) -> Problem:
    """Why a file of the folder is not shown."""
    hint = "" if error.hint.startswith("Name a") else f" {error.hint}"  # another file is no help with this one
    return Problem(error.slug, path, f"{error.message}{hint}".strip().replace(path, os.path.basename(path)))


def is_loss(path: str, error: OpenError) -> bool:
    """Whether a file that was refused should be there: neither a whole database that is simply another program's, nor a value of
    its own that is no checkpoint, nor a session that has just begun."""
    if error.slug == SOMETHING_ELSE or (error.slug == "empty" and path.endswith(SESSION_NAMES)):
        return False
    return error.slug != "not-a-database" or path.lower().endswith(DATABASE_NAMES) or _has_log(path)


def _has_log(path: str) -> bool:
    return any(os.path.exists(path + suffix) for suffix in SIDES)
