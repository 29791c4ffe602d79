"""What the parts of the main screen share: where a person stands, and the widgets that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

from studio.model import Address, Row
from studio.tui.keys import KeyLine
from studio.tui.lines import LineView
from studio.tui.panes.state import StatePane
from studio.tui.point import Point
from studio.tui.tabs import TabLine
from studio.tui.timeline import Timeline

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree
    from studio.tui.app import StudioApp


class Place(Screen[None]):
    """A thread, a checkpoint in it, and what diffs compare with."""

    app: StudioApp

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.checkpoints: CheckpointTree | None = None
        """The tree of the open thread."""
        self.thread_id: str | None = None
        self.point: Point | None = None
        """The checkpoint under the cursor as last loaded; may lag behind `here`."""
        self.base: Address | None = None
        """The checkpoint that every diff is pinned to, or None for the parent."""

    @property
    def timeline(self) -> Timeline:
        return self.query_one("#timeline", Timeline)

    @property
    def tab(self) -> str:
        return self.query_one("#tabs", TabLine).active

    @property
    def pane(self) -> LineView | StatePane:
        """The pane of the active tab."""
        found = self.query_one(f"#{self.tab}")
        assert isinstance(found, (LineView, StatePane))
        return found

    @property
    def here(self) -> Row | None:
        return self.timeline.here

    @property
    def selected_path(self) -> str | None:
        return self.pane.selected_path

    def go(self, address: Address) -> None:
        """Stand on a checkpoint, in whatever thread it is."""
        if address.thread_id != self.thread_id:
            self.open_thread(address.thread_id, address)
        elif not self.timeline.go(address):
            self.app.tell("That checkpoint is not in this file.")

    def open_thread(self, thread_id: str, at: Address | None = None) -> object:
        """Show a thread, standing on `at`, where the cursor stood, or the head."""
        raise NotImplementedError

    def action_do(self, action_id: str) -> None:
        """Run an action of the table by its id."""
        raise NotImplementedError

    def say_row(self) -> None:
        """Tell on which of the rows the cursor is."""
        self.query_one("#keys", KeyLine).say(f"row {self.timeline.cursor + 1:,} of {self.timeline.row_count:,}")

    def say_none_is_open(self) -> None:
        """Say how to go on where no thread was chosen."""
        raise NotImplementedError

    def show_value(self, address: Address, path: str) -> None:
        """Stand on a checkpoint with one of its values selected in State."""
        raise NotImplementedError

    def show_tab(self, tab: str) -> None:
        """Show another pane of the loaded checkpoint."""
        raise NotImplementedError

    def draw_anew(self, tab: str) -> None:
        """Draw a pane again though the cursor stayed: what it shows is known better now."""
        raise NotImplementedError

    def load_soon(self, *, now: bool = False) -> None:
        """Load the point under the cursor, once the cursor rests."""
        raise NotImplementedError

    def explain_soon(self) -> None:
        """Explain the selected value, once the selection rests."""
        raise NotImplementedError

    def do_fork(self) -> None:
        """Open the fork screen for the checkpoint under the cursor."""
        raise NotImplementedError

    def say_runs(self) -> None:
        """Tell whether a run is going."""
        raise NotImplementedError
