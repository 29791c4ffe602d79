"""The contract between a kind of file and the rest of the studio.

A store hands out headers cheaply and raw rows on demand; it decodes no value and derives no meaning (that is
`studio.explain`). It never raises for what a file holds: damage is skipped, counted and located in `problems()`.
Every method may be called from any thread; no lock or transaction outlives a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Protocol, TypeVar

from msgspec import Struct

from studio.model import Address, Checkpoint, Problem, RawCheckpoint, WriteRow

T = TypeVar("T")


class Capability(Enum):
    """What a store can do beyond reading; the conformance kit tests exactly what is declared."""

    WRITES = "writes"
    """Rows of `writes` exist: authors can be known."""
    NAMESPACES = "namespaces"
    RAW_FORK = "raw-fork"
    """The fork recipes know this layout."""
    LIVE = "live"
    """`token()` changes when another process adds to the location."""


class ThreadKeys(Struct, frozen=True):
    """A thread as the keys alone show it, without reading a blob."""

    thread_id: str
    namespaces: tuple[str, ...]
    checkpoints: int
    latest: str | None
    """Largest id in the root namespace, which LangGraph would resume; of any namespace when there is no root."""


class Store(Protocol):
    location: str
    """Absolute path."""
    kind: str
    """`sqlite`, later `transcript`, …"""
    capabilities: frozenset[Capability]
    layout: str
    """`current`, `no-task-path`, `no-namespace` (0.1), …: what the recipes must keep to."""

    def threads(self) -> Iterator[ThreadKeys]:
        """Threads in the order of their ids; streams, so that the first is there at once."""

    def checkpoints(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, Checkpoint]]:
        """(cursor, header) of each checkpoint of all namespaces of a thread that was stored after cursor `after`, oldest first.

        The cursor (SQLite: rowid) only serves the next call. Reads no blob beyond its first bytes.
        """

    def write_headers(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, WriteRow]]:
        """(cursor, row without value) of all writes of a thread stored after `after`."""

    def writes_end(self, thread_id: str) -> int:
        """The cursor of a thread's last write, 0 without any: where `write_headers` goes on."""

    def task_keys(self, thread_id: str) -> Sequence[tuple[str, str, str]]:
        """(namespace, checkpoint id, task id) of every task of a thread that wrote."""

    def write_headers_under(self, addresses: Iterable[Address]) -> Mapping[Address, Sequence[WriteRow]]:
        """Rows of `writes` without values under each checkpoint; checkpoints without any are left out."""

    def census(self, thread_id: str, upto: int, writes_upto: int) -> tuple[int, object] | None:
        """(checkpoints of a thread stored up to a cursor, what else tells): differs when one of them or of its writes was deleted
        or replaced. None where a damaged table cannot tell. Cheap, whatever the thread's length."""

    def metadata(self, thread_id: str, ns: str, take: Callable[[bytes], T]) -> Mapping[str, T]:
        """Checkpoint id -> what `take` makes of its stored metadata, for all of a namespace. Reads no value."""

    def raw(self, addresses: Iterable[Address]) -> dict[Address, RawCheckpoint]:
        """The whole rows of some checkpoints; those that are not there are left out."""

    def writes(self, addresses: Iterable[Address]) -> dict[Address, tuple[WriteRow, ...]]:
        """Rows of `writes` with their values under each checkpoint, ordered by (task_path, task_id, idx)."""

    def scan(self, thread_id: str | None = None) -> Iterator[RawCheckpoint]:
        """All rows, oldest first within a thread, in bounded memory: for search and export."""

    def scan_writes(self, thread_id: str, channels: Sequence[str]) -> Iterator[WriteRow]:
        """Rows with values of the named channels in one thread: for delta channels."""

    def token(self) -> object:
        """Equal as long as nothing was added or changed; costs a few `stat` calls."""

    def problems(self) -> list[Problem]:
        """Losses seen so far."""

    def close(self) -> None: ...
