"""Search: where a text occurs in the values of this thread, then of the whole file; enter goes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from studio.errors import StudioError
from studio.model import Hit
from studio.render import gate
from studio.render.threadnames import thread_name
from studio.tui import draw
from studio.tui.keys import KeyLine
from studio.tui.messages import Failed, HitsFound
from studio.tui.rows import RowView
from studio.tui.screens.filtered import Field, Filtered
from studio.unsearched import Unsearched

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tui.app import StudioApp

BATCH = 10
SETTLE = 0.25


class HitList(RowView):
    """Two lines per hit: where, and the words around it."""

    row_height = 2

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.hits: Sequence[Hit] = ()
        self.thread_id: str | None = None
        self.text = ""

    @property
    def row_count(self) -> int:
        return len(self.hits)

    def draw_row(self, index: int, width: int, here: bool) -> list[Content]:
        hit = self.hits[index]
        bar = Content.styled("▌ " if here else "  ", "$primary bold")
        number = f"#{hit.number}" if hit.number and hit.number.isdigit() else hit.number or "…"
        place = draw.own(f"{number:<5} ", "bold")
        if hit.address.thread_id != self.thread_id:  # first, as a long path would push it out of the window
            place = place + draw.own(thread_name(hit.address.thread_id, max(12, width // 3)), "$lane-sub") + draw.own("  ")
        if hit.label:
            place = place + draw.text(hit.label, "bold", max(12, width // 3)) + draw.own("  ")
        return [
            bar + place + draw.text(hit.path, "$quiet", 80),
            bar + Content("      ") + marked(gate.line(hit.excerpt, max(20, width - 10)), self.text),
        ]


def marked(excerpt: str, text: str) -> Content:
    """An excerpt with the searched text made visible."""
    content = Content(excerpt)
    low, wanted = excerpt.lower(), gate.line(text).lower()
    at = low.find(wanted) if wanted and len(low) == len(excerpt) else -1
    while at >= 0:
        content = content.stylize("bold $new on $new-ground", at, at + len(wanted))
        at = low.find(wanted, at + len(wanted))
    return content


class SearchScreen(Filtered[Hit]):
    """Type, look, go; dismisses with the chosen hit."""

    app: StudioApp
    CSS = """
    SearchScreen > Vertical { width: 100%; max-width: 120; height: 100%; max-height: 40; margin: 1 2; padding: 0; }
    SearchScreen.narrow > Vertical { margin: 0; }
    SearchScreen Input { margin: 1 1; background: $panel; }
    SearchScreen HitList { height: 1fr; }
    SearchScreen #search-passed { height: auto; margin: 0 2; }
    """

    def __init__(self, session: Session, thread_id: str | None) -> None:
        super().__init__()
        self.session = session
        self.thread_id = thread_id
        self._timer: Timer | None = None
        self._hits: list[Hit] = []
        self._serial = 0

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Field(placeholder="A text in any value: a name, an amount, a tool call …", id="search-text", classes="flat")
            yield Static(id="search-passed")
            yield HitList(id="hits")
            yield KeyLine([("↑↓", "move"), ("enter", "show the value"), ("?", "keys"), ("esc", "back")], id="search-keys")

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = Content("Search every state")
        self.query_one("#hits", HitList).thread_id = self.thread_id
        self.query_one("#search-text").focus()

    @on(Input.Changed, "#search-text")
    def text_changed(self, event: Input.Changed) -> None:
        if self._timer is not None:
            self._timer.stop()
        text = event.value
        self._timer = self.set_timer(SETTLE, lambda: self.look(text))

    def look(self, text: str) -> None:
        """Start looking for another text."""
        self.workers.cancel_group(self, "search")
        self._hits = []
        view = self.query_one("#hits", HitList)
        view.hits, view.text = (), text
        self._serial += 1
        self.query_one("#search-passed", Static).update("")
        view.empty = "looking …" if text.strip() else ""
        view.rows_changed()
        self.query_one("#search-keys", KeyLine).say("looking …" if text.strip() else "")
        if text.strip():
            self.search(self._serial, text)

    @work(thread=True, exclusive=True, group="search")
    def search(self, serial: int, text: str) -> None:
        worker = get_current_worker()
        batch: list[Hit] = []
        passed = Unsearched()
        try:
            for hit in self.session.search(text, self.thread_id, passed=passed):
                if worker.is_cancelled:
                    return
                batch.append(hit)
                if len(batch) >= BATCH:
                    self.post_message(HitsFound(serial, tuple(batch), False))
                    batch = []
        except StudioError as error:
            if not worker.is_cancelled:
                self.post_message(Failed(error, "Cannot search"))
        self.post_message(HitsFound(serial, tuple(batch), True, passed.sentence()))

    def on_hits_found(self, event: HitsFound) -> None:
        view = self.query_one("#hits", HitList)
        if event.serial != self._serial:
            return
        self._hits.extend(event.hits)
        view.hits = tuple(self._hits)
        view.empty = f"no match for “{gate.line(view.text, 40)}”" if event.finished else "looking …"
        view.rows_changed()
        words = f"{len(self._hits):,} found" if self._hits else "nothing found"
        if event.passed:
            self.query_one("#search-passed", Static).update(Content.styled(event.passed, "$wait"))
        self.query_one("#search-keys", KeyLine).say(words if event.finished else words + " so far …")

    def on_failed(self, event: Failed) -> None:
        self.app.complain(event.error, event.what)

    @on(Input.Submitted, "#search-text")
    @on(RowView.Chosen, "#hits")
    def choose(self) -> None:
        view = self.query_one("#hits", HitList)
        if view.hits:
            self.dismiss(view.hits[view.cursor])
        elif self.query_one("#search-text", Input).value.strip():
            self.look(self.query_one("#search-text", Input).value)
