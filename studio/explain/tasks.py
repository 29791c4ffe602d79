"""Tasks of a checkpoint: what it schedules, joined with the rows that each task has stored so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from studio.explain.blob import Blob
from studio.explain.channels import NULL_TASK, RESUME, join_parts
from studio.explain.ids import TaskPath, handler_id, parse_path, pull_path, push_path, task_id, update_ids
from studio.explain.interrupts import earlier_answers, questions
from studio.explain.rows import TaskRows, row_value
from studio.explain.schedule import Planned, triggers_of
from studio.lazy import lazy
from studio.model import Status, Task, TaskStatus, Trigger, Value, Write
from studio.render import preview
from studio.value import Opaque

CALLER = lazy(r"(?:.*:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\|\d+)*\|)?", re.DOTALL)
"""The namespace of a calling task, up to where the name of the call begins."""
MOST_JOINS = 4
"""Joins left out when an id is searched: 2^4 tries at most."""


class Context(Struct):
    """What joining needs beside the plan and the rows.

    `more_joins`: join channels of this graph seen elsewhere in the thread; asked only when an id does not fit without them.
    `names`: nodes that may stand behind a row that nothing else names. `ran`: names that a child says ran (formats 1 and 2).
    `lasted`: whether a later step was made from this checkpoint; asked only where an error and a result stand side by side.
    `subgraphs`: task id, or the namespace of a subgraph with its own memory -> namespaces. `triggers`: who started a task.
    """

    more_joins: Callable[[], Iterable[str]]
    names: Callable[[], Iterable[str]]
    lasted: Callable[[], bool]
    ran: frozenset[str] = frozenset()
    subgraphs: Callable[[], Mapping[str, tuple[str, ...]]] = dict
    triggers: Callable[[Planned], tuple[Trigger, ...]] = lambda plan: tuple(Trigger(channel) for channel in plan.fired)


class _Slot(Struct):
    plan: Planned
    id: str | None = None
    rows: TaskRows | None = None
    proven: bool = False


def join_tasks(
    blob: Blob, plans: Sequence[Planned], rows: Mapping[str, TaskRows], context: Context
) -> tuple[list[Task], list[Task]]:
    """(tasks scheduled from the checkpoint, in their order; others that have rows here: edits, late rows, the null task)."""
    free = {ident: task for ident, task in rows.items() if task.is_task}
    slots = [_Slot(plan) for plan in plans]
    for slot in slots:
        by_hash(blob, slot, free)
    for slot in slots:
        if slot.rows is None:
            by_path(slot, free)
    if any(slot.rows is None for slot in slots) and any(is_loose(task) for task in free.values()):
        for slot in slots:
            if slot.rows is None:
                by_hash(blob, slot, free, tuple(context.more_joins()))
        by_own_channel(blob, slots, free)
        by_elimination(blob, slots, free, context)
    shared = rows[NULL_TASK].resumes() if NULL_TASK in rows else []
    tasks = [finished_task(blob, slot, shared, context) for slot in slots]
    if free:
        by_caller = calls(free, blob, shared, context)
        tasks = [with_calls(task, by_caller) for task in tasks]
        tasks.extend(handlers(blob, free, tasks, shared, context))
    others = [other_task(blob, task, shared, context) for ident, task in rows.items() if ident in free or not task.is_task]
    return tasks, others


def is_loose(task: TaskRows) -> bool:
    """A row group that belongs to some scheduled task, though its path does not say to which."""
    return task.parsed.kind in ("none", "update")


def by_hash(blob: Blob, slot: _Slot, free: dict[str, TaskRows], more: Sequence[str] = ()) -> None:
    """Take the rows whose id is the one LangGraph computes for this task; without rows, keep that id as the likeliest."""
    plan, address, step = slot.plan, blob.address, blob.step
    if plan.name is None or step is None or blob.format is None or is_persistent(address.checkpoint_ns):
        return
    tries: list[tuple[int, list[str] | int]] = []
    if plan.kind == "push":
        tries = [(fmt, plan.index or 0) for fmt in formats(blob)]
    elif blob.old:
        tries = [(fmt, list(plan.fired)) for fmt in formats(blob) if plan.fired]
    else:
        known = triggers_of(blob, plan.name, more)
        tries = [(blob.format, sorted(known))]
        joins = sorted(channel for channel in known if join_parts(channel))[:MOST_JOINS]
        if free and joins:
            sizes = range(1, len(joins) + 1)
            tries += [(blob.format, sorted(known.difference(less))) for size in sizes for less in combinations(joins, size)]
    for at, (fmt, tail) in enumerate(tries):
        try:
            ident = task_id(fmt, address.checkpoint_id, address.checkpoint_ns, plan.name, step + 1, plan.kind, tail)
        except ValueError:
            return
        if at == 0 and slot.id is None and blob.raw.tag != "json" and blob.raw.tag is not None:
            slot.id = ident
        if ident in free:
            slot.id, slot.rows, slot.proven = ident, free.pop(ident), True
            return


def formats(blob: Blob) -> tuple[int, ...]:
    """Hashes to try: format 2 files were also run by releases that hash as format 3 does."""
    assert blob.format is not None
    return (blob.format,) if blob.format != 2 else (2, 3)


def named_by_id(blob: Blob, ident: str, names: Iterable[str], channels: Iterable[str]) -> tuple[str | None, tuple[str, ...]]:
    """Formats 1 and 2: (name, channels) of the task that one of `channels`, or all of them, started under this id."""
    single = sorted(channels)
    ways = [(channel,) for channel in single] + ([tuple(single)] if len(single) > 1 else [])
    address, step = blob.address, blob.step
    if step is not None and not is_persistent(address.checkpoint_ns):
        for fmt in formats(blob):
            for name in names:
                for way in ways:
                    try:
                        if task_id(fmt, address.checkpoint_id, address.checkpoint_ns, name, step + 1, "pull", way) == ident:
                            return name, way
                    except ValueError:
                        return None, ()
    return None, ()


def is_persistent(ns: str) -> bool:
    """A namespace that names no task somewhere: a subgraph with its own memory. Ids in it hash a namespace that is not stored."""
    return any(":" not in part and not part.isdigit() for part in ns.split("|")) if ns else False


def by_path(slot: _Slot, free: dict[str, TaskRows]) -> None:
    plan = slot.plan
    for ident, task in free.items():
        path = task.parsed
        if path.kind == plan.kind and (path.node == plan.name if plan.kind == "pull" else path.index == plan.index):
            slot.id, slot.rows, slot.proven = ident, free.pop(ident), True
            return


def by_own_channel(blob: Blob, slots: list[_Slot], free: dict[str, TaskRows]) -> None:
    """In formats 1 and 2 each node writes the channel that bears its name."""
    if not blob.old:
        return
    for slot in slots:
        if slot.rows is None and slot.plan.name is not None:
            ident = next((ident for ident, task in free.items() if is_loose(task) and slot.plan.name in task.channels()), None)
            if ident is not None:
                slot.id, slot.rows = ident, free.pop(ident)


def by_elimination(blob: Blob, slots: list[_Slot], free: dict[str, TaskRows], context: Context) -> None:
    """One task without rows and one group of rows without a task belong together, unless the rows are an edit's."""
    edits = set(update_ids(blob.address.checkpoint_id))
    groups = [ident for ident, task in free.items() if is_loose(task) and ident not in edits and task.parsed.kind != "update"]
    empty = [slot for slot in slots if slot.rows is None]
    if len(groups) == 1 and len(empty) == 1:
        empty[0].id, empty[0].rows = groups[0], free.pop(groups[0])
        empty[0].plan = replace(empty[0].plan, inferred=True)


