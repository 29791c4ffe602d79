"""Moving about: rows, branches, panes, threads, search."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.worker import get_current_worker

from studio.beside import two_ends
from studio.history.walk import neighbour_branch
from studio.model import Address, Hit
from studio.tui import draw
from studio.tui.lines import LineView
from studio.tui.messages import JumpTo, PathChosen
from studio.tui.place import Place

if TYPE_CHECKING:
    from studio.tree import CheckpointTree


class Moving(Place):
    """The actions of the table that only look."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "focus_centre", "Into the pane", show=False),
        Binding("left,h,escape", "focus_timeline", "Back to the timeline", show=False),
        Binding("tab", "next_pane(1)", "Next pane", show=False),
        Binding("shift+tab", "next_pane(-1)", "Previous pane", show=False),
        Binding("J,shift+down,ctrl+j", "step(1)", "Next checkpoint", show=False),
        Binding("K,shift+up,ctrl+k", "step(-1)", "Previous checkpoint", show=False),
        Binding("e", "edit", "Edit the selected value", show=False),
    ]

    def on_jump_to(self, event: JumpTo) -> None:
        event.stop()
        if event.address.thread_id != self.thread_id:
            self.open_thread(event.address.thread_id, event.address)
        else:
            self.go(event.address)

    def action_focus_centre(self) -> None:
        self.pane.focus()

    def action_focus_timeline(self) -> None:
        if self.has_class("why-open"):
            self.remove_class("why-open")
        self.timeline.focus()

    def action_next_pane(self, by: int) -> None:
        panes: list[Widget] = [self.timeline, self.pane, self.query_one("#why", LineView)]
        order = [widget for widget in panes if widget.display]
        at = order.index(self.focused) if self.focused in order else 0
        order[(at + by) % len(order)].focus()

    def action_step(self, by: int) -> None:
        self.timeline.action_move(by)

    def action_edit(self) -> None:
        path = self.selected_path
        if path is not None:
            self.post_message(PathChosen(path))
        else:
            self.do_fork()

    def do_down(self) -> None:
        self.timeline.action_move(1)

    def do_up(self) -> None:
        self.timeline.action_move(-1)

    def do_first(self) -> None:
        self.timeline.action_to_end(-1)

    def do_last(self) -> None:
        self.timeline.action_to_end(1)

    def do_parent(self) -> None:
        row = self.here
        above = self.checkpoints.grew_from(row.checkpoint.address) if row is not None and self.checkpoints is not None else None
        if above is None:
            self.app.tell("This is where the thread begins.")
        else:
            self.go(above)

    def do_inner(self) -> None:
        point = self.point
        first = next((run.first for runs in point.runs.values() for run in runs), None) if point is not None else None
        if first is None:
            self.app.tell("No subgraph ran from here.")
        else:
            self.go(first)

    def do_caller(self) -> None:
        if self.point is None or self.point.caller is None:
            self.app.tell("No task called this: it is no checkpoint of a subgraph, or the caller is not in this file.")
        else:
            self.go(self.point.caller.address)

    def do_branch_previous(self) -> None:
        self._other_branch(-1)

    def do_branch_next(self) -> None:
        self._other_branch(1)

    def _other_branch(self, by: int) -> None:
        row = self.here
        if row is None or self.checkpoints is None:
            return
        self.find_branch(self.checkpoints, row.checkpoint.address, by)

    @work(thread=True, exclusive=True, group="branch")
    def find_branch(self, tree: CheckpointTree, address: Address, by: int) -> None:
        target = neighbour_branch(tree, address, by)
        if target is not None and not get_current_worker().is_cancelled:
            self.app.call_from_thread(self.go, target)

    def do_why(self) -> None:
        view = self.query_one("#why", LineView)
        if self.focused is view:
            self.remove_class("why-open")
            self.pane.focus()
            return
        self.add_class("why-open")
        self.explain_soon()
        view.focus()

    def do_base(self) -> None:
        row = self.here
        if row is None:
            return
        address = row.checkpoint.address
        self.base = None if self.base is not None else address
        self.timeline.set_base(self.base)
        if self.base is None:
            self.app.tell("Unpinned: diffs are against the parent again.")
        else:
            self.app.tell(f"{draw.number(row)} is pinned: diffs are against it. d again unpins it, 7 shows both branches.")
        self.load_soon(now=True)

    def do_branches(self) -> None:
        row = self.here
        if row is not None:
            self.find_ends(row.checkpoint.address, self.base)

    @work(thread=True, exclusive=True, group="ends")
    def find_ends(self, address: Address, base: Address | None) -> None:
        """Which two branches to show."""
        left, right = two_ends(self.session, address, base)
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self.show_branches, left, right)

    def show_branches(self, left: Address | None, right: Address) -> None:
        from studio.tui.screens.compare import CompareScreen

        if left is None:
            self.app.tell("This thread has one branch. f forks from here; d pins a checkpoint to compare another one with.")
            return
        screen = CompareScreen(self.session, left, right, pinned=left == self.base)
        self.app.push_screen(screen, lambda address: self.go(address) if address is not None else None)

    def do_threads(self) -> None:
        from studio.tui.screens.threads import ThreadsScreen

        if not isinstance(self.app.screen, ThreadsScreen):
            self.app.push_screen(ThreadsScreen(self.session, self.thread_id), self._thread_picked)

    def _thread_picked(self, thread_id: str | None) -> None:
        if thread_id is not None and thread_id != self.thread_id:
            self.open_thread(thread_id)
        elif thread_id is None and self.thread_id is None:
            self.say_none_is_open()

    def do_tables(self) -> None:
        self.app.open_tables(self.session)

    def do_search(self) -> None:
        from studio.tui.screens.search import SearchScreen

        self.app.push_screen(SearchScreen(self.session, self.thread_id), self._hit_picked)

    def _hit_picked(self, hit: Hit | None) -> None:
        if hit is not None:
            self.show_value(hit.address, hit.path)

    def do_help(self) -> None:
        from studio.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen())
