"""Whose item stands where: parallel writers of one channel, told apart by the order in which their writes were applied.

Two tasks may write equal items, or the same key of a map. The stored `task_path` says in which order LangGraph applied them, so
each place of the result has one writer. Without it (files of old releases) nothing is claimed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from studio.explain.reducers import REMOVE_ALL, Kind, fold, message_id, overwrite, same_value
from studio.model import Value


class Ordered(Protocol):
    @property
    def values(self) -> Sequence[Value]: ...

    @property
    def has_path(self) -> bool:
        """Whether the file tells when its writes were applied."""


class Placed(Struct):
    """Position of the writer of each item of a list, of each message by its id, of each key of a map."""

    items: list[int | None] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    all: int | None = None
    """Who wrote the whole value last."""

    def of(self, key: str, item: Value) -> int | None:
        """By the first step of a change's path inside its channel, and the item that stands there."""
        if self.all is not None:
            return self.all
        if self.items:
            return self.items[int(key)] if key.isdigit() and int(key) < len(self.items) else None
        ident = key[3:] if key.startswith("id:") else message_id(item)
        return self.ids.get(ident) if ident is not None and self.ids else self.keys.get(key)


def placed(kind: Kind | None, before: Value, writers: Sequence[Ordered], after: Value) -> Placed | None:
    """None where there is one writer or no order, and where a reducer by `kind` does not lead to `after` in that order."""
    if len(writers) < 2 or kind in (None, "sum") or not all(one.has_path for one in writers):
        return None
    if not same_value(fold(kind, before, [value for one in writers for value in one.values]), after):
        return None
    if kind == "last":
        return Placed(all=next((at for at in range(len(writers) - 1, -1, -1) if writers[at].values), None))
    found = Placed([None] * len(before) if kind == "append" and isinstance(before, list) else [])
    for position, writer in enumerate(writers):
        for write in writer.values:
            is_reset, body = overwrite(write)
            if is_reset:
                found = Placed()
            _place(found, kind, position, body if is_reset else write)
    return found


def _place(found: Placed, kind: Kind, position: int, write: Value) -> None:
    if kind == "union":
        if isinstance(write, Mapping):
            found.keys.update(dict.fromkeys(write, position))
        return
    items = write if isinstance(write, list) else [write]
    if kind == "append":
        found.items += [position] * len(items)
        return
    for item in items:  # replacing and removing moves the places: messages are told by their ids
        ident = message_id(item)
        if ident == REMOVE_ALL:
            found.ids.clear()
        elif ident is not None:
            found.ids[ident] = position
