"""Delta channels: values that most checkpoints do not hold, rebuilt from the writes of their ancestors.

Beginning at the nearest ancestor with a stored value (a snapshot, or a plain value from before the channel became one), the
rows under each checkpoint on the way are applied in order; a checkpoint's own rows are not. The reducer is the user's code, so
the inert model of `studio.explain.reducers` stands in for it, and says when another reading were possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from studio.explain.blob import Blob
from studio.explain.channels import NULL_TASK, is_internal
from studio.explain.ids import parse_path
from studio.explain.reducers import Kind, Reading, overwrite, plausible, same_value
from studio.explain.rows import row_value
from studio.model import Address, Rebuilt, Value, WriteRow
from studio.value import MISSING, Opaque, Tagged

COUNTERS = "counters_since_delta_snapshot"


class Result(Struct, frozen=True):
    """A rebuilt channel; `value` is MISSING where nothing was written, or nothing can be said. `place`: where each id stands;
    `why`: what is missing, of an unavailable one. `ruled`: a reducer was assumed; `since`: whose stored value it began with."""

    value: Value
    how: Rebuilt
    place: dict[str, int] | None = None
    why: str = ""
    ruled: bool = False
    since: Address | None = None


Known = Callable[[Address, str], Result | None]


def unwrap(value: Value) -> Value:
    """The value inside a snapshot; anything else as it is."""
    return value.payload if isinstance(value, Tagged) and value.kind == "snapshot" else value


def delta_channels(blob: Blob) -> set[str]:
    """Channels that the row itself shows to be delta channels: counted in the metadata, or stored as a snapshot."""
    counters = blob.metadata.get(COUNTERS)
    found = {name for name in counters if isinstance(name, str)} if isinstance(counters, Mapping) else set()
    found.update(name for name, value in blob.values.items() if isinstance(value, Tagged) and value.kind == "snapshot")
    return found


def absent_channels(blob: Blob) -> set[str]:
    """State channels that were written once and have no value here: they were emptied, or they are delta channels."""
    if blob.format is None or blob.format < 4:
        return set()
    return {name for name in blob.versions if name not in blob.values and not is_internal(name)}


def rebuild(
    blob: Blob,
    channels: set[str],
    ancestor: Callable[[Address], Blob | None],
    rows_of: Callable[[Sequence[Address]], Mapping[Address, tuple[WriteRow, ...]]],
    forked: Callable[[Address], Sequence[str | None]],
    known: Known,
    shared: Callable[[str, Value], tuple[Value, dict[str, int] | None]],
) -> dict[str, Result]:
    """Rebuild `channels` of a checkpoint.

    `ancestor` gives a decoded checkpoint or None, `rows_of` the rows under some, `forked` the sources of a checkpoint's children
    when it has more than one ([] else), `known` a result that is already there for an ancestor, `shared` a stored value of a
    channel with the items in it that were decoded before, and where each id stands in it if that is known.
    """
    seeds: dict[str, tuple[Value, dict[str, int] | None]] = {}
    since: dict[str, Address] = {}
    begun: dict[str, Result] = {}
    path: dict[str, list[Address]] = {name: [] for name in channels}
    child_source: dict[Address, str | None] = {}
    versions = {blob.address: blob.versions}
    open_channels = set(channels)
    here, visited = blob, {blob.address}
    cut = ""
    while open_channels:
        up = here.parent
        if up is None:
            break
        above = ancestor(up) if up not in visited else None
        if above is None or not above.readable:
            cut = ended_at(up, here.address, looped=up in visited, there=above is not None)
            break
        visited.add(up)
        child_source[up] = here.source
        for name in list(open_channels):
            path[name].append(up)
            value = above.values.get(name, MISSING)
            earlier = known(up, name) if value is MISSING else None
            if value is not MISSING:
                seeds[name] = shared(name, value)
                since[name] = up
                open_channels.discard(name)
            elif earlier is not None:
                begun[name] = earlier
                open_channels.discard(name)
        versions[up] = above.versions
        here = above
    wanted = list(dict.fromkeys(address for name in channels for address in path[name]))
    rows = rows_of(wanted) if wanted else {}
    results = {}
    for name in channels:
        if name in open_channels and cut:
            results[name] = Result(MISSING, "unavailable", why=cut)
            continue
        lost = lost_writes(name, [blob.address, *path[name]], rows, versions)
        if lost:
            results[name] = Result(MISSING, "unavailable", why=lost)
            continue
        writes, sure = replayed(name, path[name], rows, child_source, forked)
        if any(isinstance(write, Opaque) for step in writes for write in step):
            results[name] = Result(MISSING, "unavailable", why="one of its stored changes cannot be read")
            continue
        seed, place = seeds.get(name, (MISSING, None))
        results[name] = applied(seed, place, writes, sure, begun.get(name), since.get(name))
    return results


def ended_at(up: Address, below: Address, *, looped: bool, there: bool) -> str:
    """Why the way back to the beginning of a channel ends before it."""
    if looped:
        return f"the parents of {below.checkpoint_id} lead back to themselves, so its stored changes have no beginning"
    begin = f"its stored changes begin at or before {up.checkpoint_id}"
    return (
        f"{begin}, which cannot be read" if there else f"{begin}, the parent of {below.checkpoint_id}, which is not in this file"
    )


def lost_writes(
    name: str,
    path: Sequence[Address],
    rows: Mapping[Address, tuple[WriteRow, ...]],
    versions: Mapping[Address, Mapping[str, Any]],
) -> str:
    """Why the writes on the way, `path` from a checkpoint up, cannot be applied; "" where all are there.

    A channel with a new version was written, so there must be a row.
    """
    for below, above in pairwise(path):
        if versions[below].get(name) == versions[above].get(name):
            continue
        if not any(row.channel == name and row.idx >= 0 for row in rows.get(above, ())):
            return f"a change of it that led from {above.checkpoint_id} to {below.checkpoint_id} is not in this file"
    return ""


def replayed(
    name: str,
    path: Sequence[Address],
    rows: Mapping[Address, tuple[WriteRow, ...]],
    child_source: Mapping[Address, str | None],
    forked: Callable[[Address], Sequence[str | None]],
) -> tuple[list[list[Value]], bool]:
    """(writes of each ancestor, oldest first; whether all of them are this branch's own)."""
    steps: list[list[Value]] = []
    sure = True
    for address in reversed(path):
        mine = [row for row in rows.get(address, ()) if row.channel == name and row.idx >= 0]
        if not mine:
            continue
        steps.append([row_value(row) for row in mine])
        sure = sure and (not others_rows(mine, child_source.get(address)) or len(forked(address)) == 0)
        if sure and len({row.task_id for row in mine}) > 1 and any(row.task_path is None for row in mine):
            sure = False  # the order of parallel writers is not known
        if sure and (siblings := forked(address)):
            takers = [
                source for source in siblings if source != "fork"
            ]  # a fork repeats a sibling or holds a snapshot of its own
            same_kind = [source for source in takers if (source == "update") == (child_source.get(address) == "update")]
            sure = len(same_kind) < 2
    return steps, sure


def others_rows(rows: Sequence[WriteRow], source: str | None) -> bool:
    """Whether some rows cannot have gone into a child of this source: an edit takes only an edit's rows, a step only a step's."""
    edits = [parse_path(row.task_path).kind == "update" for row in rows if row.task_id != NULL_TASK]
    return any(edit != (source == "update") for edit in edits)


def applied(
    seed: Value,
    place: dict[str, int] | None,
    steps: Sequence[Sequence[Value]],
    sure: bool,
    begun: Result | None,
    since: Address | None = None,
) -> Result:
    """Fold the writes onto the seed (`place`: where each id stands in it), or onto an ancestor's result, and say how sure that
    is."""
    if begun is not None:
        if begun.how == "unavailable":
            return begun
        seed, place, sure, since = begun.value, begun.place, sure and begun.how == "exact", begun.since
    writes = [write for step in steps for write in step]
    if not writes:
        ruled = begun is not None and begun.ruled
        return Result(seed, "exact" if sure else "ambiguous", place, ruled=ruled, since=since)
    readings = plausible(seed, writes, place)
    if not readings:
        return Result(MISSING, "unavailable", why="its stored changes do not fit each other")
    first = readings[0]
    certain = len(readings) == 1 or agreed(readings) or structural(first.kind, seed, writes)
    return Result(first.value, "exact" if sure and certain else "ambiguous", first.place, ruled=True, since=since)


def agreed(readings: Sequence[Reading]) -> bool:
    return all(same_value(readings[0].value, other.value) for other in readings[1:])


def structural(kind: Kind, seed: Value, writes: Sequence[Value]) -> bool:
    """A delta channel replays batches, so it is no last value: lists of plain items append, maps and sets unite."""
    bodies = [value if is_reset else write for write in writes for is_reset, value in [overwrite(write)]]
    return (
        kind in ("append", "union", "messages")
        and (seed is MISSING or isinstance(seed, (list, dict, Tagged)))
        and all(isinstance(body, (list, dict, Tagged)) for body in bodies)
    )
