"""Another process that writes: real locks, real `-wal` and `-journal` files, real deaths."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
print("ready", flush=True)
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "die":
        os._exit(1)
    if word == "close":
        connection.close()
    elif word == "add":
        thread, identity = rest.split()
        connection.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata) "
            "VALUES (?, '', ?, 'msgpack', ?, ?)",
            (thread, identity, b"\\x81\\xa1v\\x04", b'{"source": "loop", "step": 1, "parents": {}}'),
        )
    else:
        connection.execute(line).fetchall()
    print("done", flush=True)
"""


class Writer:
    """A process with one connection to a database; each call returns when it has obeyed."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()

    def __call__(self, command: str) -> None:
        """SQL, `add THREAD ID` or `close`."""
        self._say(command)
        self._answer()

    def die(self) -> None:
        """End without closing anything."""
        self._say("die")
        self._process.wait(10)

    def stop(self) -> None:
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _say(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def _answer(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the writer died"


@contextmanager
def writer(path: Path) -> Iterator[Writer]:
    one = Writer(path)
    try:
        yield one
    finally:
        one.stop()


def left_behind(path: Path, *commands: str) -> None:
    """Let a writer do something and die, so that its side files stay."""
    one = Writer(path)
    for command in commands:
        one(command)
    one.die()
    one.stop()
