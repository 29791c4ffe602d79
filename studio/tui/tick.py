"""A box to tick. Textual draws the same cross in a ticked and in an empty one, in another colour; here the shape says it."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content
from textual.widgets import Checkbox


class Tick(Checkbox):
    """Empty, or with a tick in it."""

    MARKS: ClassVar[dict[bool, str]] = {True: "✓", False: " "}

    @property
    def _button(self) -> Content:
        self.BUTTON_INNER = self.MARKS[self.value]
        return super()._button
