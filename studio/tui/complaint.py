"""What went wrong or was done in a dialog, said in the dialog: a toast would lie over the keys and buttons at its foot."""

from __future__ import annotations

from typing import Any

from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widgets import Static

from studio.tui.keys import KeyLine

SECONDS = 8.0


class Complaint(Static):
    """Lines above the keys of a dialog; they go by themselves, and give way to the next ones."""

    DEFAULT_CSS = "Complaint { height: auto; max-height: 5; padding: 0 1; background: $panel; }"

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._timer: Timer | None = None

    def say(self, title: str, message: str, hint: str, style: str = "$error") -> None:
        words = Content.styled(f"{title}: ", f"bold {style}") + Content(message) if title else Content(message)
        self.update(words + Content.styled(f"\n{hint}", "$quiet") if hint else words)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(SECONDS, self.remove)


def tell_in(screen: Screen[Any], title: str, words: str) -> bool:
    """A short notice in the dialog on top; False where there is none."""
    return complain_in(screen, title, words, "", "$primary")


def complain_in(screen: Screen[Any], title: str, message: str, hint: str, style: str = "$error") -> bool:
    """Say it in the dialog on top; False where there is none that has a line of keys."""
    foot = next(iter(screen.query(KeyLine)), None) if isinstance(screen, ModalScreen) else None
    if foot is None or foot.parent is None:
        return False
    said = next(iter(screen.query(Complaint)), None)
    if said is None:
        said = Complaint()
        screen.mount(said, before=foot)
    said.say(title, message, hint, style)
    return True
