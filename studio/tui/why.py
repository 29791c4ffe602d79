"""Why a value is what it is: who wrote it, why that task ran, and what led to it, as lines that jump to each superstep.

Who wrote a value comes from stored writes where there are any; what led to it is an ordered look back along the branch, in
which a superstep that wrote the very same scalar is pointed out. Both say how they are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from studio import tagged
from studio.errors import StudioError
from studio.model import START, Address, Change, Comparison, Row, Task, Value
from studio.render import gate, preview
from studio.tui import draw, moves
from studio.tui.lines import Line
from studio.tui.panes.changes import question
from studio.tui.point import Point, row_of

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

LOOK_BACK = 60
"""Supersteps that are compared to find the last write of a value."""
STEPS = 4
"""Earlier supersteps that are listed as what led to it."""


@dataclass(frozen=True, slots=True)
class Why:
    title: str
    lines: tuple[Line, ...]


def explain(session: Session, tree: CheckpointTree, point: Point, path: str | None) -> Why:
    """The chain for the value at `path`, or for the superstep as a whole."""
    if path is None:
        return Why(f"why {draw.number(point.row)} ran", tuple(_ran(session, tree, point.address, point.row)))
    try:
        value = tagged.get(point.state.values, path)
        shown = preview.summary(value, 32, key=draw.key_of(path), show_secrets=session.show_secrets)
        title = f"why {gate.line(path, 44)} is {shown}"
    except StudioError:
        value, title = None, f"why {gate.line(path, 44)} is gone"
    found = _writer(session, tree, point, path)
    if found is None:
        return Why(title, (Line(draw.own(f"Not written in the last {LOOK_BACK} supersteps of this branch.", "$quiet"), 1),))
    address, changes = found
    row = row_of(tree, address)
    lines = [_wrote(row, address, changes, path)]
    lines += _ran(session, tree, address, row)
    lines += _before(session, tree, address, value)
    return Why(title, tuple(lines))


def touches(change: Change, path: str) -> bool:
    """Whether a change is at the path, inside it or around it."""
    return change.path == path or change.path.startswith(path + "/") or path.startswith(change.path + "/")


def _writer(session: Session, tree: CheckpointTree, point: Point, path: str) -> tuple[Address, tuple[Change, ...]] | None:
    """The last checkpoint on the branch in which the value changed, with the changes that touch it."""
    channel = Change(path, "replace", None, None).channel
    for count, address in enumerate(moves.upward(tree, point.address)):
        if count >= LOOK_BACK:
            return None
        row = row_of(tree, address)
        if count and row is not None and row.channels and channel not in row.channels:
            continue
        comparison = point.comparison if not count and not point.against.startswith("base") else _compare(session, address)
        mine = tuple(change for change in comparison.changes if touches(change, path)) if comparison else ()
        if mine:
            return address, mine
    return None


def _compare(session: Session, address: Address) -> Comparison | None:
    try:
        return session.compare(address, session.base_of(address))
    except StudioError:
        return None


def _wrote(row: Row | None, address: Address, changes: Sequence[Change], path: str) -> Line:
    authors = [author for change in changes for author in change.authors]
    basis = next((author.basis for author in authors), "none")
    if row is not None and row.checkpoint.source in ("update", "fork") and not any(author.node for author in authors):
        words = draw.own("You set it here" if row.checkpoint.origin == "scratch" else "It was set by hand", "bold")
    elif any(author.node == START for author in authors):
        words = draw.own("The input gave it", "bold")
    elif any(author.node for author in authors):
        words = draw.own(draw.authors(authors), "bold $primary") + draw.own(" wrote it")
    else:
        words = draw.own("Who wrote it is not known", "bold $wait")
    how = {"writes": "from its writes", "versions": "inferred from versions", "source": "", "none": ""}.get(basis, "")
    change = changes[0]
    was = draw.own("")
    if change.path == path and change.op == "replace":
        was = draw.own("  was ", "$faint") + draw.value(path, change.before, 40)
    return Line(
        draw.own(f"{draw.number(row, address)} ", "$quiet") + words + was + draw.own(f"  {how}" if how else "", "$faint"),
        1,
        address=address,
        hanging=4,
    )


def _ran(session: Session, tree: CheckpointTree, address: Address, row: Row | None) -> list[Line]:
    """Why the tasks that made a checkpoint ran."""
    if row is None or not row.nodes:
        source = row.checkpoint.source if row else None
        words = {
            "input": "An input started it.",
            "update": "An edit made it; no task ran.",
            "fork": "A fork made it; no task ran.",
        }.get(source or "", "")
        return [Line(draw.own(words, "$quiet"), 1)] if words else []
    parent = tree.parent(address)
    if parent is None:
        return []
    try:
        tasks = {task.id: task for task in session.state(parent).tasks}
    except StudioError:
        return []
    lines = []
    for run in row.nodes[:3]:
        task = tasks.get(run.task_id)
        if task is not None:
            lines += _because(task, parent, tree)
    return lines


def _because(task: Task, parent: Address, tree: CheckpointTree) -> list[Line]:
    above = row_of(tree, parent)
    number = draw.number(above, parent)
    name = draw.text(task.name or "it", "bold", 30)
    by: list[str] = []
    for trigger in task.triggers:
        for author in trigger.authors:
            if author.node and author.node not in by:
                by.append(author.node)
    if by == [START]:
        reason = draw.own("the input came", "$quiet")
    elif by:
        reason = draw.text(" and ".join(by[:3]), "$primary", 60) + draw.own(" finished" if len(by) < 2 else " joined", "$quiet")
    elif task.triggers:
        reason = draw.text(task.triggers[0].channel, "$quiet", 50) + draw.own(" was written", "$quiet")
    else:
        return []
    lines = [
        Line(
            draw.own("   ← ", "$faint") + name + draw.own(" ran because ", "$quiet") + reason + draw.own(f"  {number}", "$faint"),
            1,
            address=parent,
            hanging=5,
        )
    ]
    for interrupt in task.interrupts[:1]:
        answer = (
            draw.own("  answered ", "$faint") + draw.own(preview.summary(interrupt.answer, 40))
            if interrupt.answered
            else draw.own("")
        )
        lines.append(
            Line(
                draw.own("   ← ", "$faint")
                + draw.own("asked ", "$quiet")
                + draw.text(question(interrupt.value), width=160)
                + answer,
                1,
                hanging=5,
            )
        )
    return lines


def _before(session: Session, tree: CheckpointTree, address: Address, value: Value) -> list[Line]:
    """The supersteps before the write, newest first, with what each changed; the same scalar is pointed out."""
    lines: list[Line] = []
    for count, before in enumerate(islice(moves.upward(tree, address), 1, LOOK_BACK + 1)):
        listed = len(lines) < STEPS
        if not listed and count > STEPS + 8:
            break
        comparison = _compare(session, before)
        if comparison is None or not comparison.changes:
            continue
        same = _same_scalar(comparison.changes, value)
        if not listed and same is None:
            continue
        row = row_of(tree, before)
        change = same or comparison.changes[-1]
        shown = draw.value(
            change.path, change.after if change.op != "remove" else change.before, 60, show_secrets=session.show_secrets
        )
        who = draw.text(row.label if row else "?", "bold", 28)
        more = f" +{len(comparison.changes) - 1}" if len(comparison.changes) > 1 and same is None else ""
        note = draw.own("  the same value", "bold $wait") if same is not None else draw.own("")
        lines.append(
            Line(
                draw.own("   ← ", "$faint")
                + draw.own(f"{draw.number(row, before)} ", "$quiet")
                + who
                + draw.own("  ")
                + draw.text(change.path, "$quiet", 40)
                + draw.own(" = ", "$faint")
                + shown
                + draw.own(more, "$faint")
                + note,
                1,
                address=before,
                nowrap=True,
            )
        )
    return lines


def _same_scalar(changes: Sequence[Change], value: Value) -> Change | None:
    """A change that gave exactly this number or text somewhere else; nulls, booleans and small whole numbers say nothing."""
    if value is None or isinstance(value, (bool, list, dict)) or value == "" or (isinstance(value, int) and -10 < value < 10):
        return None
    if not isinstance(value, (int, float, str)):
        return None
    for change in changes:
        if change.op == "remove":
            continue
        inner = _leaf_equal(change.path, change.after, value, 0)
        if inner is not None:
            return inner
    return None


def _leaf_equal(path: str, stored: Value, value: Value, depth: int) -> Change | None:
    if type(stored) is type(value) and stored == value:
        return Change(path, "add", None, stored)
    if depth >= 3 or isinstance(stored, (str, int, float, bytes)) or stored is None:
        return None
    for step, child in tagged.children(stored)[:40]:
        found = _leaf_equal(f"{path}/{step.replace('~', '~0').replace('/', '~1')}", child, value, depth + 1)
        if found is not None:
            return found
    return None
