"""The scratch file: where forks of an opened store go, so that the store itself stays as it is.

One SQLite file per opened store, in the store's own table layout, so that the user's own LangGraph can open it. It lies
in the user's data folder (0700, files 0600) and is found again by the store's real path. Besides LangGraph's tables it
holds two small ones of ours: `studio_scratch` (which store it belongs to) and `studio_origins` (which checkpoint each fork
was made from), so that a fork and its origin are stored together or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from studio.datafolder import ENV as ENV
from studio.datafolder import data_folder
from studio.errors import OpenError, PatchError, StudioError
from studio.forks import rows
from studio.forks.writing import use_wal, write_transaction
from studio.model import Address
from studio.stores.rows import lenient, placed, text_of
from studio.stores.sqlite_file import SqliteFile
from studio.stores.view import view_of

if TYPE_CHECKING:
    from studio.stores.base import Store

T = TypeVar("T")

Written = tuple[tuple[str, tuple[str, ...]], ...]
"""(node, channels that were written as it) of each write in one superstep."""
_Kept = tuple[dict[Address, tuple[Address, str]], frozenset[Address], dict[Address, Written]]
"""(fork -> (origin, sha256 of the origin's blob), rows that were promoted, row -> what was written to make it)"""

SUFFIX = ".scratch.sqlite"
NOTES_SUFFIX = ".notes.sqlite"

_ORIGINS = """CREATE TABLE IF NOT EXISTS studio_origins (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL,
    origin_thread_id TEXT NOT NULL, origin_checkpoint_ns TEXT NOT NULL, origin_checkpoint_id TEXT NOT NULL,
    origin_sha256 TEXT NOT NULL, created_at TEXT NOT NULL, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
)"""
_PROMOTED = """CREATE TABLE IF NOT EXISTS studio_promoted (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, created_at TEXT NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
)"""
_UPDATES = """CREATE TABLE IF NOT EXISTS studio_updates (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, written TEXT NOT NULL,
    created_at TEXT NOT NULL, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
)"""
_READY = frozenset({"checkpoints", "writes", "studio_scratch", "studio_origins"})
_MARKS = frozenset({"format", "store", "created_at"})
_NOT_YET = ("empty", "missing")
"""Slugs of a file that another process is just making, or has just removed."""
_META = "CREATE TABLE IF NOT EXISTS studio_scratch (key TEXT PRIMARY KEY, value TEXT NOT NULL)"


def default_folder() -> Path:
    """Where scratch files are kept; not necessarily there yet."""
    return data_folder()


def temporary_folder() -> Path:
    """Where scratch files are kept when the user's data folder cannot be written; not necessarily there yet."""
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"checkpoint-studio-{owner}"


def our_folders() -> tuple[Path, ...]:
    """Where scratch files may lie when nobody said where."""
    return default_folder(), temporary_folder()


def made_temporary_folder() -> Path:
    """The same for each process of this user, fresh when that is not ours."""
    folder = temporary_folder()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700)
    if _is_private(folder):
        return folder
    return Path(tempfile.mkdtemp(prefix="checkpoint-studio-"))


def _is_private(folder: Path) -> bool:
    try:
        info = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(info.st_mode):
        return False
    if hasattr(os, "getuid") and (info.st_uid != os.getuid() or info.st_mode & 0o077):
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def can_hold_files(folder: Path) -> bool:
    """Whether `folder` is writable, or could be made in the nearest folder that exists."""
    for place in (folder, *folder.parents):
        if place.exists():
            return place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    return False


def key_of(location: str, part: str) -> str:
    """File name without suffix for a part of a store: a readable stem, and a hash of its real path and the part's name."""
    real = os.path.realpath(location)
    words = Path(real).stem + (f"-{part}" if part else "")
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", words)[:40].strip(".-") or "store"
    digest = hashlib.sha256(os.fsencode(real) + (b"\0" + part.encode() if part else b"")).hexdigest()[:16]
    return f"{stem}-{digest}"


def notes_beside(path: str) -> str:
    """Where runs and the audit of a scratch file are kept."""
    return path.removesuffix(SUFFIX) + NOTES_SUFFIX


def lies_with_ours(path: str) -> bool:
    """Whether it bears the name of a scratch file and lies in a folder where the studio keeps them."""
    real = Path(os.path.realpath(path))
    return real.name.endswith(SUFFIX) and any(real.parent == Path(os.path.realpath(folder)) for folder in our_folders())


def is_scratch_file(path: str | os.PathLike[str]) -> bool:
    """True for a file that the studio made: it may be written to. Looks without a trace, whatever the file is."""
    if not os.path.isfile(path):
        return False
    try:
        return look(os.fspath(path), _is_ours)
    except (OSError, sqlite3.Error, StudioError):
        return False


def look(path: str, read: Callable[[sqlite3.Connection], T]) -> T:
    """One look at a file of ours, without a trace; see `SqliteFile.look` for what it raises."""

    def leniently(connection: sqlite3.Connection) -> T:
        connection.text_factory = lenient
        return read(connection)

    with contextlib.closing(SqliteFile(path)) as file:
        return file.look(leniently)


def tables_in(connection: sqlite3.Connection) -> frozenset[str]:
    return frozenset(row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))


