"""Where output goes: gated text for people, ASCII JSON for programs, one line per error."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable
from typing import Any

from studio.errors import StudioError
from studio.render.threadnames import typed

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36"}
_CANDIDATES = 40
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


class Out:
    """Stdout and stderr of one call. Text given to `say` and `paint` is the studio's own or went through the gate before."""

    def __init__(self, *, debug: bool = False) -> None:
        self.debug = debug
        self.as_json = False
        self.show_secrets = False
        self.colour = _wants_colour(sys.stdout)
        self.width = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120

    def say(self, text: str = "", *, flush: bool = False) -> None:
        """One line on stdout; what the terminal's encoding cannot print is escaped. A key that is a name is masked here."""
        _write(sys.stdout, (text if self.show_secrets or self.as_json else _without_keys(text)) + "\n")
        if flush:
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """One line on stderr, beside the result."""
        sys.stdout.flush()
        _write(sys.stderr, (text if self.show_secrets else _without_keys(text)) + "\n")

    def document(self, doc: Any) -> None:
        """A whole JSON document on one line."""
        from studio.tagged import dumps

        self.say(dumps(doc))

    def pieces(self, texts: Iterable[str]) -> None:
        """A JSON document that is printed as it is made; ASCII like all of them."""
        for text in texts:
            sys.stdout.write(text)
        self.say()

    def paint(self, text: str, *styles: str) -> str:
        """The text in colour where colour is wanted."""
        if not self.colour or not text or not styles:
            return text
        return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"

    def brief(self, value: Any, width: int, key: str | None = None) -> str:
        """A stored value in one line, gated and masked."""
        from studio.render.preview import summary

        return summary(value, width, key=key, show_secrets=self.show_secrets)

    def table(self, rows: Iterable[list[str]], styles: list[tuple[str, ...]], gap: str = "  ") -> None:
        """Aligned columns; the last one is not padded. Cells are plain text, each column has its styles."""
        found = list(rows)
        widths = [max((len(row[at]) for row in found), default=0) for at in range(len(styles))]
        for row in found:
            cells = [
                self.paint(cell, *styles[at]) + " " * (widths[at] - len(cell) if at < len(row) - 1 else 0)
                for at, cell in enumerate(row)
            ]
            self.say(gap.join(cells).rstrip())

    def error(self, error: StudioError) -> int:
        """The message and the hint, gated; returns the exit code."""
        from studio.render.gate import told
        from studio.render.secrets import mask_text

        def shown(text: str) -> str:
            return told(text if self.show_secrets else mask_text(text))

        if self.debug:
            self._traceback()
        self.note(f"studio: {shown(error.message)}")
        listed = _lists(error.hint, error.candidates) or _lists(error.message, error.candidates)
        for candidate in () if listed else error.candidates[:_CANDIDATES]:
            self.note(f"  {shown(typed(candidate) if error.slug == 'choose-thread' else candidate)}")
        if not listed and len(error.candidates) > _CANDIDATES:
            self.note(f"  … and {len(error.candidates) - _CANDIDATES} more")
        if error.hint:
            self.note(f"hint: {shown(error.hint)}")
        return error.exit_code

    def crash(self, error: Exception) -> int:
        """A fault of ours: said as such."""
        from studio.render.gate import line

        if self.debug:
            self._traceback()
        self.note(f"studio: internal error: {line(f'{type(error).__name__}: {error}', 300)}")
        self.note("hint: --debug shows where; please report it")
        return 1

    def _traceback(self) -> None:
        """Of the error that is being handled."""
        import traceback

        self.note(line_by_line(traceback.format_exc()))


def _lists(text: str, candidates: tuple[str, ...]) -> bool:
    """Whether a text names all candidates as a list; one of them alone may be any word of it."""
    together = ", ".join(candidates)
    return together in text if len(candidates) > 1 else f": {together}" in text


def line_by_line(text: str) -> str:
    """A text of several lines, gated, newlines kept."""
    from studio.render.gate import clean

    return clean(text.rstrip("\n"))


def _without_keys(text: str) -> str:
    """The text with well-known keys masked; a colour before one is no letter of it."""
    from studio.render.secrets import mask_keys

    return "".join(map(mask_keys, _COLOUR.split(text))) if "\x1b" in text else mask_keys(text)


def _write(stream: Any, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _wants_colour(stream: Any) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or bool(stream.isatty())
