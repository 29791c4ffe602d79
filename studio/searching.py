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
from studio.model import Address, Hit, RawCheckpoint, Value
from studio.render import masking, preview, secrets
from studio.tagged import children, join_path
from studio.unsearched import Unsearched
from studio.value import MapValue, Opaque, Tagged, decode, decode_metadata

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

Told = Callable[[str, Callable[[bytes], bool]], Iterator[tuple[Address, dict[str, Value]]]]
"""Of a store that tells itself what is new in each checkpoint."""
CONTEXT = 60
"""Characters shown before a hit; twice as many after its beginning."""


def search(session: Session, text: str, thread_id: str | None, limit: int, *, others: bool, passed: Unsearched) -> Iterator[Hit]:
    """Hits in the given thread, then, with `others`, in the rest; each value once, at the first checkpoint that holds it.

    A text without capitals is found in any case. At most `limit` hits. `passed` notes what could not be looked into.

    Unless secrets are shown, a hit that lies within a masked part or crosses its edge is none: whoever guesses a secret bit by
    bit must not learn that a bit fits. Who searches for a whole secret learns where it is stored, and reads only a mask there.
    """
    if not text:
        return
    found = 0
    if thread_id is not None:
        for hit in islice(_search_thread(session, text, thread_id, session.tree, passed), limit):
            found += 1
            yield hit
    if thread_id is not None and not others:
        return
    for one in session.thread_ids():
        if found >= limit:
            return
        if one == thread_id:
            continue
        for hit in islice(_search_thread(session, text, one, session.passing_tree, passed), limit - found):
            found += 1
            yield hit


def _search_thread(
    session: Session, text: str, thread_id: str, tree_of: Callable[[str], CheckpointTree], passed: Unsearched
) -> Iterator[Hit]:
    """`tree_of` is asked for the tree, which numbers the hits, once there is one."""
    folded = text == text.lower()
    needles = _needles(text)
    number, packed = _number_needles(text)
    seen: set[tuple[str, str, int]] = set()
    clean: set[int] = set()
    tree: CheckpointTree | None = None

    def holds(data: bytes) -> bool:
        lowered = data.lower() if folded else data
        return any(needle in lowered for needle in needles) or any(needle in data for needle in packed)

    def fold(value: str) -> str:
        return _folded(value) if folded else value

    def matches(value: Value) -> bool:
        if isinstance(value, str):
            return text in fold(value)
        return number is not None and not isinstance(value, bool) and value == number

    def excerpt(place: str, value: Value, root: dict[str, Value]) -> str | None:
        """What is shown of a hit; None where all that fits is hidden. `place`: whose name speaks of the value."""
        if not isinstance(value, str):
            return masking.text(preview.number(value), masking.name_in(place, root), show_secrets=session.show_secrets)
        whole = fold(value)
        if session.show_secrets:
            return _excerpt(value, whole.find(text))
        if masking.reason_at(place, value, root) == secrets.BY_NAME:
            return masking.MASKED if whole == text else None
        return _masked_excerpt(value, whole, text)

    def noted() -> None:
        passed.value(thread_id)

    for address, values in _states(session, thread_id, holds, passed):
        for path, place, value in _hits(values, matches, holds, clean, noted):
            key = (address.checkpoint_ns, path, hash(value))
            if key in seen:
                continue
            seen.add(key)
            shown = excerpt(place, value, values)
            if shown is None:
                continue
            tree = tree_of(thread_id) if tree is None else tree
            row = tree.row(address) if address in tree else None
            called = (row.number, row.label) if row is not None else (None, "")
            told = path if session.show_secrets else masking.secret_place(path, values) or path
            yield Hit(address, called[0], told, shown, called[1])


def _states(
    session: Session, thread_id: str, holds: Callable[[bytes], bool], passed: Unsearched
) -> Iterator[tuple[Address, dict[str, Value]]]:
    """Checkpoints, oldest first, with the values in which the text may stand."""
    told: Told | None = getattr(session.explainer, "searched", None)
    if told is not None:
        yield from told(thread_id, holds)
        return
    deltas = _Deltas(session, thread_id)
    for raw in session.overlay.scan(thread_id):
        if passed.checkpoint(raw):
            continue
        yield raw.header.address, {**(_stored(raw) if holds(raw.blob) else {}), **deltas.rebuilt(raw, holds)}


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
    values: dict[str, Value],
    matches: Callable[[Value], bool],
    holds: Callable[[bytes], bool],
    clean: set[int],
    closed: Callable[[], None],
) -> Iterator[tuple[str, str, Value]]:
    """(path, place, value) of every text, number and name in the values that holds the searched one. The place is the path of
    what a name speaks of: of a name itself, the map that it stands in."""
    stack: list[tuple[tuple[str, ...], Value]] = [((name,), value) for name, value in reversed(values.items())]
    while stack:
        steps, value = stack.pop()
        if isinstance(value, (str, int, float)):
            if matches(value):
                path = join_path(list(steps))
                yield path, path, value
            continue
        if isinstance(value, Tagged) and value.raw is not None:
            identity = hash(value.raw)
            if identity in clean:
                continue
            if not holds(value.raw):
                clean.add(identity)
                continue
        if isinstance(value, Opaque):
            closed()
            continue
        inner = children(value)
        named = isinstance(value, (dict, MapValue)) or (isinstance(value, Tagged) and value.kind == "fields")
        for step, _ in inner if named else ():  # a position is nothing that was stored
            if matches(step):
                yield join_path([*steps, step]), join_path(list(steps)), step
        stack.extend(((*steps, step), child) for step, child in reversed(inner))


def _folded(value: str) -> str:
    """In small letters, each at the place where it was: the one letter that becomes two stays as it is."""
    small = value.lower()
    return small if len(small) == len(value) else value.replace("\u0130", "\u2400").lower()


def _excerpt(shown: str, at: int) -> str:
    start, stop = max(0, at - CONTEXT), at + 2 * CONTEXT
    return ("…" if start else "") + shown[start:stop] + ("…" if stop < len(shown) else "")


def _masked_excerpt(value: str, whole: str, text: str) -> str | None:
    """Around the first hit that no secret part of the value holds a piece of; secrets go before the cut. `whole`: to look in."""
    hidden = secrets.spans(value)
    at, passed, moved = whole.find(text), 0, 0
    while at >= 0:
        while passed < len(hidden) and hidden[passed][1] <= at:
            moved += len(masking.MASKED) - (hidden[passed][1] - hidden[passed][0])
            passed += 1
        crossed = _crossed(hidden, passed, at, at + len(text))
        if crossed is None:
            return _excerpt(secrets.replaced(value, hidden), at + moved)
        at = whole.find(text, max(at + 1, crossed - len(text)))
    return None


def _crossed(hidden: list[tuple[int, int]], first: int, start: int, stop: int) -> int | None:
    """The end of a hidden part, from the `first` on, that a stretch of the text holds a piece of and not all of it."""
    for begin, end in islice(hidden, first, None):
        if begin >= stop:
            break
        if begin < start or end > stop:
            return end
    return None
