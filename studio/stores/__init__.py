"""Readers: each store turns one kind of location into headers and raw rows."""

from __future__ import annotations

import os
import re

from studio.errors import OpenError
from studio.model import Problem
from studio.stores.base import Store
from studio.stores.folder import SOMETHING_ELSE, is_loss, listing
from studio.stores.sniff import has_bytes
from studio.stores.view import PLAIN, View


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
            if error.slug == "unreadable":
                hint = f"{error.hint} --without-wal shows what is in the database file alone."
            else:
                hint = "Without its -wal, which may belong to another file, it has checkpoints: --without-wal shows them."
            raise OpenError(error.message, hint, error.slug if error.slug != SOMETHING_ELSE else "wal-disagrees") from error
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
    inside = listing(folder)
    stores: list[Store] = []
    refusals: list[OpenError] = []
    losses: list[OpenError] = []
    for path in inside.to_try:
        try:
            stores.append(_open_file(path, view))
        except OpenError as error:
            (losses if is_loss(path, error) else refusals).append(error)
    if len(stores) == 1:
        return stores[0]
    for store in stores:
        store.close()
    if stores:
        names = tuple(store.location for store in stores)
        listed = ", ".join(os.path.basename(name) for name in names[:8]) + (", …" if len(names) > 8 else "")
        message = f"The folder {folder} holds {len(names)} files with checkpoints: {listed}."
        raise OpenError(message, "Name one of them.", "several", candidates=names)
    if not inside.databases:
        from studio.stores.transcripts import holds_transcripts, open_transcripts

        if holds_transcripts(folder):
            return open_transcripts(folder, view)
    raise _nothing_in(folder, losses, refusals, inside.problems)


def _nothing_in(folder: str, losses: list[OpenError], others: list[OpenError], problems: list[Problem]) -> OpenError:
    """Why nothing in a folder can be shown: what should be there comes before what is simply something else."""
    if len(losses) == 1 or (len(others) == 1 and not losses and not problems):
        return (losses or others)[0]
    if losses:
        told = " ".join(error.message for error in losses[:4]) + (" …" if len(losses) > 4 else "")
        return OpenError(f"None of the {len(losses)} databases in the folder {folder} can be opened.", told, "empty-folder")
    if problems:
        return OpenError(f"There is no database in the folder {folder}.", problems[0].message, "empty-folder")
    if others:
        message = f"None of the databases in the folder {folder} holds checkpoints."
        return OpenError(message, others[0].message, "empty-folder")
    return OpenError(f"There is no database in the folder {folder}.", "Name a SQLite file.", "empty-folder")
