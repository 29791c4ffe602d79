"""Large values that were read a moment ago, taken again where the same bytes stand in another record.

A checkpoint, its parent and the write that led from one to the other hold mostly the same bytes. What is equal in them becomes
one object: it is decoded once, and whoever compares two states sees at once that it is the same. Only bytes that the packer would
write again are shared, so that a shared value stands for exactly its bytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from operator import eq
from typing import Any

import msgspec
import ormsgpack
from msgspec import Raw

from studio.codec.inert import MISSING
from studio.codec.objects import Tagged, pack
from studio.errors import PatchError

LARGE = 100_000
"""Bytes from which on a value is kept and looked for."""
_KEPT = 8
_DEEPEST = 6
_MOST = 10_000
"""Entries of a map that are looked through for large ones."""
_FEW = 16
"""Entries of a map that are measured one by one."""
_ENDS = 32
_EXT_32, _EXT_HEAD, _LAST_CODE = 0xC9, 6, 127
"""How an object of 65,536 bytes or more begins: its size in four bytes and its code."""
_LIST = msgspec.msgpack.Decoder(list[Raw])
_MAP = msgspec.msgpack.Decoder(dict[str, Raw])

_recent: OrderedDict[tuple[int, bytes, bytes], tuple[str | None, Raw, Any]] = OrderedDict()
"""By size, first and last bytes: the name that a value stood under, its bytes, and the value."""
_lock = threading.Lock()


class _Otherwise(ValueError):
    """The bytes are not those that the packer would write."""


def unpack(blob: bytes) -> Any:
    """The inert value of a large msgpack blob, which packs to the same bytes; MISSING where it must be read in the slower way."""
    try:
        return _value(Raw(blob), None, 0)
    except (ValueError, TypeError, RecursionError, PatchError):
        return MISSING


def packed_size(value: Any, depth: int = 0) -> int:
    """Bytes that a plain value takes in a msgpack blob; `PatchError` for what none can hold. What was read a moment ago is not
    packed again."""
    with _lock:
        known = next((len(raw) for _, raw, kept in _recent.values() if kept is value), None)
    if known is not None:
        return known
    if type(value) is dict and len(value) <= _FEW and depth < _DEEPEST:
        return len(pack(dict.fromkeys(value))) - len(value) + sum(packed_size(part, depth + 1) for part in value.values())
    return len(pack(value))


def forget() -> None:
    """Let go of all values."""
    with _lock:
        _recent.clear()


def _value(raw: Raw, name: str | None, depth: int) -> Any:
    if len(raw) < LARGE or depth > _DEEPEST:
        return _plain(raw)
    view = memoryview(raw)
    key = len(raw), bytes(view[:_ENDS]), bytes(view[-_ENDS:])
    with _lock:
        kept = _recent.get(key)
        if kept is not None and kept[1] == raw:
            _recent.move_to_end(key)
            return kept[2]
    first = view[0]
    if 0x80 <= first <= 0x8F or first in (0xDE, 0xDF):
        parts = _parts(raw, name)
        if parts is not None and max(map(len, parts.values())) >= LARGE:  # these are kept, not what holds them
            return {key: _value(part, key, depth + 1) for key, part in parts.items()}
        value = _map(raw, parts, name)
    elif 0x90 <= first <= 0x9F or first in (0xDC, 0xDD):
        value = _list(raw, name)
    else:
        value = _plain(raw)
    with _lock:
        _recent[key] = name, raw, value
        while len(_recent) > _KEPT:
            _recent.popitem(last=False)
    return value


def _plain(raw: Raw) -> Any:
    """Decoded as a whole."""
    if len(raw) >= LARGE and (found := _ext(memoryview(raw))) is not None:
        return found
    value = ormsgpack.unpackb(memoryview(raw), ext_hook=Tagged)
    if Raw(pack(value)) != raw:
        raise _Otherwise
    return value


def _ext(view: memoryview) -> Tagged | None:
    """A large object as the packer writes it: its payload is copied once, and not packed again to prove that."""
    if view[0] != _EXT_32 or int.from_bytes(view[1:5], "big") != len(view) - _EXT_HEAD or view[5] > _LAST_CODE:
        return None
    return Tagged(view[5], bytes(view[_EXT_HEAD:]))


def _alike(kind: type, name: str | None) -> tuple[Raw, Any] | None:
    """The bytes and value of the last list or map that stood under the same name."""
    with _lock:
        found = (kept for kept in reversed(_recent.values()) if name is not None and kept[0] == name and type(kept[2]) is kind)
        return next(((raw, value) for _, raw, value in found), None)


def _parts(raw: Raw, name: str | None) -> dict[str, Raw] | None:
    """The bytes of each value of a map; None where nothing is gained by looking at them one by one."""
    head = bytes(memoryview(raw)[:5])
    count = int.from_bytes(head[1:], "big") if head[0] == 0xDF else 0
    if count > _MOST and _alike(dict, name) is None:
        return None
    try:
        parts = _MAP.decode(raw)
    except ValueError:  # other keys than text
        return None
    if len(pack(dict.fromkeys(parts))) - len(parts) + sum(map(len, parts.values())) != len(raw):
        raise _Otherwise  # a key stands twice, or a length takes more bytes than it needs
    return parts


def _map(raw: Raw, parts: dict[str, Raw] | None, name: str | None) -> Any:
    """A map with the values that it shares with the last map of its name, before and behind what differs."""
    alike = _alike(dict, name)
    if alike is None or parts is None:
        return _plain(raw)
    old = _MAP.decode(alike[0])
    keys, values = _ends(list(parts), list(old)), _ends(list(parts.values()), list(old.values()))
    ends = min(keys[0], values[0]), min(keys[1], values[1])
    found = _joined(list(parts.values()), list(alike[1].values()), *ends)
    return dict(zip(parts, found, strict=True)) if found is not None else _plain(raw)


def _list(raw: Raw, name: str | None) -> Any:
    """A list with the items that it shares with the last list of its name, before and behind what differs."""
    alike = _alike(list, name)
    if alike is None:
        return _plain(raw)
    parts = _LIST.decode(raw)
    head = pack([None] * len(parts))[: -len(parts)]
    found = _joined(parts, alike[1], *_ends(parts, _LIST.decode(alike[0])))
    return found if found is not None and bytes(memoryview(raw)[: len(head)]) == head else _plain(raw)


def _ends(left: Sequence[Any], right: Sequence[Any]) -> tuple[int, int]:
    """How many are the same from the first on, and how many from the last on."""
    return _common(left, right), _common(left[::-1], right[::-1])


def _common(left: Sequence[Any], right: Sequence[Any]) -> int:
    same = list(map(eq, left, right))
    return same.index(False) if False in same else len(same)


def _joined(parts: Sequence[Raw], values: Sequence[Any], start: int, end: int) -> list[Any] | None:
    """So many values of both ends, and those between them decoded; None where most would have to be."""
    end = min(end, min(len(parts), len(values)) - start)
    between = parts[start : len(parts) - end]
    if 2 * len(between) > len(parts):
        return None
    return [*values[:start], *map(_plain, between), *values[len(values) - end :]]
