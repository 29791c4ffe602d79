"""Files: what happened to each file on this branch, turn by turn; the edits of one unfold as diffs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from studio import wording
from studio.reading import Branch, FileEvent
from studio.render import labels, patches
from studio.tui import draw, prose
from studio.tui.lines import BLANK, Line
from studio.tui.point import Point, row_of

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

MOST_FILES, MOST_EVENTS = 300, 40
MOST_PATCHES = 120
"""Edits whose diffs are read for the pane, those of the files changed last first."""


def build(point: Point, tree: CheckpointTree, session: Session) -> tuple[Line, ...]:
    branch = session.branch(point.address)
    if branch is None:
        return (Line(draw.own("This is no agent's transcript: its files are not told apart.", "$quiet"), 1),)
    found = branch.files()
    if not found:
        return (Line(draw.own("No file was read or changed up to this turn, as far as the transcript tells.", "$quiet"), 1),)
    changed = [pair for pair in found.items() if any(one.touch.state not in ("read", "failed") for one in pair[1])]
    only = [pair for pair in found.items() if all(one.touch.state in ("read", "failed") for one in pair[1])]
    count = wording.count_words(
        sum(one.touch.plus for _, events in changed for one in events),
        sum(one.touch.minus for _, events in changed for one in events),
    )
    head = draw.own(labels.plural(len(changed), "file") + " changed", "bold") + draw.own(f"  {count}", "$quiet")
    lines = [Line(head, 1), BLANK]
    room = MOST_PATCHES
    for path, events in changed[:MOST_FILES]:
        line, used = _file(branch, tree, session, path, events, room)
        lines.append(line)
        room -= used
    if len(changed) > MOST_FILES:
        lines.append(Line(draw.own(labels.plural(len(changed) - MOST_FILES, "more file"), "$faint"), 1))
    if only:
        folded = tuple(_file(branch, tree, session, path, events, 0)[0] for path, events in only[:MOST_FILES])
        lines += [BLANK, Line(draw.own(f"▸ {labels.plural(len(only), 'file')} not changed", "$faint"), 1, folded=folded)]
    return tuple(lines)


def _file(
    branch: Branch, tree: CheckpointTree, session: Session, path: str, events: Sequence[FileEvent], room: int
) -> tuple[Line, int]:
    """(its line, patches that were read for it)."""
    made = [one for one in events if one.touch.state not in ("read", "failed")]
    state = (
        "created"
        if any(one.touch.state == "created" for one in events)
        else made[-1].touch.state
        if made
        else events[-1].touch.state
    )
    count = wording.count_words(sum(one.touch.plus for one in events), sum(one.touch.minus for one in events))
    folded: list[Line] = []
    used = 0
    if len(events) > MOST_EVENTS:
        folded.append(Line(draw.own(f"{labels.plural(len(events) - MOST_EVENTS, 'earlier event')}", "$faint"), 3))
    for event in events[-MOST_EVENTS:]:
        number = draw.number(row_of(tree, event.address), event.address)
        inside: tuple[Line, ...] = ()
        if event.touch.state != "read" and used < room:
            inside = tuple(_patch(session, path, event))
            used += 1
        sign = "▸ " if inside else "  "
        head = draw.own(f"{sign}{number} ", "$faint") + prose.touch(wording.touch_words(event.touch), event.touch.state)
        folded.append(Line(head, 3, address=event.address, folded=inside))
    right = draw.own(f"{count} " if count else "", "$faint") + prose.touch(state, state)
    return Line(
        draw.own("▸ ", "$faint") + draw.own(wording.path_words(path, branch.cwd)), 1, folded=tuple(folded), right=right, fold=True
    ), used


def _patch(session: Session, path: str, event: FileEvent) -> list[Line]:
    here = session.branch(event.address)
    whole = here.touches() if here is not None else ()
    text = next((one.patch for one in whole if one.path == path and one.call == event.touch.call and one.patch), "")
    return prose.patch(patches.read(text, show_secrets=session.show_secrets, most=200), 6) if text else []
