"""A list of equally high rows drawn line by line: holds any number of rows, since only those in the window are drawn."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual


class RowView(ScrollView, can_focus=True):
    """Rows with a cursor. A subclass gives `row_count` and `draw_row`; it calls `rows_changed` when they change."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor", "rows--blurred"}
    DEFAULT_CSS = """
    RowView {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        background: $surface;
        & .rows--cursor { background: $here; }
        & .rows--blurred { background: $here-dim; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Next row", show=False),
        Binding("k,up", "move(-1)", "Previous row", show=False),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False),
        Binding("g,home", "to_end(-1)", "First", show=False),
        Binding("G,end", "to_end(1)", "Last", show=False),
        Binding("enter", "choose", "Open", show=False),
    ]

    row_height: ClassVar[int] = 1
    cursor: reactive[int] = reactive(0, init=False)

    @dataclass
    class Moved(Message):
        """The cursor stands on another row."""

        view: RowView
        index: int

        @property
        def control(self) -> RowView:
            return self.view

    @dataclass
    class Chosen(Message):
        """Enter or a double click on a row."""

        view: RowView
        index: int

        @property
        def control(self) -> RowView:
            return self.view

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.empty = ""
        """What to say where there is no row."""
        self._blank_strip: Strip | None = None
        self._strips: LRUCache[tuple[int, int, int], list[Strip]] = LRUCache(512)

    # what a subclass gives

    @property
    def row_count(self) -> int:
        raise NotImplementedError

    def draw_row(self, index: int, width: int, here: bool) -> list[Content]:
        """The `row_height` lines of a row, at most `width` cells each."""
        raise NotImplementedError

    # the view

    @property
    def row_width(self) -> int:
        return self.scrollable_content_region.width

    def rows_changed(self) -> None:
        """Take the new number and content of rows; the cursor keeps its index where it can."""
        self._strips.clear()
        self._measure()
        if self.cursor >= self.row_count:
            self.set_cursor(max(0, self.row_count - 1))
        self.refresh()

    def _measure(self) -> None:
        self.virtual_size = Size(0, self.row_count * self.row_height)

    def on_resize(self) -> None:
        self._strips.clear()
        self._measure()
        self.show_cursor()

    def _blank(self, width: int) -> Strip:
        if self._blank_strip is None or self._blank_strip.cell_length != width:
            self._blank_strip = Strip.blank(width, self.rich_style)
        return self._blank_strip

    def notify_style_update(self) -> None:
        self._blank_strip = None
        self._strips.clear()
        super().notify_style_update()

    def set_cursor(self, index: int, *, tell: bool = True) -> None:
        """Stand on a row and scroll it into the window."""
        index = min(max(0, index), max(0, self.row_count - 1))
        if index == self.cursor:
            self.show_cursor()
            return
        with nullcontext() if tell else self.prevent(RowView.Moved):
            self.cursor = index

    def watch_cursor(self, before: int, after: int) -> None:
        for index in (before, after):
            self.refresh_lines(index * self.row_height, self.row_height)
        self.show_cursor()
        self.post_message(self.Moved(self, after))

    def show_cursor(self, *, centre: bool = False) -> None:
        height = self.scrollable_content_region.height
        if height <= 0 or not self.row_count:
            return
        top, bottom = self.cursor * self.row_height, (self.cursor + 1) * self.row_height
        margin = min(2 * self.row_height, max(0, (height - self.row_height) // 3))
        target = self.scroll_offset.y
        if centre and not target <= top < target + height:
            target = top - height // 2
        elif top - margin < target:
            target = top - margin
        elif bottom + margin > target + height:
            target = bottom + margin - height
        target = min(max(0, target), max(0, self.virtual_size.height - height))
        if target != self.scroll_offset.y:
            self.scroll_to(y=target, animate=False, force=True, immediate=True)

    def render_line(self, y: int) -> Strip:
        width = self.row_width
        index, part = divmod(y + self.scroll_offset.y, self.row_height)
        if not self.row_count and self.empty and y == 1 and width > 0:
            words = Content.styled(f"  {self.empty}", "$quiet")
            return Visual.to_strips(self, words, width, 1, self.visual_style, pad=True, apply_selection=False)[0]
        if index >= self.row_count or width <= 0:
            return self._blank(width)
        here = index == self.cursor
        look = (2 if self.has_focus else 1) if here else 0
        key = (index, width, look)
        strips = self._strips.get(key)
        if strips is None:
            style = self.get_visual_style(*(("", "rows--blurred", "rows--cursor")[look],) if look else ())
            strips = [
                Visual.to_strips(self, content, width, 1, style, pad=True, apply_selection=False)[0]
                for content in self.draw_row(index, width, here)
            ]
            self._strips[key] = strips
        return strips[part] if part < len(strips) else self._blank(width)

    def watch_has_focus(self, _has_focus: bool) -> None:
        super().watch_has_focus(_has_focus)
        self.refresh_lines(self.cursor * self.row_height, self.row_height)

    # what a person does

    def action_move(self, by: int) -> None:
        self.set_cursor(self.cursor + by)

    def action_page(self, by: int) -> None:
        rows = max(1, self.scrollable_content_region.height // self.row_height - 1)
        self.set_cursor(self.cursor + by * rows)

    def action_to_end(self, side: int) -> None:
        self.set_cursor(self.row_count - 1 if side > 0 else 0)

    def action_choose(self) -> None:
        if self.row_count:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = (offset.y + self.scroll_offset.y) // self.row_height
        if index < self.row_count:
            self.set_cursor(index)
            if event.chain == 2:
                self.action_choose()
