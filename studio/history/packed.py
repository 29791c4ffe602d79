"""The headers of one thread in columns: some 60 bytes a checkpoint, where an object for each takes ten times as many.

A row whose id, time and numbers have the form that LangGraph writes is packed; it comes out as it went in, to the letter. Any
other row is kept as it is beside the columns. A row is named by its *slot*, the place in which it came.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from operator import lt
from typing import Any, overload

from studio.history.columns import ID, TIME, id_text, pack_id, pack_ids, pack_numbers, pack_times, time_text
from studio.history.facts import Key
from studio.model import Address, Checkpoint, Origin

BATCH = 1024
"""Rows that are packed together: most of the work is done on all of them at once."""
STRAYS = 256
"""Ids out of order that are kept apart before they are sorted in."""

NOT_HERE, NONE, TEXT = -1, -1, -2
"""Instead of a slot: there is no such row; a row names no parent; its parent is not here, or came later, and stands as text."""

_BLANK = ("00000000-0000-0000-0000-000000000000", "0000-00-00T00:00:00.000000+00:00", 0, 0)
"""What stands in the columns for a row that is kept beside them."""

Kind = tuple[str, str | None, Origin, bool]
"""(namespace, source, origin, encrypted): few of them occur, whatever the thread's length."""

Order = tuple[int, str, str, str] | bytes
"""What rows are sorted by: outer namespaces first, then time, then id."""


