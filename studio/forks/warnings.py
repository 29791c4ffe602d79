"""What a person should know before forking: nothing here stops a fork."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studio.explain import channels
from studio.forks import ids, shape
from studio.forks.copy import Draft
from studio.forks.shape import Shape
from studio.model import PENDING_SENDS, State, Value, WriteRow
from studio.render.retyped import type_changes
from studio.requests import ForkRequest


def collect(
    request: ForkRequest,
    state: State,
    draft: Draft,
    before: Mapping[str, Value],
    after: Mapping[str, Value],
    learned: Shape,
    notes: Sequence[str],
    writes: Sequence[WriteRow],
    *,
    memories: bool,
    levels: int,
    newest: str,
    routes: Mapping[str, set[str]],
) -> list[str]:
    """All warnings for a planned fork, the weightiest first.

    `notes` come from the goto recipe, `newest` is the thread's largest id, `routes` leads from a node to those it ever started.
    """
    found = list(notes)
    found += _about_edits(request, state, draft, before, after, learned)
    found += _about_place(request, newest)
    found += _about_running(request, state, draft, writes, routes)
    if levels > 1:
        found.append("A fork inside a subgraph runs as the thread's head: with a checkpoint id the subgraph would start over.")
        if draft.format < 3:
            found.append("Run it with the LangGraph release that wrote the file: a newer one would start the subgraph over.")
    elif memories:
        found.append("A subgraph here has its own memory: run with the fork's checkpoint id, or it answers from its newest one.")
    return found


def _about_edits(
    request: ForkRequest, state: State, draft: Draft, before: Mapping[str, Value], after: Mapping[str, Value], learned: Shape
) -> list[str]:
    found = []
    if request.patch:
        if not draft.edited and request.goto is None:
            found.append("The edit changes nothing: this is the same point again.")
        if PENDING_SENDS in draft.edited and PENDING_SENDS not in after:  # formats 1 to 3 store them beside the channels
            after = {**after, PENDING_SENDS: draft.record.get("pending_sends")}
        found += type_changes(before, after, request.patch.set)
        for name in sorted(draft.edited - set(before)):
            if name not in learned.state_channels and not channels.is_internal(name):
                found.append(f"This thread never had {name!r}: unless the graph declares it, the next step drops it.")
    guessed = sorted(name for name, how in state.rebuilt.items() if how != "exact" and name not in draft.edited)
    if guessed:
        how = state.rebuilt[guessed[0]]
        found.append(f"{', '.join(guessed)}: not stored here, the value shown is only rebuilt ({how}).")
    if draft.format == 1 and (draft.origin.tag or "json") == "json":
        found.append("Run it with the LangGraph release that wrote the file: newer ones lose types and Sends of JSON records.")
    return found


def _about_place(request: ForkRequest, newest: str) -> list[str]:
    found = []
    thread = request.new_thread or request.address.thread_id
    if request.in_place and thread == request.address.thread_id:
        found.append(f"The fork becomes the head of thread {thread!r}: your program's next run of that thread goes on from it.")
    if ids.is_ahead_of_clock(newest):
        found.append("The newest id of this thread is dated in the future: what a run adds would sort before it.")
    elif newest and ids.new_id(newest, 0) <= newest:
        found.append("The ids of this thread are of another kind, and the fork cannot sort last: run it with its checkpoint id.")
    return found


def _about_running(
    request: ForkRequest, state: State, draft: Draft, writes: Sequence[WriteRow], routes: Mapping[str, set[str]]
) -> list[str]:
    found = []
    if request.goto is None:
        done = sorted({task.name or "?" for task in state.tasks if task.status == "done"})
        if done and len(state.tasks) > 1 and any(task.status != "done" for task in state.tasks):
            found.append(f"{', '.join(done)} had finished from this point; a fork runs the whole step again.")
        asking = [task.name or "?" for task in state.tasks if task.interrupts]
        if asking:
            found.append(f"{', '.join(asking)} asks its question again.")
        if not state.next:
            found.append("Nothing runs next from this point: choose a node to go to, or give the graph a new input.")
        elif request.patch:
            found += _decided_routes(state, draft.record, routes)
    here = (request.address.checkpoint_ns, request.address.checkpoint_id)
    waiting = [row for row in writes if row.task_id == channels.NULL_TASK and (row.checkpoint_ns, row.checkpoint_id) == here]
    if any(row.channel not in channels.MARKERS for row in waiting):
        found.append("An update that waits at this checkpoint is not carried over: the fork has the state before it.")
    return found


def _decided_routes(state: State, record: Mapping[str, Any], routes: Mapping[str, set[str]]) -> list[str]:
    """Code had chosen what runs next before the edit; that choice stays."""
    found = []
    for node in shape.last_nodes(record):
        chosen = routes.get(node, set()) & {name for name in state.next or () if name}
        if chosen and len(routes[node]) > len(chosen):
            found.append(f"{node} had already chosen {', '.join(sorted(chosen))}: the edit does not change that choice.")
    return found
