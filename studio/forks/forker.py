"""Fork a checkpoint: plan it, show it, store it, read it back.

A plan is made of drafts, one per checkpoint to copy: one for a fork in the root graph, one per level for a fork inside a
subgraph. Ids are only given while the file is locked, so that two forkers never meet and a fork always sorts last.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from studio import value
from studio.diff import diff
from studio.errors import PatchError, RefError, StudioError
from studio.explain import channels
from studio.forks import copy, goto, ids, needs, patch, rows, shape, subgraph, warnings
from studio.forks.copy import Draft
from studio.forks.rows import NewRow, NewWrite
from studio.forks.scratch import Scratch, record_origin, write_transaction
from studio.model import START, Address, Checkpoint, ForkPreview, ForkRequest, ForkResult, RawCheckpoint, State, Value, WriteRow
from studio.stores import open_store
from studio.stores.base import Store

if TYPE_CHECKING:
    from studio.explain import Explainer
    from studio.notes import Notes

T = TypeVar("T")


@dataclass(slots=True)
class _Level:
    """One checkpoint to copy: the root's, a subgraph's calling one, or the chosen one."""

    raw: RawCheckpoint
    draft: Draft
    call: subgraph.Call | None
    """How the next level is entered; None for the chosen checkpoint."""
    rebuilt: frozenset[str]
    """Channels whose value the reader rebuilds at this checkpoint."""
    chain: list[RawCheckpoint] = field(default_factory=list)
    """Ancestors that a delta channel needs."""
    memory: list[RawCheckpoint] = field(default_factory=list)
    """Checkpoints of persistent subgraphs below this level."""


@dataclass(slots=True)
class _Plan:
    request: ForkRequest
    state: State
    levels: list[_Level]
    recipe: str
    values: dict[str, Value]
    """Every channel the fork will hold, scheduling channels included."""
    next: tuple[str | None, ...] | None
    warnings: list[str]
    newest: str
    """Largest id of the origin's thread in base and scratch when the plan was made."""
    also: list[RawCheckpoint] = field(default_factory=list)
    """Rows that only help to read the scratch file by itself."""
    moved_thread: bool = False

    @property
    def draft(self) -> Draft:
        return self.levels[-1].draft


