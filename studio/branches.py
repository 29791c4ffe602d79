"""Two branches side by side: from where they part, step by step, to how their ends differ.

Steps are aligned by the tasks that ran in them, not by their numbers, so that one superstep more on one side moves nothing else.
Of two steps that belong together, what each wrote says whether they did the same: in whatever order, at whatever place of a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from studio.chats import Chats, chats
from studio.codec.paths import child, list_of, split_path
from studio.errors import RefError
from studio.model import Address, Change, Comparison, State, Value
from studio.render import preview
from studio.tracing import way
from studio.value import sort_key

if TYPE_CHECKING:
    from studio.session import Session

MOST_STEPS = 1_000
"""Supersteps of each side that are aligned: the first ones since the branches part."""
MOST_READ = 200
"""Pairs of supersteps whose writes are compared."""


class StepPair(Struct, frozen=True):
    """A superstep of each side that belong together, or one without a counterpart. `same`: both wrote the same; None where that
    was not looked at, or where one side is missing. `path`: the first value that differs."""

    left: Address | None
    right: Address | None
    same: bool | None = None
    path: str | None = None
    before: Value = None
    after: Value = None


class Wrote(Struct, frozen=True):
    """A value that a superstep left behind. `gone`: it took the value away, or never had it. `shared`: the one beside it did so,
    too."""

    path: str
    value: Value
    gone: bool
    shared: bool


class Branches(Struct, frozen=True):
    """`ancestor`: the last checkpoint that both ways share, None where they share none. `first`: place of the first pair that is
    known to differ, None where there is none. `cut`: supersteps that were left out, on both sides together."""

    left: State
    right: State
    ancestor: Address | None
    steps: tuple[StepPair, ...]
    first: int | None
    ends: Comparison
    chats: Chats
    cut: int


def side_by_side(session: Session, left: Address, right: Address) -> Branches:
    """The branches that lead to two checkpoints of a file, of one thread or of two. RefError: one is not there."""
    ancestor, apart = _parted(session, left, right)
    cut = sum(max(0, len(one) - MOST_STEPS) for one in apart)
    steps = tuple(_steps(session, apart[0][:MOST_STEPS], apart[1][:MOST_STEPS]))
    first = next(
        (place for place, pair in enumerate(steps) if pair.same is False or pair.left is None or pair.right is None), None
    )
    ends = [session.state(left), session.state(right)]
    closed = ends[0].closed or ends[1].closed  # a conversation that cannot be read is not an empty one
    talk = chats({}, {}) if closed else chats(ends[0].values, ends[1].values)
    return Branches(ends[0], ends[1], ancestor, steps, first, session.compare(right, left), talk, cut)


def wrote(session: Session, pair: StepPair) -> tuple[tuple[Wrote, ...], tuple[Wrote, ...]]:
    """What the supersteps of a pair left behind: what only one of them did first, and values before messages."""
    if pair.left is not None and pair.right is not None and _repeated(session, pair.left, pair.right):
        changes = sorted(session.compare(pair.right, pair.left).changes, key=_is_talk)
        return (
            tuple(Wrote(one.path, None if one.op == "add" else one.before, one.op == "add", False) for one in changes),
            tuple(Wrote(one.path, None if one.op == "remove" else one.after, one.op == "remove", False) for one in changes),
        )
    left, right = ((_did(session, address) or []) if address is not None else [] for address in (pair.left, pair.right))
    return _marked(left, right), _marked(right, left)


# ------------------------------------------------------------------ where they part


def _parted(session: Session, left: Address, right: Address) -> tuple[Address | None, tuple[list[Address], list[Address]]]:
    """(the last checkpoint that both branches grew from, what each has behind it)."""
    here, there = _way(session, left), _way(session, right)
    count = 0
    while count < min(len(here), len(there)) and here[count] == there[count]:
        count += 1
    return here[count - 1] if count else None, (here[count:], there[count:])


def _way(session: Session, address: Address) -> list[Address]:
    """The branch of a checkpoint; a fork stands in the place of what it was made from, in whichever thread that is."""
    found = way(session, address)
    return [at for at, following in pairwise(found) if _made_from(session, following) != at] + found[-1:]


def _made_from(session: Session, address: Address) -> Address | None:
    return session.forest.made_from(address) or session.origin(address)


def _stands_for(session: Session, address: Address) -> Address:
    """What a fork was made from in the end; any other checkpoint stands for itself."""
    seen = {address}
    while (origin := _made_from(session, address)) is not None and origin not in seen:
        try:
            session.row(origin)
        except RefError:  # what it was made from is no longer there
            break
        address = origin
        seen.add(origin)
    return address


def _repeated(session: Session, here: Address, there: Address) -> bool:
    """Whether both are the same superstep, but for what was set by hand."""
    return here == there or _stands_for(session, here) == _stands_for(session, there)


# ------------------------------------------------------------------ step by step


def _steps(session: Session, left: Sequence[Address], right: Sequence[Address]) -> Iterator[StepPair]:
    read = 0
    for one, other in _aligned([_tasks(session, at) for at in left], [_tasks(session, at) for at in right]):
        here, there = None if one is None else left[one], None if other is None else right[other]
        if here is None or there is None or read >= MOST_READ:
            yield StepPair(here, there)
            continue
        read += 1
        if _repeated(session, here, there):
            yield _edited(here, there, session.compare(there, here))
        else:
            mine, theirs = _did(session, here), _did(session, there)
            yield StepPair(here, there) if mine is None or theirs is None else _step(here, there, mine, theirs)


def _edited(here: Address, there: Address, found: Comparison) -> StepPair:
    change = min(found.changes, key=_is_talk, default=None)
    if change is None:
        return StepPair(here, there, None if found.closed else True)
    return StepPair(here, there, False, change.path, change.before, change.after)


class _Deed(Struct, frozen=True):
    """A change of a superstep: `kind` and `place` say what was done where, `what` what was left there."""

    change: Change
    place: tuple[str, ...]
    what: bytes


def _step(here: Address, there: Address, mine: Sequence[_Deed], other: Sequence[_Deed]) -> StepPair:
    left, right = _apart(mine, other), _apart(other, mine)
    if not left and not right:
        return StepPair(here, there, True)
    deed = (left or right)[0]
    beside = next((one for one in (right if left else []) if one.place == deed.place), None)
    one, two = (deed, beside) if left else (None, deed)
    return StepPair(here, there, False, deed.change.path, _left_behind(one), _left_behind(two))


def _left_behind(deed: _Deed | None) -> Value:
    return None if deed is None or deed.change.op == "remove" else deed.change.after


def _apart(mine: Sequence[_Deed], other: Sequence[_Deed]) -> list[_Deed]:
    """What the other side did not do."""
    left = Counter((deed.place, deed.what) for deed in other)
    found = []
    for deed in mine:
        if left[deed.place, deed.what]:
            left[deed.place, deed.what] -= 1
        else:
            found.append(deed)
    return found


def _marked(mine: Sequence[_Deed], other: Sequence[_Deed]) -> tuple[Wrote, ...]:
    apart = set(map(id, _apart(mine, other)))
    ordered = sorted(mine, key=lambda deed: id(deed) not in apart)
    return tuple(
        Wrote(deed.change.path, _left_behind(deed), deed.change.op == "remove", id(deed) not in apart) for deed in ordered
    )


def _did(session: Session, address: Address) -> list[_Deed] | None:
    """What a superstep changed, values before messages; None where that cannot be read."""
    base = session.base_of(address) or session.forest.made_from(address)
    try:
        found = session.compare(address, base)
    except RefError:  # what a fork was made from is no longer there
        return []
    if found.closed:
        return None
    changes = found.changes
    values, measures = session.state(address).values, session.explainer.measures
    deeds = []
    for change in sorted(changes, key=_is_talk):
        if split_path(change.path)[0] in measures:
            continue
        removed = change.op == "remove"
        what = sort_key(_content(change.before if removed else change.after))
        deeds.append(_Deed(change, ("-" if removed else "+", *_place(dict(values), change.path)), what))
    return deeds


def _place(at: Value, path: str) -> Iterator[str]:
    """The steps of a path; the positions in lists all count as one."""
    for step in split_path(path):
        yield "" if list_of(at) is not None else step
        try:
            at = child(at, step)
        except (LookupError, ValueError):
            at = None


def _content(value: Value) -> Value:
    """A value by which two branches are compared: a message without its id, which differs from run to run."""
    if isinstance(value, list):
        return [_said(item) for item in value]
    return _said(value)


def _said(value: Value) -> Value:
    found = preview.message(value)
    if found is None:
        return value
    return ["message", found.role, found.text, found.name, [[call.name, call.args] for call in found.tool_calls]]


def _is_talk(change: Change) -> bool:
    """Whether it is about a message: those say at length what the values say in short."""
    return preview.role_of(change.before if change.op == "remove" else change.after) is not None


def _tasks(session: Session, address: Address) -> frozenset[str]:
    """What names a superstep: the tasks that ran in it, a fork by those that it repeats; else what made it."""
    row = session.row(_stands_for(session, address))
    names = frozenset(str(run.name) for run in row.nodes)
    return names or (frozenset({f"({row.checkpoint.source})"}) if row.checkpoint.source in ("input", "update") else frozenset())


def _aligned(left: Sequence[frozenset[str]], right: Sequence[frozenset[str]]) -> Iterator[tuple[int | None, int | None]]:
    """Places of both sequences in order, equal items together; between them those that have a task in common, or that stand in
    the same place where one of the two has no name of its own: an edit beside the step that it replaces."""
    names: dict[Hashable, int] = {}
    numbered = [[names.setdefault(item, len(names)) for item in side] for side in (left, right)]
    for op, start, stop, other_start, other_stop in SequenceMatcher(None, numbered[0], numbered[1], autojunk=False).get_opcodes():
        if op == "equal":
            yield from zip(range(start, stop), range(other_start, other_stop), strict=True)
            continue
        others = list(range(other_start, other_stop))
        for one in range(start, stop):
            beside = next((place for place, other in enumerate(others) if left[one] & right[other]), None)
            if beside is None and others and not (left[one] and right[others[0]]):
                beside = 0
            if beside is None:
                yield one, None
                continue
            yield from ((None, other) for other in others[:beside])
            yield one, others[beside]
            del others[: beside + 1]
        yield from ((None, other) for other in others)
