"""What a checkpoint schedules and who caused it: the plan, joined with rows, with the triggers of each task."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from studio.explain.blob import Blob
from studio.explain.cache import Bounded
from studio.explain.channels import NULL_TASK, TASKS, branch_target, is_internal, join_parts, members, spelled_sources
from studio.explain.ids import parse_path, update_ids
from studio.explain.reader import Reader
from studio.explain.rows import TaskRows, group
from studio.explain.schedule import Planned, planned, planned_old
from studio.explain.tasks import Context, from_rows_alone, join_tasks, named_by_id
from studio.explain.threads import Threads
from studio.model import START, Address, Author, Task, Trigger, WriteRow


class Planner:
    """Tasks of checkpoints. Thread-safe."""

    def __init__(self, reader: Reader, threads: Threads) -> None:
        self._reader = reader
        self._threads = threads
        self._lock = threading.RLock()
        self._names = Bounded(1024)

    def plan(self, blob: Blob, mine: Mapping[str, TaskRows]) -> tuple[list[Planned], bool]:
        """(what the checkpoint schedules, whether that is all)."""
        if not blob.old:
            plans = planned(blob)
            return [self._starter(blob, plan, mine) if plan.inferred else plan for plan in plans], blob.format is not None
        plans, loose = planned_old(blob, self._threads.learned(blob.address))
        return self._followed(blob, plans, mine, loose) if loose else (plans, True)

    def tasks(self, blob: Blob, mine: Mapping[str, TaskRows], above: Sequence[WriteRow]) -> tuple[list[Task], list[Task], bool]:
        """(tasks with what they have done, others with rows here, whether the tasks are all that is scheduled)."""
        context = self._context(blob, above)
        if not blob.readable:
            return from_rows_alone(blob, mine, context), [], False
        plans, known = self.plan(blob, mine)
        tasks, others = join_tasks(blob, plans, mine, context)
        return [self._answered(blob, task) for task in tasks], others, known

    def _answered(self, blob: Blob, task: Task) -> Task:
        """A question that came up from a subgraph has its answer there."""
        if not task.subgraph_ns or not any(one.answered and one.answer is None for one in task.interrupts):
            return task
        known = self._threads.answers(blob.address.thread_id)
        asked = [
            replace(one, answer=known.get(one.id or "")) if one.answered and one.answer is None else one
            for one in task.interrupts
        ]
        return replace(task, interrupts=tuple(asked))

    def _starter(self, blob: Blob, plan: Planned, mine: Mapping[str, TaskRows]) -> Planned:
        """The first task of a thread: `__start__` of a graph, or an entrypoint, whose name its rows or later checkpoints tell."""
        paths = [task.parsed.node for task in mine.values() if task.is_task and task.parsed.kind == "pull"]
        if paths:
            return Planned(START if START in paths else paths[0], "pull", plan.fired)
        tasks, _ = join_tasks(blob, [plan], mine, self._context(blob, ()))
        if tasks[0].id in mine:
            return Planned(START, "pull", plan.fired)
        for child, _ in self._threads.children_of(blob.address)[:1]:
            after = self._reader.blob(Address(blob.address.thread_id, blob.address.checkpoint_ns, child))
            names = [name for name, seen in after.seen.items() if START in seen] if after is not None else []
            if names:
                return Planned(names[0], "pull", plan.fired, inferred=names[0] != START)
        return plan

    def _followed(
        self, blob: Blob, plans: list[Planned], mine: Mapping[str, TaskRows], loose: set[str]
    ) -> tuple[list[Planned], bool]:
        """Formats 1 and 2, where a node just ran whose followers this thread never reached.

        Rows here prove that one runs; its name is proven by its id, or told by the channel of its name, or stays unknown. Without
        rows the node was the last one, unless other threads of the file show that something can follow it.
        """
        wide = self._threads.learned_widely(blob.address)
        _, others = join_tasks(blob, plans, mine, self._context(blob, ()))
        edits = update_ids(blob.address.checkpoint_id)
        rewritten = blob.parent == blob.address  # one row for all steps of a subgraph: its writes are of every step
        strangers = [] if rewritten else [task for task in others if task.id not in (NULL_TASK, *edits)]
        for task in strangers:
            name, fired = named_by_id(blob, task.id or "", wide.nodes, loose)
            if name is None:
                name = next((write.channel for write in task.writes if write.channel in wide.nodes), None)
            plans = [*plans, Planned(name, "pull", fired, inferred=True)]
        for ident, spaces in ({} if strangers else self._threads.subgraphs(blob.address.thread_id)).items():
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
            ran = frozenset(self._threads.learned(address).ran.get((address.checkpoint_ns, address.checkpoint_id), ()))

        def written() -> frozenset[str]:
            return self._threads.channels(address.thread_id)

        by_channel: dict[str, list[WriteRow]] = {}
        for row in above:
            if row.idx >= 0:
                by_channel.setdefault(row.channel, []).append(row)
        return Context(
            more_joins=lambda: [channel for channel in written() if join_parts(channel) is not None],
            names=lambda: [target for target in map(branch_target, written()) if target is not None],
            lasted=lambda: any(source == "loop" for _, source in self._threads.children_of(address)),
            ran=ran,
            subgraphs=lambda: self._threads.subgraphs(address.thread_id),
            triggers=lambda plan: self._triggers(blob, plan, by_channel),
        )

    def _triggers(self, blob: Blob, plan: Planned, above: Mapping[str, Sequence[WriteRow]]) -> tuple[Trigger, ...]:
        """The channels that start a task, each with its writers: rows under the parent, else what the channel's name says."""
        found = []
        for channel in plan.fired:
            rows = above.get(channel, ())
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
                    writers.append(Author(self.row_name(blob, row.task_id, row.task_path), row.task_id, "writes"))
            if not writers and blob.source in ("update", "fork"):
                writers = [Author(editor_of(blob), None, "source")]
            elif not writers or join_parts(channel) is not None:  # a join may have been entered in earlier steps
                known = {author.node for author in writers}
                stored = members(blob.values.get(channel)) or ()
                names = spelled_sources(channel, stored) or ((channel,) if not is_internal(channel) else ())
                writers.extend(Author(name, None, "versions") for name in names if name not in known)
            found.append(Trigger(channel, tuple(dict.fromkeys(writers))))
        return tuple(found)

    def row_name(self, blob: Blob, ident: str, path: str | None) -> str | None:
        """The node behind a row under the parent: its path says it, else the parent's own tasks do."""
        node = parse_path(path).node if parse_path(path).kind == "pull" else None
        if node is not None or blob.parent is None:
            return node
        return self.names_at(blob.parent).get(ident)

    def names_at(self, address: Address) -> dict[str, str]:
        """task id -> name, of the tasks of a checkpoint."""
        with self._lock:
            kept: dict[str, str] | None = self._names.get(address)
        if kept is not None:
            return kept
        blob = self._reader.blob(address)
        names: dict[str, str] = {}
        if blob is not None and blob.readable:
            mine = group(self._reader.rows_at(address))
            names = {task.id: task.name for task in self.tasks(blob, mine, ())[0] if task.id and task.name}
        with self._lock:
            return self._names.put(address, names)


def editor_of(blob: Blob) -> str | None:
    """The node that an edit was written as, where the row tells."""
    written = blob.metadata.get("writes")
    if blob.source == "update" and isinstance(written, Mapping) and len(written) == 1:
        return str(next(iter(written)))
    return None
