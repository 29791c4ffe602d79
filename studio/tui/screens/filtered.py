"""What the dialogs with a field above a list share: the keys of the list work while one types, and those of the help, too."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Input

from studio.actions import BY_ID
from studio.tui.rows import RowView

T = TypeVar("T")
KEYS = ",".join(BY_ID["help"].keys)


class Field(Input):
    """Typed into while it is empty, the key of the help screen opens that: nobody looks for a text by its question mark."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key in BY_ID["help"].keys and not self.value:
            event.stop()
            event.prevent_default()
            await self.run_action("screen.keys")
            return
        await super()._on_key(event)


class Filtered(ModalScreen[T | None]):
    """A dialog with one `Field` and one list of rows; dismisses with what was chosen. It holds nothing that could be lost."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", show=False),
        Binding("down", "list_move(1)", "Next", show=False),
        Binding("up", "list_move(-1)", "Previous", show=False),
        Binding("pagedown", "list_page(1)", "Page down", show=False),
        Binding("pageup", "list_page(-1)", "Page up", show=False),
        Binding("slash", "focus_field", "Into the field", show=False),
        Binding(KEYS, "keys", "Keys", show=False),
    ]

    def action_list_move(self, by: int) -> None:
        self.query_one(RowView).action_move(by)

    def action_list_page(self, by: int) -> None:
        self.query_one(RowView).action_page(by)

    def action_focus_field(self) -> None:
        self.query_one(Field).focus()

    def action_keys(self) -> None:
        from studio.tui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen())

    def action_leave(self) -> None:
        """Empty the field first, then close."""
        field = self.query_one(Field)
        if field.value:
            field.value = ""
            field.focus()
        else:
            self.dismiss(None)