def meta_in(connection: sqlite3.Connection) -> dict[str, str]:
    """What `Scratch.ensure` noted in a file that it made; empty for any other, whatever its tables are called."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(studio_scratch)")}
    found = dict(connection.execute("SELECT key, value FROM studio_scratch")) if columns == {"key", "value"} else {}
    return found if found.keys() >= _MARKS else {}


def _is_ours(connection: sqlite3.Connection) -> bool:
    return bool(meta_in(connection))


class Scratch:
    """The scratch file of one store, or of a part of one (`stores.view.part_of`).

    Making the object touches nothing; `ensure` makes the file.
    """

    def __init__(self, store_location: str, path: str | None = None, part: str = "") -> None:
        self.store_location = os.path.realpath(store_location)
        self.part = part
        self.temporary = False
        """True when it lies in a temporary folder because the user's data folder cannot be written."""
        self.is_store = path is None and lies_with_ours(self.store_location) and is_scratch_file(self.store_location)
        """True when the opened location is itself one of our scratch files: forks go right into it. What a file says of itself is
        not enough: it must lie where the studio keeps them."""
        self._kept: dict[str, tuple[object, _Kept]] = {}
        self.folder = default_folder()
        self.given = path is not None
        if not self.given and not can_hold_files(self.folder):
            self.folder, self.temporary = made_temporary_folder(), True
        if path is not None:
            self.path = os.path.abspath(os.path.expanduser(path))
        elif self.is_store:
            self.path = self.store_location
        else:
            self.path = str(self.folder / (key_of(self.store_location, part) + SUFFIX))
        self.notes_path = notes_beside(self.path)
        if self.given and os.path.realpath(self.path) == self.store_location and not is_scratch_file(self.path):
            reason = "The scratch file cannot be the opened file itself."
            raise PatchError(reason, "Use --in-place to add forks to your own file.", "scratch-is-store")
        if self.given and self.exists():
            self._refuse_foreign()

    def exists(self) -> bool:
        return os.path.isfile(self.path) and os.path.getsize(self.path) > 0

    def ensure(self, base_store: Store) -> None:
        """Make the file with the tables of `base_store`, unless it is there. PatchError when it cannot be made."""
        if self.exists() and self._refuse_foreign() >= _READY:
            return
        checkpoints_sql, writes_sql = create_texts(base_store)  # what can fail comes before the file is made
        self._make_folder()
        try:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise self._refusal(f"cannot be made: {error}") from error
        if not os.path.isfile(self.path):
            raise self._refusal("is not a regular file")
        use_wal(self.path)
        with write_transaction(self.path) as connection:
            connection.execute(rows.create_as(checkpoints_sql, "checkpoints"))
            connection.execute(rows.create_as(writes_sql, "writes"))
            connection.execute(_META)
            connection.execute(_ORIGINS)
            for mark in (("format", "1"), ("store", self.store_location), ("part", self.part), ("created_at", _now())):
                _insert(connection, "INSERT OR IGNORE INTO studio_scratch", mark)

    def _refuse_foreign(self) -> frozenset[str]:
        """The tables in the file that is there; PatchError when it is a database of somebody else."""
        try:
            names, meta = look(self.path, lambda connection: (tables_in(connection), meta_in(connection)))
        except OpenError as error:
            if error.slug in _NOT_YET:
                return frozenset()
            raise self._refusal(f"cannot be used: {error.message}") from error
        except sqlite3.DatabaseError as error:
            raise self._refusal(f"is not a scratch file: {error}") from error
        if names and not meta:
            raise self._refusal("is another database, not a scratch file of the studio")
        if meta and meta["store"] == self.store_location and meta.get("part", "") != self.part:
            raise self._refusal(f"holds forks of another part of this file: {meta.get('part') or 'table checkpoints'}")
        return names

    def _refusal(self, reason: str) -> PatchError:
        return PatchError(f"{self.path} {reason.removesuffix('.')}.", "Choose another place with --scratch FILE.", "no-scratch")

    def _make_folder(self) -> None:
        folder = Path(self.path).parent
        if self.given:
            if not folder.is_dir():
                raise self._refusal("lies in a folder that is not there")
            return
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.is_store:
                folder.chmod(0o700)
        except OSError as error:
            raise self._refusal(f"needs a folder that cannot be made: {error}") from error

    def origins(self) -> dict[Address, tuple[Address, str]]:
        """Fork -> (origin, sha256 of the origin's blob), of forks in the scratch file and of those in the user's own file.

        OpenError when one of the two files is damaged: what it said about forks is not known then.
        """
        return {**self._origins_in(self.notes_path), **self._origins_in(self.path)}

    def _origins_in(self, path: str) -> dict[Address, tuple[Address, str]]:
        return self._kept_in(path)[0]

    def promoted(self) -> frozenset[Address]:
        """Rows that were put into the opened file: they keep the numbers that they have as rows of the scratch file.

        OpenError when the file is damaged.
        """
        return self._kept_in(self.path)[1]

    def updates(self) -> dict[Address, Written]:
        """Checkpoint -> as which nodes it was written, of those in the scratch file and those in the user's own file.

        LangGraph does not store that. OpenError when one of the two files is damaged.
        """
        return {**self._kept_in(self.notes_path)[2], **self._kept_in(self.path)[2]}

    def _kept_in(self, path: str) -> _Kept:
        """Read again only when the file has changed: it is asked for at each look at the store."""
        if not os.path.isfile(path):
            return {}, frozenset(), {}
        try:
            with contextlib.closing(SqliteFile(path)) as file:
                token = file.token()
                held = self._kept.get(path)
                if held is None or held[0] != token:
                    held = self._kept[path] = (token, file.look(_read_kept))
                return held[1]
        except OpenError as error:
            if error.slug in _NOT_YET:
                return {}, frozenset(), {}
            raise _damaged(path, error.message, error.slug) from error
        except sqlite3.DatabaseError as error:
            raise _damaged(path, f"{path} is damaged: {error}.", "damaged") from error


