"""What a run will do, worked out before it starts: code, interpreter, stored types, tasks, questions, side effects.

No stored value is built for it. The user's graph is loaded (in the child, with no database) only when stored types outside
LangGraph's safe list are there: whether they belong to the graph's own schema is a question for the graph.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from studio import runner, toolcalls
from studio.errors import RefError, RunError, UsageError
from studio.history.namespaces import ns_task_id, static_ns
from studio.model import Address, State
from studio.render.gate import line
from studio.render.preview import summary
from studio.requests import Drift, ForkRequest, RunPlan, RunRequest, TypeUse
from studio.running import drift as drifting
from studio.running.effects import past
from studio.running.graphs import GraphFound, find_graph
from studio.running.typeuse import SAFE, TypeCount
from studio.running.ways import Way, choose_way, run_address, stored_config

if TYPE_CHECKING:
    from studio.session import Session

_KEPT_INSPECTIONS = 16
_OPEN_CALLS = 20
_BRANCHES = 4
"""Branches of a thread, and calls of a subgraph, that are asked what else was stored."""
_GRAPHS = 20
"""Subgraphs of a thread that are compared with the code."""


class Planned(Struct, frozen=True):
    """A plan with what carrying it out needs."""

    plan: RunPlan
    way: Way
    graph: GraphFound
    configurable: Mapping[str, Any]
    trusted: tuple[str, ...]
    """Types outside the safe list that the child may build: all that the plan lists, once a person trusts them."""
    unsafe: tuple[str, ...]
    """Stored types outside the safe list, which the graph is asked about."""
    known: Mapping[str, Any]
    """What the child said of the graph; empty where it was not asked."""


class Inspector:
    """Asks graphs what they are, in the child; an answer is kept until a file that the graph was loaded from changes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[dict[str, Any], dict[str, int | None]]] = {}
        self._lock = threading.Lock()

    def inspect(self, graph: GraphFound, types: tuple[str, ...] = ()) -> dict[str, Any]:
        """Nodes, edges, channels, schema types, versions. Raises RunError: cannot be loaded, no LangGraph there."""
        key = (graph.target, graph.interpreter, types)
        with self._lock:
            known, stamps = self._kept.get(key, ({}, {}))
        if not known or any(_stamp(path) != stamp for path, stamp in stamps.items()):
            known = runner.call(graph, {"op": "inspect", "types": list(types)})
            files = [*known.get("files", ()), *(path for path in (graph.file, graph.config_file, graph.env_file) if path)]
            with self._lock:
                while len(self._kept) >= _KEPT_INSPECTIONS:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[key] = known, {path: _stamp(path) for path in files}
        return known


