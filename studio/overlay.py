"""Base and scratch as one store: what a person forked stands beside what the file holds, and the file wins.

An address that is in both is one row, the base's: a run copies what it needs into the scratch file, and a copy is no fork.
Scratch rows of `writes` under a base checkpoint are not shown: they belong to a run of a copy, not to the recorded one.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

from msgspec.structs import replace

from studio.errors import OpenError
from studio.history.gathered import Gathered
from studio.model import Address, Checkpoint, Problem, RawCheckpoint, WriteRow
from studio.stores.base import Capability, Store, ThreadKeys
from studio.stores.chain import Chained
from studio.stores.outline import Outline, Summary, joined, of_headers, outline
from studio.stores.sealed import Unsealer

T = TypeVar("T")

WAITING_KINDS = ("write-without-checkpoint", "writes-without-thread")

_SHIFT = 64
"""A cursor is the base's and the scratch file's in one number."""

Key = tuple[str, str]
Keys = frozenset[Key]
"""(namespace, checkpoint id) pairs of one thread."""


class OverlaidKeys(ThreadKeys, frozen=True):
    """Keys of a thread that has checkpoints in the scratch file; `checkpoints` counts them too."""

    scratch_checkpoints: int = 0


class Overlaid:
    """Headers of base and scratch file with their cursors, as `Overlay.checkpoints` has them."""

    def __init__(self, base: Gathered) -> None:
        self.headers = base.headers
        self.base_rows = len(base.headers)
        self._base = base
        self._own: list[int] = []

    def take(self, own: Sequence[tuple[int, Checkpoint]]) -> bool:
        """Put rows of the scratch file behind those of the base; False when one repeats an address."""
        self._own = [self._base.end << _SHIFT | cursor for cursor, _ in own]
        return self.headers.add(header for _, header in own) == len(own)

    @property
    def end(self) -> int:
        """The cursor behind which nothing was read."""
        return self._own[-1] if self._own else self._base.end << _SHIFT

    def before(self, cursor: int) -> int:
        """How many rows stand before a cursor."""
        return self._base.before(-(-cursor >> _SHIFT)) + bisect_left(self._own, cursor)


class Overlay:
    """A `Store` over a base and, once it exists, a scratch store. Closing it closes both.

    With an `unsealer`, encrypted rows of both are handed out in clear, and know how they are stored.
    """

    def __init__(self, base: Store, scratch: Store | None = None, unsealer: Unsealer | None = None) -> None:
        self.base = base
        self.unsealer = unsealer
        self.location = base.location
        self.kind = base.kind
        self.capabilities: frozenset[Capability] = base.capabilities
        self.layout = base.layout
        self._scratch = scratch
        self._lock = threading.Lock()
        self._base_keys: dict[str, tuple[object, Keys]] = {}

    @property
    def scratch(self) -> Store | None:
        """The scratch store, if there is one; one whose file was removed is forgotten."""
        scratch = self._scratch
        if scratch is not None and not _is_there(scratch):
            self.set_scratch(None)
            return None
        return scratch

    def is_there(self) -> bool:
        """Whether the base's file still exists."""
        return _is_there(self.base)

    def set_scratch(self, scratch: Store | None) -> None:
        """Lay this store over the base; the one before is closed."""
        with self._lock:
            before, self._scratch = self._scratch, scratch
        if before is not None and before is not scratch:
            before.close()

    def together(self, work: Callable[[], T]) -> T:
        """Run `work`, short and repeatable, with all its reads on one snapshot of the base."""
        hold: Callable[[Callable[[], T]], T] | None = getattr(self.base, "together", None)
        return hold(work) if hold is not None else work()

    # ---- lists

    def threads(self) -> Iterator[ThreadKeys]:
        scratch = self.scratch
        forked = {keys.thread_id: keys for keys in scratch.threads()} if scratch is not None else {}
        for keys in self.base.threads():
            while forked and (first := next(iter(forked))) < keys.thread_id:
                yield _all_scratch(forked.pop(first))
            mine = forked.pop(keys.thread_id, None)
            yield keys if mine is None else self._joined(keys)
        for mine in forked.values():
            yield _all_scratch(mine)

    def _joined(self, base: ThreadKeys) -> ThreadKeys:
        own = [header for _, header in self._scratch_checkpoints(base.thread_id, 0)]
        if not own:
            return base
        namespaces = {*base.namespaces, *(header.checkpoint_ns for header in own)}
        ids = [header.checkpoint_id for header in own if not header.checkpoint_ns or "" not in namespaces]
        if base.latest is not None and ("" in base.namespaces or "" not in namespaces):
            ids.append(base.latest)
        return OverlaidKeys(base.thread_id, tuple(sorted(namespaces)), base.checkpoints + len(own), max(ids), len(own))

    def namespaces(self, thread_id: str) -> tuple[str, ...]:
        """The namespaces of one thread, sorted."""
        found = set(namespaces_of(self.base, thread_id))
        scratch = self.scratch
        if scratch is not None and not found.issuperset(namespaces_of(scratch, thread_id)):
            found.update(header.checkpoint_ns for _, header in self._scratch_checkpoints(thread_id, 0))
        return tuple(sorted(found))

    def written_namespaces(self, thread_id: str) -> tuple[str, ...]:
        """The namespaces that the base's writes name: those of the scratch file may belong to copies."""
        direct: Callable[[str], tuple[str, ...]] | None = getattr(self.base, "written_namespaces", None)
        return direct(thread_id) if direct is not None else ()

    def summaries(self, batch: Sequence[ThreadKeys]) -> dict[str, Summary]:
        """Of the threads that are in the base alone."""
        direct: Callable[[Sequence[ThreadKeys]], dict[str, Summary]] | None = getattr(self.base, "summaries", None)
        return direct([keys for keys in batch if not isinstance(keys, OverlaidKeys)]) if direct is not None else {}

    def outline(self, thread_id: str) -> Outline:
        found = outline(self.base, thread_id)
        own = self._scratch_checkpoints(thread_id, 0)
        return joined(found, of_headers(header for _, header in own)) if own else found

    def checkpoints(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, Checkpoint]]:
        """Base rows come first, then those of the scratch file."""
        base_after, scratch_after = after >> _SHIFT, after & ((1 << _SHIFT) - 1)
        found = [(cursor << _SHIFT | scratch_after, header) for cursor, header in self.base.checkpoints(thread_id, base_after)]
        reached = found[-1][0] >> _SHIFT if found else base_after
        found += [(reached << _SHIFT | cursor, header) for cursor, header in self._scratch_checkpoints(thread_id, scratch_after)]
        return found

    def gather(self, thread_id: str) -> Overlaid | None:
        """`checkpoints` of a whole thread in columns; None where only those tell."""
        direct: Callable[[str], Gathered | None] | None = getattr(self.base, "gather", None)
        base = direct(thread_id) if direct is not None else None
        if base is None:
            return None
        scratch = self.scratch
        rows = scratch.checkpoints(thread_id) if scratch is not None else ()
        found = Overlaid(base)
        own = [(cursor, replace(header, origin="scratch")) for cursor, header in rows if base.headers.find(*_key(header)) < 0]
        return found if found.take(own) else None

    def chained(self, thread_id: str) -> Chained | None:
        """The base, where it may prove that a thread is a plain chain: nothing of the thread is in the scratch file."""
        scratch = self.scratch
        if not hasattr(self.base, "chain") or (scratch is not None and namespaces_of(scratch, thread_id)):
            return None
        return cast("Chained", self.base)

    @staticmethod
    def cursor_behind(rowid: int) -> int:
        """The first cursor behind a row of the base."""
        return rowid + 1 << _SHIFT

    def census(self, thread_id: str, upto: int, writes_upto: int) -> tuple[int, object] | None:
        """`Store.census` of the base, its second part with that of the scratch file (none: as of an empty one)."""
        scratch = self.scratch
        low = (1 << _SHIFT) - 1
        base = self.base.census(thread_id, upto >> _SHIFT, writes_upto >> _SHIFT)
        own: tuple[int, object] | None = (0, (None, 0))
        if scratch is not None:
            own = scratch.census(thread_id, upto & low, writes_upto & low)
        return (base[0], (base[1], own)) if base is not None and own is not None else None

    def _scratch_checkpoints(self, thread_id: str, after: int) -> list[tuple[int, Checkpoint]]:
        scratch = self.scratch
        rows = scratch.checkpoints(thread_id, after) if scratch is not None else ()
        if not rows:
            return []
        base = self._keys_of_base(thread_id)
        return [
            (cursor, replace(header, origin="scratch"))
            for cursor, header in rows
            if (header.checkpoint_ns, header.checkpoint_id) not in base
        ]

    def write_bytes(self, thread_id: str) -> int | None:
        """Bytes of the values of all writes of a thread, those in the scratch file included; None where a store cannot tell."""
        asked = [getattr(store, "write_bytes", None) for store in (self.base, self.scratch) if store is not None]
        total = 0
        for ask in asked:
            size: int | None = ask(thread_id) if ask is not None else None
            if size is None:
                return None
            total += size
        return total

    def write_headers(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, WriteRow]]:
        base_after, scratch_after = after >> _SHIFT, after & ((1 << _SHIFT) - 1)
        found = [(cursor << _SHIFT | scratch_after, row) for cursor, row in self.base.write_headers(thread_id, base_after)]
        reached = found[-1][0] >> _SHIFT if found else base_after
        scratch = self.scratch
        rows = scratch.write_headers(thread_id, scratch_after) if scratch is not None else ()
        if rows:
            base = self._keys_of_base(thread_id)
            found += [
                (reached << _SHIFT | cursor, replace(row, origin="scratch"))
                for cursor, row in rows
                if (row.checkpoint_ns, row.checkpoint_id) not in base
            ]
        return found

    def writes_end(self, thread_id: str) -> int:
        scratch = self.scratch
        return self.base.writes_end(thread_id) << _SHIFT | (scratch.writes_end(thread_id) if scratch is not None else 0)

    def task_keys(self, thread_id: str) -> Sequence[tuple[str, str, str]]:
        """The base's first."""
        scratch = self.scratch
        found = list(self.base.task_keys(thread_id))
        rows = scratch.task_keys(thread_id) if scratch is not None else ()
        base = self._keys_of_base(thread_id) if rows else frozenset()
        return found + [row for row in rows if row[:2] not in base]

    def metadata(self, thread_id: str, ns: str, take: Callable[[bytes], T]) -> Mapping[str, T]:
        """Of an id that is in both, the base's."""
        scratch = self.scratch
        found = self.base.metadata(thread_id, ns, take)
        return {**scratch.metadata(thread_id, ns, take), **found} if scratch is not None else found

    # ---- rows by key

    def write_headers_under(self, addresses: Iterable[Address]) -> dict[Address, Sequence[WriteRow]]:
        wanted = list(addresses)
        found = dict(self.base.write_headers_under(wanted))
        scratch = self.scratch
        forked = scratch.write_headers_under(wanted) if scratch is not None else {}
        for address, rows in forked.items():
            if (address.checkpoint_ns, address.checkpoint_id) not in self._keys_of_base(address.thread_id):
                found[address] = tuple(replace(row, origin="scratch") for row in rows)
        return found

    def raw(self, addresses: Iterable[Address]) -> dict[Address, RawCheckpoint]:
        wanted = list(addresses)
        found = self.base.raw(wanted)
        scratch = self.scratch
        if scratch is not None and len(found) < len(wanted):
            for address, raw in scratch.raw(one for one in wanted if one not in found).items():
                found[address] = _of_scratch(raw)
        if self.unsealer is not None:
            found = {address: self.unsealer.checkpoint(raw) for address, raw in found.items()}
        return found

    def writes(self, addresses: Iterable[Address]) -> dict[Address, tuple[WriteRow, ...]]:
        wanted = list(addresses)
        found = self.base.writes(wanted)
        scratch = self.scratch
        forked = scratch.writes(wanted) if scratch is not None else {}
        for address, rows in forked.items():
            if (address.checkpoint_ns, address.checkpoint_id) not in self._keys_of_base(address.thread_id):
                found[address] = tuple(replace(row, origin="scratch") for row in rows)
        if self.unsealer is not None:
            found = {address: tuple(map(self.unsealer.write, rows)) for address, rows in found.items()}
        return found

    def writes_lost(self, address: Address) -> bool:
        """Whether writes under a checkpoint of the base may be missing because of damage; known once they were read."""
        ask: Callable[[Address], bool] | None = getattr(self.base, "writes_lost", None)
        return ask is not None and ask(address)

    def later_lost(self, address: Address) -> bool:
        """Whether the base holds a later checkpoint of the namespace that cannot be read; known once the thread was listed."""
        ask: Callable[[Address], bool] | None = getattr(self.base, "later_lost", None)
        return ask is not None and ask(address)

    # ---- streams

    def scan(self, thread_id: str | None = None) -> Iterator[RawCheckpoint]:
        """The rows of a thread stand together, the base's first."""
        rows = self._scan(thread_id)
        return rows if self.unsealer is None else map(self.unsealer.checkpoint, rows)

    def _scan(self, thread_id: str | None) -> Iterator[RawCheckpoint]:
        scratch = self.scratch
        if scratch is None:
            yield from self.base.scan(thread_id)
            return
        forked = dict.fromkeys([thread_id] if thread_id is not None else [keys.thread_id for keys in scratch.threads()])
        current: str | None = None
        for raw in self.base.scan(thread_id):
            here = raw.header.thread_id
            if current is not None and here != current and current in forked:
                del forked[current]
                yield from self._scan_scratch(scratch, current)
            current = here
            yield raw
        for thread in sorted(forked, key=lambda one: one != current):
            yield from self._scan_scratch(scratch, thread)

    def _scan_scratch(self, scratch: Store, thread_id: str) -> Iterator[RawCheckpoint]:
        base: Keys | None = None
        for raw in scratch.scan(thread_id):
            base = self._keys_of_base(thread_id) if base is None else base
            if (raw.header.checkpoint_ns, raw.header.checkpoint_id) not in base:
                yield _of_scratch(raw)

    def scan_writes(self, thread_id: str, channels: Sequence[str]) -> Iterator[WriteRow]:
        rows = self._scan_writes(thread_id, channels)
        return rows if self.unsealer is None else map(self.unsealer.write, rows)

    def _scan_writes(self, thread_id: str, channels: Sequence[str]) -> Iterator[WriteRow]:
        yield from self.base.scan_writes(thread_id, channels)
        scratch = self.scratch
        base: Keys | None = None
        for row in scratch.scan_writes(thread_id, channels) if scratch is not None else ():
            base = self._keys_of_base(thread_id) if base is None else base
            if (row.checkpoint_ns, row.checkpoint_id) not in base:
                yield replace(row, origin="scratch")

    # ---- the rest of a store

    def token(self) -> object:
        scratch = self.scratch
        return self.base.token(), scratch.token() if scratch is not None else None

    def problems(self) -> list[Problem]:
        scratch = self.scratch
        own = scratch.problems() if scratch is not None else []
        # rows that a run left in the scratch file under a copy of a base checkpoint wait for nothing
        waiting = [problem for problem in own if problem.kind not in WAITING_KINDS]
        return [*self.base.problems(), *waiting, *(self.unsealer.problems() if self.unsealer is not None else ())]

    def close(self) -> None:
        self.set_scratch(None)
        self.base.close()

    def _keys_of_base(self, thread_id: str) -> Keys:
        """Asked only for threads that have scratch rows."""
        token = self.base.token()
        held = self._base_keys.get(thread_id)
        if held is None or held[0] != token:
            keys = frozenset((header.checkpoint_ns, header.checkpoint_id) for _, header in self.base.checkpoints(thread_id))
            held = self._base_keys[thread_id] = (token, keys)
        return held[1]


def _of_scratch(raw: RawCheckpoint) -> RawCheckpoint:
    return replace(
        raw,
        header=replace(raw.header, origin="scratch"),
        pending_sends=tuple(replace(row, origin="scratch") for row in raw.pending_sends),
    )


def _key(header: Checkpoint) -> Key:
    return header.checkpoint_ns, header.checkpoint_id


def _all_scratch(keys: ThreadKeys) -> OverlaidKeys:
    return OverlaidKeys(keys.thread_id, keys.namespaces, keys.checkpoints, keys.latest, keys.checkpoints)


def namespaces_of(store: Store, thread_id: str) -> tuple[str, ...]:
    direct: Callable[[str], tuple[str, ...]] | None = getattr(store, "namespaces", None)
    if direct is not None:
        return direct(thread_id)
    return next((keys.namespaces for keys in store.threads() if keys.thread_id == thread_id), ())


def _is_there(store: Store) -> bool:
    try:
        token = store.token()
    except OpenError:
        return False
    return not (isinstance(token, tuple) and token and token[0] is None)
