"""Two branches side by side: their supersteps by the tasks that ran, how their ends differ, both conversations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import ContentSwitcher, Static

from studio import beside
from studio.branches import Branches
from studio.errors import StudioError
from studio.model import Address
from studio.render import labels
from studio.tui import draw
from studio.tui.keys import KeyLine
from studio.tui.lines import Line, LineView
from studio.tui.messages import Failed, JumpTo, PathChosen, PathSelected
from studio.tui.panes import branches

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tui.app import StudioApp

PARTS = ("steps", "ends", "chats")
EDGES = 4
"""Columns of the frames around the lines."""


@dataclass
class Compared(Message):
    """Both branches."""

    found: Branches
    serial: int


@dataclass
class Drawn(Message):
    """Lines of a part, which stand in for those from `start` on."""

    part: str
    start: int
    lines: tuple[Line, ...]
    serial: int


class CompareScreen(ModalScreen[Address | None]):
    """`left` and `right` are the checkpoints that the two branches end at. Dismisses with a checkpoint to go to."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Close", show=False),
        Binding("1", "part('steps')", "Supersteps", show=False),
        Binding("2", "part('ends')", "How the ends differ", show=False),
        Binding("3", "part('chats')", "Conversations", show=False),
        Binding("tab", "next(1)", "Next part", show=False, priority=True),
        Binding("shift+tab", "next(-1)", "Part before", show=False, priority=True),
        Binding("right,l", "side(1)", "Right side", show=False),
        Binding("left,h", "side(-1)", "Left side", show=False),
        Binding("x", "swap", "Swap the sides", show=False),
    ]
    CSS = """
    CompareScreen { align: center middle; }
    CompareScreen #compare-box { width: 100%; max-width: 180; height: 100%; margin: 0; padding: 0; }
    CompareScreen #compare-head { height: auto; max-height: 7; padding: 0 1; }
    CompareScreen #compare-parts { height: 1; padding: 0 1; background: $panel; }
    CompareScreen ContentSwitcher { height: 1fr; }
    CompareScreen LineView { height: 1fr; }
    """

    def __init__(self, session: Session, left: Address, right: Address, *, pinned: bool = False) -> None:
        super().__init__()
        self.session = session
        self.left, self.right = left, right
        self.pinned = left if pinned else None
        self.part = "steps"
        self.side = 1
        """Where enter goes: -1 to the left checkpoint of a line, 1 to the right one."""
        self.found: Branches | None = None
        self._serial = 0
        self._drawn_width = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="compare-box", classes="dialog"):
            yield Static("", id="compare-head", markup=False)
            yield Static("", id="compare-parts", markup=False)
            with ContentSwitcher(initial="steps"):
                for part in PARTS:
                    yield LineView(id=part)
            keys = [("↑↓", "move"), ("←→", "side"), ("tab", "part"), ("enter", "go there"), ("x", "swap"), ("esc", "close")]
            yield KeyLine(keys, id="compare-keys")

    def on_mount(self) -> None:
        self.query_one("#compare-box").border_title = Content("Two branches, side by side")
        self.query_one("#steps", LineView).show([Line(draw.own("Reading both branches …", "$faint"), 1)])
        self.query_one("#steps").focus()
        self.read()

    @property
    def view(self) -> LineView:
        """The lines of the part that is shown."""
        return self.query_one(f"#{self.part}", LineView)

    # ------------------------------------------------------------------ reading and drawing, off the UI thread

    def read(self) -> None:
        self._serial += 1
        self.compare(self.left, self.right, self._serial)

    @work(thread=True, exclusive=True, group="compare")
    def compare(self, left: Address, right: Address, serial: int) -> None:
        try:
            self.post_message(Compared(self.session.side_by_side(left, right), serial))
        except StudioError as error:
            self.post_message(Failed(error, "Cannot compare"))

    def on_compared(self, event: Compared) -> None:
        if event.serial != self._serial:
            return
        self.found = event.found
        self._say_head()
        self._say_parts()
        self._draw_parts()

    def on_resize(self) -> None:
        if self.found is not None and self._width() != self._drawn_width:
            self._draw_parts()

    def _width(self) -> int:
        return max(40, self.query_one("#compare-box").size.width - EDGES)

    def _draw_parts(self) -> None:
        self._drawn_width = self._width()
        for part in PARTS:
            self._draw_part(part, 0)

    def _draw_part(self, part: str, start: int) -> None:
        if self.found is not None:
            self.build(self.found, part, start, self._drawn_width, self._serial)

    @work(thread=True, group="compare-part")
    def build(self, found: Branches, part: str, start: int, width: int, serial: int) -> None:
        try:
            lines = branches.build(self.session, found, part, start, width)
        except StudioError as error:
            lines = (Line(draw.text(error.message, "$error"), 1), Line(draw.text(error.hint, "$quiet"), 1))
        self.post_message(Drawn(part, start, lines, serial))

    def on_drawn(self, event: Drawn) -> None:
        if event.serial != self._serial:
            return
        view = self.query_one(f"#{event.part}", LineView)
        kept = view.lines[:-1] if event.start else ()
        view.show((*kept, *event.lines), keep=bool(event.start))
        if event.start:
            view.action_to_end(1)
            view.select_path(branches.MORE)

    def _say_head(self) -> None:
        found = self.found
        if found is None:
            return
        rows = [branches.end(self.session, found, side, self.side, self.pinned) for side in (-1, 1)]
        rows.append(draw.own(labels.sentence(beside.parted(self.session, found)), "$quiet"))
        rows.append(branches.first_difference(self.session, found))
        self.query_one("#compare-head", Static).update(Content("\n").join(rows))

    def _say_parts(self) -> None:
        found = self.found
        if found is None:
            return
        width = self.size.width
        counts = {
            "steps": beside.tally(beside.how_of(pair) for pair in found.steps),
            "ends": beside.ends_differ(found.ends),
            "chats": beside.tally(pair.how for pair in found.chats.pairs),
        }
        titles = {"steps": "Supersteps", "ends": "Ends", "chats": "Conversations"}
        pieces = []
        for number, part in enumerate(PARTS, 1):
            here = part == self.part
            piece = Content.assemble((f"{number} ", "$faint"), (titles[part], "bold $primary underline" if here else "$quiet"))
            if counts[part] and (here or width >= 130):
                piece = piece + draw.own(f" {counts[part]}", "$faint")
            pieces.append(piece)
        self.query_one("#compare-parts", Static).update(Content("   ").join(pieces).truncate(width - EDGES, ellipsis=True))

    # ------------------------------------------------------------------ keys

    def on_failed(self, event: Failed) -> None:
        self.app.complain(event.error, event.what)

    def on_jump_to(self, event: JumpTo) -> None:
        event.stop()
        line = self.view.selected
        sides = (line.at_left, line.at_right) if isinstance(line, branches.PairLine) else (event.address, event.address)
        self.dismiss(sides[0 if self.side < 0 else 1] or event.address)

    def on_path_selected(self, event: PathSelected) -> None:
        event.stop()

    def on_path_chosen(self, event: PathChosen) -> None:
        event.stop()
        line = self.view.selected
        if isinstance(line, branches.MoreLine):
            self._draw_part(self.part, line.start)
        else:
            self.dismiss(self.left if self.side < 0 else self.right)

    def action_part(self, part: str) -> None:
        self.part = part
        self.query_one(ContentSwitcher).current = part
        self.view.focus()
        self._say_parts()

    def action_next(self, by: int) -> None:
        self.action_part(PARTS[(PARTS.index(self.part) + by) % len(PARTS)])

    def action_side(self, by: int) -> None:
        self.side = by
        self._say_head()

    def action_swap(self) -> None:
        self.left, self.right = self.right, self.left
        self.read()

    def action_leave(self) -> None:
        self.dismiss(None)
