"""Readers: each store turns one kind of location into headers and raw rows."""

from __future__ import annotations

import os
import re

from studio.errors import OpenError
from studio.stores.base import Store
from studio.stores.sniff import has_bytes
from studio.stores.view import PLAIN, View

MAX_ENTRIES = 5000
"""Entries of a folder that are looked at."""
SESSION_NAMES = (".jsonl", ".jsonl.gz")


def open_store(location: str, view: View = PLAIN) -> Store:
    """Open whatever lies at `location`: a database, one checkpoint exported by hand, or a folder that holds exactly one of them;
    an agent's transcript, or a folder of transcripts.

    Nothing is created. `view` says which part of a database is shown.

    Raises OpenError in words for everything else; for a folder with several databases they are its `candidates`.
    """
    from studio.stores.private_copy import tidy

    tidy()
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", location)
    if scheme and not os.path.exists(location):
        raise OpenError(f"Locations that begin with {scheme[1]}:// cannot be opened.", "Name a SQLite file.", "unknown-scheme")
    if os.path.isdir(location):
        return _open_only_one(os.path.abspath(location), view)
    return _open_file(location, view)


def _open_file(path: str, view: View) -> Store:
    from studio.stores.sqlite import SqliteStore

    try:
        return SqliteStore(path, tables=view.tables, ignore_wal=view.without_wal)
    except OpenError as error:
        if not view.without_wal and has_bytes(path + "-wal") and _opens_without_wal(path, view):
            hint = "Without its -wal, which may belong to another file, it has checkpoints: --without-wal shows them."
            raise OpenError(error.message, hint, error.slug) from error
        if error.slug != "not-a-database":
            raise
        from studio.stores.transcripts import is_transcript, open_transcripts

        if is_transcript(path):
            return open_transcripts(path, view)
        from studio.stores.lone import open_lone

        return open_lone(path, view, error)


def _opens_without_wal(path: str, view: View) -> bool:
    from studio.stores.sqlite import SqliteStore

    try:
        SqliteStore(path, tables=view.tables, ignore_wal=True).close()
    except OpenError:
        return False
    return True


def _open_only_one(folder: str, view: View) -> Store:
    stores: list[Store] = []
    refusals: list[OpenError] = []
    for path in openable_in(folder):
        try:
            stores.append(_open_file(path, view))
        except OpenError as error:
            refusals.append(error)
    if len(stores) == 1:
        return stores[0]
    for store in stores:
        store.close()
    if stores:
        names = tuple(store.location for store in stores)
        listed = ", ".join(os.path.basename(name) for name in names[:8]) + (", …" if len(names) > 8 else "")
        message = f"The folder {folder} holds {len(names)} files with checkpoints: {listed}."
        raise OpenError(message, "Name one of them.", "several", candidates=names)
    if refusals:
        if len(refusals) == 1:
            raise refusals[0]
        message = f"None of the databases in the folder {folder} holds checkpoints."
        raise OpenError(message, refusals[0].message, "empty-folder")
    from studio.stores.transcripts import holds_transcripts, open_transcripts

    if holds_transcripts(folder):
        return open_transcripts(folder, view)
    raise OpenError(f"There is no database in the folder {folder}.", "Name a SQLite file.", "empty-folder")


def openable_in(folder: str) -> list[str]:
    """Paths of the files directly in a folder that begin like a SQLite database or like one checkpoint exported by hand, by name;
    where there is one, those of transcripts beside it, too. (A folder of transcripts alone is one location.)

    Raises OpenError when the folder cannot be read.
    """
    from studio.stores.sniff import is_database, looks_like_checkpoint, why

    found, may_be_sessions = [], []
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= MAX_ENTRIES:
                    break
                if is_database(entry.path) or looks_like_checkpoint(entry.path):
                    found.append(entry.path)
                elif entry.name.endswith(SESSION_NAMES):
                    may_be_sessions.append(entry.path)
    except OSError as error:
        raise OpenError(f"The folder {folder} cannot be read: {why(error)}.", slug="unreadable") from error
    if found and may_be_sessions:
        from studio.stores.transcripts import is_transcript

        found += [path for path in may_be_sessions if is_transcript(path)]
    return sorted(found)
