"""The palette (ctrl+p): every action of the table, and every checkpoint of the open thread by number or name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from studio.actions import ACTIONS
from studio.errors import StudioError
from studio.model import Address, Row
from studio.render import gate
from studio.tui import draw, keys
from studio.tui.screens.filtered import Filtered
from studio.tui.screens.help import HelpScreen

if TYPE_CHECKING:
    from studio.tree import CheckpointTree
    from studio.tui.main import MainScreen

MOST_ROWS = 20_000
"""Rows of a thread that are matched by name; any row is found by its number or id."""
_Given = TypeVar("_Given", str, Address)
_ORDER = ("Change", "View", "Copy", "Move", "Help")


class StudioCommands(Provider):
    """Actions, then Textual's own commands; checkpoints where one is asked for."""

    _names: Sequence[tuple[str, Content, Address]] = ()

    async def startup(self) -> None:
        """Read the names of the rows once, off the UI thread."""
        main = self.main
        if main is not None and main.checkpoints is not None:
            self._names = await asyncio.to_thread(_read_names, main.checkpoints)

    @property
    def main(self) -> MainScreen | None:
        from studio.tui.main import MainScreen

        return next((screen for screen in self.app.screen_stack if isinstance(screen, MainScreen)), None)

    def _may_move(self, main: MainScreen) -> bool:
        """Behind a dialog that holds a person's work nothing may happen; one that holds none is left for it."""
        return isinstance(self.screen, (Filtered, HelpScreen)) or self.screen is main

    def _offers(self, main: MainScreen, action_id: str) -> bool:
        return main.offers(action_id) and (action_id == "help" or self._may_move(main))

    def _after(self, command: Callable[[_Given], object], given: _Given) -> None:
        """Do what was chosen, where the person then sees it."""
        for screen in reversed(self.app.screen_stack):
            if not isinstance(screen, (Filtered, HelpScreen)):
                break
            screen.dismiss(None)
        command(given)

    async def discover(self) -> Hits:
        main = self.main
        for action in sorted(ACTIONS, key=lambda action: _ORDER.index(action.group) if action.group in _ORDER else 9):
            if main is not None and self._offers(main, action.id):
                yield DiscoveryHit(
                    f"{action.title}",
                    partial(self._after, main.action_do, action.id),
                    help=f"{keys.printed(action.id)}   {action.help}",
                )
        for command in self.app.get_system_commands(self.screen):
            yield DiscoveryHit(command.title, command.callback, help=command.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self.app.get_system_commands(self.screen):
            score = matcher.match(command.title)
            if score > 0:
                yield Hit(score, matcher.highlight(command.title), command.callback, help=command.help)
        main = self.main
        if main is None:
            return
        for action in ACTIONS:
            score = matcher.match(f"{action.title} {action.help}")
            if score > 0 and self._offers(main, action.id):
                yield Hit(
                    score,
                    Content(action.title),
                    partial(self._after, main.action_do, action.id),
                    text=action.title,
                    help=f"{keys.printed(action.id)}   {action.help}",
                )
        tree = main.checkpoints
        if tree is None or not self._may_move(main):
            return
        try:
            address = tree.resolve(query)
        except StudioError:  # not a REF: then it is a name
            address = None
        if address is not None:
            row = tree.row(address)
            yield Hit(1.0, _title(row), partial(self._after, main.go, address), text=query, help="Go to this checkpoint")
        for name, label, found in self._names:
            score = matcher.match(name)
            if score > 0:
                yield Hit(score * 0.9, label, partial(self._after, main.go, found), text=name, help="Go to this checkpoint")


def _read_names(tree: CheckpointTree) -> list[tuple[str, Content, Address]]:
    rows = tree.rows(0, MOST_ROWS)
    return [(gate.line(f"{draw.number(row)} {row.label}", 80), _title(row), row.checkpoint.address) for row in rows]


def _title(row: Row) -> Content:
    return Content.assemble((draw.number(row) + " ", "$text-muted"), (draw.title(row), "bold"))
