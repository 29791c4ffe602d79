"""Prose, diffs and logs as lines that wrap to the width: some stand for a value or a checkpoint and can be chosen, some unfold.

A pane is built as a tuple of `Line`s off the UI thread and drawn here; what is folded away costs nothing until it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from studio.model import Address
from studio.tui.messages import ActChosen, JumpTo, PathChosen, PathSelected
from studio.tui.names import without_keys


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph of a pane."""

    content: Content
    indent: int = 0
    """Cells to the left, on every wrapped line."""
    path: str | None = None
    """The value it stands for: selectable, enter edits it."""
    address: Address | None = None
    """The checkpoint it refers to: selectable, enter goes there (before editing, where `path` is given too)."""
    right: Content | None = None
    """Shown at the right edge of the first line where there is room."""
    folded: tuple[Line, ...] = ()
    """Lines that space, or enter on a line without path and address, opens below it."""
    bar: str = ""
    """Style of a bar at the left of every wrapped line (messages)."""
    hanging: int = 0
    """Further cells to the left from the second wrapped line on."""
    nowrap: bool = False
    """One row, cut at its end."""
    fold: bool = False
    """Wrapped at any character (paths of files), not between words."""
    act: str = ""
    """What choosing it does, by a name that the screen knows: selectable."""
    mark: bool = False
    """Where reading begins, for `read_from_mark`."""

    @property
    def selectable(self) -> bool:
        return self.path is not None or self.address is not None or bool(self.folded) or bool(self.act)


ROOM_FOR_WORDS = 18
"""Cells of a wrapped line that its hanging indent leaves free."""
BLANK = Line(Content(""))


