"""Changing parts of a stored JSON text and nothing else of it.

A record that goes into a fork is copied as its bytes: numbers, escapes, double keys and the order of fields stay as the program
wrote them. Only the parts that must differ are cut out and replaced. Nothing here recurses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,}\]]+")
_BLANK = re.compile(rb"[ \t\r\n]*")

Path = tuple[str | int, ...]
Span = tuple[int, int]


class Member(Struct, frozen=True):
    """One field of an object: where its key begins, and where its value lies."""

    name: str
    start: int
    value: Span


class NotThere(ValueError):
    """The text is no JSON, or has no such part."""


def _skip(data: bytes, at: int) -> int:
    found = _BLANK.match(data, at)
    return found.end() if found is not None else at


def end_of(data: bytes, at: int) -> int:
    """Where the value that begins at `at` ends."""
    head = data[at : at + 1]
    if head == b'"':
        found = _STRING.match(data, at)
        if found is None:
            raise NotThere("a text has no end")
        return found.end()
    if head not in (b"{", b"["):
        found = _SCALAR.match(data, at)
        if found is None:
            raise NotThere("no value")
        return found.end()
    depth = 0
    for token in _TOKEN.finditer(data, at):
        mark = data[token.start()]
        if mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
            if depth == 0:
                return token.end()
    raise NotThere("a value has no end")


def members(data: bytes, at: int = 0) -> list[Member]:
    """The fields of the object that begins at `at`, each as often as it stands there."""
    at = _skip(data, at)
    if data[at : at + 1] != b"{":
        raise NotThere("no object")
    found: list[Member] = []
    at = _skip(data, at + 1)
    while data[at : at + 1] != b"}":
        key = _STRING.match(data, at)
        if key is None:
            raise NotThere("no key")
        colon = _skip(data, key.end())
        if data[colon : colon + 1] != b":":
            raise NotThere("no value behind a key")
        start = _skip(data, colon + 1)
        end = end_of(data, start)
        try:
            text = key[0].decode("utf-8", "surrogateescape")
            name = json.loads(text, strict=False) if "\\" in text else text[1:-1]
        except ValueError as error:
            raise NotThere("a key is no text") from error
        found.append(Member(name, at, (start, end)))
        at = _behind(data, end, b"}")
    return found


def items(data: bytes, at: int = 0) -> list[Span]:
    """The items of the array that begins at `at`."""
    at = _skip(data, at)
    if data[at : at + 1] != b"[":
        raise NotThere("no list")
    found: list[Span] = []
    at = _skip(data, at + 1)
    while data[at : at + 1] != b"]":
        end = end_of(data, at)
        found.append((at, end))
        at = _behind(data, end, b"]")
    return found


def _behind(data: bytes, end: int, close: bytes) -> int:
    """Where the next part of an object or a list begins, or its end stands."""
    at = _skip(data, end)
    if data[at : at + 1] == b",":
        return _skip(data, at + 1)
    if data[at : at + 1] != close:
        raise NotThere("an object or a list has no end")
    return at


def find(data: bytes, path: Path, at: int = 0) -> Span:
    """Where the value at a path lies; of a key that stands twice the last one, as readers take it. NotThere."""
    at = _skip(data, at)
    span = (at, end_of(data, at))
    for step in path:
        if isinstance(step, int):
            inside = items(data, span[0])
            if not -len(inside) <= step < len(inside):
                raise NotThere(f"no item {step}")
            span = inside[step]
        else:
            named = [one.value for one in members(data, span[0]) if one.name == step]
            if not named:
                raise NotThere(f"no field {step}")
            span = named[-1]
    return span


def part(data: bytes, path: Path) -> bytes:
    """The bytes at a path."""
    start, end = find(data, path)
    return data[start:end]


def replaced(data: bytes, changes: Sequence[tuple[Span, bytes]]) -> bytes:
    """The text with some parts replaced; they do not overlap."""
    out, at = [], 0
    for (start, end), new in sorted(changes):
        out += [data[at:start], new]
        at = end
    out.append(data[at:])
    return b"".join(out)


def put(data: bytes, path: Path, new: bytes) -> bytes:
    """The text with another value at a path that is there."""
    return replaced(data, [(find(data, path), new)])


def with_fields(data: bytes, fields: dict[str, Any], path: Path = ()) -> bytes:
    """The object at a path with these fields set: in place where they stand (each time), else as its last ones."""
    start = find(data, path)[0] if path else _skip(data, 0)
    there = members(data, start)
    changes: list[tuple[Span, bytes]] = []
    fresh: list[bytes] = []
    for name, value in fields.items():
        named = [one.value for one in there if one.name == name]
        changes += [(span, encoded(value)) for span in named]
        if not named:
            fresh.append(encoded(name) + b":" + encoded(value))
    if fresh:
        before = there[-1].value[1] if there else end_of(data, start) - 1
        changes.append(((before, before), (b"," if there else b"") + b",".join(fresh)))
    return replaced(data, changes)


def without_fields(data: bytes, names: Sequence[str], path: Path = ()) -> bytes:
    """The object at a path without these fields."""
    there = members(data, find(data, path)[0])
    keep = [one for one in there if one.name not in names]
    changes: list[tuple[Span, bytes]] = []
    for index, one in enumerate(there):
        if one.name not in names:
            continue
        follows = there[index + 1].start if index + 1 < len(there) else None
        if follows is not None:
            changes.append(((one.start, follows), b""))
        else:  # the last one: the comma before it goes too, with all that was removed right before it
            last = keep[-1].value[1] if keep else one.start
            changes = [change for change in changes if change[0][0] < last]
            changes.append(((last, one.value[1]), b""))
    return replaced(data, changes)


def without_items(data: bytes, path: Path, places: Sequence[int]) -> bytes:
    """The list at a path without some of its items."""
    start, end = find(data, path)
    inside = items(data, start)
    kept = [data[one[0] : one[1]] for at, one in enumerate(inside) if at not in set(places)]
    return replaced(data, [((start, end), b"[" + b",".join(kept) + b"]")])


def encoded(value: Any) -> bytes:
    """A value as JSON on one line; bytes are JSON already. What is no valid text is escaped."""
    if isinstance(value, bytes):
        return value
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def on_one_line(data: bytes) -> bytes:
    """A value without line breaks: outside of texts they mean nothing, and inside of them JSON has none."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in data or b"\r" in data else data


def renamed(data: bytes, old: str, new: str) -> bytes:
    """The text with another value wherever a whole text is `old`, but for keys."""
    if not old:
        return data
    wanted, other = encoded(old), encoded(new)
    found = (token.span() for token in _STRING.finditer(data) if token[0] == wanted)
    changes = [(span, other) for span in found if data[(end := _skip(data, span[1])) : end + 1] != b":"]
    return replaced(data, changes) if changes else data
