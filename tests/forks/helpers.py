"""A forker on a file, as the session makes it."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.explain import Explainer
from studio.forks.forker import Forker
from studio.forks.scratch import Scratch
from studio.model import Address
from studio.overlay import Overlay
from studio.requests import ForkRequest, ForkResult, Patch
from studio.stores import open_store


@dataclass
class Studio:
    forker: Forker
    store: Overlay
    explainer: Explainer
    scratch: Scratch

    def fork(self, address: Address, values: dict[str, Any] | None = None, **options: Any) -> ForkResult:
        unset = tuple(options.pop("unset", ()))
        return self.forker.fork(ForkRequest(address, Patch(values or {}, unset), **options))

    def preview(self, address: Address, values: dict[str, Any] | None = None, **options: Any) -> Any:
        unset = tuple(options.pop("unset", ()))
        return self.forker.preview(ForkRequest(address, Patch(values or {}, unset), **options))

    def points(self, thread: str = "t", ns: str = "") -> list[Address]:
        """Checkpoints of a namespace, oldest first."""
        return [header.address for _, header in self.store.checkpoints(thread) if header.checkpoint_ns == ns]

    def before(self, *nodes: str, thread: str = "t", ns: str = "") -> Address:
        """The first checkpoint from which exactly these nodes run next."""
        for address in self.points(thread, ns):
            if sorted(map(str, self.explainer.state(address).next or ())) == sorted(nodes):
                return address
        raise AssertionError(f"no checkpoint before {nodes}")

    def namespaces(self, thread: str = "t") -> list[str]:
        return list(dict.fromkeys(header.checkpoint_ns for _, header in self.store.checkpoints(thread)))


@contextmanager
def studio_on(path: Path | str, scratch: str | None = None) -> Iterator[Studio]:
    place = Scratch(str(path), scratch)
    store = Overlay(open_store(str(path)))
    if place.exists() and not place.is_store:
        store.set_scratch(open_store(place.path))
    explainer = Explainer(store)
    try:
        yield Studio(Forker(store, explainer, place), store, explainer, place)
    finally:
        store.close()


def rows(path: str | Path, query: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query, values).fetchall()


def change(path: str | Path, statement: str, *values: Any) -> None:
    """Do to a test's own file what no studio does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


DIES = """
import os, signal, sys
from studio.forks import rows
real, calls = rows._insert, []

def dies(*arguments):
    real(*arguments)
    calls.append(1)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

rows._insert = dies
"""


def killed(act: str, path: Path, after: int, *more: str) -> None:
    """Run `act` in a process of its own that is killed after so many rows. `sys.argv` has the path, the number and `more`."""
    command = [sys.executable, "-c", DIES + act, str(path), str(after), *more]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
