"""The options of a run: an input, where to stop, limits, configuration. One field a line, read when they are taken over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from studio.errors import UsageError
from studio.running import options
from studio.tui import draw
from studio.tui.keys import KeyLine

if TYPE_CHECKING:
    from studio.tui.app import StudioApp


class OptionsScreen(ModalScreen[Mapping[str, str] | None]):
    """Dismisses with what was typed, by field, once all of it can be read; with None when it is left."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("ctrl+s", "take", "Use them", show=False, priority=True),
        Binding("down", "app.focus_next", "Next field", show=False),
        Binding("up", "app.focus_previous", "Field before", show=False),
    ]
    CSS = """
    OptionsScreen > VerticalScroll { width: 100%; max-width: 92; height: auto; max-height: 100%; margin: 1 2; padding: 1 2; }
    OptionsScreen.narrow > VerticalScroll { margin: 0; padding: 0 1; }
    OptionsScreen Horizontal { height: auto; }
    OptionsScreen .name { width: 20; color: $quiet; }
    OptionsScreen Input { width: 1fr; background: $panel; }
    OptionsScreen .wrong { color: $error; height: auto; }
    OptionsScreen .buttons { margin: 1 0 0 0; }
    OptionsScreen Button { height: 1; padding: 0 2; margin: 0 2 0 0; }
    """

    def __init__(self, typed: Mapping[str, str], *, answers: bool) -> None:
        """`typed` stands in the fields; with `answers` the run goes on with answers, and takes no input."""
        super().__init__()
        self._typed = typed
        self._fields = [one for one in options.FIELDS if not (answers and one.name == "input")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog"):
            for one in self._fields:
                with Horizontal():
                    yield Static(one.title, classes="name", markup=False)
                    yield Input(self._typed.get(one.name, ""), placeholder=one.example, id=f"option-{one.name}", classes="flat")
            yield Static("", classes="wrong", id="wrong", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Plan with these", variant="primary", id="take")
                yield Button("Close", id="leave")
            yield KeyLine([("↑↓", "fields"), ("ctrl+s", "plan with these"), ("esc", "close")], id="option-keys")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).border_title = Content("Run options")
        self.query(Input).first().focus()

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_take()

    def action_take(self) -> None:
        typed = {one.name: self.query_one(f"#option-{one.name}", Input).value for one in self._fields}
        typed = {name: text for name, text in typed.items() if text.strip()}
        try:
            options.read(typed)
        except UsageError as error:
            self.query_one("#wrong", Static).update(draw.text(f"{error.message}: {error.hint}", "", 400))
            name = next((one.name for one in self._fields if error.message.startswith(one.title)), "")
            if name:
                self.query_one(f"#option-{name}", Input).focus()
            return
        self.dismiss(typed)

    @on(Button.Pressed)
    def pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "take":
            self.action_take()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        self.dismiss(None)
