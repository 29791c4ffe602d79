"""From a task to the subgraph runs that it started, and from a checkpoint of a subgraph back to the task that called it.

The checkpoints of a subgraph name the checkpoint that it was called from, for every namespace around it (`metadata.parents`).
This holds in each turn of a subgraph with its own memory too, whose one namespace all of its runs share.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from studio.errors import RefError
from studio.history.namespaces import enclosing, ns_node, ns_task_id
from studio.model import Address, State, Task

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

MOST_LOOKED_AT = 200
"""Checkpoints of a namespace that several tasks shared which are opened to find those of one call."""


class Caller(Struct, frozen=True):
    """The task that a subgraph was called by, and the checkpoint it ran from."""

    address: Address
    task_id: str | None
    name: str | None


class SubgraphRun(Struct, frozen=True):
    """The checkpoints of one call of a subgraph, in the order of the tree."""

    checkpoint_ns: str
    first: Address
    last: Address
    count: int


def caller_of(session: Session, state: State) -> Caller | None:
    """The task that called the subgraph which a checkpoint belongs to; None in the root graph, or where it is not here."""
    here = state.checkpoint.address
    if not here.checkpoint_ns:
        return None
    tree = session.tree(here.thread_id)
    at = named_caller(tree, here, state.metadata) or tree.caller(here)
    if at is None:
        return None
    ident = ns_task_id(here.checkpoint_ns)
    try:
        tasks = session.state(at).tasks
    except RefError:
        tasks = ()
    for task in (one for top in tasks for one in (*top.calls, top)):
        if task.id == ident or here.checkpoint_ns in task.subgraph_ns:
            return Caller(at, task.id, task.name)
    return Caller(at, ident, ns_node(here.checkpoint_ns))


def named_caller(tree: CheckpointTree, here: Address, metadata: Mapping[str, object]) -> Address | None:
    """The innermost checkpoint around a subgraph's that its metadata names, of those that are in the tree."""
    named = metadata.get("parents")
    if not isinstance(named, Mapping):
        return None
    for ns in enclosing(here.checkpoint_ns):
        ident = named.get(ns)
        found = Address(here.thread_id, ns, ident) if isinstance(ident, str) else None
        if found is not None and found in tree:
            return found
    return None


def runs_of(session: Session, caller: Address, task: Task) -> tuple[SubgraphRun, ...]:
    """The subgraph runs that a task started from a checkpoint, those of the calls inside it included."""
    spaces = dict.fromkeys(ns for one in (task, *task.calls) for ns in one.subgraph_ns if ns)
    if not spaces:
        return ()  # without a look at the whole thread
    tree = session.tree(caller.thread_id)
    found = []
    for ns in spaces:
        rows = [Address(caller.thread_id, *key) for key in tree.keys(ns)]
        if ns_task_id(ns) is None:
            rows = _called_from(session, tree, caller, rows)
        if rows:
            found.append(SubgraphRun(ns, rows[0], rows[-1], len(rows)))
    return tuple(found)


def _called_from(session: Session, tree: CheckpointTree, caller: Address, rows: Sequence[Address]) -> list[Address]:
    """Of the rows of a subgraph with its own memory, those of the calls from one checkpoint.

    The time only says where to begin to look; the rows themselves name their caller.
    """
    by_time = sorted(rows, key=lambda one: tree.header(one).created_at or "")
    begin = bisect_left([tree.header(one).created_at or "" for one in by_time], tree.header(caller).created_at or "")
    near = by_time[begin : begin + MOST_LOOKED_AT]
    mine = {one for one in near if named_caller(tree, one, session.state(one).metadata) == caller}
    return [one for one in rows if one in mine]
