"""Opens the terminal UI without a terminal, and waits for what a person would wait to see."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widget import Widget
from textual.worker import WorkerCancelled

from studio.model import Address
from studio.requests import GraphSpec
from studio.session import Session
from studio.tui.app import StudioApp
from studio.tui.lines import LineView
from studio.tui.main import MainScreen
from studio.tui.rows import RowView

SAMPLES = Path(__file__).resolve().parents[2] / "sample_threads"
PATIENCE = 60.0


@contextmanager
def opened(path: Path | str, scratch: Path, graph: str | None = None) -> Iterator[Session]:
    session = Session.open(str(path), scratch=str(scratch), graph=GraphSpec(graph))
    try:
        yield session
    finally:
        session.close()


class Drive:
    """A running app and the few things that tests do with it."""

    def __init__(self, app: StudioApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def main(self) -> MainScreen:
        return next(screen for screen in self.app.screen_stack if isinstance(screen, MainScreen))

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        names = {" ": "space", ".": "full_stop", "/": "slash", "-": "minus", "_": "underscore"}
        await self.pilot.press(*(names.get(character, character) for character in text))

    async def until(self, seen: Callable[[], Any], what: str = "") -> None:
        """Wait for something to be there; fails with the screen's text."""
        end = time.monotonic() + PATIENCE
        while not seen():
            assert time.monotonic() < end, f"waited in vain for {what or seen}\n{self.text()}"
            await self.pilot.pause(0.02)

    async def rest(self) -> None:
        """Wait until no worker works. One that another took the place of was cancelled, and the other is waited for."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(WorkerCancelled):
                await self.app.workers.wait_for_complete()
                return
            await self.pilot.pause(0.02)
        raise AssertionError(f"workers do not come to rest\n{self.text()}")

    async def loaded(self) -> None:
        """Wait until the checkpoint under the cursor is drawn, with its why."""

        def drawn() -> bool:
            main = self.main
            here, point = main.here, main.point
            at_rest = here is not None and point is not None and point.address == here.checkpoint.address
            return at_rest and main._drawn.get(main.tab) == main._asked

        for _ in range(3):  # a key may have started a move that ends in another load
            await self.rest()
            await self.pilot.pause()
            await self.until(drawn, "a drawn checkpoint")

    async def go(self, number: str) -> None:
        """Stand on a row by its number."""
        assert self.main.checkpoints is not None
        self.main.go(self.main.checkpoints.resolve(number))
        await self.pilot.pause()
        await self.loaded()

    async def shows(self, words: str) -> None:
        await self.until(lambda: words in self.text(), repr(words))

    def text(self, selector: str | None = None) -> str:
        """The text of the top screen, or of one widget in it, as drawn."""
        screen = self.app.screen
        widget: Widget = screen.query_one(selector) if selector else screen
        region = widget.region
        strips = screen._compositor.render_strips()
        return "\n".join(strip.crop(region.x, region.right).text for strip in strips[region.y : region.bottom])

    def lines(self, selector: str) -> list[str]:
        """All lines of a pane, those below the window included."""
        view = self.app.screen.query_one(selector, LineView)
        return [line.content.plain for line in view.lines]

    def rows(self, selector: str) -> RowView:
        return self.app.screen.query_one(selector, RowView)


@asynccontextmanager
async def driven(
    session: Any, at: Address | str | None = None, size: tuple[int, int] = (120, 32), notices: bool = False
) -> AsyncIterator[Drive]:
    """`notices`: with the toasts that a person would see."""
    app = StudioApp(session, at)
    async with app.run_test(size=size, notifications=notices) as pilot:
        drive = Drive(app, pilot)
        await pilot.pause()
        yield drive
