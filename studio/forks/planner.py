"""What a fork copies: one draft per checkpoint, edited as was asked, before anything is stored.

A plan is made of drafts: one for a fork in the root graph, one per level for a fork inside a subgraph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from studio import value
from studio.errors import PatchError, RefError
from studio.explain import channels
from studio.explain.blob import send_parts
from studio.explain.ids import parse_path
from studio.forks import copy, goto, needs, patch, shape, subgraph, warnings
from studio.forks.copy import Draft
from studio.forks.plan import Finished, Level, Plan
from studio.forks.scratch import Scratch
from studio.forks.writing import check_writable
from studio.history.namespaces import ns_node, ns_task_id
from studio.model import Address, Checkpoint, RawCheckpoint, State, Task, Value, WriteRow
from studio.requests import ForkRequest
from studio.stores.base import Store

if TYPE_CHECKING:
    from studio.explain import Explainer

_NO_RESULT = frozenset({channels.ERROR, channels.ERROR_SOURCE, channels.INTERRUPT, channels.RESUME})
"""Rows of a task that are no result of it."""


class Planner:
    """Plans forks of one opened store, the overlay of base and scratch. It only reads."""

    def __init__(self, store: Store, explainer: Explainer, scratch: Scratch) -> None:
        self._store = store
        self._explainer = explainer
        self._scratch = scratch
        self._held: tuple[str, object, list[Checkpoint], list[WriteRow]] | None = None
        """Headers of the thread asked about last: a preview is asked again at each key stroke."""

    def context(self, address: Address) -> tuple[dict[str, Value], list[Checkpoint], list[WriteRow]]:
        """(the open record of a checkpoint, all headers and all write headers of its thread)."""
        record = copy.open_record(self.raw(address))
        token = self._store.token()
        held = self._held
        if held is None or held[:2] != (address.thread_id, token):
            headers = [header for _, header in self._store.checkpoints(address.thread_id)]
            writes = [row for _, row in self._store.write_headers(address.thread_id)]
            held = self._held = (address.thread_id, token, headers, writes)
        return record, held[2], held[3]

    def raw(self, address: Address) -> RawCheckpoint:
        """Raises RefError: not there."""
        found = self._store.raw([address]).get(address)
        if found is None:
            raise RefError(f"There is no checkpoint {address.checkpoint_id} in thread {address.thread_id!r}.")
        return found

    def plan(self, request: ForkRequest) -> Plan:
        """Drafts of all that a fork copies, already edited. Raises PatchError: refused; RefError: not there."""
        if request.is_update:
            raise PatchError("Writing as a node needs your graph: a run does it, not the fork recipes.", "", "needs-graph")
        address = request.address
        check_writable(address)
        raw = self.raw(address)
        record, headers, writes = self.context(address)
        thread_id = self.target_thread(request)
        state = self._explainer.state(address)
        if request.in_place and raw.header.origin == "scratch" and not self._scratch.is_store:
            raise PatchError(
                "This checkpoint is in the scratch file, and its branch is not in your own file.",
                "Fork it in the scratch file, or fork the checkpoint it came from in place.",
                "not-in-base",
            )
        levels = self._levels(raw, record, thread_id, headers, writes, request.keep)
        level = levels[-1]
        draft = level.draft
        rebuilt, certainty = _rebuilt(state, record, writes)
        before = patch.values_to_edit(draft, rebuilt)
        learned = shape.learn(self._store, address, record["v"], headers, writes, request.goto)
        if request.patch:
            patch.apply(draft, request.patch, rebuilt, certainty)
        next_nodes: tuple[str | None, ...] | None = state.next
        notes: list[str] = []
        if request.goto is not None:
            next_nodes, notes = goto.apply(draft, request.goto, learned)
        elif channels.TASKS in draft.edited:
            next_nodes = _next_with(draft, state)
        level.chain = self._chain(level, headers)
        acts = [name for name, done in (("set", bool(request.patch)), ("goto", request.goto is not None)) if done]
        plan = Plan(
            request,
            state,
            levels,
            "subgraph" if address.checkpoint_ns and len(levels) > 1 else "+".join(acts) or "copy",
            {**{name: kept for name, kept in rebuilt.items() if name not in draft.edited}, **_plain_values(draft)},
            next_nodes,
            notes,
            max((header.checkpoint_id for header in headers), default=""),
            moved_thread=thread_id != address.thread_id,
        )
        if record["v"] < 3 and not request.in_place and not plan.moved_thread:
            plan.also = self._teachers(address, headers)
        plan.warnings = warnings.collect(
            request,
            state,
            draft,
            before,
            plan.values,
            learned,
            notes,
            writes,
            memories=any(one.memory for one in levels),
            levels=len(levels),
            newest=plan.newest,
            routes=shape.routes(writes, address.checkpoint_ns),
        )
        return plan

    def target_thread(self, request: ForkRequest) -> str:
        """The thread that a fork goes to. PatchError: no name for a new one."""
        wanted = request.new_thread
        if wanted is None:
            return request.address.thread_id
        if not wanted or "\0" in wanted:
            raise PatchError("A new thread needs a name.", "", "bad-thread")
        if self._store.checkpoints(wanted):
            raise PatchError(f"There is a thread {wanted!r} already.", "Choose a name that is not in use.", "thread-exists")
        return wanted

    def _levels(
        self,
        raw: RawCheckpoint,
        record: dict[str, Value],
        thread_id: str,
        headers: list[Checkpoint],
        writes: list[WriteRow],
        keep: frozenset[str],
    ) -> list[Level]:
        """The checkpoints to copy, from the root down to the chosen one.

        What a task beside the one that called its subgraph has done is no part of what was chosen, so it is kept.
        """
        path = subgraph.path(raw, writes)
        raws = {**(self._store.raw(path[:-1]) if path[:-1] else {}), path[-1]: raw}
        found = []
        for at, inner in zip(path, [*path[1:], None], strict=True):
            if at not in raws:
                raise PatchError(
                    f"The checkpoint {at.checkpoint_id}, from which this subgraph was called, is not in the file.",
                    "Fork a checkpoint of the outer graph instead.",
                    "unknown-caller",
                )
            own = raws[at]
            opened = record if inner is None else copy.open_record(own)
            level = self.level(own, thread_id, opened, headers)
            if inner is not None or keep:
                learned = shape.learn(self._store, at, opened["v"], headers, writes)
                stored = value.decode_metadata(own.metadata).get("step", own.header.step)
                step = stored if isinstance(stored, int) else -1
                inner_ns = inner.checkpoint_ns if inner is not None else ""
                if inner is not None:
                    level.call = subgraph.find_call(at, opened, step, inner_ns, learned)
                wanted = None if inner is not None else keep
                level.finished, level.again = self._tasks_beside(at, opened, step, inner_ns, learned, wanted)
            found.append(level)
        return found

    def _tasks_beside(
        self,
        at: Address,
        record: Mapping[str, Value],
        step: int,
        inner_ns: str,
        learned: shape.Shape,
        keep: frozenset[str] | None,
    ) -> tuple[list[Finished], list[Task]]:
        """(finished tasks of a step, all or those to `keep`, whose ids can be reproduced; the others).

        The task that runs `inner_ns` is in neither.
        """
        ident, node = ns_task_id(inner_ns), ns_node(inner_ns)
        tasks = [task for task in self._explainer.state(at).tasks if not _runs(task, ident, node)]
        stored = self._store.writes([at]).get(at, ()) if tasks else ()
        done, again = [], []
        for task in tasks:
            known = task.status == "done" and task.name is not None and task.id is not None
            known = known and (keep is None or task.id in keep)
            call = subgraph.reproduce(at, record, step, task.name or "", task.id or "", learned) if known else None
            if call is None:
                again.append(task)
                continue
            results = tuple(row for row in stored if row.task_id == task.id and row.channel not in _NO_RESULT)
            done.append(Finished(task, call, results))
        return done, again

    def level(
        self,
        raw: RawCheckpoint,
        thread_id: str,
        record: dict[str, Value],
        headers: Sequence[Checkpoint],
    ) -> Level:
        """A draft of one checkpoint, with the ancestors and the memories of subgraphs that it needs beside it."""
        metadata = value.decode_metadata(raw.metadata)
        draft = copy.start(raw, record, metadata, thread_id=thread_id, ns=raw.header.checkpoint_ns, parent=None)
        rebuilt = frozenset(self._explainer.state(raw.header.address).rebuilt)
        remembered = needs.memories(headers, draft.checkpoint_ns, raw.header.checkpoint_id)
        level = Level(raw, draft, None, rebuilt, memory=list(self._store.raw(remembered).values()) if remembered else [])
        level.chain = self._chain(level, headers)
        return level

    def _chain(self, level: Level, headers: Sequence[Checkpoint]) -> list[RawCheckpoint]:
        """Ancestors that must be beside the fork: for delta channels whose value it does not hold itself."""
        missing = needs.delta_channels(level.draft.record, value.decode_metadata(level.raw.metadata), level.rebuilt)
        missing -= level.draft.edited
        return needs.ancestors(self._store, level.raw, missing, headers) if missing else []

    def _teachers(self, address: Address, headers: Sequence[Checkpoint]) -> list[RawCheckpoint]:
        """Formats 1 and 2: what runs next is learned from later checkpoints, so the newest of each branch goes along."""
        same = [header for header in headers if header.checkpoint_ns == address.checkpoint_ns]
        later = [header.address for header in shape.leaves(same)[:8] if header.origin == "base" and header.address != address]
        return list(self._store.raw(later).values())


def _rebuilt(state: State, record: dict[str, Value], writes: Sequence[WriteRow]) -> tuple[dict[str, Value], dict[str, str]]:
    """(values of delta channels not stored in a record, how certain each is).

    A state also shows updates that wait at its checkpoint (rows of no task). They are no part of the record, nor of a fork.
    """
    here = (state.checkpoint.checkpoint_ns, state.checkpoint.checkpoint_id)
    of_no_task = [row for row in writes if row.task_id == channels.NULL_TASK]
    waiting = {row.channel for row in of_no_task if (row.checkpoint_ns, row.checkpoint_id) == here}
    names = [name for name in state.rebuilt if name not in record["channel_values"] and name in record["channel_versions"]]
    values = {name: state.values[name] for name in names if name in state.values and name not in waiting}
    return values, {name: "ambiguous" if name in waiting else state.rebuilt[name] for name in names}


def _runs(task: Task, ident: str | None, node: str) -> bool:
    """Whether a task runs the subgraph whose namespace names this task id, or only this node where it has its own memory."""
    return bool(node) and (task.id == ident if ident is not None else task.name == node)


def _next_with(draft: Draft, state: State) -> tuple[str | None, ...]:
    """What runs next once the waiting Sends are others: their nodes, and what edges started as before."""
    sends = draft.record["pending_sends"] if draft.sends_beside else draft.values.get(channels.TASKS, [])
    sent = [parts[0] for one in (channels.members(sends) or ()) if (parts := send_parts(one)) is not None]
    return (*sent, *(task.name for task in state.tasks if parse_path(task.path).kind != "push"))


def _plain_values(draft: Draft) -> dict[str, Value]:
    return {name: patch.plain(stored) for name, stored in draft.values.items()}
