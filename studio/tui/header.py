"""The line at the top: which file and thread, that it is safe and live."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from studio.render import gate


class HeaderLine(Static):
    """`◆ support_agent.sqlite › refund-4711 … read-only · forks go to scratch … ● live`."""

    DEFAULT_CSS = "HeaderLine { height: 1; background: $panel; }"

    def __init__(self, file: str, *, forks: str = "forks go to scratch", id: str | None = None) -> None:
        super().__init__("", markup=False, id=id)
        self._file = gate.line(file, 60)
        self._forks = forks
        self._thread = ""
        self._run = ""

    def say(self, *, thread: str | None = None, run: str | None = None) -> None:
        """Change what is shown; None keeps it."""
        self._thread = self._thread if thread is None else gate.line(thread, 60)
        self._run = self._run if run is None else run
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.size.width
        if width <= 0:
            return
        narrow = width < 100
        where = Content.assemble((" ◆ ", "bold $primary"), (self._file, "$quiet"))
        if self._thread:
            where = where + Content.assemble((" › ", "$faint"), (self._thread, "bold"))
        safe = "read-only" if narrow else f"read-only · {self._forks}"
        state = Content("")
        if self._run:
            state = Content.styled(f"{self._run}   ", "bold $wait")
        state = state + Content.styled(f" {safe} ", "$quiet on $chip") + Content("  ")
        state = state + Content.assemble(("●", "$success"), (" live ", "$quiet"))
        room = width - state.cell_length - 2
        if where.cell_length > room:
            where = where.truncate(max(8, room), ellipsis=True)
        fill = max(1, width - where.cell_length - state.cell_length)
        self.update(where + Content(" " * fill) + state)
