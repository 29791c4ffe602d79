"""The files of a branch: what happened to each one over time, and one file with all of its edits as diffs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from studio import tagged, wording
from studio.model import Address
from studio.reading import Branch, FileEvent, Touch
from studio.render import gate, patches
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place

PAGE, EVENTS = 200, 20
"""Files that are listed at once, and events of one file that are drawn with their diffs."""
LINES = 300
MARKS = 14
"""Events of a file that are drawn as signs in its row of the list."""
SIGNS = {"read": "·", "created": "+", "edited": "~", "deleted": "−", "failed": "✕"}


@dataclass(frozen=True, slots=True)
class Mark:
    sign: str
    kind: str
    title: str
    href: str


@dataclass(frozen=True, slots=True)
class FileRow:
    folder: str
    name: str
    href: str
    state: str
    words: str
    count: str
    marks: tuple[Mark, ...]
    earlier: int


@dataclass(frozen=True, slots=True)
class EventView:
    number: str
    href: str
    words: str
    kind: str
    prompt: str
    patch: patches.Patch | None
    current: bool


@dataclass(frozen=True, slots=True)
class FilesView:
    changed: tuple[FileRow, ...] = ()
    read: tuple[FileRow, ...] = ()
    more: int = 0
    more_href: str = ""
    summary: str = ""
    empty: str = ""
    path: str = ""
    """The file whose history is shown."""
    facts: str = ""
    events: tuple[EventView, ...] = ()
    earlier: int = 0
    earlier_href: str = ""
    all_href: str = ""


def file_path(place: Place) -> str | None:
    """The file that the selected path names: `/files/…`."""
    steps = tagged.split_path(place.path) if place.path and place.path.startswith("/files/") else []
    return steps[1] if len(steps) > 1 else None


def files_view(
    session: Session, tree: CheckpointTree, place: Place, address: Address, *, start: int = 0, before: int | None = None
) -> FilesView:
    branch = session.branch(address)
    if branch is None:
        return FilesView(empty="This is no agent's transcript: its files are not told apart.")
    found = branch.files()
    wanted = file_path(place)
    if wanted is not None and wanted in found:
        return _one(session, tree, place, branch, wanted, found[wanted], before)
    if not found:
        return FilesView(empty="No file was read or changed up to this turn, as far as the transcript tells.")
    changed = [pair for pair in found.items() if any(one.touch.state not in ("read", "failed") for one in pair[1])]
    only = [pair for pair in found.items() if all(one.touch.state in ("read", "failed") for one in pair[1])]
    page = [*changed, *only][start : start + PAGE]
    kept = {path for path, _ in page}
    plus = sum(one.touch.plus for _, events in changed for one in events)
    minus = sum(one.touch.minus for _, events in changed for one in events)
    count = wording.count_words(plus, minus)
    return FilesView(
        changed=tuple(_row(tree, place, branch, *pair) for pair in changed if pair[0] in kept),
        read=tuple(_row(tree, place, branch, *pair) for pair in only if pair[0] in kept),
        more=max(0, len(found) - start - PAGE),
        more_href=place.url("files", [("start", str(start + PAGE))]),
        summary=" · ".join(
            part
            for part in (f"{len(changed):,} changed" if changed else "", count, f"{len(only):,} not changed" if only else "")
            if part
        ),
    )


def _row(tree: CheckpointTree, place: Place, branch: Branch, path: str, events: Sequence[FileEvent]) -> FileRow:
    shown = wording.path_words(path, branch.cwd)
    folder, name = os.path.split(shown)
    plus, minus = sum(one.touch.plus for one in events), sum(one.touch.minus for one in events)
    made = [one for one in events if one.touch.state not in ("read", "failed")]
    states = {one.touch.state for one in events}
    last = made[-1] if made else events[-1]
    state = (
        "deleted"
        if last.touch.state == "deleted"
        else "created"
        if "created" in states
        else "edited"
        if made
        else "failed"
        if "failed" in states
        else "read"
    )
    words = f"{len(made)} edit{'s' if len(made) != 1 else ''}" if made else ""
    return FileRow(
        folder=folder + "/" if folder and folder != "/" else folder,
        name=name or shown,
        href=place.to(tab="files", path=tagged.join_path(["files", path])).url(),
        state=state,
        words=words,
        count=wording.count_words(plus, minus),
        marks=tuple(_mark(tree, place, one) for one in events[-MARKS:]),
        earlier=max(0, len(events) - MARKS),
    )


def _mark(tree: CheckpointTree, place: Place, event: FileEvent) -> Mark:
    number = tree.number(event.address)
    href = place.at_address(event.address, path=None, tab="conversation").url()
    return Mark(SIGNS[event.touch.state], event.touch.state, f"#{number} {wording.touch_words(event.touch)}", href)


def _one(
    session: Session,
    tree: CheckpointTree,
    place: Place,
    branch: Branch,
    path: str,
    events: Sequence[FileEvent],
    before: int | None,
) -> FilesView:
    stop = len(events) if before is None else max(0, min(before, len(events)))
    first = max(0, stop - EVENTS)
    made = [one for one in events if one.touch.state not in ("read", "failed")]
    reads = sum(one.touch.state == "read" for one in events)
    plus, minus = sum(one.touch.plus for one in events), sum(one.touch.minus for one in events)
    facts = [f"{len(made):,} edit{'s' if len(made) != 1 else ''}", wording.count_words(plus, minus)]
    facts += [f"read {reads:,} time{'s' if reads != 1 else ''}" if reads else ""]
    at = {event.address: index for index, event in enumerate(events)}
    return FilesView(
        path=wording.path_words(path, branch.cwd),
        facts=" · ".join(fact for fact in facts if fact),
        events=tuple(_event(session, tree, place, path, event, branch) for event in events[first:stop]),
        earlier=first,
        earlier_href=place.url("files", [("before", str(first))]),
        all_href=place.to(tab="files", path=None).url(),
        empty="" if at else "Nothing happened to this file.",
    )


def _event(session: Session, tree: CheckpointTree, place: Place, path: str, event: FileEvent, branch: Branch) -> EventView:
    touch = event.touch
    patch = None
    if touch.state != "read":
        here = session.branch(event.address)
        whole: Sequence[Touch] = here.touches() if here is not None else ()
        text = next((one.patch for one in whole if one.path == path and one.call == touch.call and one.patch), "")
        patch = patches.read(text, show_secrets=session.show_secrets, most=LINES) if text else None
    found = session.brief(event.address)
    words = wording.row_words(found, show_secrets=session.show_secrets).words if found is not None and found.call is None else ""
    return EventView(
        tree.number(event.address),
        place.at_address(event.address, path=None, tab="conversation").url(),
        wording.touch_words(touch),
        touch.state,
        gate.line(words, 160),
        patch,
        event.address == place.address,
    )
