"""A private copy of a database and its side files, for the few files that SQLite cannot read where they are."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
import weakref
from types import FrameType
from typing import IO

from studio.errors import OpenError

try:
    import fcntl
except ImportError:  # Windows: stale copies are left to the system's own cleaning of its temp folder
    fcntl = None  # type: ignore[assignment]

PREFIX = "checkpoint-studio-copy-"
_alive: weakref.WeakSet[PrivateCopy] = weakref.WeakSet()
_tidied = False
ENDINGS = ("SIGTERM", "SIGHUP")
"""Signals that end a process without its exit handlers."""
FRESH_SECONDS = 5.0
"""A folder this young may not hold its owner's lock yet."""


class PrivateCopy:
    """A copy in a folder of ours (mode 0700) that goes away with `remove()`, at exit, or when a signal ends the process.

    The folder holds a locked file while its owner lives; a folder whose lock can be taken was left behind by a process that
    was killed, and the next one sweeps it (`tidy`). Raises OpenError when there is no room, FileNotFoundError when a part
    vanished while it was copied.
    """

    def __init__(self, source: str) -> None:
        parts = [source + suffix for suffix in ("", "-wal", "-journal") if os.path.isfile(source + suffix)]
        size = sum(os.path.getsize(part) for part in parts)
        base = tempfile.gettempdir()
        free = shutil.disk_usage(base).free
        if free < size + (16 << 20):
            raise OpenError(
                f"{source} must be copied to be read, and {base} has no room: {size:,} bytes are needed, {free:,} are free.",
                "Make room there, or point TMPDIR to another disk.",
                "no-room",
            )
        self.folder = tempfile.mkdtemp(prefix=PREFIX, dir=base)
        self._lock: IO[bytes] | None = None
        if fcntl is not None:
            self._lock = open(os.path.join(self.folder, "owner"), "wb")  # noqa: SIM115 - held as long as the copy lives
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.owner = os.getpid()
        _alive.add(self)
        self.path = os.path.join(self.folder, "copy.sqlite")
        try:
            for part in parts:
                target = self.path + part[len(source) :]
                shutil.copyfile(part, target)
                os.chmod(target, 0o600)
        except FileNotFoundError:
            self.remove()
            raise
        except OSError as error:
            self.remove()
            raise OpenError(f"{source} cannot be copied to be read: {error.strerror or error}.", slug="unreadable") from error

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        _alive.discard(self)


@atexit.register
def _remove_all() -> None:
    for copy in list(_alive):
        if copy.owner == os.getpid():  # a forked child leaves its parent's alone
            copy.remove()


def tidy() -> None:
    """Once per process, before the first file is opened: remove what killed processes left, and see to it that ours goes too."""
    global _tidied
    if _tidied:
        return
    _tidied = True
    if fcntl is not None:
        _sweep()
    if threading.current_thread() is threading.main_thread():
        for name in ENDINGS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # whoever handles it ends in good order
                signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    """What the signal does by default, without leaving copies. A server that handles it itself raises it again at its end."""
    _remove_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _sweep() -> None:
    """Remove copies whose owner is gone."""
    base = tempfile.gettempdir()
    with contextlib.suppress(OSError):
        for entry in os.scandir(base):
            if not entry.name.startswith(PREFIX) or not entry.is_dir(follow_symlinks=False):
                continue
            if time.time() - entry.stat(follow_symlinks=False).st_mtime < FRESH_SECONDS:
                continue
            with contextlib.suppress(OSError), open(os.path.join(entry.path, "owner"), "r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
