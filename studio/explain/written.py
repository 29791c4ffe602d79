"""Which task wrote which item of a channel: an index, since a step of thousands of tasks has thousands of changes to explain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Protocol

from studio.explain.channels import members
from studio.explain.reducers import REMOVE_ALL, is_message, is_removal, message_id, overwrite, same
from studio.model import Value
from studio.value import MISSING, Tagged

_DEPTH, _FIRST = 12, 1000
_LARGE = 1000
"""Keys from which on a map is asked itself instead of being indexed."""


class HasValues(Protocol):
    @property
    def values(self) -> Sequence[Value]: ...


class WrittenItems:
    """The items, messages and keys that writers wrote, by what they can be found by."""

    def __init__(self, writers: Iterable[HasValues]) -> None:
        self._found: dict[Hashable, list[tuple[int, Value]]] = defaultdict(list)
        self._large: list[tuple[int, Mapping[str, Value]]] = []
        for position, writer in enumerate(writers):
            for value in writer.values:
                self._note(position, value)

    def _note(self, position: int, value: Value) -> None:
        is_reset, body = overwrite(value)
        body = body if is_reset else value
        items = members(body)
        if items is None and not is_message(body):
            names = body if isinstance(body, Mapping) else body.fields if isinstance(body, Tagged) else None
            if names or isinstance(body, Mapping):
                if names and len(names) > _LARGE:
                    self._large.append((position, names))
                    return
                for name in names or ():
                    self._found["key", name].append((position, MISSING))
                return
        for item in items if items is not None else [body]:
            ident = message_id(item)
            if is_removal(item):
                self._found["removal", ident].append((position, MISSING))
                continue
            if ident is not None:
                self._found["id", ident].append((position, MISSING))
            alike = self._found["item", likeness(item)]
            if not (alike and alike[-1][0] == position and same(alike[-1][1], item)):
                alike.append((position, item))

    def holding(self, key: str, item: Value, removed: bool) -> set[int]:
        """Positions of the writers that put `item` (at `key` of its channel) there, or took it away."""
        ident = key[3:] if key.startswith("id:") else message_id(item)
        places: list[Hashable] = [("key", key)]
        if ident is not None:
            places.append(("id", ident))
        if removed:
            places += [("removal", ident), ("removal", REMOVE_ALL)]
        found = {position for place in places for position, _ in self._found.get(place, ())}
        found.update(position for position, names in self._large if key in names)
        if not removed and item is not MISSING:
            found.update(position for position, one in self._found.get(("item", likeness(item)), ()) if same(one, item))
        return found


def likeness(value: Value, depth: int = _DEPTH) -> Hashable:
    """Equal for values that are the same, whatever the order of their keys; of most others it differs. Looks no further than the
    first items and levels."""
    if depth == 0:
        return None
    if isinstance(value, Mapping):
        return frozenset((name, likeness(one, depth - 1)) for name, one in value.items())
    if isinstance(value, list):
        return (len(value), *(likeness(one, depth - 1) for one in value[:_FIRST]))
    if isinstance(value, Tagged):
        if is_message(value):  # the reducer gives an id to a message that was written without one
            return (value.type_name, likeness({name: one for name, one in value.fields.items() if name != "id"}, depth - 1))
        inside = value.content() if value.kind in ("fields", "args", "items") and not value.is_set else None
        return (value.type_name, likeness(inside, depth - 1))
    if isinstance(value, float) and value != value:
        return "nan"
    if isinstance(value, str | bytes | bool | int | float):
        return (type(value).__name__, value)
    return type(value).__name__
