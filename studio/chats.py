"""The messages of two states as parallel chats: which of them belong beside each other, and which only one side has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal

from msgspec import Struct

from studio.model import Value
from studio.render import preview
from studio.value import equal, sort_key

MOST_MESSAGES = 1_000
"""Messages of each side that are aligned: the first ones behind those that both chats begin with."""

How = Literal["same", "changed", "left", "right"]


class MessagePair(Struct, frozen=True):
    """A message of each end that belong together, or one that only one end has."""

    left: Value
    right: Value
    how: How
    left_at: int | None
    """Its place in the channel of the left end; None where that has none."""
    right_at: int | None


class Chats(Struct, frozen=True):
    """`channel`: the one that holds most messages of both ends, None where none does. `cut`: messages that were left out."""

    channel: str | None = None
    pairs: tuple[MessagePair, ...] = ()
    cut: int = 0


def chats(left: Mapping[str, Value], right: Mapping[str, Value]) -> Chats:
    """The conversations of two states, side by side."""
    channel = _channel(left, right)
    if channel is None:
        return Chats()
    sides = [held if isinstance(held := values.get(channel), list) else [] for values in (left, right)]
    start = 0
    while start < min(map(len, sides)) and alike(sides[0][start], sides[1][start]):
        start += 1
    same = [MessagePair(sides[0][at], sides[1][at], "same", at, at) for at in range(start)]
    rest = [side[start : start + MOST_MESSAGES] for side in sides]
    cut = sum(len(side) - start for side in sides) - sum(map(len, rest))
    return Chats(channel, (*same, *_paired(rest[0], rest[1], start)), cut)


def alike(one: Value, other: Value) -> bool:
    """Equal, or messages that say the same under other ids: each run gives new ones."""
    if equal(one, other):
        return True
    return preview.role_of(one) is not None and preview.role_of(other) is not None and words(one) == words(other)


def words(item: Value) -> Hashable:
    """Role, text and tool calls of a message."""
    shown = preview.message(item)
    if shown is None:
        return ("", sort_key(item))
    return shown.role, shown.text, shown.name, tuple((call.name, sort_key(call.args)) for call in shown.tool_calls)


def _channel(*sides: Mapping[str, Value]) -> str | None:
    counts: Counter[str] = Counter()
    for values in sides:
        for name in preview.message_channels(values):
            counts[name] += len(values[name])
    return min(counts, key=lambda name: (-counts[name], name != "messages", name), default=None)


def _paired(left: Sequence[Value], right: Sequence[Value], start: int) -> Iterator[MessagePair]:
    """By id where both ends have it, else by role and words; what stands between two that belong together, by who speaks."""
    ids = {_id(item) for item in left} & {_id(item) for item in right} - {None}

    def key(item: Value) -> Hashable:
        ident = _id(item)
        return ("id", ident) if ident in ids else words(item)

    def pair(one: int | None, other: int | None, how: How) -> MessagePair:
        return MessagePair(
            left[one] if one is not None else None,
            right[other] if other is not None else None,
            how,
            start + one if one is not None else None,
            start + other if other is not None else None,
        )

    for op, at, stop, other_at, other_stop in SequenceMatcher(
        None, [key(item) for item in left], [key(item) for item in right], autojunk=False
    ).get_opcodes():
        ones, others = range(at, stop), range(other_at, other_stop)
        if op == "equal":
            for one, other in zip(ones, others, strict=True):
                yield pair(one, other, "same" if alike(left[one], right[other]) else "changed")
            continue
        theirs = list(others)
        for one in ones:
            speaker = _speaker(left[one])
            beside = next((place for place, other in enumerate(theirs) if _speaker(right[other]) == speaker), None)
            if beside is None or speaker is None:
                yield pair(one, None, "left")
                continue
            yield from (pair(None, other, "right") for other in theirs[:beside])
            yield pair(one, theirs[beside], "changed")
            del theirs[: beside + 1]
        yield from (pair(None, other, "right") for other in theirs)


def _speaker(item: Value) -> Hashable:
    """Who says it, a tool by its name."""
    found = preview.role_of(item)
    if found is None:
        return None
    role, fields = found
    return role, fields.get("name") if role == "tool" and isinstance(fields.get("name"), str) else None


def _id(item: Value) -> str | None:
    found = preview.role_of(item)
    ident = found[1].get("id") if found is not None else None
    return ident if isinstance(ident, str) else None
