"""As which node to write: every node that could be the writer of an update, best first, each with one plain sentence.

Whoever writes as a node decides what runs next: its edges are followed as if it had just returned the values. Where the graph
is known (the child told its topology) its own edges count, and those that this thread showed beside them; else only the latter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from studio.errors import RunError, UsageError
from studio.explain import channels
from studio.history.namespaces import static_ns
from studio.model import END, START, Address, State
from studio.render.gate import line
from studio.requests import GraphSpec
from studio.running.graphs import find_graph

if TYPE_CHECKING:
    from studio.running.plans import Inspector
    from studio.session import Session

Kind = Literal["last", "due", "other", "start", "end"]


class Candidate(Struct, frozen=True):
    """A node to write as."""

    node: str
    kind: Kind
    """`last`: made this checkpoint; `due`: runs next here; `other`; `start`: a new input; `end`: nothing runs."""
    default: bool
    """LangGraph takes it when no node is named."""
    next: tuple[str, ...]
    """What would run next, all that may where a branch decides; () = nothing."""
    decides: bool
    """A branch of the node decides between some of `next`, by the values."""
    why: str
    """What it is to this checkpoint, as a piece of a sentence."""
    then: str
    """What runs next, as a sentence."""

    @property
    def words(self) -> str:
        """Both as one line."""
        return f"{self.why[:1].upper()}{self.why[1:]}. {self.then}"


class Candidates(Struct, frozen=True):
    found: tuple[Candidate, ...]
    basis: Literal["graph", "file"]
    """Whether the edges are the graph's own, or only those seen in the file."""
    note: str
    """What to know about all of them: why LangGraph would not choose, why the graph is not known."""

    @property
    def default(self) -> str | None:
        return next((one.node for one in self.found if one.default), None)


class _Edges(Struct):
    """Where the edges of one graph lead."""

    nodes: tuple[str, ...] = ()
    plain: dict[str, list[str]] = {}
    branch: dict[str, list[str]] = {}
    joins: list[tuple[frozenset[str], str]] = []

    def add(self, source: str, target: str, conditional: bool) -> None:
        known = (*self.plain.get(source, ()), *self.branch.get(source, ()))
        if target not in known:
            (self.branch if conditional else self.plain).setdefault(source, []).append(target)


def candidates(session: Session, inspector: Inspector | None, address: Address, spec: GraphSpec) -> Candidates:
    """With an inspector the graph is loaded, to know its edges; where that fails the file's are taken, and the note says why."""
    state = session.state(address)
    last, known, joins = session.forker.writers(address)
    edges, note = None, ""
    if inspector is not None:
        try:
            found = inspector.inspect(find_graph(spec, session.location))
            edges = _of_graph(found.get("topology") or {}, static_ns(address.checkpoint_ns))
            if edges is None:
                note = "The graph has no subgraph in this place: what follows is from this file."
        except (RunError, UsageError) as error:
            note = f"The graph is not known, so this is what the file shows. {line(error.message, 300)}."
    basis: Literal["graph", "file"] = "file" if edges is None else "graph"
    seen = _seen(session, address, joins)
    whole = seen if edges is None else _with_seen(edges, seen)
    nodes = [name for name in whole.nodes if name not in (START, END)] if edges is not None else []
    due = [task.name for task in state.tasks if task.name]
    listed = [*last, *due, *(nodes or known)]
    order = [name for name in dict.fromkeys(listed) if name not in (END, START) and (name in nodes or not nodes)]
    barriers = _Barriers(whole, state)
    default = last[0] if len(last) == 1 else None
    first = START in last or START in due  # a new input stands behind the nodes, unless it is what is at hand here
    order = [START, *order] if first else [*order, START]
    result = [_candidate(name, last, due, default, whole, barriers) for name in order]
    result.append(Candidate(END, "end", False, (), False, "what is due here is dropped, and no values are written", _THE_END))
    if not note and len(last) > 1:
        names = " and ".join(line(name, 60) for name in last)
        note = f"{names} wrote this checkpoint together, so LangGraph does not choose by itself: name a node."
    elif not note and not last:
        note = "No node has written here yet, so LangGraph does not choose by itself: name a node."
    return Candidates(tuple(result), basis, note)


_DEFAULT = "LangGraph's own choice"
_WHY = {
    "due": "runs next here: you write in its place",
    "other": "another node of the graph",
    "start": "a new input, as if the graph were called with these values",
}
_THE_END = "Then nothing runs: the thread ends here."


def _of_graph(topology: Mapping[str, Any], ns: str) -> _Edges | None:
    told = topology.get(ns)
    if not isinstance(told, Mapping) or not told.get("edges"):
        return None
    edges = _Edges(
        tuple(str(name) for name in told["nodes"]), {}, {}, [(frozenset(starts), end) for starts, end in told["joins"]]
    )
    waiting = {(start, end) for starts, end in edges.joins for start in starts}
    for edge in told["edges"]:
        if (edge["source"], edge["target"]) not in waiting:
            edges.add(edge["source"], edge["target"], edge["conditional"])
    return edges


