"""Pick a value of the state to edit."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from studio.tui.keys import KeyLine
from studio.tui.messages import PathChosen, PathSelected
from studio.tui.panes.state import StatePane
from studio.tui.point import Point


class PickScreen(ModalScreen[str | None]):
    """Dismisses with the path of a value."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", show=False)]
    CSS = """
    PickScreen > Vertical { width: 100%; max-width: 100; height: 100%; max-height: 36; margin: 1 2; padding: 0; }
    PickScreen.narrow > Vertical { margin: 0; }
    PickScreen StatePane { height: 1fr; }
    """

    def __init__(self, point: Point) -> None:
        super().__init__()
        self._point = point

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield StatePane(id="pick")
            yield KeyLine([("↑↓", "move"), ("→", "open"), ("enter", "edit"), ("esc", "back")], id="pick-keys")

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = Content("Which value?")
        pane = self.query_one("#pick", StatePane)
        pane.show_point(self._point)
        pane.focus()

    def on_path_chosen(self, event: PathChosen) -> None:
        event.stop()
        self.dismiss(event.path)

    def on_path_selected(self, event: PathSelected) -> None:
        event.stop()

    def action_leave(self) -> None:
        self.dismiss(None)
