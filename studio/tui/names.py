"""Well-known keys that stand as names are masked wherever the terminal shows them; what addresses a value keeps them.

A thread, a node, a channel or a map's key may be called like an API key. The mask goes over the finished lines of every widget,
so that no label is forgotten; a value that a person revealed, and what stands in an editor, is marked as clear.
"""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.content import Content
from textual.filter import LineFilter

from studio.render.secrets import MASKED, key_spans

CLEAR = "studio_clear"
"""In the meta of a style: this was revealed."""


def clear() -> Style:
    return Style(meta={CLEAR: True})


def without_keys(content: Content) -> Content:
    """A paragraph, before it is wrapped, with its keys masked; styles stay where they are."""
    for start, end in reversed(key_spans(content.plain)):
        content = content[:start] + Content(MASKED) + content[end:]
    return content


class KeyFilter(LineFilter):
    """Masks keys in drawn lines, in as many cells as they had."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        text = "".join(segment.text for segment in segments if not segment.control)
        found = key_spans(text)
        return _masked(segments, found) if found else segments


def _masked(segments: list[Segment], spans: list[tuple[int, int]]) -> list[Segment]:
    """A key is made of ASCII, so that a character of it is a cell."""
    drawn: list[Segment] = []
    at = 0
    for text, style, control in segments:
        if control or (style is not None and style.meta.get(CLEAR)):
            drawn.append(Segment(text, style, control))
        else:
            letters = list(text)
            for start, end in spans:
                mask = MASKED.ljust(end - start)
                for index in range(max(start, at), min(end, at + len(text))):
                    letters[index - at] = mask[index - start]
            drawn.append(Segment("".join(letters), style))
        at += 0 if control else len(text)
    return drawn
