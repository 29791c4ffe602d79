"""Secrets in a text whose name stands beside them: `{"name": "API_KEY", "value": …}` with its members in any order, the same as
lines of YAML, and the attributes of a tag.

From a secret's name the rest of its map, item or tag is looked at, a bounded number of members to each side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from studio.lazy import lazy
from studio.render import readable
from studio.render.quoted import Span, block, closing, quote_at, quoted

_SAYS_NAME = lazy(
    r"""(?P<key>(?:\\{0,15}["'])?\b(?:name|key|header|field|k|id|Name|Key|Header|Field|ParameterKey)(?P<mark>\\{0,15}["'])?)\s{0,8}"""
    r"""(?P<sign>[:=])\s{0,8}(?P<quote>[bu]?\\{0,15}["'])?$"""
)
_VALUE = r"(?:value|val|v|Value|ParameterValue)"
_VALUE_KEY = lazy(rf"{_VALUE}$")
_BARE_KEY = rf"\b{_VALUE}[ \t]{{0,8}}:(?!:)"
_PART = lazy(rf"""(?P<mark>(?P<escapes>\\{{0,15}})["'])|(?P<bracket>[{{}}\[\]])|(?P<key>{_BARE_KEY})""")
_COLON = lazy(r"\s{0,8}:\s{0,8}")
_SPACE = lazy(r"\s{0,8}")
_UNQUOTED = lazy(r"[^\s,{}\[\]\"'\\]{3,}")
_ATTRIBUTE = lazy(rf"""\b{_VALUE}\s{{0,8}}=\s{{0,8}}(?=["'])""")
_REST_OF_LINE = lazy(r"""["']?[ \t]{0,8}(?:#[^\n]{0,200})?(?:\r?\n|$)""")
_ITEM = lazy(r"[ \t]*(?:-[ \t]+)?")
_VALUE_LINE = lazy(rf"""["']?{_VALUE}["']?[ \t]{{0,8}}:[ \t]{{1,8}}""")
_BLOCK_LINE = lazy(r"[|>][+\-\d]{0,2}[ \t]*\r?$")
_MEMBERS = 20
"""Texts, brackets or lines looked at to each side of a name."""
_GAP = 400
"""Characters between two of them."""
_TAG = 1_500
"""Characters of a tag to each side."""


def spans(text: str, start: int, end: int, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    """The values whose name stands from `start` to `end`; an empty one of a value that is harmless."""
    before = _SAYS_NAME.search(text, max(0, start - 80), start)
    if before is None:
        return
    key = before.start("key")
    if before["sign"] == "=":
        yield from _of_tag(text, key, end)
    elif before["mark"] is None and _REST_OF_LINE.match(text, end):
        yield from _of_lines(text, key, end, is_secret)
    else:
        yield from _of_map(text, key, before["quote"] or '"', is_secret)


def _of_tag(text: str, key: int, end: int) -> Iterator[Span]:
    opening = text.rfind("<", max(0, key - _TAG), key)
    stop = text.find(">", end, end + _TAG)
    if opening < 0 or ">" in text[opening:key]:
        return
    found = _ATTRIBUTE.search(text, opening, stop if stop >= 0 else end + _TAG)
    span = quoted(text, found.end()) if found is not None else None
    if span is not None:
        yield span


def _of_map(text: str, key: int, quote: str, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    escapes = quote.count("\\")
    here, depth = _opening(text, key, escapes), 1
    for _ in range(2 * _MEMBERS):
        found = None if here is None else _PART.search(text, here, here + _GAP)
        if found is None or (found["mark"] and len(found["escapes"]) < escapes):
            return
        here = found.end()
        if found["bracket"]:
            depth += 1 if found["bracket"] in "{[" else -1
            if not depth:
                return
            continue
        at = here
        if found["mark"]:
            stop = closing(text, here, found["mark"])
            here = stop + len(found["mark"])
            colon = _COLON.match(text, here)
            if depth > 1 or colon is None or not (stop - at < 20 and _VALUE_KEY.match(text, at, stop)):
                continue
            at = colon.end()
        elif depth > 1:
            continue
        else:
            at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it fits everything
        span = _value(text, at, quote, is_secret)
        if span is not None:
            yield span
            here = max(here, span[1] + (len(quote) if quote_at(text, at) else 0))


def _value(text: str, at: int, quote: str, is_secret: Callable[[str], bool]) -> Span | None:
    if quote_at(text, at):
        return quoted(text, at)
    if text[at : at + 1] in ("{", "["):
        return at, block(text, at, quote)
    found = None if readable.code_or_word(text, at) else _UNQUOTED.match(text, at)
    return None if found is None or readable.only_a_name(found[0], "", is_secret) else found.span()


def _opening(text: str, here: int, escapes: int) -> int | None:
    """Where the inside of the map begins whose member stands at `here`: backwards over texts and brackets."""
    depth = 0
    for _ in range(_MEMBERS):
        at = max(text.rfind(sign, max(0, here - _GAP), here) for sign in "{}[]\"'")
        if at < 0:
            return None
        here = at
        if text[at] in "}]":
            depth += 1
        elif text[at] in "{[":
            if not depth:
                return at + 1 if text[at] == "{" else None
            depth -= 1
        else:
            opened = _opening_quote(text, at)
            if opened is None or opened[1] < escapes:
                return None
            here = opened[0]
    return None


def _opening_quote(text: str, end: int) -> tuple[int, int] | None:
    """(beginning of the mark, how often it is escaped) of the text in quotes whose closing quote stands at `end`."""
    escapes, at = _escapes(text, end), end
    for _ in range(_MEMBERS):
        at = text.rfind(text[end], 0, at)
        if at < 0:
            return None
        if _escapes(text, at) == escapes:
            return at - escapes, escapes
    return None


def _escapes(text: str, at: int) -> int:
    before = text[max(0, at - 16) : at]
    return len(before) - len(before.rstrip("\\"))


def _of_lines(text: str, key: int, end: int, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    """The value in another line of the same item; such lines begin in one column."""
    line = text.rfind("\n", max(0, key - _GAP), key) + 1
    column = key - line
    first = _ITEM.fullmatch(text, line, key)
    if first is None:
        return
    if "-" not in first[0]:
        yield from _lines_before(text, line, column, is_secret)
    at = text.find("\n", end) + 1
    for _ in range(_MEMBERS):
        if not at:
            return
        item = _ITEM.match(text, at)
        here = item.end() if item is not None else at
        if text[here : here + 1] not in "\r\n":
            if here - at < column or (here - at == column and item is not None and "-" in item[0]):
                return
            if here - at == column:
                yield from _line_value(text, here, column, is_secret)
        at = text.find("\n", here) + 1


def _lines_before(text: str, line: int, column: int, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    for _ in range(_MEMBERS):
        if not line:
            return
        at = text.rfind("\n", 0, line - 1) + 1
        item = _ITEM.match(text, at)
        here = item.end() if item is not None else at
        if here - at < column:
            return
        if here - at == column:
            yield from _line_value(text, here, column, is_secret)
            if item is not None and "-" in item[0]:
                return
        line = at


def _line_value(text: str, at: int, column: int, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    found = _VALUE_LINE.match(text, at)
    if found is None:
        return
    start = found.end()
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    if quote_at(text, start):
        span = quoted(text, start)
        if span is not None:
            yield span
    elif _BLOCK_LINE.fullmatch(text, start, stop):
        end = stop
        while text.startswith(" " * (column + 1), end + 1):
            following = text.find("\n", end + 1)
            end = len(text) if following < 0 else following
        yield stop, end
    elif not readable.code_or_word(text, start) and not readable.only_a_name(text[start:stop].strip(), "", is_secret):
        yield start, stop
