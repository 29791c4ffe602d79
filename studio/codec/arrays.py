"""Elements of stored numpy arrays (ext code 6: `[dtype, shape, "C" or "F", bytes]`), read and set without numpy."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Iterator
from typing import Any

from studio.errors import PatchError
from studio.lazy import lazy
from studio.value import Tagged, equal

PREVIEW = 12
"""Elements shown of an array."""
MAX_CHANGES = 50
"""More changed elements than this count as one change of the whole array."""

_CODES = {
    "f2": "e",
    "f4": "f",
    "f8": "d",
    "b1": "?",
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
}
_DTYPE = lazy(r"([<>|=])([a-zA-Z])(\d*)(?:\[(.*)\])?$")
_UNITS = {"D": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
_NAT = -(1 << 63)


class Array:
    """One stored array. `readable` is False for object arrays (they hold memory addresses) and for damaged ones."""

    def __init__(self, value: Tagged) -> None:
        dtype, shape, order, data = value.payload
        self.value = value
        self.dtype: str = dtype
        self.shape: list[int] = shape
        self.order = order
        self.data: bytes = data
        match = _DTYPE.match(dtype)
        endian, kind, digits, unit = match.groups() if match else ("", "", "", None)
        self._endian: str = endian
        self._kind: str = kind
        self._unit: str | None = unit
        self._width = int(digits or 0) * (4 if self._kind == "U" else 1)
        good_shape = all(type(side) is int and side >= 0 for side in shape)
        self.size = math.prod(shape) if good_shape else 0
        known = (
            self._kind + digits in _CODES or (self._kind == "c" and digits in ("8", "16")) or self._kind in ("M", "m", "U", "S")
        )
        self.readable = bool(match and known and good_shape and self._width and self.size * self._width == len(data))
        if good_shape and self.size == 0 and known:
            self.readable = True

    def element(self, index: list[int]) -> Any:
        """The element at one index per dimension, as a plain value; dates and complex numbers as text."""
        return self._read(self._offset(index))

    def preview(self) -> list[Any] | None:
        """The first elements, last index fastest; None when unreadable."""
        if not self.readable:
            return None
        return [self.element(index) for index in self._indices(PREVIEW)]

    def rows(self, prefix: list[int]) -> int:
        """Length of the dimension after `prefix`."""
        return self.shape[len(prefix)] if len(prefix) < len(self.shape) else 0

    def changed(self, other: Array) -> list[list[int]] | None:
        """Indices of the elements that differ; None when the arrays do not compare element by element, or too many differ."""
        if (
            not self.readable
            or (self.dtype, self.shape, self.order) != (other.dtype, other.shape, other.order)
            or len(self.data) != len(other.data)
        ):
            return None
        width, found = self._width, []
        block = width * max(1, 4096 // width)
        for start in range(0, len(self.data), block):
            if self.data[start : start + block] == other.data[start : start + block]:
                continue
            for at in range(start, min(start + block, len(self.data)), width):
                if self.data[at : at + width] != other.data[at : at + width]:
                    if equal(self._read(at), other._read(at)):
                        return None  # the same to a reader, not the same bytes: only the whole can be replaced
                    found.append(self._index(at // width))
                    if len(found) > MAX_CHANGES:
                        return None
        return found

    def with_element(self, index: list[int], new: Any) -> Tagged:
        """A copy with one element set; `PatchError` when the type cannot hold it."""
        code = _CODES.get(f"{self._kind}{self._width}")
        if code is None or not self.readable:
            raise PatchError(f"single elements of an array of type {self.dtype} cannot be set")
        if (
            isinstance(new, bool) != (code == "?")
            or not isinstance(new, (int, float))
            or (isinstance(new, float) and code not in "efd")
        ):
            raise PatchError(f"an array of type {self.dtype} cannot hold {new!r:.40}")
        at = self._offset(index)
        try:
            raw = struct.pack(self._order_mark() + code, new)
        except (struct.error, OverflowError) as error:
            raise PatchError(f"an array of type {self.dtype} cannot hold {new!r:.40}") from error
        data = self.data[:at] + raw + self.data[at + self._width :]
        return self.value.replace_payload([self.dtype, self.shape, self.order, data])

    def _order_mark(self) -> str:
        return ">" if self._endian == ">" else "<"

    def _offset(self, index: list[int]) -> int:
        if (
            not self.readable
            or len(index) != len(self.shape)
            or any(not 0 <= at < side for at, side in zip(index, self.shape, strict=True))
        ):
            raise IndexError(index)
        flat = 0
        pairs = list(zip(index, self.shape, strict=True))
        for at, side in pairs[::-1] if self.order == "F" else pairs:
            flat = flat * side + at
        return flat * self._width

    def _index(self, flat: int) -> list[int]:
        found = []
        for side in self.shape if self.order == "F" else self.shape[::-1]:
            flat, at = divmod(flat, side)
            found.append(at)
        return found if self.order == "F" else found[::-1]

    def _indices(self, limit: int) -> Iterator[list[int]]:
        for count in range(min(limit, self.size)):
            index, rest = [], count
            for side in self.shape[::-1]:
                rest, at = divmod(rest, side)
                index.append(at)
            yield index[::-1]

    def _read(self, at: int) -> Any:
        raw = self.data[at : at + self._width]
        mark, kind = self._order_mark(), self._kind
        code = _CODES.get(f"{kind}{self._width}")
        if code:
            return struct.unpack(mark + code, raw)[0]
        if kind == "c":
            real, imaginary = struct.unpack(mark + ("dd" if self._width == 16 else "ff"), raw)
            return repr(complex(real, imaginary)).strip("()")
        if kind == "U":
            return raw.decode("utf-32-be" if mark == ">" else "utf-32-le", "replace").rstrip("\0")
        if kind == "S":
            return raw.rstrip(b"\0")
        ticks = struct.unpack(mark + "q", raw)[0] if self._width == 8 else 0
        return _moment(ticks, self._unit or "", kind)


def _moment(ticks: int, unit: str, kind: str) -> str:
    if ticks == _NAT:
        return "NaT"
    if kind == "M" and unit in _UNITS:
        try:
            moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=ticks * _UNITS[unit])
            return moment.date().isoformat() if unit == "D" else moment.isoformat()
        except OverflowError:
            pass
    return f"{ticks} {unit}"


def as_array(value: Any) -> Array | None:
    """The elements of a `Tagged` of kind `array`, else None."""
    return Array(value) if isinstance(value, Tagged) and value.kind == "array" else None
