"""Fork: set the state, write as a node, or the same point again; what that changes and runs; then fork, or fork and run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Checkbox, Input, Label, Select
from textual.worker import get_current_worker

from studio import tagged
from studio.errors import PatchError, StudioError
from studio.model import Tagged_JSON, Value
from studio.render import forkwords, gate, labels
from studio.render.threadnames import thread_name
from studio.requests import ForkPreview, ForkRequest, GraphSpec, NodeUpdate, Patch
from studio.tui import draw, moves
from studio.tui.keys import KeyLine
from studio.tui.lines import Line, LineView
from studio.tui.messages import Failed, Forked, PathChosen, PathSelected, PreviewReady
from studio.tui.moves import Made
from studio.tui.point import Point
from studio.tui.rows import RowView
from studio.tui.screens.edit import Edited, EditScreen
from studio.tui.screens.edits import GONE, Edit, EditList
from studio.tui.screens.promised import COPY, acts, preview_lines
from studio.tui.tick import Tick

if TYPE_CHECKING:
    from studio.rewriting import Rewriting
    from studio.running.candidates import Candidate, Candidates
    from studio.session import Session
    from studio.tui.app import StudioApp

SETTLE = 0.15
_KEYS = [("enter", "edit"), ("del", "drop edit"), ("ctrl+r", "fork and run"), ("ctrl+s", "fork"), ("esc", "leave")]


class ForkScreen(ModalScreen[Made | None]):
    """Dismisses with the fork that was written, or None."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("ctrl+s", "fork(False)", "Fork", show=False, priority=True),
        Binding("ctrl+r", "fork(True)", "Fork and run", show=False, priority=True),
        Binding("delete,backspace,minus", "drop", "Drop the edit", show=False),
        Binding("x", "remove_value", "Remove the value", show=False),
        Binding("ctrl+n", "another", "And another node", show=False, priority=True),
        Binding("ctrl+z", "take_back", "Without the last node", show=False, priority=True),
        Binding("e", "messages", "Edit the messages", show=False),
    ]
    CSS_PATH = "fork.tcss"

    def __init__(self, session: Session, point: Point, edit: str | None = None, *, messages: bool = False) -> None:
        super().__init__()
        self.session = session
        self.point = point
        self._first_edit = edit
        self._messages_first = messages
        self.chats: dict[str, Rewriting] = {}
        """Channels whose messages were edited one by one."""
        self._serial = 0
        self._timer: Timer | None = None
        self._preview: ForkPreview | None = None
        self._writing = False
        self._writers: dict[str, Candidate] = {}
        self._note = ""
        self._looked = False
        """The graph was loaded for a preview, so its own edges tell what would run."""
        self._before: list[NodeUpdate] = []
        """Writes of the same superstep that are settled; the form holds the last one."""

    def compose(self) -> ComposeResult:
        row = self.point.row
        following = labels.names(self.point.state.next or ()) or "nothing"
        with Vertical(id="fork-box", classes="dialog"):
            with Horizontal(id="fork-body"):
                with Vertical(id="fork-left"):
                    yield Label("What to do", classes="fork-label", markup=False)
                    yield Select[str](acts(()), allow_blank=False, id="how", compact=True)
                    yield Label("Values", classes="fork-label", markup=False)
                    yield EditList(self.point, id="edits")
                    yield Label("It returns, beside the values above", classes="fork-label only-update", markup=False)
                    yield Input(placeholder='{"channel": value}', id="returns", classes="flat only-update")
                    yield Vertical(id="merges", classes="only-update")
                    yield Label("Next", classes="fork-label only-set", markup=False)
                    yield Select[str](
                        [(Content(f"as recorded: {following}"), "")],
                        allow_blank=False,
                        id="goto",
                        classes="only-set",
                        compact=True,
                    )
                    yield Label("Thread", classes="fork-label", markup=False)
                    yield Input(
                        placeholder=f"the same: {thread_name(row.checkpoint.thread_id, 40)}", id="new-thread", classes="flat"
                    )
                yield LineView(id="fork-preview")
            with Horizontal(id="fork-buttons"):
                yield Button("Fork and run", variant="primary", id="fork-run")
                yield Button("Fork", id="fork-only")
                yield Button("Cancel", id="fork-cancel")
            yield KeyLine(_KEYS, id="fork-keys")

    def on_mount(self) -> None:
        self.query_one("#edits").focus()
        self.load_choices(False)
        self._show_act()
        if self._messages_first:
            self.edit_messages(self._first_edit or "")
        elif self._first_edit is not None:
            self.edit_path(self._first_edit)
        self._preview_soon()

    def on_resize(self) -> None:
        self.call_after_refresh(self._say_title)

    def _say_title(self) -> None:
        box = self.query_one("#fork-box")
        box.border_title = draw.heading(self.point.row, max(20, box.size.width - 6), lead="Fork from ")

    # ------------------------------------------------------------------ choices

    @work(thread=True, group="choices")
    def load_choices(self, look: bool) -> None:
        """The nodes that could run next, and those that could be written as; `look`: with the edges of the graph's own code."""
        try:
            goto = self.session.goto_candidates(self.point.address)
        except StudioError:
            goto = ()
        found: Candidates | None = None
        with contextlib.suppress(StudioError):
            found = self.session.writers(self.point.address, look=look, graph=GraphSpec(self.app.chosen_graph))
        self.app.call_from_thread(self._offer, goto, found)

    def _offer(self, goto: tuple[str, ...], found: Candidates | None) -> None:
        if not self.is_attached:  # left meanwhile
            return
        following = labels.names(self.point.state.next or ()) or "nothing"
        choices = [
            (Content(f"as recorded: {following}"), ""),
            *((Content(f"go to {gate.line(name, 40)}"), name) for name in goto),
        ]
        chosen = self.query_one("#goto", Select).value
        self.query_one("#goto", Select).set_options(choices)
        if any(chosen == name for _, name in choices):
            self.query_one("#goto", Select).value = chosen
        listed = found.found if found is not None else ()
        self._writers = {one.node: one for one in listed}
        self._note = found.note if found is not None else ""
        how = self.query_one("#how", Select)
        kept = how.value
        how.set_options(acts(listed))
        if kept in ("", COPY, *self._writers):
            how.value = kept
        self._preview_soon()

    @property
    def act(self) -> str:
        """`set`, `update` or `copy`: what is chosen now."""
        how = str(self.query_one("#how", Select).value or "")
        return {"": "set", COPY: "copy"}.get(how, "update")

    @on(Select.Changed, "#how")
    def _show_act(self) -> None:
        for name in ("set", "update"):
            for widget in self.query(f".only-{name}"):
                widget.display = self.act == name
        more = [("ctrl+n", "another node"), *([("ctrl+z", "without the last")] if self._before else [])]
        self.query_one("#fork-keys", KeyLine).say("", [*_KEYS[:2], *(more if self.act == "update" else []), *_KEYS[2:]])

    def action_another(self) -> None:
        """Settle the write in the form; the next one goes into the same superstep."""
        if self.act != "update":
            return
        try:
            write = self._write()
        except StudioError as error:
            self.app.complain(error, "Not yet")
            return
        self._before.append(write)
        view = self.query_one("#edits", EditList)
        view.edits.clear()
        view.rows_changed()
        self.query_one("#returns", Input).value = ""
        self.query_one("#merges", Vertical).remove_children()
        self.query_one("#how", Select).focus()
        self._show_act()
        self._preview_soon()

    def action_take_back(self) -> None:
        """Leave out the write that was settled last."""
        if self._before:
            self._before.pop()
            self._show_act()
            self._preview_soon()

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
        elif event.index == len(self.edits) + 1:
            self.edit_whole()
        else:
            self.edit_messages()

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

    def action_messages(self) -> None:
        self.edit_messages()

    def edit_messages(self, path: str = "") -> None:
        """Open the message editor, on the channel of a path where it holds messages."""
        from studio.tui.screens import rewritten

        rewritten.edit_messages(self, path)

    @property
    def channels(self) -> list[str]:
        """Channels whose messages can be edited one by one."""
        return self.query_one("#edits", EditList).channels

    def put_all(self, edits: list[Edit]) -> None:
        """Replace the list of edits."""
        view = self.query_one("#edits", EditList)
        view.edits[:] = edits
        view.rows_changed()
        view.focus()
        self._preview_soon()

    # ------------------------------------------------------------------ preview

    @on(Select.Changed)
    @on(Checkbox.Changed)
    @on(Input.Changed, "#new-thread, #returns")
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
        goto = str(self.query_one("#goto", Select).value or "")
        thread = self.query_one("#new-thread", Input).value.strip() or None
        spec = GraphSpec(self.app.chosen_graph)
        base = ForkRequest(self.point.address, new_thread=thread, graph=spec)
        if self.act == "update":
            first, *more = [*self._before, self._write()]
            return replace(
                base, as_node=first.as_node, update=first.values, overwrite=first.overwrite, is_update=True, beside=tuple(more)
            )
        if self.act == "copy":
            if self.edits:
                raise PatchError("Values are edited; the same point again keeps them all.", "Set the state, or drop the edits.")
            return base
        patch = Patch(
            {edit.path: edit.doc for edit in self.edits if edit.doc is not GONE},
            tuple(edit.path for edit in self.edits if edit.doc is GONE),
        )
        return replace(base, patch=patch, goto=goto or None)

    def _write(self) -> NodeUpdate:
        """What the chosen node would return: whole channels with the edits inside, and what is typed beside them."""
        edits = {edit.path: edit.doc for edit in self.edits if edit.doc is not GONE}
        gone = [edit.path for edit in self.edits if edit.doc is GONE]
        found: Tagged_JSON = forkwords.returned(self.point.state.values, edits, gone) if self.edits else None
        text = self.query_one("#returns", Input).value.strip()
        if text:
            typed = tagged.loads(text)
            if found is not None and (not isinstance(typed, dict) or set(typed) & set(found)):
                raise PatchError("A value is edited and stands in what the node returns, too.", "Give it in one of the two.")
            found = {**found, **typed} if found is not None else typed
        write = NodeUpdate(str(self.query_one("#how", Select).value), found)
        ticked = [box.name or "" for box in self.query("#merges Checkbox").results(Checkbox) if box.value]
        return replace(write, overwrite=tuple(name for name in ticked if name in write.channels))

    def _offer_replacing(self, preview: ForkPreview | None) -> None:
        """A tick for each channel that a reducer merges into, and for those that are ticked."""
        boxes = list(self.query("#merges Checkbox").results(Checkbox))
        ticked = [box.name for box in boxes if box.value and box.name]
        names = list(dict.fromkeys([*ticked, *(preview.merged if preview is not None and preview.can_replace else ())]))
        if names == [box.name for box in boxes]:
            return
        area = self.query_one("#merges", Vertical)
        area.remove_children()
        area.mount_all(
            Tick(Content(f"replace {gate.line(name, 30)}, not merge (Overwrite)"), name in ticked, name=name, compact=True)
            for name in names
        )

    @work(thread=True, exclusive=True, group="preview")
    def build_preview(self, serial: int, request: ForkRequest) -> None:
        worker = get_current_worker()
        try:
            preview = self.session.preview(request)
            lines = preview_lines(preview, request, self.point, self._writers, self._note)
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
        if self.act == "update" and event.preview is not None and event.preview.refused is None:
            self._offer_replacing(event.preview)
            if not self._looked:  # the graph was loaded for this preview: now its own edges can tell
                self._looked = True
                self.load_choices(True)
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
        self.dismiss(made)
        if made.then_run:  # the run's dialog tells it
            return
        if surprises:
            self.app.notify(gate.clean("\n".join(surprises)), title=made.title, severity="warning", timeout=12, markup=False)
        else:
            self.app.tell(moves.WRITTEN, title="Forked")

    def on_failed(self, event: Failed) -> None:
        self._writing = False
        self.app.complain(event.error, event.what)

    def action_leave(self) -> None:
        self.dismiss(None)
