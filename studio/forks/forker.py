"""Fork a checkpoint: plan it, show it, store it, read it back.

How a fork is planned is `studio.forks.planner`. Ids are only given while the file is locked, so that two forkers never meet and
a fork always sorts last.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from studio.diff import diff
from studio.errors import PatchError, StudioError
from studio.explain import channels
from studio.forks import copy, goto, memory, needs, patch, rows, shape, subgraph, verify
from studio.forks.plan import Built, Plan, build
from studio.forks.planner import Planner
from studio.forks.rows import NewRow, NewWrite
from studio.forks.scratch import Scratch, create_texts, record_origin
from studio.forks.writing import check_writable, foresee_triggers, keeping_foreign_keys, refuse_triggers, write_transaction
from studio.model import PENDING_SENDS, Address, Task, Value, WriteRow
from studio.requests import ForkPreview, ForkRequest, ForkResult
from studio.stores import open_store
from studio.stores.base import Store
from studio.stores.view import view_of

if TYPE_CHECKING:
    from studio.explain import Explainer
    from studio.notes import Notes

T = TypeVar("T")


class Forker:
    """Forks of one opened store. `store` is the overlay of base and scratch, `scratch` where forks go by default."""

    def __init__(self, store: Store, explainer: Explainer, scratch: Scratch) -> None:
        self._store = store
        self._explainer = explainer
        self._scratch = scratch
        self._planner = Planner(store, explainer, scratch)

    # ---- what a person sees before

    def preview(self, request: ForkRequest) -> ForkPreview:
        """What `fork` would store. Never writes; a refusal is a value. RefError when the checkpoint is not there."""
        try:
            if request.in_place and not self._scratch.is_store:
                foresee_triggers(self._base().location)
            plan = self._together(lambda: self._planner.plan(request))
            build(plan, plan.newest)
        except PatchError as error:
            reason = error.message if error.message.endswith((".", "?", "!")) else f"{error.message}."
            return ForkPreview((), None, (), f"{reason} {error.hint}".strip())
        after = self._visible(plan)
        edited = PENDING_SENDS in plan.draft.edited and bool(request.patch)
        sends = tuple(diff(*map(_sends, (plan.state.editable, patch.values_to_edit(plan.draft, {}))))) if edited else ()
        return ForkPreview((*diff(plan.state.values, after), *sends), plan.next, tuple(plan.warnings), None, after)

    def goto_candidates(self, address: Address) -> tuple[str, ...]:
        """Every node that this file knows of the graph at `address` and can start, by name; () where nothing can be read."""
        try:
            record, headers, writes = self._planner.context(address)
        except PatchError:
            return ()
        known = shape.learn(self._store, address, record["v"], headers, writes)
        return tuple(sorted(node for node in known.nodes if goto.is_goable(node, known, record["v"])))

    def as_node_candidates(self, address: Address) -> tuple[str, ...]:
        """Nodes to write as, the ones that LangGraph would take first: those that made this checkpoint, then all others."""
        return self.writers(address)[1]

    def check_thread(self, address: Address, name: str) -> None:
        """PatchError when nothing can go into a new thread of this name."""
        self._planner.target_thread(ForkRequest(address, new_thread=name))

    def writers(self, address: Address) -> tuple[tuple[str, ...], tuple[str, ...], frozenset[str]]:
        """(nodes that made a checkpoint, all nodes with those first, channels that wait for several nodes).

        Nothing of all that where the checkpoint cannot be read.
        """
        try:
            record, headers, writes = self._planner.context(address)
        except PatchError:
            return (), (), frozenset()
        known = shape.learn(self._store, address, record["v"], headers, writes)
        last = shape.last_nodes(record)
        others = sorted((known.nodes | set(record["versions_seen"]) - channels.NOT_NODES) - set(last))
        return last, (*last, *others), known.joins

    def beside(self, request: ForkRequest) -> tuple[list[Task], list[Task]]:
        """(finished tasks that a fork keeps, other tasks that a run of it starts beside the chosen checkpoint's own).

        Of the steps that called the chosen checkpoint's subgraph, and those to `keep` of its own step.
        """
        levels = self._together(lambda: self._planner.plan(request)).levels
        kept = [done.task for level in levels for done in level.finished]
        return kept, [task for level in levels[:-1] for task in level.again]

    # ---- the act

    def fork(self, request: ForkRequest) -> ForkResult:
        """Store a fork and read it back. PatchError when it is refused or the file cannot be written; then nothing is stored."""
        plan = self._together(lambda: self._planner.plan(request))
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
        carried, moved = self.carried(address, writes=writes)
        self._scratch.ensure(self._base())
        with write_transaction(self._scratch.path) as connection:
            rows.insert(connection, _tables(connection, self._scratch.path), carried, moved, carried=True)

    def carried(self, address: Address, *, writes: bool) -> tuple[list[NewRow], list[NewWrite]]:
        """A checkpoint under its own address, with what it needs beside it; `writes`: with its own rows of tasks.

        PatchError with the reason when an update of it would be wrong.
        """
        record, headers, write_headers = self._planner.context(address)
        raw = self._planner.raw(address)
        level = self._planner.level(raw, address.thread_id, record, headers)
        path = [self._planner.raw(at) for at in subgraph.path(raw, write_headers)[:-1]] if address.checkpoint_ns else []
        along = [*path, raw, *level.chain, *level.memory]
        sources = [one.header.address for one in along if writes or one is not raw]
        moved = [NewWrite(at.thread_id, row) for at, stored in needs.writes_under(self._store, sources).items() for row in stored]
        return [needs.moved(one, address.thread_id, one.header.checkpoint_ns) for one in along], moved

    def in_memory(self, address: Address, *, writes: bool) -> dict[str, Any]:
        """The same as tables for a database in memory, in the form that the child takes."""
        return memory.tables(*create_texts(self._base()), *self.carried(address, writes=writes))

    def check(self, address: Address) -> None:
        """PatchError with the reason when nothing can be made of this checkpoint: a pickle, no key, a newer format."""
        self._planner.context(address)

    def _together(self, work: Callable[[], T]) -> T:
        """Run `work` with all its reads on one snapshot, where the store can do that."""
        hold: Callable[[Callable[[], T]], T] | None = getattr(self._store, "together", None)
        return hold(work) if hold is not None else work()

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
            names = _tables(connection, path, view_of(self._base()).tables).names
            refuse_triggers(connection, path, names)
            with keeping_foreign_keys(connection, path, names):
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
            raw = self._planner.raw(new)
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


def _sends(values: Mapping[str, Value]) -> dict[str, Value]:
    """Of some channels the Sends that wait: no part of the state, but what a fork may change."""
    return {name: found for name, found in values.items() if name == PENDING_SENDS}


def _sha256(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _tables(connection: sqlite3.Connection, path: str, chosen: str | None = None) -> rows.Tables:
    tables = rows.find_tables(connection, chosen)
    if tables is None:
        raise PatchError(f"{path} has no tables for checkpoints.", "", "no-tables")
    return tables
