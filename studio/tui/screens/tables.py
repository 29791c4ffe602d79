"""What a file holds beside the checkpoints that are shown: other parts of it to switch to, its tables, their entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen

from studio.errors import StudioError
from studio.neighbours import KINDS, NOT_VERSIONED, Item, Items, Namespaces, note_of, rows_in_words
from studio.render import gate, labels, masking, preview
from studio.stores.neighbours import SHAPES, Neighbour
from studio.stores.view import View
from studio.tagged import dumps
from studio.tui import draw
from studio.tui.keys import KeyLine
from studio.tui.lines import BLANK, Line, LineView
from studio.tui.messages import Failed
from studio.tui.rows import RowView

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tui.app import StudioApp

PAGE = 100
MOST_NAMESPACES = 30
_FRAME = """
    {name} > Vertical {{ width: 100%; max-width: 130; height: 100%; max-height: 44; margin: 1 2; padding: 0; }}
    {name}.narrow > Vertical {{ margin: 0; }}
    {name} {view} {{ height: 1fr; margin: 1 0; }}
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A part of the file (`view`) or a table of it (`table`)."""

    name: str
    what: str
    facts: str
    note: str
    view: View | None = None
    table: Neighbour | None = None
    shown: bool = False


@dataclass
class TablesRead(Message):
    rows: tuple[Row, ...]


@dataclass
class EntriesRead(Message):
    lines: tuple[Line, ...]
    more: bool


class TableList(RowView):
    """Two lines per row: a name and what it is, then what there is to know of it."""

    row_height = 2

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: tuple[Row, ...] = ()
        self.empty = "reading …"

    @property
    def row_count(self) -> int:
        return len(self.rows)

    def draw_row(self, index: int, width: int, here: bool) -> list[Content]:
        row = self.rows[index]
        bar = Content.styled("▌" if here else " ", "$primary bold")
        right = Content.styled(f"{row.facts} ", "$faint")
        mark = ("◆ ", "$primary") if row.shown else ("◇ " if row.view is not None else "  ", "$faint")
        what = Content.styled(f"  {row.what}", "$quiet")
        name = gate.line(row.name, max(8, width - right.cell_length - what.cell_length - 6))
        first = bar + Content.assemble(" ", mark, (name, "bold")) + what
        first = first + Content(" " * max(1, width - first.cell_length - right.cell_length)) + right
        return [first, bar + Content("   ") + draw.text(row.note, "$faint", max(8, width - 6))]


class TablesScreen(ModalScreen[View | None]):
    """Dismisses with the part of the file to show instead; the entries of other tables open above it."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", show=False)]
    CSS = _FRAME.format(name="TablesScreen", view="TableList")

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TableList(id="tables")
            yield KeyLine([("↑↓", "move"), ("enter", "show it"), ("esc", "back")], id="table-keys")

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = Content("Tables of this file")
        self.query_one("#tables").focus()
        self.load()

    @work(thread=True, exclusive=True, group="tables")
    def load(self) -> None:
        try:
            self.post_message(TablesRead(read_rows(self.session)))
        except StudioError as error:
            self.post_message(Failed(error, "Cannot list the tables"))
            self.post_message(TablesRead(()))

    def on_tables_read(self, event: TablesRead) -> None:
        view = self.query_one("#tables", TableList)
        view.rows, view.empty = event.rows, "no table can be read"
        view.rows_changed()
        self.query_one("#table-keys", KeyLine).say(labels.plural(len(event.rows), "row"))

    def on_failed(self, event: Failed) -> None:
        self.app.complain(event.error, event.what)

    @on(RowView.Chosen, "#tables")
    def choose(self, event: RowView.Chosen) -> None:
        row = self.query_one("#tables", TableList).rows[event.index]
        if row.table is not None:
            self.app.push_screen(EntriesScreen(self.session, row.table))
        else:
            self.dismiss(None if row.shown else row.view)

    def action_leave(self) -> None:
        self.dismiss(None)


