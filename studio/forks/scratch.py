"""The scratch file: where forks of an opened store go, so that the store itself stays as it is.

One SQLite file per opened store, in the store's own table layout, so that the user's own LangGraph can open it. It lies
in the user's data folder (0700, files 0600) and is found again by the store's real path. Besides LangGraph's tables it
holds two small ones of ours: `studio_scratch` (which store it belongs to) and `studio_origins` (which checkpoint each fork
was made from), so that a fork and its origin are stored together or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from studio.errors import PatchError, RefError, StudioError
from studio.forks import rows
from studio.model import Address
from studio.stores.sqlite_file import SqliteFile, turn

if TYPE_CHECKING:
    from studio.stores.base import Store

ENV = "STUDIO_DATA_DIR"
"""Environment variable: keep scratch files and notes in this folder instead of the user's data folder."""
SUFFIX = ".scratch.sqlite"
NOTES_SUFFIX = ".notes.sqlite"
BUSY_SECONDS = 10.0
"""How long a write waits for another program to finish its own."""

_ORIGINS = """CREATE TABLE IF NOT EXISTS studio_origins (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL,
    origin_thread_id TEXT NOT NULL, origin_checkpoint_ns TEXT NOT NULL, origin_checkpoint_id TEXT NOT NULL,
    origin_sha256 TEXT NOT NULL, created_at TEXT NOT NULL, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
)"""
_READY = frozenset({"checkpoints", "writes", "studio_scratch", "studio_origins"})
_META = "CREATE TABLE IF NOT EXISTS studio_scratch (key TEXT PRIMARY KEY, value TEXT NOT NULL)"


def default_folder() -> Path:
    """Where scratch files are kept; not necessarily there yet."""
    if given := os.environ.get(ENV):
        return Path(given).expanduser().absolute()
    import platformdirs  # only needed once a place for forks is asked for

    return Path(platformdirs.user_data_dir("checkpoint-studio", appauthor=False))


def _temporary_folder() -> Path:
    """A folder of ours below the system's temporary one: the same for each process of this user, fresh when that is not ours."""
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"checkpoint-studio-{owner}"
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


def _can_hold_files(folder: Path) -> bool:
    """Whether `folder` is writable, or could be made in the nearest folder that exists."""
    for place in (folder, *folder.parents):
        if place.exists():
            return place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    return False


def _key(location: str) -> str:
    """File name without suffix for a store: its readable stem and a hash of its real path."""
    real = os.path.realpath(location)
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(real).stem)[:40].strip(".-") or "store"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return f"{stem}-{digest}"


def is_scratch_file(path: str | os.PathLike[str]) -> bool:
    """True for a file that carries our own tables: it may be written to. Looks without a trace, whatever the file is."""
    if not os.path.isfile(path):
        return False
    try:
        file = SqliteFile(os.fspath(path))
        with contextlib.closing(file):
            return file.look(_has_our_table)
    except (OSError, sqlite3.Error, StudioError):
        return False


def _has_our_table(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'studio_scratch'").fetchone() is not None


def _connect(path: str, mode: str, timeout: float | None = None) -> sqlite3.Connection:
    uri = Path(path).absolute().as_uri() + f"?mode={mode}"
    patience = BUSY_SECONDS if timeout is None else timeout
    return sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None, check_same_thread=False)


@contextlib.contextmanager
def write_transaction(path: str, timeout: float | None = None) -> Iterator[sqlite3.Connection]:
    """A connection inside BEGIN IMMEDIATE on an existing file: all that is done in it is stored, or nothing.

    PatchError when another writer holds the file, or when the file cannot be written.
    """
    with turn(path):  # no look of this process may be under way: its close would drop our locks
        try:
            connection = _connect(path, "rw", timeout)
        except sqlite3.Error as error:
            raise _cannot_write(path, error) from error
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise _cannot_write(path, error) from error
            raise
        finally:
            connection.close()


