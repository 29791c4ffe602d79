"""Sameness of large lists and maps at the speed of the packer: equal packed bytes prove equal values, nothing else is claimed.

Where two long lists are nearly the same, only the parts that differ are left to be looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import is_
from typing import Any

import ormsgpack

from studio.codec.lazylist import LazyList
from studio.codec.objects import PASS, Tagged

LONG = 64
"""Items from which on a list is compared in parts instead of one item after another."""
_PART, _INTO = 4_096, 8
"""Items that are packed at once, few enough that a difference near the front is found before the rest is packed; and into how
many a part is cut in which something differs."""
_LONG_TEXT = 65_536


def same_bytes(a: Any, b: Any) -> bool:
    """True when both pack to the same bytes, and so are equal, types and order of keys included; False: not known."""
    try:
        return bool(ormsgpack.packb(a, default=_ext, option=PASS) == ormsgpack.packb(b, default=_ext, option=PASS))
    except TypeError:
        return False


def is_plain(value: Any) -> bool:
    """Whether a large list or map holds for sure nothing but numbers, bytes and text that is Unicode; False for all others."""
    if not isinstance(value, (list, dict)) or len(value) < LONG or isinstance(value, LazyList):
        return False
    try:
        ormsgpack.packb(value, option=PASS)
    except TypeError:
        return False
    return True


def _ext(value: Any) -> Any:
    if isinstance(value, Tagged) and value.raw is not None and isinstance(value.code, int) and 0 <= value.code <= 127:
        return ormsgpack.Ext(value.code, value.raw)
    raise TypeError


def _unlike_texts(one: Any, other: Any) -> bool:
    """Whether one of two is a long text and the other another: known at once, where packing would copy it again and again."""
    return (type(one) is str and len(one) > _LONG_TEXT or type(other) is str and len(other) > _LONG_TEXT) and one != other


def differing(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """(start, stop) of the parts of two lists of one length that may differ, first ones first, each of at most `LONG` items."""
    stack = [(at, min(at + _PART, len(left))) for at in range(0, len(left), _PART)][::-1]
    while stack:
        start, stop = stack.pop()
        here, there = left[start:stop], right[start:stop]
        if all(map(is_, here, there)) or not any(map(_unlike_texts, here, there)) and same_bytes(here, there):
            continue
        if stop - start <= LONG:
            yield start, stop
            continue
        size = -(-(stop - start) // _INTO)
        stack += [(at, min(at + size, stop)) for at in range(start, stop, size)][::-1]


def common_start(left: Sequence[Any], right: Sequence[Any], same: Callable[[Any, Any], bool]) -> int:
    """How many items from the first on are the `same` in both."""
    most = min(len(left), len(right))
    if isinstance(left, LazyList) and isinstance(right, LazyList) and (known := left.same_start(right)):
        return known + common_start(left[known:most], right[known:most], same)
    for start, stop in differing(left[:most], right[:most]):
        for at in range(start, stop):
            if not same(left[at], right[at]):
                return at
    return most


def common_end(left: Sequence[Any], right: Sequence[Any], most: int, same: Callable[[Any, Any], bool]) -> int:
    """How many of the last `most` items are the `same` in both, from the last one on."""
    return common_start(left[len(left) - most :][::-1], right[len(right) - most :][::-1], same) if most else 0
