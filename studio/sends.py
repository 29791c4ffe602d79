"""Where the argument of a Send that waits can be edited: a path among what a fork may change."""

from __future__ import annotations

from studio import tagged
from studio.errors import StudioError
from studio.explain.ids import parse_path
from studio.model import PENDING_SENDS, State, Task


def argument_path(state: State, task: Task) -> str | None:
    """The path of the argument that a task was sent with; None where an edge started it, or its Send is not stored here."""
    place = parse_path(task.path)
    sends = state.editable.get(PENDING_SENDS)
    if place.kind != "push" or place.index is None or not isinstance(sends, list) or place.index >= len(sends):
        return None
    for step in ("1", "arg"):  # (node, argument) by place in msgpack, by name in JSON
        path = tagged.join_path([PENDING_SENDS, str(place.index), step])
        try:
            found = tagged.get(state.editable, path)
        except StudioError:
            continue
        return path if found is task.arg or found == task.arg else None
    return None
