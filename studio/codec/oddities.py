"""What is odd inside stored values: text that is no Unicode, arrays without content, objects of codes that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studio.codec.arrays import as_array
from studio.codec.inert import Opaque
from studio.codec.lazylist import LazyList
from studio.codec.packed import is_plain
from studio.codec.paths import children, join_path
from studio.lazy import lazy
from studio.model import Problem, Value
from studio.value import Tagged

MOST = 50
"""Problems reported for one checkpoint; the rest is counted."""

_HALVES = lazy("[\ud800-\udfff]")
_KNOWN = frozenset(range(8))


def oddities(values: Mapping[str, Value], where: str, clean: set[bytes] | None = None) -> list[Problem]:
    """A problem for each odd value, `where` followed by its path.

    `clean` remembers stored objects without oddities between calls, so that what many checkpoints carry is read once.
    """
    found: list[Problem] = []
    count = 0
    stack: list[tuple[tuple[Any, str] | None, Any]] = [((None, name), value) for name, value in values.items()]
    stack.reverse()
    while stack:
        trail, value = stack.pop()
        if isinstance(value, Tagged) and value.raw is not None and clean is not None:
            if value.raw in clean:
                continue
            if _is_clean(value):
                clean.add(value.raw)
                continue
        odd = _odd(value)
        if odd is not None:
            count += 1
            if count <= MOST:
                found.append(Problem(odd[0], f"{where} {_path(trail)}", odd[1]))
        elif not isinstance(value, (str, LazyList)) and not is_plain(value):  # a lazy list is too large to be read through
            stack.extend(((trail, step), child) for step, child in reversed(children(value)))
    if count > MOST:
        found.append(Problem("more-oddities", where, f"{count - MOST} more values with such problems"))
    return found


def _is_clean(value: Tagged) -> bool:
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if _odd(item) is not None:
            return False
        if not isinstance(item, str):
            stack.extend(child for _, child in children(item))
    return True


def _odd(value: Any) -> tuple[str, str] | None:
    if isinstance(value, str):
        match = None if value.isascii() else _HALVES.search(value)
        if match is None:
            return None
        if "\udc80" <= match[0] <= "\udcff":
            return "invalid-utf8", f"bytes that are not UTF-8, the first is {ord(match[0]) - 0xDC00:#x}; they are kept"
        return "half-surrogate", f"half of a surrogate pair, U+{ord(match[0]):04X}; it is kept"
    if not isinstance(value, Tagged):
        return ("undecodable", f"bytes that stay closed: {value.reason}") if isinstance(value, Opaque) else None
    array = as_array(value)
    if array is not None and not array.readable:
        return "unreadable-array", f"an array of type {array.dtype} whose stored bytes have no meaning here"
    if value.kind == "unknown":
        if isinstance(value.code, int) and value.code not in _KNOWN:
            return "unknown-extension", f"an object under extension code {value.code}, which is not known; its bytes are kept"
        return "undecodable", "an object whose stored form cannot be read; its bytes are kept"
    return None


def _path(trail: tuple[Any, str] | None) -> str:
    steps: list[str] = []
    while trail is not None:
        trail, step = trail
        steps.append(step)
    return join_path(steps[::-1])
