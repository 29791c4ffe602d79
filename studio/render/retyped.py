"""What an edit does to the types of values, in words: the running graph would meet another type than was stored.

Nothing here refuses an edit. The state is compared before and after it, so a change deep inside a value that was set as a
whole is told at its own place.
"""

from __future__ import annotations

import contextlib
import ipaddress
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec.structs import replace

from studio.codec.paths import get, join_path, list_of, split_path
from studio.diff import changes
from studio.errors import StudioError
from studio.model import Change, Value
from studio.render import masking, preview
from studio.render.gate import line
from studio.value import MapValue, Tagged, equal

MOST = 12
_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "true/false"),
    (int, "integer"),
    (float, "float"),
    (str, "text"),
    (bytes, "bytes"),
    (list, "list"),
    ((dict, MapValue), "map"),
    (type(None), "null"),
)
NO_ENUM = ("builtins", "collections", "decimal", "uuid", "ipaddress", "zoneinfo", "pydantic", "pathlib", "numpy")
"""Modules whose classes are stored as one argument and are no enums."""
_DATACLASS, _ENUM = 2, 0
_NO_DATE = (ValueError, TypeError, InvalidOperation, OverflowError, AttributeError)


def kind_of(stored: Value) -> str:
    """The type of a value in a person's words, to compare what was there with what is set."""
    if isinstance(stored, Tagged):
        return stored.type_name or f"extension {stored.code}"
    for kind, name in _KINDS:
        if isinstance(stored, kind):
            return name
    return type(stored).__name__


def is_enum(value: Value) -> bool:
    """Whether a value is stored as LangGraph stores a member of an enum. The class itself is not looked at."""
    return (
        isinstance(value, Tagged) and value.code == _ENUM and value.kind == "args" and value.module.split(".")[0] not in NO_ENUM
    )


def type_changes(before: Mapping[str, Value], after: Mapping[str, Value], paths: Iterable[str] = ()) -> list[str]:
    """One sentence for each place whose type an edit changes, or whose new value its type may not take.

    `paths` were set by themselves: an item that lost its id there is still the same place.
    """
    found: dict[str, str] = {}
    members: dict[str, list[Value]] | None = None
    for change in _places(before, after, paths):
        if change.path in found:
            continue
        if members is None and is_enum(change.after):
            members = _members(before)
        if words := _of_change(change, before, after, members or {}):
            found[change.path] = words
        if len(found) > MOST:
            return [*list(found.values())[:MOST], "Further types change: look at the whole diff before you fork."]
    return list(found.values())


def _places(before: Mapping[str, Value], after: Mapping[str, Value], paths: Iterable[str]) -> Iterator[Change]:
    given = dict.fromkeys(paths)
    for path in given:
        with contextlib.suppress(StudioError):  # it is new, or was removed along with what lies above it
            if not _stays(path, before, after, given):
                continue
            old, new = get(before, path), get(after, path)
            if kind_of(old) != kind_of(new):
                yield Change(path=path, op="replace", before=old, after=new)
    same = {name: before[name] for name in after if name in before and before[name] is not after[name]}
    for change in changes(same, {name: after[name] for name in same}):
        yield change
        old, new = change.before, change.after
        if change.op == "replace" and isinstance(old, Tagged) and isinstance(new, Tagged) and _is_send(old) and _is_send(new):
            inside = changes(
                {"1": old.args[1]}, {"1": new.args[1]}
            )  # a Send is one value; what it carries is the state of a task
            yield from (replace(one, path=change.path + one.path) for one in inside)


def _is_send(value: Tagged) -> bool:
    return value.kind == "args" and len(value.args) == 2 and value.type_name.endswith(".Send")


def _stays(path: str, before: Mapping[str, Value], after: Mapping[str, Value], given: Container[str]) -> bool:
    """Whether a path names the same place before and after: no list on its way was set as a whole, or has another length."""
    steps = split_path(path)
    for depth in range(1, len(steps)):
        above = join_path(steps[:depth])
        old, new = list_of(get(before, above)), list_of(get(after, above))
        if above in given or len(old or ()) != len(new or ()):
            return False
    return True


