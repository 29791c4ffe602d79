"""How to read a SQLite file without leaving a trace.

A *look* opens the file, reads inside one transaction and closes it again; between looks nothing is held. How a look opens
depends on what lies beside the file at that moment:

    no `-wal`, or one without a commit   `immutable=1`: no lock, no side file. SQLite never notices a writer then, so the
                                         change token is compared afterwards, and a look that was overtaken is repeated.
    `-wal` that somebody works with      a private copy of a small file; of a large one `mode=ro&readonly_shm=1`: read under the
                                         writer's own locks, the `-shm` is not written.
    `-wal` at rest                       the lock-free VFS in exclusive mode, which has its index in memory and needs no `-shm`.
    hot `-journal`                       a private copy, in which SQLite may roll back.
    a folder or pipe of such a name      a copy without it, or `immutable=1`: SQLite would open it, and hang at a pipe.
    shorter than its header says         `immutable=1` with the page count check off; the missing pages are missing rows.

Two things decide the details. SQLite deletes a `-wal` without a commit when a lock-free connection closes, so that VFS is only
used after a commit was found in the log. (A plain read of a log at rest would write its `-shm`; with a stale `-shm` SQLite
tries for ten seconds.) And POSIX drops all locks of a process on a file when *any* descriptor of it is closed, so this process
has one look, or one write of its own, at a time (`turn`).

One trace can remain: a writer that ends in the very moment of a look under its locks cannot remove its `-wal`, whole and with
nothing lost in it, and the next writer does. Measured with a file read so: 1 of 300 closes beside a look each 250 ms, 1 of 7
beside looks each 5 ms. A copy for each state of a large file costs more, and reading without locks beside a writer could delete
its log.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import Struct

from studio.errors import OpenError
from studio.model import Problem
from studio.stores.private_copy import PrivateCopy
from studio.stores.sniff import JOURNAL_MAGIC, SIDES, Header, odd_side_files, read_header, why
from studio.stores.wal import has_commit, is_in_use, writer_of

T = TypeVar("T")

LOCK_FREE_VFS = "win32-none" if os.name == "nt" else "unix-none"
TRIES = 8
LIVE_COPY_BYTES = 8 << 20
"""A living writer's file up to this size is copied (some milliseconds) instead of being read under locks."""
BUSY_SECONDS = 0.7
"""How long one try waits for a writer's lock."""
RACY_SECONDS = 0.02
"""File times advance in steps of some milliseconds: two changes within one step look like one."""

Stamp = tuple[int, int, int] | None
Token = tuple[Stamp, Stamp, Stamp]


class _Moved(Exception):
    """The file changed during a look."""


_turn = threading.RLock()
_turns = 0
"""How many turns the thread that has it holds, one inside another."""


@contextlib.contextmanager
def turn(path: str) -> Iterator[None]:
    """Hold this process' turn at `path`: for a look, and for a write of ours. Re-entrant.

    It is one turn for all files: a fork reads one file while it writes another, and two turns in two orders would block for ever.
    """
    global _turns
    with _turn:
        _turns += 1
        try:
            yield
        finally:
            _turns -= 1


