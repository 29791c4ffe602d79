"""The tabs of the centre pane in one line, with what the changes are relative to at its right end."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static

TABS = ("changes", "conversation", "files", "todos", "state", "tasks", "raw", "graph")
OF_STATES = ("changes", "conversation", "state", "tasks", "raw", "graph")
OF_TURNS = ("conversation", "changes", "files", "todos", "state", "raw", "graph", "tasks")
"""The tabs of an agent's transcript, which is read first."""
TITLES = {
    "changes": "Changes",
    "conversation": "Conversation",
    "files": "Files",
    "todos": "Todos",
    "state": "State",
    "tasks": "Tasks",
    "raw": "Raw",
    "graph": "Graph",
}
_SHORT = {"conversation": "Chat"}


class TabLine(Static):
    """One line of tabs; a click or their keys choose."""

    DEFAULT_CSS = "TabLine { height: 2; background: $surface; padding: 0 1; }"
    active: reactive[str] = reactive("changes", init=False)

    @dataclass
    class Chosen(Message):
        tab: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", markup=False, id=id)
        self._against = ""
        self._turns = False
        self._spots: list[tuple[int, int, str]] = []

    def say(self, against: str) -> None:
        if against != self._against:
            self._against = against
            self._draw()

    def of_turns(self, turns: bool) -> None:
        """Show the tabs of a transcript, or those of a database."""
        self._turns = turns
        self._draw()

    def watch_active(self, _active: str) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.content_size.width
        if width <= 0:
            return
        names = {tab: TITLES[tab] for tab in (OF_TURNS if self._turns else OF_STATES)}
        if self.active not in names:
            names[self.active] = TITLES[self.active]
        if self._turns:
            names.update(_SHORT)
        gap = 3
        if sum(len(name) + gap for name in names.values()) + len(self._against) + 6 > width:
            names.update(_SHORT)
        if sum(len(name) + gap for name in names.values()) > width:
            gap = 1
        top, under = Content(""), Content("")
        self._spots = []
        for tab, name in names.items():
            here = tab == self.active
            start = top.cell_length
            top = top + Content.styled(name, "bold $primary" if here else "$quiet") + Content(" " * gap)
            under = (
                under
                + Content.styled(("━" if here else "─") * len(name), "$primary" if here else "$line")
                + Content.styled("─" * gap, "$line")
            )
            self._spots.append((start, start + len(name), tab))
        shift = max(0, next(stop for _, stop, tab in self._spots if tab == self.active) - width)
        if shift:  # too narrow for all of them: the one that is shown stays in view
            top, under = top[shift:], under[shift:]
            self._spots = [(start - shift, stop - shift, tab) for start, stop, tab in self._spots]
        right = Content.styled(f"vs {self._against}", "$faint") if self._against else Content("")
        fill = width - top.cell_length - right.cell_length
        if fill >= 0:
            top = top + Content(" " * fill) + right
        under = under + Content.styled("─" * max(0, width - under.cell_length), "$line")
        self.update(top.truncate(width) + Content("\n") + under.truncate(width))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        for start, stop, tab in self._spots:
            if start <= offset.x < stop:
                self.post_message(self.Chosen(tab))
