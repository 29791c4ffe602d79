"""The main screen: timeline at the left, what happened at the checkpoint under the cursor, and why."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import ContentSwitcher

from studio.actions import BY_ID
from studio.errors import StudioError
from studio.model import Address
from studio.tui import draw, keys, moves, point, why
from studio.tui.copying import Copying
from studio.tui.futures import Futures
from studio.tui.graphview import GraphView, Zooming
from studio.tui.header import HeaderLine
from studio.tui.keys import KeyLine
from studio.tui.lines import BLANK, Line, LineView
from studio.tui.messages import ActChosen, Failed, PaneDrawn, PathSelected, PointFailed, PointLoaded, StoreChanged, WhyDrawn
from studio.tui.moving import Moving
from studio.tui.opening import Opening
from studio.tui.panes import changes, conversation, files, graph, raw, tasks, todos
from studio.tui.panes.state import StatePane
from studio.tui.point import Point
from studio.tui.revealing import Revealing
from studio.tui.rows import RowView
from studio.tui.strip import StripLine
from studio.tui.tabs import TABS, TabLine
from studio.tui.timeline import Timeline
from studio.wording import RowWords, row_words

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

TITLE_EDGES = 6
"""Columns inside a pane's frame that its title cannot use."""
FRAME = 2
"""Rows of a pane's frame."""
MOST_WHY, MOST_WHY_LOW = 12, 8
"""Rows of the why pane where it is opened by its key, and where the window is low."""
SETTLE = 0.04
"""Seconds that the cursor rests before a checkpoint is loaded."""


class WhyView(LineView):
    """The why pane: its own selection does not change what is explained."""

    def on_path_selected(self, event: PathSelected) -> None:
        event.stop()


