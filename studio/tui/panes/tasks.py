"""Tasks: what was scheduled from a checkpoint: why it ran, what it wrote, errors and questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from studio import noted, tagged
from studio.model import Task
from studio.render import gate, labels, preview, questions, secrets
from studio.sends import argument_path
from studio.tui import draw
from studio.tui.lines import BLANK, Line
from studio.tui.panes.changes import inside, run_lines
from studio.tui.point import Point

if TYPE_CHECKING:
    from studio.tree import CheckpointTree

_STYLES = {"done": "$new", "failed": "$error", "paused": "$wait", "pending": "$primary", "unknown": "$faint"}
_SHAPES = {"done": "●", "failed": "✕", "paused": "■", "pending": "○", "unknown": "○"}


def build(point: Point, tree: CheckpointTree) -> tuple[Line, ...]:
    """The lines of the pane."""
    state = point.state
    if not state.tasks:
        return (Line(draw.own(noted.nothing_scheduled(state), "$quiet"), 1),)
    lines: list[Line] = []
    for task in state.tasks:
        lines.extend(_task(task, point, tree))
        lines.extend(run_lines(task, tree, point.runs, 3))
        lines.append(BLANK)
    return tuple(lines)


def _task(task: Task, point: Point, tree: CheckpointTree) -> list[Line]:
    style = _STYLES.get(task.status, "$faint")
    head = draw.own(_SHAPES.get(task.status, "○") + " ", style) + draw.text(task.name or "name not known", "bold", 60)
    head = head + draw.own("  " + labels.TASK_WORDS.get(task.status, task.status), style)
    if task.inferred:
        head = head + draw.own("  name inferred", "$faint")
    lines = [Line(head, 1, right=draw.text(task.id or "", "$faint", 18))]
    for trigger in task.triggers:
        by = draw.authors(trigger.authors)
        lines.append(
            _fact("ran because", draw.text(trigger.channel, "$quiet", 60) + draw.own(" ← ", "$faint") + draw.own(by, "$primary"))
        )
    if task.arg is not None:
        shown = draw.value("/arg", task.arg, 240, show_secrets=point.show_secrets)
        path = argument_path(point.state, task)
        folded = inside(path or "/arg", task.arg, show_secrets=point.show_secrets, editable=path is not None)
        lines.append(_fact("sent with", shown, folded=folded, path=path))
    for write in task.writes:
        path = tagged.join_path([write.channel])
        shown = (
            draw.text(write.channel, "$quiet", 40)
            + draw.own("  ")
            + draw.value(path, write.value, 240, show_secrets=point.show_secrets)
        )
        folded = inside(path, write.value, show_secrets=point.show_secrets, editable=False)
        lines.append(_fact("wrote", shown, folded=folded))
    for answer in task.earlier_answers[:8]:
        lines.append(
            _fact(
                "answered",
                draw.value("", answer, 240, show_secrets=point.show_secrets) + draw.own("  to an earlier question", "$faint"),
            )
        )
    for interrupt in task.interrupts:
        lines.append(_fact("asked", draw.text(questions.asked(interrupt.value, 2_000).words, "bold", 2_000)))
        if isinstance(interrupt.value, dict):
            lines.append(
                _fact(
                    "",
                    draw.value("", interrupt.value, 400, show_secrets=point.show_secrets),
                    folded=inside("", interrupt.value, show_secrets=point.show_secrets, editable=False),
                )
            )
        if interrupt.answered:
            lines.append(_fact("answered", draw.new(preview.summary(interrupt.answer, 200))))
        else:
            lines.append(
                _fact(
                    "",
                    draw.own("waiting for an answer · ", "$wait")
                    + draw.own("a", "bold $wait")
                    + draw.own(" answers it", "$wait"),
                )
            )
    if task.error:
        text = task.error if point.show_secrets else secrets.mask_text(task.error)
        lines.append(_fact("failed with", draw.block(text, "$error", limit=6_000)))
    return lines


def _fact(name: str, content: Content, folded: tuple[Line, ...] = (), path: str | None = None) -> Line:
    if folded:
        content = content + draw.own(" ▸", "$faint")
    return Line(draw.own(gate.line(name).ljust(12), "$faint") + content, 3, folded=folded, hanging=12, path=path)
