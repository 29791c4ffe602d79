"""Search over stored values: bytes first, so that only blobs that hold the text are decoded."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from studio.errors import RefError
from studio.explain import is_internal
from studio.explain.delta import COUNTERS, unwrap
from studio.model import Hit, RawCheckpoint, Value
from studio.render import masking, preview, secrets
from studio.tagged import children, join_path
from studio.value import MapValue, Opaque, Tagged, decode, decode_metadata

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

CONTEXT = 60
"""Characters shown before a hit; twice as many after its beginning."""


def search(session: Session, text: str, thread_id: str | None = None, limit: int = 200, *, others: bool = True) -> Iterator[Hit]:
    """Hits in the given thread, then, with `others`, in the rest; each value once, at the first checkpoint that holds it.

    A text without capitals is found in any case. At most `limit` hits.
    """
    if not text:
        return
    found = 0
    if thread_id is not None:
        for hit in islice(_search_thread(session, text, thread_id, session.tree), limit):
            found += 1
            yield hit
    if thread_id is not None and not others:
        return
    for one in session.thread_ids():
        if found >= limit:
            return
        if one == thread_id:
            continue
        for hit in islice(_search_thread(session, text, one, session.passing_tree), limit - found):
            found += 1
            yield hit


def _search_thread(session: Session, text: str, thread_id: str, tree_of: Callable[[str], CheckpointTree]) -> Iterator[Hit]:
    """`tree_of` is asked for the tree, which numbers the hits, once there is one."""
    folded = text == text.lower()
    needles = _needles(text)
    number, packed = _number_needles(text)
    seen: set[tuple[str, str, int]] = set()
    clean: set[int] = set()
    deltas = _Deltas(session, thread_id)
    tree: CheckpointTree | None = None

    def holds(data: bytes) -> bool:
        lowered = data.lower() if folded else data
        return any(needle in lowered for needle in needles) or any(needle in data for needle in packed)

    def find(value: str) -> int:
        return (value.lower() if folded else value).find(text)

    def matches(value: Value) -> int:
        if isinstance(value, str):
            return find(value)
        return 0 if number is not None and not isinstance(value, bool) and value == number else -1

    def excerpt(path: str, value: Value, at: int, root: dict[str, Value]) -> str:
        if not isinstance(value, str):
            return masking.text(preview.number(value), masking.name_in(path, root), show_secrets=session.show_secrets)
        if session.show_secrets:
            return _excerpt(value, at, False, False)
        if masking.reason_at(path, value, root) == secrets.BY_NAME:
            return masking.MASKED
        shown, before, after = secrets.masked_around(value, at)  # secrets go before the cut, which could leave half of one
        return _excerpt(shown, find(shown), before, after) if find(shown) >= 0 else masking.MASKED

    for raw in session.overlay.scan(thread_id):
        values = {**(_stored(raw) if holds(raw.blob) else {}), **deltas.rebuilt(raw, holds)}
        address = raw.header.address
        for path, value, at in _hits(values, matches, holds, clean):
            key = (address.checkpoint_ns, path, hash(value))
            if key not in seen:
                seen.add(key)
                tree = tree_of(thread_id) if tree is None else tree
                row = tree.row(address) if address in tree else None
                called = (row.number, row.label) if row is not None else (None, "")
                yield Hit(address, called[0], path, excerpt(path, value, at, values), called[1])


class _Deltas:
    """Values of delta channels, which most checkpoints do not hold: the writes tell in whose children to look."""

    def __init__(self, session: Session, thread_id: str) -> None:
        self._session = session
        self._thread_id = thread_id
        self._known: set[str] = set()
        self._written: dict[tuple[str, str], set[str]] = {}
        """(namespace, checkpoint id) -> the delta channels with a fitting write under it."""

    def rebuilt(self, raw: RawCheckpoint, holds: Callable[[bytes], bool]) -> dict[str, Value]:
        """The delta channels that took a write with the searched text on the way to this checkpoint, with their values."""
        if COUNTERS.encode() in raw.metadata:
            self._learn(decode_metadata(raw.metadata).get(COUNTERS), holds)
        header = raw.header
        channels = self._written.get((header.checkpoint_ns, header.parent_checkpoint_id or ""))
        if not channels:
            return {}
        try:
            values = self._session.state(header.address).values
        except RefError:  # deleted since it was read
            return {}
        return {name: values[name] for name in channels if name in values}

    def _learn(self, counters: Value, holds: Callable[[bytes], bool]) -> None:
        fresh = [name for name in counters if name not in self._known] if isinstance(counters, dict) else []
        self._known.update(fresh)
        for row in self._session.overlay.scan_writes(self._thread_id, fresh) if fresh else ():
            if row.value is not None and holds(row.value):
                self._written.setdefault((row.checkpoint_ns, row.checkpoint_id), set()).add(row.channel)


def _stored(raw: RawCheckpoint) -> dict[str, Value]:
    """The state channels of a row."""
    document = decode(raw.tag, raw.blob)
    values = document.get("channel_values") if isinstance(document, dict) else None
    if not isinstance(values, dict):
        return {}
    return {name: unwrap(value) for name, value in values.items() if not is_internal(name)}


def _needles(text: str) -> list[bytes]:
    """The bytes to look for: UTF-8, and JSON's escaped form where that differs."""
    plain = text.encode("utf-8", "surrogatepass")
    escaped = json.dumps(text)[1:-1].encode()
    return [plain] if escaped == plain else [plain, escaped]


def _number_needles(text: str) -> tuple[float | None, list[bytes]]:
    """A searched number and how msgpack would store it, so that `499` finds 499 and 499.0."""
    try:
        number = float(text)
    except ValueError:
        return None, []
    packed = [struct.pack(">d", number)]
    if number.is_integer() and abs(number) < 2**63:
        whole = int(number)
        size = next(size for size in (1, 2, 4, 8) if -(1 << (8 * size - 1)) <= whole < 1 << (8 * size)) if whole < 2**63 else 8
        packed += [whole.to_bytes(size, "big", signed=whole < 0), str(whole).encode()]
    return number, packed


def _hits(
    values: dict[str, Value], matches: Callable[[Value], int], holds: Callable[[bytes], bool], clean: set[int]
) -> Iterator[tuple[str, Value, int]]:
    """(path, value, position in it) of every text, number and name in the values that holds the searched one."""
    stack: list[tuple[tuple[str, ...], Value]] = [((name,), value) for name, value in reversed(values.items())]
    while stack:
        steps, value = stack.pop()
        if isinstance(value, (str, int, float)):
            at = matches(value)
            if at >= 0:
                yield join_path(list(steps)), value, at
            continue
        if isinstance(value, Tagged) and value.raw is not None:
            identity = hash(value.raw)
            if identity in clean:
                continue
            if not holds(value.raw):
                clean.add(identity)
                continue
        if isinstance(value, Opaque):
            continue
        inner = children(value)
        named = isinstance(value, (dict, MapValue)) or (isinstance(value, Tagged) and value.kind == "fields")
        for step, _ in inner if named else ():  # a position is nothing that was stored
            if (at := matches(step)) >= 0:
                yield join_path([*steps, step]), step, at
        stack.extend(((*steps, step), child) for step, child in reversed(inner))


def _excerpt(shown: str, at: int, before: bool, after: bool) -> str:
    """The text around a hit; `before` and `after` say that there is more of it than `shown`."""
    start, stop = max(0, at - CONTEXT), at + 2 * CONTEXT
    return ("…" if start or before else "") + shown[start:stop] + ("…" if stop < len(shown) or after else "")