def status_of(task: TaskRows | None, asked: bool, lasted: Callable[[], bool]) -> TaskStatus:
    """What the rows of a task say about it. A result beside an error counts as a failure unless a later step was made of it."""
    if task is None:
        return "pending"
    if task.error is not None:
        return "done" if task.finished and (task.updated or lasted()) else "failed"
    if task.finished:
        return "done"
    return "paused" if asked else "pending"


def error_text(task: TaskRows) -> str | None:
    if task.error is None:
        return None
    value = row_value(task.error)
    if isinstance(value, Opaque):
        return f"(unreadable: {value.reason})"
    return value if isinstance(value, str) else preview.summary(value, 2_000)


def own_ns(ns: str, name: str | None, ident: str | None) -> str | None:
    """The namespace that a subgraph of this task runs in."""
    if name is None or ident is None:
        return None
    return f"{ns}|{name}:{ident}" if ns else f"{name}:{ident}"


def spaces_of(context: Context, ns: str, name: str | None, ident: str | None) -> tuple[str, ...]:
    """Namespaces of a task's subgraphs: of this very task, or those with their own memory that all its runs share."""
    known = context.subgraphs()
    if not known:
        return ()
    found = known.get(ident or "", ())
    shared = known.get(f"{ns}|{name}" if ns else name, ()) if name else ()
    return (*found, *shared)