def _seen(session: Session, address: Address, joins: Iterable[str]) -> _Edges:
    """Edges that this thread showed, and the joins that its channels spell."""
    edges = _Edges((), {}, {}, [])
    for name in sorted(joins):
        parts = channels.join_parts(name)
        if parts is not None:
            edges.joins.append((frozenset(parts[0].split("+")), parts[1]))
    waiting = {(start, end) for starts, end in edges.joins for start in starts}
    graph = next((one for one in session.graphs(address.thread_id) if one.ns == static_ns(address.checkpoint_ns)), None)
    found = [(edge.source, edge.target) for edge in graph.edges if (edge.source, edge.target) not in waiting] if graph else []
    for source, target in found:
        several = sum(one == source for one, _ in found) > 1
        edges.add(source, target, several and target == END)
    edges.nodes = tuple(node.name for node in graph.nodes) if graph else ()
    return edges


def _with_seen(edges: _Edges, seen: _Edges) -> _Edges:
    """What the drawing of a graph does not show, such as a `Command` without its targets named: seen here, so it may happen."""
    waiting = {(start, end) for starts, end in edges.joins for start in starts}
    for source, targets in (*seen.plain.items(), *seen.branch.items()):
        for target in targets:
            if target != END and (source, target) not in waiting and target in edges.nodes and source in edges.nodes:
                edges.add(source, target, True)
    return edges


class _Barriers:
    """What waits for several nodes: which of them have written, and which joins run at this checkpoint whoever writes."""

    def __init__(self, edges: _Edges, state: State) -> None:
        self._joins = edges.joins
        self._arrived: dict[str, set[Any]] = {}
        for name, value in state.internal.items():
            parts = channels.join_parts(name)
            if parts is not None:
                self._arrived[parts[1]] = set(_names(value))
        self.due = tuple(
            task.name for task in state.tasks if task.name and any(one.channel.startswith("join:") for one in task.triggers)
        )

    def after(self, node: str) -> tuple[list[str], list[str]]:
        """(joins that run once `node` has written, pieces of a sentence for those that wait on)."""
        runs, waits = [], []
        for starts, end in self._joins:
            if node not in starts:
                continue
            missing = sorted(starts - {node} - self._arrived.get(end, set()))
            if missing:
                waits.append(f"{line(end, 60)} waits until {_listed(missing)} {'has' if len(missing) == 1 else 'have'} run too")
            else:
                runs.append(end)
        return runs, waits


def _names(value: Any) -> Iterable[str]:
    found = channels.members(value)
    if found is not None and len(found) == 2 and isinstance(found[1], bool):  # of a node that waits for the end of the run
        found = channels.members(found[0])
    return (name for name in found or () if isinstance(name, str))


def _candidate(
    node: str, last: Sequence[str], due: Sequence[str], default: str | None, edges: _Edges, barriers: _Barriers
) -> Candidate:
    kind: Kind = "last" if node in last else "due" if node in due else "start" if node == START else "other"
    others = [line(name, 60) for name in last if name != node]
    why = _WHY.get(kind, "")
    if kind == "last" and node != START:
        why = f"wrote this checkpoint, together with {_listed(others)}" if others else f"wrote this checkpoint: {_DEFAULT}"
    if kind == "last" and node == START:
        why = "the input, which made this checkpoint" + ("" if others else f": {_DEFAULT}")
    joined, waits = barriers.after(node)
    sure = [name for name in dict.fromkeys([*edges.plain.get(node, ()), *joined]) if name != END]
    chosen = edges.branch.get(node, [])
    kept = [name for name in barriers.due if name not in sure and name not in chosen]
    return Candidate(
        node=node,
        kind=kind,
        default=node == default,
        next=tuple(dict.fromkeys([*sure, *(name for name in chosen if name != END), *kept])),
        decides=bool(chosen),
        why=why,
        then=_then(sure, chosen, waits, kept, known=bool(edges.plain.get(node) or chosen or joined or waits)),
    )


def _then(sure: Sequence[str], chosen: Sequence[str], waits: Sequence[str], kept: Sequence[str], *, known: bool) -> str:
    if not known and not kept:
        return "What runs then is not known: it never led anywhere in this thread."
    said = []
    if sure:
        said.append(f"{_listed(sure)} {_verb(sure, 'run')}")
    if len(chosen) == 1:
        said.append(f"its branch decides whether {'the thread ends' if chosen[0] == END else f'{line(chosen[0], 60)} runs'}")
    elif chosen:
        names = ["the end" if name == END else line(name, 60) for name in chosen]
        said.append(f"its branch decides what runs: {', '.join(names[:-1])} or {names[-1]}")
    said += waits
    if kept:
        said.append(f"{_listed(kept)} {_verb(kept, 'run')} in any case, being due here")
    if not said:
        return "Then nothing runs: the thread ends there."
    return f"Then {'; '.join(said)}."


def _verb(names: Sequence[str], verb: str) -> str:
    return f"{verb}s" if len(names) == 1 else verb


def _listed(names: Sequence[str]) -> str:
    shown = [line(name, 60) for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
