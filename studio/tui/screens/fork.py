"""Fork: values to set, another next node, a new thread; what that changes and runs; then fork, or fork and run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Input, Label, Select
from textual.worker import get_current_worker

from studio import tagged
from studio.errors import PatchError, StudioError
from studio.model import Tagged_JSON, Value
from studio.render import gate, labels
from studio.requests import ForkPreview, ForkRequest, Patch
from studio.tui import draw, moves
from studio.tui.keys import KeyLine
from studio.tui.lines import BLANK, Line, LineView
from studio.tui.messages import Failed, Forked, PathChosen, PathSelected, PreviewReady
from studio.tui.moves import Made
from studio.tui.panes import changes
from studio.tui.point import Point
from studio.tui.rows import RowView
from studio.tui.screens.edit import Edited, EditScreen
from studio.tui.screens.edits import GONE, Edit, EditList

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tui.app import StudioApp

SETTLE = 0.15


class ForkScreen(ModalScreen[Made | None]):
    """Dismisses with the fork that was written, or None."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("ctrl+s", "fork(False)", "Fork", show=False, priority=True),
        Binding("ctrl+r", "fork(True)", "Fork and run", show=False, priority=True),
        Binding("delete,backspace,minus", "drop", "Drop the edit", show=False),
        Binding("x", "remove_value", "Remove the value", show=False),
    ]
    CSS_PATH = "fork.tcss"

    def __init__(self, session: Session, point: Point, edit: str | None = None) -> None:
        super().__init__()
        self.session = session
        self.point = point
        self._first_edit = edit
        self._serial = 0
        self._timer: Timer | None = None
        self._preview: ForkPreview | None = None
        self._writing = False

    def compose(self) -> ComposeResult:
        row = self.point.row
        following = labels.names(self.point.state.next or ()) or "nothing"
        with Vertical(id="fork-box", classes="dialog"):
            with Horizontal(id="fork-body"):
                with Vertical(id="fork-left"):
                    yield Label("Set", classes="fork-label", markup=False)
                    yield EditList(self.point, id="edits")
                    yield Label("How", classes="fork-label", markup=False)
                    yield Select[str]([(Content("set the values, no code runs"), "")], allow_blank=False, id="how", compact=True)
                    yield Label("Next", classes="fork-label", markup=False)
                    yield Select[str]([(Content(f"as recorded: {following}"), "")], allow_blank=False, id="goto", compact=True)
                    yield Label("Thread", classes="fork-label", markup=False)
                    yield Input(
                        placeholder=f"the same: {gate.line(row.checkpoint.thread_id, 40)}", id="new-thread", classes="flat"
                    )
                yield LineView(id="fork-preview")
            with Horizontal(id="fork-buttons"):
                yield Button("Fork and run", variant="primary", id="fork-run")
                yield Button("Fork", id="fork-only")
                yield Button("Cancel", id="fork-cancel")
            yield KeyLine(
                [("enter", "edit"), ("del", "drop edit"), ("ctrl+r", "fork and run"), ("ctrl+s", "fork"), ("esc", "leave")],
                id="fork-keys",
            )

    def on_mount(self) -> None:
        self.query_one("#edits").focus()
        self.load_choices()
        if self._first_edit is not None:
            self.edit_path(self._first_edit)
        self._preview_soon()

    def on_resize(self) -> None:
        self.call_after_refresh(self._say_title)

    def _say_title(self) -> None:
        box = self.query_one("#fork-box")
        box.border_title = draw.heading(self.point.row, max(20, box.size.width - 6), lead="Fork from ")

    # ------------------------------------------------------------------ choices

    @work(thread=True, group="choices")
    def load_choices(self) -> None:
        """The nodes that could run next, and those that could be written as."""
        try:
            goto = self.session.goto_candidates(self.point.address)
        except StudioError:
            goto = ()
        try:
            nodes = self.session.as_node_candidates(self.point.address)
        except StudioError:
            nodes = ()
        self.app.call_from_thread(self._offer, goto, nodes)

    def _offer(self, goto: tuple[str, ...], nodes: tuple[str, ...]) -> None:
        if not self.is_attached:  # left meanwhile
            return
        following = labels.names(self.point.state.next or ()) or "nothing"
        choices = [
            (Content(f"as recorded: {following}"), ""),
            *((Content(f"go to {gate.line(name, 40)}"), name) for name in goto),
        ]
        self.query_one("#goto", Select).set_options(choices)
        ways = [
            (Content("set the values, no code runs"), ""),
            *((Content(f"write as {gate.line(name, 30)}, through your reducers"), name) for name in nodes),
        ]
        self.query_one("#how", Select).set_options(ways)

    @property
    def edits(self) -> list[Edit]:
        return self.query_one("#edits", EditList).edits

    def _put(self, edit: Edit) -> None:
        view = self.query_one("#edits", EditList)
        at = next((index for index, one in enumerate(view.edits) if one.path == edit.path), None)
        if at is None:
            view.edits.append(edit)
            at = len(view.edits) - 1
        else:
            view.edits[at] = edit
        view.rows_changed()
        view.set_cursor(at)
        view.focus()
        self._preview_soon()

    def action_drop(self) -> None:
        view = self.query_one("#edits", EditList)
        if self.focused is view and view.cursor < len(view.edits):
            del view.edits[view.cursor]
            view.rows_changed()
            self._preview_soon()

    def action_remove_value(self) -> None:
        """Turn the edit under the cursor into a removal."""
        view = self.query_one("#edits", EditList)
        if self.focused is view and view.cursor < len(view.edits):
            self._put(Edit(view.edits[view.cursor].path, GONE))

    @on(RowView.Chosen, "#edits")
    def edit_chosen(self, event: RowView.Chosen) -> None:
        event.stop()
        if event.index < len(self.edits):
            self.edit_path(self.edits[event.index].path)
        elif event.index == len(self.edits):
            from studio.tui.screens.pick import PickScreen

            self.app.push_screen(PickScreen(self.point), self._picked)
        else:
            self.edit_whole()

    def _picked(self, path: str | None) -> None:
        if path is not None:
            self.edit_path(path)

    def edit_path(self, path: str) -> None:
        """Open the editor on one value."""
        row = self.point.row
        held = next((edit for edit in self.edits if edit.path == path and edit.doc is not GONE), None)
        value: Value = None
        if held is None:
            try:
                value = tagged.get(self.point.state.editable, path)
            except StudioError:
                value = None
        screen = EditScreen(
            f"{path}  at {draw.number(row)}",
            value,
            "A fork keeps what you set here; the file stays as it is.",
            path=path,
            show_secrets=self.point.show_secrets,
            doc=held.doc if held else None,
            has_doc=held is not None,
        )
        self.app.push_screen(screen, lambda edited: self._edited(path, edited))

    def _edited(self, path: str, edited: Edited | None) -> None:
        if edited is not None and edited.changed:
            self._put(Edit(path, edited.doc))

    def edit_whole(self) -> None:
        """Open the editor on the whole state; each channel that differs becomes an edit."""
        values = self.point.state.editable
        title = f"the whole state at {draw.number(self.point.row)}"
        screen = EditScreen(
            title, values, "One key per channel; only what you change is set.", show_secrets=self.point.show_secrets
        )
        before = screen._doc
        self.app.push_screen(screen, lambda edited: self._edited_whole(before, edited))

    def _edited_whole(self, before: Tagged_JSON, edited: Edited | None) -> None:
        if edited is None or not edited.changed:
            return
        if not isinstance(edited.doc, dict) or not isinstance(before, dict):
            self.app.complain(PatchError("The state must stay an object with one key per channel."))
            return
        for channel, doc in edited.doc.items():
            if channel not in before or tagged.dumps(before[channel]) != tagged.dumps(doc):
                self._put(Edit(tagged.join_path([channel]), doc))
        for channel in before:
            if channel not in edited.doc:
                self._put(Edit(tagged.join_path([channel]), GONE))

    # ------------------------------------------------------------------ preview

    @on(Select.Changed)
    @on(Input.Changed, "#new-thread")
    def _preview_soon(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(SETTLE, self._ask_preview)

    def _ask_preview(self) -> None:
        self._serial += 1
        try:
            request = self.request()
        except StudioError as error:
            self.post_message(PreviewReady(self._serial, None, (), error))
            return
        self.build_preview(self._serial, request)

    def request(self) -> ForkRequest:
        """The fork as it is asked for now. Raises StudioError where edits cannot be put together."""
        how, goto = str(self.query_one("#how", Select).value or ""), str(self.query_one("#goto", Select).value or "")
        thread = self.query_one("#new-thread", Input).value.strip() or None
        if how:
            return ForkRequest(self.point.address, as_node=how, update=self._update(), is_update=True, new_thread=thread)
        patch = Patch(
            {edit.path: edit.doc for edit in self.edits if edit.doc is not GONE},
            tuple(edit.path for edit in self.edits if edit.doc is GONE),
        )
        return ForkRequest(self.point.address, patch=patch, goto=goto or None, new_thread=thread)

    def _update(self) -> Tagged_JSON:
        """What a node would return: whole channels, with the edits inside."""
        update: dict[str, Tagged_JSON] = {}
        values = self.point.state.editable
        for edit in self.edits:
            if edit.doc is GONE:
                raise PatchError("A node cannot remove a value.", "Set the values instead of writing as a node.")
            channel = tagged.split_path(edit.path)[0]
            whole = tagged.join_path([channel])
            if edit.path == whole:
                update[channel] = edit.doc
            else:
                stored = tagged.get(values, edit.path)
                values = tagged.set_in(values, edit.path, tagged.from_tagged(edit.doc, stored))
                update[channel] = tagged.to_tagged(values[channel])
        return update

    @work(thread=True, exclusive=True, group="preview")
    def build_preview(self, serial: int, request: ForkRequest) -> None:
        worker = get_current_worker()
        try:
            preview = self.session.preview(request)
            lines = preview_lines(preview, request, self.point)
            message = PreviewReady(serial, preview, lines)
        except StudioError as error:
            message = PreviewReady(serial, None, (), error)
        if not worker.is_cancelled:
            self.post_message(message)

    def on_preview_ready(self, event: PreviewReady) -> None:
        if event.serial != self._serial:
            return
        self._preview = event.preview
        lines = event.lines
        if event.error is not None:
            lines = (
                Line(draw.own("This fork cannot be made", "bold $error"), 1),
                Line(draw.text(event.error.message, width=400), 1),
                Line(draw.text(event.error.hint, "$quiet", 400), 1),
            )
        self.query_one("#fork-preview", LineView).show(lines)
        allowed = event.preview is not None and event.preview.refused is None
        for button in ("#fork-run", "#fork-only"):
            self.query_one(button, Button).disabled = not allowed

    def on_path_selected(self, event: PathSelected) -> None:
        event.stop()

    def on_path_chosen(self, event: PathChosen) -> None:
        event.stop()
        self.edit_path(event.path)

    # ------------------------------------------------------------------ forking

    @on(Button.Pressed)
    def pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "fork-cancel":
            self.dismiss(None)
        else:
            self.action_fork(event.button.id == "fork-run")

    def action_fork(self, then_run: bool) -> None:
        if self._writing or self.query_one("#fork-only", Button).disabled:
            return
        try:
            request = self.request()
        except StudioError as error:
            self.app.complain(error, "Cannot fork")
            return
        self._writing = True
        self.write(request, then_run)

    @work(thread=True, group="fork")
    def write(self, request: ForkRequest, then_run: bool) -> None:
        try:
            self.post_message(Forked(self.session.fork(request), then_run))
        except StudioError as error:
            self.post_message(Failed(error, "Not forked"))

    def on_forked(self, event: Forked) -> None:
        result = event.result
        surprises = tuple(result.surprises)
        if not result.verified and not surprises:
            surprises = ("the stored result differs from what was asked for",)
        to_show = result.root if event.then_run else result.address
        made = Made(to_show, self.point.address, event.then_run, surprises, result.verified)
        if not made.then_run and surprises:  # the run's dialog tells it by itself: a toast would cover its foot
            self.app.notify(gate.clean("\n".join(surprises)), title=made.title, severity="warning", timeout=12, markup=False)
        elif not made.then_run:
            self.app.tell(moves.WRITTEN, title="Forked")
        self.dismiss(made)

    def on_failed(self, event: Failed) -> None:
        self._writing = False
        self.app.complain(event.error, event.what)

    def action_leave(self) -> None:
        self.dismiss(None)


def preview_lines(preview: ForkPreview, request: ForkRequest, point: Point) -> tuple[Line, ...]:
    """A fork as a promise: what changes, what runs next, what to know, what stays."""
    lines: list[Line] = [Line(draw.own("What changes", "bold $primary"), 1)]
    if preview.changes:
        lines += changes.changes(preview.changes, None, show_secrets=point.show_secrets, heads=False)
    else:
        lines.append(Line(draw.own("Nothing: the same point again.", "$quiet"), 2))
    lines += [BLANK, Line(draw.own("Then runs", "bold $primary"), 1)]
    if preview.next is None:
        lines.append(Line(draw.own("cannot be known before it runs", "$quiet"), 2))
    elif preview.next:
        lines.append(Line(draw.text(labels.names(preview.next), "bold", 200), 2))
    else:
        lines.append(Line(draw.own("nothing: this is the end of the thread", "$quiet"), 2))
    if preview.refused is not None:
        lines += [BLANK, Line(draw.own("Refused", "bold $error"), 1), Line(draw.text(preview.refused, width=600), 2)]
    if preview.warnings:
        lines += [BLANK, Line(draw.own("To know", "bold $wait"), 1)]
        lines += [Line(draw.own("! ", "$wait bold") + draw.text(words, width=600), 2, hanging=2) for words in preview.warnings]
    where = "a new thread" if request.new_thread else "the same thread, beside this checkpoint"
    lines += [
        BLANK,
        Line(draw.own("Stays", "bold $primary"), 1),
        Line(draw.own(f"the opened file, byte for byte; the fork goes to the scratch file, in {where}", "$quiet"), 2),
    ]
    return tuple(lines)