def finished_task(blob: Blob, slot: _Slot, shared: list[Value], context: Context) -> Task:
    plan, rows = slot.plan, slot.rows
    ns = own_ns(blob.address.checkpoint_ns, plan.name, slot.id)
    asked = questions(rows, ns, shared, old=blob.old) if rows is not None else ()
    status = status_of(rows, any(not question.answered for question in asked), context.lasted)
    if status == "pending" and rows is None and plan.name in context.ran:
        status = "done"
    path = rows.path if rows is not None and rows.parsed.kind == plan.kind else None
    if path is None and plan.name is not None:
        path = pull_path(plan.name) if plan.kind == "pull" else push_path(plan.index or 0)
    return Task(
        id=slot.id,
        name=plan.name,
        path=path,
        status=status,
        error=error_text(rows) if rows is not None else None,
        triggers=context.triggers(plan),
        interrupts=asked,
        writes=rows.writes() if rows is not None else (),
        subgraph_ns=spaces_of(context, blob.address.checkpoint_ns, plan.name, slot.id) if rows is not None else (),
        inferred=plan.inferred and not slot.proven,
        arg=plan.arg,
        earlier_answers=earlier_answers(rows, asked) if rows is not None else (),
    )


def calls(free: dict[str, TaskRows], blob: Blob, shared: list[Value], context: Context) -> dict[str, list[tuple[str, Task]]]:
    """Path of the caller -> (own path, task) of `@task` calls, taken out of `free`.

    The name of a call stands only in the namespace of a subgraph that it ran.
    """
    found: dict[str, list[tuple[str, Task]]] = {}
    for ident in [ident for ident, task in free.items() if task.parsed.kind == "call"]:
        rows = free.pop(ident)
        asked = questions(rows, None, shared, old=blob.old)
        status = status_of(rows, any(not question.answered for question in asked), lambda: False)
        spaces = context.subgraphs().get(ident, ())
        name = called_name(spaces[0], ident) if spaces else None
        task = Task(ident, name, rows.path, status, error_text(rows), (), asked, rows.writes(), spaces)
        found.setdefault(rows.parsed.caller or "", []).append((call_key(rows.path or ""), task))
    for group in found.values():
        group.sort(key=lambda pair: pair[0])
    return found


def called_name(ns: str, ident: str) -> str | None:
    """`work:ID|look up:IDENT` -> `look up`: what stands after the namespace of the task that called it."""
    before, found, _ = ns.partition(f":{ident}")
    caller = CALLER.match(before)
    return before[caller.end() :] or None if found and caller is not None else None


def call_key(path: str) -> str:
    """A call's path as it stands inside the path of what it calls: without the last part, which only marks a call."""
    return path.rsplit(", ", 1)[0]


