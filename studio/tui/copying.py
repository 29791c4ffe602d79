"""Copying by OSC 52 (works through ssh): values, ids, code and the link to the browser view."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import urlencode

from studio import tagged
from studio.errors import StudioError
from studio.model import Address
from studio.render import masking, shell, snippets
from studio.tui import draw
from studio.tui.panes.state import StatePane
from studio.tui.place import Place
from studio.tui.point import Point

MOST = 1_000_000
"""Characters that a terminal is asked to take."""


class Copying(Place):
    """The copy actions of the table."""

    def _copy(self, text: str, what: str, told: str = "") -> None:
        if len(text) > MOST:
            self.app.tell(f"{what} is too large to copy ({len(text):,} characters); studio show --path prints it.")
            return
        self.app.copy_to_clipboard(text.encode(errors="backslashreplace").decode())  # an id may be no UTF-8
        self.app.tell(f"{what} copied{told}.")

    def do_copy_value(self) -> None:
        if self.point is None:
            return
        path = self.selected_path or ""
        try:
            value = tagged.get(dict(self.point.state.values), path)
        except StudioError as error:
            self.app.complain(error)
            return
        pane = self.pane
        revealed = isinstance(pane, StatePane) and bool(path) and pane.is_revealed(path)
        text = masking.copied(path, value, show_secrets=self.session.show_secrets or revealed)
        told = ""
        if revealed:
            told = " as it is shown, not masked"
        elif not self.session.show_secrets and masking.hides_in_copy(path, value, text):
            told = " with its secrets masked (v in State shows one, y then copies it)"
        self._copy(text, path or "The whole state", told)

    def do_copy_id(self) -> None:
        if self.point is not None:
            self._copy(self.point.address.checkpoint_id, f"The id of {draw.number(self.point.row)}")

    def do_copy_python(self) -> None:
        self._copy_code("Python code", lambda at, source: snippets.as_python(at.address, source))

    def do_copy_test(self) -> None:
        self._copy_code("A pytest skeleton", lambda at, source: snippets.as_test(at.address, source, at.state.next))

    def _copy_code(self, what: str, made: Callable[[Point, snippets.Source], str]) -> None:
        if self.point is None:
            return
        try:
            source = self.session.source()
        except StudioError as error:
            self.app.complain(error, "Not copied")
            return
        self._copy(made(self.point, source), what)

    def do_copy_link(self) -> None:
        if self.point is not None:
            command = link(self.session.location, self.point.address, self.session.view_options, self.tab, self.base)
            self._copy(command, "The command for the browser view")


def link(location: str, address: Address, options: Iterable[str] = (), tab: str = "changes", base: Address | None = None) -> str:
    """The command that shows this checkpoint in a browser as it is seen here: the tab, and what is pinned.

    `options` choose the part of the file.
    """
    pairs = [("thread", address.thread_id), ("ns", address.checkpoint_ns), ("at", address.checkpoint_id)]
    found = [(name, value) for name, value in pairs if value]
    if tab != "changes":
        found.append(("tab", tab))
    if base is not None:
        found += [("base", base.checkpoint_id), ("base_ns", base.checkpoint_ns)]
    query = urlencode(found, errors="surrogatepass")
    return " ".join(map(shell.word, ["studio", "web", location, *options, "--at", f"/?{query}"]))
