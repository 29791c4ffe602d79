"""The action that shows one masked value."""

from __future__ import annotations

from studio.tui.panes.state import StatePane
from studio.tui.place import Place


class Revealing(Place):
    """Values are revealed one by one, where all of a state is in view."""

    def do_reveal(self) -> None:
        pane = self.pane
        if not isinstance(pane, StatePane) or not pane.reveal():
            self.app.tell("Nothing to reveal: stand on a masked value in State.")
