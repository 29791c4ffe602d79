"""Todos: the agent's list at this turn, and at which turn it changed how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studio import wording
from studio.render import labels
from studio.tui import draw, prose
from studio.tui.lines import BLANK, Line
from studio.tui.point import Point, row_of

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

MOST_STEPS, MOST_CHANGES = 200, 30
_STYLES = {"done": "$success", "started": "$wait", "removed": "$faint", "added": "$quiet"}


def build(point: Point, tree: CheckpointTree, session: Session) -> tuple[Line, ...]:
    branch = session.branch(point.address)
    if branch is None:
        return (Line(draw.own("This is no agent's transcript: it keeps no list of todos.", "$quiet"), 1),)
    found = branch.todos()
    if not found:
        return (Line(draw.own("The agent kept no list of todos up to this turn.", "$quiet"), 1),)
    now = found[-1].todos
    done = sum(one.is_done for one in now)
    lines = [Line(draw.own("The list at this turn", "bold"), 1, right=draw.own(f"{done} of {len(now)} done", "$quiet"))]
    lines += [prose.todo(wording.todo_line(one.text, one.status, point.show_secrets), 2) for one in now]
    lines += [BLANK, Line(draw.own("How it got here", "bold"), 1, right=draw.own("newest first", "$faint"))]
    for step in reversed(found[-MOST_STEPS:]):
        number = draw.number(row_of(tree, step.address), step.address)
        here = step.address == point.address
        finished = sum(one.is_done for one in step.todos)
        standing = draw.own(f"{finished} of {len(step.todos)}", "$faint")
        lines.append(Line(draw.own(number, "bold $primary" if here else "$quiet"), 2, address=step.address, right=standing))
        changes = wording.changes_words(step.changes, point.show_secrets)
        for sign, what, text in changes[:MOST_CHANGES]:
            words = draw.own(f"{sign} ", _STYLES.get(what, "$quiet")) + draw.own(f"{what} ", "$faint") + draw.own(text)
            lines.append(Line(words, 4, hanging=2))
        if len(changes) > MOST_CHANGES:
            lines.append(Line(draw.own(labels.plural(len(changes) - MOST_CHANGES, "more change"), "$faint"), 4))
    if len(found) > MOST_STEPS:
        lines.append(Line(draw.own(f"{labels.plural(len(found) - MOST_STEPS, 'earlier change')} of the list", "$faint"), 2))
    return tuple(lines)
