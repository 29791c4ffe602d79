"""Fork a checkpoint: plan it, show it, store it, read it back.

A plan is made of drafts, one per checkpoint to copy: one for a fork in the root graph, one per level for a fork inside a
subgraph. Ids are only given while the file is locked, so that two forkers never meet and a fork always sorts last.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from studio import value
from studio.diff import diff
from studio.errors import PatchError, RefError, StudioError
from studio.explain import channels
from studio.forks import copy, goto, needs, patch, rows, shape, subgraph, verify, warnings
from studio.forks.copy import Draft
from studio.forks.plan import Built, Finished, Level, Plan, build
from studio.forks.rows import NewWrite
from studio.forks.scratch import Scratch, record_origin
from studio.forks.writing import check_writable, foresee_triggers, refuse_triggers, write_transaction
from studio.history.namespaces import ns_node, ns_task_id
from studio.model import Address, Checkpoint, RawCheckpoint, State, Task, Value, WriteRow
from studio.requests import ForkPreview, ForkRequest, ForkResult
from studio.stores import open_store
from studio.stores.base import Store
from studio.stores.view import view_of

if TYPE_CHECKING:
    from studio.explain import Explainer
    from studio.notes import Notes

T = TypeVar("T")

_NO_RESULT = frozenset({channels.ERROR, channels.ERROR_SOURCE, channels.INTERRUPT, channels.RESUME})
"""Rows of a task that are no result of it."""


class Forker:
    """Forks of one opened store. `store` is the overlay of base and scratch, `scratch` where forks go by default."""

    def __init__(self, store: Store, explainer: Explainer, scratch: Scratch) -> None:
        self._store = store
        self._explainer = explainer
        self._scratch = scratch
        self._held: tuple[str, object, list[Checkpoint], list[WriteRow]] | None = None
        """Headers of the thread asked about last: a preview is asked again at each key stroke."""

    # ---- what a person sees before

    def preview(self, request: ForkRequest) -> ForkPreview:
        """What `fork` would store. Never writes; a refusal is a value. RefError when the checkpoint is not there."""
        try:
            if request.in_place and not self._scratch.is_store:
                foresee_triggers(self._base().location)
            plan = self._together(lambda: self._plan(request))
            build(plan, plan.newest)
        except PatchError as error:
            reason = error.message if error.message.endswith((".", "?", "!")) else f"{error.message}."
            return ForkPreview((), None, (), f"{reason} {error.hint}".strip())
        after = self._visible(plan)
        return ForkPreview(tuple(diff(plan.state.values, after)), plan.next, tuple(plan.warnings), None, after)

    def goto_candidates(self, address: Address) -> tuple[str, ...]:
        """Every node that this file knows of the graph at `address` and can start, by name; () where nothing can be read."""
        try:
            record, headers, writes = self._context(address)
        except PatchError:
            return ()
        known = shape.learn(self._store, address, record["v"], headers, writes)
        return tuple(sorted(node for node in known.nodes if goto.is_goable(node, known, record["v"])))

    def as_node_candidates(self, address: Address) -> tuple[str, ...]:
        """Nodes to write as, the ones that LangGraph would take first: those that made this checkpoint, then all others."""
        try:
            record, headers, writes = self._context(address)
        except PatchError:
            return ()
        known = shape.learn(self._store, address, record["v"], headers, writes)
        last = shape.last_nodes(record)
        others = sorted((known.nodes | set(record["versions_seen"]) - channels.NOT_NODES) - set(last))
        return (*last, *others)

    def beside(self, request: ForkRequest) -> tuple[list[Task], list[Task]]:
        """(finished tasks that a fork keeps, other tasks that a run of it starts beside the chosen checkpoint's own).

        Of the steps that called the chosen checkpoint's subgraph, and those to `keep` of its own step.
        """
        levels = self._together(lambda: self._plan(request)).levels
        kept = [done.task for level in levels for done in level.finished]
        return kept, [task for level in levels[:-1] for task in level.again]

    # ---- the act

    def fork(self, request: ForkRequest) -> ForkResult:
        """Store a fork and read it back. PatchError when it is refused or the file cannot be written; then nothing is stored."""
        plan = self._together(lambda: self._plan(request))
        build(plan, plan.newest)  # whatever cannot be encoded is refused before any file is made
        if request.in_place and not self._scratch.is_store:
            built, stored_in, notices = self._store_in_place(plan)
        else:
            built, stored_in, notices = *self._store_in_scratch(plan), []
        self._refresh()
        differences = self._verify(plan, built)
        new = built.created[-1]
        return ForkResult(
            address=new,
            parent_checkpoint_id=built.new[-1].parent,
            stored_in=stored_in,
            forked_from=request.address,
            recipe=plan.recipe,
            next=plan.next,
            verified=not differences,
            surprises=(*differences, *notices),
            root=built.created[0],
            created=built.created,
        )

    def bring(self, address: Address, *, writes: bool = True) -> None:
        """Put a checkpoint into the scratch file under its own address, with what it needs there, for `update_state` on it.

        Shows nothing new, so the store that is read is left as it is.
        """
        check_writable(address)
        record, headers, write_headers = self._context(address)
        raw = self._raw(address)
        level = self._level(raw, address.thread_id, record, headers)
        path = [self._raw(at) for at in subgraph.path(raw, write_headers)[:-1]] if address.checkpoint_ns else []
        carried = [*path, raw, *level.chain, *level.memory]
        self._scratch.ensure(self._base())
        sources = [one.header.address for one in carried if writes or one is not raw]
        moved = [NewWrite(at.thread_id, row) for at, stored in needs.writes_under(self._store, sources).items() for row in stored]
        with write_transaction(self._scratch.path) as connection:
            tables = _tables(connection, self._scratch.path)
            copies = [needs.moved(one, address.thread_id, one.header.checkpoint_ns) for one in carried]
            rows.insert(connection, tables, copies, moved, carried=True)

    # ---- planning

    def _context(self, address: Address) -> tuple[dict[str, Value], list[Checkpoint], list[WriteRow]]:
        record = copy.open_record(self._raw(address))
        token = self._store.token()
        held = self._held
        if held is None or held[:2] != (address.thread_id, token):
            headers = [header for _, header in self._store.checkpoints(address.thread_id)]
            writes = [row for _, row in self._store.write_headers(address.thread_id)]
            held = self._held = (address.thread_id, token, headers, writes)
        return record, held[2], held[3]

    def _together(self, work: Callable[[], T]) -> T:
        """Run `work` with all its reads on one snapshot, where the store can do that."""
        hold: Callable[[Callable[[], T]], T] | None = getattr(self._store, "together", None)
        return hold(work) if hold is not None else work()

    def _raw(self, address: Address) -> RawCheckpoint:
        found = self._store.raw([address]).get(address)
        if found is None:
            raise RefError(f"There is no checkpoint {address.checkpoint_id} in thread {address.thread_id!r}.")
        return found

    def _plan(self, request: ForkRequest) -> Plan:
        if request.is_update:
            raise PatchError("Writing as a node needs your graph: a run does it, not the fork recipes.", "", "needs-graph")
        address = request.address
        check_writable(address)
        raw = self._raw(address)
        record, headers, writes = self._context(address)
        thread_id = self._target_thread(request)
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
            next_nodes = None
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

    def _target_thread(self, request: ForkRequest) -> str:
        wanted = request.new_thread
        if wanted is None or wanted == request.address.thread_id:
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
            level = self._level(own, thread_id, opened, headers)
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

    def _level(
        self,
        raw: RawCheckpoint,
        thread_id: str,
        record: dict[str, Value],
        headers: Sequence[Checkpoint],
    ) -> Level:
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

    def _visible(self, plan: Plan) -> dict[str, Value]:
        """The state channels among the fork's values, in the order of the origin's."""
        internal = set(plan.state.internal)
        old_nodes = {name for name in internal if not channels.is_internal(name)}
        shown = {name for name in plan.values if name not in internal and not channels.is_internal(name, old_nodes)}
        order = [name for name in plan.state.values if name in shown]
        return {name: plan.values[name] for name in (*order, *sorted(shown - set(order)))}

    # ---- storing

    def _store_in_scratch(self, plan: Plan) -> tuple[Built, str]:
        self._scratch.ensure(self._base())
        beside = self._writes_beside(plan)
        with write_transaction(self._scratch.path) as connection:
            built = self._insert(plan, beside, connection, self._scratch.path, check_origin=False)
            for made, level in zip(built.created, plan.levels, strict=True):
                record_origin(connection, made, level.raw.header.address, _sha256(level.raw.stored_blob))
        return built, self._scratch.path

    def _store_in_place(self, plan: Plan) -> tuple[Built, str, list[str]]:
        """INSERT into the user's own file, with an entry in the audit before and after; what went wrong after the fork was stored
        is told beside it."""
        path = self._base().location
        notes = self._notes()
        beside = self._writes_beside(plan)
        with write_transaction(path) as connection:
            refuse_triggers(connection, path, _tables(connection, path, view_of(self._base()).tables).names)
            built = self._insert(plan, beside, connection, path, check_origin=True)
            for made, level in zip(built.created, plan.levels, strict=True):
                notes.record_origin(made, level.raw.header.address, _sha256(level.raw.stored_blob))
            entry = notes.audit_begin(path, plan.recipe, plan.request.address, built.created, len(built.carried))
        try:
            notes.audit_done(entry)
        except StudioError as error:
            return built, path, [f"The fork is stored, but its entry in the audit could not be completed. {error.message}"]
        return built, path, []

    def _insert(
        self,
        plan: Plan,
        beside: Mapping[Address, Sequence[WriteRow]],
        connection: sqlite3.Connection,
        path: str,
        *,
        check_origin: bool,
    ) -> Built:
        """Give ids and insert. Nothing is read through the store here: closing its file would drop the lock that we hold."""
        tables = _tables(connection, path, view_of(self._base()).tables if check_origin else None)
        thread_id = plan.draft.thread_id
        if check_origin:
            for level in plan.levels:
                stored = rows.stored_blob(connection, tables, level.raw.header.address)
                if stored != level.raw.stored_blob:
                    raise PatchError(
                        f"Checkpoint {level.raw.header.checkpoint_id} has changed since it was read. Nothing was stored.",
                        "Look at the thread again.",
                        "moved",
                    )
        if plan.moved_thread and rows.has_thread(connection, tables, thread_id):
            raise PatchError(f"There is a thread {thread_id!r} already.", "Choose a name that is not in use.", "thread-exists")
        newest = max(plan.newest, rows.newest_id(connection, tables, thread_id))
        built = build(plan, newest)
        carried = built.carried
        if check_origin:  # the user's own file has them already at their own address
            carried = [row for row in carried if built.carried_from.get(row.address, row.address) != row.address]
        rows.insert(connection, tables, built.new, built.writes)
        writes: list[NewWrite] = []
        for row in carried:
            at = row.address
            under = beside.get(built.carried_from.get(at, at), ())
            writes += [NewWrite(at.thread_id, replace(stored, checkpoint_ns=at.checkpoint_ns)) for stored in under]
        rows.insert(connection, tables, carried, writes, carried=True)
        return built

    def _writes_beside(self, plan: Plan) -> dict[Address, tuple[WriteRow, ...]]:
        """The writes under all rows that go along."""
        along = [one.header.address for level in plan.levels for one in (*level.chain, *level.memory)]
        return needs.writes_under(self._store, along)

    # ---- reading back

    def _verify(self, plan: Plan, built: Built) -> list[str]:
        """Read the stored fork and compare it with the plan; each difference is one line."""
        new = built.created[-1]
        try:
            raw = self._raw(new)
            states = [self._explainer.state(one) for one in built.created]
            found = verify.differences(plan, raw, copy.open_record(raw), states[-1])
        except StudioError as error:
            return [f"The stored fork cannot be read back: {error.message}"]
        return [*found, *verify.lost_calls(built.created, states)]

    # ---- surroundings

    def _base(self) -> Store:
        base: Store = getattr(self._store, "base", self._store)
        return base

    def _refresh(self) -> None:
        """Make the overlay see a scratch file that has just been made, and drop what was read before."""
        attach: Any = getattr(self._store, "set_scratch", None)
        missing = getattr(self._store, "scratch", None) is None and not self._scratch.is_store
        if callable(attach) and missing and self._scratch.exists():
            attach(open_store(self._scratch.path))
        self._explainer.forget()

    def _notes(self) -> Notes:
        from studio.notes import Notes  # brings sqlite-utils, which only writing to a user's own file needs here

        return Notes(self._scratch.notes_path)


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


def _plain_values(draft: Draft) -> dict[str, Value]:
    return {name: patch.plain(stored) for name, stored in draft.values.items()}


def _sha256(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _tables(connection: sqlite3.Connection, path: str, chosen: str | None = None) -> rows.Tables:
    tables = rows.find_tables(connection, chosen)
    if tables is None:
        raise PatchError(f"{path} has no tables for checkpoints.", "", "no-tables")
    return tables
