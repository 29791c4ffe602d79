"""The palette (ctrl+p): every action of the table, and every checkpoint of the open thread by number or name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from studio.actions import ACTIONS
from studio.render import gate
from studio.tui import draw, keys

if TYPE_CHECKING:
    from studio.tui.main import MainScreen

MOST_ROWS = 20_000
"""Rows of a thread that are matched by name; any row is found by its number or id."""
_ORDER = ("Change", "View", "Copy", "Move", "Help")


class StudioCommands(Provider):
    """Actions and checkpoints for the palette."""

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
                yield DiscoveryHit(f"{action.title}", partial(main.action_do, action.id), help=f"{keys.printed(action.id)}   {action.help}")

    async def search(self, query: str) -> Hits:
        main = self.main
        if main is None:
            return
        matcher = self.matcher(query)
        for action in ACTIONS:
            score = matcher.match(f"{action.title} {action.help}")
            if score > 0 and main.offers(action.id):
                yield Hit(score, Content(action.title), partial(main.action_do, action.id), text=action.title, help=f"{keys.printed(action.id)}   {action.help}")
        tree = main.checkpoints
        if tree is None:
            return
        try:
            address = tree.resolve(query)
        except Exception:  # not a REF: then it is a name
            address = None
        if address is not None:
            row = tree.row(address)
            yield Hit(1.0, _title(row), partial(main.go, address), text=query, help="Go to this checkpoint")
        for row in tree.rows(0, MOST_ROWS):
            name = gate.line(f"{draw.number(row)} {row.label}", 80)
            score = matcher.match(name)
            if score > 0:
                yield Hit(score * 0.9, _title(row), partial(main.go, row.checkpoint.address), text=name, help="Go to this checkpoint")


def _title(row: object) -> Content:
    from studio.model import Row

    assert isinstance(row, Row)
    return Content.assemble((draw.number(row) + " ", "$text-muted"), (draw.title(row), "bold"))