class EntriesScreen(ModalScreen[None]):
    """The entries of one table, a page at a time; a value unfolds."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", show=False),
        Binding("n", "turn(1)", "Next page", show=False),
        Binding("p", "turn(-1)", "Previous page", show=False),
    ]
    CSS = _FRAME.format(name="EntriesScreen", view="LineView")

    def __init__(self, session: Session, table: Neighbour) -> None:
        super().__init__()
        self.session = session
        self.table = table
        self._start = 0
        self._more = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield LineView(id="entries")
            keys = [("↑↓", "move"), ("space", "unfold"), ("n p", "page"), ("esc", "back")]
            yield KeyLine(keys, id="entry-keys")

    def on_mount(self) -> None:
        kind = KINDS[self.table.kind]
        self.query_one(Vertical).border_title = Content(f"{gate.line(self.table.name, 60)} · {kind}")
        view = self.query_one("#entries", LineView)
        view.focus()
        view.show([Line(draw.own("reading …", "$faint"), 1)])
        self.load(self._start)

    @work(thread=True, exclusive=True, group="entries")
    def load(self, start: int) -> None:
        try:
            neighbours = self.session.neighbours()
            items = neighbours.items(self.table, start=start, limit=PAGE)
            spaces = neighbours.namespaces(self.table) if not start else Namespaces((), False)
            self.post_message(EntriesRead(build(items, spaces, show_secrets=self.session.show_secrets), items.more))
        except StudioError as error:
            self.post_message(Failed(error, "Cannot read this table"))

    def on_entries_read(self, event: EntriesRead) -> None:
        self._more = event.more
        self.query_one("#entries", LineView).show(event.lines)
        last = f"{self._start + 1:,} and on" if self._start or event.more else ""
        self.query_one("#entry-keys", KeyLine).say(f"{rows_in_words(self.table)}{', from ' + last if last else ''}")

    def on_failed(self, event: Failed) -> None:
        self.app.complain(event.error, event.what)

    def action_turn(self, by: int) -> None:
        start = max(0, self._start + by * PAGE)
        if start != self._start and (by < 0 or self._more):
            self._start = start
            self.load(start)

    def action_leave(self) -> None:
        self.dismiss(None)


def read_rows(session: Session) -> tuple[Row, ...]:
    """The parts of the file that can be shown, where there are several, then its tables."""
    neighbours, view, rows = session.neighbours(), session.view, []
    sets = neighbours.sets()
    for one in sets:
        note = f"with {one.writes}" if one.writes else "without a table of writes"
        note += " · shown here" if one.shown else " · enter shows this one instead"
        facts, other = rows_in_words(one, "checkpoint"), View(one.checkpoints, view.without_wal)
        rows.append(Row(one.checkpoints, "checkpoints", facts, note, other, shown=one.shown))
    if view.without_wal or any(problem.kind == "wal-disagrees" for problem in session.problems()):
        what, note = (
            ("with its -wal", "the file as SQLite reads it") if view.without_wal else ("without its -wal", "the file alone")
        )
        rows.append(Row("The file", what, "", f"{note} · enter shows it", View(view.tables, not view.without_wal)))
    for table in neighbours.tables():
        if table.kind != "checkpoints":
            rows.append(Row(table.name, KINDS[table.kind], rows_in_words(table), note_of(table), table=table))
    return tuple(rows)


def build(items: Items, namespaces: Namespaces, *, show_secrets: bool) -> tuple[Line, ...]:
    """A page of entries as lines."""
    lines = []
    if items.table.kind != "writes":
        lines += [Line(draw.own(f"! {NOT_VERSIONED.capitalize()}.", "$wait"), 1), BLANK]
    for name, rows, more in namespaces.found[:MOST_NAMESPACES]:
        shown = draw.text(masking.text(name), "$quiet", 100)
        lines.append(Line(shown, 1, right=draw.own(f"{'> ' if more else ''}{rows:,}", "$faint")))
    if namespaces.more or len(namespaces.found) > MOST_NAMESPACES:
        lines.append(Line(draw.own("… and more namespaces", "$faint"), 1))
    if namespaces.found:
        lines.append(BLANK)
    for item in items.items:
        lines += _entry(item, items.table, show_secrets=show_secrets)
    if not items.items and not items.lost:
        lines.append(Line(draw.own("Nothing is stored here.", "$quiet"), 1))
    lines += [Line(draw.text(f"! {problem.message}", "$wait", 300), 1) for problem in items.problems]
    if items.lost:
        lines.append(Line(draw.text(f"! Not all can be shown: {items.lost}", "$wait", 300), 1))
    return tuple(lines)


def _entry(item: Item, table: Neighbour, *, show_secrets: bool) -> list[Line]:
    facts = [
        draw.own(f"{gate.line(name, 40)} ", "$faint") + draw.own(_plain(name, value, item, show_secrets=show_secrets))
        for name, value in item.facts.items()
        if value is not None or table.kind not in SHAPES
    ]
    told = draw.join(*facts, gap="  ")
    if table.kind not in SHAPES:
        return [Line(told, 1, hanging=2)]
    head = draw.text(masking.text(item.namespace, show_secrets=show_secrets), "$lane-sub", 80) + draw.own("  ")
    head = head + draw.text(masking.text(item.key, show_secrets=show_secrets) or "(empty key)", "bold", 80)
    size = draw.own(labels.size(item.size_bytes), "$faint")
    if item.whole:
        document = masking.document(item.value, item.key, show_secrets=show_secrets)
        text = document if isinstance(document, str) else dumps(document, indent=2)
        folded = (Line(draw.block(text), 3), Line(told, 3))
        summary = preview.summary(item.value, 160, key=item.key, show_secrets=show_secrets)
        return [Line(head, 1, right=size, folded=folded), Line(draw.own(summary, "$quiet"), 3), BLANK]
    summary = gate.line(masking.text(item.head, item.key, show_secrets=show_secrets), 120)
    hint = draw.own("`studio tables FILE NAME --key KEY` reads it whole", "$faint")
    return [Line(head, 1, right=size, folded=(Line(hint, 3), Line(told, 3))), Line(draw.own(summary, "$quiet"), 3), BLANK]


def _plain(name: str, value: object, item: Item, *, show_secrets: bool) -> str:
    if isinstance(value, str):
        shown = gate.line(masking.text(value, name, show_secrets=show_secrets), 80)
    else:
        shown = preview.summary(value, 60, key=name, show_secrets=show_secrets)
    return shown + (f" … {labels.size(item.cut[name])}" if name in item.cut else "")