@dataclass(slots=True)
class _Built:
    """A plan with its ids: what goes into the file."""

    new: list[NewRow]
    carried: list[NewRow]
    carried_from: dict[Address, Address]
    """New address of a carried row -> where it was read."""

    @property
    def created(self) -> tuple[Address, ...]:
        return tuple(row.address for row in self.new)


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
            plan = self._together(lambda: self._plan(request))
            self._build(plan, plan.newest)
        except PatchError as error:
            return ForkPreview((), None, (), f"{error.message} {error.hint}".strip())
        after = self._visible(plan)
        return ForkPreview(tuple(diff(plan.state.values, after)), plan.next, tuple(plan.warnings), None, after)

    def goto_candidates(self, address: Address) -> tuple[str, ...]:
        """Every node that this file knows of the graph at `address` and can start, by name."""
        record, headers, writes = self._context(address)
        known = shape.learn(self._store, address, record["v"], headers, writes)
        return tuple(sorted(node for node in known.nodes if goto.is_goable(node, known, record["v"])))

    def as_node_candidates(self, address: Address) -> tuple[str, ...]:
        """Nodes to write as, the ones that LangGraph would take first: those that made this checkpoint, then all others."""
        record, headers, writes = self._context(address)
        known = shape.learn(self._store, address, record["v"], headers, writes)
        last = shape.last_nodes(record)
        others = sorted((known.nodes | set(record["versions_seen"]) - channels.NOT_NODES) - set(last))
        return (*last, *others)

    # ---- the act

    def fork(self, request: ForkRequest) -> ForkResult:
        """Store a fork and read it back. PatchError when it is refused or the file cannot be written; then nothing is stored."""
        plan = self._together(lambda: self._plan(request))
        self._build(plan, plan.newest)  # whatever cannot be encoded is refused before any file is made
        if request.in_place and not self._scratch.is_store:
            built, stored_in = self._store_in_place(plan)
        else:
            built, stored_in = self._store_in_scratch(plan)
        self._refresh()
        surprises = self._verify(plan, built)
        new = built.created[-1]
        return ForkResult(
            address=new,
            parent_checkpoint_id=built.new[-1].parent,
            stored_in=stored_in,
            forked_from=request.address,
            recipe=plan.recipe,
            next=plan.next,
            verified=not surprises,
            surprises=tuple(surprises),
            root=built.created[0],
            created=built.created,
        )

    def bring(self, address: Address, *, writes: bool = True) -> None:
        """Put a checkpoint into the scratch file under its own address, with what it needs there, for `update_state` on it."""
        record, headers, write_headers = self._context(address)
        raw = self._raw(address)
        level = self._level(raw, address.thread_id, record, headers, None)
        path = [self._raw(at) for at in subgraph.path(raw, write_headers)[:-1]] if address.checkpoint_ns else []
        carried = [*path, raw, *level.chain, *level.memory]
        self._scratch.ensure(self._base())
        sources = [one.header.address for one in carried if writes or one is not raw]
        moved = [NewWrite(at.thread_id, row) for at, stored in needs.writes_under(self._store, sources).items() for row in stored]
        with write_transaction(self._scratch.path) as connection:
            tables = _tables(connection, self._scratch.path)
            copies = [needs.moved(one, address.thread_id, one.header.checkpoint_ns) for one in carried]
            rows.insert(connection, tables, copies, moved, carried=True)
        self._refresh()

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

    def _plan(self, request: ForkRequest) -> _Plan:
        if request.is_update:
            raise PatchError("Writing as a node needs your graph: a run does it, not the fork recipes.", "", "needs-graph")
        address = request.address
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
        levels = self._levels(raw, record, thread_id, headers, writes)
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
        plan = _Plan(
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
        self, raw: RawCheckpoint, record: dict[str, Value], thread_id: str, headers: list[Checkpoint], writes: list[WriteRow]
    ) -> list[_Level]:
        """The checkpoints to copy, from the root down to the chosen one."""
        if not raw.header.checkpoint_ns:
            return [self._level(raw, thread_id, record, headers, None)]
        path = subgraph.path(raw, writes)
        raws = self._store.raw(path)
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
            call = None
            if inner is not None:
                learned = shape.learn(self._store, at, opened["v"], headers, writes)
                step = value.decode_metadata(own.metadata).get("step", own.header.step)
                call = subgraph.find_call(at, opened, step if isinstance(step, int) else -1, inner.checkpoint_ns, learned)
            found.append(self._level(own, thread_id, opened, headers, call))
        return found

    def _level(
        self,
        raw: RawCheckpoint,
        thread_id: str,
        record: dict[str, Value],
        headers: Sequence[Checkpoint],
        call: subgraph.Call | None,
    ) -> _Level:
        metadata = value.decode_metadata(raw.metadata)
        draft = copy.start(raw, record, metadata, thread_id=thread_id, ns=raw.header.checkpoint_ns, parent=None)
        rebuilt = frozenset(self._explainer.state(raw.header.address).rebuilt)
        remembered = needs.memories(headers, draft.checkpoint_ns, raw.header.checkpoint_id)
        level = _Level(raw, draft, call, rebuilt, memory=list(self._store.raw(remembered).values()) if remembered else [])
        level.chain = self._chain(level, headers)
        return level

    def _chain(self, level: _Level, headers: Sequence[Checkpoint]) -> list[RawCheckpoint]:
        """Ancestors that must be beside the fork: for delta channels whose value it does not hold itself."""
        missing = needs.delta_channels(level.draft.record, value.decode_metadata(level.raw.metadata), level.rebuilt)
        missing -= level.draft.edited
        return needs.ancestors(self._store, level.raw, missing, headers) if missing else []

    def _teachers(self, address: Address, headers: Sequence[Checkpoint]) -> list[RawCheckpoint]:
        """Formats 1 and 2: what runs next is learned from later checkpoints, so the newest of each branch goes along."""
        same = [header for header in headers if header.checkpoint_ns == address.checkpoint_ns]
        later = [header.address for header in shape.leaves(same)[:8] if header.origin == "base" and header.address != address]
        return list(self._store.raw(later).values())

    def _visible(self, plan: _Plan) -> dict[str, Value]:
        """The state channels among the fork's values, in the order of the origin's."""
        internal = set(plan.state.internal)
        old_nodes = {name for name in internal if not channels.is_internal(name)}
        shown = {name for name in plan.values if name not in internal and not channels.is_internal(name, old_nodes)}
        order = [name for name in plan.state.values if name in shown]
        return {name: plan.values[name] for name in (*order, *sorted(shown - set(order)))}

    # ---- storing

    def _build(self, plan: _Plan, newest: str) -> _Built:
        """Give ids from the root down, each after the one before and after `newest`."""
        new: list[NewRow] = []
        carried: list[NewRow] = []
        came_from: dict[Address, Address] = {}
        ns = ""
        parents: dict[str, str] = {}
        for level in plan.levels:
            draft, origin = level.draft, level.raw.header
            same_place = not plan.moved_thread and ns == origin.checkpoint_ns
            draft.checkpoint_ns = ns
            if parents:
                draft.metadata["parents"] = dict(parents)
            keeps_parent = same_place or bool(level.chain)
            draft.parent = origin.parent_checkpoint_id if keeps_parent else None
            checkpoint_id = ids.new_id(newest, draft.step)
            newest = max(newest, checkpoint_id)
            row = draft.row(checkpoint_id)
            new.append(row)
            for one in level.chain:
                carried.append(needs.moved(one, draft.thread_id, ns))
                came_from[carried[-1].address] = one.header.address
            for one in level.memory:
                inner = ns + one.header.checkpoint_ns[len(origin.checkpoint_ns) :]
                carried.append(needs.moved(one, draft.thread_id, inner))
                came_from[carried[-1].address] = one.header.address
            if level.call is not None:
                parents = {**parents, ns: checkpoint_id}
                ns = level.call.inner_namespace(draft.format, checkpoint_id, ns, draft.step)
        carried += [needs.moved(one, plan.draft.thread_id, one.header.checkpoint_ns) for one in plan.also]
        return _Built(new, carried, came_from)

    def _store_in_scratch(self, plan: _Plan) -> tuple[_Built, str]:
        self._scratch.ensure(self._base())
        beside = self._writes_beside(plan)
        with write_transaction(self._scratch.path) as connection:
            built = self._insert(plan, beside, connection, self._scratch.path, check_origin=False)
            for made, level in zip(built.created, plan.levels, strict=True):
                record_origin(connection, made, level.raw.header.address, _sha256(level.raw.blob))
        return built, self._scratch.path

    def _store_in_place(self, plan: _Plan) -> tuple[_Built, str]:
        """INSERT into the user's own file, with an entry in the audit before and after."""
        path = self._base().location
        notes = self._notes()
        beside = self._writes_beside(plan)
        with write_transaction(path) as connection:
            built = self._insert(plan, beside, connection, path, check_origin=True)
            for made, level in zip(built.created, plan.levels, strict=True):
                notes.record_origin(made, level.raw.header.address, _sha256(level.raw.blob))
            entry = notes.audit_begin(path, plan.recipe, plan.request.address, built.created, len(built.carried))
        notes.audit_done(entry)
        return built, path

    def _insert(
        self,
        plan: _Plan,
        beside: Mapping[Address, Sequence[WriteRow]],
        connection: sqlite3.Connection,
        path: str,
        *,
        check_origin: bool,
    ) -> _Built:
        """Give ids and insert. Nothing is read through the store here: closing its file would drop the lock that we hold."""
        tables = _tables(connection, path)
        thread_id = plan.draft.thread_id
        if check_origin:
            for level in plan.levels:
                stored = rows.stored_blob(connection, tables, level.raw.header.address)
                if stored != level.raw.blob:
                    raise PatchError(
                        f"Checkpoint {level.raw.header.checkpoint_id} has changed since it was read. Nothing was stored.",
                        "Look at the thread again.",
                        "moved",
                    )
        if plan.moved_thread and rows.has_thread(connection, tables, thread_id):
            raise PatchError(f"There is a thread {thread_id!r} already.", "Choose a name that is not in use.", "thread-exists")
        newest = max(plan.newest, rows.newest_id(connection, tables, thread_id))
        built = self._build(plan, newest)
        carried = built.carried
        if check_origin:  # the user's own file has them already at their own address
            carried = [row for row in carried if built.carried_from.get(row.address, row.address) != row.address]
        rows.insert(connection, tables, built.new)
        writes: list[NewWrite] = []
        for row in carried:
            at = row.address
            under = beside.get(built.carried_from.get(at, at), ())
            writes += [NewWrite(at.thread_id, replace(stored, checkpoint_ns=at.checkpoint_ns)) for stored in under]
        rows.insert(connection, tables, carried, writes, carried=True)
        return built

    def _writes_beside(self, plan: _Plan) -> dict[Address, tuple[WriteRow, ...]]:
        """The writes under all rows that go along."""
        along = [one.header.address for level in plan.levels for one in (*level.chain, *level.memory)]
        return needs.writes_under(self._store, along)

    # ---- reading back

    def _verify(self, plan: _Plan, built: _Built) -> list[str]:
        """Read the stored fork and compare it with the plan; each difference is one line."""
        new = built.created[-1]
        try:
            raw = self._raw(new)
            record = copy.open_record(raw)
            state = self._explainer.state(new)
        except StudioError as error:
            return [f"The stored fork cannot be read back: {error.message}"]
        found = []
        draft = plan.draft
        for name, wanted in plan.values.items():
            if name in record["channel_values"]:
                got = patch.plain(record["channel_values"][name])
            elif name in state.values:
                got = state.values[name]
            else:
                found.append(f"{name} is not in the stored fork.")
                continue
            if not value.equal(got, wanted):
                found.append(f"{name} is not what was asked for.")
        extra = [name for name in record["channel_values"] if name not in plan.values]
        found += [f"{name} is in the stored fork, though it was not asked for." for name in extra]
        before = value.decode(draft.origin.tag, draft.origin.blob)["channel_values"]
        for name, kept in before.items():
            if name in draft.edited or name not in record["channel_values"]:
                continue
            if value.encode(raw.tag, kept) != value.encode(raw.tag, record["channel_values"][name]):
                found.append(f"The stored bytes of {name} changed, though it was not edited.")
        # formats 1 and 2 store no names of what runs next: the origin's own rows or thread told, and the fork has none of them
        untold = draft.format < 3 and (state.next is None or None in state.next)
        # the first task of a functional entrypoint is named by later rows only
        untold = untold or (state.next == (START,) and len(plan.next or ()) == 1 and draft.origin.header.source == "input")
        if plan.next is not None and not untold and sorted(map(str, state.next or ())) != sorted(map(str, plan.next)):
            found.append(f"Next is {_names(state.next)}, where {_names(plan.next)} was expected.")
        return found

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
        tell: Any = getattr(self._store, "set_origins", None)
        if callable(tell):
            tell({fork: origin for fork, (origin, _) in self._scratch.origins().items()})
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


def _plain_values(draft: Draft) -> dict[str, Value]:
    return {name: patch.plain(stored) for name, stored in draft.values.items()}


def _sha256(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _names(nodes: Sequence[str | None] | None) -> str:
    if nodes is None:
        return "not known"
    return ", ".join(name or "?" for name in nodes) or "nothing"


def _tables(connection: sqlite3.Connection, path: str) -> rows.Tables:
    tables = rows.find_tables(connection)
    if tables is None:
        raise PatchError(f"{path} has no tables for checkpoints.", "", "no-tables")
    return tables
