"""Word diff of two texts in bounded time: a library with a deadline, coarser units for big texts."""

from __future__ import annotations

import difflib
import re
from typing import Literal

Op = Literal["=", "-", "+"]
_WORDS = re.compile(r"\s+|\w+|[^\w\s]", re.UNICODE)
_WORD_LIMIT = 20_000
_LINE_LIMIT = 2_000_000
_UNITS = 60_000


def word_diff(before: str, after: str, seconds: float = 0.5) -> list[tuple[Op, str]] | None:
    """[(op, text), …] with op `=`, `-`, `+`: by words up to 20,000 characters, by lines up to 2 million; None above that.

    The parts joined without `+` give `before`, without `-` give `after`. Never takes much longer than `seconds`.
    """
    if before == after:
        return [("=", before)] if before else []
    start = _common_prefix(before, after)
    end = _common_suffix(before[start:], after[start:])
    core_before, core_after = before[start : len(before) - end], after[start : len(after) - end]
    size = len(core_before) + len(core_after)
    if size > _LINE_LIMIT:
        return None
    units = _WORDS.findall if size <= _WORD_LIMIT else _lines
    parts = _diff_units(units(core_before), units(core_after), seconds)
    if parts is None:
        parts = [("-", core_before), ("+", core_after)]
    out: list[tuple[Op, str]] = []
    for op, text in [("=", before[:start]), *parts, ("=", before[len(before) - end :] if end else "")]:
        if text and out and out[-1][0] == op:
            out[-1] = (op, out[-1][1] + text)
        elif text:
            out.append((op, text))
    return out


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _diff_units(before: list[str], after: list[str], seconds: float) -> list[tuple[Op, str]] | None:
    """Diff over units by mapping each distinct unit to one code point, so that the library's text diff works on units."""
    codes: dict[str, int] = {}
    for unit in (*before, *after):
        codes.setdefault(unit, len(codes))
    if len(codes) > _UNITS:
        return None
    letters = {unit: chr(code + 0x4E00 if code < 0x8A00 else code - 0x8A00 + 0x10000) for unit, code in codes.items()}
    names = {letter: unit for unit, letter in letters.items()}
    left, right = "".join(letters[u] for u in before), "".join(letters[u] for u in after)
    try:
        from fast_diff_match_patch import diff
    except ImportError:
        return _diff_slow(before, after)
    found = diff(left, right, timelimit=seconds, checklines=False, counts_only=False, cleanup="Semantic")
    return [(op, "".join(names[c] for c in text)) for op, text in found]


def _diff_slow(before: list[str], after: list[str]) -> list[tuple[Op, str]] | None:
    if len(before) * len(after) > 4_000_000:
        return None
    parts: list[tuple[Op, str]] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            parts.append(("=", "".join(before[i1:i2])))
            continue
        if i2 > i1:
            parts.append(("-", "".join(before[i1:i2])))
        if j2 > j1:
            parts.append(("+", "".join(after[j1:j2])))
    return parts


def _common_prefix(a: str, b: str) -> int:
    """Length of the common start, cut back to a word boundary so that no word is split."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return _back_to_boundary(a, b, low)


def _back_to_boundary(a: str, b: str, at: int) -> int:
    def inside(text: str, i: int) -> bool:
        return 0 < i < len(text) and (text[i - 1].isalnum() or text[i - 1] == "_") and (text[i].isalnum() or text[i] == "_")

    limit = max(0, at - 200)
    while at > limit and (inside(a, at) or inside(b, at)):
        at -= 1
    return at


def _common_suffix(a: str, b: str) -> int:
    return _common_prefix(a[::-1], b[::-1])