class MainScreen(Copying, Revealing, Zooming, Moving, Futures, Opening):
    """Holds the view's state: thread, cursor (in the timeline), tab, base, selected path."""

    CSS_PATH = "main.tcss"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings()

    def __init__(self, session: Session, at: Address | str | None = None) -> None:
        super().__init__(session, at)
        self._asked = 0
        """Loads of a point so far: the latest one is shown, an earlier one until that is there."""
        self._loaded = 0
        self._drawn: dict[str, int] = {}
        """Pane -> the load it shows."""
        self._wanted: tuple[Address, str] | None = None
        """A value to select as soon as its checkpoint is drawn."""
        self._load_timer: Timer | None = None
        self._why_timer: Timer | None = None
        self._why_asked: tuple[Address, str | None] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._said_title = ""
        self._turns = bool(getattr(session, "is_transcript", False))
        self._read_first = self._turns
        """A transcript is read first: its first point is shown as a chat."""
        self._windows = 1
        """Windows of the conversation that are shown."""

    # ------------------------------------------------------------------ layout

    def compose(self) -> ComposeResult:
        temporary = bool(getattr(self.session, "scratch_is_temporary", False))
        name = os.path.basename(self.session.location) or self.session.location
        words = getattr(self.session, "view_words", "")
        part = f" · {words}" if words else ""
        if self.session.is_transcript:
            refused, temporary = False, False
        else:
            refused = self.session.fork_refusal() is not None
        forks = "nothing can be forked" if refused else "forks go to a temporary scratch" if temporary else ""
        yield HeaderLine(name + part, forks=forks or "forks go to scratch", id="header")
        with Horizontal(id="body"):
            yield Timeline(id="timeline")
            with Vertical(id="right"):
                with Vertical(id="centre"):
                    yield StripLine(id="strip")
                    yield TabLine(id="tabs")
                    with ContentSwitcher(initial="changes", id="panes"):
                        yield LineView(id="changes")
                        yield LineView(id="conversation")
                        yield LineView(id="files")
                        yield LineView(id="todos")
                        yield StatePane(id="state")
                        yield LineView(id="tasks")
                        yield LineView(id="raw")
                        yield GraphView(id="graph")
                yield WhyView(id="why")
        yield KeyLine([*keys.footer_items(), ("ctrl+p", "palette")], id="keys")

    def on_mount(self) -> None:
        self.timeline.border_title = Content("Timeline")
        self.query_one("#centre").border_title = Content("")
        self.query_one("#why").border_title = Content("why")
        self.timeline.focus()
        if self._turns:
            self.query_one("#tabs", TabLine).of_turns(True)
            self.timeline.say_words(self._row_words)
        self.query_one("#changes", LineView).show([Line(draw.own("Opening …", "$faint"), 1)])
        self._unsubscribe = self.session.subscribe(self._store_changed)
        self.open_first()

    def _store_changed(self, what: str) -> None:
        """Called from the session's own threads."""
        self.post_message(StoreChanged(what))

    def on_unmount(self) -> None:
        self._unsubscribe()

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
            self._asked += 1
            self.load_point(self._asked, self.checkpoints, row.checkpoint.address, self.base)

    @work(thread=True, exclusive=True, group="point")
    def load_point(self, serial: int, tree: CheckpointTree, address: Address, base: Address | None) -> None:
        """Tells even when it is overtaken: in a thread that grows faster than a point is read, none would ever be shown."""
        try:
            self.post_message(PointLoaded(serial, point.load(self.session, tree, address, base)))
        except StudioError as error:
            self.post_message(PointFailed(serial, address, error))

    def on_point_loaded(self, event: PointLoaded) -> None:
        row = self.here
        if row is None or row.checkpoint.address != event.point.address or event.serial < self._loaded:
            return
        if self.point is None or self.point.address != event.point.address:
            self._windows = 1
        self.point, self._loaded = event.point, event.serial
        self.query_one("#tabs", TabLine).say(event.point.against)
        self.query_one("#strip", StripLine).say(event.point.strip)
        if self._read_first:
            self._read_first = False
            if self.tab == "changes":
                self.show_tab("conversation")
        if self.session.outside(event.point.address):
            self.timeline.mark_outside(event.point.address)
        self._say_title()
        self.draw_tab()

    def on_point_failed(self, event: PointFailed) -> None:
        """In the panes, which would go on to show another checkpoint otherwise."""
        row = self.here
        if row is None or row.checkpoint.address != event.address or event.serial < self._loaded:
            return
        self.point, self._loaded = None, event.serial
        told = [
            Line(draw.own("This checkpoint cannot be read", "bold $error"), 1),
            Line(draw.text(event.error.message, width=400), 1),
            Line(draw.text(event.error.hint, "$quiet", 400), 1),
        ]
        for view in self.query("#panes LineView").results(LineView):
            view.show(told)
        self.query_one("#state", StatePane).clear()
        self.query_one("#why", WhyView).show([BLANK])
        self.query_one("#tabs", TabLine).say("")

    def on_resize(self) -> None:
        self.call_after_refresh(self._say_title)
        self.call_after_refresh(self._fit_why)

    def _fit_why(self) -> None:
        """Where there is little room, why takes what it needs of it and no more."""
        view = self.query_one("#why", WhyView)
        if self.has_class("why-open") and (self.has_class("low") or self.has_class("narrow")):
            most = MOST_WHY_LOW if self.has_class("low") else MOST_WHY
            view.styles.height = min(most, view.virtual_size.height + FRAME)
        else:
            view.styles.clear_rule("height")

    def _say_title(self) -> None:
        row = self.here
        if row is None:
            return
        centre = self.query_one("#centre")
        title = draw.heading(row, max(20, centre.size.width - TITLE_EDGES))
        if title.plain != self._said_title:
            self._said_title = title.plain
            centre.border_title = title
        self.say_row()

    # ------------------------------------------------------------------ the panes

    def draw_tab(self) -> None:
        """Draw the active tab for the loaded point, unless it is drawn already."""
        if self.point is None or self.checkpoints is None:
            return
        path = self._wanted[1] if self._wanted is not None and self._wanted[0] == self.point.address else None
        if self._drawn.get(self.tab) == self._loaded and path is None:
            return
        if self.tab == "state":
            self._drawn["state"] = self._loaded
            self._wanted = None
            self.query_one("#state", StatePane).show_point(self.point, path)
        else:
            self.build_pane(self.tab, self._loaded, self.point, self.checkpoints)

    def draw_anew(self, tab: str) -> None:
        self._drawn.pop(tab, None)
        if self.tab == tab:
            self.draw_tab()

    @work(thread=True, exclusive=True, group="pane")
    def build_pane(self, name: str, serial: int, at: Point, tree: CheckpointTree) -> None:
        try:
            if name == "changes":
                lines = changes.build(at, tree)
            elif name == "conversation":
                lines = conversation.build(at, tree, self.session, self._windows)
            elif name == "files":
                lines = files.build(at, tree, self.session)
            elif name == "todos":
                lines = todos.build(at, tree, self.session)
            elif name == "tasks":
                lines = tasks.build(at, tree)
            elif name == "graph":
                view = self.query_one("#graph", GraphView)
                names = max(20, view.size.width) if view.names_only else 0
                if graph.counts_long(self.session, tree, at.address.thread_id):
                    self.post_message(PaneDrawn(name, serial, at, graph.before(at, tree, self.session, names)))
                lines = graph.build(at, tree, self.session, names)
            else:
                lines = raw.build(at, [*tree.problems, *self.session.problems()])
        except StudioError as error:
            lines = (Line(draw.text(error.message, "$error"), 1), Line(draw.text(error.hint, "$quiet"), 1))
        self.post_message(PaneDrawn(name, serial, at, lines))

    def on_pane_drawn(self, event: PaneDrawn) -> None:
        address = event.point.address
        if self.point is None or address != self.point.address or event.serial < self._drawn.get(event.pane, 0):
            return
        view = self.query_one(f"#{event.pane}", LineView)
        same = getattr(view, "shown_address", None) == address
        self._drawn[event.pane] = event.serial
        view.shown_address = address  # type: ignore[attr-defined]
        if same and event.pane == "conversation" and self._windows > 1:
            view.grow_upward(event.lines)
        else:
            view.show(event.lines, keep=same)
        if event.pane == "conversation" and not same:
            view.read_from_mark()
        self.explain_soon()

    def on_act_chosen(self, event: ActChosen) -> None:
        event.stop()
        if event.act == conversation.EARLIER:
            self._windows += 1
            self.draw_anew("conversation")

    def _row_words(self, address: Address) -> RowWords | None:
        """What a row of a transcript says beside its title."""
        found = self.session.brief(address)
        return row_words(found, show_secrets=self.session.show_secrets) if found is not None else None

    def show_value(self, address: Address, path: str) -> None:
        self._wanted = None
        self.show_tab("state")
        self.pane.focus()
        self._wanted = (address, path)
        self.go(address)
        self.draw_tab()

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

    @work(thread=True, exclusive=True, group="why")
    def build_why(self, at: Point, tree: CheckpointTree, path: str | None) -> None:
        try:
            found = why.explain(self.session, tree, at, path)
        except StudioError as error:
            found = why.Why("why", (Line(draw.text(error.message, "$quiet"), 1),))
        self.post_message(WhyDrawn(at.address, path, found.title, found.lines))

    def on_why_drawn(self, event: WhyDrawn) -> None:
        if self._why_asked != (event.address, event.path):
            return
        view = self.query_one("#why", WhyView)
        view.border_title = Content(event.title)
        view.show(event.lines or (BLANK,))
        self._fit_why()

    def on_failed(self, event: Failed) -> None:
        self.app.complain(event.error, event.what, self)

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
        if ("turns" in needs and not self._turns) or ("tables" in needs and self._turns):
            return False
        if "scratch" in needs and (self.here is None or self.here.checkpoint.origin != "scratch"):
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