def _stamp(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def make_plan(session: Session, inspector: Inspector, request: RunRequest, *, look: bool = False) -> Planned:
    """The plan of a run. Raises UsageError (no or several graphs, answers that do not fit), RunError, RefError.

    With `look` the graph is loaded in any case, and compared with what is stored.
    """
    state = session.state(request.address)
    graph = find_graph(request.graph, session.location)
    way = choose_way(session, request, state)
    types = stored_types(session, state)
    unsafe = types.unsafe()
    known, failed = _looked_at(inspector, graph, unsafe, needed=bool(unsafe or request.before or request.after), look=look)
    _check_nodes(request, known)
    uses = types.uses(known.get("schema", ()), str(known.get("module") or ""))
    needs_trust = not all(use.safe for use in uses)
    done = past(session, way.inside or request.address, way.kept)
    compared = _drift(session, state, known) if known else None
    configurable = {**stored_config(state.metadata), **request.config}
    plan = RunPlan(
        address=request.address,
        runs=way.runs,
        kept=tuple(task.name or "?" for task in way.kept),
        asks=way.asks,
        side_effects=done.words,
        graph=graph.title,
        graph_file=graph.file,
        interpreter=graph.interpreter,
        types=uses,
        needs_trust=needs_trust,
        stored_in=way.database,
        warnings=(
            *way.warnings,
            *failed,
            *_warnings(session, request, state, known),
            *_renamed(uses),
            *(drifting.in_words(compared) if compared is not None else ()),
        ),
        makes_copy=way.copy_of is not None,
        config=_shown(configurable),
        recursion_limit=request.recursion_limit,
        context=_shown(request.context),
        steps=request.steps,
        timeout=request.timeout,
        before=request.before,
        after=request.after,
        past_calls=done.calls,
        past_nodes=done.nodes,
        open_calls=tuple(one.message for one in toolcalls.findings(state) if one.kind == toolcalls.OPEN)[:_OPEN_CALLS],
        reused=way.reused,
        subgraphs=way.subgraphs,
        drift=compared,
        new_thread=request.new_thread,
    )
    trusted = tuple(use.name for use in uses if use.name not in SAFE) if request.trust_types else ()
    return Planned(plan, way, graph, configurable, trusted, unsafe, known)


def _looked_at(
    inspector: Inspector, graph: GraphFound, unsafe: tuple[str, ...], *, needed: bool, look: bool
) -> tuple[dict[str, Any], list[str]]:
    """(what the graph is, why it is not known). Raises RunError where the plan cannot do without."""
    if needed or look:
        try:
            return inspector.inspect(graph, unsafe), []
        except RunError as error:
            if needed:
                raise
            return {}, [line(f"The graph cannot be compared with what is stored: {error.message}", 400)]
    return {}, []


def _root_state(session: Session, state: State) -> State:
    """The state of the root graph: the graph is known as a whole, its subgraphs are not."""
    if not state.checkpoint.checkpoint_ns:
        return state
    try:
        return session.state(run_address(session, state.checkpoint.address))
    except RefError:
        return state


def _drift(session: Session, state: State, known: Mapping[str, Any]) -> Drift:
    """The difference to the graph, and to the graphs in it as far as the file has checkpoints of them."""
    tree = session.tree(state.checkpoint.thread_id)
    root = _root_state(session, state)
    spaces: dict[str, list[str]] = {}
    for ns in tree.namespaces:
        if ns:
            spaces.setdefault(static_ns(ns), []).append(ns)
    leaves = {
        name: sorted((leaf for ns in found for leaf in tree.leaves(ns)[-_BRANCHES:]), key=tree.index)[-_BRANCHES:]
        for name, found in sorted(spaces.items())[:_GRAPHS]
    }
    inner = {name: _states(session, found) for name, found in leaves.items()}
    return drifting.with_inner(drifting.drift(root, known, _states(session, tree.leaves("")[-_BRANCHES:])), known, inner)


def _states(session: Session, addresses: Sequence[Address]) -> list[State]:
    found = []
    for at in addresses:
        with contextlib.suppress(RefError):
            found.append(session.state(at))
    return found


def _shown(given: Mapping[str, Any]) -> dict[str, str]:
    """Settings of a run in one line each, masked."""
    return {line(key, 40): summary(value, 80, key=key) for key, value in given.items()}


def _check_nodes(request: RunRequest, known: Mapping[str, Any]) -> None:
    """Raises UsageError for a node to stop at that the graph does not have: LangGraph would pass it without a word."""
    nodes = tuple(str(name) for name in known.get("nodes") or ())
    for name in (*request.before, *request.after):
        if name not in nodes:
            hint = f"its nodes: {', '.join(nodes)}"
            raise UsageError(f"the graph has no node {name!r} to stop at", hint, "no-such-node", candidates=nodes)


def check_trust(planned_types: tuple[str, ...], trusted: bool) -> None:
    """Raises RunError when stored types would be imported that nobody trusted yet."""
    if planned_types and not trusted:
        raise RunError(
            f"stored values would import {', '.join(planned_types)}",
            "these types are neither on LangGraph's safe list nor in the graph's schema; --trust-types lets them be imported",
            "needs-trust",
            candidates=planned_types,
        )


def stored_types(session: Session, state: State) -> TypeCount:
    """Types in what a run from this checkpoint may read: its row and writes, its subgraphs' rows, its deltas, its callers'."""
    address = state.checkpoint.address
    overlay = session.overlay
    wanted = [address, *_callers(state), *_inner(session, state)]
    count = TypeCount()
    for raw in overlay.raw(wanted).values():
        count.add_checkpoint(raw)
    for rows in overlay.writes(wanted).values():
        count.add_writes(rows)
    if state.rebuilt:
        count.add_writes(overlay.scan_writes(address.thread_id, list(state.rebuilt)))
        for raw in overlay.raw(session.tree(address.thread_id).branch(address)[-200:]).values():
            count.add_checkpoint(raw)
    return count


def _callers(state: State) -> list[Address]:
    parents = state.metadata.get("parents")
    if not state.checkpoint.checkpoint_ns or not isinstance(parents, dict):
        return []
    return [Address(state.checkpoint.thread_id, ns, ident) for ns, ident in parents.items() if isinstance(ident, str)]


def _inner(session: Session, state: State) -> list[Address]:
    """Rows of subgraphs: those that the tasks of this checkpoint ran in, and the newest of each subgraph with a memory."""
    address = state.checkpoint.address
    tree = session.tree(address.thread_id)
    memories = [ns for ns in tree.namespaces if ns and ns_task_id(ns) is None]
    return [*tree.inner(address), *(leaf for ns in memories for leaf in tree.leaves(ns)[-1:])]


def _warnings(session: Session, request: RunRequest, state: State, known: Mapping[str, Any]) -> list[str]:
    found = []
    old_release = str(known.get("langgraph") or "").startswith(("0.1.", "0.2.", "0.3."))
    if state.format in (1, 2) and not old_release:
        found.append(
            "An older LangGraph wrote this thread (format "
            f"{state.format}): under a newer one a fork runs, but finished siblings and answers by id may not be recognised."
        )
    raw = session.overlay.raw([request.address]).get(request.address)
    if raw is not None and state.format == 1 and (raw.tag or "json") == "json" and not old_release:
        found.append("Its records are JSON: LangGraph 1.x loses their own types. Run it with the release that wrote it.")
    if request.in_place:
        found.append("This runs in your own file: its thread goes on from here for every program that uses it.")
    missing = sorted(name for name, what in (known.get("types") or {}).items() if what == "missing")
    if missing:
        found.append(f"{', '.join(missing)}: the code has no such class any more; these values become plain data.")
    if known and not known.get("strict_mode"):
        found.append(f"LangGraph {known.get('langgraph')} has no strict mode; the studio's own gate refuses other types.")
    nodes = known.get("nodes")
    gone = sorted({task.name for task in state.tasks if task.name and task.name != "__start__"} - set(nodes or ()))
    if nodes and gone and not request.address.checkpoint_ns:
        found.append(f"The graph has no node {', '.join(gone)}: what is scheduled here cannot run under this code.")
    return found


def _renamed(uses: Sequence[TypeUse]) -> list[str]:
    pairs = ", ".join(f"{use.name} as {use.becomes}" for use in uses if use.becomes)
    return [f"Types of a script come back under the module that now runs: {pairs}."] if pairs else []


def update_types(session: Session, inspector: Inspector, graph: GraphFound, request: ForkRequest) -> tuple[str, ...]:
    """Stored types outside the safe list and the graph's schema that `update_state` would import."""
    unsafe = stored_types(session, session.state(request.address)).unsafe()
    if not unsafe:
        return ()
    schema = set(inspector.inspect(graph, unsafe).get("schema", ()))
    return tuple(name for name in unsafe if name not in schema)
