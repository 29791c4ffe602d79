"""Which types a run would import: read from the stored bytes, without importing anything.

What counts is what LangGraph's loader would do with a value: msgpack extension codes 0 to 5 and the JSON constructors name a
module and a class each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from studio import value as codec
from studio.codec.inert import MapValue
from studio.codec.objects import Tagged
from studio.model import RawCheckpoint, Value, WriteRow
from studio.requests import TypeUse

_BUILDING = (0, 1, 2, 3, 4, 5, "lc1", "lc2")
_BUILDING_METHODS = ("construct", "model_construct")
_WITH_FROMISOFORMAT = ("datetime.datetime", "datetime.date", "datetime.time")
UNREADABLE = "(a name that cannot be read)"


def _read_safe_list() -> frozenset[str]:
    names = []
    for line in Path(__file__).parents[1].joinpath("safe_types.txt").read_text(encoding="utf-8").splitlines():
        module, colon, listed = line.partition(":")
        if colon and not line.startswith("#"):
            names += [f"{module}.{name}" for name in listed.split()]
    return frozenset(names)


SAFE = _read_safe_list()
"""Dotted names that may be built without asking; `child_types.py` reads the same file."""
_BY_CLASS = {name.rpartition(".")[2]: name for name in SAFE if name.startswith("langchain_core.")}


class TypeCount(Struct):
    """Dotted type names with how often they occur and in which channels."""

    counts: dict[str, int] = field(default_factory=dict)
    channels: dict[str, set[str]] = field(default_factory=dict)

    def add_checkpoint(self, raw: RawCheckpoint) -> None:
        record = codec.decode(raw.tag, raw.blob)
        if not isinstance(record, dict):
            self.add(record, None)
            return
        for key, part in record.items():
            if key == "channel_values" and isinstance(part, dict):
                for channel, stored in part.items():
                    self.add(stored, channel)
            else:
                self.add(part, "__pregel_tasks" if key == "pending_sends" else None)

    def add_writes(self, rows: Iterable[WriteRow]) -> None:
        for row in rows:
            if row.value is not None:
                self.add(codec.decode(row.tag, row.value), row.channel)

    def add(self, stored: Value, channel: str | None) -> None:
        for name in names_in(stored):
            self.counts[name] = self.counts.get(name, 0) + 1
            where = self.channels.setdefault(name, set())
            if channel is not None:
                where.add(channel)

    def unsafe(self) -> tuple[str, ...]:
        """Names outside the safe list, sorted."""
        return tuple(sorted(name for name in self.counts if name not in SAFE))

    def uses(self, schema: Iterable[str], module: str = "") -> tuple[TypeUse, ...]:
        """As a plan shows it: what needs trust first, then by name. `module` is the graph's, if the graph was loaded."""
        allowed = SAFE | set(schema)

        def becomes(name: str) -> str | None:
            owner, _, short = name.rpartition(".")
            return f"{module}.{short}" if owner == "__main__" and module and name in allowed else None

        found = [
            TypeUse(name, count, name in allowed, tuple(sorted(self.channels[name])), becomes(name))
            for name, count in self.counts.items()
        ]
        return tuple(sorted(found, key=lambda use: (use.safe, use.name)))


def names_in(stored: Value) -> Iterator[str]:
    """The dotted name of each type in a stored value that loading would import, at any depth."""
    stack = [stored]
    while stack:
        item = stack.pop()
        if isinstance(item, Tagged):
            payload = item.payload
            if item.code in _BUILDING:
                yield from _names(item)
            if isinstance(item.code, str) and isinstance(payload, dict):
                stack.extend(payload.values())  # the envelope itself has just been named
            else:
                stack.append(payload)
        elif isinstance(item, dict):
            if item.get("type") == "constructor" and item.get("lc") in (1, 2) and item.get("id") is not None:
                yield UNREADABLE  # an envelope that our decoder does not take for one, but a loader may
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        elif isinstance(item, MapValue):
            for pair in item.pairs:
                stack.extend(pair)


def _names(item: Tagged) -> Iterator[str]:
    """The type's name, with the method where loading would call one that is not harmless (as `child_types.called_name`)."""
    name, payload = _name(item), item.payload
    methods: object = None
    if item.code == 3 and isinstance(payload, list) and len(payload) > 3:
        methods = payload[3]
    elif item.code == "lc2" and isinstance(payload, dict):
        methods = payload.get("method")
    for method in methods if isinstance(methods, list) else [methods]:
        if method is None or method in _BUILDING_METHODS or (method == "fromisoformat" and name in _WITH_FROMISOFORMAT):
            yield name
        else:
            yield f"{name}.{method}" if isinstance(method, str) else UNREADABLE


def _name(item: Tagged) -> str:
    payload = item.payload
    if isinstance(item.code, int):
        named = isinstance(payload, list) and len(payload) > 1 and isinstance(payload[0], str) and isinstance(payload[1], str)
        return f"{payload[0]}.{payload[1]}" if named else UNREADABLE
    ident = payload.get("id") if isinstance(payload, dict) else None
    if not isinstance(ident, list) or not ident:
        return UNREADABLE
    if item.code == "lc1" and ident[0] in ("langchain", "langchain_core") and ident[-1] in _BY_CLASS:
        return _BY_CLASS[ident[-1]]  # LangChain's own short names for its classes
    return ".".join(map(str, ident))
