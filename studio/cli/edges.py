"""`studio edges`: the graphs that a thread showed: who led to whom, how often; with `--graph`, what the code draws beside it."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from studio.cli.common import opened, say_problems
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.cli.waiting import waiting
from studio.errors import RefError, UsageError
from studio.history.namespaces import static_ns
from studio.model import START, SeenGraph
from studio.render import labels
from studio.render.gate import line

WIDEST = 48
"""Characters of a node's name."""


def run(options: Namespace, out: Out) -> int:
    with opened(options, out) as session:
        thread = session.one_thread(options.thread)
        if options.graph is not None:
            with waiting(out, options.graph):
                session.load_code(thread, session.graph)
        elif options.python is not None:
            raise UsageError("--python needs --graph", "name the graph whose code is to be loaded")
        graphs = session.graphs(thread)
        if options.ns is not None:
            graphs = chosen(graphs, options.ns, thread)
        if out.as_json:
            problems = Documents(out.show_secrets).problems(session.problems())
            out.document({"thread_id": thread, "graphs": [document(graph) for graph in graphs], "problems": problems})
            return int(session.refused_key())
        if not graphs:
            out.say("this file does not tell which nodes ran in this thread")
        for index, graph in enumerate(graphs):
            if index:
                out.say()
            _text(graph, out)
        say_problems(out, session.problems())
        return int(session.refused_key())


def chosen(graphs: tuple[SeenGraph, ...], ns: str, thread: str) -> tuple[SeenGraph, ...]:
    """The graph of a namespace, with or without task ids in it. Raises RefError: no such graph was seen."""
    found = tuple(graph for graph in graphs if graph.ns in (ns, static_ns(ns)))
    if not found:
        known = tuple(graph.ns for graph in graphs if graph.ns)
        hint = "leave --ns out to see all graphs" if known else "it has no subgraph: leave --ns out"
        raise RefError(f"thread {thread!r} has no graph {ns!r}", hint, "no-such-namespace", candidates=known)
    return found


def document(graph: SeenGraph) -> dict[str, Any]:
    return {
        "ns": graph.ns,
        "nodes": [{"name": node.name, "runs": node.runs, "in_code": node.drawn} for node in graph.nodes],
        "edges": [
            {
                "source": edge.source,
                "target": edge.target,
                "count": edge.count,
                "in_code": edge.drawn,
                "conditional": edge.conditional if edge.drawn else None,
            }
            for edge in graph.edges
        ],
        "unnamed": graph.unnamed,
        "code": graph.code or None,
    }


def _text(graph: SeenGraph, out: Out) -> None:
    ran = sum(node.runs > 0 and node.name != START for node in graph.nodes)
    nodes = labels.plural(ran, "node")
    out.say(out.paint(f"{labels.graph_name(graph.ns)} · {nodes} that ran · {labels.edges(graph)}", "bold"))
    if graph.code:
        out.say(out.paint(f"  beside the code of {line(graph.code, 200)}", "dim"))
    if graph.edges:
        count = len(f"{max(edge.count for edge in graph.edges):,}")
        rows = [
            [
                "  " + line(edge.source, WIDEST),
                "->",
                line(edge.target, WIDEST),
                (f"{edge.count:,}" if edge.count else "·").rjust(count),
                labels.edge_note(edge),
            ]
            for edge in graph.edges
        ]
        out.table(rows, [(), ("dim",), (), ("cyan",), ("dim",)])
    met = {name for edge in graph.edges for name in (edge.source, edge.target)}
    for node in graph.nodes:
        if node.name not in met:
            times = labels.plural(node.runs, "run")
            why = "no edge to or from it was stored" + (" or is drawn by the code" if graph.code else "")
            out.say(f"  {line(node.name, WIDEST)}  {out.paint(f'{times}, {why}', 'dim')}")
    if graph.unnamed:
        out.say(out.paint(f"  {labels.plural(graph.unnamed, 'run')} of a node that this file does not name", "dim"))
