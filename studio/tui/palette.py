"""The palette (ctrl+p): every action of the table, and every checkpoint of the open thread by number or name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from studio.actions import ACTIONS
from studio.errors import StudioError
from studio.model import Address, Row
from studio.render import gate
from studio.tui import draw, keys

if TYPE_CHECKING:
    from studio.tree import CheckpointTree
    from studio.tui.main import MainScreen

MOST_ROWS = 20_000
"""Rows of a thread that are matched by name; any row is found by its number or id."""
_ORDER = ("Change", "View", "Copy", "Move", "Help")


class StudioCommands(Provider):
    """Actions and checkpoints for the palette."""

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

    async def discover(self) -> Hits:
        main = self.main
        if main is None:
            return
        for action in sorted(ACTIONS, key=lambda action: _ORDER.index(action.group) if action.group in _ORDER else 9):
            if main.offers(action.id):
                yield DiscoveryHit(
                    f"{action.title}", partial(main.action_do, action.id), help=f"{keys.printed(action.id)}   {action.help}"
                )

    async def search(self, query: str) -> Hits:
        main = self.main
        if main is None:
            return
        matcher = self.matcher(query)
        for action in ACTIONS:
            score = matcher.match(f"{action.title} {action.help}")
            if score > 0 and main.offers(action.id):
                yield Hit(
                    score,
                    Content(action.title),
                    partial(main.action_do, action.id),
                    text=action.title,
                    help=f"{keys.printed(action.id)}   {action.help}",
                )
        tree = main.checkpoints
        if tree is None:
            return
        try:
            address = tree.resolve(query)
        except StudioError:  # not a REF: then it is a name
            address = None
        if address is not None:
            row = tree.row(address)
            yield Hit(1.0, _title(row), partial(main.go, address), text=query, help="Go to this checkpoint")
        for name, label, found in self._names:
            score = matcher.match(name)
            if score > 0:
                yield Hit(score * 0.9, label, partial(main.go, found), text=name, help="Go to this checkpoint")


def _read_names(tree: CheckpointTree) -> list[tuple[str, Content, Address]]:
    rows = tree.rows(0, MOST_ROWS)
    return [(gate.line(f"{draw.number(row)} {row.label}", 80), _title(row), row.checkpoint.address) for row in rows]


def _title(row: Row) -> Content:
    return Content.assemble((draw.number(row) + " ", "$text-muted"), (draw.title(row), "bold"))
