"""Gathers what `studio.explain.superstep` needs to know about one superstep, from rows and states that are read anyway."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from studio.explain.authors import by_channel, noted_writes
from studio.explain.blob import Blob
from studio.explain.channels import MARKERS, NULL_TASK, is_internal
from studio.explain.delta import unwrap
from studio.explain.ids import parse_path
from studio.explain.reader import Reader
from studio.explain.rows import row_value
from studio.explain.superstep import CLOSED, GAP, NO_PARENT, Superstep, is_late, verdict
from studio.explain.threads import Threads
from studio.model import START, Address, State, Value, Verdict, WriteRow
from studio.value import MISSING, equal


class Checker:
    """Checks supersteps against their writes. Thread-safe."""

    def __init__(self, reader: Reader, threads: Threads, state: Callable[[Address], State]) -> None:
        self._reader = reader
        self._threads = threads
        self._state = state

    def check(self, before: State | None, after: State) -> dict[str, Verdict]:
        """Channel -> verdict, of the channels that were written or changed; {} for inputs and edits, which need no writes."""
        step = self._superstep(before, after)
        if step is None or before is None:
            return self._untold(before, after) if after.checkpoint.source == "loop" else {}
        written = {row.channel for row in self._reader.rows_at(before.checkpoint.address) if is_write(row)}
        names = {*before.internal, *after.internal}
        channels = {*before.values, *after.values, *(name for name in written if name not in names and not is_internal(name))}
        found = {channel: verdict(step, channel) for channel in sorted(channels)}
        return {channel: told for channel, told in found.items() if told is not None}

    def _untold(self, before: State | None, after: State) -> dict[str, Verdict]:
        """Why no change of a checkpoint can be checked."""
        old = before.values if before is not None else {}
        changed = [
            name for name in sorted({*old, *after.values}) if not equal(old.get(name, MISSING), after.values.get(name, MISSING))
        ]
        why = NO_PARENT if before is None else CLOSED if follows(before, after) else GAP
        return {name: Verdict("unknown", why) for name in changed}

    def _superstep(self, before: State | None, after: State) -> Superstep | None:
        """None for inputs and edits, across supersteps that were not stored, and where a record cannot be read."""
        if before is None or not follows(before, after):
            return None
        above, here = self._reader.blob(before.checkpoint.address), self._reader.blob(after.checkpoint.address)
        if above is None or here is None or not above.readable or not here.readable:
            return None
        rows = [row for row in self._reader.rows_at(above.address) if row.idx >= 0]
        noted = {**noted_writes(here.metadata), **started_with(before, rows)}
        written = by_channel(rows)

        def writes(channel: str) -> list[list[Value]]:
            mine = [row for row in written.get(channel, ()) if parse_path(row.task_path).kind != "update"]
            told = [value for values in noted.get(channel, {}).values() for value in values]
            ran = [row_value(row) for row in mine if row.task_id != NULL_TASK]
            return [ran, [row_value(row) for row in mine], told]

        def befores(channel: str) -> list[Value]:
            shown = before.values.get(channel, MISSING)
            stored = unwrap(above.values.get(channel, MISSING))
            return [shown] if stored is shown or channel in before.rebuilt and stored is MISSING else [shown, stored]

        def is_bumped(channel: str) -> bool:
            return bool(above.versions.get(channel) != here.versions.get(channel))

        def was_late(channel: str) -> bool:
            up = above.parent
            first = self._reader.blob(up) if up is not None else None
            earlier = self._superstep(self._state(first.address), before) if first is not None else None
            return earlier is not None and is_late(earlier, channel)

        return Superstep(
            before=befores,
            after=lambda channel: stored_value(here, after, channel),
            writes=writes,
            later=lambda channel: [
                row_value(row)
                for row in self._reader.rows_at(here.address)
                if row.idx >= 0 and row.channel == channel and row.task_id != NULL_TASK
            ],
            complete=has_all_rows(before, rows) or bool(started_with(before, rows)),
            raced=lambda: len(self._threads.children_of(above.address)) > 1,
            bumped=is_bumped,
            unsure=frozenset(
                name for state in (before, after) for name, how in state.rebuilt.items() if how != "exact" or state is after
            ),
            was_late=was_late,
        )


def started_with(before: State, rows: Sequence[WriteRow]) -> dict[str, dict[str, list[Value]]]:
    """What the first task of a thread wrote, where its rows are not stored but its input is: in the form of `noted_writes`."""
    given = before.internal.get(START)
    if rows or [task.name for task in before.tasks] != [START] or not isinstance(given, dict):
        return {}
    return {channel: {START: [value]} for channel, value in given.items()}


def follows(before: State, after: State) -> bool:
    """Whether one superstep leads from `before` to `after`."""
    first, then = before.checkpoint, after.checkpoint
    if then.source != "loop" or then.parent_checkpoint_id != first.checkpoint_id or then.checkpoint_ns != first.checkpoint_ns:
        return False
    return first.step is None or then.step is None or then.step == first.step + 1


def stored_value(here: Blob, after: State, channel: str) -> Value:
    """As stored, without what a `Command` added afterwards; a delta channel as it was rebuilt."""
    stored = here.values.get(channel, MISSING)
    return unwrap(stored) if stored is not MISSING else after.values.get(channel, MISSING)


def is_write(row: WriteRow) -> bool:
    return row.idx >= 0 and row.channel not in MARKERS


def has_all_rows(before: State, rows: Sequence[WriteRow]) -> bool:
    """Whether each task of the superstep has stored its rows, so that what nobody wrote there was written by none."""
    known = {row.task_id for row in rows}
    if before.next is None or not before.tasks:
        return False
    return all(task.id in known for task in before.tasks)
