"""What tells two values apart that look alike: another id, another hidden field, another name of the type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from studio.codec.paths import join_path, split_path
from studio.diff import diff
from studio.model import Change, Op, Value
from studio.render import preview
from studio.render.gate import line
from studio.value import Tagged

MOST_FIELDS = 3
LOOKS = 400
"""Characters of a summary up to which two values are taken to look alike."""
Alike = Mapping[tuple[Op, str], str]
"""(op, path) of a change -> a sentence."""


def told_apart(changes: Iterable[Change], *, show_secrets: bool = False) -> Alike:
    """What differs where the two sides of a change, or an item that was removed and one that was added, look the same."""
    found: dict[tuple[Op, str], str] = {}
    gone: dict[tuple[str, str], list[Change]] = {}
    come: list[Change] = []
    for change in changes:
        if change.op == "replace":
            if (
                isinstance(change.before, Tagged)
                and isinstance(change.after, Tagged)
                and _look(change.before) == _look(change.after)
            ):
                found["replace", change.path] = differences(change.before, change.after, show_secrets=show_secrets)
        elif change.op == "remove":
            if isinstance(change.before, (Tagged, dict)):
                gone.setdefault((_list_of(change), _look(change.before)), []).append(change)
        elif change.op == "add" and isinstance(change.after, (Tagged, dict)):
            come.append(change)
    for change in come if gone else ():
        twins = gone.get((_list_of(change), _look(change.after)))
        if twins:
            was = twins.pop()  # a diff removes the last items first
            words = differences(was.before, change.after, show_secrets=show_secrets)
            found["add", change.path] = f"{words}; it stands for the removed {line(was.path, 120)}"
    return found


def differences(before: Value, after: Value, *, show_secrets: bool = False) -> str:
    """`same text, another id: a → b`; `same fields, another type: __main__.Order → shop.Order`."""
    left, right = _fields(before), _fields(after)
    same = "same text" if preview.message(after) is not None else "same look"
    parts: list[str] = []
    if isinstance(before, Tagged) and isinstance(after, Tagged):
        if before.type_name != after.type_name:
            parts.append(f"another type: {line(before.type_name, 120)} → {line(after.type_name, 120)}")
            same = "same fields" if left is not None and not diff(left, right or {}) else same
        elif before.code != after.code or before.method != after.method:
            parts.append("stored in another way")
    inner = diff(left, right) if left is not None and right is not None else []
    names = list(dict.fromkeys(split_path(change.path)[0] for change in inner))
    for name in names[:MOST_FIELDS]:
        was, now = (
            preview.summary(side.get(name), 40, key=name, show_secrets=show_secrets) for side in (left or {}, right or {})
        )
        parts.append(f"another {line(name, 60)}" + (f": {was} → {now}" if was != now else ""))
    if len(names) > MOST_FIELDS:
        parts.append(f"{len(names) - MOST_FIELDS} more fields differ")
    return f"{same}, {', '.join(parts)}" if parts else f"{same}, stored in another way"


def _fields(value: Value) -> dict[str, Value] | None:
    if isinstance(value, Tagged):
        return {str(key): inner for key, inner in value.fields.items()} if value.kind == "fields" else None
    return {str(key): inner for key, inner in value.items()} if isinstance(value, dict) else None


def _look(value: Value) -> str:
    """What a reader sees of a value: of a message who says what, of a type its last name."""
    said = preview.message(value)
    if said is not None:
        calls = " ".join(preview.call_text(call, LOOKS) for call in said.tool_calls)
        return f"{said.role}: {said.text} {calls}"
    return preview.summary(value, LOOKS, show_secrets=True)


def _list_of(change: Change) -> str:
    return join_path(split_path(change.path)[:-1])
