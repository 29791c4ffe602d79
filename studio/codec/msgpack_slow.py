"""MessagePack by hand, for what `ormsgpack` refuses: any depth, invalid UTF-8, keys of any kind, negative ext codes.

Iterative both ways. Texts that are not UTF-8 keep their bytes as `surrogateescape` characters. The reader raises `ValueError` for
damage, the writer raises `PatchError` for values that the format cannot hold.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from studio.codec.inert import MapValue, Opaque
from studio.errors import PatchError

MakeExt = Callable[[int, bytes], Any]
ExtOf = Callable[[Any], "tuple[int, bytes] | None"]

_SIZES = {
    0xC4: ("bin", 1), 0xC5: ("bin", 2), 0xC6: ("bin", 4), 0xC7: ("ext", 1), 0xC8: ("ext", 2), 0xC9: ("ext", 4),
    0xD9: ("str", 1), 0xDA: ("str", 2), 0xDB: ("str", 4), 0xDC: ("array", 2), 0xDD: ("array", 4),
    0xDE: ("map", 2), 0xDF: ("map", 4),
}  # fmt: skip
_NUMBERS = {0xCA + place: struct.Struct(">" + code) for place, code in enumerate("fdBHIQbhiq")}


class _Frame:
    __slots__ = ("is_map", "items", "left")

    def __init__(self, is_map: bool, left: int) -> None:
        self.is_map = is_map
        self.left = left
        self.items: list[Any] = []


def unpack(blob: bytes, make_ext: MakeExt) -> Any:
    """The one value that `blob` holds; `ValueError` where it is cut, holds more, or uses the reserved byte."""
    position, end = 0, len(blob)
    stack: list[_Frame] = []
    while True:
        value, position, frame = _item(blob, position, end, make_ext)
        if frame is not None:
            if frame.left > end - position:
                raise ValueError("more items announced than bytes left")
            if frame.left:
                stack.append(frame)
                continue
            value = {} if frame.is_map else []
        while stack:
            top = stack[-1]
            top.items.append(value)
            top.left -= 1
            if top.left:
                break
            stack.pop()
            value = make_map(list(zip(top.items[::2], top.items[1::2], strict=True))) if top.is_map else top.items
        else:
            if position != end:
                raise ValueError("bytes after the value")
            return value


def make_map(pairs: list[tuple[Any, Any]]) -> Any:
    """A plain dict when all keys are different texts, else a `MapValue`."""
    if all(isinstance(key, str) for key, _ in pairs):
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
    return MapValue(pairs)


def _item(blob: bytes, at: int, end: int, make_ext: MakeExt) -> tuple[Any, int, _Frame | None]:
    if at >= end:
        raise ValueError("unexpected end")
    first = blob[at]
    at += 1
    if first <= 0x7F:
        return first, at, None
    if first >= 0xE0:
        return first - 256, at, None
    if first <= 0x8F:
        return None, at, _Frame(True, 2 * (first & 0x0F))
    if first <= 0x9F:
        return None, at, _Frame(False, first & 0x0F)
    if first <= 0xBF:
        return _text(blob, at, first & 0x1F, end), at + (first & 0x1F), None
    if first == 0xC0:
        return None, at, None
    if first in (0xC2, 0xC3):
        return first == 0xC3, at, None
    number = _NUMBERS.get(first)
    if number is not None:
        if at + number.size > end:
            raise ValueError("unexpected end")
        return number.unpack_from(blob, at)[0], at + number.size, None
    if 0xD4 <= first <= 0xD8:
        return _ext(blob, at, 1 << (first - 0xD4), end, make_ext)
    kind, width = _SIZES.get(first) or ("", 0)
    if not kind:
        raise ValueError("reserved byte")
    if at + width > end:
        raise ValueError("unexpected end")
    size = int.from_bytes(blob[at : at + width], "big")
    at += width
    if kind == "array":
        return None, at, _Frame(False, size)
    if kind == "map":
        return None, at, _Frame(True, 2 * size)
    if kind == "ext":
        return _ext(blob, at, size, end, make_ext)
    if kind == "str":
        return _text(blob, at, size, end), at + size, None
    if at + size > end:
        raise ValueError("unexpected end")
    return blob[at : at + size], at + size, None


def _text(blob: bytes, at: int, size: int, end: int) -> str:
    if at + size > end:
        raise ValueError("unexpected end")
    return blob[at : at + size].decode("utf-8", "surrogateescape")


def _ext(blob: bytes, at: int, size: int, end: int, make_ext: MakeExt) -> tuple[Any, int, None]:
    if at + 1 + size > end:
        raise ValueError("unexpected end")
    code = blob[at] - 256 if blob[at] > 127 else blob[at]
    return make_ext(code, blob[at + 1 : at + 1 + size]), at + 1 + size, None


def pack(value: Any, ext_of: ExtOf) -> bytes:
    """The smallest form of every value, as LangGraph's writer makes it. `ext_of` gives (code, payload) for ext values."""
    out = bytearray()
    stack: list[Any] = [iter((value,))]
    while stack:
        for item in stack[-1]:
            children = _pack_one(out, item, ext_of)
            if children is not None:
                stack.append(children)
                break
        else:
            stack.pop()
    return bytes(out)


