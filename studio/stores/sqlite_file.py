"""How to read a SQLite file without leaving a trace.

A *look* opens the file, reads inside one transaction and closes it again; between looks nothing is held. How a look opens
depends on what lies beside the file at that moment:

    no `-wal`, or one without a commit   `immutable=1`: no lock, no side file. SQLite never notices a writer then, so the
                                         change token is compared afterwards, and a look that was overtaken is repeated.
    `-wal` with its `-shm`               `mode=ro&readonly_shm=1`: a living writer's log is read under its own locks, one that
                                         is at rest through a private index; the `-shm` is never created nor written.
    `-wal` alone (a copied pair)         the lock-free VFS in exclusive mode, which needs no `-shm`.
    hot `-journal`                       a private copy, in which SQLite may roll back.
    shorter than its header says         `immutable=1` with the page count check off; the missing pages are missing rows.

Two things decide the details. SQLite deletes a `-wal` without a commit when a lock-free connection closes, so that VFS is only
used after a commit was found in the log. And POSIX drops all locks of a process on a file when *any* descriptor of it is
closed, so this process has one look, or one write of its own, at a time (`turn`).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from studio.errors import OpenError
from studio.model import Problem
from studio.stores.private_copy import PrivateCopy

T = TypeVar("T")

MAGIC = b"SQLite format 3\x00"
JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
LOCK_FREE_VFS = "win32-none" if os.name == "nt" else "unix-none"
TRIES = 6
RACY_SECONDS = 0.02
"""File times advance in steps of some milliseconds: two changes within one step look like one."""
WAL_SCAN_BYTES = 2 << 20
"""How far into a log a first commit is looked for; beyond that a private copy is the cheaper way."""

Stamp = tuple[int, int, int] | None
Token = tuple[Stamp, Stamp, Stamp]


@dataclass(frozen=True, slots=True)
class Header:
    """The first 100 bytes of a database."""

    page_size: int
    wal: bool
    """True when it was last written in write-ahead-log mode."""
    pages: int
    """Pages it should have; 0 where the header does not say."""
    size: int
    """Bytes that are there."""

    @property
    def full_size(self) -> int:
        return self.pages * self.page_size

    @property
    def truncated(self) -> bool:
        return self.size < self.full_size


class _Moved(Exception):
    """The file changed during a look."""


_turn = threading.RLock()


@contextlib.contextmanager
def turn(path: str) -> Iterator[None]:
    """Hold this process' turn at `path`: for a look, and for a write of ours. Re-entrant.

    It is one turn for all files: a fork reads one file while it writes another, and two turns in two orders would block for ever.
    """
    with _turn:
        yield


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
        return _stamp(self.path), _stamp(self.path + "-wal"), _stamp(self.path + "-journal")

    def problems(self) -> list[Problem]:
        """What is wrong with the file as a whole."""
        return list(self._problems.values())

    def look(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run `read` on a consistent snapshot. It is called again when the file moved under it, so it must not keep anything
        from a call that did not return. `sqlite3.DatabaseError` passes through when the file itself is damaged.

        Raises OpenError when the file is gone or cannot be read.
        """
        if self._closed:
            raise OpenError(f"{self.location} was closed.")
        error: Exception = _Moved()
        for attempt in range(TRIES):
            with turn(self.path):
                before = self.token()
                try:
                    how = self._how(before, attempt)
                    _wait_out_racy(before)
                    result = self._look(how, read)
                except sqlite3.DatabaseError as problem:
                    # while a writer is at work any error may be the writer's doing, so only an error at rest counts
                    if self.token() == before and not _is_passing(problem):
                        raise
                    error = problem
                except _Moved as moved:
                    error = moved
                else:
                    if how.guarded or self.token() == before:
                        return result
                    error = _Moved()
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

    def _how(self, token: Token, attempt: int) -> _How:
        main, wal, journal = token
        header = self._read_header()
        if journal is not None and journal[0] > 0 and _starts_with(self.path + "-journal", JOURNAL_MAGIC):
            # a running transaction of a living writer can be read past; a journal that was left behind cannot
            if attempt < 3:
                return _How("shared", f"{_uri(self.path)}?mode=ro", guarded=True, or_copy=True)
            return self._private("journal-left", token, "A transaction was cut off; shown as it was before that transaction.")
        if wal is not None and wal[0] > 0 and not self._ignore_wal:
            if os.path.exists(self.path + "-shm"):
                if attempt < 4:
                    return _How("shared", f"{_uri(self.path)}?mode=ro&readonly_shm=1", guarded=True)
                return self._private("", token, "")
            commit = self._has_commit(wal)
            if commit:
                return _How("alone", f"{_uri(self.path)}?mode=ro&vfs={LOCK_FREE_VFS}", exclusive=True, or_copy=True)
            if commit is None:
                return self._private("", token, "")
        elif attempt >= 3 and not header.wal:
            return _How("shared", f"{_uri(self.path)}?mode=ro", guarded=True)  # a busy writer with a rollback journal: wait for it
        if header.truncated:
            self._problems["truncated"] = Problem(
                "truncated", self.location,
                f"The file has {header.size:,} bytes, its header says {header.full_size:,}: the rest is missing. What is there is shown.",
            )
        else:
            self._problems.pop("truncated", None)
        return _How("immutable", f"{_uri(self.path)}?immutable=1", short=header.truncated)

    def _look(self, how: _How, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = sqlite3.connect(how.uri, uri=True, timeout=2.0, isolation_level=None, check_same_thread=False)
        except sqlite3.OperationalError:
            if how.or_copy:  # e.g. a build of SQLite without the lock-free VFS
                how = self._private("", self.token(), "")
                connection = sqlite3.connect(how.uri, uri=True, timeout=2.0, isolation_level=None, check_same_thread=False)
            else:
                raise
        try:
            if how.exclusive:
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            if how.short:
                connection.execute("PRAGMA writable_schema=ON")
            connection.execute("BEGIN")
            try:
                return read(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        finally:
            connection.close()

    def _private(self, slug: str, token: Token, message: str) -> _How:
        if self._copy is None or self._copy[0] != token:
            self._drop_copy()
            copy = PrivateCopy(self.path)
            if self.token() != token:
                copy.remove()
                raise _Moved
            self._copy = (token, copy)
        if slug:
            self._problems[slug] = Problem(slug, self.location, message)
        return _How("copy", f"{_uri(self._copy[1].path)}?mode=rw", guarded=True)

    def _drop_copy(self) -> None:
        if self._copy is not None:
            self._copy[1].remove()
            self._copy = None

    def _read_header(self) -> Header:
        stamp = _stamp(self.path)
        if self._header is None or self._header[0] != stamp:
            self._header = (stamp, read_header(self.path, self.location))
        return self._header[1]

    def _has_commit(self, wal: Stamp) -> bool | None:
        if self._commit is None or self._commit[0] != wal:
            self._commit = (wal, wal_has_commit(self.path + "-wal"))
        return self._commit[1]


@dataclass(frozen=True, slots=True)
class _How:
    name: str
    uri: str
    guarded: bool = False
    """Locks or privacy make the snapshot consistent: no need to compare tokens."""
    exclusive: bool = False
    short: bool = False
    or_copy: bool = False


def read_header(path: str, shown: str = "") -> Header:
    """The header of a database. Raises OpenError, in words, for whatever else lies at `path`; opens nothing but regular files."""
    shown = shown or path
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        beside = [suffix for suffix in ("-wal", "-shm", "-journal") if os.path.exists(path + suffix)]
        if beside:
            raise OpenError(
                f"There is no file {shown}, only its {' and '.join(beside)}.",
                "The rows are lost without the database file itself; was it kept back by an ignore rule?", "missing",
            ) from None
        raise OpenError(f"There is no file {shown}.", "Check the path.", "missing") from None
    except (OSError, ValueError) as error:
        raise OpenError(f"{shown} cannot be read: {_words(error)}.", slug="unreadable") from error
    if stat.S_ISDIR(status.st_mode):
        raise OpenError(f"{shown} is a folder.", "Name the database file in it.", "folder")
    if not stat.S_ISREG(status.st_mode):
        raise OpenError(f"{shown} is not a regular file (a pipe, a device or a socket).", "Name a database file.", "not-a-file")
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
            size = os.fstat(file.fileno()).st_size
            if head and not head.strip(b"\0"):
                blank = _all_zero(file)
    except OSError as error:
        raise OpenError(f"{shown} cannot be read: {_words(error)}.", slug="unreadable") from error
    if not head:
        beside_wal = _stamp(path + "-wal")
        more = " Its -wal holds data that SQLite cannot use without it." if beside_wal and beside_wal[0] else ""
        raise OpenError(f"{shown} is empty: it has zero bytes.{more}", "Look for another copy of it.", "empty")
    if head[:16] != MAGIC:
        if not head.strip(b"\0"):
            what = "holds nothing but zero bytes" if blank else "has an empty header: its first bytes are all zero"
            raise OpenError(
                f"{shown} {what}; its content was lost (a full disk or an interrupted copy).", "Look for another copy of it.", "zero-filled"
            )
        hint = "Name a database that LangGraph's SqliteSaver has written."
        if path.endswith(("-wal", "-shm", "-journal")):
            hint = f"Name the database beside it: {shown.rsplit('-', 1)[0]}"
        raise OpenError(f"{shown} is not a SQLite database: it looks like {guess(head)}.", hint, "not-a-database")
    if len(head) < 100:
        raise OpenError(f"{shown} ends inside its header: it has only {size} bytes.", "Look for another copy of it.", "not-a-database")
    page_size = int.from_bytes(head[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    says = head[24:28] == head[92:96]  # only then is the page count valid
    return Header(page_size, head[18] == 2 or head[19] == 2, int.from_bytes(head[28:32], "big") if says else 0, size)


def guess(head: bytes) -> str:
    """What a file that is not a database looks like, in a few words."""
    known = (
        (b"\x37\x7f\x06", "a write-ahead log of SQLite"), (JOURNAL_MAGIC, "a rollback journal of SQLite"),
        (b"\x1f\x8b", "a gzip archive"), (b"PK\x03\x04", "a zip archive"), (b"\x28\xb5\x2f\xfd", "a zstd archive"),
        (b"PGDMP", "a PostgreSQL dump"), (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
        (b"\x80\x04\x95", "a Python pickle"), (b"\x80\x05\x95", "a Python pickle"), (b"DUCK", "a DuckDB database"),
        (b"%PDF", "a PDF"), (b"<!DOCTYPE", "a web page"), (b"<html", "a web page"),
    )
    for magic, words in known:
        if head.startswith(magic):
            return words
    if head[8:12] == b"DUCK":
        return "a DuckDB database"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if b"\0" not in head and sum(byte < 9 or 13 < byte < 32 for byte in head) == 0:
        if text.startswith((b"{", b"[")):
            return "JSON"
        if b"CREATE TABLE" in head or b"INSERT INTO" in head or text.startswith(b"--"):
            return "an SQL script"
        return "text"
    return "other binary data, or an encrypted database"


def wal_has_commit(path: str) -> bool | None:
    """Whether a `-wal` holds a valid commit; None when none was found within the first `WAL_SCAN_BYTES`."""
    with open(path, "rb") as file:
        head = file.read(32)
        if len(head) < 32:
            return False
        magic, _version, page_size = struct.unpack(">III", head[:12])
        if magic & 0xFFFFFFFE != 0x377F0682 or not 512 <= page_size <= 65536:
            return False
        order = ">" if magic & 1 else "<"
        sums = _wal_sum(order, head[:24], (0, 0))
        if sums != struct.unpack(">II", head[24:32]):
            return False
        read = 0
        while read < WAL_SCAN_BYTES:
            frame = file.read(24 + page_size)
            if len(frame) < 24 + page_size or frame[8:16] != head[16:24]:
                return False
            sums = _wal_sum(order, frame[24:], _wal_sum(order, frame[:8], sums))
            if sums != struct.unpack(">II", frame[16:24]):
                return False
            if frame[4:8] != b"\0\0\0\0":
                return True
            read += len(frame)
    return None


def _wal_sum(order: str, data: bytes, start: tuple[int, int]) -> tuple[int, int]:
    """SQLite's running checksum over pairs of 32-bit words."""
    first, second = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second


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


def _starts_with(path: str, magic: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def _all_zero(file: Any) -> bool:
    for _ in range(256):  # the first 256 MB decide
        block = file.read(1 << 20)
        if not block:
            return True
        if block.strip(b"\0"):
            return False
    return True


def _uri(path: str) -> str:
    return "file:" + quote(os.fsencode(path))


def _is_passing(error: sqlite3.Error) -> bool:
    """Errors of locks and shared memory that another attempt may not meet."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PROTOCOL", "SQLITE_IOERR_SHORT"))


def _words(error: Exception) -> str:
    if isinstance(error, _Moved):
        return "it keeps changing"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
