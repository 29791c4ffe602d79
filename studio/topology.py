"""The graph as its code draws it, joined to the graph as a thread showed it: what was never taken, and what no edge foretold."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from studio.model import END, START, Edge, SeenGraph, SeenNode

MOST_EDGES = 5_000
"""Edges of one graph that are taken over from the code."""
MOST_GRAPHS = 100
"""Graphs in the graph."""
MOST_THREADS = 100


class CodeGraph(Struct, frozen=True):
    """One graph as the code has it."""

    ns: str
    """The namespace without task ids: "" is the root graph."""
    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str, bool], ...]
    """(source, target, whether the code decides at each passage); empty where LangGraph cannot draw it."""


def code_graphs(known: Mapping[str, Any]) -> tuple[CodeGraph, ...]:
    """What the child said of a graph and of the graphs in it, outer ones first."""
    found = known.get("topology")
    parts = sorted(found.items())[:MOST_GRAPHS] if isinstance(found, dict) else ()
    return tuple(_code_graph(ns, one) for ns, one in parts if isinstance(one, Mapping) and _texts(one.get("nodes")))


def _code_graph(ns: str, said: Mapping[str, Any]) -> CodeGraph:
    edges: dict[tuple[str, str], bool] = {}
    for edge in said.get("edges") or ():
        if isinstance(edge, dict) and isinstance(edge.get("source"), str) and isinstance(edge.get("target"), str):
            pair = (edge["source"], edge["target"])
            edges[pair] = edges.get(pair, True) and bool(edge.get("conditional"))
            if len(edges) == MOST_EDGES:
                break
    return CodeGraph(ns, _texts(said.get("nodes")), tuple((*pair, conditional) for pair, conditional in edges.items()))


def _texts(found: object) -> tuple[str, ...]:
    return tuple(name for name in found if isinstance(name, str)) if isinstance(found, list) else ()


class Codes:
    """What the code of each thread's graph said when it was asked last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[CodeGraph, ...], str]] = {}
        self._lock = threading.Lock()

    def note(self, thread_id: str, title: str, known: Mapping[str, Any]) -> None:
        """`known` is the child's answer; an empty one (nobody asked) changes nothing."""
        if known:
            with self._lock:
                self._kept.pop(thread_id, None)
                while len(self._kept) >= MOST_THREADS:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[thread_id] = code_graphs(known), title

    def join(self, thread_id: str, seen: tuple[SeenGraph, ...]) -> tuple[SeenGraph, ...]:
        """The graphs of a thread, joined with the code where it was asked."""
        with self._lock:
            known = self._kept.get(thread_id)
        return joined(seen, *known) if known is not None else seen


def joined(seen: Sequence[SeenGraph], code: Iterable[CodeGraph], title: str) -> tuple[SeenGraph, ...]:
    """The graphs of a thread with the nodes and edges of the code beside them; graphs that never ran come last.

    `title` names the code. A graph of the thread that LangGraph cannot find in the code stays as it is.
    """
    by_ns = {graph.ns: graph for graph in code}
    out = [_joined(graph, by_ns.pop(graph.ns), title) if graph.ns in by_ns else graph for graph in seen]
    return (*out, *(_joined(SeenGraph(graph.ns, (), ()), graph, title) for graph in by_ns.values()))


def _joined(seen: SeenGraph, code: CodeGraph, title: str) -> SeenGraph:
    in_code = {(source, target): conditional for source, target, conditional in code.edges}
    ends = {name for pair in in_code for name in pair if name in (START, END)}
    names = {*code.nodes, *ends}
    leads_on = {source for source, _ in in_code}

    def drawn(pair: tuple[str, str]) -> bool | None:
        if not in_code:
            return None
        return pair in in_code or (pair[1] == END and pair[0] not in leads_on)  # without an edge the graph ends by itself

    edges = [
        replace(edge, drawn=drawn(pair), conditional=in_code.get(pair, False))
        for edge in seen.edges
        for pair in [(edge.source, edge.target)]
    ]
    taken = {(edge.source, edge.target) for edge in seen.edges}
    edges += [Edge(*pair, 0, drawn=True, conditional=kind) for pair, kind in in_code.items() if pair not in taken]
    nodes = {node.name: replace(node, drawn=node.name in names or node.name in (START, END)) for node in seen.nodes}
    for name in (*code.nodes, *(end for pair in in_code for end in pair)):
        nodes.setdefault(name, SeenNode(name, 0, drawn=name in names))
    ordered = sorted(nodes.values(), key=lambda node: (node.name != START, node.name == END))
    return replace(seen, nodes=tuple(ordered), edges=tuple(edges), code=title)
