"""Packed lists that go on from a list which was read before: only what is new in them is decoded.

A delta channel stores its whole list anew from time to time, and each time nearly all of it is what stood in the last one.
"""

from __future__ import annotations

from typing import Any

import ormsgpack
from msgspec import Struct

from studio.codec.objects import Tagged, pack
from studio.errors import PatchError

SHORTEST = 4_000
"""Bytes of a list from which on it is worth being remembered."""


class ReadList(Struct, frozen=True):
    """A list with the bytes of its items, one after another, which are not copied."""

    body: bytes | memoryview
    items: list[Any]


_NOTHING = ReadList(b"", [])
_LIST = b"\xdd"
"""Before the number of items, in four bytes."""


def read(raw: bytes, before: ReadList | None) -> ReadList | None:
    """The list that is packed in `raw`, with the items of `before` where it begins with them. None for anything else than a list,
    and for one that the packer would not write again: it must be read in the slower way."""
    count, start = _head(raw)
    if not start:
        return None
    if before is None or count < len(before.items) or not raw.startswith(before.body, start):
        before = _NOTHING
    new = raw[start + len(before.body) :]
    try:
        items = ormsgpack.unpackb(_LIST + (count - len(before.items)).to_bytes(4, "big") + new, ext_hook=Tagged)
        packed = pack(items)
    except (ValueError, PatchError):
        return None
    if packed[_head(packed)[1] :] != new:  # a key stands twice, or bytes follow the list
        return None
    return ReadList(memoryview(raw)[start:], [*before.items, *items])


def _head(raw: bytes) -> tuple[int, int]:
    """(number of items, bytes before the first one) of a packed list, (0, 0) for anything else."""
    first = raw[0] if raw else 0
    if 0x90 <= first <= 0x9F:
        return first & 15, 1
    if first in (0xDC, 0xDD) and len(raw) >= (end := 3 if first == 0xDC else 5):
        return int.from_bytes(raw[1:end], "big"), end
    return 0, 0
