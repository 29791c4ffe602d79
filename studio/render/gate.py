"""The output gate: stored text is hostile (design rule 7), so nothing from a file is shown before it passed here.

What a terminal or browser would obey instead of show becomes a visible escape: control bytes, C1, direction marks, invisible
format characters, lone surrogates. Markup needs no escape here: the page autoescapes and the terminal UI never parses markup.
"""

from __future__ import annotations

import re

_FORMAT = (
    "\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f{_FORMAT}]")
_UNSAFE_LINE = re.compile(f"[\x00-\x1f{_FORMAT}]")
_NAMES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _NAMES:
        return _NAMES[character]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, kept by surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def clean(text: str, multiline: bool = True) -> str:
    """Stored text made safe to show, with every dangerous character as a visible escape.

    `multiline=False` also escapes newline and tab, for names, ids and one-line summaries.
    """
    if text.isprintable():  # holds nothing of the kinds above, and most names and ids are
        return text
    return (_UNSAFE if multiline else _UNSAFE_LINE).sub(_escape, text)


def line(text: str, width: int | None = None) -> str:
    """`clean` for one line, shortened to `width` characters with an ellipsis."""
    if width is not None and len(text) > 4 * width + 16:
        text = text[: 4 * width + 16]  # never clean megabytes for one line
    shown = clean(text, multiline=False)
    return shown if width is None or len(shown) <= width else shown[: max(0, width - 1)] + "…"