def _pack_one(out: bytearray, value: Any, ext_of: ExtOf) -> Any:
    """Append the value or its head; an iterator over what still has to follow, or None."""
    if value is None:
        out.append(0xC0)
    elif value is True or value is False:
        out.append(0xC3 if value else 0xC2)
    elif isinstance(value, str):
        try:
            text = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise PatchError(
                "a text with half a surrogate pair cannot be stored here", "Remove the character U+D800-U+DFFF from the text."
            ) from error
        _head(out, len(text), 0xA0, 31, (0xD9, 0xDA, 0xDB))
        out += text
    elif isinstance(value, int):
        _pack_int(out, value)
    elif isinstance(value, float):
        out.append(0xCB)
        out += struct.pack(">d", value)
    elif isinstance(value, (bytes, bytearray)):
        _head(out, len(value), 0, -1, (0xC4, 0xC5, 0xC6))
        out += value
    elif isinstance(value, (list, tuple)):
        _head(out, len(value), 0x90, 15, (None, 0xDC, 0xDD))
        return iter(value)
    elif isinstance(value, dict):
        _head(out, len(value), 0x80, 15, (None, 0xDE, 0xDF))
        return (part for pair in value.items() for part in pair)
    elif isinstance(value, MapValue):
        _head(out, len(value.pairs), 0x80, 15, (None, 0xDE, 0xDF))
        return (part for pair in value.pairs for part in pair)
    else:
        _pack_ext(out, value, ext_of)
    return None


def _pack_ext(out: bytearray, value: Any, ext_of: ExtOf) -> None:
    ext = ext_of(value)
    if ext is None:
        what = f"unreadable bytes ({value.reason})" if isinstance(value, Opaque) else f"a Python {type(value).__name__}"
        raise PatchError(f"{what} cannot be stored inside another value")
    code, raw = ext
    size = len(raw)
    if size in (1, 2, 4, 8, 16):
        out.append(0xD4 + size.bit_length() - 1)
    else:
        _head(out, size, 0, -1, (0xC7, 0xC8, 0xC9))
    out.append(code & 0xFF)
    out += raw


def _pack_int(out: bytearray, value: int) -> None:
    if 0 <= value <= 0x7F:
        out.append(value)
    elif -32 <= value < 0:
        out.append(value + 256)
    elif value >= 0:
        for code, size in ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)):
            if value < 1 << 8 * size:
                out.append(code)
                out += value.to_bytes(size, "big")
                return
        raise PatchError("an integer beyond 64 bits cannot be stored here", "Store it as a text.")
    else:
        for code, size in ((0xD0, 1), (0xD1, 2), (0xD2, 4), (0xD3, 8)):
            if value >= -(1 << 8 * size - 1):
                out.append(code)
                out += value.to_bytes(size, "big", signed=True)
                return
        raise PatchError("an integer beyond 64 bits cannot be stored here", "Store it as a text.")


def _head(out: bytearray, size: int, fix: int, fix_limit: int, codes: tuple[int | None, int, int]) -> None:
    if size <= fix_limit:
        out.append(fix | size)
    elif size <= 0xFF and codes[0] is not None:
        out.append(codes[0])
        out.append(size)
    elif size <= 0xFFFF:
        out.append(codes[1])
        out += size.to_bytes(2, "big")
    elif size <= 0xFFFFFFFF:
        out.append(codes[2])
        out += size.to_bytes(4, "big")
    else:
        raise PatchError("a value of more than 4 GB cannot be stored here")
