"""What changed between two states, and the changes applied again: `apply(before, diff(before, after))` gives `after`.

A change stands at the deepest path where it can be told: an edited message changes at `/messages/3/content`. List items that have
an id (messages, maps with an `id`) are matched by it, other items by equality; what is left between two matches is paired in
order. Sets change by member. A value whose type changed, a text, and a number are replaced as a whole; so is an array in which
much changed.

Positions in lists: the last step of a `remove` and of `from_path` counts in the list as it was before, every other index in the
list as it is after. Inside one list the order is: removals (last first), moves, additions, then changes of items that stayed.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import ormsgpack

from studio.codec.arrays import as_array
from studio.codec.inert import MISSING, MapValue
from studio.codec.packed import LONG, common_end, common_start, differing, same_bytes
from studio.codec.paths import (
    get,
    item_id,
    join_path,
    key_step,
    list_of,
    rebuilt,
    set_in,
    split_path,
    with_child,
    without_child,
)
from studio.errors import RefError
from studio.model import Change, Value
from studio.value import Tagged, equal, sort_key

_LARGE = 10_000
"""Characters, bytes or items of a value that is not packed together with what stands beside it."""
Trail = tuple[Any, str] | None  # (trail of the parent, step): paths are only joined for changes


def diff(before: Mapping[str, Value] | None, after: Mapping[str, Value]) -> list[Change]:
    """The changes from one state to the other, applicable in order; authors are left empty. Before None: everything was added."""
    return list(changes(before or {}, after))


def changes(before: Mapping[str, Value], after: Mapping[str, Value]) -> Iterator[Change]:
    """`diff`, one change at a time."""
    stack: list[Change | tuple[Trail, Any, Any]] = [(None, dict(before), dict(after))]
    while stack:
        work = stack.pop()
        if isinstance(work, Change):
            yield work
        else:
            found = _step(*work)
            stack.extend(reversed(found))


def _step(trail: Trail, a: Any, b: Any) -> list[Any]:
    """The differences of two values, one level deep: changes, and pairs still to be compared."""
    if a is b:
        return []
    if isinstance(a, Tagged) or isinstance(b, Tagged):
        return _tagged(trail, a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) == list(b):
            return [((trail, key_step(key)), a[key], b[key]) for key in _unlike(list(a), list(a.values()), list(b.values()))]
        return _maps(trail, list(a.items()), list(b.items()), {key: key for key in a}, {key: key for key in b})
    if isinstance(a, (dict, MapValue)) and isinstance(b, (dict, MapValue)):
        return _typed_maps(trail, a, b)
    if isinstance(a, list) and isinstance(b, list):
        return _lists(trail, a, b)
    return [] if equal(a, b) else [_change(trail, "replace", a, b)]


def _tagged(trail: Trail, a: Any, b: Any) -> list[Any]:
    if not isinstance(a, Tagged) or not isinstance(b, Tagged):
        return [_change(trail, "replace", a, b)]
    if a.code == b.code and a.raw is not None and a.raw == b.raw:
        return []
    if a.kind != b.kind or a.type_name != b.type_name or a.method != b.method or a.code != b.code:
        return [] if equal(a, b) or same_message(a, b) else [_change(trail, "replace", a, b)]
    if a.kind == "fields":
        left, right = a.fields, b.fields
        same_rest = isinstance(a.code, str) or a.payload[3:] == b.payload[3:]
        return (
            _maps(trail, list(left.items()), list(right.items()), {k: k for k in left}, {k: k for k in right})
            if same_rest
            else [_change(trail, "replace", a, b)]
        )
    if a.is_set:
        return _sets(trail, a, b)
    if a.kind == "items":  # what was built from arguments (a date, a path) is one value to a reader
        return _lists(trail, list_of(a) or [], list_of(b) or [])
    if a.kind == "snapshot":
        return [((trail, "value"), a.payload, b.payload)]
    if a.kind == "array":
        return _arrays(trail, a, b)
    return [] if equal(a, b) else [_change(trail, "replace", a, b)]


def same_message(a: Tagged, b: Tagged) -> bool:
    """Whether two messages of different eras (JSON envelope, msgpack) are the same one: class, id, content and tool calls."""
    if isinstance(a.code, str) == isinstance(b.code, str) or a.kind != "fields" or b.kind != "fields" or a.name != b.name:
        return False
    left, right = a.fields, b.fields
    if "content" not in left or "content" not in right:
        return False
    return all(equal(left.get(key) or None, right.get(key) or None) for key in ("id", "content", "tool_calls", "tool_call_id"))


def _maps(
    trail: Trail, left: list[tuple[Any, Any]], right: list[tuple[Any, Any]], in_left: dict[Any, Any], in_right: dict[Any, Any]
) -> list[Any]:
    """Entries by key; `in_left` and `in_right` name the keys in a form that can be looked up."""
    old = {name: value for name, (_, value) in zip(in_left, left, strict=True)}
    new = {name: value for name, (_, value) in zip(in_right, right, strict=True) if name in in_left}
    unlike = set(_unlike(list(new), [old[name] for name in new], list(new.values())))
    found: list[Any] = [
        _change((trail, key_step(key)), "remove", value, None)
        for name, (key, value) in zip(in_left, left, strict=True)
        if name not in in_right
    ]
    for name, (key, value) in zip(in_right, right, strict=True):
        if name not in in_left:
            found.append(_change((trail, key_step(key)), "add", None, value))
        elif name in unlike:
            found.append(((trail, key_step(key)), old[name], value))
    return found


def _unlike(names: Sequence[Any], left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    """The names of the values that may differ."""
    spans = differing(left, right) if len(left) > LONG else [(0, len(left))]
    return [names[at] for span in spans for at in range(*span) if not _is_same(left[at], right[at])]


def _is_same(a: Any, b: Any) -> bool:
    """`_same_quick` that leaves what is large to whoever compares its parts, so that nothing large is packed twice."""
    parts = list(a.values()) if isinstance(a, dict) else a if isinstance(a, list) else ()
    if len(parts) > LONG or any(isinstance(part, (str, bytes, list, dict)) and len(part) > _LARGE for part in parts):
        return a is b
    return _same_quick(a, b)


def _typed_maps(trail: Trail, a: Any, b: Any) -> list[Any]:
    left = list(a.items()) if isinstance(a, dict) else list(a.pairs)
    right = list(b.items()) if isinstance(b, dict) else list(b.pairs)
    in_left, in_right = {sort_key(key): key for key, _ in left}, {sort_key(key): key for key, _ in right}
    if len(in_left) != len(left) or len(in_right) != len(right):  # repeated keys: no path tells them apart
        return [] if equal(a, b) else [_change(trail, "replace", a, b)]
    return _maps(trail, left, right, in_left, in_right)


def _arrays(trail: Trail, a: Tagged, b: Tagged) -> list[Any]:
    left, right = as_array(a), as_array(b)
    found = left.changed(right) if left is not None and right is not None else None
    if left is None or right is None or found is None or left.dtype[1] not in "fiub":
        return [] if equal(a, b) else [_change(trail, "replace", a, b)]
    out = []
    for index in found:
        at: Trail = trail
        for step in index:
            at = (at, str(step))
        out.append(_change(at, "replace", left.element(index), right.element(index)))
    return out


def _sets(trail: Trail, a: Tagged, b: Tagged) -> list[Any]:
    left, right = a.items, b.items
    in_left, in_right = {sort_key(item) for item in left}, {sort_key(item) for item in right}
    if len(in_left) != len(left) or len(in_right) != len(right):  # a member stored twice: no change could tell which
        return [] if equal(a, b) else [_change(trail, "replace", a, b)]
    gone = [_change((trail, str(at)), "remove", item, None) for at, item in enumerate(left) if sort_key(item) not in in_right]
    new = [_change((trail, str(at)), "add", None, item) for at, item in enumerate(right) if sort_key(item) not in in_left]
    return gone[::-1] + new


def _lists(trail: Trail, left: list[Any], right: list[Any]) -> list[Any]:
    if len(left) == 1 and len(right) == 1 and item_id(left[0]) == item_id(right[0]):
        return _pair(trail, left[0], right[0], 0)
    start = common_start(left, right, _same_quick)
    end = common_end(left, right, min(len(left), len(right)) - start, _same_quick)
    stayed, moved = _match(left[start : len(left) - end], right[start : len(right) - end])
    used_left = {i for i, _ in stayed} | {i for i, _ in moved}
    used_right = {j for _, j in stayed} | {j for _, j in moved}
    last_left, last_right = len(left) - end, len(right) - end
    removed = [
        _change((trail, str(i)), "remove", left[i], None)
        for i in range(last_left - 1, start - 1, -1)
        if i - start not in used_left
    ]
    added = [_change((trail, str(j)), "add", None, right[j]) for j in range(start, last_right) if j - start not in used_right]
    moves, inside = [], []
    for i, j in sorted(moved, key=lambda pair: pair[1]):
        origin = join_path(_steps((trail, str(start + i))))
        path = join_path(_steps((trail, str(start + j))))
        moves.append(Change(path, "move", left[start + i], right[start + j], origin))
    for i, j in sorted(stayed + moved, key=lambda pair: pair[1]):
        inside += _pair(trail, left[start + i], right[start + j], start + j)
    return removed + moves + added + inside


def _pair(trail: Trail, a: Any, b: Any, at: int) -> list[Any]:
    return [] if _same_quick(a, b) else [((trail, str(at)), a, b)]


def _match(left: list[Any], right: list[Any]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs of positions: items that stayed in order, and those that moved. Time n log n, whatever the lists hold."""
    if not left or not right:
        return [], []
    where: dict[Any, list[int]] = {}
    tokens = [_token(item) for item in right]
    for j, token in enumerate(tokens):
        if token is not None:
            where.setdefault(token, []).append(j)
    pairs: list[tuple[int, int]] = []
    unique: set[int] = set()
    left_tokens = [_token(item) for item in left]
    counts: dict[Any, int] = {}
    for token in left_tokens:
        counts[token] = counts.get(token, 0) + 1
    seen: dict[Any, int] = {}
    for i, token in enumerate(left_tokens):
        places = where.get(token) if token is not None else None
        turn = seen.get(token, 0)
        seen[token] = turn + 1
        if places and turn < len(places):
            pairs.append((i, places[turn]))
            if len(places) == 1 and counts[token] == 1:
                unique.add(i)
    kept = _longest_rising(pairs)
    in_order = set(kept)
    moved = [pair for pair in pairs if pair not in in_order and pair[0] in unique]
    return kept + _fill_gaps(left, right, kept, moved), moved


