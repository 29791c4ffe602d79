"""What lies at a path: the header of a database, or in words why there is none. Reads a few bytes, opens only regular files."""

from __future__ import annotations

import os
import re
import stat
from typing import BinaryIO

from msgspec import Struct

from studio.errors import OpenError
from studio.lazy import lazy

MAGIC = b"SQLite format 3\x00"
JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"

HEAD = 4096
"""Bytes from which it is told what a file looks like."""
_CHECKPOINT = lazy(  # its first key, in msgpack and in JSON
    rb"(?:[\x80-\x8f]|\xde..|\xdf....)(?:[\xa0-\xbf]|\xd9.)(?:v|ts|id|channel_values)"
    rb'|(?:\xef\xbb\xbf)?\s*\{\s*"(?:v|ts|id|channel_values)"\s*:',
    re.DOTALL,
)

SIDES = ("-wal", "-shm", "-journal")

ELSEWHERE = "Look for another copy of it."

KNOWN = (
    (b"\x37\x7f\x06", "a write-ahead log of SQLite"),
    (JOURNAL_MAGIC, "a rollback journal of SQLite"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"PGDMP", "a PostgreSQL dump"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
    (b"%PDF", "a PDF"),
    (b"<!DOCTYPE", "a web page"),
    (b"<html", "a web page"),
)


class Header(Struct, frozen=True):
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


def read_header(path: str, shown: str = "") -> Header:
    """The header of a database. Raises OpenError, in words, for whatever else lies at `path`; opens only files on a disk."""
    shown = shown or path
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        beside = [suffix for suffix in SIDES if os.path.exists(path + suffix)]
        if beside:
            raise OpenError(
                f"There is no file {shown}, only its {' and '.join(beside)}.",
                "The rows are lost without the database file itself; was it kept back by an ignore rule?",
                "missing",
            ) from None
        raise OpenError(f"There is no file {shown}.", "Check the path.", "missing") from None
    except (OSError, ValueError) as error:
        raise OpenError(f"{shown} cannot be read: {why(error)}.", slug="unreadable") from error
    if stat.S_ISDIR(status.st_mode):
        raise OpenError(f"{shown} is a folder.", "Name the database file in it.", "folder")
    if (odd := _no_file(path, status.st_mode)) is not None:
        raise OpenError(f"{shown} is {odd[0]}, not a file.", odd[1], "not-a-file")
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(HEAD) if size else b""
            if head and not head.strip(b"\0"):
                blank = _all_zero(file)
    except OSError as error:
        raise OpenError(f"{shown} cannot be read: {why(error)}.", slug="unreadable") from error
    if not head:
        more = " Its -wal holds data that SQLite cannot use without it." if has_bytes(path + "-wal") else ""
        raise OpenError(f"{shown} is empty: it has zero bytes.{more}", ELSEWHERE, "empty")
    if head[:16] != MAGIC:
        if not head.strip(b"\0"):
            what = "holds nothing but zero bytes" if blank else "has an empty header: its first bytes are all zero"
            raise OpenError(
                f"{shown} {what}; its content was lost (a full disk or an interrupted copy).", ELSEWHERE, "zero-filled"
            )
        hint = "Name a database that LangGraph's SqliteSaver has written."
        if path.endswith(SIDES):
            hint = f"Name the database beside it: {shown.rsplit('-', 1)[0]}"
        raise OpenError(f"{shown} is not a SQLite database: it looks like {guess(head)}.", hint, "not-a-database")
    if len(head) < 100:
        raise OpenError(f"{shown} ends inside its header: it has only {size} bytes.", ELSEWHERE, "not-a-database")
    page_size = int.from_bytes(head[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    says = head[24:28] == head[92:96]  # only then is the page count valid
    return Header(page_size, head[18] == 2 or head[19] == 2, int.from_bytes(head[28:32], "big") if says else 0, size)


def odd_side_files(path: str) -> list[str]:
    """Which of the suffixes `SIDES` belong to something that is no file: a folder, a pipe. SQLite would hang at some of them."""
    found = []
    for suffix in SIDES:
        try:
            if not stat.S_ISREG(os.stat(path + suffix).st_mode):
                found.append(suffix)
        except OSError:
            continue
    return found


def refuse_odd_side_files(path: str) -> None:
    """Raises OpenError when something that is no file lies where SQLite would open a side file of this database."""
    for suffix in odd_side_files(path):
        raise OpenError(f"{path}{suffix} is not a regular file.", "Move it away.", "odd-side-file")


_NO_FILES = (
    (stat.S_ISFIFO, "a pipe", "Save what comes out of it, and name that file."),
    (stat.S_ISSOCK, "a socket of a running program", "Name a database file."),
    (stat.S_ISCHR, "a device", "Name a database file."),
    (stat.S_ISBLK, "a disk or another block device", "Name the database file on it."),
)
_MADE_UP = ("/proc/", "/sys/")
"""Where Linux shows what its kernel makes up at each reading; some of it waits for ever, and some is gone once it was read."""


def _no_file(path: str, mode: int) -> tuple[str, str] | None:
    """(what it is, what to do) for something that is no file on a disk."""
    for is_one, words, hint in _NO_FILES:
        if is_one(mode):
            return words, hint
    if not stat.S_ISREG(mode) or os.path.realpath(path).startswith(_MADE_UP):
        return "something that the system makes up", "Name a database file."
    return None


def _without_waiting(path: str, flags: int) -> int:
    """Opens what took the place of a file a moment ago, such as a pipe, without waiting for its other end."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def first_bytes(path: str, most: int = HEAD) -> bytes:
    """How a file begins; nothing of what is no file on a disk, and nothing of a file without a size. Raises OSError."""
    status = os.stat(path)
    if not status.st_size or _no_file(path, status.st_mode) is not None:
        return b""
    with open(path, "rb", opener=_without_waiting) as file:
        return file.read(most)


def begins_like_checkpoint(head: bytes) -> bool:
    return _CHECKPOINT.match(head) is not None and b"channel_values" in head


def guess(head: bytes) -> str:
    """What a file that is not a database looks like, in a few words."""
    for magic, words in KNOWN:
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


def _all_zero(file: BinaryIO) -> bool:
    for _ in range(256):  # the first 256 MB decide
        block = file.read(1 << 20)
        if not block:
            return True
        if block.strip(b"\0"):
            return False
    return True


def has_bytes(path: str) -> bool:
    """Whether a file is there and not empty."""
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False


def why(error: Exception) -> str:
    """An error in a few words for a message."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