class LineView(ScrollView, can_focus=True):
    """Draws lines; the cursor moves over the selectable ones and scrolls through the rest."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--cursor", "lines--blurred"}
    DEFAULT_CSS = """
    LineView {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        background: $surface;
        & .lines--cursor { background: $here; }
        & .lines--blurred { background: $here-dim; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "Next", show=False),
        Binding("k,up", "move(-1)", "Previous", show=False),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False),
        Binding("g,home", "to_end(-1)", "Top", show=False),
        Binding("G,end", "to_end(1)", "Bottom", show=False),
        Binding("enter", "choose", "Edit or go there", show=False),
        Binding("space", "unfold", "Open or fold", show=False),
    ]

    cursor: reactive[int | None] = reactive(None, init=False)
    """Index into the open lines, or None where nothing can be selected."""

    def __init__(self, *, id: str | None = None, classes: str | None = None, follow: bool = False) -> None:
        super().__init__(id=id, classes=classes)
        self._given: tuple[Line, ...] = ()
        self._open: set[int] = set()
        self._lines: list[tuple[Line, int]] = []
        """Open lines with their depth of unfolding."""
        self._layout: list[tuple[int, Content, int]] = []
        """(line index, wrapped content, part of the line) for every row on the screen."""
        self._starts: list[int] = []
        self._layout_width = 0
        self._blank_strip: Strip | None = None
        self._strips: LRUCache[tuple[int, int, int], Strip] = LRUCache(512)
        self._follow = follow

    # content

    def show(self, lines: Iterable[Line], *, keep: bool = False) -> None:
        """Replace the lines. `keep` keeps scroll, cursor and what was unfolded (the same place seen again)."""
        place, scroll = self.selected_path, self.scroll_offset.y
        self._given = tuple(lines)
        if not keep:
            self._open = set()
        self._expand()
        self._wrap(force=True)
        index = self._find_path(place) if keep else None
        self.cursor = index if index is not None else self._next(-1, 1)
        if keep:
            self.scroll_to(y=scroll, animate=False, force=True, immediate=True)
        else:
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.refresh()

    def extend(self, more: Sequence[Line]) -> None:
        """Add lines at the end (a log); scrolls along when it stood at the end."""
        at_end = self.scroll_offset.y >= self.max_scroll_y - 1
        self._given = (*self._given, *more)
        first = len(self._lines)
        self._lines.extend((line, 0) for line in more)
        self._append_layout(first)
        if self._follow and at_end:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.refresh()

    def read_from_mark(self) -> None:
        """Show the end, or the marked line where that is above the window."""
        marked = next((index for index, (line, _) in enumerate(self._lines) if line.mark), None)
        if marked is None or not self._layout:
            self.scroll_end(animate=False)
            return
        end = max(0, len(self._layout) - self.scrollable_content_region.height)
        self.set_reactive(LineView.cursor, marked)
        self.scroll_to(y=min(end, self._starts[marked]), animate=False, force=True, immediate=True)
        self.refresh()

    def grow_upward(self, lines: Iterable[Line]) -> None:
        """Show more lines above those that are shown; what is read stays where it is."""
        below = len(self._layout) - self.scroll_offset.y
        self.show(lines, keep=True)
        self.scroll_to(y=max(0, len(self._layout) - below), animate=False, force=True, immediate=True)
        self._cursor_into_view()

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines as given, folded ones inside their parents."""
        return self._given

    @property
    def selected(self) -> Line | None:
        return self._lines[self.cursor][0] if self.cursor is not None and self.cursor < len(self._lines) else None

    @property
    def selected_path(self) -> str | None:
        line = self.selected
        return line.path if line else None

    def select_path(self, path: str) -> bool:
        index = self._find_path(path)
        if index is not None:
            self.cursor = index
        return index is not None

    def _find_path(self, path: str | None) -> int | None:
        if path is None:
            return None
        return next((index for index, (line, _) in enumerate(self._lines) if line.path == path), None)

    def _expand(self) -> None:
        self._lines = []
        stack = [(line, 0) for line in reversed(self._given)]
        while stack:
            line, depth = stack.pop()
            self._lines.append((line, depth))
            if line.folded and id(line) in self._open:
                stack.extend((inner, depth + 1) for inner in reversed(line.folded))

    # layout

    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _wrap(self, *, force: bool = False) -> None:
        width = self._width()
        if not force and width == self._layout_width:
            return
        self._layout_width = width
        self._layout, self._starts = [], []
        self._append_layout(0)

    def _append_layout(self, first: int) -> None:
        width = max(12, self._layout_width or self._width())
        for index in range(first, len(self._lines)):
            line, _depth = self._lines[index]
            content = self._shown(line.content)
            self._starts.append(len(self._layout))
            room = max(8, width - line.indent - 1 - (2 if line.bar else 0))
            if line.right is not None and room - line.right.cell_length >= 24:
                room -= line.right.cell_length + 1
            if line.nowrap:
                parts = [content.truncate(room, ellipsis=True)]
            else:
                parts = (content.fold(room) if line.fold else content.wrap(room)) or [Content("")]
            if line.hanging and len(parts) > 1:
                rest, room = content[len(parts[0]) :], max(8, room - self._hang(line))
                parts = [parts[0], *(rest.fold(room) if line.fold else _lstrip(rest).wrap(room))]
            self._layout.extend((index, part, number) for number, part in enumerate(parts))
        self._strips.clear()
        self.virtual_size = Size(0, len(self._layout))

    def _shown(self, content: Content) -> Content:
        """Without keys that stand as names: once it is wrapped or cut, half of one would not be seen to be one."""
        session = getattr(self.app, "session", None)  # a test may show lines alone
        return content if session is not None and session.show_secrets else without_keys(content)

    def _hang(self, line: Line) -> int:
        """Its hanging indent, smaller where a narrow pane would leave no room for a word beside it."""
        return min(line.hanging, max(2, (self._layout_width or self._width()) - line.indent - ROOM_FOR_WORDS))

    def on_resize(self) -> None:
        self._wrap()
        self.show_cursor()

    def _blank(self, width: int) -> Strip:
        if self._blank_strip is None or self._blank_strip.cell_length != width:
            self._blank_strip = Strip.blank(width, self.rich_style)
        return self._blank_strip

    def notify_style_update(self) -> None:
        self._blank_strip = None
        self._strips.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        width = self._width()
        row = y + self.scroll_offset.y
        if width <= 0 or row >= len(self._layout):
            return self._blank(width)
        index, part, number = self._layout[row]
        look = (2 if self.has_focus else 1) if index == self.cursor else 0
        key = (row, width, look)
        strip = self._strips.get(key)
        if strip is None:
            line = self._lines[index][0]
            content = Content(" " * line.indent)
            if line.bar:
                content = content + Content.styled("▎ ", line.bar)
            if line.hanging and number:
                content = content + Content(" " * self._hang(line))
            content = content + part
            if line.right is not None and number == 0:
                fill = width - 1 - content.cell_length - line.right.cell_length
                if fill >= 1:
                    content = content + Content(" " * fill) + line.right
            style = self.get_visual_style(*(("", "lines--blurred", "lines--cursor")[look],) if look else ())
            strip = Visual.to_strips(self, content, width, 1, style, pad=True, apply_selection=False)[0]
            self._strips[key] = strip
        return strip

    # the cursor

    def _next(self, index: int, by: int) -> int | None:
        index += by
        while 0 <= index < len(self._lines):
            if self._lines[index][0].selectable:
                return index
            index += by
        return None

    def watch_cursor(self, before: int | None, after: int | None) -> None:
        for index in (before, after):
            if index is not None and index < len(self._starts):
                self.refresh_lines(self._starts[index], self._height(index))
        self.show_cursor()
        self.post_message(PathSelected(self.selected_path))

    def _height(self, index: int) -> int:
        stop = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._layout)
        return stop - self._starts[index]

    def watch_has_focus(self, _has_focus: bool) -> None:
        super().watch_has_focus(_has_focus)
        if self.cursor is not None and self.cursor < len(self._starts):
            self.refresh_lines(self._starts[self.cursor], self._height(self.cursor))

    def show_cursor(self) -> None:
        height = self.scrollable_content_region.height
        if self.cursor is None or self.cursor >= len(self._starts) or height <= 0:
            return
        top = self._starts[self.cursor]
        bottom = top + min(self._height(self.cursor), height)
        y = self.scroll_offset.y
        if top < y:
            y = max(0, top - 1)
        elif bottom > y + height:
            y = bottom - height
        if self._next(self.cursor, -1) is None and top < height:
            y = 0  # the first one: show the heading above it, too
        if y != self.scroll_offset.y:
            self.scroll_to(y=y, animate=False, force=True, immediate=True)

    def action_move(self, by: int) -> None:
        height = self.scrollable_content_region.height
        if self.cursor is None:
            self.scroll_relative(y=by, animate=False)
            return
        target = self._next(self.cursor, by)
        y = self.scroll_offset.y
        if target is None:  # nothing more to select: scroll to what is left
            self.scroll_relative(y=by, animate=False)
            return
        top = self._starts[target]
        if by > 0 and top >= y + height + height // 2 or by < 0 and self._starts[target] + self._height(target) < y - height // 2:
            self.scroll_relative(y=by * max(1, height // 2), animate=False)  # long text between two selectable lines
            return
        self.cursor = target

    def action_page(self, by: int) -> None:
        height = max(1, self.scrollable_content_region.height - 2)
        y = min(max(0, self.scroll_offset.y + by * height), max(0, len(self._layout) - self.scrollable_content_region.height))
        self.scroll_to(y=y, animate=False, force=True, immediate=True)
        self._cursor_into_view()

    def _cursor_into_view(self) -> None:
        y, height = self.scroll_offset.y, self.scrollable_content_region.height
        for row in range(y, min(y + height, len(self._layout))):
            index = self._layout[row][0]
            if self._lines[index][0].selectable:
                self.set_reactive(LineView.cursor, index)
                self.refresh()
                self.post_message(PathSelected(self.selected_path))
                return

    def action_to_end(self, side: int) -> None:
        index = self._next(len(self._lines), -1) if side > 0 else self._next(-1, 1)
        if index is not None:
            self.cursor = index
        if side > 0:
            self.scroll_end(animate=False, force=True)
        else:
            self.scroll_home(animate=False, force=True)

    def action_choose(self) -> None:
        line = self.selected
        if line is None:
            return
        if line.act:
            self.post_message(ActChosen(line.act))
        elif line.address is not None:
            self.post_message(JumpTo(line.address))
        elif line.path is not None:
            self.post_message(PathChosen(line.path))
        else:
            self.action_unfold()

    def action_unfold(self) -> None:
        line = self.selected
        if line is None or not line.folded:
            return
        self._open ^= {id(line)}
        index = self.cursor
        self._expand()
        self._wrap(force=True)
        self.set_reactive(LineView.cursor, index)
        self.show_cursor()
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = offset.y + self.scroll_offset.y
        if row >= len(self._layout):
            return
        index = self._layout[row][0]
        line = self._lines[index][0]
        if not line.selectable:
            return
        again = self.cursor == index
        self.cursor = index
        if line.act:
            self.action_choose()
        elif line.folded and line.path is None and line.address is None:
            self.action_unfold()
        elif event.chain == 2 or (again and line.address is not None and line.path is None):
            self.action_choose()


def _lstrip(content: Content) -> Content:
    """Without the blank or the line break that the first wrapped line ended at."""
    plain = content.plain
    at = len(plain) - len(plain.lstrip(" "))
    return content[at + 1 if plain[at : at + 1] == "\n" else at :]
