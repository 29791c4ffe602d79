"""The graph as a picture: who led to whom in this thread, how often, with the chosen superstep lit. Drawn as inline SVG."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

from studio.errors import StudioError
from studio.model import END, START, Address, Edge, SeenGraph, SeenNode
from studio.moment import Moment, in_order, is_end, last_runs, moment
from studio.render import gate, labels
from studio.render.graph_layout import END as ROUND
from studio.render.graph_layout import Layout, lay_out
from studio.running.graphs import called_like
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views.changes import STATUS_KINDS

if TYPE_CHECKING:
    from studio.session import Session

AT_ONCE = 5_000
"""Checkpoints of a thread whose graph is counted while the page waits; of a longer one it follows."""
WIDE = 1_000
"""Pixels from which a picture is scrolled instead of made smaller."""
SHRUNK = 420
MOST_LISTED = 400
NAME = 26
"""Characters of a name in the picture."""
RUNS, ALL_RUNS = 6, 240


@dataclass(frozen=True, slots=True)
class NodeView:
    name: str
    title: str
    """The whole name, and what happened there, in words."""
    href: str
    kind: str
    """Classes: `ran`, `next`, `inside`, `never`, `chosen`, `failed`, `wait`, `end`."""
    times: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class EdgeView:
    line: str
    head: str
    kind: str
    title: str
    stroke: str
    label: str
    label_x: str
    label_y: str
    label_width: str


@dataclass(frozen=True, slots=True)
class Picture:
    width: str
    height: str
    wide: bool
    shrinks: bool
    """Wide enough to be made smaller in a narrow window, down to `SHRUNK`."""
    nodes: tuple[NodeView, ...]
    edges: tuple[EdgeView, ...]
    title: str
    key: str
    """Which graph it is: pictures of the same one stand at the same place of their frame."""


@dataclass(frozen=True, slots=True)
class RunsView:
    name: str
    times: str
    href: str
    links: tuple[tuple[str, str, bool], ...]
    """(number, address, whether it is the chosen checkpoint)."""
    more: int


@dataclass(frozen=True, slots=True)
class JoinView:
    action: str
    names: tuple[str, ...]
    """Graphs of `langgraph.json` to choose from; empty where there is nothing to choose."""
    chosen: str


@dataclass(frozen=True, slots=True)
class GraphView:
    name: str
    facts: str
    others: tuple[tuple[str, str, bool], ...]
    """(name, address, whether it is shown) of all graphs of the thread; empty where there is one."""
    picture: Picture | None
    chosen: RunsView | None
    nodes: tuple[RunsView, ...]
    edges: tuple[tuple[str, str, str, str], ...]
    """(from, to, how often, what the code says of it)."""
    edges_more: int
    legend: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    code: str
    """The graph whose code was joined; empty where none was."""
    join: JoinView | None
    """How to load the code; None where it was."""
    empty: str
    refresh: str
    counting: str
    """What makes the page ask for a newer count: another text each time the thread grew. Empty: this is the newest."""


def graph_view(session: Session, tree: CheckpointTree, place: Place, address: Address, *, wait: bool, named: str) -> GraphView:
    """The graph tab. Without `wait`, a long thread that was not counted yet shows its last count, or none, and says so."""
    thread = address.thread_id
    refresh = place.url("graph")
    if wait or len(tree) <= AT_ONCE or session.graphs_known(thread):
        graphs, counting = session.graphs(thread), ""
    else:
        graphs, counting = session.graphs_before(thread), str(len(tree))
    if not graphs:
        words = f"Counting {len(tree):,} checkpoints…" if counting else "This file does not tell which nodes ran in this thread."
        return GraphView("", "", (), None, None, (), (), 0, (), (), "", None, words, refresh, counting)
    ordered = in_order(graphs, address)
    graph = next((one for one in ordered if one.ns == place.graph), ordered[0])
    lit = moment(session, tree, address, graph)
    join = None if any(one.code for one in graphs) else join_view(session, place, named)
    return _view(graph, graphs, lit, tree, place, address, refresh, counting, join)


def join_view(session: Session, place: Place, named: str) -> JoinView:
    """The form that loads the graph's code; `named` is the graph that was chosen for this file."""
    try:
        names = session.graph_names()
    except StudioError:  # said when the form is sent
        names = ()
    chosen = named if named in names else called_like(session.location, names) or (names[0] if names else named)
    return JoinView(place.url("graph/code"), names if len(names) > 1 else (), chosen)


