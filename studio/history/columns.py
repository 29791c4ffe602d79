"""Ids, times and numbers of many rows as bytes, where nothing is lost: what has another form than LangGraph's is refused."""

from __future__ import annotations

from array import array
from binascii import Error, unhexlify
from collections.abc import Sequence

ID, TIME = 16, 10
"""Bytes of one: a canonical lower-case UUID; the digits of `2026-03-14T14:02:09.123456+00:00`."""

_ID_LENGTH, _DASHES = 36, (8, 13, 18, 23)
_TIME_LENGTH, _ZONE = 32, b"+00:00"
_MARKS = {4: b"-", 7: b"-", 10: b"T", 13: b":", 16: b":", 19: b".", 26: b"+"}


def pack_id(text: str) -> bytes | None:
    """None for an id that would not come back as the same text. In the order of the texts."""
    if len(text) != _ID_LENGTH or not text[8] == text[13] == text[18] == text[23] == "-":
        return None
    digits = text.replace("-", "")
    try:
        packed = bytes.fromhex(digits)
    except ValueError:
        return None
    return packed if packed.hex() == digits else None


def id_text(packed: bytes | bytearray) -> str:
    digits = packed.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def time_text(packed: bytes | bytearray) -> str:
    digits = packed.hex()
    day, clock = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}", f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}"
    return f"{day}T{clock}.{digits[14:]}+00:00"


def pack_ids(texts: Sequence[str]) -> bytes | None:
    """All of them, or None when one would not come back as the same text."""
    raw = _joined(texts, _ID_LENGTH)
    if raw is None or any(raw[at::_ID_LENGTH] != b"-" * len(texts) for at in _DASHES):
        return None
    digits = raw.translate(None, b"-")
    if len(digits) != 2 * ID * len(texts) or digits != digits.lower():
        return None
    try:
        return unhexlify(digits)
    except Error:
        return None


def pack_times(texts: Sequence[str]) -> bytes | None:
    """All of them, or None when one would not come back as the same text."""
    raw = _joined(texts, _TIME_LENGTH)
    if raw is None or any(raw[at::_TIME_LENGTH] != mark * len(texts) for at, mark in _MARKS.items()):
        return None
    if raw.count(_ZONE) != len(texts):
        return None
    digits = raw.replace(_ZONE, b"").translate(None, b"-T:.")
    return unhexlify(digits) if digits.isdigit() and len(digits) == 2 * TIME * len(texts) else None


def pack_numbers(numbers: Sequence[object]) -> array[int] | None:
    """All of them, or None when one is no number of 64 bits."""
    if any(kind is not int for kind in set(map(type, numbers))):
        return None
    try:
        return array("q", numbers)  # type: ignore[arg-type]
    except OverflowError:
        return None


def _joined(texts: Sequence[str], length: int) -> bytes | None:
    if set(map(len, texts)) - {length}:
        return None
    text = "".join(texts)
    return text.encode() if text.isascii() else None
