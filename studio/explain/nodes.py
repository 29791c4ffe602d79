"""Who ran, for whole threads at once: from the headers of `writes` alone, without reading a value.

A stored path names a node that an edge started. A Send's path holds only its position, and older files have no paths: there the
name is the one whose task id comes out right. What is left over is looked up in the checkpoint itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from studio.explain.channels import (
    CONTROL,
    ERROR,
    INTERRUPT,
    MARKERS,
    NULL_TASK,
    is_internal,
    join_parts,
    spelled_target,
)
from studio.explain.ids import is_synthetic, parse_path, task_id, update_ids
from studio.explain.tasks import is_persistent
from studio.model import START, Address, Checkpoint, NodeRun, TaskStatus, WriteRow

Key = tuple[str, str]
"""(ns, checkpoint id)"""


class _Run(Struct):
    """One task as the headers of its rows show it."""

    id: str
    path: str | None = None
    output: bool = False
    edited: bool = False
    failed: bool = False
    asked: bool = False
    own: list[str] | None = None

    @property
    def ran(self) -> bool:
        """Rows of a run, not only of an edit in its place."""
        return self.output or self.failed or self.asked or not self.edited

    def status(self, lasted: bool) -> TaskStatus:
        if self.failed:
            return "done" if lasted and self.output else "failed"
        if self.output:
            return "done"
        return "paused" if self.asked else "pending"


def run_nodes(
    headers: Sequence[Checkpoint],
    rows: Sequence[WriteRow],
    known_names: Callable[[], Iterable[str]],
    names_at: Callable[[Address], Mapping[str, str]],
    noted: Callable[[], Mapping[Key, tuple[str, ...]]],
    thread_id: str,
) -> dict[Key, tuple[NodeRun, ...]]:
    """Tasks that ran from each checkpoint, in the order of their rows.

    `known_names` gives node names that heads of the thread know, `names_at` task id -> name read from one checkpoint, `noted` the
    names that old releases wrote into metadata.
    """
    groups = _grouped(rows)
    continued = {(header.checkpoint_ns, header.parent_checkpoint_id) for header in headers if header.source == "loop"}
    steps = {(header.checkpoint_ns, header.checkpoint_id): header.step for header in headers}
    namer = _Namer(rows, steps, known_names, names_at, thread_id)
    found: dict[Key, tuple[NodeRun, ...]] = {}
    for key, runs in groups.items():
        lasted = key in continued
        made = [NodeRun(namer.name(key, run), run.id, run.status(lasted)) for run in runs.values() if run.ran]
        if made:
            found[key] = tuple(made)
    for key, names in noted().items():
        if key in steps:
            there = {run.name for run in found.get(key, ())}
            found[key] = found.get(key, ()) + tuple(NodeRun(name, None, "done") for name in names if name not in there)
    return found


def _grouped(rows: Sequence[WriteRow]) -> dict[Key, dict[str, _Run]]:
    groups: dict[Key, dict[str, _Run]] = {}
    edits: dict[str, tuple[str, ...]] = {}
    for row in rows:
        ident = row.task_id
        if ident == NULL_TASK or is_synthetic(ident):
            continue
        path = row.task_path
        if path is not None and path.startswith("~__pregel_push, ~"):
            continue
        key = (row.checkpoint_ns, row.checkpoint_id)
        runs = groups.get(key)
        if runs is None:
            runs = groups[key] = {}
        run = runs.get(ident)
        if run is None:
            run = runs[ident] = _Run(ident)
        channel = row.channel
        if path is not None and path.startswith("~__interrupt__"):
            run.edited = True
            continue
        if path:
            run.path = path
        elif row.idx >= 0:
            own = edits.get(row.checkpoint_id)
            if own is None:
                own = edits[row.checkpoint_id] = update_ids(row.checkpoint_id)
            if ident in own:
                run.edited = True
                continue
            if run.own is None:
                run.own = []
            run.own.append(channel)
        if channel not in CONTROL:
            run.output = True
        elif channel == ERROR:
            run.failed = True
        elif channel == INTERRUPT:
            run.asked = True
    return groups


class _Namer:
    """Finds the name of each task, cheapest way first."""

    def __init__(
        self,
        rows: Sequence[WriteRow],
        steps: Mapping[Key, int | None],
        known_names: Callable[[], Iterable[str]],
        names_at: Callable[[Address], Mapping[str, str]],
        thread_id: str,
    ) -> None:
        self._rows = rows
        self._steps = steps
        self._known_names = known_names
        self._names_at = names_at
        self._thread_id = thread_id
        self._names: list[str] | None = None
        self._joins: dict[str, list[str]] = {}

    def name(self, key: Key, run: _Run) -> str | None:
        path = parse_path(run.path)
        if path.kind == "pull":
            return path.node
        ns, checkpoint_id = key
        step = self._steps.get(key)
        if step is not None and not is_persistent(ns):
            name = self._by_hash(ns, checkpoint_id, step + 1, run, path.kind, path.index)
            if name is not None:
                return name
        if key not in self._steps:
            return None
        return self._names_at(Address(self._thread_id, ns, checkpoint_id)).get(run.id)

    def _by_hash(self, ns: str, checkpoint_id: str, step: int, run: _Run, kind: str, index: int | None) -> str | None:
        if self._names is None:
            self._names = self._collect()
        if run.own is not None and not any(channel.startswith("branch:to:") for channel in run.own):
            for name in self._names:  # formats 1 and 2: a node writes the channel of its name
                if name in run.own and name != START:
                    return name
        try:
            for at, name in enumerate(self._names):
                if self._fits(ns, checkpoint_id, step, run, kind, index, name):
                    if at > 3:  # what ran last is likely to run again
                        self._names.insert(0, self._names.pop(at))
                    return name
        except ValueError:
            pass
        return None

    def _fits(self, ns: str, checkpoint_id: str, step: int, run: _Run, kind: str, index: int | None, name: str) -> bool:
        if kind == "push":
            return task_id(4, checkpoint_id, ns, name, step, "push", index or 0) == run.id
        if kind == "handler":
            return False
        start = [START] if name == START else [f"branch:to:{name}"]
        joins = self._joins.get(name, [])
        if task_id(4, checkpoint_id, ns, name, step, "pull", [*start, *joins]) == run.id:
            return True
        if joins and task_id(4, checkpoint_id, ns, name, step, "pull", start) == run.id:
            return True
        return any(task_id(4, checkpoint_id, ns, name, step, "push", i) == run.id for i in range(3))

    def _collect(self) -> list[str]:
        channels: set[str] = set()
        paths: set[str | None] = set()
        for row in self._rows:
            channels.add(row.channel)
            paths.add(row.task_path)
        names: dict[str, None] = {}
        for text in paths:
            node = parse_path(text).node
            if node is not None:
                names[node] = None
        for channel in sorted(channels):
            target = spelled_target(channel)
            if target is not None:
                names[target] = None
            parts = join_parts(channel)
            if parts is not None:
                self._joins.setdefault(parts[1], []).append(channel)
        names.update(dict.fromkeys(self._known_names()))
        names[START] = None
        return list(names)


def written_channels(rows: Iterable[WriteRow], nodes: Collection[str]) -> dict[Key, tuple[str, ...]]:
    """(ns, checkpoint id) -> state channels that rows under it were written to, in the order of the rows.

    `nodes` are those that have channels of their names, in formats 1 and 2; none later.
    """
    internal: dict[str, bool] = {}
    found: dict[Key, dict[str, None]] = {}
    for row in rows:
        channel = row.channel
        if channel not in internal:
            internal[channel] = channel in MARKERS or is_internal(channel, nodes)
        if not internal[channel]:
            found.setdefault((row.checkpoint_ns, row.checkpoint_id), {})[channel] = None
    return {key: tuple(names) for key, names in found.items()}
