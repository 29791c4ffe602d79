"""The pane of the graph: it scrolls to the superstep when one steps, and shows the whole by names alone when asked."""

from __future__ import annotations

from collections.abc import Iterable

from studio.tui.lines import Line, LineView
from studio.tui.place import Place


class GraphView(LineView):
    """Marked lines are the superstep."""

    names_only = False
    """Nodes without their edges: more of the graph at once."""
    _sized = False
    """It was drawn at another size since it was shown last."""

    def show(self, lines: Iterable[Line], *, keep: bool = False) -> None:
        y = self.scroll_offset.y
        super().show(lines, keep=keep)
        if not keep or self._sized:
            self._sized = False
            self.scroll_to(y=min(y, self.max_scroll_y), animate=False, force=True, immediate=True)
            self.show_marked()

    def show_marked(self) -> None:
        """Scroll to the superstep unless it is in sight, and stand on it where the cursor would be out of sight."""
        marked = [index for index, (line, _) in enumerate(self._lines) if line.mark]
        height = self.scrollable_content_region.height
        if not marked or height <= 0:
            return
        top, last = self._starts[marked[0]], marked[-1]
        bottom = self._starts[last] + self._height(last)
        if bottom - top > height:
            bottom = top + min(self._height(marked[0]), height)
        y = self.scroll_offset.y
        if top < y or bottom > y + height:
            most = max(0, len(self._layout) - height)
            first_look = 0 if bottom <= height else min(most, max(0, (top + bottom - height) // 2))
            self.scroll_to(y=first_look, animate=False, force=True, immediate=True)
            y = first_look
        at = self.cursor
        if at is None or not y <= self._starts[at] < y + height:
            index = next((one for one in marked if self._lines[one][0].selectable), None)
            self.set_reactive(LineView.cursor, index)
        self.refresh()

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_marked)

    def zoom(self, names_only: bool) -> bool:
        """Choose how much of each node is shown; False where it is shown so already."""
        changed, self.names_only = names_only != self.names_only, names_only
        self._sized = self._sized or changed
        return changed


class Zooming(Place):
    """The actions that show more or less of the graph at once."""

    def do_zoom_in(self) -> None:
        self._zoom(False, "The graph is shown with its edges; - shows the names alone.")

    def do_zoom_out(self) -> None:
        self._zoom(True, "The graph is shown by its names; + shows the edges, too.")

    def do_zoom_whole(self) -> None:
        self._zoom(not self.query_one("#graph", GraphView).names_only, "")

    def _zoom(self, names_only: bool, already: str) -> None:
        view = self.query_one("#graph", GraphView)
        if self.tab != "graph":
            self.app.tell("This is about the graph: 6 shows it.")
        elif view.zoom(names_only):
            self.draw_anew("graph")
        else:
            view.show_marked()
            self.app.tell(already)