def _cannot_write(path: str, error: sqlite3.Error) -> PatchError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return PatchError(
            f"{path} is locked: another program is writing to it. Nothing was stored.",
            "Wait until that program is done, or fork into the scratch file instead.",
            "locked",
        )
    if "readonly" in text or "unable to open" in text:
        return PatchError(
            f"{path} cannot be written ({text}). Nothing was stored.",
            "Fork into a scratch file (--scratch FILE) in a folder where you may write.",
            "read-only",
        )
    return PatchError(f"{path}: {text}. Nothing was stored.", "", "cannot-write")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite does not wait by itself when another process does the same at this moment."""
    for pause in (0.01, 0.05, 0.2, 0.5, 1.0):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            time.sleep(pause)
    connection.execute("PRAGMA journal_mode = WAL")


class Scratch:
    """The scratch file of one store. Making the object touches nothing; `ensure` makes the file."""

    def __init__(self, store_location: str, path: str | None = None) -> None:
        self.store_location = os.path.realpath(store_location)
        self.temporary = False
        """True when it lies in a temporary folder because the user's data folder cannot be written."""
        self.is_store = path is None and is_scratch_file(self.store_location)
        """True when the opened location is itself a scratch file: forks go right into it."""
        self.folder = default_folder()
        self.given = path is not None
        if not self.given and not _can_hold_files(self.folder):
            self.folder, self.temporary = _temporary_folder(), True
        if path is not None:
            self.path = os.path.abspath(os.path.expanduser(path))
        elif self.is_store:
            self.path = self.store_location
        else:
            self.path = str(self.folder / (_key(self.store_location) + SUFFIX))
        self.notes_path = (
            self.path.removesuffix(SUFFIX) + NOTES_SUFFIX if not self.given else str(Path(self.path).with_suffix(NOTES_SUFFIX))
        )
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
        self._make_folder()
        try:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            connection = _connect(self.path, "rw")
        except (OSError, sqlite3.Error) as error:
            raise self._refusal(f"cannot be made: {error}") from error
        checkpoints_sql, writes_sql = create_texts(base_store)
        try:
            with contextlib.closing(connection):
                _use_wal(connection)
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(rows.create_as(checkpoints_sql, "checkpoints"))
                connection.execute(rows.create_as(writes_sql, "writes"))
                connection.execute(_META)
                connection.execute(_ORIGINS)
                connection.executemany(
                    "INSERT OR IGNORE INTO studio_scratch VALUES (?, ?)",
                    [("format", "1"), ("store", self.store_location), ("created_at", _now())],
                )
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._refusal(f"cannot be used: {error}") from error

    def _refuse_foreign(self) -> frozenset[str]:
        """The tables in the file; PatchError when it is a database of somebody else."""
        names = self._tables()
        if names and "studio_scratch" not in names:
            raise self._refusal("is another database, not a scratch file of the studio")
        return names

    def _tables(self) -> frozenset[str]:
        """Names of the tables in the file that is there."""
        try:
            with contextlib.closing(_connect(self.path, "ro")) as connection:
                return frozenset(row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
        except sqlite3.OperationalError:
            return frozenset()  # locked while another process makes it
        except sqlite3.DatabaseError as error:
            raise self._refusal(f"is not a scratch file: {error}") from error

    def _refusal(self, reason: str) -> PatchError:
        return PatchError(f"{self.path} {reason}.", "Choose another place with --scratch FILE.", "no-scratch")

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

    def record_origin(self, new: Address, origin: Address, sha256: str) -> None:
        """Keep that `new` was forked from `origin`, whose blob has that hash. The file must exist."""
        with write_transaction(self.path) as connection:
            record_origin(connection, new, origin, sha256)

    def origins(self) -> dict[Address, tuple[Address, str]]:
        """Fork -> (origin, sha256 of the origin's blob), of forks in the scratch file and of those in the user's own file."""
        found = _read_origins(self.notes_path)
        found.update(_read_origins(self.path))
        return found


def record_origin(connection: sqlite3.Connection, new: Address, origin: Address, sha256: str) -> None:
    connection.execute(_ORIGINS)
    connection.execute(
        "INSERT OR REPLACE INTO studio_origins VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.thread_id, new.checkpoint_ns, new.checkpoint_id,
            origin.thread_id, origin.checkpoint_ns, origin.checkpoint_id,
            sha256, _now(),
        ),
    )  # fmt: skip


