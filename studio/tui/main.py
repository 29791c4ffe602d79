"""The main screen: timeline at the left, what happened at the checkpoint under the cursor, and why."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import ContentSwitcher
from textual.worker import get_current_worker

from studio.actions import BY_ID
from studio.errors import StudioError
from studio.model import Address
from studio.render import labels
from studio.tui import draw, keys, moves, point, why
from studio.tui.copying import Copying
from studio.tui.futures import Futures
from studio.tui.header import HeaderLine
from studio.tui.keys import KeyLine
from studio.tui.lines import BLANK, Line, LineView
from studio.tui.messages import (
    Failed,
    PaneDrawn,
    PathSelected,
    PointLoaded,
    StoreChanged,
    TreeLoaded,
    WhyDrawn,
)
from studio.tui.moving import Moving
from studio.tui.panes import changes, conversation, raw, tasks
from studio.tui.panes.state import StatePane
from studio.tui.point import Point, row_of
from studio.tui.rows import RowView
from studio.tui.tabs import TABS, TabLine
from studio.tui.timeline import Timeline

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

NARROW = 100
LOW = 28
FEW = 20_000
"""Checkpoints up to which branches and problems are counted whenever the thread grows."""
SETTLE = 0.04
"""Seconds that the cursor rests before a checkpoint is loaded."""


class WhyView(LineView):
    """The why pane: its own selection does not change what is explained."""

    def on_path_selected(self, event: PathSelected) -> None:
        event.stop()


class MainScreen(Copying, Moving, Futures):
    """Holds the view's state: thread, cursor (in the timeline), tab, base, selected path."""

    CSS_PATH = "main.tcss"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings()

    def __init__(self, session: Session, at: Address | str | None = None) -> None:
        super().__init__(session)
        self._at = at
        self._drawn: set[str] = set()
        self._load_timer: Timer | None = None
        self._why_timer: Timer | None = None
        self._why_asked: tuple[Address, str | None] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._spoken_run = ""
        self._said_title = ""

    # ------------------------------------------------------------------ layout

    def compose(self) -> ComposeResult:
        temporary = bool(getattr(self.session, "scratch_is_temporary", False))
        yield HeaderLine(os.path.basename(self.session.location) or self.session.location, temporary=temporary, id="header")
        with Horizontal(id="body"):
            yield Timeline(id="timeline")
            with Vertical(id="right"):
                with Vertical(id="centre"):
                    yield TabLine(id="tabs")
                    with ContentSwitcher(initial="changes", id="panes"):
                        yield LineView(id="changes")
                        yield LineView(id="conversation")
                        yield StatePane(id="state")
                        yield LineView(id="tasks")
                        yield LineView(id="raw")
                yield WhyView(id="why")
        yield KeyLine([*keys.footer_items(), ("ctrl+p", "palette")], id="keys")

    def on_mount(self) -> None:
        self.timeline.border_title = Content("Timeline")
        self.query_one("#centre").border_title = Content("")
        self.query_one("#why").border_title = Content("why")
        self.timeline.focus()
        self.query_one("#changes", LineView).show([Line(draw.own("Opening …", "$faint"), 1)])
        self._unsubscribe = self.session.subscribe(self._store_changed)
        self.open_first()

    def _store_changed(self, what: str) -> None:
        """Called from the session's own threads."""
        self.post_message(StoreChanged(what))

    def on_unmount(self) -> None:
        self._unsubscribe()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < NARROW, "narrow")
        self.set_class(event.size.height < LOW, "low")
        self.set_class(event.size.width >= 160, "wide")

    # ------------------------------------------------------------------ opening

    @work(thread=True, exclusive=True, group="tree", exit_on_error=False)
    def open_first(self) -> None:
        """Open the place that was asked for, the only thread, or the list of threads."""
        try:
            if isinstance(self._at, Address):
                self._open(self._at.thread_id, self._at)
                return
            if self._at:
                address = self.session.resolve(self._at)
                self._open(address.thread_id, address)
                return
            first: list[str] = []
            for thread in self.session.threads():
                first.append(thread.thread_id)
                if len(first) == 2:
                    break
            if len(first) == 1:
                self._open(first[0], None)
            elif first:
                self.app.call_from_thread(self.action_do, "threads")
            else:
                self.app.call_from_thread(self._empty)
        except StudioError as error:
            self.post_message(Failed(error, "Cannot open this place"))
            self.app.call_from_thread(self.action_do, "threads")

    def _empty(self) -> None:
        self.query_one("#changes", LineView).show(
            [
                Line(draw.own("No threads yet.", "bold"), 1),
                Line(
                    draw.own(
                        "This file has LangGraph's tables but no checkpoint. What a program writes appears here by itself.",
                        "$quiet",
                    ),
                    1,
                ),
            ]
        )

    @work(thread=True, exclusive=True, group="tree", exit_on_error=False)
    def open_thread(self, thread_id: str, at: Address | None = None) -> None:
        """Show a thread, standing on `at` or its head."""
        try:
            self._open(thread_id, at)
        except StudioError as error:
            self.post_message(Failed(error, "Cannot open this thread"))

    def _open(self, thread_id: str, at: Address | None) -> None:
        tree = self.session.tree(thread_id)
        if at is not None and row_of(tree, at) is None:
            self.session.refresh()  # written a moment ago
        problems = len(tree.problems) + len(self.session.problems()) if len(tree) < FEW else 0
        self.post_message(TreeLoaded(thread_id, tree, at, problems))

    def on_tree_loaded(self, event: TreeLoaded) -> None:
        grew = event.thread_id == self.thread_id and event.tree is self.checkpoints
        self.checkpoints, self.thread_id = event.tree, event.thread_id
        if grew:
            self.timeline.grow()
            if event.at is not None:
                self.go(event.at)
        else:
            self.base = None
            self.timeline.set_base(None)
            self.point = None
            self.timeline.show_tree(event.tree, event.at)
        self.query_one("#header", HeaderLine).say(thread=event.thread_id)
        self._say_timeline(event.problems)
        self.refresh_bindings()
        self.load_soon(now=True)

    def _say_timeline(self, problems: int) -> None:
        if self.checkpoints is None:
            return
        branches = len(self.checkpoints.leaves()) if len(self.checkpoints) < FEW else 0
        words = f" {len(self.checkpoints):,}" + (f" · {labels.plural(branches, 'branch')}" if branches > 1 else "")
        self.timeline.border_title = Content.assemble(("Timeline", "bold"), (words, "$faint"))
        told = f"! {labels.plural(problems, 'problem')} · 5 tells" if problems else ""
        self.timeline.border_subtitle = Content.styled(told, "$wait")

    # ------------------------------------------------------------------ live

    def on_store_changed(self, event: StoreChanged) -> None:
        self.say_runs()
        if event.what == "tree" and self.thread_id is not None:
            self.open_thread(self.thread_id)
        elif event.what == "tree" and self.checkpoints is None and len(self.app.screen_stack) <= 2:
            self.open_first()

    def say_runs(self) -> None:
        going = [run for run in self.session.runs() if run.status == "running"]
        words = f"running {len(going)}" if len(going) > 1 else "running …" if going else ""
        if words != self._spoken_run:
            self._spoken_run = words
            self.query_one("#header", HeaderLine).say(run=words)
            self.refresh_bindings()

    # ------------------------------------------------------------------ the cursor

    @on(RowView.Moved, "#timeline")
    def cursor_moved(self, event: RowView.Moved) -> None:
        event.stop()
        self._say_title()
        self.load_soon()

    @on(RowView.Chosen, "#timeline")
    def row_chosen(self, event: RowView.Chosen) -> None:
        event.stop()
        self.action_focus_centre()

    def load_soon(self, *, now: bool = False) -> None:
        """Load the point under the cursor, once the cursor rests."""
        if self._load_timer is not None:
            self._load_timer.stop()
        if now:
            self._load_timer = None
            self._load()
        else:
            self._load_timer = self.set_timer(SETTLE, self._load)

    def _load(self) -> None:
        row = self.here
        if row is not None and self.checkpoints is not None:
            self._say_title()
            self.load_point(self.checkpoints, row.checkpoint.address, self.base)

    @work(thread=True, exclusive=True, group="point", exit_on_error=False)
    def load_point(self, tree: CheckpointTree, address: Address, base: Address | None) -> None:
        worker = get_current_worker()
        try:
            found = point.load(self.session, tree, address, base)
        except StudioError as error:
            self.post_message(Failed(error, "Cannot read this checkpoint"))
            return
        if not worker.is_cancelled:
            self.post_message(PointLoaded(found))

    def on_point_loaded(self, event: PointLoaded) -> None:
        row = self.here
        if row is None or row.checkpoint.address != event.point.address:
            return
        self.point = event.point
        self._drawn.clear()
        self.query_one("#tabs", TabLine).say(event.point.against)
        self._say_title()
        self.draw_tab()

    def _say_title(self) -> None:
        row = self.here
        if row is None:
            return
        centre = self.query_one("#centre")
        title = Content.assemble(
            (draw.number(row) + " ", "$quiet"), (draw.title(row, 44), "bold"), (" · " + draw.facts(row), "$quiet")
        ).truncate(max(20, centre.size.width - 6), ellipsis=True)
        if title.plain != self._said_title:
            self._said_title = title.plain
            centre.border_title = title
        self.query_one("#keys", KeyLine).say(f"{self.timeline.cursor + 1:,} of {self.timeline.row_count:,}")

    # ------------------------------------------------------------------ the panes

    def draw_tab(self) -> None:
        """Draw the active tab for the loaded point, unless it is drawn already."""
        if self.point is None or self.checkpoints is None or self.tab in self._drawn:
            return
        if self.tab == "state":
            self._drawn.add("state")
            self.query_one("#state", StatePane).show_point(self.point)
        else:
            self.build_pane(self.tab, self.point, self.checkpoints)

    @work(thread=True, exclusive=True, group="pane", exit_on_error=False)
    def build_pane(self, name: str, at: Point, tree: CheckpointTree) -> None:
        worker = get_current_worker()
        try:
            if name == "changes":
                lines = changes.build(at, tree)
            elif name == "conversation":
                lines = conversation.build(at, tree, self.session)
            elif name == "tasks":
                lines = tasks.build(at, tree)
            else:
                lines = raw.build(at, [*tree.problems, *self.session.problems()])
        except StudioError as error:
            lines = (Line(draw.text(error.message, "$error"), 1), Line(draw.text(error.hint, "$quiet"), 1))
        if not worker.is_cancelled:
            self.post_message(PaneDrawn(name, at.address, lines))

    def on_pane_drawn(self, event: PaneDrawn) -> None:
        if self.point is None or event.address != self.point.address:
            return
        view = self.query_one(f"#{event.pane}", LineView)
        same = getattr(view, "shown_address", None) == event.address
        self._drawn.add(event.pane)
        view.shown_address = event.address  # type: ignore[attr-defined]
        view.show(event.lines, keep=same)
        if event.pane == "conversation" and not same:
            view.scroll_end(animate=False)
        self.explain_soon()

    def show_tab(self, tab: str) -> None:
        had_focus = self.focused is not None and self.focused in self.query("#panes > *")
        self.query_one("#tabs", TabLine).active = tab
        self.query_one("#panes", ContentSwitcher).current = tab
        if had_focus:
            self.pane.focus()
        self.draw_tab()
        self.explain_soon()

    @on(TabLine.Chosen)
    def tab_chosen(self, event: TabLine.Chosen) -> None:
        self.show_tab(event.tab)

    def on_path_selected(self, event: PathSelected) -> None:
        event.stop()
        self.explain_soon()

    def explain_soon(self) -> None:
        if self._why_timer is not None:
            self._why_timer.stop()
        self._why_timer = self.set_timer(SETTLE, self._explain)

    def _explain(self) -> None:
        if self.point is None or self.checkpoints is None or not self.query_one("#why").display:
            return
        path = self.selected_path
        self._why_asked = (self.point.address, path)
        self.build_why(self.point, self.checkpoints, path)

    @work(thread=True, exclusive=True, group="why", exit_on_error=False)
    def build_why(self, at: Point, tree: CheckpointTree, path: str | None) -> None:
        worker = get_current_worker()
        try:
            found = why.explain(self.session, tree, at, path)
        except StudioError as error:
            found = why.Why("why", (Line(draw.text(error.message, "$quiet"), 1),))
        if not worker.is_cancelled:
            self.post_message(WhyDrawn(at.address, path, found.title, found.lines))

    def on_why_drawn(self, event: WhyDrawn) -> None:
        if self._why_asked != (event.address, event.path):
            return
        view = self.query_one("#why", WhyView)
        view.border_title = Content(event.title)
        view.show(event.lines or (BLANK,))

    def on_failed(self, event: Failed) -> None:
        self.app.complain(event.error, event.what)

    # ------------------------------------------------------------------ the table of actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "do" and parameters and isinstance(parameters[0], str):
            return True if self.offers(parameters[0]) else None
        return super().check_action(action, parameters)

    def offers(self, action_id: str) -> bool:
        """Whether an action of the table makes sense now."""
        needs = BY_ID[action_id].needs
        if "checkpoint" in needs and self.here is None:
            return False
        if "fork" in needs and not moves.can_fork(self.session):
            return False
        if "run" in needs and not any(run.status == "running" for run in self.session.runs()):
            return False
        return not ("branches" in needs and not moves.has_branches(self.checkpoints))

    def action_do(self, action_id: str) -> None:
        """Run an action of the table by its id."""
        if action_id in TABS:
            self.show_tab(action_id)
            return
        getattr(self, f"do_{action_id}")()
