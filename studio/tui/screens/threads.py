"""The list of threads, filtered by any of their texts: ids, first and last words, metadata, status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input
from textual.worker import get_current_worker

from studio import wording
from studio.errors import StudioError
from studio.model import Thread
from studio.render import gate, labels, masking, preview
from studio.render.threadnames import titled
from studio.tui import draw
from studio.tui.keys import KeyLine
from studio.tui.messages import Failed, ThreadsLoaded
from studio.tui.rows import RowView
from studio.tui.screens.filtered import Field, Filtered

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tui.app import StudioApp

BATCH = 50
_SHAPES = {
    "done": ("●", "$lane-main"),
    "ready": ("●", "$lane-main"),
    "paused": ("■", "$wait"),
    "failed": ("✕", "$error"),
    "unknown": ("○", "$faint"),
}
_STYLES = {"done": "$faint", "ready": "$lane-main", "paused": "$wait", "failed": "$error"}


class ThreadList(RowView):
    """Two lines per thread: who and how it stands, then its first and last words."""

    row_height = 2

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.threads: Sequence[Thread] = ()

    @property
    def row_count(self) -> int:
        return len(self.threads)

    def draw_row(self, index: int, width: int, here: bool) -> list[Content]:
        thread = self.threads[index]
        bar = Content.styled("▌" if here else " ", "$primary bold")
        shape, colour = _SHAPES.get(thread.status, ("●", "$lane-main"))
        facts = labels.plural(thread.checkpoints, "checkpoint")
        if len(thread.heads) > 1:
            rule = f" (active: {gate.line(thread.active, 80)})" if thread.active and width >= 130 else ""
            facts += f" · {labels.plural(len(thread.heads), 'branch')}{rule}"
        if thread.scratch_checkpoints:
            facts += f" · {labels.plural(thread.scratch_checkpoints, 'fork row')}"
        if "cost_usd" in thread.facts:
            facts += f" · {wording.cost_words(thread.facts['cost_usd'])}"
        right = Content.styled(f"{facts} · {labels.when(thread.last_at)} ", "$faint")
        if width < 90:
            right = Content.styled(f"{labels.when(thread.last_at)} ", "$faint")
        status = Content.styled(f"  {labels.status_word(thread.status)}", _STYLES.get(thread.status, "$faint"))
        room = max(8, width - right.cell_length - status.cell_length - 6)
        name = titled(thread.title, thread.thread_id, room)
        first = bar + Content.assemble((f" {shape} ", colour), (name, "bold")) + status
        fill = width - first.cell_length - right.cell_length
        first = first + Content(" " * max(1, fill)) + right
        return [first, bar + Content("   ") + _words(thread, width - 5)]


def _words(thread: Thread, room: int) -> Content:
    """First and last words of the thread, or its metadata where nobody spoke."""
    said, last = masking.text(thread.first_text or ""), masking.text(thread.last_text or "")
    half = room if not last or last == said else room // 2 - 2
    if said:
        shown = draw.text(f"“{said}”" if len(said) < half - 2 else said, "$quiet", max(8, half))
        if last and last != said:
            shown = shown + draw.own(" … ", "$faint") + draw.text(last, "$quiet", max(8, half))
        return shown
    if thread.closed:
        return draw.text(labels.sentence(thread.closed), "$wait", max(8, room))
    if thread.metadata:
        return Content.styled(preview.summary(dict(thread.metadata), max(8, room)), "$faint")
    return draw.own("no words", "$faint")


def haystack(thread: Thread) -> str:
    """Everything about a thread that the filter looks at, in lower case."""
    meta = " ".join(
        f"{key} {value if isinstance(value, str) else preview.summary(value)}" for key, value in thread.metadata.items()
    )
    return " ".join(
        [
            thread.thread_id,
            thread.first_text or "",
            thread.last_text or "",
            meta,
            thread.status,
            labels.status_word(thread.status),
            *thread.namespaces,
            thread.title,
            thread.model,
        ]
    ).lower()


class ThreadsScreen(Filtered[str]):
    """Choose a thread; dismisses with its id."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+o", "tables", "Tables", show=False)]
    CSS = """
    ThreadsScreen > Vertical { width: 100%; max-width: 130; height: 100%; max-height: 44; margin: 1 2; padding: 0; }
    ThreadsScreen.narrow > Vertical { margin: 0; }
    ThreadsScreen Input { margin: 1 1; background: $panel; }
    ThreadsScreen ThreadList { height: 1fr; }
    """

    def __init__(self, session: Session, current: str | None = None) -> None:
        super().__init__()
        self.session = session
        self._current = current
        self._all: list[tuple[Thread, str]] = []
        self._finished = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Field(placeholder="Filter by id, first or last words, user, status …", id="filter", classes="flat")
            yield ThreadList(id="threads")
            yield KeyLine(
                [("↑↓", "move"), ("enter", "open"), ("type", "to filter"), ("ctrl+o", "tables"), ("?", "keys"), ("esc", "back")],
                id="thread-keys",
            )

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = Content("Threads")
        self.query_one("#filter").focus()
        self.load()

    @work(thread=True, exclusive=True, group="threads")
    def load(self) -> None:
        worker = get_current_worker()
        batch: list[Thread] = []
        try:
            for thread in self.session.threads():
                if worker.is_cancelled:
                    return
                batch.append(thread)
                if len(batch) >= BATCH:
                    self.post_message(ThreadsLoaded(tuple(batch), False))
                    batch = []
        except StudioError as error:
            self.post_message(Failed(error, "Cannot list the threads"))
        self.post_message(ThreadsLoaded(tuple(batch), True))

    def on_threads_loaded(self, event: ThreadsLoaded) -> None:
        self._all.extend((thread, haystack(thread)) for thread in event.threads)
        self._finished = event.finished
        if event.finished:
            self._all.sort(key=lambda pair: pair[0].last_at or "", reverse=True)
        self._show()

    def on_failed(self, event: Failed) -> None:
        self.app.complain(event.error, event.what)

    @on(Input.Changed, "#filter")
    def filter_changed(self) -> None:
        self._show(top=True)

    def _show(self, *, top: bool = False) -> None:
        words = self.query_one("#filter", Input).value.lower().split()
        view = self.query_one("#threads", ThreadList)
        keep = view.threads[view.cursor].thread_id if view.threads and not top else self._current
        view.threads = [thread for thread, text in self._all if all(word in text for word in words)]
        shown = gate.line(self.query_one("#filter", Input).value, 40)
        view.empty = f"no thread matches “{shown}”" if words else "no threads yet"
        view.empty = view.empty if self._finished else "reading the threads …"
        view.rows_changed()
        at = next((index for index, thread in enumerate(view.threads) if thread.thread_id == keep), 0)
        view.set_cursor(at)
        counted = f"{len(view.threads):,} of {len(self._all):,}" if words else f"{len(self._all):,}"
        self.query_one("#thread-keys", KeyLine).say(counted if self._finished else f"{counted} so far …")

    @on(Input.Submitted, "#filter")
    @on(RowView.Chosen, "#threads")
    def choose(self) -> None:
        view = self.query_one("#threads", ThreadList)
        if view.threads:
            self.dismiss(view.threads[view.cursor].thread_id)

    def action_tables(self) -> None:
        self.app.open_tables(self.session)
