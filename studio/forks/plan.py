"""What a fork will store, from the decision to the rows: plain data, and the one place where ids are given."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from studio.forks import ids, needs, subgraph
from studio.forks.copy import Draft
from studio.forks.rows import NewRow, NewWrite
from studio.model import Address, RawCheckpoint, State, Task, Value, WriteRow
from studio.requests import ForkRequest


class Finished(Struct, frozen=True):
    """A task that has finished, with its results: under the copy's own task id they keep it from running again."""

    task: Task
    call: subgraph.Call
    rows: tuple[WriteRow, ...]


class Level(Struct):
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
    finished: list[Finished] = field(default_factory=list)
    """Tasks of this step whose results go along."""
    again: list[Task] = field(default_factory=list)
    """Tasks of this step beside the one that calls the next level, which run (again) with the fork."""


class Plan(Struct):
    request: ForkRequest
    state: State
    levels: list[Level]
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


class Built(Struct):
    """A plan with its ids: what goes into the file."""

    new: list[NewRow]
    carried: list[NewRow]
    carried_from: dict[Address, Address]
    """New address of a carried row -> where it was read."""
    writes: list[NewWrite]
    """Results of finished tasks, under the new checkpoints and the ids that their tasks have there."""

    @property
    def created(self) -> tuple[Address, ...]:
        return tuple(row.address for row in self.new)


def build(plan: Plan, newest: str) -> Built:
    """Give ids from the root down, each after the one before and after `newest`."""
    new: list[NewRow] = []
    carried: list[NewRow] = []
    came_from: dict[Address, Address] = {}
    writes: list[NewWrite] = []
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
        for done in level.finished:
            task_id = done.call.task_id(draft.format, checkpoint_id, ns, draft.step)
            writes += [
                NewWrite(draft.thread_id, replace(stored, checkpoint_ns=ns, checkpoint_id=checkpoint_id, task_id=task_id))
                for stored in done.rows
            ]
        if level.call is not None:
            parents = {**parents, ns: checkpoint_id}
            ns = level.call.inner_namespace(draft.format, checkpoint_id, ns, draft.step)
    carried += [needs.moved(one, plan.draft.thread_id, one.header.checkpoint_ns) for one in plan.also]
    return Built(new, carried, came_from, writes)