def with_calls(task: Task, by_caller: Mapping[str, list[tuple[str, Task]]], depth: int = 0) -> Task:
    """Hang the calls below the task that made them; calls nest."""
    keys = {task.path or "", call_key(task.path or "")} if depth else {task.path or ""}
    mine = [call for key in keys for _, call in by_caller.get(key, ())]
    return replace(task, calls=tuple(with_calls(call, by_caller, depth + 1) for call in mine)) if mine and depth < 50 else task


def handlers(blob: Blob, free: dict[str, TaskRows], tasks: Sequence[Task], shared: list[Value], context: Context) -> list[Task]:
    """Error handlers that took over from a failed task of this step; they run inside that task's namespace."""
    found = []
    for ident in [ident for ident, task in free.items() if task.parsed.kind == "handler"]:
        rows = free.pop(ident)
        name, ns = handler_name(blob, ident, tasks, context)
        asked = questions(rows, own_ns(ns, name, ident), shared)
        status = status_of(rows, any(not question.answered for question in asked), context.lasted)
        spaces = context.subgraphs().get(ident, ())
        found.append(Task(ident, name, rows.path, status, error_text(rows), (), asked, rows.writes(), spaces, inferred=True))
    return found


def handler_name(blob: Blob, ident: str, tasks: Sequence[Task], context: Context) -> tuple[str | None, str]:
    """(name, namespace) of an error handler, both proven by its id; (None, "") when nothing fits."""
    address, step = blob.address, blob.step
    if step is None or blob.format is None or is_persistent(address.checkpoint_ns):
        return None, ""
    given = [f"__error_handler__{task.name}" for task in tasks if task.error is not None]  # the names LangGraph gives
    for task in tasks:
        ns = own_ns(address.checkpoint_ns, task.name, task.id)
        if ns is None or task.id is None:
            continue
        for name in dict.fromkeys((*given, "__default_error_handler__", *blob.nodes(), *context.names())):
            try:
                if handler_id(blob.format, address.checkpoint_id, ns, name, step + 1, task.id) == ident:
                    return name, ns
            except ValueError:
                return None, ""
    return None, ""


def other_task(blob: Blob, rows: TaskRows, shared: list[Value], context: Context) -> Task:
    """Rows that belong to nothing scheduled here, shown as what they are."""
    path: TaskPath = rows.parsed
    name = path.node if path.kind == "pull" else None
    asked = questions(rows, None, [], old=blob.old) if not rows.is_null else ()
    status: TaskStatus = "unknown"
    if rows.is_task:
        status = status_of(rows, any(not question.answered for question in asked), context.lasted)
    writes = rows.writes() + tuple(Write(RESUME, answer) for answer in (rows.resumes() if rows.is_null else ()))
    spaces = context.subgraphs().get(rows.id, ())
    return Task(rows.id, name, rows.path, status, error_text(rows), (), asked, writes, spaces, inferred=name is not None)


def from_rows_alone(blob: Blob, rows: Mapping[str, TaskRows], context: Context) -> list[Task]:
    """Tasks of a checkpoint that cannot be read: what the paths of its rows name."""
    found = []
    for task in rows.values():
        if task.is_task and task.parsed.kind in ("pull", "push", "none"):
            name = task.parsed.node
            asked = questions(task, own_ns(blob.address.checkpoint_ns, name, task.id), [])
            status = status_of(task, any(not question.answered for question in asked), context.lasted)
            spaces = context.subgraphs().get(task.id, ())
            found.append(Task(task.id, name, task.path, status, error_text(task), (), asked, task.writes(), spaces))
    return found


def live_status(tasks: Sequence[Task], known: bool) -> Status:
    """Where a thread stands whose head has these tasks; `known` is False where `next` is not. An open question is never done."""
    if any(task.status == "failed" for task in tasks):
        if not any(parse_path(task.path).kind == "handler" and task.status == "done" for task in tasks):
            return "failed"
    if any(task.status == "paused" or any(call.status == "paused" for call in task.calls) for task in tasks):
        return "paused"
    if not known:
        return "unknown"
    return "ready" if tasks else "done"
