"""The output gate: stored text is hostile, so nothing from a file is shown before it passed here.

What a terminal or browser would obey instead of show becomes a visible escape, and so does what neither shows at all: control
characters, line separators, direction marks, lone surrogates, and every character that Unicode has ignored where it is not
supported (Default_Ignorable_Code_Point) or that is drawn as nothing. Hidden text for a model, or a name that only looks like
another, is seen that way. Markup needs no escape here: the page autoescapes and the terminal UI never parses markup.

Three kinds stay, each only where a writing system or an emoji needs it, so that ordinary text is not spoilt: a joiner (U+200C,
U+200D) between two characters outside the Latin, Greek and Cyrillic scripts; one presentation selector (U+FE0E, U+FE0F) after a
symbol or in a keycap; the tags of the three flags that have them. The other variation selectors only choose between shapes of
one character, and can carry any bytes: they are escaped.
"""

from __future__ import annotations

import re
import unicodedata

from studio.lazy import lazy

_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Default_Ignorable_Code_Point of Unicode 16, which the standard library does not tell; unassigned ones are reserved for it."""
_BLANK = "\u2800\U0001d159"
"""Drawn as nothing, though no space: the empty Braille pattern and the null notehead."""
_OBEYED = "\x7f-\x9f\u2028\u2029\ufff9-\ufffb\U00013430-\U0001345f\ud800-\udfff"
_FORMAT = _OBEYED + _IGNORABLE + _BLANK
_FIRST_OF_FLAGS = "\U0001f3f4"
_FLAG = _FIRST_OF_FLAGS + (
    "\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)"
    "\U000e007f"
)
"""England, Scotland and Wales."""
_NAMES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe0e\ufe0f"
_FIRST_THAT_JOINS = "\u0590"
_KEYCAP = "\u20e3"
_UNSAFE = lazy(f"{_FLAG}|[{_JOINERS}{_SELECTORS}]|[\x00-\x08\x0b-\x1f{_FORMAT}]+")
_KEPT_OF_WORD, _MOST_TOLD = 60, 1000
_LONG_WORD = lazy(r"\S{301,}")
"""Longer than the paths of files usually are."""
_UNSAFE_LINE = lazy(f"{_FLAG}|[{_JOINERS}{_SELECTORS}]|[\x00-\x1f{_FORMAT}]+")


class _Escapes(dict[int, str]):
    """Code point to visible escape, made when first met: a text of a million such characters costs a look-up for each."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _NAMES.get(chr(code)) or _escape(code)
        return found


_ESCAPES = _Escapes()


def _shown(match: re.Match[str]) -> str:
    found = match.group()
    if found[0] == _FIRST_OF_FLAGS or _belongs(found, match.string, match.start()):
        return found
    return found.translate(_ESCAPES)


def _escape(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, kept by surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _belongs(character: str, text: str, at: int) -> bool:
    """Whether an ignorable character does its work here: joins what can be joined, or chooses the look of a symbol."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if character in _JOINERS:
        return _joins(before) and _joins(after)
    if character in _SELECTORS:
        return unicodedata.category(before or " ") in ("So", "Sm") or before in ("‼", "⁉", "〰") or after == _KEYCAP
    return False


def _joins(beside: str) -> bool:
    return beside >= _FIRST_THAT_JOINS and (beside in _SELECTORS or not re.match(f"[{_FORMAT}]", beside))


def clean(text: str, multiline: bool = True) -> str:
    """Stored text made safe to show, with every dangerous character as a visible escape.

    `multiline=False` also escapes newline and tab, for names, ids and one-line summaries.
    """
    if text.isascii() and text.isprintable():  # most names and ids
        return text
    return (_UNSAFE if multiline else _UNSAFE_LINE).sub(_shown, text)


def is_clean(text: str) -> bool:
    """Whether `clean` would leave a text as it is; ends at the first character that it would not."""
    if text.isascii() and text.isprintable():
        return True
    return all(_shown(match) == match.group() for match in _UNSAFE.finditer(text))


def line(text: str, width: int | None = None) -> str:
    """`clean` for one line, shortened to `width` characters with an ellipsis."""
    if width is not None and len(text) > 4 * width + 16:
        text = text[: 4 * width + 16]  # never clean megabytes for one line
    shown = clean(text, multiline=False)
    return shown if width is None or len(shown) <= width else shown[: max(0, width - 1)] + "…"


def told(text: str) -> str:
    """`line` for the words of an error, which repeat what was asked for: what is too long says how much of it is left out."""
    text = _LONG_WORD.sub(lambda found: _without_middle(found.group(), _KEPT_OF_WORD), text)
    return clean(_without_middle(text, _MOST_TOLD // 2) if len(text) > _MOST_TOLD else text, multiline=False)


def _without_middle(text: str, kept: int) -> str:
    return f"{text[:kept]}…({len(text) - 2 * kept:,} characters more)…{text[-kept:]}"