def _view(
    graph: SeenGraph,
    graphs: tuple[SeenGraph, ...],
    lit: Moment,
    tree: CheckpointTree,
    place: Place,
    address: Address,
    refresh: str,
    counting: str,
    join: JoinView | None,
) -> GraphView:
    here = f"#{tree.number(address)}"
    picture = _picture(graph, lit, place, here)
    chosen = next((node for node in graph.nodes if node.name == place.node and not is_end(node.name)), None)
    ran = [node for node in graph.nodes if not is_end(node.name)]
    notes = []
    if picture is None:
        notes.append(
            f"{labels.plural(len(ran), 'node')} and {labels.plural(len(graph.edges), 'edge')} are too many for a picture "
            "that can be read: both are listed below."
        )
    if graph.unnamed:
        notes.append(f"{labels.plural(graph.unnamed, 'run')} of a node that this file does not name.")
    if counting:
        notes.append("The thread grew: counting again…")
    return GraphView(
        name=labels.graph_name(graph.ns),
        facts=f"{labels.plural(sum(node.runs > 0 for node in ran), 'node')} · {labels.edges(graph)}",
        others=tuple(
            (labels.graph_name(one.ns), place.to(graph=one.ns, node=None).url(), one.ns == graph.ns)
            for one in graphs
            if len(graphs) > 1
        ),
        picture=picture,
        chosen=_runs(chosen, tree, place, address, ALL_RUNS) if chosen is not None else None,
        nodes=tuple(_runs(node, tree, place, address, RUNS) for node in ran[:MOST_LISTED]),
        edges=tuple(
            (*_ends(edge), f"{edge.count:,}" if edge.count else "–", labels.edge_note(edge)) for edge in graph.edges[:MOST_LISTED]
        ),
        edges_more=max(0, len(graph.edges) - MOST_LISTED),
        legend=_legend(graph, lit, here),
        notes=tuple(notes),
        code=gate.line(graph.code, 200),
        join=join,
        empty="",
        refresh=refresh,
        counting=counting,
    )


def _legend(graph: SeenGraph, lit: Moment, here: str) -> tuple[tuple[str, str], ...]:
    """What the marks that are in the picture mean."""
    ahead = {STATUS_KINDS[status] for status in lit.next.values()}
    keys = [
        ("ran", f"ran to make {here}", bool(lit.ran)),
        ("next", "ended here" if END in lit.next else f"scheduled from {here}", bool(ahead - {"wait", "fail"})),
        ("wait", "waits for an answer", "wait" in ahead),
        ("fail", "failed", "fail" in ahead),
        ("inside", f"{here} lies inside", lit.inside is not None),
        ("unused", "in the code, never taken here", any(not edge.count for edge in graph.edges)),
        ("undrawn", "taken, though the code draws no such edge", any(edge.drawn is False for edge in graph.edges)),
        ("", "a number: how often an edge was taken, if more than once", any(edge.count > 1 for edge in graph.edges)),
    ]
    return tuple((kind, words) for kind, words, there in keys if there)


def _runs(node: SeenNode, tree: CheckpointTree, place: Place, address: Address, most: int) -> RunsView:
    made = last_runs(tree, address.thread_id, node, most)
    return RunsView(
        name=gate.line(node.name, 80),
        times=labels.plural(node.runs, "run") if node.runs else "has not run",
        href=place.to(node=node.name).url(),
        links=tuple((f"#{tree.number(one)}", place.at_address(one, graph=None).url(), one == address) for one in made),
        more=max(0, node.runs - most),
    )


# ---------------------------------------------------------------------- the picture


