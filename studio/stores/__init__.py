"""Readers: each store turns one kind of location into headers and raw rows."""

from __future__ import annotations

import os

from studio.errors import OpenError
from studio.stores.base import Store

MAX_ENTRIES = 5000


def open_store(location: str) -> Store:
    """Open whatever lies at `location`: a database, or a folder that holds exactly one. Nothing is created.

    Raises OpenError in words for everything else; for a folder with several databases they are its `candidates`.
    """
    from studio.stores.sqlite import SqliteStore

    if "://" in location.split("/", 1)[0] + "//" and not os.path.exists(location) and "://" in location:
        scheme = location.split("://", 1)[0]
        raise OpenError(f"Locations that begin with {scheme}:// cannot be opened.", "Name a SQLite file.", "unknown-scheme")
    if not os.path.isdir(location):
        return SqliteStore(location)
    found = databases_in(location)
    if not found:
        raise OpenError(f"There is no database in the folder {os.path.abspath(location)}.", "Name a SQLite file.", "empty-folder")
    stores: list[Store] = []
    refusals: list[OpenError] = []
    for path in found:
        try:
            stores.append(SqliteStore(path))
        except OpenError as error:
            refusals.append(error)
    if len(stores) == 1:
        return stores[0]
    names = tuple(store.location for store in stores)
    for store in stores:
        store.close()
    if not names:
        raise refusals[0] if len(refusals) == 1 else OpenError(
            f"None of the {len(found)} databases in the folder {os.path.abspath(location)} holds checkpoints.", refusals[0].message, "empty-folder"
        )
    listed = ", ".join(os.path.basename(name) for name in names[:8]) + (", …" if len(names) > 8 else "")
    raise OpenError(f"The folder {os.path.abspath(location)} holds {len(names)} checkpoint databases: {listed}.", "Name one of them.",
                    "several", candidates=names)


def databases_in(folder: str) -> list[str]:
    """Paths of the SQLite files directly in a folder, by name."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= MAX_ENTRIES:
                    break
                try:
                    if entry.is_file() and entry.stat().st_size >= 512:
                        with open(entry.path, "rb") as file:
                            if file.read(16) == b"SQLite format 3\x00":
                                found.append(entry.path)
                except OSError:
                    continue
    except OSError as error:
        raise OpenError(f"The folder {os.path.abspath(folder)} cannot be read: {(error.strerror or str(error)).lower()}.", slug="unreadable") from error
    return sorted(found)
