"""Files of our own in the data folder in which the studio keeps what it read, so that it need not read it again.

Each belongs to one location. Nothing depends on them: one that is missing, damaged, of another version or another user is as if
it were not there, and a folder that cannot be written keeps nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from studio import __version__
from studio.datafolder import data_folder

FORMAT = 4
"""Raised when what a reader makes of a file changes."""
FOLDER = "index"
MOST_FILES, MOST_BYTES = 64, 512 << 20
"""Those that were used last stay."""
MAGIC = f"checkpoint-studio {__version__} {FORMAT}\n".encode()
_SUM = 16


def path_for(location: str, suffix: str) -> Path:
    """Where what is kept of a location lies."""
    real = os.path.realpath(location)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:24]
    return data_folder() / FOLDER / f"{digest}.{suffix}"


def read(path: Path) -> bytes | None:
    """What was written last, if it is whole, ours and of this version."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            held = os.fstat(file.fileno())
            if not stat.S_ISREG(held.st_mode) or held.st_size > MOST_BYTES:
                return None
            if hasattr(os, "getuid") and (held.st_uid != os.getuid() or held.st_mode & 0o022):
                return None
            if file.read(len(MAGIC)) != MAGIC:
                return None
            proof, data = file.read(_SUM), file.read()
    except OSError:
        return None
    if _sum(data) != proof:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # it was used
    return data


def write(path: Path, data: bytes) -> None:
    """Whole or not at all; readable by this user alone."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    except OSError:
        return
    try:
        with open(handle, "wb") as file:
            file.write(MAGIC)
            file.write(_sum(data))
            file.write(data)
        os.replace(name, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)
        return
    _forget_old(path.parent)


def _sum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_SUM).digest()


def _forget_old(folder: Path) -> None:
    found: list[tuple[float, int, str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    held = entry.stat(follow_symlinks=False)
                    found.append((held.st_mtime, held.st_size, entry.path))
    except OSError:
        return
    total = 0
    for number, (_, size, name) in enumerate(sorted(found, reverse=True)):
        total += size
        if number >= MOST_FILES or total > MOST_BYTES:
            with contextlib.suppress(OSError):
                os.unlink(name)
