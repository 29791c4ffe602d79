"""Put a branch of the scratch file into the file itself: exactly which rows, what the thread's head will be, then a yes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Button

from studio.errors import StudioError
from studio.model import Address
from studio.render import gate, labels, promotions
from studio.requests import Promotion
from studio.tui import draw
from studio.tui.keys import KeyLine
from studio.tui.lines import BLANK, Line, LineView
from studio.tui.messages import Failed

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree
    from studio.tui.app import StudioApp

ID_WIDTH = 36


@dataclass
class Shown(Message):
    """What would be added, or why nothing can be."""

    promotion: Promotion | None
    lines: tuple[Line, ...]


@dataclass
class Added(Message):
    promotion: Promotion
    notices: tuple[str, ...]


class PromoteScreen(ModalScreen[Added | None]):
    """Dismisses with what was added, or None."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("ctrl+s", "add", "Put into the file", show=False, priority=True),
    ]
    CSS = """
    PromoteScreen #promote-box { width: 100%; max-width: 120; height: 100%; max-height: 36; margin: 1 2; padding: 0; }
    PromoteScreen.narrow #promote-box { margin: 0; }
    PromoteScreen #promote-lines { height: 1fr; padding: 1 0 0 0; }
    PromoteScreen #promote-buttons { height: 3; padding: 0 1; background: $surface; }
    PromoteScreen #promote-buttons Button { height: 1; padding: 0 2; margin: 1 2 1 0; }
    """

    def __init__(self, session: Session, tree: CheckpointTree, address: Address) -> None:
        super().__init__()
        self.session = session
        self._checkpoints = tree
        self.address = address
        self._shown: Promotion | None = None
        self._adding = False

    def compose(self) -> ComposeResult:
        with Vertical(id="promote-box", classes="dialog"):
            yield LineView(id="promote-lines")
            with Horizontal(id="promote-buttons"):
                yield Button("Put into the file", variant="primary", id="promote-add", disabled=True)
                yield Button("Cancel", id="promote-cancel")
            yield KeyLine([("ctrl+s", "put into the file"), ("↑↓", "scroll"), ("esc", "leave")], id="promote-keys")

    def on_mount(self) -> None:
        self.query_one("#promote-box").border_title = Content(promotions.TITLE)
        view = self.query_one("#promote-lines", LineView)
        view.show([Line(draw.own("Comparing with the file …", "$faint"), 1)])
        view.focus()
        self.look()

    @work(thread=True, exclusive=True, group="look")
    def look(self) -> None:
        try:
            found = self.session.promotion(self.address)
            self.post_message(Shown(found, tuple(_lines(found, self._checkpoints))))
        except StudioError as error:
            told = (
                Line(draw.own("This branch cannot be put into the file", "bold $error"), 1),
                Line(draw.text(error.message, width=400), 1),
                Line(draw.text(error.hint, "$quiet", 400), 1),
            )
            self.post_message(Shown(None, told))

    def on_shown(self, event: Shown) -> None:
        event.stop()
        self._shown = event.promotion
        self.query_one("#promote-lines", LineView).show(event.lines)
        self.query_one("#promote-add", Button).disabled = event.promotion is None

    def action_add(self) -> None:
        if self._shown is not None and not self._adding:
            self._adding = True
            self.query_one("#promote-add", Button).disabled = True
            self.add(self._shown)

    @work(thread=True, group="add")
    def add(self, shown: Promotion) -> None:
        try:
            self.post_message(Added(shown, tuple(self.session.promote(shown))))
        except StudioError as error:
            self.post_message(Failed(error, "Nothing was added"))

    def on_added(self, event: Added) -> None:
        event.stop()
        self.dismiss(event)

    def on_failed(self, event: Failed) -> None:
        """The branch is where it was; what would be added now is shown anew."""
        event.stop()
        self._adding = False
        self.app.complain(event.error, event.what)
        self.look()

    @on(Button.Pressed, "#promote-add")
    def add_pressed(self) -> None:
        self.action_add()

    @on(Button.Pressed, "#promote-cancel")
    def cancel_pressed(self) -> None:
        self.action_leave()

    def action_leave(self) -> None:
        if not self._adding:
            self.dismiss(None)


def _lines(found: Promotion, tree: CheckpointTree) -> list[Line]:
    count = labels.plural(len(found.rows), "checkpoint")
    writes = labels.plural(found.writes, "write")
    lines = [
        Line(draw.own("Adds ", "$quiet") + draw.own(f"{count}, {writes}", "bold") + draw.own(" to", "$quiet"), 1),
        Line(draw.text(found.location, width=400), 1),
        BLANK,
    ]
    for row in found.rows:
        named = promotions.numbered(tree, row.address)
        facts = f"{gate.line(row.kind, 20)}   {labels.size(row.size_bytes)}   {labels.plural(row.writes, 'write')}"
        lines.append(Line(draw.own(f"{named:<7}", "bold $accent") + draw.text(row.address.checkpoint_id, width=ID_WIDTH), 1))
        inside = f"   in {gate.line(row.address.checkpoint_ns, 200)}" if row.address.checkpoint_ns else ""
        lines.append(Line(draw.own(facts + inside, "$quiet"), 8))
    lines += [
        BLANK,
        Line(draw.own("Place  ", "$faint") + draw.own(promotions.place_words(found, tree)), 1, hanging=7),
        Line(draw.own("Head   ", "$faint") + draw.own(promotions.head_words(found, tree)), 1, hanging=7),
    ]
    lines += [Line(draw.text(f"! {warning}", "$warning", 400), 1, hanging=2) for warning in found.warnings]
    return [*lines, BLANK, Line(draw.own(promotions.ASSURANCE, "$quiet"), 1)]