def _fill_gaps(
    left: list[Any], right: list[Any], kept: list[tuple[int, int]], moved: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Pair the unmatched items between two matches in order, where both may be versions of one thing."""
    taken_left, taken_right = {i for i, _ in moved}, {j for _, j in moved}
    found: list[tuple[int, int]] = []
    last_i, last_j = -1, -1
    for i, j in [*kept, (len(left), len(right))]:
        free_left = [at for at in range(last_i + 1, i) if at not in taken_left and item_id(left[at]) is None]
        free_right = [at for at in range(last_j + 1, j) if at not in taken_right and item_id(right[at]) is None]
        found += [pair for pair in zip(free_left, free_right, strict=False) if _may_be_versions(left[pair[0]], right[pair[1]])]
        last_i, last_j = i, j
    return found


def _may_be_versions(a: Any, b: Any) -> bool:
    if isinstance(a, Tagged) or isinstance(b, Tagged):
        return isinstance(a, Tagged) and isinstance(b, Tagged) and a.type_name == b.type_name
    kinds = (dict, MapValue), (list,)
    return all(isinstance(a, kind) == isinstance(b, kind) for kind in kinds)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of `pairs` (rising in the first place) that rises in the second place too."""
    ends: list[int] = []  # smallest last value of a rising run of each length
    at: list[int] = []
    back: list[int] = []
    for index, (_, j) in enumerate(pairs):
        place = bisect.bisect_left(ends, j)
        back.append(at[place - 1] if place else -1)
        if place == len(ends):
            ends.append(j)
            at.append(index)
        else:
            ends[place] = j
            at[place] = index
    found: list[tuple[int, int]] = []
    index = at[-1] if at else -1
    while index >= 0:
        found.append(pairs[index])
        index = back[index]
    return found[::-1]


def _token(item: Any) -> Any:
    """What a list item is matched by: its id, else its content; None for values too deep to be compared cheaply."""
    if isinstance(item, (Tagged, dict)):
        name = item_id(item)
        if name is not None:
            return ("id", name)
    if isinstance(item, str):
        return item
    if item is None or isinstance(item, (bool, int, float, bytes)):
        return (type(item).__name__, sort_key(item))
    if isinstance(item, Tagged):
        return (item.code, item.raw if item.raw is not None else sort_key(item))
    try:
        return ("packed", ormsgpack.packb(item, default=_ext, option=ormsgpack.OPT_SORT_KEYS))
    except TypeError:
        return None


def _ext(value: Any) -> Any:
    if isinstance(value, Tagged) and value.raw is not None and isinstance(value.code, int):
        return ormsgpack.Ext(value.code & 0x7F, value.raw)
    raise TypeError


def _same_quick(a: Any, b: Any) -> bool:
    """True when both are the same for sure; never walks deep."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Tagged):
        return a.code == b.code and a.raw is not None and a.raw == b.raw
    if isinstance(a, (dict, list)):
        return same_bytes(a, b)
    return equal(a, b)


def _steps(trail: Trail) -> list[str]:
    steps: list[str] = []
    while trail is not None:
        trail, step = trail
        steps.append(step)
    return steps[::-1]


def _change(trail: Trail, op: Any, before: Any, after: Any) -> Change:
    return Change(join_path(_steps(trail)), op, before, after)


# applying


def apply(before: Mapping[str, Value] | None, changes: Iterable[Change]) -> dict[str, Value]:
    """The state after the changes of a `diff`; `RefError` where one does not fit the state."""
    state: Any = dict(before or {})
    changes = list(changes)
    at = 0
    while at < len(changes):
        change = changes[at]
        if change.op == "replace":
            state = set_in(state, change.path, change.after)
            at += 1
            continue
        *above, step = split_path(change.path)
        parent_path = join_path(above)
        parent = get(state, parent_path)
        items = list_of(parent)
        if items is None:
            new = (
                without_child(parent, step)
                if change.op == "remove"
                else with_child(parent, step, change.after, change.path, exact=True)
            )
            state = set_in(state, parent_path, new)
            at += 1
            continue
        group = at
        while (
            group < len(changes)
            and changes[group].op != "replace"
            and join_path(split_path(changes[group].path)[:-1]) == parent_path
        ):
            group += 1
        state = set_in(state, parent_path, rebuilt(parent, _rearranged(items, changes[at:group])))
        at = group
    return dict(state)


def _rearranged(items: list[Any], group: Sequence[Change]) -> list[Any]:
    """A list after removals, moves and additions: placed items take their positions, those that stayed fill the rest."""
    gone: set[int] = set()
    placed: dict[int, Any] = {}
    for change in group:
        place = int(split_path(change.path)[-1])
        if change.op == "remove":
            gone.add(place)
        elif change.op == "move":
            origin = int(split_path(change.from_path or "")[-1])
            gone.add(origin)
            placed[place] = items[origin]
        else:
            placed[place] = change.after
    stayed = iter([item for at, item in enumerate(items) if at not in gone])
    size = len(items) - len(gone) + len(placed)
    found = [placed[at] if at in placed else next(stayed, MISSING) for at in range(size)]
    if any(item is MISSING for item in found):
        raise RefError("the changes do not fit this list")
    return found
