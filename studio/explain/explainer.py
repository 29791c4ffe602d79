"""`Explainer`: everything that raw rows tell about a checkpoint, without any user code.

It reads one checkpoint, its parent's rows and its own, and only where those do not suffice more of the thread. Nothing in it
raises for what a file holds; what cannot be known is None, or a problem.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from studio.errors import RefError
from studio.explain.authors import Step, Written, attribute, noted_writes, written_by_task
from studio.explain.blob import Blob
from studio.explain.cache import Bounded
from studio.explain.channels import NULL_TASK, TASKS, is_internal, spelled_sources
from studio.explain.edges import seen_edges
from studio.explain.ids import parse_path, static_ns, update_ids
from studio.explain.nodes import run_nodes, written_channels
from studio.explain.reader import Reader
from studio.explain.rows import TaskRows, group
from studio.explain.schedule import Learned, Planned, planned, planned_old
from studio.explain.tasks import Context, from_rows_alone, join_tasks, live_status, named_by_id
from studio.explain.threads import Threads
from studio.explain.values import Values
from studio.model import (
    START,
    Address,
    Author,
    Change,
    Checkpoint,
    Edge,
    NodeRun,
    Problem,
    RawCheckpoint,
    State,
    Task,
    Trigger,
    WriteRow,
)
from studio.stores.base import Store

_GRAPHS_ASKED = 8
_AHEAD, _AHEAD_BYTES = 128, 4_000_000


class Explainer:
    """Derives states, tasks, authors and edges from a store. Safe to use from several threads; caches are bounded."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reader = Reader(store)
        self.threads = Threads(store)
        self.values = Values(self.reader, self.threads)
        self._lock = threading.RLock()
        self._names = Bounded(1024)

    def forget(self) -> None:
        """Drop what was learned, after the store changed."""
        with self._lock:
            self._names.clear()
        self.reader.forget()
        self.values.forget()
        self.threads.forget()

    def note_headers(self, thread_id: str, headers: Iterable[Checkpoint]) -> None:
        """Spare a pass over a thread: its headers, all of them, from somebody who has read them anyway."""
        self.threads.note_headers(thread_id, headers)

    # -- one checkpoint -------------------------------------------------------------------------------------------------

    def state(self, address: Address) -> State:
        """All about one checkpoint. `RefError` when it is not there."""
        blob = self.reader.blob(address)
        if blob is None:
            raise RefError(f"there is no checkpoint {address.checkpoint_id} in thread {address.thread_id}")
        return self._explain(blob)

    def prefetch(self, addresses: Sequence[Address]) -> None:
        """Make `state` cheap for a few dozen checkpoints that will be asked for next."""
        self.reader.prefetch(addresses)

    def states(self, raws: Iterable[RawCheckpoint]) -> Iterator[State]:
        """States of many checkpoints in the order given; parents before children is fastest. Bounded memory."""
        source = iter(raws)
        while True:
            ahead: list[RawCheckpoint] = []
            size = 0
            for raw in islice(source, _AHEAD):
                ahead.append(raw)
                size += len(raw.blob)
                if size > _AHEAD_BYTES:
                    break
            if not ahead:
                return
            blobs = [self.reader.take(raw) for raw in ahead]
            self.reader.rows([address for blob in blobs for address in (blob.address, blob.parent) if address is not None])
            for blob in blobs:
                yield self._explain(blob)

    def _explain(self, blob: Blob) -> State:
        address, parent = blob.address, blob.parent
        rows = self.reader.rows([address] if parent is None else [address, parent])
        mine = group(rows[address])
        above = rows[parent] if parent is not None else ()
        context = self._context(blob, above)
        problems = list(blob.problems)
        if not blob.readable:
            tasks = from_rows_alone(blob, mine, context)
            status = live_status(tasks, known=False)
            header = blob.raw.header
            return State(header, {}, {}, {}, tuple(tasks), None, blob.metadata, None, status=status, problems=tuple(problems))
        learned = self.threads.learned(address) if blob.old else None
        plans, known = self._plan(blob, mine, learned)
        tasks, others = join_tasks(blob, plans, mine, context)
        values, internal = blob.state_values(learned.nodes if learned is not None else frozenset())
        values, rebuilt = self.values.completed(blob, values, mine)
        handled = [task for task in tasks if parse_path(task.path).kind == "handler"]
        names = tuple(task.name for task in tasks if task not in handled)
        problems.extend(shared_ids(tasks, address))
        problems.extend(Problem("rebuilt-unavailable", f"{address.checkpoint_id}/{name}", "the value is stored as changes whose start is missing")
                        for name, how in rebuilt.items() if how == "unavailable")
        return State(
            checkpoint=blob.raw.header,
            values=values,
            internal=internal,
            rebuilt=rebuilt,
            tasks=tuple(tasks),
            next=names if known and None not in names else None,
            metadata=blob.metadata,
            format=blob.format,
            channel_versions=blob.versions,
            versions_seen=blob.seen,
            status=live_status(tasks, known),
            problems=tuple(problems),
            others=tuple(others),
        )

    def _plan(self, blob: Blob, mine: Mapping[str, TaskRows], learned: Learned | None) -> tuple[list[Planned], bool]:
        """(what the checkpoint schedules, whether that is all)."""
        if learned is None:
            plans = planned(blob)
            return [self._starter(blob, plan, mine) if plan.inferred else plan for plan in plans], blob.format is not None
        plans, loose = planned_old(blob, learned)
        return self._followed(blob, plans, mine, loose) if loose else (plans, True)

    def _starter(self, blob: Blob, plan: Planned, mine: Mapping[str, TaskRows]) -> Planned:
        """The first task of a thread: `__start__` of a graph, or an entrypoint, whose name only its rows or later checkpoints tell."""
        names = [task.parsed.node for task in mine.values() if task.is_task and task.parsed.kind == "pull"]
        if names and START not in names:
            return Planned(names[0], "pull", plan.fired)
        if not names and not any(task.is_task for task in mine.values()):
            child = self.threads.children_of(blob.address)[:1]
            after = self.reader.blob(Address(blob.address.thread_id, blob.address.checkpoint_ns, child[0][0])) if child else None
            if after is not None and START not in after.seen:
                entry = next((name for name, seen in after.seen.items() if START in seen), None)
                if entry is not None:
                    return Planned(entry, "pull", plan.fired, inferred=True)
        return Planned(START, "pull", plan.fired)

    def _followed(
        self, blob: Blob, plans: list[Planned], mine: Mapping[str, TaskRows], loose: set[str]
    ) -> tuple[list[Planned], bool]:
        """Formats 1 and 2, where a node just ran whose followers this thread never reached.

        Rows here prove that one runs; its name is proven by its id, or told by the channel of its name, or stays unknown. Without
        rows the node was the last one, unless other threads of the file show that something can follow it.
        """
        wide = self.threads.learned_widely(blob.address)
        _, others = join_tasks(blob, plans, mine, self._context(blob, ()))
        edits = update_ids(blob.address.checkpoint_id)
        rewritten = blob.parent == blob.address  # one row for all steps of a subgraph: its writes are of every step
        strangers = [] if rewritten else [task for task in others if task.id not in (NULL_TASK, *edits) and not parse_path(task.path).caller]
        for task in strangers:
            name, fired = named_by_id(blob, task.id or "", wide.nodes, loose)
            if name is None:
                name = next((write.channel for write in task.writes if write.channel in wide.nodes), None)
            plans = [*plans, Planned(name, "pull", fired, inferred=True)]
        for ident, spaces in ({} if strangers else self.threads.subgraphs(blob.address.thread_id)).items():
            name, fired = named_by_id(blob, ident, [spaces[0].rpartition("|")[2].partition(":")[0]], loose)
            if name is not None:
                return [*plans, Planned(name, "pull", fired)], True
        if strangers:
            return plans, True
        return plans, not any(loose & channels for channels in wide.triggers.values())

    def _context(self, blob: Blob, above: Sequence[WriteRow]) -> Context:
        address = blob.address
        ran: frozenset[str] = frozenset()
        if blob.old:
            ran = frozenset(self.threads.learned(address).ran.get((address.checkpoint_ns, address.checkpoint_id), ()))
        return Context(
            more_joins=lambda: [channel for channel in self.threads.channels(address.thread_id) if channel.startswith("join:")],
            names=lambda: [target for channel in self.threads.channels(address.thread_id) if (target := channel.removeprefix("branch:to:")) != channel],
            lasted=lambda: any(source == "loop" for _, source in self.threads.children_of(address)),
            ran=ran,
            subgraphs=self.threads.subgraphs(address.thread_id),
            triggers=lambda plan: self._triggers(blob, plan, above),
        )

    def _triggers(self, blob: Blob, plan: Planned, above: Sequence[WriteRow]) -> tuple[Trigger, ...]:
        """The channels that start a task, each with its writers: rows under the parent, else what the channel's name says."""
        found = []
        for channel in plan.fired:
            rows = [row for row in above if row.channel == channel and row.idx >= 0]
            if channel == TASKS and plan.index is not None:
                rows = rows[plan.index : plan.index + 1] if len(rows) == len(blob.sends) else rows
            writers: list[Author] = []
            if channel == START and blob.source == "input":
                writers = [Author(START, None, "source")]
            for row in rows:
                if row.task_id == NULL_TASK:
                    writers.append(Author(START, row.task_id, "source"))
                elif parse_path(row.task_path).kind == "update":
                    writers.append(Author(editor_of(blob), row.task_id, "source"))
                else:
                    writers.append(Author(self._row_name(blob, row.task_id, row.task_path), row.task_id, "writes"))
            if not writers:
                names = spelled_sources(channel) or ((channel,) if not is_internal(channel) else ())
                writers = [Author(name, None, "versions") for name in names]
            found.append(Trigger(channel, tuple(dict.fromkeys(writers))))
        return tuple(found)

    def _row_name(self, blob: Blob, ident: str, path: str | None) -> str | None:
        """The node behind a row under the parent: its path says it, else the parent's own tasks do."""
        node = parse_path(path).node if parse_path(path).kind == "pull" else None
        if node is not None or blob.parent is None:
            return node
        return self._names_at(blob.parent).get(ident)

    def _names_at(self, address: Address) -> dict[str, str]:
        """task id -> name, of the tasks of a checkpoint."""
        with self._lock:
            kept: dict[str, str] | None = self._names.get(address)
        if kept is not None:
            return kept
        blob = self.reader.blob(address)
        names: dict[str, str] = {}
        if blob is not None and blob.readable:
            mine = group(self.reader.rows_at(address))
            plans, _ = self._plan(blob, mine, self.threads.learned(address) if blob.old else None)
            tasks, _ = join_tasks(blob, plans, mine, self._context(blob, ()))
            names = {task.id: task.name for task in tasks if task.id and task.name}
        with self._lock:
            return self._names.put(address, names)

    # -- changes ----------------------------------------------------------------------------------------------------------

    def with_authors(self, before: State | None, after: State, changes: Sequence[Change]) -> tuple[Change, ...]:
        """The changes that lead to `after`, each with who made it. `before` should be its stored parent (None for a root)."""
        if not changes:
            return ()
        blob = self.reader.blob(after.checkpoint.address)
        if blob is None:
            return tuple(changes)
        return tuple(attribute(changes, self._step(blob, before, after)))

    def unexplained(self, before: State | None, after: State, changes: Sequence[Change]) -> tuple[Problem, ...]:
        """Channels whose rows under the parent do not lead to the stored value although nobody else can have changed it."""
        where = after.checkpoint.address.checkpoint_id
        lost = {change.channel for change in changes if any(author.basis == "none" for author in change.authors)}
        parent = after.checkpoint.parent_checkpoint_id
        if not lost or before is None or before.checkpoint.checkpoint_id != parent or after.checkpoint.source != "loop":
            return ()
        written = {row.channel for row in self.reader.rows_at(before.checkpoint.address)}
        return tuple(
            Problem("unexplained-value", f"{where}/{channel}", f"the writes under the parent do not explain the value of {channel}")
            for channel in sorted(lost & written)
        )

    def _step(self, blob: Blob, before: State | None, after: State) -> Step:
        parent = blob.parent
        follows = before is None or before.checkpoint.address == parent
        above = self.reader.rows_at(parent) if (follows or blob.source == "fork") else ()
        own = [row for row in self.reader.rows_at(blob.address) if row.task_id == NULL_TASK]
        sibling = before is not None and before.checkpoint.parent_checkpoint_id == blob.raw.header.parent_checkpoint_id
        source = blob.source if follows or (sibling and blob.source in ("fork", "update")) else None
        if source == "input":
            editor = Author(START, None, "source")
        elif source in ("update", "fork"):
            editor = Author(editor_of(blob), None, "source")
        else:
            editor = Author(None, None, "none")

        def name_of(ident: str, path: str | None) -> str | None:
            return self._row_name(blob, ident, path)

        noted = noted_writes(blob.metadata) if follows and blob.source == "loop" else {}
        ids = {task.name: task.id for task in before.tasks} if before is not None else {}

        def only_task() -> Author | None:
            tasks = before.tasks if before is not None and blob.source == "loop" and follows and not above else ()
            return Author(tasks[0].name, tasks[0].id, "versions") if len(tasks) == 1 else None

        return Step(
            before=before.values if before is not None else {},
            after=after.values,
            writers=lambda channel: written_by_task(above if follows else (), channel, name_of),
            commanded=lambda channel: written_by_task(own, channel, name_of),
            noted=lambda channel: [
                Written(Author(name, ids.get(name), "writes"), values) for name, values in noted.get(channel, {}).items()
            ],
            source=source,
            editor=editor,
            sole_child=lambda: parent is not None and len(self.threads.children_of(parent)) < 2,
            only_task=only_task,
        )

    # -- whole threads ------------------------------------------------------------------------------------------------------

    def node_runs(
        self, thread_id: str, headers: Sequence[Checkpoint], rows: Sequence[WriteRow]
    ) -> dict[tuple[str, str], tuple[NodeRun, ...]]:
        """(ns, checkpoint id) -> the tasks that ran FROM that checkpoint, as far as the headers of its rows tell."""
        return run_nodes(headers, rows, lambda: self._names_of(headers), self._names_at, lambda: self._ran_in(thread_id, headers), thread_id)

    def _names_of(self, headers: Sequence[Checkpoint]) -> set[str]:
        """Nodes that the last checkpoint of each graph of a thread knows."""
        last = {static_ns(header.checkpoint_ns): header.address for header in headers}
        found: set[str] = set()
        for address in list(last.values())[-_GRAPHS_ASKED:]:
            blob = self.reader.blob(address)
            if blob is not None:
                found |= blob.nodes()
        return found

    def _ran_in(self, thread_id: str, headers: Sequence[Checkpoint]) -> dict[tuple[str, str], tuple[str, ...]]:
        """What `metadata.writes` of old releases says ran; {} where the thread is of a newer format."""
        if not headers:
            return {}
        first = self.reader.blob(headers[-1].address)
        if first is None or not first.old:
            return {}
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for ns in {header.checkpoint_ns for header in headers}:
            found.update(self.threads.learned(Address(thread_id, ns, "")).ran)
        return found

    def written_channels(self, rows: Iterable[WriteRow]) -> dict[tuple[str, str], tuple[str, ...]]:
        """(ns, checkpoint id) -> the state channels that rows under it were written to."""
        return written_channels(rows)

    def edges(self, thread_id: str) -> tuple[Edge, ...]:
        """Edges that this thread took, with how often; most travelled first."""
        headers = [header for _, header in self.store.checkpoints(thread_id)]
        return seen_edges(self.store, thread_id, lambda rows: self.node_runs(thread_id, headers, rows))


def editor_of(blob: Blob) -> str | None:
    """The node that an edit was written as, where the row tells."""
    written = blob.metadata.get("writes")
    if blob.source == "update" and isinstance(written, Mapping) and len(written) == 1:
        return next(iter(written))
    return None


def shared_ids(tasks: Sequence[Task], address: Address) -> list[Problem]:
    """Open questions of several tasks under one id cannot be answered by that id."""
    counts: dict[str, int] = {}
    for task in tasks:
        for ident in {question.id for question in task.interrupts if question.id and not question.answered}:
            counts[ident] = counts.get(ident, 0) + 1
    return [
        Problem("ambiguous-interrupt-id", address.checkpoint_id, f"{count} tasks ask under the one id {ident}: answer them by task")
        for ident, count in counts.items()
        if count > 1
    ]