class Packed(Sequence[Checkpoint]):
    """Each (namespace, id) once: the first that came."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.above = array("i")
        """Slot of the row that each names as its parent, or NONE or TEXT."""
        self.texts: dict[int, str] = {}
        """The parents of those with TEXT."""
        self.kinds: list[Kind] = []
        self.kind_of = array("i")
        self._known_kinds: dict[Kind, int] = {}
        self._identities = bytearray()
        self._times = bytearray()
        self._steps = array("q")
        self._sizes = array("q")
        self._odd: dict[int, Checkpoint] = {}
        self._odd_slots: dict[Key, int] = {}
        self._ids: dict[str, _Ids] = {}
        self._found = 0
        """The slot that was found last: most look-ups are of it or a neighbour."""
        self._made: tuple[tuple[int, Checkpoint], ...] = ()
        """The last two that were given out: a row is mostly asked for beside its parent. What stands in a slot never changes."""

    # ------------------------------------------------------------------ taking in

    def add(self, headers: Iterable[Checkpoint]) -> int:
        """Take in headers but for those that are known; returns how many were new."""
        before, rest = len(self), iter(headers)
        while batch := list(islice(rest, BATCH)):
            self._take(batch)
        return len(self) - before

    def _take(self, batch: list[Checkpoint]) -> None:
        of = {header.address.checkpoint_ns for header in batch}
        only = of.pop() if len(of) == 1 else None
        ids = [header.address.checkpoint_id for header in batch]
        in_order = only is not None and self._come_behind(only, ids)
        if not in_order:
            batch = self._new_ones(batch)
            ids = [header.address.checkpoint_id for header in batch]
        if not batch:
            return
        start = len(self)
        odd = self._fill(batch, ids, start)
        self.kind_of.extend([self._kind(header) for header in batch])
        if in_order and only is not None and not odd:
            self._ids_in(only).slots.extend(range(start, start + len(batch)))
        else:
            for slot, header in enumerate(batch, start):
                if slot in odd:
                    self._odd_slots[header.checkpoint_ns, header.checkpoint_id] = slot
                else:
                    self._ids_in(header.checkpoint_ns).add(slot)
        parents = [header.parent_checkpoint_id for header in batch]
        if in_order and only is not None and ids[0] and parents[1:] == ids[:-1]:
            self._name_parent(start, only, parents[0])
            self.above.extend(range(start, start + len(batch) - 1))
        else:
            spaces = [header.checkpoint_ns for header in batch]
            near = dict(zip(zip(spaces, ids, strict=True), range(start, start + len(batch)), strict=True))
            for slot, ns, parent in zip(range(start, start + len(batch)), spaces, parents, strict=True):
                found = near.get((ns, parent)) if parent else None  # most parents came a moment ago
                if found is not None:
                    self.above.append(found)
                else:
                    self._name_parent(slot, ns, parent)

    def _come_behind(self, ns: str, ids: list[str]) -> bool:
        """Whether ids of one namespace ascend behind all that are known of it: so they are new."""
        mine = self._ids.get(ns)
        if mine is not None and mine.slots and ids[0] <= id_text(mine.at(mine.slots[-1])):
            return False
        return all(map(lt, ids, islice(ids, 1, None))) and self._odd_slots.keys().isdisjoint(zip(repeat(ns), ids, strict=False))

    def _new_ones(self, batch: Iterable[Checkpoint]) -> list[Checkpoint]:
        new: dict[Key, Checkpoint] = {}
        for header in batch:
            key = (header.checkpoint_ns, header.checkpoint_id)
            if key not in new and self.find(*key) < 0:
                new[key] = header
        return list(new.values())

    def _fill(self, batch: list[Checkpoint], ids: list[str], start: int) -> dict[int, Checkpoint]:
        """Fill the columns; returns the rows that are kept beside them."""
        odd: dict[int, Checkpoint] = {}
        times = [header.created_at or "" for header in batch]
        steps: list[Any] = [header.step for header in batch]
        sizes = [header.size_bytes for header in batch]
        columns = _columns(ids, times, steps, sizes)
        thread = self.thread_id
        plain = all(header.parent_checkpoint_id != "" and header.address.thread_id == thread for header in batch)
        if columns is None or not plain:
            rows = []
            for slot, row in enumerate(zip(ids, times, steps, sizes, strict=True), start):
                header = batch[slot - start]
                plain = header.parent_checkpoint_id != "" and header.address.thread_id == thread
                if not plain or _columns([row[0]], [row[1]], [row[2]], [row[3]]) is None:
                    odd[slot], row = header, _BLANK
                rows.append(row)
            columns = _columns(*zip(*rows, strict=True))
            assert columns is not None
        self._odd.update(odd)
        self._identities += columns[0]
        self._times += columns[1]
        self._steps += columns[2]
        self._sizes += columns[3]
        return odd

    def _kind(self, header: Checkpoint) -> int:
        kind = (header.address.checkpoint_ns, header.source, header.origin, header.encrypted)
        found = self._known_kinds.get(kind)
        if found is None:
            found = self._known_kinds[kind] = len(self.kinds)
            self.kinds.append(kind)
        return found

    def _ids_in(self, ns: str) -> _Ids:
        found = self._ids.get(ns)
        if found is None:
            found = self._ids[ns] = _Ids(self._identities)
        return found

    def _name_parent(self, slot: int, ns: str, parent: str | None) -> None:
        found = self.find(ns, parent) if parent else NONE
        if parent and found < 0:
            self.texts[slot], found = parent, TEXT
        self.above.append(found)

    def in_order(self, order: array[int]) -> Packed:
        """The same rows in another order of their slots."""
        place = array("i", [0]) * len(order)
        for at, slot in enumerate(order):
            place[slot] = at
        out = Packed(self.thread_id)
        out.kinds, out._known_kinds = self.kinds, self._known_kinds
        out.above.extend([place[above] if above >= 0 else above for above in map(self.above.__getitem__, order)])
        out.texts = {place[slot]: text for slot, text in self.texts.items()}
        out.kind_of.extend(map(self.kind_of.__getitem__, order))
        out._steps.extend(map(self._steps.__getitem__, order))
        out._sizes.extend(map(self._sizes.__getitem__, order))
        for slot in order:
            out._identities += self._identities[ID * slot : ID * slot + ID]
            out._times += self._times[TIME * slot : TIME * slot + TIME]
        out._odd = {place[slot]: header for slot, header in self._odd.items()}
        out._odd_slots = {key: place[slot] for key, slot in self._odd_slots.items()}
        out._ids = {ns: ids.moved(place, out._identities) for ns, ids in self._ids.items()}
        return out

    # ------------------------------------------------------------------ giving out

    def find(self, ns: str, identity: str) -> int:
        """The slot of a row, or NOT_HERE."""
        packed = pack_id(identity)
        mine = self._ids.get(ns) if packed is not None else None
        if packed is not None and mine is not None:
            near = self._found
            for slot in (near + 1, near, near - 1):
                if slot >= 0 and mine.at(slot) == packed and self.key(slot) == (ns, identity):
                    self._found = slot
                    return slot
            slot = mine.find(packed)
            if slot >= 0:
                self._found = slot
                return slot
        return self._odd_slots.get((ns, identity), NOT_HERE)

    def ns(self, slot: int) -> str:
        return self.kinds[self.kind_of[slot]][0]

    def origin(self, slot: int) -> Origin:
        return self.kinds[self.kind_of[slot]][2]

    def key(self, slot: int) -> Key:
        odd = self._odd.get(slot)
        if odd is not None:
            return odd.checkpoint_ns, odd.checkpoint_id
        return self.ns(slot), id_text(self._identities[ID * slot : ID * slot + ID])

    def header(self, slot: int) -> Checkpoint:
        made = self._made
        for known, header in made:
            if known == slot:
                return header
        odd = self._odd.get(slot)
        if odd is not None:
            return odd
        ns, source, origin, encrypted = self.kinds[self.kind_of[slot]]
        above = self.above[slot]
        identity = id_text(self._identities[ID * slot : ID * slot + ID])
        parent = None if above == NONE else self.texts[slot] if above == TEXT else self.key(above)[1]
        at, step, size = self.created_at(slot), self._steps[slot], self._sizes[slot]
        header = Checkpoint(Address(self.thread_id, ns, identity), parent, step, source, at, size, origin, encrypted)
        self._made = (*made[-1:], (slot, header))
        return header

    def created_at(self, slot: int) -> str | None:
        odd = self._odd.get(slot)
        return odd.created_at if odd is not None else time_text(self._times[TIME * slot : TIME * slot + TIME])

    def is_blank(self, slot: int) -> bool:
        """Whether a row has neither step nor source."""
        odd = self._odd.get(slot)
        return odd is not None and odd.step is None and not odd.source

    def order(self) -> Callable[[int], Order]:
        """What to sort rows by, as long as none is added: they are compared as they are stored where all of them are packed."""
        if self._odd:
            return self._age
        kinds = [(_rank(ns).to_bytes(4, "big"), ns.encode("utf-8", "surrogatepass")) for ns, *_ in self.kinds]
        identities, times, kind_of = self._identities, self._times, self.kind_of

        def packed(slot: int) -> bytes:
            rank, ns = kinds[kind_of[slot]]
            return rank + times[TIME * slot : TIME * slot + TIME] + identities[ID * slot : ID * slot + ID] + ns

        return packed

    def _age(self, slot: int) -> Order:
        ns, identity = self.key(slot)
        return _rank(ns), self.created_at(slot) or "", identity, ns

    def falls(self, slot: int, other: int) -> bool:
        """Whether the time of another row may come before this one's: told by their texts where both are packed."""
        if self._odd and (slot in self._odd or other in self._odd):
            return True
        times = self._times
        return times[TIME * other : TIME * other + TIME] < times[TIME * slot : TIME * slot + TIME]

    def largest(self, ns: str, origin: Origin, among: range) -> str | None:
        """The largest id of a namespace and an origin among the rows from some slot on."""
        if len(among) <= BATCH:
            keys = (self.key(slot) for slot in among if self.origin(slot) == origin)
            return max((identity for space, identity in keys if space == ns), default=None)
        if not any((kind[0], kind[2]) == (ns, origin) for kind in self.kinds):
            return None
        mine = self._ids.get(ns)
        apart = [slot for (space, _), slot in self._odd_slots.items() if space == ns]
        apart += mine.strays if mine is not None else ()
        found = [slot for slot in apart if slot in among and self.origin(slot) == origin]
        in_order = reversed(mine.slots) if mine is not None else ()
        found += islice((slot for slot in in_order if slot in among and self.origin(slot) == origin), 1)
        return max((self.key(slot)[1] for slot in found), default=None)

    def named(self, parents: Collection[tuple[str, str | None]]) -> list[int]:
        """The rows whose parents are these: (namespace, id)."""
        above = {self.find(ns, parent) if parent else NONE for ns, parent in parents} | {TEXT}
        slots = [slot for slot, one in enumerate(self.above) if one in above]
        return [slot for slot in slots if (self.ns(slot), self.header(slot).parent_checkpoint_id) in parents]

    def last_of_each(self) -> dict[str, Checkpoint]:
        """Namespace -> its last row; the namespaces as they first occur."""
        last = {kind: slot for slot, kind in enumerate(self.kind_of)}
        found: dict[str, int] = {}
        for kind, slot in last.items():
            ns = self.kinds[kind][0]
            found[ns] = max(slot, found.get(ns, slot))
        return {ns: self.header(slot) for ns, slot in found.items()}

    def mark(self, slot: int) -> int:
        """A hash of a row's key; `mark_of` gives the same."""
        if slot in self._odd:
            return mark_of(self.key(slot))
        return hash((self.ns(slot), bytes(self._identities[ID * slot : ID * slot + ID])))

    def __len__(self) -> int:
        return len(self.above)

    @overload
    def __getitem__(self, at: int) -> Checkpoint: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Checkpoint]: ...
    def __getitem__(self, at: int | slice) -> Checkpoint | Sequence[Checkpoint]:
        if isinstance(at, slice):
            return [self.header(slot) for slot in range(*at.indices(len(self)))]
        return self.header(range(len(self))[at])

    def __iter__(self) -> Iterator[Checkpoint]:
        return map(self.header, range(len(self)))


