"""The values that a fork sets or removes, as a list with rows to add more."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content

from studio import rewriting, tagged
from studio.errors import StudioError
from studio.model import Tagged_JSON
from studio.render import gate
from studio.tui import draw
from studio.tui.point import Point
from studio.tui.rows import RowView

GONE = object()
"""Marks an edit that removes a value."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One value to set, or to remove where `doc` is GONE."""

    path: str
    doc: Tagged_JSON


class EditList(RowView):
    """The edits, then a row to add one."""

    def __init__(self, point: Point, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._point = point
        self.edits: list[Edit] = []
        self.channels = rewriting.channels(point.state, show_secrets=point.show_secrets)
        """Those whose messages can be edited."""

    @property
    def row_count(self) -> int:
        return len(self.edits) + (3 if self.channels else 2)

    def draw_row(self, index: int, width: int, here: bool) -> list[Content]:
        bar = Content.styled("▌" if here else " ", "$primary bold")
        if index == len(self.edits):
            return [bar + draw.own(" + ", "$primary bold") + draw.own("a value of the state", "$quiet")]
        if index == len(self.edits) + 1:
            return [bar + draw.own(" + ", "$primary bold") + draw.own("the whole state as JSON", "$quiet")]
        if index == len(self.edits) + 2:
            return [bar + draw.own(" + ", "$primary bold") + draw.own("the messages, one by one", "$quiet")]
        edit = self.edits[index]
        shows = self._point.show_secrets
        path = draw.text(edit.path, "bold", max(8, width // 2))
        room = max(8, (width - path.cell_length - 10) // 2)
        before = draw.own("new", "$faint")
        try:
            before = draw.old(draw.value(edit.path, tagged.get(self._point.state.editable, edit.path), room, show_secrets=shows))
        except StudioError:
            pass
        after = draw.own(" removed", "$old") if edit.doc is GONE else draw.new(_short(edit.doc, room))
        return [bar + Content(" ") + path + Content("  ") + before + draw.own(" → ", "bold") + after]


def _short(doc: Tagged_JSON, room: int) -> str:
    if isinstance(doc, list) and any(tagged.is_item(item) for item in doc):
        kept = sum(1 for item in doc if tagged.is_item(item))
        new = f" and {len(doc) - kept} more" if len(doc) > kept else ""
        return gate.line(f"{kept} stored messages in a new order{new}", room)
    return gate.line(tagged.dumps(doc), room)
