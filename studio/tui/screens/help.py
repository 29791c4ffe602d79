"""All keys, from the table of actions, with what the shapes and colours mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from studio.actions import ACTIONS, key_label
from studio.tui import draw
from studio.tui.keys import KeyLine
from studio.tui.lines import BLANK, Line, LineView

_MORE = (
    (
        "Panes",
        (
            ("→ l enter", "Into the pane", "From the timeline into what happened there."),
            ("← h esc", "Back", "From a pane to the timeline."),
            ("tab", "Next pane", "Timeline, centre, why."),
            ("J K", "Step", "Move the timeline while a pane has the keyboard."),
            ("enter", "Edit or go", "On a value: edit it and fork. On a superstep: go there."),
            ("space", "Open", "Unfold a line that ends in ▸."),
            ("ctrl+p", "Palette", "Every action and every checkpoint by name; also the theme."),
            ("ctrl+q", "Quit", "Leave; forks and runs stay in the scratch file."),
        ),
    ),
)


Groups = Iterable[tuple[str, Iterable[tuple[str, str, str]]]]


class HelpScreen(ModalScreen[None]):
    """The keys by group: all of the main screen, or those of the dialog that opened it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "leave", "Close", show=False)]
    CSS = """
    HelpScreen > Vertical { width: 100%; max-width: 100; height: 100%; max-height: 50; margin: 1 2; padding: 0; }
    HelpScreen.narrow > Vertical { margin: 0; }
    HelpScreen LineView { height: 1fr; }
    """

    def __init__(self, lines: tuple[Line, ...] = (), title: str = "Keys") -> None:
        super().__init__()
        self._lines = lines
        self._title = title

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield LineView(id="help")
            yield KeyLine([("↑↓", "scroll"), ("esc", "close")], id="help-keys")

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = Content(self._title)
        view = self.query_one("#help", LineView)
        view.show(self._lines or build())
        view.focus()

    def action_leave(self) -> None:
        self.dismiss(None)


def key_lines(groups: Groups) -> tuple[Line, ...]:
    """Keys by group, each with its name and what it does."""
    lines: list[Line] = []
    for title, rows in groups:
        if lines:
            lines.append(BLANK)
        lines.append(Line(draw.own(title, "bold $primary"), 1))
        for key, name, words in rows:
            lines.append(
                Line(draw.own(f"{key:<11}", "bold") + draw.own(f"{name:<19}") + draw.own(words, "$quiet"), 2, hanging=30)
            )
    return tuple(lines)


def build() -> tuple[Line, ...]:
    """The text of the main screen's help."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for action in ACTIONS:
        groups.setdefault(action.group, []).append((" ".join(key_label(key) for key in action.keys), action.title, action.help))
    lines = [*key_lines((*groups.items(), *_MORE))]
    lines += [
        BLANK,
        Line(draw.own("Shapes", "bold $primary"), 1),
        Line(
            Content.assemble(
                ("●", "$lane-main"),
                "  ran    ",
                ("■", "$wait"),
                "  stopped for a question    ",
                ("✕", "$error"),
                "  failed    ",
                ("○", "$faint"),
                "  not known    ",
                ("◌", "$lane-fork"),
                "  a fork",
            ),
            2,
        ),
        Line(
            Content.assemble(
                ("━", "$lane-main"),
                "  main    ",
                ("━", "$lane-sub"),
                "  subgraph    ",
                ("━", "$lane-fork"),
                "  fork, in the scratch file",
            ),
            2,
        ),
        BLANK,
        Line(draw.own("The opened file is never changed. Forks and runs go to a scratch file of the studio's own.", "$quiet"), 2),
    ]
    return tuple(lines)
