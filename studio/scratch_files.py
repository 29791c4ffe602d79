"""The scratch files of this user, to list and to delete them."""

from __future__ import annotations

import contextlib
import glob
import os
import sqlite3

from msgspec import Struct

from studio.errors import OpenError, PatchError, RefError
from studio.forks.scratch import (
    SUFFIX,
    Scratch,
    default_folder,
    is_scratch_file,
    lies_with_ours,
    look,
    meta_in,
    notes_beside,
    our_folders,
    tables_in,
)
from studio.forks.sessions import place
from studio.forks.writing import write_transaction
from studio.stores import open_store
from studio.stores.sniff import SIDES
from studio.stores.view import PLAIN, View, part_of

KNOWN_TABLES = frozenset({"checkpoints", "writes", "studio_scratch", "studio_origins"})
NOTES_TABLES = frozenset({"runs", "audit", "studio_origins", "marks", "notes"})
"""Also those of earlier versions."""


class ScratchFile(Struct, frozen=True):
    """One line of `studio scratch ls`."""

    path: str
    store: str
    """Real path of the store whose forks it holds."""
    store_exists: bool
    forks: int | None
    """None where it cannot be read."""
    size_bytes: int
    created_at: str | None
    part: str = ""
    """Which part of the store it belongs to (`stores.view.part_of`)."""
    problem: str | None = None
    """Why it cannot be read."""


def path_for(location: str, view: View = PLAIN) -> str:
    """Where forks of a location, or of a part of it, go, whether or not there are any yet."""
    try:
        with contextlib.closing(open_store(location, view)) as store:
            if store.kind == "transcript":
                return str(place.folder_of(location) if os.path.isfile(location) else default_folder())
            return Scratch(location, part=part_of(store)).path
    except OpenError:  # gone, perhaps; its forks may be there
        if view.tables is not None and os.path.exists(location):
            raise
        return Scratch(location).path


def list_files() -> list[ScratchFile]:
    """All scratch files in the user's data folder (and in the temporary one, when that is used), by name."""
    folders = [folder for folder in our_folders() if folder.is_dir()]
    found = [describe(str(path)) for folder in folders for path in sorted(folder.glob("*" + SUFFIX))]
    return [*found, *_sessions()]


def _sessions() -> list[ScratchFile]:
    """One line for the forks of each agent's session: their folder."""
    by_source: dict[tuple[str, str], list[place.Sheet]] = {}
    for sheet in place.sheets():
        by_source.setdefault((os.path.dirname(sheet.path), sheet.source), []).append(sheet)
    return [
        ScratchFile(
            folder,
            source,
            os.path.exists(source),
            len(sheets),
            sum(os.path.getsize(one.path) for one in sheets),
            sheets[0].created_at,
        )
        for (folder, source), sheets in sorted(by_source.items())
    ]


def describe(path: str) -> ScratchFile:
    """What a scratch file of ours holds, or why that cannot be told."""
    size = sum(os.path.getsize(path + end) for end in ("", "-wal") if os.path.isfile(path + end))
    try:
        meta, forks = look(path, _counted)
    except OpenError as error:
        return ScratchFile(path, "", False, None, size, None, problem=error.message)
    except sqlite3.DatabaseError as error:
        return ScratchFile(path, "", False, None, size, None, problem=f"{path} is damaged: {str(error).rstrip('.')}.")
    store = str(meta.get("store", ""))
    return ScratchFile(
        path, store, bool(store) and os.path.exists(store), forks, size, meta.get("created_at"), meta.get("part", "")
    )


def remove(path_or_store: str, *, notes: bool = False, view: View = PLAIN) -> list[str]:
    """Delete a scratch file, named by its own path or by (a part of) its store's; with `notes` also the run history.

    Returns what was deleted. RefError when there is none; PatchError while another program writes to it, and for a file
    that holds more than the studio puts into one.
    """
    if (sheets := _sheets_of(path_or_store)) is not None:
        return [one for sheet in sheets for one in place.remove(sheet.path)]
    named = lies_with_ours(path_or_store) or is_scratch_file(path_or_store)
    path = path_or_store if named else path_for(path_or_store, view)
    if not os.path.isfile(path) or not (lies_with_ours(path) or is_scratch_file(path)):
        raise RefError(f"There is no scratch file for {path_or_store}.", "`studio scratch ls` lists them.")
    if not lies_with_ours(path) and (more := look(path, tables_in) - KNOWN_TABLES):
        names = ", ".join(sorted(more)[:5])
        raise PatchError(f"{path} is not removed: it has tables of another program ({names}).", "Delete it yourself.", "not-ours")
    try:
        with write_transaction(path, timeout=1.0):
            pass  # refuses while a run or another studio is in the middle of a write
    except PatchError as error:
        if error.slug == "locked":
            raise
    if _is_open_elsewhere(path):
        raise PatchError(f"{path} is not removed: another program has it open, a run perhaps.", "End that first.", "locked")
    wanted = [path + end for end in ("", *SIDES)]
    if notes and _are_notes(beside := notes_beside(path)):
        wanted += [beside + end for end in ("", *SIDES)]
    gone = []
    for name in wanted:
        if os.path.lexists(name):
            try:
                os.unlink(name)
            except OSError as error:
                raise PatchError(f"{name} cannot be removed: {error.strerror or error}.", "", "cannot-remove") from error
            gone.append(name)
    return gone


def _sheets_of(path: str) -> list[place.Sheet] | None:
    """The forks of a session, of the sessions in a folder, or in a folder of forks; None where there are none."""
    real = os.path.realpath(path)
    inside = real.rstrip(os.sep) + os.sep
    found = [
        sheet
        for sheet in place.sheets()
        if sheet.source == real
        or sheet.source.startswith(inside)
        or sheet.path == real
        or os.path.dirname(os.path.realpath(sheet.path)) == real
    ]
    return found or None


def _are_notes(path: str) -> bool:
    """Whether a file holds what the studio notes and nothing else."""
    try:
        return os.path.isfile(path) and look(path, tables_in) - {"sqlite_sequence"} <= NOTES_TABLES
    except (OpenError, sqlite3.DatabaseError):
        return False


def _is_open_elsewhere(path: str) -> bool:
    """Whether a process of this user has the file open, where `/proc` tells: a run keeps it open for as long as it lasts."""
    real = os.path.realpath(path)
    for entry in glob.iglob("/proc/[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if entry.split("/")[2] != str(os.getpid()) and os.readlink(entry) == real:
                return True
    return False


def _counted(connection: sqlite3.Connection) -> tuple[dict[str, str], int]:
    there = "studio_origins" in tables_in(connection)
    return meta_in(connection), connection.execute("SELECT count(*) FROM studio_origins").fetchone()[0] if there else 0
