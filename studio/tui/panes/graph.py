"""Graph: which node led to which in this thread, how often, rank by rank; this superstep lit, what runs next marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from studio.model import END, START, SeenGraph, SeenNode, TaskStatus
from studio.moment import Moment, in_order, is_end, last_runs, moment
from studio.render import gate, labels
from studio.render.graph_layout import ranked
from studio.tui import draw
from studio.tui.lines import BLANK, Line
from studio.tui.point import Point

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

AT_ONCE = 5_000
"""Checkpoints of a thread whose graph is counted without a word; of a longer one it is said first."""
NAME = 18
"""Characters of a name and its count: half of the pane of a small terminal."""
RUNS = 24
_ARROWS = {"down": "→", "back": "↑", "self": "↻"}
_NEVER = "⇢"
_THEN, _BESIDE = " → ", "   "
_WAITS: dict[TaskStatus, tuple[str, str]] = {"failed": ("✕", "$error"), "paused": ("■", "$wait")}
_LEGEND = {
    "●": "ran",
    "◐": "ran, and next",
    "◌": "next",
    "✓": "finished",
    "◉": "ended",
    "■": "waits",
    "✕": "failed",
    "◆": "inside",
}


def counts_long(session: Session, tree: CheckpointTree, thread_id: str) -> bool:
    """Whether the graph has to be counted first, and the thread is long."""
    return len(tree) > AT_ONCE and not session.graphs_known(thread_id)


def before(point: Point, tree: CheckpointTree, session: Session, names: int = 0) -> tuple[Line, ...]:
    """What to show while a long thread is counted: the last count, if there was one. `names` as for `build`."""
    said = Line(draw.own(f"Counting {len(tree):,} checkpoints…", "$faint"), 1)
    graphs = session.graphs_before(point.address.thread_id)
    return (said, BLANK, *_lines(graphs, point, tree, session, names)) if graphs else (said,)


def build(point: Point, tree: CheckpointTree, session: Session, names: int = 0) -> tuple[Line, ...]:
    """The lines of the pane. Counts the thread where nobody has yet. `names`: the names alone, in lines of so many cells."""
    graphs = session.graphs(point.address.thread_id)
    if not graphs:
        return (Line(draw.own("This file does not tell which nodes ran in this thread.", "$quiet"), 1),)
    return _lines(graphs, point, tree, session, names)


def _lines(graphs: tuple[SeenGraph, ...], point: Point, tree: CheckpointTree, session: Session, names: int) -> tuple[Line, ...]:
    lines: list[Line] = []
    for graph in in_order(graphs, point.address):
        if lines:
            lines.append(BLANK)
        lit = moment(session, tree, point.address, graph)
        lines.extend(_head(graph, lit, point, edges=not names))
        lines.extend(_names(graph, lit, point, names) if names else _edges(graph, lit, point, tree))
        if graph.unnamed:
            words = f"{labels.plural(graph.unnamed, 'run')} of a node that this file does not name"
            lines.append(Line(draw.own(words, "$faint"), 3))
    return tuple(lines)


def _head(graph: SeenGraph, lit: Moment, point: Point, *, edges: bool) -> list[Line]:
    nodes = sum(node.runs > 0 and not is_end(node.name) for node in graph.nodes)
    facts = f" · {labels.plural(nodes, 'node')} · {labels.edges(graph)}"
    lines = [Line(draw.own(labels.graph_name(graph.ns), "bold") + draw.own(facts, "$faint"), 1)]
    if graph.code:
        lines.append(Line(draw.own(f"beside the code of {gate.line(graph.code, 200)}", "$faint"), 3))
    marks = {_mark(node.name, lit, point)[0] for node in graph.nodes}
    keys = [f"{mark} {words}" for mark, words in _LEGEND.items() if mark in marks]
    keys += [words for there, words in _edge_kinds(graph) if there and edges]
    if keys:
        lines.append(Line(draw.own("   ".join(keys), "$faint"), 3))
    return lines


def _edges(graph: SeenGraph, lit: Moment, point: Point, tree: CheckpointTree) -> list[Line]:
    """A line for each node, with the edges that leave it."""
    lines: list[Line] = []
    place = {node.name: at for at, node in enumerate(graph.nodes)}
    pairs = [(place[edge.source], place[edge.target]) for edge in graph.edges]
    found = ranked(len(graph.nodes), pairs, place.get(START), place.get(END))
    ranks = found.ranks if found is not None else tuple((at,) for at in range(len(graph.nodes)))
    arrows = [_ARROWS[kind] for kind in found.kinds] if found is not None else ["→"] * len(pairs)
    rank_of = {at: number for number, rank in enumerate(ranks) for at in rank}
    out: dict[str, list[tuple[int, Content]]] = {}
    for edge, arrow, (_, target) in zip(graph.edges, arrows, pairs, strict=True):
        pair = (edge.source, edge.target)
        unused = "$faint" if not edge.count else "$quiet"
        style = "bold $primary" if pair in lit.taken else "$primary" if pair in lit.coming else unused
        name = "itself" if arrow == "↻" else gate.line(edge.target, 24)
        times = f" ×{edge.count:,}" if edge.count > 1 else ""
        arrow = arrow if edge.count or arrow != "→" else _NEVER
        mark = "" if edge.drawn is not False else " ≠"
        shown = draw.own(f"{arrow} ", style) + draw.own(name, style) + draw.own(times, "$faint") + draw.own(mark, "$wait")
        out.setdefault(edge.source, []).append((rank_of[target], shown))
    column = min(NAME, max((len(_named(node)) for node in graph.nodes), default=0)) + 6
    for rank in ranks:
        for at, one in enumerate(rank):
            corner = " " if len(rank) == 1 else "┌" if at == 0 else "└" if at == len(rank) - 1 else "├"
            targets = [shown for _, shown in sorted(out.get(graph.nodes[one].name, []), key=lambda item: item[0])]
            lines.append(_node(graph.nodes[one], corner, targets, column, lit, point, tree))
    return lines


def _names(graph: SeenGraph, lit: Moment, point: Point, cells: int) -> list[Line]:
    """The whole graph in few lines: the nodes of a rank side by side, a chain of single ones with arrows between them."""
    place = {node.name: at for at, node in enumerate(graph.nodes)}
    pairs = {(place[edge.source], place[edge.target]) for edge in graph.edges}
    found = ranked(len(graph.nodes), sorted(pairs), place.get(START), place.get(END))
    ranks = found.ranks if found is not None else tuple((at,) for at in range(len(graph.nodes)))
    groups: list[tuple[str, list[int]]] = []
    """(what stands between, nodes)."""
    for rank in ranks:
        if len(rank) == 1 and groups and groups[-1][0] == _THEN and (groups[-1][1][-1], rank[0]) in pairs:
            groups[-1][1].append(rank[0])
        else:
            groups.append((_THEN if len(rank) == 1 else _BESIDE, list(rank)))
    lines: list[Line] = []
    for between, nodes in groups:
        parts: list[tuple[Content, bool]] = []
        for one in nodes:
            mark, style = _mark(graph.nodes[one].name, lit, point)
            shown = draw.own(f"{mark} ", style) + _name(graph.nodes[one], mark, style)
            begins = not parts or parts[-1][0].cell_length + len(between) + shown.cell_length > cells - 4
            marked = _lit(graph.nodes[one].name, lit)
            if begins:
                parts.append((draw.own("→ ", "$faint") + shown if parts and between == _THEN else shown, marked))
            else:
                parts[-1] = (parts[-1][0] + draw.own(between, "$faint") + shown, parts[-1][1] or marked)
        for at, (shown, marked) in enumerate(parts):
            corner = (
                " " if between == _THEN else "─" if len(parts) == 1 else "┌" if not at else "└" if at == len(parts) - 1 else "├"
            )
            lines.append(Line(draw.own(f"{corner} ", "$line") + shown, 1, hanging=4, mark=marked))
    return lines


def _lit(name: str, lit: Moment) -> bool:
    """Whether it is what the checkpoint is about: what ran, else what is next or lies around it."""
    return name in lit.ran if lit.ran else name in lit.next or name == lit.inside


def _edge_kinds(graph: SeenGraph) -> list[tuple[bool, str]]:
    return [
        (any(not edge.count for edge in graph.edges), f"{_NEVER} in the code, never taken"),
        (any(edge.drawn is False for edge in graph.edges), "≠ taken, though the code draws no such edge"),
    ]


def _mark(name: str, lit: Moment, point: Point) -> tuple[str, str]:
    """The shape before a node and its colour; the shape alone tells."""
    if name in lit.ran:
        return _WAITS.get(lit.ran[name], ("◐" if name in lit.next else "●", "bold $primary"))
    if name == lit.inside:
        return "◆", "bold $lane-sub"
    if name in lit.next:
        finished = lit.next[name] == "done" and point.row.is_leaf  # it waits for the others of its superstep
        return _WAITS.get(lit.next[name], ("◉" if name == END else "✓" if finished else "◌", "$primary"))
    return "○", "$faint"


def _named(node: SeenNode) -> str:
    """`search ×3`, cut so that the count stays."""
    times = f" ×{node.runs:,}" if node.runs > 1 and not is_end(node.name) else ""
    return gate.line(node.name, max(6, NAME - len(times))) + times


def _node(
    node: SeenNode, corner: str, targets: list[Content], column: int, lit: Moment, point: Point, tree: CheckpointTree
) -> Line:
    mark, style = _mark(node.name, lit, point)
    head = draw.own(f"{corner} ", "$line") + draw.own(f"{mark} ", style) + _name(node, mark, style)
    gap = Content(" " * max(2, column - head.cell_length))
    made = last_runs(tree, point.address.thread_id, node, RUNS)
    runs = tuple(Line(draw.text(f"#{tree.number(one)}", "$quiet"), 5, address=one) for one in reversed(made))
    return Line(
        head + gap + Content("\n").join(targets) if targets else head,
        1,
        address=made[-1] if made else None,
        folded=runs if len(runs) > 1 else (),
        hanging=column,
        mark=_lit(node.name, lit),
    )


def _name(node: SeenNode, mark: str, style: str) -> Content:
    return draw.own(_named(node), style if mark != "○" else "$faint" if is_end(node.name) or not node.runs else "")
