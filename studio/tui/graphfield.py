"""The field that names a graph: what `langgraph.json` lists is a choice, anything else is typed."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input


class GraphField(Input):
    """Arrow keys go through `names`; a place like module:attribute is typed over them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "next_name(1)", "Next graph", show=False),
        Binding("up", "next_name(-1)", "Graph before", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        words = "a name in langgraph.json, module:attribute or path.py:attribute"
        super().__init__(placeholder=words, id=id, classes="flat")
        self.names: tuple[str, ...] = ()
        """The graphs that may be chosen, in the order of `langgraph.json`."""

    def offer(self, names: tuple[str, ...], value: str) -> None:
        """Show the field with these choices; `value` stands in it unless something was typed."""
        self.names = names
        self.value = self.value or value
        self.display = True
        self.focus()

    def action_next_name(self, by: int) -> None:
        if not self.names:
            return
        at = self.names.index(self.value) + by if self.value in self.names else (0 if by > 0 else -1)
        self.value = self.names[at % len(self.names)]
        self.cursor_position = len(self.value)
