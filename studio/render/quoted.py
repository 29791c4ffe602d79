"""Texts in quotes inside a text, escaped as often as they may be, and what brackets enclose."""

from __future__ import annotations

from studio.lazy import lazy
from studio.render import readable

Span = tuple[int, int]

_QUOTE = lazy(r"""[bfru]{0,2}(\\{0,15}["'`])""")
_MARK = lazy(r"""\\{0,15}["']""")
_BRACKET = lazy(r"""[\[\]{}"']""")


def quote_at(text: str, at: int) -> bool:
    """Whether a text in quotes begins there."""
    return _QUOTE.match(text, at) is not None


def quoted(text: str, at: int) -> Span | None:
    """The inside of a text in quotes; empty where it is blank or stands for a value that comes from elsewhere. None: no quote."""
    found = _QUOTE.match(text, at)
    if found is None:
        return None
    start, mark = found.end(), found[1]
    if text.startswith(2 * mark, start) and len(mark) == 1:  # three quotes, unless the text is empty
        end = text.find(3 * mark, start + 2)
        start, end = start + 2, end if end >= 0 else len(text)
    else:
        end = closing(text, start, mark)
    return (start, start) if readable.plain_text(text, start, end) else (start, end)


def closing(text: str, at: int, mark: str) -> int:
    """The next quote that is escaped as often as the opening one; the end of the text where there is none."""
    escapes, beginning = len(mark) - 1, at
    while (found := text.find(mark[-1], at)) >= 0:
        before = found
        while before > beginning and text[before - 1] == "\\":
            before -= 1
        if found - before <= escapes:
            return max(beginning, found - escapes)
        at = found + 1
    return len(text)


def block(text: str, at: int, sign: str) -> int:
    """Where the list or map ends that begins there; quotes in it are like the first one in `sign`."""
    mark = next(found[0] for found in _MARK.finditer(sign))
    depth, here = 0, at
    while (found := _BRACKET.search(text, here)) is not None:
        here = found.end()
        if found[0] in "[{":
            depth += 1
        elif found[0] in "]}":
            depth -= 1
        elif found[0] == mark[-1]:
            here = closing(text, here, mark) + len(mark)
        if not depth:
            return here
    return len(text)
