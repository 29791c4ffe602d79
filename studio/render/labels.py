"""Words, times, sizes and code snippets that terminal, page and command line print alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from studio.codec.inert import UNREAD
from studio.model import Author, Edge, Problem, SeenGraph, State, TaskStatus
from studio.render import gate
from studio.times import parse

STATUS_WORDS = {
    "ran": "ran",
    "answered": "answered",
    "done": "done",
    "ready": "ready to run",
    "paused": "waiting for an answer",
    "failed": "failed",
    "unknown": "not known",
    None: "not known",
}
STATUS_SHAPES = {"ran": "●", "answered": "■", "done": "●", "ready": "●", "paused": "■", "failed": "✕", "unknown": "◌", None: "●"}
REBUILT_WORDS: dict[str, tuple[str, str]] = {
    "exact": ("rebuilt", "not stored here: put together from the changes stored since it was last stored whole"),
    "ambiguous": (
        "rebuilt, may differ",
        "not stored here: the stored changes can be read in more than one way, this is the likeliest",
    ),
    "unavailable": ("not rebuildable", "not stored here, and the changes that lead to it are not all there"),
}
"""How a value came that the checkpoint does not hold: (label, one sentence)."""
MAY_HAPPEN_AGAIN = "May happen again"
"""Before what a run may do a second time, such as a tool call."""
CLOSED_PICKLE = "the state cannot be read: it is a pickle"
UNSTORED = "ran a subgraph whose checkpoints are not in this store"
TASK_WORDS: dict[TaskStatus, str] = {
    "done": "finished",
    "failed": "failed",
    "paused": "waiting",
    "pending": "not run yet",
    "unknown": "not known",
}

_AS_LANGGRAPH_WRITES = re.compile(
    r"(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8]))T((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3})\d{3}\+00:00", re.ASCII
)
"""A time in UTC that is surely one; the last days of a month are left to the calendar."""


def empty_state(state: State, empty: str) -> str:
    """Why a state shows no value: `empty`, or that it cannot be read."""
    why = next((problem for problem in state.problems if problem.kind == "undecodable"), None)
    if why is None or state.format is not None:
        return empty
    return f"{sentence(CLOSED_PICKLE if why.names else why.message)}."


def imports(state: State) -> tuple[str, ...]:
    """What loading a state that is a pickle would import, gated; the names come below what `empty_state` says."""
    if state.format is not None:
        return ()
    names = next((problem.names for problem in state.problems if problem.names), ())
    return tuple(gate.line(name, 320) for name in names)


def would_import(names: Sequence[str]) -> str:
    """The heading of a list of such names."""
    known = [name for name in names if name != UNREAD]
    least = "at least " if len(known) < len(names) else ""
    return f"loading it would import {least}{plural(len(known), 'name')}"


def sentence(words: str) -> str:
    """With a capital at the start."""
    return words[:1].upper() + words[1:]


def names(found: Iterable[str | None]) -> str:
    """`ask, research ×3`: the names of tasks in order, equal ones counted. Gated."""
    counts = Counter(gate.line(name, 60) if name else "?" for name in found)
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.items())


def counted_in(count: int, channel: str) -> str:
    """`5 messages`, `1 message`; `2 in log` where the channel's name is no plural. `channel` is gated."""
    if not channel.endswith("s"):
        return f"{count:,} in {channel}"
    return f"{count:,} {channel.removesuffix('s') if count == 1 else channel}"


def made_towards(authors: Iterable[Author], before: str) -> str:
    """`on the way to #s2` where the authors of a difference made what stands before, not what stands after; else empty."""
    return f"on the way to {before}" if any(author.side == "before" for author in authors) else ""


def status_word(status: str | None) -> str:
    return STATUS_WORDS.get(status, "not known")


def when(iso: str | None, *, date: bool = True) -> str:
    """`2026-03-14 14:02:09` in UTC, or `14:02:09.412` without the date."""
    if iso and (usual := _AS_LANGGRAPH_WRITES.fullmatch(iso)):
        return f"{usual[1]} {usual[2][:8]}" if date else usual[2]
    found = parse(iso)
    if found is None:
        return "time not known"
    if date:
        return found.strftime("%Y-%m-%d %H:%M:%S")
    return found.strftime("%H:%M:%S.") + f"{found.microsecond // 1000:03d}"


def graph_name(ns: str) -> str:
    """`root graph`, or `writer › inner` for a graph in a graph; `ns` without task ids. Gated."""
    return " › ".join(gate.line(part, 40) for part in ns.split("|")) if ns else "root graph"


def edges(graph: SeenGraph) -> str:
    """`5 edges`, and once the code was asked `5 edges taken, 2 more in the code`."""
    more = len(graph.edges) - graph.taken
    if not graph.code:
        return plural(graph.taken, "edge")
    return f"{plural(graph.taken, 'edge')} taken" + (f", {more:,} more in the code" if more else "")


def edge_note(edge: Edge) -> str:
    """What the code says of an edge, in words; empty where the code was not asked, or simply has it."""
    if edge.drawn is False:
        return "not drawn by the code"
    kind = "the code decides" if edge.conditional else ""
    return ", ".join(word for word in ("never taken here" if not edge.count else "", kind) if word)


def duration(seconds: float | None) -> str:
    """`+0.2 s`, `+3.0 m`, `+2.1 h`, `+4 d`; negative ones (clock steps) keep their sign; empty for None."""
    if seconds is None:
        return ""
    sign, size = ("−" if seconds < 0 else "+"), abs(seconds)
    if size < 0.95e-1:
        return f"{sign}{size * 1000:.0f} ms"
    for limit, unit, step in ((99.95, "s", 1.0), (5400.0, "m", 60.0), (172800.0, "h", 3600.0)):
        if size < limit:
            return f"{sign}{size / step:.1f} {unit}"
    return f"{sign}{size / 86400:.0f} d"


def size(count: int) -> str:
    """`812 B`, `24.5 KB`, `1.2 MB`."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("KB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.5 or unit == "TB":
            return f"{amount:.1f} {unit}" if amount < 99.95 else f"{amount:.0f} {unit}"
    return f"{count} B"


def plural(count: int, word: str, many: str | None = None) -> str:
    """`1 checkpoint`, `12 checkpoints`, `2 branches`."""
    form = word if count == 1 else many or (word + "es" if word.endswith(("ch", "sh", "s", "x")) else word + "s")
    return f"{count:,} {form}"


def problem_text(problem: Problem, here: str = "") -> str:
    """A problem in a line, gated. At the checkpoint with the id `here` its place is only what lies inside it: `/messages/1`."""
    place = problem.where
    if here and (place == here or place.startswith(f"{here}/")):
        place = place[len(here) :]
    return gate.line(f"{place}: {problem.message}" if place else problem.message, 300)
