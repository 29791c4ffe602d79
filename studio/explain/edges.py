"""Graphs as a thread showed them: which nodes ran, and how often one led to another; nobody's code is asked.

From format 3 on, a row of a task in a channel that starts B is one passage to B. Older rows name no target: there the passages
come from what started each task. A graph is told by its namespace without task ids, so all runs of one subgraph count together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from studio.explain.blob import send_parts
from studio.explain.channels import NULL_TASK, TASKS, spelled_target
from studio.explain.ids import parse_path
from studio.explain.rows import row_value
from studio.history.namespaces import static_ns
from studio.model import END, START, Checkpoint, Edge, NodeRun, SeenGraph, SeenNode, State, WriteRow
from studio.stores.base import Store

Key = tuple[str, str]
"""(ns, checkpoint id)"""
Runs = Mapping[Key, tuple[NodeRun, ...]]


class _Tally(Struct):
    """What was seen of one graph so far."""

    runs: dict[str, list[Key]] = field(default_factory=dict)
    edges: Counter[tuple[str, str]] = field(default_factory=Counter)
    unnamed: int = 0

    def ran(self, name: str | None, key: Key) -> None:
        if name is None:
            self.unnamed += 1
        else:
            self.runs.setdefault(name, []).append(key)


class Graphs:
    """Tallies by static namespace."""

    def __init__(self) -> None:
        self.found: dict[str, _Tally] = {}
        self._of: dict[str, _Tally] = {}

    def of(self, ns: str) -> _Tally:
        tally = self._of.get(ns)
        if tally is None:
            tally = self._of[ns] = self.found.setdefault(static_ns(ns), _Tally())
        return tally

    def done(self) -> tuple[SeenGraph, ...]:
        """The graphs, outer ones first; nodes in the order of their first run, the ends at the ends."""
        return tuple(_graph(ns, tally) for ns, tally in sorted(self.found.items()) if tally.runs or tally.edges or tally.unnamed)


def _graph(ns: str, tally: _Tally) -> SeenGraph:
    names = dict.fromkeys([START] if START in tally.runs or any(source == START for source, _ in tally.edges) else [])
    names.update(dict.fromkeys(tally.runs))
    names.update(dict.fromkeys(name for pair in sorted(tally.edges) for name in pair))
    if END in names:
        names[END] = names.pop(END)
    place = {name: at for at, name in enumerate(names)}
    counts = sorted(tally.edges.items(), key=lambda one: (-one[1], place[one[0][0]], place[one[0][1]]))
    nodes = tuple(SeenNode(name, len(tally.runs.get(name, ())), tuple(tally.runs.get(name, ()))) for name in names)
    return SeenGraph(ns, nodes, tuple(Edge(source, target, count) for (source, target), count in counts), tally.unnamed)


def seen_graphs(
    store: Store, thread_id: str, headers: Sequence[Checkpoint], runs_of: Callable[[Sequence[WriteRow]], Runs]
) -> tuple[SeenGraph, ...]:
    """Graphs of a thread of format 3 or later, from the headers of its rows. Edits count neither as runs nor as edges."""
    rows = [row for _, row in store.write_headers(thread_id)]
    runs = runs_of(rows)
    graphs = Graphs()
    tasks: dict[tuple[str, str, str], NodeRun] = {}
    for header in headers:  # rows that wait for their checkpoint are no runs of this thread yet
        key = (header.checkpoint_ns, header.checkpoint_id)
        tally, group = graphs.of(header.checkpoint_ns), sorted(runs.get(key, ()), key=lambda run: run.name or "")
        for run in group:
            tally.ran(run.name, key)
            if run.name is not None and run.task_id is not None:
                tasks[*key, run.task_id] = run
        if header.source == "input" and all(run.name != START for run in group):
            tally.edges.update((START, run.name) for run in group if run.name is not None)  # what an input starts by itself
    went_on = set(_count_rows(rows, tasks, graphs)) | set(_count_handlers(rows, tasks, graphs))
    sends = any(row.channel == TASKS for row in rows)
    for row in store.scan_writes(thread_id, [TASKS]) if sends else ():  # without a channel's index, a pass over all rows
        task = (row.checkpoint_ns, row.checkpoint_id, row.task_id)
        sent = send_parts(row_value(row)) if task in tasks and row.idx >= 0 else None
        if sent is not None:
            graphs.of(row.checkpoint_ns).edges[_name(tasks[task]), sent[0]] += 1
    for task, run in tasks.items():
        if task not in went_on and run.status == "done":
            graphs.of(task[0]).edges[_name(run), END] += 1
    return graphs.done()


Tasks = Mapping[tuple[str, str, str], NodeRun]
"""(ns, checkpoint id, task id) -> the run; named ones only."""


def _count_rows(rows: Iterable[WriteRow], tasks: Tasks, graphs: Graphs) -> Iterable[tuple[str, str, str]]:
    """Count what rows spell out; yields the tasks that led anywhere."""
    targets: dict[str, str | None] = {}
    for row in rows:
        channel = row.channel
        if channel not in targets:
            targets[channel] = spelled_target(channel)
        target = targets[channel]
        if row.idx < 0 or row.task_id == NULL_TASK or (target is None and channel != TASKS):
            continue
        task = (row.checkpoint_ns, row.checkpoint_id, row.task_id)
        if task in tasks and parse_path(row.task_path).kind not in ("update", "call"):
            if target is not None:
                graphs.of(row.checkpoint_ns).edges[_name(tasks[task]), target] += 1
            yield task


def _count_handlers(rows: Iterable[WriteRow], tasks: Tasks, graphs: Graphs) -> Iterable[tuple[str, str, str]]:
    """Count passages from a failed task to the handler that took over; yields the failed tasks."""
    seen: set[tuple[str, str, str]] = set()
    by_name: dict[tuple[str, str, str | None], list[tuple[str, str, str]]] = {}
    for row in rows:
        if not row.task_path or "node_error_handler" not in row.task_path:
            continue
        path = parse_path(row.task_path)
        task = (row.checkpoint_ns, row.checkpoint_id, row.task_id)
        if path.kind != "handler" or task in seen or task not in tasks:
            continue
        seen.add(task)
        if path.node is None:
            continue
        graphs.of(row.checkpoint_ns).edges[path.node, _name(tasks[task])] += 1
        if not by_name:
            for other, run in tasks.items():
                by_name.setdefault((other[0], other[1], run.name), []).append(other)
        yield from by_name.get((task[0], task[1], path.node), ())


def _name(run: NodeRun) -> str:
    return run.name or ""


def started_graphs(states: Iterable[State]) -> tuple[SeenGraph, ...]:
    """Graphs of a thread that has checkpoints of formats 1 or 2, from what started each task that ran. Parents come first."""
    graphs = Graphs()
    finished: dict[Key, tuple[str, ...]] = {}
    for state in states:
        here = state.checkpoint
        key = (here.checkpoint_ns, here.checkpoint_id)
        tally = graphs.of(here.checkpoint_ns)
        for task in state.tasks:
            if task.status == "pending":
                continue
            tally.ran(task.name, key)
            if task.name is not None and task.name != START:
                sources = {(author.node, author.task_id) for trigger in task.triggers for author in trigger.authors}
                tally.edges.update((source, task.name) for source, _ in sources if source is not None)
        finished[key] = tuple(task.name for task in state.tasks if task.name is not None and task.status == "done")
        if state.next == () and here.source == "loop" and here.parent_checkpoint_id:
            tally.edges.update((name, END) for name in finished.get((here.checkpoint_ns, here.parent_checkpoint_id), ()))
    return graphs.done()
