"""Whether the writes of a superstep lead to the state that was stored after it, channel by channel.

A rule of `studio.explain.reducers` that leads from the parent's value over the stored writes to this value *explains* it. A value
came from *outside* its writes only where a reducer is no likely cause: it changed although nothing was written and its version
stayed, it holds what a later superstep wrote (it was stored late, while the next step already changed it), or a list holds
further items that nobody wrote. A reducer of the graph's own follows no rule, so that everything else is *unknown*: no claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from msgspec import Struct

from studio.explain.channels import members
from studio.explain.reducers import append, begins_with, explaining, fold, same_items, same_value
from studio.explain.renamed import only_renamed
from studio.model import Explained, Value, Verdict
from studio.value import MISSING, Opaque, Tagged, equal

MOST_ITEMS = 5_000
"""Items of a list that are looked through one by one for what was stored late."""

CLOSED = "the value or one of its writes cannot be read"
DELTA = "its value is itself rebuilt from writes"
OWN_RULE = "its writes lead there by no rule that is known; a reducer of the graph's own may have made it"
RACED = "another branch was made from the same checkpoint, and the stored writes may be that one's"
GAP = "supersteps before it were not stored"
NO_PARENT = "no checkpoint before it is stored"
UNTOLD = "the writes of this superstep are not stored"
NO_WRITE = "it changed although no task wrote it: something changed the value in place"
MORE = "it holds items that no task wrote"
LATE = "it holds what the next superstep wrote: it was stored late, while that step already changed the value in place"
EARLY = "its writes changed nothing: what they wrote was in the checkpoint before already, which was stored late"


class Superstep(Struct):
    """What one superstep began with, what it wrote and what was stored after it. Absent values are MISSING.

    `before` gives the parent's value in each way that it may be meant: as stored, and with what a `Command` had added. `writes`
    gives what was written to a channel, oldest first, in each way the rows may be read; `later` what the tasks that ran from here
    wrote. `complete`: every task of the superstep has rows. `raced`: the parent has other children. `bumped`: the version
    changed. `unsure`: channels whose value is only rebuilt. `was_late`: the parent's value of a channel was stored late.
    """

    before: Callable[[str], Sequence[Value]]
    after: Callable[[str], Value]
    writes: Callable[[str], Sequence[Sequence[Value]]]
    later: Callable[[str], Sequence[Value]]
    complete: bool
    raced: Callable[[], bool]
    bumped: Callable[[str], bool]
    unsure: frozenset[str]
    was_late: Callable[[str], bool]


def verdict(step: Superstep, channel: str) -> Verdict | None:
    """How far the writes explain a channel; None where it neither changed nor was written."""
    befores, after = step.before(channel), step.after(channel)
    ways = [way for way in step.writes(channel) if way]
    changed = not any(equal(before, after) for before in befores)
    if not ways:
        return _unwritten(step, channel, befores, after) if changed else None
    if channel in step.unsure:
        return Verdict("unknown", DELTA)
    if is_closed(after) or any(map(is_closed, chain(befores, *ways))):
        return Verdict("unknown", CLOSED)
    for way in ways:
        for before in befores:
            kind = explaining(before, way, after) or _anew(way, after)
            if kind is not None:
                return Verdict(kind)
    if step.raced():
        return Verdict("unknown", RACED)
    if not step.complete:
        return Verdict("unknown", UNTOLD)
    if not changed:
        return Verdict("outside", EARLY) if step.was_late(channel) else Verdict("unknown", OWN_RULE, True)
    if is_late(step, channel):
        return Verdict("outside", LATE)
    if any(_holds_more(after, fold("append", before, way), MISSING) for way in ways for before in befores):
        return Verdict("outside", MORE)
    return Verdict("unknown", OWN_RULE, True)


def _unwritten(step: Superstep, channel: str, befores: Sequence[Value], after: Value) -> Verdict:
    if channel in step.unsure:
        return Verdict("unknown", DELTA)
    if is_closed(after) or any(map(is_closed, befores)):
        return Verdict("unknown", CLOSED)
    if any(only_renamed(before, after) for before in befores):
        return Verdict("renamed")
    if step.raced():
        return Verdict("unknown", RACED)
    if not step.complete:
        return Verdict("unknown", UNTOLD)
    if step.bumped(channel):
        return Verdict("cleared") if after is MISSING or members(after) == [] else Verdict("unknown", OWN_RULE, True)
    return Verdict("outside", NO_WRITE)


def _anew(writes: Sequence[Value], after: Value) -> Explained | None:
    """A topic that does not accumulate holds what one superstep wrote, item by item."""
    if not isinstance(after, list):
        return None
    return "append" if same_items(append(MISSING, writes), MISSING, after) else None


def is_late(step: Superstep, channel: str) -> bool:
    """Whether the stored value holds beyond its own writes exactly what the tasks that ran from it wrote."""
    after, later = step.after(channel), step.later(channel)
    if not later or is_closed(after):
        return False
    for way in step.writes(channel):
        if not way:
            continue
        for before in step.before(channel):
            for folded in (fold("append", before, way), fold("messages", before, way), fold("union", before, way)):
                if folded is not MISSING and _holds_more(after, folded, MISSING) and explaining(folded, later, after) is not None:
                    return True
            if same_value(later[-1], after) and _holds_more(after, way[-1], before):
                return True
    return False


def _holds_more(value: Value, part: Value, before: Value) -> bool:
    """`value` begins with all of `part` and goes on with what is new: not taken from `before` either."""
    if isinstance(value, dict) and isinstance(part, dict):
        new = [key for key in value if key not in part]
        old = before if isinstance(before, dict) else {}
        return bool(new) and all(key not in old for key in new) and all(equal(value.get(key, MISSING), part[key]) for key in part)
    if not isinstance(value, list) or not isinstance(part, list) or not len(part) < len(value) <= MOST_ITEMS:
        return False
    old_items = before if isinstance(before, list) else []
    if not begins_with(value, part):
        return False
    return not any(equal(item, old) for item in value[len(part) :] for old in old_items)


def is_closed(value: Value) -> bool:
    """Bytes that nobody may open, as a whole value."""
    return isinstance(value, Opaque) or (isinstance(value, Tagged) and isinstance(value.payload, Opaque))
