"""The rows of `writes` under one checkpoint, grouped by the task that wrote them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct, field

from studio.codec import shared
from studio.explain.cache import Bounded
from studio.explain.channels import CONTROL, ERROR, INTERRUPT, MARKERS, NULL_TASK, RESUME
from studio.explain.ids import TaskPath, is_synthetic, parse_path
from studio.model import Value, Write, WriteRow
from studio.value import decode


class TaskRows(Struct):
    """What one task has stored so far, in the order of its writes. Values are decoded on demand."""

    id: str
    path: str | None = None
    output: list[WriteRow] = field(default_factory=list)
    """Rows that say what the task produced, the "wrote nothing" marker included: with one of them it has finished."""
    error: WriteRow | None = None
    questions: list[WriteRow] = field(default_factory=list)
    answers: list[WriteRow] = field(default_factory=list)

    @property
    def parsed(self) -> TaskPath:
        return parse_path(self.path)

    @property
    def finished(self) -> bool:
        return bool(self.output)

    @property
    def is_null(self) -> bool:
        return self.id == NULL_TASK

    @property
    def is_task(self) -> bool:
        """False for the null task and for rows under ids that no task bears."""
        return not self.is_null and not is_synthetic(self.id)

    @property
    def updated(self) -> bool:
        """The output came from an `update_state`, not from a run of the node."""
        return bool(self.output) and all(parse_path(row.task_path).kind == "update" for row in self.output)

    def channels(self) -> set[str]:
        return {row.channel for row in self.output}

    def writes(self) -> tuple[Write, ...]:
        return tuple(Write(row.channel, row_value(row)) for row in self.output if row.channel not in MARKERS)

    def resumes(self) -> list[Value]:
        """The answers stored for this task, first one first."""
        found: list[Value] = []
        for row in self.answers:
            value = row_value(row)
            found.extend(value if isinstance(value, list) else [value])
        return found


def group(rows: Iterable[WriteRow]) -> dict[str, TaskRows]:
    """Rows by task id, tasks and rows in the given order. The path of an update never hides the one of the run before it."""
    tasks: dict[str, TaskRows] = {}
    for row in rows:
        task = tasks.get(row.task_id)
        if task is None:
            task = tasks[row.task_id] = TaskRows(row.task_id)
        if row.task_path and (not task.path or task.parsed.kind == "update"):
            task.path = row.task_path
        if row.channel not in CONTROL:
            task.output.append(row)
        elif row.channel == ERROR:
            task.error = row
        elif row.channel == INTERRUPT:
            task.questions.append(row)
        elif row.channel == RESUME:
            task.answers.append(row)
    return tasks


_LARGE, _LARGE_KEPT = 100_000, 4
_SMALL, _SMALL_KEPT = 4_000, 512
_kept: Bounded = Bounded(_LARGE_KEPT)
_lock = threading.Lock()


def row_value(row: WriteRow) -> Value:
    """What was written. A few large values, and the last small ones, are kept: who wrote one and whether that explains it is
    asked again and again."""
    stored = row.value if row.value is not None else b""
    if len(stored) < _SMALL:
        return _small(row.tag, stored)
    if len(stored) < _LARGE:
        return decode(row.tag, stored)
    key = row.tag, id(stored)  # an id is taken by nothing else as long as the bytes are held beside the value
    with _lock:
        kept: tuple[bytes, Value] | None = _kept.get(key)
    if kept is None:
        kept = stored, decode(row.tag, stored)
        with _lock:
            _kept.put(key, kept)
    return kept[1]


_small = lru_cache(maxsize=_SMALL_KEPT)(decode)
"""A message is asked for by the task that wrote it and, in a delta channel, by the checkpoint that it leads to."""


def forget_large() -> None:
    """Let go of the values that were kept, which nobody will ask for again once a store has changed or was closed."""
    with _lock:
        _kept.clear()
    _small.cache_clear()
    shared.forget()


def null_writes(tasks: Mapping[str, TaskRows]) -> Sequence[WriteRow]:
    """Writes of the null task: what a `Command` gave to the step before any task of it ran."""
    task = tasks.get(NULL_TASK)
    return [row for row in task.output if row.channel not in MARKERS] if task else ()
