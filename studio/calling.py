"""From a task to the subgraph runs that it started, and from a checkpoint of a subgraph back to the task that called it.

The checkpoints of a subgraph name the checkpoint that it was called from, for every namespace around it (`metadata.parents`).
This holds in each turn of a subgraph with its own memory too, whose one namespace all of its runs share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from studio.cache import LRU
from studio.errors import RefError
from studio.history.namespaces import enclosing, ns_node, ns_task_id
from studio.model import Address, State, Task
from studio.value import decode_metadata

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

CALLERS_KEPT, THREADS_KEPT = 256, 8


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


class Calls:
    """The callers and the calls of the threads of a session. Of no use after the file changed: then it is made anew."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._callers: LRU[tuple[Address, str], Caller] = LRU(CALLERS_KEPT)
        self._rows: LRU[str, _Rows] = LRU(THREADS_KEPT)

    def caller(self, state: State) -> Caller | None:
        """The task that called the subgraph which a checkpoint belongs to; None in the root graph, or where it is not here."""
        here = state.checkpoint.address
        if not here.checkpoint_ns:
            return None
        tree = self._session.tree(here.thread_id)
        at = _first_in(tree, here, _named(state.metadata, here.checkpoint_ns)) or tree.caller(here)
        if at is None:
            return None
        found = self._callers.get((at, here.checkpoint_ns))
        if found is None:
            found = self._task_at(at, here.checkpoint_ns)
            self._callers.put((at, here.checkpoint_ns), found)
        return found

    def _task_at(self, at: Address, ns: str) -> Caller:
        ident = ns_task_id(ns)
        try:
            tasks = self._session.state(at).tasks
        except RefError:
            tasks = ()
        for task in (one for top in tasks for one in (*top.calls, top)):
            if task.id == ident or ns in task.subgraph_ns:
                return Caller(at, task.id, task.name)
        return Caller(at, ident, ns_node(ns))

    def runs(self, caller: Address, task: Task) -> tuple[SubgraphRun, ...]:
        """The subgraph runs that a task started from a checkpoint, those of the calls inside it included."""
        spaces = dict.fromkeys(ns for one in (task, *task.calls) for ns in one.subgraph_ns if ns)
        if not spaces:
            return ()  # without a look at the whole thread
        rows = self._rows_of(caller.thread_id)
        found = []
        for ns in spaces:
            ids = rows.of(ns) if ns_task_id(ns) is not None else rows.called_from(self._session, caller, ns)
            if ids:
                first, last = (Address(caller.thread_id, ns, ident) for ident in (ids[0], ids[-1]))
                found.append(SubgraphRun(ns, first, last, len(ids)))
        return tuple(found)

    def _rows_of(self, thread_id: str) -> _Rows:
        tree = self._session.tree(thread_id)
        found = self._rows.get(thread_id)
        if found is None or found.count != len(tree):
            found = _Rows(tree)
            self._rows.put(thread_id, found)
        return found


class _Rows:
    """The checkpoints of each namespace of a thread, and in one that several tasks shared those of each call."""

    def __init__(self, tree: CheckpointTree) -> None:
        keys = tree.keys()
        self.count = len(keys)
        self._tree = tree
        self._ids: dict[str, list[str]] = {}
        for ns, ident in keys:
            self._ids.setdefault(ns, []).append(ident)
        self._calls: dict[str, dict[Address, list[str]]] = {}

    def of(self, ns: str) -> Sequence[str]:
        return self._ids.get(ns, ())

    def called_from(self, session: Session, caller: Address, ns: str) -> Sequence[str]:
        """Of a subgraph with its own memory, those of the calls from one checkpoint.

        Only their metadata names it, which is read in one pass over the namespace.
        """
        calls = self._calls.get(ns)
        if calls is None:
            calls, thread = {}, self._tree.thread_id
            named = session.overlay.metadata(thread, ns, lambda stored: _named(decode_metadata(stored), ns))
            for ident in self.of(ns):
                at = _first_in(self._tree, Address(thread, ns, ident), named.get(ident, ()))
                if at is not None:
                    calls.setdefault(at, []).append(ident)
            self._calls[ns] = calls
        return calls.get(caller, ())


def _named(metadata: Mapping[str, object], ns: str) -> tuple[str | None, ...]:
    """The checkpoints that the metadata of a subgraph's names, one for each of the namespaces that may be `enclosing` it."""
    named = metadata.get("parents")
    if not isinstance(named, Mapping):
        return ()
    return tuple(ident if isinstance(ident := named.get(outer), str) else None for outer in enclosing(ns))


def _first_in(tree: CheckpointTree, here: Address, named: Sequence[str | None]) -> Address | None:
    """The innermost of the checkpoints around a subgraph's that is in the tree."""
    for ns, ident in zip(enclosing(here.checkpoint_ns), named, strict=False):
        found = Address(here.thread_id, ns, ident) if ident is not None else None
        if found is not None and found in tree:
            return found
    return None
