"""The line at the top: which file and thread, that it is safe and live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from studio.render import gate
from studio.render.threadnames import titled
from studio.tui.names import without_keys

if TYPE_CHECKING:
    from studio.tui.app import StudioApp


class HeaderLine(Static):
    """`◆ support_agent.sqlite › refund-4711 … read-only · forks go to scratch … ● live`."""

    app: StudioApp
    DEFAULT_CSS = "HeaderLine { height: 1; background: $panel; }"

    def __init__(self, file: str, *, forks: str = "forks go to scratch", id: str | None = None) -> None:
        super().__init__("", markup=False, id=id)
        self._file = gate.line(file, 60)
        self._forks = forks
        self._thread = ""
        self._run = ""
        self._followed = True

    def say(self, *, thread: tuple[str, str] | None = None, run: str | None = None, followed: bool | None = None) -> None:
        """Change what is shown; None keeps it. `thread`: its title ("" where it has none) and its id. Not `followed`: the file is
        gone or cannot be read, so that all may be old."""
        self._followed = self._followed if followed is None else followed
        self._thread = self._thread if thread is None else titled(*thread, 60)
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
        if not self.app.session.show_secrets:
            where = without_keys(where)
        safe = "read-only" if narrow else f"read-only · {self._forks}"
        state = Content("")
        if self._run:
            state = Content.styled(f"{self._run}   ", "bold $wait")
        state = state + Content.styled(f" {safe} ", "$quiet on $chip") + Content("  ")
        live = (("●", "$success"), (" live ", "$quiet")) if self._followed else (("○ not live: no file ", "$wait"),)
        state = state + Content.assemble(*live)
        room = width - state.cell_length - 2
        if where.cell_length > room:
            where = where.truncate(max(8, room), ellipsis=True)
        fill = max(1, width - where.cell_length - state.cell_length)
        self.update(where + Content(" " * fill) + state)