def _of_change(
    change: Change, before: Mapping[str, Value], after: Mapping[str, Value], members: Mapping[str, list[Value]]
) -> str:
    path, old, new = line(change.path, 120), change.before, change.after
    if change.op in ("add", "remove"):
        return _of_field(change, before, after)
    if change.op != "replace" or old is None:
        return ""
    if kind_of(old) != kind_of(new):
        numbers = _is_number(old) and _is_number(new)
        was, now = (_number(change.path, one) if numbers else line(kind_of(one), 120) for one in (old, new))
        said = f"{path} was {was} and becomes {now}."
        return f"{said} {lost}" if (lost := _lost(old, new)) else said
    if is_enum(new) and not any(equal(new, known) for known in members.get(new.type_name, ())):
        known = ", ".join(dict.fromkeys(preview.summary(one, 30) for one in members.get(new.type_name, ())))
        shown = preview.summary(new, 40, key=masking.name_in(change.path))
        then = f"an unknown member is loaded as plain {kind_of(new.args[0])}"
        return f"{path}: {shown} is no {_short(new)} seen in this state ({known}): {then}."
    if isinstance(new, Tagged):
        return _unreadable(path, old, new)
    return ""


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(path: str, value: Value) -> str:
    """`float 499.0`: two numbers look alike by their kind alone."""
    return f"{kind_of(value)} {preview.summary(value, 30, key=masking.name_in(path))}"


def _lost(old: Value, new: Value) -> str:
    """What it means where that is not plain to see."""
    if isinstance(old, Tagged) and not isinstance(new, Tagged) and new is not None:
        if is_enum(old) and equal(old.args[0], new):
            return "The enum loses its type: keep the object around it, or edit only its value."
        return f"It is no longer a {_short(old)} for your graph."
    if isinstance(old, float) and type(new) is int:
        return f"Write {float(new)!r} to keep it a float." if abs(new) < 1e15 else ""
    if type(old) is int and isinstance(new, float) and new.is_integer() and abs(new) < 1e15:
        return f"Write {int(new)} to keep it an integer."
    return ""


def _of_field(change: Change, before: Mapping[str, Value], after: Mapping[str, Value]) -> str:
    """A field that came to, or went from, an object that stays."""
    *steps, name = split_path(change.path)
    if not steps:
        return ""
    above = join_path(steps)
    try:
        old, new = get(before, above), get(after, above)
    except StudioError:
        return ""
    if not (isinstance(old, Tagged) and isinstance(new, Tagged) and old.kind == new.kind == "fields"):
        return ""
    path, owner = line(change.path, 120), _short(old)
    plain = old.code == _DATACLASS
    if change.op == "add":
        then = "it would be loaded as a plain map" if plain else "the field may be dropped or refused"
        return f"{path} is new: the stored {owner} has no field {line(name, 60)!r}. Unless its class has one, {then}."
    then = "it is loaded as a plain map" if plain else "it is built unchecked, without the field"
    return f"{path} is removed from a {owner}. Unless its class has a default for it, {then}."


def _short(value: Tagged) -> str:
    return line(value.name or value.type_name, 60)


def _members(values: Mapping[str, Value]) -> dict[str, list[Value]]:
    """Type name -> the members of that enum in a state."""
    from studio.codec.paths import children

    found: dict[str, list[Value]] = {}
    stack: list[Value] = list(values.values())
    looks = 50_000
    while stack and looks:
        looks -= 1
        value = stack.pop()
        if is_enum(value):
            found.setdefault(value.type_name, []).append(value)
        elif not isinstance(value, str):
            stack.extend(item for _, item in children(value) if isinstance(item, (Tagged, list, dict, MapValue)))
    return found


_READERS: dict[str, Callable[[Any], object]] = {
    "datetime.datetime": datetime.fromisoformat,
    "decimal.Decimal": Decimal,
    "uuid.UUID": lambda text: uuid.UUID(text),
    "ipaddress.IPv4Address": ipaddress.IPv4Address,
    "ipaddress.IPv6Address": ipaddress.IPv6Address,
}


def _unreadable(path: str, old: Value, new: Tagged) -> str:
    """A value that its own type of the standard library would refuse, or a time that lost its zone."""
    name, args = new.type_name, new.args
    reader = _READERS.get(name)
    try:
        if reader is not None and len(args) == 1:
            made = reader(args[0])
            if isinstance(made, datetime) and isinstance(old, Tagged) and old.args:
                with contextlib.suppress(*_NO_DATE):
                    was = datetime.fromisoformat(old.args[0])
                    if (was.tzinfo is None) != (made.tzinfo is None):
                        how = "gets" if was.tzinfo is None else "loses"
                        return f"{path} {how} a time zone: the two cannot be compared in Python."
        elif name == "datetime.date":
            date(*args)
        return ""
    except _NO_DATE:
        given = args[0] if len(args) == 1 else args
        shown = preview.summary(given, 60, key=masking.name_in(path))
        return f"{path}: {shown} is no {_short(new)} that Python can read: it is loaded as {kind_of(given)}."
