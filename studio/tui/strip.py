"""The strip of tokens over a transcript: one line of bars, as high as what the model saw, the turn in view lit."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from studio import wording
from studio.reading import Bar, Strip

STEPS = " ▁▂▃▄▅▆▇█"
BARS = 240
"""Bars that are read; a narrower strip joins them."""
FEWEST = 8


class StripLine(Static):
    """One line; nothing where no tokens are told."""

    DEFAULT_CSS = "StripLine { height: 1; background: $surface; padding: 0 1; display: none; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", markup=False, id=id)
        self._strip: Strip | None = None

    def say(self, strip: Strip | None) -> None:
        self._strip = strip
        self.display = strip is not None
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width, strip = self.content_size.width, self._strip
        if strip is None or width <= 0:
            return
        facts = [f"{what} {number}" for what, number in wording.total_words(strip.total, strip.context, strip.cost)]
        words = "  ".join(facts)
        while facts and len(words) + FEWEST + 2 > width:
            facts.pop(1 if len(facts) > 2 else -1)
            words = "  ".join(facts)
        self.update(bars(strip, max(FEWEST, width - len(words) - 2)) + Content.styled(f"  {words}", "$faint"))


def bars(strip: Strip, room: int) -> Content:
    """At most `room` bars."""
    size = max(1, -(-len(strip.bars) // max(1, room)))
    most = max(1, strip.most)
    pieces = []
    for start in range(0, len(strip.bars), size):
        group: tuple[Bar, ...] = strip.bars[start : start + size]
        top = max(bar.tokens.context for bar in group)
        sign = "│" if any(bar.compacted for bar in group) and not top else STEPS[min(8, max(1, -(-top * 8 // most)))]
        here = start <= strip.here < start + size
        style = "bold $primary" if here else "$faint" if start > strip.here else "$wait" if sign == "│" else "$quiet"
        pieces.append(Content.styled(sign, style))
    return Content("").join(pieces)
