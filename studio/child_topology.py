"""How the nodes of a compiled graph, and of the graphs inside it, lead to each other: edges, branches, and joins that wait.

Standard library and the user's LangGraph only, valid for Python 3.9: `child.py` loads this file by path.
"""

from __future__ import annotations

import contextlib
from typing import Any


def topology(graph: Any) -> dict[str, dict[str, Any]]:
    """Namespace without task ids -> nodes, edges and joins of the graph that runs there."""
    found = {"": described(graph)}
    with contextlib.suppress(Exception):  # older releases look for subgraphs in another way, or not at all
        for ns, part in graph.get_subgraphs(recurse=True):
            found[str(ns)] = described(part)
    return found


def described(graph: Any) -> dict[str, Any]:
    edges: list[dict[str, Any]] = []
    with contextlib.suppress(Exception):  # drawing may need packages or code that is not there
        drawn = graph.get_graph().edges
        edges = [{"source": edge.source, "target": edge.target, "conditional": bool(edge.conditional)} for edge in drawn]
    waiting = getattr(getattr(graph, "builder", None), "waiting_edges", None) or ()
    return {
        "nodes": [name for name in graph.nodes if name != "__start__"], "edges": edges,
        "joins": sorted([sorted(starts), end] for starts, end in waiting),
    }  # fmt: skip
