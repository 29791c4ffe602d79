"""What widgets and thread workers tell the screens. Workers only post these; handlers own the state of the view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from studio.errors import StudioError
from studio.model import Address, Hit, Thread
from studio.requests import ForkPreview, ForkResult, RunEvent, RunPlan

if TYPE_CHECKING:
    from studio.runs import Run
    from studio.tree import CheckpointTree
    from studio.tui.lines import Line
    from studio.tui.point import Point


@dataclass
class ActChosen(Message):
    """A line that does something was chosen."""

    act: str


@dataclass
class ThreadsLoaded(Message):
    """A batch of the thread list; `finished` on the last one."""

    threads: tuple[Thread, ...]
    finished: bool


@dataclass
class TreeLoaded(Message):
    """The tree of a thread, and the row to stand on."""

    thread_id: str
    tree: CheckpointTree
    at: Address | None


@dataclass
class TreeGrown(Message):
    """The open thread may have other rows than before."""

    thread_id: str
    tree: CheckpointTree


@dataclass
class TreeCounted(Message):
    """What only a look at every row of a thread tells."""

    tree: CheckpointTree
    branches: int
    inner: int
    """Checkpoints of subgraphs."""
    problems: int


@dataclass
class StoreChanged(Message):
    """The store grew or a run moved on: `tree` or `run:<id>`."""

    what: str


@dataclass
class PointLoaded(Message):
    """Everything about the checkpoint under the cursor; `serial` orders the loads that were asked for."""

    serial: int
    point: Point


@dataclass
class PointFailed(Message):
    """The checkpoint under the cursor cannot be read."""

    serial: int
    address: Address
    error: StudioError


@dataclass
class PaneDrawn(Message):
    """The lines of one pane for one load of a checkpoint, built off the UI thread."""

    pane: str
    serial: int
    point: Point
    lines: tuple[Line, ...]


@dataclass
class WhyDrawn(Message):
    address: Address
    path: str | None
    title: str
    lines: tuple[Line, ...]


@dataclass
class HitsFound(Message):
    """A batch of hits of one search; `finished` on the last one."""

    serial: int
    hits: tuple[Hit, ...]
    finished: bool
    passed: str = ""
    """On the last one: what could not be searched."""


@dataclass
class PreviewReady(Message):
    """What the fork would do, or why not; `lines` draws it."""

    serial: int
    preview: ForkPreview | None
    lines: tuple[Line, ...]
    error: StudioError | None = None


@dataclass
class Forked(Message):
    result: ForkResult
    then_run: bool


@dataclass
class PlanReady(Message):
    plan: RunPlan


@dataclass
class RunStarted(Message):
    run: Run


@dataclass
class RunSaid(Message):
    """One event of a run."""

    event: RunEvent


@dataclass
class Failed(Message):
    """Something asked of the session went wrong; shown as one line with its hint."""

    error: StudioError
    what: str = ""


@dataclass
class PathSelected(Message):
    """A value is under the cursor of a pane; None = none."""

    path: str | None


@dataclass
class PathChosen(Message):
    """Enter on a value: edit it."""

    path: str


@dataclass
class JumpTo(Message):
    """Enter on a reference to another checkpoint."""

    address: Address