def record_origin(connection: sqlite3.Connection, new: Address, origin: Address, sha256: str) -> None:
    connection.execute(_ORIGINS)
    _insert(
        connection,
        "INSERT OR REPLACE INTO studio_origins",
        (
            new.thread_id, new.checkpoint_ns, new.checkpoint_id,
            origin.thread_id, origin.checkpoint_ns, origin.checkpoint_id,
            sha256, _now(),
        ),
    )  # fmt: skip


def record_promoted(path: str, addresses: Sequence[Address]) -> None:
    """Note in a scratch file which of its rows go into the opened file. PatchError when it cannot be written."""
    with write_transaction(path) as connection:
        connection.execute(_PROMOTED)
        for at in addresses:
            row = (at.thread_id, at.checkpoint_ns, at.checkpoint_id, _now())
            _insert(connection, "INSERT OR IGNORE INTO studio_promoted", row)


def record_update(path: str, at: Address, written: Written) -> None:
    """Note in a scratch file as which nodes one of its rows was written. PatchError when it cannot be written."""
    with write_transaction(path) as connection:
        connection.execute(_UPDATES)
        row = (at.thread_id, at.checkpoint_ns, at.checkpoint_id, json.dumps(written), _now())
        _insert(connection, "INSERT OR REPLACE INTO studio_updates", row)