def _read_origins(path: str) -> dict[Address, tuple[Address, str]]:
    if not os.path.isfile(path):
        return {}
    try:
        with contextlib.closing(_connect(path, "ro")) as connection:
            return {
                Address(*row[:3]): (Address(*row[3:6]), row[6])
                for row in connection.execute(
                    "SELECT thread_id, checkpoint_ns, checkpoint_id, origin_thread_id, origin_checkpoint_ns,"
                    " origin_checkpoint_id, origin_sha256 FROM studio_origins"
                )
            }
    except sqlite3.Error:
        return {}


def create_texts(store: Store) -> tuple[str, str]:
    """The CREATE TABLE texts of a store's checkpoints and writes, whatever the tables are called."""
    file = SqliteFile(store.location)
    with contextlib.closing(file):
        try:
            tables = file.look(rows.find_tables)
        except sqlite3.Error:
            tables = None
    if tables is None:
        return rows.CHECKPOINTS, rows.WRITES
    return tables.checkpoints_sql, tables.writes_sql or rows.WRITES


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class ScratchFile:
    """One line of `studio scratch ls`."""

    path: str
    store: str
    """Real path of the store whose forks it holds."""
    store_exists: bool
    forks: int
    size_bytes: int
    created_at: str | None


def list_files(folder: Path | None = None) -> list[ScratchFile]:
    """All scratch files in the user's data folder (and in the temporary one, when that is used), by name."""
    folders = [folder] if folder else [default_folder(), Path(tempfile.gettempdir()) / f"checkpoint-studio-{_owner()}"]
    found = []
    for place in folders:
        if place.is_dir():
            found += [entry for path in sorted(place.glob("*" + SUFFIX)) if (entry := describe(str(path)))]
    return found


def _owner() -> object:
    return os.getuid() if hasattr(os, "getuid") else "user"


def describe(path: str) -> ScratchFile | None:
    """What a scratch file holds; None for a file that is none."""
    if not is_scratch_file(path):
        return None
    try:
        with contextlib.closing(_connect(path, "ro")) as connection:
            meta = dict(connection.execute("SELECT key, value FROM studio_scratch"))
            forks = connection.execute("SELECT count(*) FROM studio_origins").fetchone()[0]
    except sqlite3.Error:
        return None
    store = str(meta.get("store", ""))
    size = sum(os.path.getsize(path + end) for end in ("", "-wal") if os.path.exists(path + end))
    return ScratchFile(path, store, bool(store) and os.path.exists(store), int(forks), size, meta.get("created_at"))


def remove(path_or_store: str, *, notes: bool = False) -> list[str]:
    """Delete a scratch file, named by its own path or by its store's; with `notes` also marks, notes and run history.

    Returns what was deleted. RefError when there is none; PatchError while another program writes to it.
    """
    path = path_or_store if is_scratch_file(path_or_store) else Scratch(path_or_store).path
    if not is_scratch_file(path):
        raise RefError(f"There is no scratch file for {path_or_store}.", "`studio scratch ls` lists them.")
    with write_transaction(path, timeout=1.0):
        pass  # refuses while a run or another studio is in the middle of a write
    gone = []
    wanted = [path + end for end in ("", "-wal", "-shm", "-journal")]
    if notes and path.endswith(SUFFIX):
        wanted += [path.removesuffix(SUFFIX) + NOTES_SUFFIX + end for end in ("", "-wal", "-shm")]
    for name in wanted:
        if os.path.lexists(name):
            os.unlink(name)
            gone.append(name)
    return gone
