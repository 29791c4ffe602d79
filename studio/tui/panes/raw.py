"""Raw: the stored record, scheduling channels and version numbers included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textual.content import Content

from studio import tagged
from studio.model import Problem
from studio.render import gate, labels, preview
from studio.tui import draw
from studio.tui.lines import BLANK, Line
from studio.tui.panes.changes import inside
from studio.tui.point import Point


def build(point: Point, problems: Sequence[Problem] = ()) -> tuple[Line, ...]:
    """The lines of the pane; `problems` are those of the whole thread and file."""
    state, checkpoint = point.state, point.row.checkpoint
    address = checkpoint.address
    facts = [
        ("thread", address.thread_id),
        ("namespace", address.checkpoint_ns or "the root graph"),
        ("id", address.checkpoint_id),
        ("parent", checkpoint.parent_checkpoint_id or "none"),
        ("step", "none" if checkpoint.step is None else str(checkpoint.step)),
        ("source", checkpoint.source or "none"),
        ("created", f"{labels.when(checkpoint.created_at)} UTC" if checkpoint.created_at else "not known"),
        ("size", f"{labels.size(checkpoint.size_bytes)} ({checkpoint.size_bytes:,} bytes)"),
        ("format", "not decodable" if state.format is None else f"v{state.format}"),
        ("stored in", "the scratch file" if checkpoint.origin == "scratch" else "the opened file"),
    ]
    lines = [Line(draw.own("Record", "bold"), 1)]
    lines += [_fact(name, draw.text(words, width=400)) for name, words in facts]
    if names := labels.imports(state):
        rows = tuple(Line(draw.text(name, width=340), 5, fold=True) for name in names)
        head = draw.own("▸ ", "$faint") + draw.own(labels.sentence(labels.would_import(names)), "bold")
        lines += [BLANK, Line(head, 1, folded=rows)]
    lines += [BLANK, *_section("Metadata", state.metadata, point.show_secrets)]
    lines += [BLANK, *_section("Scheduling channels", state.internal, point.show_secrets)]
    lines += [BLANK, *_section("Channel versions", state.channel_versions, True, fold=True)]
    lines += [BLANK, *_section("Versions seen", state.versions_seen, True, fold=True)]
    if state.rebuilt:
        lines += [BLANK, *_section("Rebuilt from deltas", state.rebuilt, True)]
    if problems:
        title = draw.own("Problems of this thread and file", "bold $wait") + draw.own(f"  {len(problems):,}", "$faint")
        lines += [BLANK, Line(title, 1)]
        for problem in problems[:200]:
            where = draw.text(f"  {problem.where}", "$faint", 200)
            lines.append(Line(draw.text(problem.message, width=600) + where, 3, hanging=2))
    return tuple(lines)


def _section(title: str, values: Mapping[str, Any], show_secrets: bool, *, fold: bool = False) -> list[Line]:
    if not values:
        return [Line(draw.own(title, "bold") + draw.own("  none", "$faint"), 1)]
    rows = []
    for name, value in list(values.items())[:500]:
        shown = Content.styled(preview.summary(value, 240, key=str(name), show_secrets=show_secrets), "")
        folded = inside(tagged.join_path([str(name)]), value, show_secrets=show_secrets, editable=False)
        rows.append(_fact(str(name), shown + draw.own(" ▸", "$faint") if folded else shown, folded))
    head = draw.own(title, "bold") + draw.own(f"  {len(values):,}", "$faint")
    if fold:
        return [Line(draw.own("▸ ", "$faint") + head, 1, folded=tuple(rows))]
    return [Line(head, 1), *rows]


def _fact(name: str, content: Content, folded: tuple[Line, ...] = ()) -> Line:
    return Line(draw.own(gate.line(name, 30).ljust(14) + " ", "$quiet") + content, 3, folded=folded, hanging=15)
