"""Search over stored values: bytes first, so that only blobs that hold the text are decoded."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from studio.explain import is_internal
from studio.model import Address, Hit, RawCheckpoint, Value
from studio.render import masking, preview
from studio.tagged import children, join_path
from studio.value import Opaque, Tagged, decode

if TYPE_CHECKING:
    from studio.session import Session

CONTEXT = 60
"""Characters shown before a hit; twice as many after its beginning."""
AROUND = 50_000
"""Characters on each side of a hit in which secrets are looked for."""


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

    def find(value: str) -> int:
        return (value.lower() if folded else value).find(text)

    def matches(value: Value) -> int:
        if isinstance(value, str):
            return find(value)
        return 0 if number is not None and not isinstance(value, bool) and value == number else -1

    def excerpt(path: str, value: Value, at: int) -> str:
        if not isinstance(value, str):
            return masking.text(preview.number(value), masking.name_in(path), show_secrets=session.show_secrets)
        near = value[max(0, at - AROUND) : at + AROUND]  # secrets go before the cut, which could leave half of one
        shown = masking.text(near, masking.name_in(path), show_secrets=session.show_secrets)
        return _excerpt(shown, find(shown), at > AROUND, at + AROUND < len(value)) if find(shown) >= 0 else masking.MASKED

    for raw in session.overlay.scan(thread_id):
        if not holds(raw.blob):
            continue
        address = raw.header.address
        for path, value, at in _hits(raw, matches, holds, clean):
            key = (address.checkpoint_ns, path, hash(value))
            if key not in seen:
                seen.add(key)
                yield Hit(address, _number(session, address), path, excerpt(path, value, at))


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
) -> Iterator[tuple[str, Value, int]]:
    """(path, value, position in it) of every text, number and name in the state channels that holds the searched one."""
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
        for step, _ in inner:
            if (at := matches(step)) >= 0:
                yield join_path([*steps, step]), step, at
        stack.extend(((*steps, step), child) for step, child in reversed(inner))


def _excerpt(shown: str, at: int, before: bool, after: bool) -> str:
    """The text around a hit; `before` and `after` say that there is more of it than `shown`."""
    start, stop = max(0, at - CONTEXT), at + 2 * CONTEXT
    return ("…" if start or before else "") + shown[start:stop] + ("…" if stop < len(shown) or after else "")


def _number(session: Session, address: Address) -> str | None:
    tree = session.tree(address.thread_id)
    return tree.number(address) if address in tree else None
