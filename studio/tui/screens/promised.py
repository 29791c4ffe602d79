"""What a fork can do, and what the one that is asked for would do: the acts to choose from, and the promise beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from studio.render import forkwords, gate, labels
from studio.requests import ForkPreview, ForkRequest
from studio.tui import draw
from studio.tui.lines import BLANK, Line
from studio.tui.panes import changes
from studio.tui.point import Point

if TYPE_CHECKING:
    from studio.running.candidates import Candidate

COPY = "\0copy"
"""Stands for the same point again among the names of nodes, none of which holds a null byte."""


def acts(found: Sequence[Candidate]) -> list[tuple[Content, str]]:
    """The acts to choose from; writing as a node once for each node, best first."""
    return [
        (Content("Set the state"), ""),
        *((Content(f"Write as {gate.line(one.node, 30)} · {one.why}"), one.node) for one in found),
        (Content("The same point again"), COPY),
    ]


def preview_lines(
    preview: ForkPreview, request: ForkRequest, point: Point, writers: Mapping[str, Candidate], note: str
) -> tuple[Line, ...]:
    """A fork as a promise: what it does, what changes, what runs next, what to know, what stays."""
    lines: list[Line] = [Line(draw.own(labels.sentence(forkwords.title(request, preview)), "bold $primary"), 1)]
    words = Line(draw.own(_act(request).words, "$quiet"), 2)
    known = [writers[name] for update in request.updates if (name := update.as_node or "") in writers]
    for one in known:
        lines.append(Line(draw.own(f"{gate.line(one.node, 40)}: ", "bold") + draw.own(one.words, "$quiet"), 2))
    lines += [] if known else [words]
    if preview.refused is not None:
        refused = [Line(draw.own("Refused", "bold $error"), 1), Line(draw.text(preview.refused, width=600), 2)]
        return (*lines, BLANK, *refused, *([Line(draw.own(note, "$wait"), 2)] if request.is_update and note else []))
    lines += [BLANK, Line(draw.own("What changes", "bold $primary"), 1)]
    if preview.changes:
        lines += changes.changes(preview.changes, None, show_secrets=point.show_secrets, heads=False)
    else:
        nothing = "No value changes." if request.is_update or request.goto else "Nothing: the same point again."
        lines.append(Line(draw.own(nothing, "$quiet"), 2))
    lines += [BLANK, Line(draw.own("Then runs", "bold $primary"), 1)]
    if preview.next is None:
        lines.append(Line(draw.own("cannot be known before it runs", "$quiet"), 2))
    elif preview.next:
        lines.append(Line(draw.text(labels.names(preview.next), "bold", 200), 2))
    else:
        lines.append(Line(draw.own("nothing: this is the end of the thread", "$quiet"), 2))
    merged = forkwords.merged(preview, "tick it at the left")
    told = (*preview.warnings, *([merged] if merged else ()))
    if told:
        lines += [BLANK, Line(draw.own("To know", "bold $wait"), 1)]
        lines += [Line(draw.own("! ", "$wait bold") + draw.text(words, width=600), 2, hanging=2) for words in told]
    if known:  # what is particular to this fork comes first
        lines += [BLANK, Line(draw.own(f"What “{_act(request).title}” means", "bold $primary"), 1), words]
    where = "a new thread" if request.new_thread else "the same thread, beside this checkpoint"
    lines += [
        BLANK,
        Line(draw.own("Stays", "bold $primary"), 1),
        Line(draw.own(f"the opened file, byte for byte; the fork goes to the scratch file, in {where}", "$quiet"), 2),
    ]
    return tuple(lines)


def _act(request: ForkRequest) -> forkwords.Act:
    by_id = {act.id: act for act in forkwords.ACTS}
    return by_id.get(forkwords.act(request), forkwords.SET)
