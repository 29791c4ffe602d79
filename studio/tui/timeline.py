"""The timeline: one line per checkpoint, lanes for branches, drawn from the tree's rows in the window only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.content import Content

from studio.errors import StudioError
from studio.model import Address, Row
from studio.render import explained, gate, labels
from studio.tui import draw, lanes
from studio.tui.rows import RowView
from studio.wording import RowWords

if TYPE_CHECKING:
    from studio.tree import CheckpointTree

CHUNK = 16
"""Rows that are read at once; few, as each leaf among them costs a look at its state, and growth of the file reads them again."""
_BADGES = {
    "paused": ("waits", "$wait"),
    "answered": ("answered", "$wait"),
    "failed": ("failed", "$error"),
    "ready": ("ready", "$lane-main"),
}
_ENCRYPTED = ("encrypted", "$faint")
_SHAPE_SAYS_IT = ("answered", "fork", "head", "encrypted")
"""Badges that make room for the label where both do not fit."""
LEAST_LABEL = 9
"""Cells of a label that no badge takes away: the panes beside the timeline say the status in words, too."""


class Timeline(RowView):
    """The rows of a CheckpointTree. The cursor is kept by address, so rows that appear above do not move it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._tree: CheckpointTree | None = None
        self._chunks: dict[int, list[Row]] = {}
        self._colours: dict[int, list[dict[int, str]]] = {}
        self._here: Address | None = None
        self.base: Address | None = None
        """The checkpoint that diffs are pinned to, marked in the list."""
        self._lane_window = (0, 1)
        self._outside: set[Address] = set()
        self._words: Callable[[Address], RowWords | None] | None = None

    def say_words(self, words: Callable[[Address], RowWords | None]) -> None:
        """Of a transcript: each row says what was said, in place of the channels that it wrote."""
        self._words = words
        self._strips.clear()

    @property
    def row_count(self) -> int:
        return len(self._tree) if self._tree is not None else 0

    @property
    def here(self) -> Row | None:
        """The row under the cursor."""
        return self.row_at(self.cursor) if self.row_count else None

    def row_at(self, index: int) -> Row | None:
        """A row by its place, through a cache of chunks."""
        number, offset = divmod(index, CHUNK)
        chunk = self._chunks.get(number)
        if chunk is None:
            if self._tree is None:
                return None
            if len(self._chunks) > 256:
                self._chunks.clear()
            try:
                chunk = self._chunks[number] = list(self._tree.rows(number * CHUNK, (number + 1) * CHUNK))
            except (LookupError, RuntimeError):  # it grew on another thread at this very moment: `grow` follows
                return None
        return chunk[offset] if offset < len(chunk) else None

    def show_tree(self, tree: CheckpointTree | None, at: Address | None = None) -> None:
        """Show a tree, standing on `at`, else where the cursor stood, else on the head."""
        keep = at or self._here
        self._tree = tree
        self._forget()
        self._strips.clear()
        self._fit_lanes()
        self._measure()
        target = self._place(keep)
        if target is None and tree is not None:
            target = self._place(tree.head) or 0
        if target is not None and self.row_count:
            found = self.row_at(target)
            moved = found is not None and found.checkpoint.address != self._here
            same_index = target == self.cursor
            self._here = found.checkpoint.address if found else None
            if not same_index:
                self.set_cursor(target)
            elif moved:
                self.post_message(self.Moved(self, target))
        self.call_after_refresh(self.show_cursor, centre=True)
        self.refresh()

    def grow(self) -> None:
        """The tree got more rows: redraw, with the cursor on the same checkpoint and the window where it was."""
        place = self._place(self._here)
        self._forget()
        self._strips.clear()
        self._fit_lanes()
        shift = 0 if place is None else place - self.cursor
        self._measure()
        if shift and place is not None:
            with self.prevent(RowView.Moved):
                self.scroll_to(y=self.scroll_offset.y + shift, animate=False, force=True, immediate=True)
                self.set_cursor(place, tell=False)
        elif place is None and self.row_count:  # its row is gone: the next one that is there takes its place
            target = min(self.cursor, self.row_count - 1)
            found = self.row_at(target)
            self._here = found.checkpoint.address if found else None
            if target != self.cursor:
                self.set_cursor(target)
            else:
                self.post_message(self.Moved(self, target))
        self.refresh()

    def go(self, address: Address) -> bool:
        """Stand on a checkpoint; False when the tree does not hold it."""
        place = self._place(address)
        if place is None:
            return False
        self.set_cursor(place)
        self.show_cursor(centre=True)
        return True

    def watch_cursor(self, before: int, after: int) -> None:
        row = self.row_at(after)
        self._here = row.checkpoint.address if row else None
        if self._fit_lanes():
            self._strips.clear()
            self.refresh()
        super().watch_cursor(before, after)

    def on_resize(self) -> None:
        self._fit_lanes()
        super().on_resize()

    def _fit_lanes(self) -> bool:
        """Choose the lanes to draw around the cursor's; True when they are others than before."""
        count = self._tree.lane_count if self._tree is not None else 1
        row = self.row_at(self.cursor)
        wanted = lanes.window(row.lane if row else 0, count, lanes.fitting(self.row_width))
        changed = wanted != self._lane_window
        self._lane_window = wanted
        return changed

    def set_base(self, base: Address | None) -> None:
        """Mark the checkpoint that diffs are pinned to."""
        self.base = base
        self._strips.clear()
        self.refresh()

    def mark_outside(self, address: Address) -> None:
        """Mark a checkpoint that was found to hold what its writes do not lead to."""
        if address not in self._outside:
            self._outside.add(address)
            self._strips.clear()
            self.refresh()

    def _forget(self) -> None:
        self._chunks.clear()
        self._colours.clear()

    def _place(self, address: Address | None) -> int | None:
        if address is None or self._tree is None:
            return None
        try:
            return self._tree.index(address)
        except (StudioError, LookupError, ValueError):  # another thread's, or gone
            return None

    def _colours_at(self, index: int) -> dict[int, str]:
        number, offset = divmod(index, CHUNK)
        found = self._colours.get(number)
        if found is None:
            self.row_at((number + 1) * CHUNK)
            after = self._chunks.get(number + 1, [])
            self.row_at(index)
            found = self._colours[number] = lanes.colours(self._chunks.get(number, []), after)
        return found[offset] if offset < len(found) else {}

    def draw_row(self, index: int, width: int, here: bool) -> list[Content]:
        row = self.row_at(index)
        if row is None:
            return [Content("")]
        first, stop = self._lane_window
        pieces: list[tuple[str, str] | Content] = [("▌" if here else " ", "$primary bold")]
        above = self.row_at(index - 1) if index else None
        pieces += lanes.draw(row, above, first, stop, self._colours_at(index))
        beside = lanes.rest_width(self._tree.lane_count if self._tree is not None else 1, stop - first)
        if beside:
            pieces.append(lanes.rest(row, first, stop, beside))
        used = 1 + 2 * (stop - first) + beside
        digits = max(3, *(len(other.number) for other in self._chunks.get(index // CHUNK, (row,))))
        address = row.checkpoint.address
        said = self._words(address) if self._words is not None else None
        if said is not None:
            return [_turn(pieces, used, row, said, width, digits, pinned=address == self.base)]
        return [_rest(pieces, used, row, width, digits, pinned=address == self.base, outside=address in self._outside)]


def _rest(
    pieces: list[tuple[str, str] | Content], used: int, row: Row, width: int, digits: int, *, pinned: bool, outside: bool
) -> Content:
    """Number, bold label, badge, then chips of channels and the time at the right edge, as far as they fit."""
    number = draw.number(row)
    number_text = f"{number:<{min(digits, 8)}} "
    label = draw.title(row, 48)
    badge = ("≠", "$wait") if outside and not pinned else _badge(row, pinned)
    time = f" {labels.duration(draw.gap(row)):>7}" if width >= 50 and draw.gap(row) is not None else ""
    room = width - used - len(number_text) - 1
    badge_room = len(badge[0]) + 3 if badge else 0
    crowded = badge and len(label) + badge_room > room
    if crowded and badge and (badge[0] in _SHAPE_SAYS_IT or room - badge_room < min(len(label), LEAST_LABEL)):
        badge, badge_room = None, 0
    label_room = max(4, room - badge_room - len(time))
    shown_label = label if len(label) <= label_room else label[: label_room - 1] + "…"
    space = room - len(shown_label) - badge_room - len(time)
    chips = _chips(row.channels, space - 2) if space > 3 else ""
    style = "bold $foreground" if row.nodes or row.checkpoint.source == "input" else "$foreground"
    line = Content.assemble(*pieces, (number_text, "$faint"), (shown_label, style))
    if badge:
        line = line + Content(" ") + Content.styled(f" {badge[0]} ", f"{badge[1]} on $chip")
    fill = width - line.cell_length - len(chips) - len(time) - 1
    return line + Content(" " * max(0, fill)) + Content.styled(chips, "$quiet") + Content.styled(time, "$faint")


def _turn(
    pieces: list[tuple[str, str] | Content], used: int, row: Row, said: RowWords, width: int, digits: int, *, pinned: bool
) -> Content:
    """Number, tools, what was said or what the first call is about, then the time at the right edge, as far as they fit."""
    number_text = f"{draw.number(row):<{min(digits, 8)}} "
    title = draw.title(row, 48)
    plain = bool(said.words) and title in ("prompt", "context", "answer")
    badge = _badge(row, pinned)
    if badge and badge[0] in ("failed", "ready"):
        badge = None
    if said.badge:
        badge = (
            "✕ error" if said.badge == "service error" else f"✕ {said.badge.removesuffix('failed').strip()}".rstrip(),
            "$error",
        )
    elif row.is_leaf and not row.is_head and not row.depth and badge is None:
        badge = ("abandoned", "$faint")
    gap = draw.gap(row)
    time = f" {labels.duration(gap):>7}" if width >= 50 and gap is not None else ""
    count = f" {said.count}" if said.count and width >= 50 else ""
    room = width - used - len(number_text) - 1 - len(time) - len(count) - (len(badge[0]) + 3 if badge else 0)
    if room < LEAST_LABEL and badge and not said.badge:
        room, badge = room + len(badge[0]) + 3, None
    line = Content.assemble(*pieces, (number_text, "$faint"))
    if plain:
        line = line + draw.own(said.words, "bold $foreground" if title == "prompt" else "$foreground").truncate(
            max(4, room), ellipsis=True
        )
    else:
        shown = Content.styled(title, "bold $foreground")
        if said.words:
            shown = shown.truncate(max(4, room * 3 // 5), ellipsis=True) + Content.styled(f" {said.words}", "$quiet")
        line = line + shown.truncate(max(4, room), ellipsis=True)
    if badge:
        line = line + Content(" ") + Content.styled(f" {badge[0]} ", f"{badge[1]} on $chip")
    fill = width - line.cell_length - len(count) - len(time) - 1
    return line + Content(" " * max(0, fill)) + Content.styled(count, "$quiet") + Content.styled(time, "$faint")


def _badge(row: Row, pinned: bool) -> tuple[str, str] | None:
    if pinned:
        return "pinned", "$primary"
    if row.status in _BADGES:
        return _BADGES[row.status]
    if row.is_head:
        return "head", "$primary"
    if row.origin_checkpoint_id is not None:
        return "fork", "$lane-fork"
    if row.checkpoint.encrypted:
        return _ENCRYPTED
    if row.missing_steps is not None:
        return explained.gap_short(row), "$faint"
    return None


def _chips(channels: tuple[str, ...], room: int) -> str:
    """As many channel names as fit, then `+2`."""
    if not channels:
        return ""
    out = ""
    for index, channel in enumerate(channels):
        name = gate.line(channel, 24)
        more = len(channels) - index - 1
        wanted = f"{out}  {name}" if out else name
        if len(wanted) + (4 if more else 0) > room:
            rest = len(channels) - index
            tail = f"{out} +{rest}" if out else f"+{rest}"
            return tail if len(tail) <= room else out
        out = wanted
    return out