def _picture(graph: SeenGraph, lit: Moment, place: Place, here: str) -> Picture | None:
    shown = tuple(gate.line(node.name, NAME) for node in graph.nodes)
    times = tuple(f"×{node.runs:,}" if node.runs > 1 and not is_end(node.name) else "" for node in graph.nodes)
    names = [node.name for node in graph.nodes]
    place_of = {name: at for at, name in enumerate(names)}
    widths = tuple(
        ROUND if is_end(name) else _width(words, count) for name, words, count in zip(names, shown, times, strict=True)
    )
    pairs = tuple((place_of[edge.source], place_of[edge.target]) for edge in graph.edges)
    layout = _laid_out(widths, pairs, place_of.get(START), place_of.get(END))
    if layout is None:
        return None
    nodes = tuple(
        _node(node, words, count, layout, at, lit, place, here)
        for at, (node, words, count) in enumerate(zip(graph.nodes, shown, times, strict=True))
    )
    most = max((edge.count for edge in graph.edges), default=1)
    edges = []
    for edge, route in zip(graph.edges, layout.routes, strict=True):
        pair = (edge.source, edge.target)
        label = f"{edge.count:,}" if edge.count > 1 else ""
        edges.append(
            EdgeView(
                line=route.line,
                head=route.head,
                kind=" ".join(kind for kind in (_lit(pair, lit), _in_code(edge)) if kind),
                title=_edge_title(edge),
                stroke=_px(1.25 + (1.75 * log(max(edge.count, 1)) / log(most) if most > 1 else 0)),
                label=label,
                label_x=_px(route.label[0]),
                label_y=_px(route.label[1]),
                label_width=_px(9 + 6.2 * len(label)),
            )
        )
    edges.sort(key=lambda one: ("taken" in one.kind.split(), "coming" in one.kind.split(), "unused" not in one.kind.split()))
    title = f"{labels.graph_name(graph.ns)}: {labels.plural(len(nodes), 'node')}, {labels.edges(graph)}"
    key = gate.line(graph.ns, 200) or "root"
    wide, shrinks = layout.width > WIDE, layout.width > SHRUNK
    return Picture(_px(layout.width), _px(layout.height), wide, shrinks, nodes, tuple(edges), title, key)


def _lit(pair: tuple[str, str], lit: Moment) -> str:
    return "taken" if pair in lit.taken else "coming" if pair in lit.coming else ""


def _in_code(edge: Edge) -> str:
    return "undrawn" if edge.drawn is False else "" if edge.count else "unused"


def _ends(edge: Edge) -> tuple[str, str]:
    return gate.line(edge.source, 80), gate.line(edge.target, 80)


def _edge_title(edge: Edge) -> str:
    note = labels.edge_note(edge)
    times = [labels.plural(edge.count, "time")] if edge.count else []
    return f"{' → '.join(_ends(edge))}: {', '.join([*times, *([note] if note else [])])}"


@lru_cache(maxsize=32)
def _laid_out(
    widths: tuple[float, ...], pairs: tuple[tuple[int, int], ...], first: int | None, last: int | None
) -> Layout | None:
    return lay_out(widths, pairs, first, last)


def _node(node: SeenNode, words: str, times: str, layout: Layout, at: int, lit: Moment, place: Place, here: str) -> NodeView:
    box = layout.boxes[at]
    kinds, said = [], []
    if is_end(node.name):
        kinds.append("end start" if node.name == START else "end")
    else:
        said.append(labels.plural(node.runs, "run") if node.runs else "has not run")
        if not node.runs:
            kinds.append("never")
        if node.drawn is False:
            said.append("not in the code")
    if node.name in lit.ran:
        kinds += ["ran", STATUS_KINDS.get(lit.ran[node.name], "")]
        said.append(f"ran to make {here}")
    if node.name in lit.next:
        kinds += ["next", STATUS_KINDS.get(lit.next[node.name], "") if lit.next[node.name] in ("failed", "paused") else ""]
        said.append(f"next from {here}: {labels.TASK_WORDS[lit.next[node.name]]}" if node.name != END else f"ended at {here}")
    if node.name == lit.inside:
        kinds.append("inside")
        said.append(f"{here} lies inside")
    if node.name == place.node and not is_end(node.name):
        kinds.append("chosen")
    return NodeView(
        name=words,
        title=" · ".join([gate.line(node.name, 300), *said]),
        href="" if is_end(node.name) else place.to(node=None if node.name == place.node else node.name).url(),
        kind=" ".join(kind for kind in kinds if kind),
        times=times,
        x=round(box.x, 1),
        y=round(box.y, 1),
        width=round(box.width, 1),
        height=round(box.height, 1),
    )


def _width(words: str, times: str) -> float:
    """About how wide a box must be for its words: the server draws, and cannot measure."""
    size = sum(_LETTERS.get(letter, 14.0 if unicodedata.east_asian_width(letter) in "WF" else 8.1) for letter in words)
    return round(max(64.0, size + (7.0 * len(times) + 6 if times else 0) + 30), 1)


_LETTERS = {**dict.fromkeys("ijl.,:;'|!", 3.6), **dict.fromkeys("frt()[]-/ ", 5.0), **dict.fromkeys("mwMW@%<>", 12.0)}


def _px(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
