"""Edges that a thread really took, counted: a row of task A in a channel that starts B is one passage from A to B."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from studio.explain.blob import send_parts
from studio.explain.channels import END, NULL_TASK, TASKS, spelled_target
from studio.explain.ids import parse_path
from studio.explain.rows import row_value
from studio.model import START, Edge, NodeRun, State, WriteRow
from studio.stores.base import Store

Key = tuple[str, str]


Runs = Mapping[Key, tuple[NodeRun, ...]]


def seen_edges(store: Store, thread_id: str, runs_of: Callable[[Sequence[WriteRow]], Runs]) -> tuple[Edge, ...]:
    """Edges of all graphs of a thread from format 3 on, most travelled first. `__start__` and `__end__` stand for the outside."""
    rows = [row for _, row in store.write_headers(thread_id)]
    runs = runs_of(rows)
    names = {(key, run.task_id): run.name for key, group in runs.items() for run in group}
    status = {(key, run.task_id): run.status for key, group in runs.items() for run in group}
    counts: Counter[tuple[str, str]] = Counter()
    left: dict[tuple[Key, str], bool] = {}
    for row in rows:
        key = (row.checkpoint_ns, row.checkpoint_id)
        if row.task_id == NULL_TASK or row.idx < 0 or parse_path(row.task_path).kind in ("update", "call"):
            continue
        task = (key, row.task_id)
        source = names.get(task)
        if source is None:
            continue
        left.setdefault(task, False)
        target = spelled_target(row.channel)
        if target is not None:
            counts[source, target] += 1
            left[task] = True
        elif row.channel == TASKS:
            left[task] = True
    for row in store.scan_writes(thread_id, [TASKS]):
        source = names.get(((row.checkpoint_ns, row.checkpoint_id), row.task_id))
        parts = send_parts(row_value(row))
        if source is not None and parts is not None and row.idx >= 0:
            counts[source, parts[0]] += 1
    for task, went_on in left.items():
        name = names.get(task)
        if not went_on and name is not None and name != START and status.get(task) == "done":
            counts[name, END] += 1
    return counted(counts)


def old_edges(states: Iterable[State]) -> tuple[Edge, ...]:
    """Edges of formats 1 and 2, whose rows name no target: from what started each task that ran."""
    counts: Counter[tuple[str, str]] = Counter()
    for state in states:
        for task in state.tasks:
            if task.name not in (None, START) and task.status != "pending":
                sources = {author.node for trigger in task.triggers for author in trigger.authors}
                counts.update((source, str(task.name)) for source in sources if source is not None)
    return counted(counts)


def counted(counts: Counter[tuple[str, str]]) -> tuple[Edge, ...]:
    return tuple(Edge(source, target, count) for (source, target), count in counts.most_common())
