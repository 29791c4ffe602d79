"""Search over stored values: bytes first, so that only blobs that hold the text are decoded."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from studio.explain import is_internal
from studio.model import Address, Hit, RawCheckpoint, Value
from studio.tagged import children, join_path
from studio.value import Opaque, Tagged, decode

if TYPE_CHECKING:
    from studio.session import Session

CONTEXT = 60


def search(session: Session, text: str, thread_id: str | None = None, limit: int = 200) -> Iterator[Hit]:
    """Hits in the given thread, then in the others; each value once, at the first checkpoint that holds it.

    A text without capitals is found in any case. At most `limit` hits.
    """
    if not text:
        return
    others = [one for one in session.thread_ids() if one != thread_id]
    found = 0
    for one in ([thread_id] if thread_id is not None else []) + others:
        for hit in _search_thread(session, text, one):
            yield hit
            found += 1
            if found >= limit:
                return


def _search_thread(session: Session, text: str, thread_id: str) -> Iterator[Hit]:
    folded = text == text.lower()
    needles = _needles(text)
    number, packed = _number_needles(text)
    seen: set[tuple[str, str, int]] = set()
    clean: set[int] = set()

    def holds(data: bytes) -> bool:
        lowered = data.lower() if folded else data
        return any(needle in lowered for needle in needles) or any(needle in data for needle in packed)

    def matches(value: Value) -> int:
        if isinstance(value, str):
            return (value.lower() if folded else value).find(text)
        return 0 if number is not None and not isinstance(value, bool) and value == number else -1

    for raw in session.overlay.scan(thread_id):
        if not holds(raw.blob):
            continue
        address = raw.header.address
        for path, excerpt, identity in _hits(raw, matches, holds, clean):
            key = (address.checkpoint_ns, path, identity)
            if key not in seen:
                seen.add(key)
                yield Hit(address, _number(session, address), path, excerpt)


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
    raw: RawCheckpoint, matches: Callable[[Value], int], holds: Callable[[bytes], bool], clean: set[int]
) -> Iterator[tuple[str, str, int]]:
    """(path, excerpt, identity of the value) of every text in the state channels that holds the searched one."""
    document = decode(raw.tag, raw.blob)
    values = document.get("channel_values") if isinstance(document, dict) else None
    if not isinstance(values, dict):
        return
    stack: list[tuple[tuple[str, ...], Value]] = [((name,), value) for name, value in values.items() if not is_internal(name)]
    stack.reverse()
    while stack:
        steps, value = stack.pop()
        if isinstance(value, (str, int, float)):
            at = matches(value)
            if at >= 0:
                yield join_path(list(steps)), _excerpt(value if isinstance(value, str) else repr(value), at), hash(value)
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
        for step, _ in inner:
            if matches(step) >= 0:
                yield join_path([*steps, step]), step, hash(step)
        stack.extend(((*steps, step), child) for step, child in reversed(inner))


def _excerpt(value: str, at: int) -> str:
    start, stop = max(0, at - CONTEXT), at + 2 * CONTEXT
    return ("…" if start else "") + value[start:stop] + ("…" if stop < len(value) else "")


def _number(session: Session, address: Address) -> str | None:
    tree = session.tree(address.thread_id)
    return tree.number(address) if address in tree else None
