"""Whether stored values are the same, and keys to match them by."""

from __future__ import annotations

import math
from typing import Any

import ormsgpack

from studio.codec import jsontext, msgpack_slow
from studio.codec.inert import MISSING, MapValue, Opaque
from studio.codec.objects import PASS, Tagged, dump_json
from studio.codec.packed import LONG, differing
from studio.errors import PatchError

_PARTS = object()
"""Stands in the place of a value for the parts of two long lists that are still to be compared."""


def equal(a: Any, b: Any) -> bool:
    """Whether two stored values are the same, types included: 1, 1.0 and True differ, NaN equals NaN, -0.0 differs from 0.0.

    The order of keys and of set members does not count, nor whether an object is stored by msgpack or by JSON.
    """
    stack = [(a, b)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        if a is _PARTS:
            left, right, parts = b
            span = next(parts, None)
            if span is not None:
                stack.append((a, b))
                stack.extend(zip(left[slice(*span)], right[slice(*span)], strict=True))
            continue
        if isinstance(a, Tagged):
            if not isinstance(b, Tagged) or not _push_tagged(a, b, stack):
                return False
        elif isinstance(a, dict):
            if not isinstance(b, dict) or len(a) != len(b):
                return False
            if len(a) > LONG:
                in_order = list(a) == list(b)
                if not in_order and a.keys() != b.keys():
                    return False
                values = list(a.values()), list(b.values()) if in_order else [b[key] for key in a]
                stack.append((_PARTS, (*values, differing(*values))))
                continue
            for key, left in a.items():
                right = b.get(key, MISSING)
                if right is MISSING:
                    return False
                if left is not right:
                    if type(left) is str and type(right) is str:
                        if left != right:
                            return False
                    else:
                        stack.append((left, right))
        elif isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b):
                return False
            if len(a) > LONG:
                stack.append((_PARTS, (a, b, differing(a, b))))
            else:
                stack.extend(zip(a, b, strict=True))
        elif isinstance(a, MapValue):
            if not isinstance(b, MapValue) or not _push_pairs(a, b, stack):
                return False
        elif not _same_scalar(a, b):
            return False
    return True


def _same_scalar(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return False  # True and False are singletons: `is` was tried before
    if isinstance(a, float):
        if not isinstance(b, float):
            return False
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    for kind in (int, str, bytes, Opaque):
        if isinstance(a, kind):
            return isinstance(b, kind) and bool(a == b)
    return False


def _push_tagged(a: Tagged, b: Tagged, stack: list[tuple[Any, Any]]) -> bool:
    """False when the two differ for sure; else what remains to be compared is on the stack."""
    if a.code == b.code and a.raw is not None and a.raw == b.raw:
        return True
    if a.described()[:3] != b.described()[:3] or (a.code != b.code and isinstance(a.code, int) and isinstance(b.code, int)):
        return False
    if a.kind in ("array", "snapshot"):
        stack.append((a.payload, b.payload))
        return True
    if a.kind == "unknown":
        return a.code == b.code and a.raw == b.raw
    left, right = a.content(), b.content()
    if a.is_set:
        return sorted(map(sort_key, left)) == sorted(map(sort_key, right))
    stack.append((left, right))
    return True


def _push_pairs(a: MapValue, b: MapValue, stack: list[tuple[Any, Any]]) -> bool:
    if len(a) != len(b):
        return False
    left = sorted(a.pairs, key=lambda pair: sort_key(pair[0]))
    right = sorted(b.pairs, key=lambda pair: sort_key(pair[0]))
    for (left_key, left_value), (right_key, right_value) in zip(left, right, strict=True):
        stack.append((left_key, right_key))
        stack.append((left_value, right_value))
    return True


def sort_key(value: Any) -> bytes:
    """Bytes that are the same for equal values (up to the order of keys inside stored objects), for sorting and matching."""
    try:
        return ormsgpack.packb(value, default=_key_ext, option=PASS | ormsgpack.OPT_SORT_KEYS)
    except TypeError:
        pass
    try:
        return msgpack_slow.pack(value, _key_pair)
    except PatchError:
        from studio.tagged import dumps, to_tagged

        return dumps(to_tagged(value)).encode()


def _key_pair(value: Any) -> tuple[int, bytes] | None:
    if isinstance(value, Tagged):
        if value.raw is not None and isinstance(value.code, int):
            return value.code, value.raw
        return 0, dump_json(value, jsontext.PYTHON).encode("utf-8", "surrogateescape")
    return (1, value.raw) if isinstance(value, Opaque) else None


def _key_ext(value: Any) -> Any:
    if isinstance(value, float):
        return float(value)
    pair = _key_pair(value)
    if pair is None:
        raise TypeError
    return ormsgpack.Ext(pair[0] & 0x7F, pair[1])
