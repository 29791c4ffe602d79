"""State values that a row does not hold as they are: delta channels, and what a `Command` wrote before its step began."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter

from msgspec.structs import replace

from studio.codec.continued import SHORTEST, ReadList, read
from studio.codec.objects import SNAPSHOT
from studio.explain import delta
from studio.explain.blob import Blob
from studio.explain.cache import Bounded
from studio.explain.channels import is_internal
from studio.explain.proof import Proof
from studio.explain.reader import Reader
from studio.explain.reducers import message_id, plausible, same_value
from studio.explain.rows import TaskRows, null_writes, row_value
from studio.explain.threads import Threads
from studio.model import Address, Rebuilt, Value
from studio.value import MISSING, Tagged

_STEPS_ASKED = 6
_RESULTS = 48
"""Rebuilt channels kept for their descendants; each is a list of references."""
_ITEMS = 20_000
"""Items that are remembered until they are all let go."""


class Shared:
    """One object for each item that is stored the same: every snapshot of a long conversation holds nearly all of the one before,
    and what was decoded once is not decoded again."""

    def __init__(self) -> None:
        self._items: dict[tuple[int | str, bytes], Tagged] = {}
        self._last: dict[str, tuple[list[Value], dict[str, int]]] = {}
        self._snapshots: dict[str, ReadList] = {}
        """The last one that was read, by its channel."""

    def of(self, channel: str, value: Value) -> tuple[Value, dict[str, int] | None]:
        """(a list with the items that were there before in the place of equal ones, where each id stands in it if it goes on
        from the last list of the channel); anything else as it is. A snapshot is taken for its content."""
        value = self.unwrapped(channel, value)
        if not isinstance(value, list):
            return value, None
        if len(self._items) > _ITEMS:
            self._items.clear()
        last, place = self._last.get(channel, (value, None))
        old = len(last) if place is not None and _begins(value, last) else 0
        items = [*last[:old], *(self._one(item) if _is_stored(item) else item for item in islice(value, old, None))]
        snapshot = self._snapshots.get(channel)
        if snapshot is not None and snapshot.items is value:
            self._snapshots = {channel: ReadList(snapshot.body, items)}  # the next one shall have the same objects
        if place is None or not (old or items[: len(last)] == last):
            return items, None
        for at in range(len(last), len(items)):
            if (ident := message_id(items[at])) is not None:
                place[ident] = at
        return items, place

    def unwrapped(self, channel: str, value: Value) -> Value:
        """The value inside a snapshot, its items those of the channel's last snapshot where it begins with them; anything else as
        it is."""
        if not (isinstance(value, Tagged) and value.code == SNAPSHOT):
            return value
        if not value.is_read and value.raw is not None and len(value.raw) >= SHORTEST:
            found = read(value.raw, self._snapshots.get(channel))
            if found is not None:
                value.take_payload(found.items)
                self._snapshots = {channel: found}
        return value.payload

    def note(self, channel: str, result: delta.Result) -> None:
        """Remember the last list of a channel, with where each id stands in it."""
        if result.place is not None and isinstance(result.value, list):
            self._last = {channel: (result.value, result.place)}

    def _one(self, item: Tagged) -> Tagged:
        return self._items.setdefault((item.code, item.raw or b""), item)


_RAW, _CODE = attrgetter("raw"), attrgetter("code")


def _is_stored(item: Value) -> bool:
    return isinstance(item, Tagged) and item.raw is not None


def _begins(items: Sequence[Value], start: Sequence[Value]) -> bool:
    """Whether the first items are stored as those of `start` are; known where all of these are objects."""
    head = items[: len(start)]
    if len(head) < len(start) or not ({*map(type, head)} == {*map(type, start)} == {Tagged}):
        return False
    raws = [*map(_RAW, start)]
    return None not in raws and [*map(_RAW, head)] == raws and [*map(_CODE, head)] == [*map(_CODE, start)]


class Values:
    """Completes the stored values of checkpoints. Thread-safe."""

    def __init__(self, reader: Reader, threads: Threads) -> None:
        self._reader = reader
        self._threads = threads
        self._lock = threading.RLock()
        self._results = Bounded(_RESULTS)
        self._shared = Shared()
        self._proof = Proof(reader, threads, self._ruled, self._shared.unwrapped)

    def completed(
        self, blob: Blob, stored: Mapping[str, Value], mine: Mapping[str, TaskRows]
    ) -> tuple[dict[str, Value], dict[str, Rebuilt], dict[str, str]]:
        """(state values as `get_state` shows them, how sure the ones are that are not stored, why some cannot be told)."""
        values = {name: self._shared.unwrapped(name, value) for name, value in stored.items()}
        rebuilt: dict[str, Rebuilt] = {}
        lost: dict[str, str] = {}
        for name, result in self._deltas(blob).items():
            rebuilt[name] = result.how
            if result.how == "unavailable":
                lost[name] = result.why
            if result.value is not MISSING:
                values[name] = result.value
        for name, writes in commanded(mine).items():
            if name in lost:
                continue
            readings = plausible(values.get(name, MISSING), writes)
            if not readings:
                continue
            kind = self._kind_above(blob, name) if len(readings) > 1 else None
            fitting = [reading for reading in readings if reading.kind == kind]
            values[name] = (fitting or readings)[0].value
            rebuilt[name] = "exact" if fitting or len(readings) == 1 else "ambiguous"
        return values, rebuilt, lost

    def _kind_above(self, blob: Blob, channel: str) -> str | None:
        """The reducer that earlier steps show for a channel, where one of the nearest tells one from another."""
        here = blob
        for _ in range(_STEPS_ASKED):
            above = self._reader.blob(here.parent) if here.parent is not None else None
            if above is None:
                return None
            writes = [row_value(row) for row in self._reader.rows_at(above.address) if row.channel == channel and row.idx >= 0]
            before, after = delta.unwrap(above.values.get(channel, MISSING)), delta.unwrap(here.values.get(channel, MISSING))
            readings = plausible(before, writes) if writes else []
            fitting = [reading.kind for reading in readings if same_value(reading.value, after)]
            if len(fitting) == 1 and len(readings) > 1:
                return fitting[0]
            here = above
        return None

    def _deltas(self, blob: Blob) -> dict[str, delta.Result]:
        missing = {name for name in delta.delta_channels(blob) if name not in blob.values}
        unsure = delta.absent_channels(blob) - missing
        if unsure and blob.parent is not None:
            above = self._reader.blob(blob.parent)
            if above is not None:
                missing |= unsure & delta.delta_channels(above)
        if not missing:
            return {}
        results = self._rebuilt(blob, missing, self._known)
        with self._lock:
            for name, result in results.items():
                self._results.put((blob.address, name), result)
                self._shared.note(name, result)
        return {name: self._believed(blob, name, result) for name, result in results.items()}

    def _believed(self, blob: Blob, name: str, result: delta.Result) -> delta.Result:
        if result.ruled and result.how == "exact" and self._proof.contradicts(blob, name, result.since):
            return replace(result, how="ambiguous")
        return result

    def _rebuilt(self, blob: Blob, names: set[str], known: delta.Known) -> dict[str, delta.Result]:
        return delta.rebuild(blob, names, self._reader.blob, self._reader.rows, self._forked, known, self._shared.of)

    def _ruled(self, blob: Blob, name: str) -> delta.Result:
        """What the rule makes of a channel at a checkpoint that may be far ahead: the places of ids there are its own."""

        def known(address: Address, channel: str) -> delta.Result | None:
            found = self._known(address, channel)
            return replace(found, place=dict(found.place)) if found is not None and found.place is not None else found

        return self._rebuilt(blob, {name}, known)[name]

    def _known(self, address: Address, name: str) -> delta.Result | None:
        with self._lock:
            result: delta.Result | None = self._results.get((address, name))
        return result

    def _forked(self, address: Address) -> Sequence[str | None]:
        return self._threads.sources_of_children(address)


def commanded(mine: Mapping[str, TaskRows]) -> dict[str, list[Value]]:
    """State channel -> what the null task wrote to it."""
    found: dict[str, list[Value]] = {}
    for row in null_writes(mine):
        if not is_internal(row.channel):
            found.setdefault(row.channel, []).append(row_value(row))
    return found