def _insert(connection: sqlite3.Connection, into: str, texts: Sequence[str]) -> None:
    """One row of texts. A path or an id that is not UTF-8 is stored as the bytes that it is; `lenient` reads them back."""
    values = [placed(text, "") for text in texts]
    connection.execute(f"{into} VALUES ({', '.join(place for place, _ in values)})", [value for _, value in values])


def _read_kept(connection: sqlite3.Connection) -> _Kept:
    connection.text_factory = lenient
    names = tables_in(connection)
    origins = _read_origins(connection) if "studio_origins" in names else {}
    keys = "SELECT thread_id, checkpoint_ns, checkpoint_id"
    promoted = connection.execute(f"{keys} FROM studio_promoted").fetchall() if "studio_promoted" in names else ()
    updates = connection.execute(f"{keys}, written FROM studio_updates").fetchall() if "studio_updates" in names else ()
    return (
        origins,
        frozenset(Address(*map(text_of, row)) for row in promoted),
        {Address(*map(text_of, row[:3])): _written(text_of(row[3])) for row in updates},
    )


def _written(text: str) -> Written:
    """Nothing where the entry cannot be read: it only helps to tell."""
    try:
        return tuple((str(node), tuple(map(str, channels))) for node, channels in json.loads(text))
    except (ValueError, TypeError):
        return ()


def _read_origins(connection: sqlite3.Connection) -> dict[Address, tuple[Address, str]]:
    found = connection.execute(
        "SELECT thread_id, checkpoint_ns, checkpoint_id, origin_thread_id, origin_checkpoint_ns, origin_checkpoint_id,"
        " origin_sha256 FROM studio_origins"
    )
    texts = ([text_of(value) for value in row] for row in found)
    return {Address(*row[:3]): (Address(*row[3:6]), row[6]) for row in texts}


def _damaged(path: str, message: str, slug: str) -> OpenError:
    what = "the history of runs" if path.endswith(NOTES_SUFFIX) else "forks"
    return OpenError(message, f"It holds {what} that the studio keeps; move it to another folder to go on without them.", slug)


def create_texts(store: Store) -> tuple[str, str]:
    """The CREATE TABLE texts of a store's checkpoints and writes, whatever the tables are called."""
    view = view_of(store)
    file = SqliteFile(store.location, ignore_wal=view.without_wal)
    with contextlib.closing(file):
        try:
            found = file.look(lambda connection: _texts(connection, view.tables))
        except sqlite3.Error:
            found = None
    return found if found is not None else (rows.CHECKPOINTS, rows.WRITES)


def _texts(connection: sqlite3.Connection, chosen: str | None) -> tuple[str, str] | None:
    tables = rows.find_tables(connection, chosen)
    if tables is None:
        return None
    checkpoints = rows.without_rules(connection, tables.checkpoints, tables.checkpoints_sql)
    if tables.writes is None or tables.writes_sql is None:
        return checkpoints, rows.WRITES
    return checkpoints, rows.without_rules(connection, tables.writes, tables.writes_sql)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