class SqliteFile:
    """One database file that is looked at again and again.

    `ignore_wal` shows the main file alone.
    """

    def __init__(self, path: str, *, ignore_wal: bool = False) -> None:
        self.location = os.path.abspath(path)
        self.path = os.path.realpath(path)
        self._ignore_wal = ignore_wal
        self._header: tuple[Stamp, Header] | None = None
        self._commit: tuple[Stamp, bool | None] | None = None
        self._copy: tuple[Token, PrivateCopy] | None = None
        self._problems: dict[str, Problem] = {}
        self._closed = False
        with turn(self.path):
            self._read_header()

    def token(self) -> Token:
        """(size, mtime_ns, inode) of the file, its `-wal` and its `-journal`; equal as long as nothing was written."""
        log = None if self._ignore_wal else _stamp(self.path + "-wal")
        return _stamp(self.path), log, _stamp(self.path + "-journal")

    @property
    def is_cut(self) -> bool:
        """Whether the file was shorter than its header says when it was looked at last."""
        return "truncated" in self._problems

    def problems(self) -> list[Problem]:
        """What is wrong with the file as a whole."""
        return list(self._problems.values())

    def look(self, read: Callable[[sqlite3.Connection], T], undo: Callable[[], None] = lambda: None) -> T:
        """Run `read` on a consistent snapshot. It is called again when the file moved under it, even where it raised: then `undo`
        is called first, in the same turn, to take back what `read` noted. `sqlite3.DatabaseError` passes through when the file
        itself is damaged.

        Raises OpenError when the file is gone or cannot be read.
        """
        if self._closed:
            raise OpenError(f"{self.location} was closed.")
        error: Exception = _Moved()
        first = self.token()
        for attempt in range(TRIES):
            with turn(self.path):
                before = self.token()
                how: _How | None = None
                try:
                    how = self._how(before, attempt, before[2] == first[2])
                    if not how.guarded:
                        _wait_out_racy(before)
                    result = self._look(how, read)
                except sqlite3.DatabaseError as problem:
                    # while a writer is at work any error may be the writer's doing, so only an error at rest counts
                    if self.token() == before and not _is_passing(problem):
                        raise
                    error = problem
                except _Moved as moved:
                    error = moved
                except Exception:  # what `read` says of a file is worth no more than what it returns
                    if how is None or how.guarded or self.token() == before:
                        raise
                    error = _Moved()
                else:
                    if how.guarded or self.token() == before:
                        return result
                    error = _Moved()
                undo()
            time.sleep(0.01 * (attempt + 1))
        raise OpenError(
            f"{self.location} cannot be read now: {_words(error)}.", "Try again when the program that writes it is less busy."
        )

    def close(self) -> None:
        """End all looks; remove the private copy."""
        with turn(self.path):
            self._closed = True
            self._drop_copy()

    # ---- how to open

    def _how(self, token: Token, attempt: int, same_journal: bool) -> _How:
        _, wal, journal = token
        header = self._read_header()
        if self._copy is not None and self._copy[0] == token:
            return self._private(token)
        for passing in ("journal-left", "being-written", "truncated"):
            self._problems.pop(passing, None)
        odd = self._odd_side_files()  # SQLite would open them, and hang at a pipe: it only gets a copy without them
        if "-journal" not in odd and journal is not None and journal[0] > 0 and self._is_hot():
            # a running transaction of a living writer can be read past until it writes; a journal that was left behind cannot
            writer = writer_of(self.path) if _turns == 1 else None  # a write of ours around this look would lose its locks
            may_share = writer == "reserved" or (writer is None and (attempt < 3 or not same_journal))
            if may_share and not header.wal and not odd:
                return _How("shared", f"{_uri(self.path)}?mode=ro", guarded=True)
            return self._private(token, _of_journal(self.path, writer))
        if "-wal" not in odd and wal is not None and wal[0] > 0:
            commit = self._has_commit(wal)
            if odd and commit is not False:
                return self._private(token)
            if commit is not False and attempt < 4 and is_in_use(self.path + "-shm"):
                return self._beside_writer(token, attempt)
            if commit and attempt < 4:
                return _How("alone", f"{_uri(self.path)}?mode=ro&vfs={LOCK_FREE_VFS}", exclusive=True)
            if commit is not False:
                return self._private(token)
        if (
            attempt >= 3 and not self._ignore_wal and not odd
        ):  # overtaken by a busy writer again and again: take a lock beside its own
            if not header.wal:
                return _How("shared", f"{_uri(self.path)}?mode=ro", guarded=True)
            if wal is not None and is_in_use(self.path + "-shm"):
                return _How("shared", f"{_uri(self.path)}?mode=ro&readonly_shm=1", guarded=True)
        if header.truncated:
            self._problems["truncated"] = Problem(
                "truncated",
                self.location,
                f"The file has {header.size:,} bytes and its header says {header.full_size:,}: the rest is missing. "
                "What is there is shown.",
            )
        return _How("immutable", f"{_uri(self.path)}?immutable=1", short=header.truncated)

    def _beside_writer(self, token: Token, attempt: int) -> _How:
        """A connection holds a lock that keeps the writer from removing its log when it ends in that moment; a small file is
        copied instead, once for each state of it."""
        size = sum(stamp[0] for stamp in token if stamp is not None)
        if size <= LIVE_COPY_BYTES and attempt < 2:
            with contextlib.suppress(OpenError):  # no room: read it where it is
                return self._private(token)
        return _How("shared", f"{_uri(self.path)}?mode=ro&readonly_shm=1", guarded=True)

    def _look(self, how: _How, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = _connect(how)
        except sqlite3.OperationalError:
            if not how.exclusive:
                raise
            how = self._private(self.token())  # this build of SQLite has no lock-free VFS
            connection = _connect(how)
        try:
            if how.exclusive:
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            if how.short:
                connection.execute("PRAGMA writable_schema=ON")
            connection.execute("BEGIN")
            try:
                return read(connection)
            except UnicodeDecodeError as error:  # Python cannot read SQLite's message, which quotes the damaged schema
                raise sqlite3.DatabaseError("malformed database schema") from error
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        finally:
            connection.close()

    def _private(self, token: Token, problem: Problem | None = None) -> _How:
        if self._copy is None or self._copy[0] != token:
            self._drop_copy()
            _wait_out_racy(token)
            try:
                copy = PrivateCopy(self.path)
            except FileNotFoundError:
                raise _Moved from None
            if self.token() != token:
                copy.remove()
                raise _Moved
            self._copy = (token, copy)
        if problem is not None:
            self._problems[problem.kind] = problem
        return _How("copy", f"{_uri(self._copy[1].path)}?mode=rw", guarded=True)

    def _drop_copy(self) -> None:
        if self._copy is not None:
            self._copy[1].remove()
            self._copy = None

    def _odd_side_files(self) -> list[str]:
        found = odd_side_files(self.path)
        for suffix in SIDES:
            self._problems.pop("odd" + suffix, None)
        for suffix in found:
            self._problems["odd" + suffix] = Problem(
                "odd-side-file", self.path + suffix, "This is not a regular file; the database is shown without it."
            )
        return found

    def _is_hot(self) -> bool:
        """Whether the journal holds what a transaction has overwritten."""
        try:
            with open(self.path + "-journal", "rb") as file:
                return file.read(len(JOURNAL_MAGIC)) == JOURNAL_MAGIC
        except FileNotFoundError:
            return False  # its transaction has just ended: the token has moved, and the look is done again
        except OSError as error:
            raise self._unreadable("-journal", error) from error

    def _unreadable(self, suffix: str, error: OSError) -> OpenError:
        return OpenError(
            f"{self.location} cannot be shown without its {suffix[1:]}, and {self.path}{suffix} cannot be read: {why(error)}.",
            "Make that file readable too, or copy both files.",
            "unreadable",
        )

    def _read_header(self) -> Header:
        stamp = _stamp(self.path)
        if self._header is None or self._header[0] != stamp:
            self._header = (stamp, read_header(self.path, self.location))
        return self._header[1]

    def _has_commit(self, wal: Stamp) -> bool | None:
        if self._commit is None or self._commit[0] != wal:
            try:
                self._commit = (wal, has_commit(self.path + "-wal"))
            except FileNotFoundError:
                return False  # its writer has just ended and removed it: the token has moved, and the look is done again
            except OSError as error:
                raise self._unreadable("-wal", error) from error
        return self._commit[1]


def _of_journal(path: str, writer: str | None) -> Problem:
    """Why the file is shown as it was before a transaction."""
    if writer in ("exclusive", "reserved"):
        words = "A program is writing to the file; it is shown as it was before that transaction."
        return Problem("being-written", f"{path}-journal", words)
    return Problem("journal-left", f"{path}-journal", "A transaction was cut off; the file is shown as it was before it.")


class _How(Struct, frozen=True):
    name: str
    uri: str
    guarded: bool = False
    """Locks or privacy make the snapshot consistent: no need to compare tokens."""
    exclusive: bool = False
    short: bool = False


def _connect(how: _How) -> sqlite3.Connection:
    return sqlite3.connect(how.uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _wait_out_racy(token: Token) -> None:
    """Let the clock of file times step on, so that a write during the look shows in the token."""
    newest = max((stamp[1] for stamp in token if stamp is not None), default=0)
    age = time.time() - newest / 1e9
    if 0 <= age < RACY_SECONDS:
        time.sleep(RACY_SECONDS - age)


_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~/")


def _uri(path: str) -> str:
    """As `urllib.parse.quote` has it, whose import takes as long as opening the file."""
    return "file:" + "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in os.fsencode(path))


def _is_passing(error: sqlite3.Error) -> bool:
    """Errors of locks and shared memory that another attempt may not meet."""
    passing = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PROTOCOL", "SQLITE_IOERR_SHORT")
    return (getattr(error, "sqlite_errorname", "") or "").startswith(passing)


def _words(error: Exception) -> str:
    return "it keeps changing" if isinstance(error, _Moved) else why(error)