class _Ids:
    """Which rows of one namespace have which ids: nearly always these ascend as the rows come."""

    __slots__ = ("_identities", "_strays", "slots")

    def __init__(self, identities: bytearray) -> None:
        self._identities = identities
        self.slots = array("i")
        """By their ids."""
        self._strays: dict[bytes, int] = {}
        """Rows that came behind one with a larger id."""

    def at(self, slot: int) -> bytes:
        return bytes(self._identities[ID * slot : ID * slot + ID])

    def add(self, slot: int) -> None:
        packed = self.at(slot)
        if not self.slots or packed > self.at(self.slots[-1]):
            self.slots.append(slot)
            return
        self._strays[packed] = slot
        if len(self._strays) > max(STRAYS, len(self.slots) >> 3):
            self.slots = array("i", sorted(chain(self.slots, self._strays.values()), key=self.at))
            self._strays = {}

    def find(self, packed: bytes) -> int:
        slots = self.slots
        if not slots or packed > self.at(slots[-1]):
            return NOT_HERE
        place = bisect_left(slots, packed, key=self.at)
        if place < len(slots) and self.at(slots[place]) == packed:
            return slots[place]
        return self._strays.get(packed, NOT_HERE)

    def moved(self, place: Sequence[int], identities: bytearray) -> _Ids:
        """The same ids where each slot has another place."""
        out = _Ids(identities)
        out.slots.extend(map(place.__getitem__, self.slots))
        out._strays = {packed: place[slot] for packed, slot in self._strays.items()}
        return out

    @property
    def strays(self) -> Collection[int]:
        return self._strays.values()


def mark_of(key: Key) -> int:
    return hash((key[0], pack_id(key[1]) or key[1]))


def _rank(ns: str) -> int:
    return ns.count("|") + bool(ns)


def _columns(
    ids: Sequence[str], times: Sequence[str], steps: Sequence[Any], sizes: Sequence[Any]
) -> tuple[bytes, bytes, array[int], array[int]] | None:
    """None when one of the rows does not fit."""
    packed = pack_ids(ids), pack_times(times), pack_numbers(steps), pack_numbers(sizes)
    identities, moments, numbers, bytes_of = packed
    if identities is None or moments is None or numbers is None or bytes_of is None:
        return None
    return identities, moments, numbers, bytes_of
