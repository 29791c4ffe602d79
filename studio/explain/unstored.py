"""Subgraphs that ran although this store holds no checkpoint of them, told by what they left with the task that called them.

A subgraph that keeps nothing leaves no trace when it ends, and then nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from studio.explain.ids import interrupt_id
from studio.explain.interrupts import as_list, parts
from studio.explain.rows import TaskRows, row_value
from studio.explain.tasks import own_ns
from studio.history.namespaces import outer_namespace
from studio.lazy import lazy
from studio.model import START, Task

_HASH = lazy(r"[0-9a-f]{32}\Z")
_MOST_ASKED = 16
"""Questions of one task that are tried as its own."""


def implied(stored: Collection[str], written: Collection[str]) -> Mapping[str, str]:
    """Namespace without a checkpoint -> what names it: the namespaces below it, or rows of `writes`."""
    found: dict[str, str] = {}
    for ns in written:
        if ns and ns not in stored:
            found[ns] = "there are writes of it"
    for ns in stored:
        up = outer_namespace(ns)
        while up and up not in found:
            if up not in stored:
                found[up] = f"the subgraph {ns} ran inside it"
            up = outer_namespace(up)
    return found


def evidence(task: Task, rows: TaskRows | None, ns: str, named: Mapping[str, str], shared: Collection[str]) -> str:
    """Why a subgraph of this task must have run whose checkpoints are not stored; "" where nothing says so.

    `ns` is the namespace of the task's checkpoint, `named` what `implied` found, `shared` ids of questions of several tasks.
    """
    if task.subgraph_ns:
        return ""
    own = own_ns(ns, task.name, task.id)
    if own is None:
        return ""
    for name, why in named.items():
        if name == own or name.startswith(own + "|"):
            return why
    for row in rows.questions if rows is not None else ():
        for item in as_list(row_value(row)):
            path = parts(item).get("ns")
            if (
                isinstance(path, list)
                and len(path) > own.count("|") + 1
                and own == "|".join(map(str, path[: own.count("|") + 1]))
            ):
                return "a question was asked inside it"
    calls = any(trigger.channel == START for trigger in task.triggers)  # an entrypoint, whose `@task` calls ask for themselves
    if task.inferred or calls:
        return ""
    idents = {one.id for one in task.interrupts if one.id is not None and _HASH.match(one.id) and one.id not in shared}
    if not idents or not idents.difference(interrupt_id(own, asked) for asked in range(_MOST_ASKED)):
        return ""
    return "a question was asked by something inside this task, not by the node itself"
