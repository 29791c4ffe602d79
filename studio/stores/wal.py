"""What SQLite leaves beside a file, as far as two questions go: does the log hold anything, and is somebody at work with it?"""

from __future__ import annotations

import os
import struct
import sys

LOCK_BYTES = (120, 9)
"""First byte and number of the locks in a `-shm`; each connection to a log holds the last one."""

RESERVED_BYTE, SHARED_BYTES = (0x40000001, 1), (0x40000002, 510)
"""In a database itself: who is about to write holds the one, who writes all of the others (SQLite: `RESERVED_BYTE` and on)."""

SCAN_BYTES = 2 << 20
"""How far into a log a first commit is looked for; beyond that a private copy of the file is the cheaper way."""


def has_commit(path: str) -> bool | None:
    """Whether a `-wal` holds a valid commit; None when none was found within the first `SCAN_BYTES`."""
    with open(path, "rb") as file:
        head = file.read(32)
        if len(head) < 32:
            return False
        magic, _version, page_size = struct.unpack(">III", head[:12])
        if magic & 0xFFFFFFFE != 0x377F0682 or not 512 <= page_size <= 65536:
            return False
        order = ">" if magic & 1 else "<"
        sums = _checksum(order, head[:24], (0, 0))
        if sums != struct.unpack(">II", head[24:32]):
            return False
        read = 0
        while read < SCAN_BYTES:
            frame = file.read(24 + page_size)
            if len(frame) < 24 + page_size or frame[8:16] != head[16:24]:
                return False
            sums = _checksum(order, frame[24:], _checksum(order, frame[:8], sums))
            if sums != struct.unpack(">II", frame[16:24]):
                return False
            if frame[4:8] != b"\0\0\0\0":
                return True
            read += len(frame)
    return None


def _checksum(order: str, data: bytes, start: tuple[int, int]) -> tuple[int, int]:
    """SQLite's running checksum over pairs of 32-bit words."""
    first, second = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second


def is_in_use(shm: str) -> bool:
    """Whether a connection of any process holds locks in a `-shm`; asks only, takes no lock. True where that cannot be told."""
    if not os.path.isfile(shm):  # a pipe in its place would never end
        return False
    return _conflicts(shm, *LOCK_BYTES) is not False


def writer_of(database: str) -> str | None:
    """What a program with an open transaction holds of a database: `exclusive` (nobody may read), `reserved` (the file itself is
    as it was), `nobody`; None where that cannot be told. Asks only, takes no lock.

    Closing the file drops the POSIX locks that this process has on it: not to be asked while it reads or writes there.
    """
    exclusive = _conflicts(database, *SHARED_BYTES, writing=False)
    if exclusive is None:
        return None
    return "exclusive" if exclusive else "reserved" if _conflicts(database, *RESERVED_BYTE) else "nobody"


def _conflicts(path: str, start: int, length: int, *, writing: bool = True) -> bool | None:
    """Whether somebody's lock would keep us from one of our own, to write or to read; None where that cannot be told."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    kind = fcntl.F_WRLCK if writing else fcntl.F_RDLCK
    mac = sys.platform == "darwin"
    form = "qqihh" if mac else "hhqqi4x"
    question = (start, length, 0, kind, 0) if mac else (kind, 0, start, length, 0)
    command: int = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)  # the first one also sees locks of this process
    try:
        with open(path, "rb") as file:
            answer = struct.unpack(form, fcntl.fcntl(file, command, struct.pack(form, *question)))
    except OSError:
        return None
    return bool(answer[3 if mac else 0] != fcntl.F_UNLCK)
