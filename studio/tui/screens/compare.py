"""Two branches side by side: what each did since they parted, and how their ends differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen

from studio.errors import StudioError
from studio.history.walk import last_of
from studio.model import Address, Change, Value
from studio.render import labels
from studio.tui import draw, lanes
from studio.tui.keys import KeyLine
from studio.tui.lines import BLANK, Line, LineView
from studio.tui.messages import Failed, JumpTo, PathChosen, PathSelected
from studio.tui.panes import changes
from studio.tui.point import row_of

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree
    from studio.tui.app import StudioApp

MOST_VALUES = 5
MOST_STEPS = 60
"""Supersteps of each branch that are shown."""


@dataclass
class Compared(Message):
    """Both branches, and the difference of their ends."""

    left_title: str
    left: tuple[Line, ...]
    right_title: str
    right: tuple[Line, ...]
    ends: tuple[Line, ...]


class CompareScreen(ModalScreen[Address | None]):
    """`origin` is where the branches part, `head` the end of the new one. Dismisses with a checkpoint to go to."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Close", show=False),
        Binding("right,l", "side(1)", "Other side", show=False),
        Binding("left,h", "side(-1)", "Other side", show=False),
    ]
    CSS = """
    CompareScreen #compare-box { width: 100%; max-width: 160; height: 100%; max-height: 50; margin: 1 2; padding: 0; }
    CompareScreen.narrow #compare-box { margin: 0; }
    CompareScreen #sides { height: 1fr; }
    CompareScreen LineView { width: 1fr; border: round $line; border-title-color: $quiet; }
    CompareScreen LineView:focus { border: round $primary; }
    CompareScreen #ends { height: 1fr; }
    """

    def __init__(self, session: Session, origin: Address, head: Address) -> None:
        super().__init__()
        self.session = session
        self.origin = origin
        self.head = head

    def compose(self) -> ComposeResult:
        with Vertical(id="compare-box", classes="dialog"):
            with Horizontal(id="sides"):
                yield LineView(id="left")
                yield LineView(id="right-side")
            yield LineView(id="ends")
            yield KeyLine(
                [("↑↓", "move"), ("tab", "next pane"), ("enter", "go to that step"), ("esc", "close")], id="compare-keys"
            )

    def on_mount(self) -> None:
        self.query_one("#compare-box").border_title = Content("Two futures, side by side")
        self.query_one("#ends").border_title = Content("How the ends differ")
        self.query_one("#right-side").focus()
        self.build()

    @work(thread=True, exclusive=True, group="compare")
    def build(self) -> None:
        try:
            self.post_message(compared(self.session, self.origin, self.head))
        except StudioError as error:
            self.post_message(Failed(error, "Cannot compare"))

    def on_compared(self, event: Compared) -> None:
        for name, title, lines in (("#left", event.left_title, event.left), ("#right-side", event.right_title, event.right)):
            view = self.query_one(name, LineView)
            view.border_title = Content(title)
            view.show(lines)
        self.query_one("#ends", LineView).show(event.ends)

    def on_failed(self, event: Failed) -> None:
        self.app.complain(event.error, event.what)

    def on_jump_to(self, event: JumpTo) -> None:
        event.stop()
        self.dismiss(event.address)

    def on_path_selected(self, event: PathSelected) -> None:
        event.stop()

    def on_path_chosen(self, event: PathChosen) -> None:
        event.stop()
        self.dismiss(self.head)

    def action_side(self, by: int) -> None:
        self.query_one("#right-side" if by > 0 else "#left").focus()

    def action_leave(self) -> None:
        self.dismiss(None)


def compared(session: Session, origin: Address, head: Address) -> Compared:
    """Read both branches. Raises StudioError when a checkpoint is gone.

    Of the ends, what the new branch began with comes first, then what both hold, then what one of them lacks.
    """
    old_tree, new_tree = session.tree(origin.thread_id), session.tree(head.thread_id)
    old_head = last_of(old_tree, origin)
    if old_head == head:
        old_head = origin
    old = old_tree.branch(old_head)
    old = old[old.index(origin) :] if origin in old else [origin, *old]  # where they part stands beside the fork's own row
    new = new_tree.branch(head)
    known = set(old_tree.branch(origin))
    new = [address for address in new if address not in known]
    ends = session.compare(head, old_head)
    differing = tuple(change.path for change in ends.changes)
    cause = [change.path for change in session.compare(new[0], session.base_of(new[0])).changes] if new else []
    ordered = sorted(ends.changes, key=lambda change: (not _differs(change.path, cause), change.op != "replace"))
    lines: list[Line] = list(changes.changes(ordered, None, show_secrets=session.show_secrets, heads=False))
    if not lines:
        lines = [Line(draw.own("Both ends hold the same values.", "$quiet"), 1)]
    return Compared(
        f"as it was · {draw.number(row_of(old_tree, old_head), old_head)}",
        tuple(_side(session, old_tree, old, differing, parts_at=origin)),
        f"the fork · {draw.number(row_of(new_tree, head), head)}",
        tuple(_side(session, new_tree, new, differing)),
        tuple(lines),
    )


def _side(
    session: Session, tree: CheckpointTree, branch: list[Address], differing: Sequence[str], parts_at: Address | None = None
) -> list[Line]:
    """The supersteps of one branch; what differs at the ends stands out."""
    lines: list[Line] = []
    for address in branch[:MOST_STEPS]:
        row = row_of(tree, address)
        if row is None:
            continue
        shape, style = lanes.shape(row)
        head = Content.assemble((f"{shape} ", style), (f"{draw.number(row):<4} ", "$faint"), (draw.title(row, 40), "bold"))
        lines.append(Line(head, 1, address=address))
        if address == parts_at:
            lines.append(Line(draw.own("here the branches part", "$faint"), 8))
            continue
        try:
            found = session.compare(address, session.base_of(address)).changes
        except StudioError:
            continue
        values = [pair for change in found for pair in _values(change, session.show_secrets)]
        values.sort(key=lambda pair: not _differs(pair[0], differing))
        lines += [_value(path, value, _differs(path, differing), session.show_secrets) for path, value in values[:MOST_VALUES]]
        if len(values) > MOST_VALUES:
            lines.append(Line(draw.own(f"+{len(values) - MOST_VALUES} more", "$faint"), 8))
    if len(branch) > MOST_STEPS:
        lines.append(Line(draw.own(labels.plural(len(branch) - MOST_STEPS, "more superstep"), "$faint"), 1))
    return lines or [Line(draw.own("Nothing ran here.", "$quiet"), 1), BLANK]


def _values(change: Change, show_secrets: bool) -> list[tuple[str, Value]]:
    """(path, value) of what a change set; a small record field by field."""
    if change.op == "remove":
        return [(change.path, None)]
    return changes.few_fields(change.path, change.after, show_secrets) or [(change.path, change.after)]


def _differs(path: str, differing: Sequence[str]) -> bool:
    return any(other == path or other.startswith(path + "/") or path.startswith(other + "/") for other in differing)


def _value(path: str, value: Value, differs: bool, show_secrets: bool) -> Line:
    shown = draw.value(path, value, 120, show_secrets=show_secrets)
    words = draw.text(path, "$quiet" if differs else "$faint", 40) + Content(" ")
    return Line(words + (draw.new(shown) if differs else shown.stylize("$faint")), 8, nowrap=True)
