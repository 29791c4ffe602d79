"""The application: theme, palette, and the one screen that everything starts from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.filter import LineFilter
from textual.screen import Screen
from textual.theme import Theme
from textual.worker import WorkerFailed

from studio.errors import StudioError
from studio.model import Address
from studio.render import gate
from studio.stores.view import View
from studio.tui import theme
from studio.tui.complaint import SECONDS, complain_in, tell_in
from studio.tui.main import MainScreen
from studio.tui.names import KeyFilter
from studio.tui.palette import StudioCommands

if TYPE_CHECKING:
    from studio.session import Session

LOW = 28
"""Rows below which a screen keeps to what matters most."""


class StudioApp(App[None]):
    """The terminal UI on one opened session."""

    TITLE = "Checkpoint Studio"
    CSS_PATH = "studio.tcss"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {StudioCommands}
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Quit", show=False, priority=True),
    ]

    def __init__(self, session: Session, at: Address | str | None = None) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "narrow"), (100, "normal"), (160, "wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "low"), (LOW, "tall")]
        self.session = session
        self.at = at
        self._key_filter = KeyFilter()
        self._opened: dict[View, Session] = {}
        """Other parts of the file that were shown; closed at the end."""
        self.graph: str | None = None
        """The graph that was chosen for a run; the next run takes it, too."""
        self.fault: BaseException | None = None
        """The first fault of ours; told on stderr once the terminal is a terminal again."""
        self.register_theme(theme.DARK)
        self.register_theme(theme.LIGHT)
        self.theme = "studio-dark"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        found: Theme | None = self.available_themes.get(self.theme) if self.theme else None
        return theme.defaults(found.dark if found is not None else True)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Textual's own commands, without those that the table of actions covers."""
        for command in super().get_system_commands(screen):
            if command.title in ("Theme", "Quit", "Screenshot"):
                yield command

    def on_mount(self) -> None:
        self.push_screen(MainScreen(self.session, self.at))

    def get_line_filters(self) -> Sequence[LineFilter]:
        """With the mask over keys that stand as names."""
        filters = super().get_line_filters()
        return filters if self.session.show_secrets else [self._key_filter, *filters]

    # ------------------------------------------------------------------ parts of a file

    def open_tables(self, session: Session) -> None:
        """What else the file holds; another part of it that is chosen there takes the place of this one."""
        from studio.tui.screens.tables import TablesScreen

        if not isinstance(self.screen, TablesScreen):
            self.push_screen(TablesScreen(session), self._part_chosen)

    def _part_chosen(self, view: View | None) -> None:
        if view is not None:
            self._open_part(view)

    @work(thread=True, exclusive=True, group="part")
    def _open_part(self, view: View) -> None:
        try:
            first = self.session.view == view
            part = self.session if first else self._opened.get(view) or self.session.beside(view)
        except StudioError as error:
            self.call_from_thread(self.complain, error, "Cannot show this part of the file")
            return
        show: Callable[..., Any] = self._show_part  # the type of `call_from_thread` knows no coroutine without a result
        self.call_from_thread(show, view, part)

    async def _show_part(self, view: View, part: Session) -> None:
        if part is not self.session:
            self._opened[view] = part
        while not isinstance(self.screen, MainScreen):
            await self.pop_screen()
        await self.switch_screen(MainScreen(part))

    def on_unmount(self) -> None:
        for part in self._opened.values():
            part.close()

    def _handle_exception(self, error: Exception) -> None:
        """A fault in a worker costs what it was to show; any other ends the application."""
        if isinstance(error, WorkerFailed):
            error = error.error if isinstance(error.error, Exception) else error
            if not self._exit:
                self.fault = self.fault or error
                self.complain(StudioError(f"{type(error).__name__}: {error}", "run with --debug to see where"), "Internal error")
            return
        if self._exception is None:  # what breaks while the screens are taken down after it is no news
            self.fault = error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Without Textual's traceback: it prints local variables, which hold what is stored, secrets too."""
        self._close_messages_no_wait()

    def panic(self, *renderables: RenderableType) -> None:
        self._close_messages_no_wait()

    @property
    def chosen_graph(self) -> str | None:
        """The graph that was named here; else, of several, the one that is called like the file, as in the browser."""
        from studio.running.graphs import called_like

        if self.graph is None and self.session.graph.graph is None:
            with suppress(StudioError):
                names = self.session.graph_names()
                return called_like(self.session.location, names) if len(names) > 1 else None
        return self.graph

    def complain(self, error: StudioError, what: str = "", by: Screen[None] | None = None) -> None:
        """What went wrong, and what to do next: in the dialog `by`, or the one on top, else as one notification."""
        title, message, hint = what or "That did not work", gate.line(error.message, 300), gate.line(error.hint or "", 300)
        if not complain_in(by or self.screen, title, message, hint):
            self.notify(f"{message}\n{hint}".strip(), title=title, severity="error", timeout=SECONDS, markup=False)

    def tell(self, words: str, title: str = "") -> None:
        """A short notice; `words` may quote stored text."""
        if not tell_in(self.screen, title, gate.clean(words)):
            self.notify(gate.clean(words), title=title, timeout=4, markup=False)
