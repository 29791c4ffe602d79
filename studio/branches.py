"""Two branches side by side: from where they part, step by step, to how their ends differ.

Steps are aligned by the tasks that ran in them, not by their numbers, so that one superstep more on one side moves nothing else.
Of two steps that belong together, what each wrote says whether they did the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from studio.errors import RefError
from studio.model import Address, Change, Comparison, State, Value
from studio.render import preview
from studio.tracing import way
from studio.value import equal

if TYPE_CHECKING:
    from studio.session import Session

MOST_STEPS = 1_000
"""Supersteps of each side that are aligned: the first ones since the branches part."""
MOST_READ = 200
"""Pairs of supersteps whose writes are compared."""
MOST_MESSAGES = 2_000
"""Messages of each end that are aligned: the last ones."""

How = Literal["same", "changed", "left", "right"]


class StepPair(Struct, frozen=True):
    """A superstep of each side that belong together, or one without a counterpart. `same`: both wrote the same; None where that
    was not looked at, or where one side is missing. `path`: the first value that differs."""

    left: Address | None
    right: Address | None
    same: bool | None = None
    path: str | None = None
    before: Value = None
    after: Value = None


class MessagePair(Struct, frozen=True):
    """A message of each end that belong together, or one that only one end has."""

    left: Value
    right: Value
    how: How


class Branches(Struct, frozen=True):
    """`ancestor`: the last checkpoint that both ways share, None where they share none. `first`: place of the first pair that is
    not the same, None where all are. `cut`: supersteps and messages that were left out, on both sides together."""

    left: State
    right: State
    ancestor: Address | None
    steps: tuple[StepPair, ...]
    first: int | None
    ends: Comparison
    messages: tuple[MessagePair, ...]
    cut: int


def side_by_side(session: Session, left: Address, right: Address) -> Branches:
    """The branches that lead to two checkpoints of a file, of one thread or of two. RefError: one is not there."""
    ways = [way(session, left), way(session, right)]
    shared = set(ways[0]) & set(ways[1])
    ancestor = next((address for address in reversed(ways[0]) if address in shared), None)
    apart = [[address for address in one if address not in shared] for one in ways]
    cut = sum(max(0, len(one) - MOST_STEPS) for one in apart)
    steps = tuple(_steps(session, apart[0][:MOST_STEPS], apart[1][:MOST_STEPS]))
    first = next((place for place, pair in enumerate(steps) if not pair.same), None)
    ends = [session.state(left), session.state(right)]
    chats = [_messages(state) for state in ends]
    cut += sum(max(0, len(one) - MOST_MESSAGES) for one in chats)
    messages = tuple(_paired_messages(chats[0][-MOST_MESSAGES:], chats[1][-MOST_MESSAGES:]))
    return Branches(ends[0], ends[1], ancestor, steps, first, session.compare(right, left), messages, cut)


def _steps(session: Session, left: Sequence[Address], right: Sequence[Address]) -> Iterator[StepPair]:
    read = 0
    for one, other in _aligned([_tasks(session, at) for at in left], [_tasks(session, at) for at in right]):
        here, there = None if one is None else left[one], None if other is None else right[other]
        if here is None or there is None or read >= MOST_READ:
            yield StepPair(here, there)
            continue
        read += 1
        if here in (session.origin(there), session.forest.made_from(there)) or there in (
            session.origin(here),
            session.forest.made_from(here),
        ):  # the fork repeats the step, but for what was set
            yield _edited(here, there, session.compare(there, here).changes)
        else:
            yield _step(here, there, _wrote(session, here), _wrote(session, there))


def _edited(here: Address, there: Address, changes: Sequence[Change]) -> StepPair:
    if not changes:
        return StepPair(here, there, True)
    return StepPair(here, there, False, changes[0].path, changes[0].before, changes[0].after)


def _step(here: Address, there: Address, mine: dict[str, Change], other: dict[str, Change]) -> StepPair:
    for path in dict.fromkeys([*mine, *other]):
        one, two = mine.get(path), other.get(path)
        before, after = one.after if one is not None else None, two.after if two is not None else None
        if one is None or two is None or one.op != two.op or not alike(before, after):
            return StepPair(here, there, False, path, before, after)
    return StepPair(here, there, True)


def _tasks(session: Session, address: Address) -> Hashable:
    """What names a superstep: the tasks that ran in it, else what made it."""
    row = session.row(address)
    names = tuple(sorted(str(run.name) for run in row.nodes))
    return names or (row.checkpoint.source if row.checkpoint.source in ("input", "update") else "",)


def _wrote(session: Session, address: Address) -> dict[str, Change]:
    base = session.base_of(address) or session.forest.made_from(address)
    try:
        return {change.path: change for change in session.compare(address, base).changes}
    except RefError:  # what a fork was made from is no longer there
        return {}


def _aligned(left: Sequence[Hashable], right: Sequence[Hashable]) -> Iterator[tuple[int | None, int | None]]:
    """Places of both sequences in order, equal items together; items that stand in the same place belong together, too, if one
    of the two has no name of its own: an edit beside the step that it replaces."""
    for op, start, stop, other_start, other_stop in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if op == "equal":
            yield from zip(range(start, stop), range(other_start, other_stop), strict=True)
            continue
        ones, others = list(range(start, stop)), list(range(other_start, other_stop))
        while ones and others and ("",) in (left[ones[0]], right[others[0]]):
            yield ones.pop(0), others.pop(0)
        yield from ((one, None) for one in ones)
        yield from ((None, other) for other in others)


def _messages(state: State) -> list[Value]:
    """The conversation of a state."""
    channels = preview.message_channels(state.values)
    return state.values[channels[0]] if channels else []


def _paired_messages(left: Sequence[Value], right: Sequence[Value]) -> Iterator[MessagePair]:
    """By id where both ends have it, else by role and words."""
    ids = {_id(item) for item in left} & {_id(item) for item in right} - {None}

    def key(item: Value) -> Hashable:
        ident = _id(item)
        return ("id", ident) if ident in ids else _words(item)

    for op, start, stop, other_start, other_stop in SequenceMatcher(
        None, [key(item) for item in left], [key(item) for item in right], autojunk=False
    ).get_opcodes():
        if op == "equal":
            for one, other in zip(left[start:stop], right[other_start:other_stop], strict=True):
                yield MessagePair(one, other, "same" if alike(one, other) else "changed")
            continue
        yield from (MessagePair(one, None, "left") for one in left[start:stop])
        yield from (MessagePair(None, other, "right") for other in right[other_start:other_stop])


def alike(one: Value, other: Value) -> bool:
    """Equal, or messages that say the same under other ids: each run gives new ones."""
    if equal(one, other):
        return True
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(alike(mine, its) for mine, its in zip(one, other, strict=True))
    return preview.role_of(one) is not None and preview.role_of(other) is not None and _words(one) == _words(other)


def _id(item: Value) -> str | None:
    found = preview.role_of(item)
    ident = found[1].get("id") if found is not None else None
    return ident if isinstance(ident, str) else None


def _words(item: Value) -> Hashable:
    """Role, text and tool calls of a message."""
    shown = preview.message(item)
    if shown is None:
        return ("", repr(item)[:200])
    return shown.role, shown.text, tuple((call.name, repr(call.args)) for call in shown.tool_calls)
