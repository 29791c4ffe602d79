"""How a thread comes onto the main screen and grows there: jumps, the live file, the titles that tell of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import work
from textual.content import Content
from textual.timer import Timer
from textual.worker import get_current_worker

from studio.errors import StudioError
from studio.model import Address
from studio.render import labels
from studio.tui import draw, keys
from studio.tui.header import HeaderLine
from studio.tui.lines import Line, LineView
from studio.tui.messages import Failed, StoreChanged, TreeCounted, TreeGrown, TreeLoaded
from studio.tui.place import Place
from studio.tui.point import row_of

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

FEW = 20_000
"""Checkpoints up to which branches and problems are counted when the thread grows: counting reads every row."""
COUNT_PAUSE = 0.5
"""Seconds between two counts of a thread that keeps growing."""


class Opening(Place):
    """Opens threads and keeps the open one up to date. Only another jump may take the place of a jump, never growth."""

    def __init__(self, session: Session, at: Address | str | None = None) -> None:
        super().__init__(session)
        self._at = at
        self._spoken_run = ""
        self._count_timer: Timer | None = None
        self._branches = self._inner = 0

    # ------------------------------------------------------------------ jumps

    @work(thread=True, exclusive=True, group="first")
    def open_first(self) -> None:
        """Open the place that was asked for, the only thread, or the list of threads."""
        worker = get_current_worker()
        try:
            if self._at:
                address = self._at if isinstance(self._at, Address) else self.session.resolve(self._at)
                self._open(address.thread_id, address)
                return
            first = self.session.thread_ids(2)
            if len(first) == 1:
                self._open(first[0], None)
            elif not worker.is_cancelled:
                self.app.call_from_thread(*((self.action_do, "threads") if first else (self._empty,)))
        except StudioError as error:
            if not worker.is_cancelled:
                self.post_message(Failed(error, "Cannot open this place"))
                self.app.call_from_thread(self.action_do, "threads")

    def _empty(self) -> None:
        self._say("No threads yet.", "No checkpoint is stored here. What a program writes appears here by itself.")

    def say_none_is_open(self) -> None:
        self._say("No thread is open.", f"{keys.printed('threads')} lists the threads, ? shows all keys.")

    def _say(self, title: str, words: str) -> None:
        lines = [Line(draw.own(title, "bold"), 1), Line(draw.own(words, "$quiet"), 1)]
        self.query_one("#changes", LineView).show(lines)

    def open_thread(self, thread_id: str, at: Address | None = None) -> None:
        """Show a thread, standing on `at` or its head."""
        self.workers.cancel_group(self, "first")
        self._jump(thread_id, at)

    @work(thread=True, exclusive=True, group="jump")
    def _jump(self, thread_id: str, at: Address | None) -> None:
        try:
            self._open(thread_id, at)
        except StudioError as error:
            self.post_message(Failed(error, "Cannot open this thread"))

    def _open(self, thread_id: str, at: Address | None) -> None:
        tree = self.session.tree(thread_id)
        if at is not None and row_of(tree, at) is None:
            self.session.refresh()  # written a moment ago
        if not get_current_worker().is_cancelled:
            self.post_message(TreeLoaded(thread_id, tree, at))

    def on_tree_loaded(self, event: TreeLoaded) -> None:
        same = event.thread_id == self.thread_id and event.tree is self.checkpoints
        self.checkpoints, self.thread_id = event.tree, event.thread_id
        if same:
            self.timeline.grow()
            if event.at is not None:
                self.go(event.at)
        else:
            if self.base is not None and (self.base.thread_id != event.thread_id or row_of(event.tree, self.base) is None):
                self.base = None
            self.timeline.set_base(self.base)
            self.point = None
            self._branches = self._inner = 0
            self.timeline.border_subtitle = Content("")
            self.timeline.show_tree(event.tree, event.at)
        self.query_one("#header", HeaderLine).say(thread=(self.session.thread_title(event.thread_id), event.thread_id))
        self._show_growth(event.tree)

    # ------------------------------------------------------------------ live

    def on_store_changed(self, event: StoreChanged) -> None:
        self.say_runs()
        if event.what == "follow":
            self.query_one("#header", HeaderLine).say(followed=self.session.is_followed)
        if event.what != "tree":
            return
        if self.thread_id is not None:
            self.look_again(self.thread_id)
        elif len(self.app.screen_stack) <= 2 and not any(w.group == "jump" and not w.is_finished for w in self.workers):
            self.open_first()

    @work(thread=True, exclusive=True, group="growth")
    def look_again(self, thread_id: str) -> None:
        """Tells even when it is overtaken, as a file that grows all the time would never be shown otherwise."""
        worker = get_current_worker()
        try:
            self.post_message(TreeGrown(thread_id, self.session.tree(thread_id)))
        except StudioError as error:
            if not worker.is_cancelled:
                self.post_message(Failed(error, "Cannot read this thread any more"))

    def on_tree_grown(self, event: TreeGrown) -> None:
        if event.thread_id != self.thread_id:
            return  # a jump to another thread came first
        if event.tree is self.checkpoints:
            self.timeline.grow()
        else:
            self.checkpoints = event.tree
            self.timeline.show_tree(event.tree)
        self._show_growth(event.tree)

    def _show_growth(self, tree: CheckpointTree) -> None:
        self._say_rows(tree)
        self._count_soon(tree)
        self.refresh_bindings()
        self.load_soon(now=True)

    def _say_rows(self, tree: CheckpointTree) -> None:
        many = f" · {labels.plural(self._branches, 'branch')}" if self._branches > 1 and len(tree) < FEW else ""
        inner = f" · {self._inner:,} in subgraphs" if self._inner and len(tree) < FEW else ""
        self.timeline.border_title = Content.assemble(("Timeline", "bold"), (f" {len(tree):,}{many}{inner}", "$faint"))
        self.say_row()

    def _count_soon(self, tree: CheckpointTree) -> None:
        if self._count_timer is None:
            self._count_timer = self.set_timer(COUNT_PAUSE if len(tree) > 1_000 else 0.01, self._count)

    def _count(self) -> None:
        self._count_timer = None
        if self.checkpoints is not None and len(self.checkpoints) < FEW:
            self.count(self.checkpoints)

    @work(thread=True, exclusive=True, group="count")
    def count(self, tree: CheckpointTree) -> None:
        """Branches and problems; a count that is overtaken by growth is told all the same, so that there always is one."""
        problems = len(tree.problems) + len(self.session.problems())
        self.post_message(TreeCounted(tree, tree.branch_count, tree.inner_count, problems))

    def on_tree_counted(self, event: TreeCounted) -> None:
        if event.tree is not self.checkpoints:
            return
        self._branches, self._inner = event.branches, event.inner
        self._say_rows(event.tree)
        told = f"! {labels.plural(event.problems, 'problem')} · 5 tells" if event.problems else ""
        self.timeline.border_subtitle = Content.styled(told, "$wait")

    def say_runs(self) -> None:
        going = [run for run in self.session.runs() if run.status == "running"]
        words = f"running {len(going)}" if len(going) > 1 else "running …" if going else ""
        if words != self._spoken_run:
            self._spoken_run = words
            self.query_one("#header", HeaderLine).say(run=words)
            self.refresh_bindings()
