"""A small inert model of reducers: what a channel's value becomes when writes are applied, without the user's code.

The kinds: `last` value, `append` to a list, `messages` by id, `union` of sets or maps, `sum` of numbers or texts. They explain
almost every channel; a reducer of the user's own may be none of them, and then nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from studio.codec.packed import common_start
from studio.model import Value
from studio.value import MISSING, Tagged, equal, sort_key

Kind = Literal["last", "append", "messages", "union", "sum"]
KINDS: tuple[Kind, ...] = ("last", "append", "messages", "union", "sum")

REMOVE_ALL = "__remove_all__"
_NO_ID: tuple[bool, None] = (False, None)


def overwrite(value: Value) -> tuple[bool, Value]:
    """(True, the value) for an `Overwrite` marker in any of its forms."""
    if type(value) is list:  # most writes of a conversation
        return _NO_ID
    if isinstance(value, Tagged):
        if value.name == "Overwrite" and value.kind == "fields" and "value" in value.fields:
            return True, value.fields["value"]
    elif isinstance(value, Mapping):
        if len(value) == 1 and "__overwrite__" in value:
            return True, value["__overwrite__"]
        if value.get("type") == "__overwrite__" and "value" in value:
            return True, value["value"]
    return _NO_ID


def fold(kind: Kind, before: Value, writes: Sequence[Value]) -> Value:
    """The value after `writes` (one per write, in order); MISSING where the kind does not fit them. `before` may be MISSING."""
    start = 0
    for at, write in enumerate(writes):
        is_reset, value = overwrite(write)
        if is_reset:
            before, start = value, at + 1
    rest = writes[start:]
    if not rest:
        return before
    if kind == "last":
        return rest[-1]
    if kind == "append":
        return append(before, rest)
    if kind == "messages":
        return merge_messages(before, rest)
    if kind == "union":
        return unite(before, rest)
    return add_up(before, rest)


def append(before: Value, writes: Sequence[Value]) -> Value:
    if before is not MISSING and not isinstance(before, list):
        return MISSING
    result = list(before) if isinstance(before, list) else []
    for write in writes:
        if isinstance(write, list):
            result.extend(write)
        else:
            result.append(write)
    return result


def add_up(before: Value, writes: Sequence[Value]) -> Value:
    total = before
    for write in writes:
        if total is MISSING:
            total = write
        elif (isinstance(total, str) and isinstance(write, str)) or (is_number(total) and is_number(write)):
            total = total + write
        else:
            return MISSING
    return total


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def unite(before: Value, writes: Sequence[Value]) -> Value:
    """Maps merge by key, sets by member."""
    total = before
    for write in writes:
        if isinstance(write, dict) and (total is MISSING or isinstance(total, dict)):
            total = {**total, **write} if isinstance(total, dict) else dict(write)
        elif is_set(write) and (total is MISSING or is_set(total)):
            if total is MISSING:
                total = write
            else:
                have = {sort_key(item) for item in total.items}
                total = total.replace(items=[*total.items, *(item for item in write.items if sort_key(item) not in have)])
        else:
            return MISSING
    return total


def is_set(value: Value) -> bool:
    return isinstance(value, Tagged) and value.is_set


def message_id(value: Value) -> str | None:
    """The id of a message or of any other item that carries one."""
    ident: Value = None
    if isinstance(value, Tagged):
        ident = value.fields.get("id")
    elif isinstance(value, Mapping):
        ident = value.get("id")
    return ident if isinstance(ident, str) else None


def is_message(value: Value) -> bool:
    if isinstance(value, Tagged):
        return "messages" in value.module and value.kind == "fields" and "content" in value.fields
    return isinstance(value, Mapping) and "content" in value and ("role" in value or "type" in value)


def is_removal(value: Value) -> bool:
    return isinstance(value, Tagged) and value.name == "RemoveMessage"


def merge_messages(before: Value, writes: Sequence[Value]) -> Value:
    """Messages by id: the same id replaces in place, `RemoveMessage` removes, its wildcard starts anew."""
    return merge_indexed(before, writes, None)[0]


def merge_indexed(before: Value, writes: Sequence[Value], place: dict[str, int] | None) -> tuple[Value, dict[str, int]]:
    """`merge_messages` that takes and gives where each id stands, so that a long list is not indexed again at every step.

    `place` must be that of `before`, and is handed on to all lists that begin with it: it names a place for every id that ever
    stood in one of them, and whether it stands there in this one is looked up. (MISSING, {}) where the writes are no messages.
    """
    if before is not MISSING and not isinstance(before, list):
        return MISSING, {}
    result: list[Value] = list(before) if isinstance(before, list) else []
    place = place if place is not None else index(result)
    gone: set[int] = set()
    for write in writes:
        for item in write if isinstance(write, list) else [write]:
            if not is_message(item):
                return MISSING, {}
            ident = message_id(item)
            at = place.get(ident) if ident is not None else None
            if at is not None and (at >= len(result) or message_id(result[at]) != ident):
                place = index(result)  # another list took the id elsewhere
                at = place.get(ident or "")
            if is_removal(item):
                if ident == REMOVE_ALL:
                    result, place, gone = [], {}, set()
                elif at is not None:
                    gone.add(at)
            elif at is not None:
                gone.discard(at)
                result[at] = item
            else:
                if ident is not None:
                    place[ident] = len(result)
                result.append(item)
    if gone:
        result = [item for at, item in enumerate(result) if at not in gone]
        place = index(result)
    return result, place


def index(items: Sequence[Value]) -> dict[str, int]:
    return {ident: at for at, item in enumerate(items) if (ident := message_id(item)) is not None}


def same(written: Value, stored: Value) -> bool:
    """Equal, or equal but for the id that a reducer gives to a message without one."""
    if equal(written, stored):
        return True
    if not (isinstance(written, Tagged) and isinstance(stored, Tagged) and written.type_name == stored.type_name):
        return False
    if not is_message(written) or not is_message(stored) or written.fields.get("id") is not None:
        return False
    return equal({**written.fields, "id": None}, {**stored.fields, "id": None})


def same_value(folded: Value, stored: Value) -> bool:
    """`same` for whole channels: lists item by item."""
    if folded is MISSING or stored is MISSING:
        return folded is stored
    if isinstance(folded, list) and isinstance(stored, list):
        return len(folded) == len(stored) and begins_with(stored, folded)
    return same(folded, stored)


def begins_with(items: Sequence[Value], start: Sequence[Value]) -> bool:
    """Whether the first items are the `same` as those of `start`."""
    return len(start) <= len(items) and common_start(start, items, same) == len(start)


def explaining(before: Value, writes: Sequence[Value], after: Value) -> Kind | None:
    """The first kind by which `writes` lead from `before` to `after`, whatever their order where the order is not known."""
    if not writes:
        return None
    for kind in KINDS:
        if same_value(fold(kind, before, writes), after):
            return kind
    if len(writes) > 1:
        if any(same_value(fold("last", before, [write]), after) for write in writes):
            return "last"
        if isinstance(after, list) and same_items(append(before, writes), before, after):
            return "append"
    return None


def same_items(folded: Value, before: Value, after: list[Any]) -> bool:
    """Appended in another order: the old items stay in front, the new ones are the written ones."""
    if not isinstance(folded, list) or len(folded) != len(after):
        return False
    start = len(before) if isinstance(before, list) else 0
    left = list(after[start:])
    if len(left) > 200 or not begins_with(after, folded[:start]):
        return False
    for item in folded[start:]:
        at = next((i for i, other in enumerate(left) if same(item, other)), None)
        if at is None:
            return False
        del left[at]
    return True


class Reading(Struct, frozen=True):
    """One way to understand some writes. `place`: where each id stands in a list of messages."""

    kind: Kind
    value: Value
    place: dict[str, int] | None = None


def plausible(before: Value, writes: Sequence[Value], place: dict[str, int] | None = None) -> list[Reading]:
    """What the writes may have made of `before`, the likeliest first. Different results = only a guess."""
    marks = [overwrite(write) for write in writes]
    body = [value if is_reset else write for write, (is_reset, value) in zip(writes, marks, strict=True)]
    is_list = before is MISSING or isinstance(before, list)
    items = [item for write in body for item in (write if isinstance(write, list) else [write])]
    if items and is_list and all(map(is_message, items)):
        order: tuple[Kind, ...] = ("messages", "append")
    elif is_list and (isinstance(before, list) or all(isinstance(write, list) for write in body)):
        order = ("append", "last")
    elif all(isinstance(write, dict) for write in body) or all(is_set(write) for write in body):
        order = ("union", "last")
    else:
        order = ("last", "sum")
    found: list[Reading] = []
    for kind in order:
        where = None
        if kind == "messages" and not any(is_reset for is_reset, _ in marks):
            value, where = merge_indexed(before, writes, place)
        else:
            value = fold(kind, before, writes)
        if value is not MISSING:
            found.append(Reading(kind, value, where))
        old = len(before) if isinstance(before, list) else 0
        if where is not None and isinstance(value, list) and len(value) == old + len(items):
            break  # nothing was replaced or removed: appending gives the same
    return found
