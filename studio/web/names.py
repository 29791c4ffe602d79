"""Well-known keys that stand as names are masked in what a page shows; links, form fields and editors keep them.

A thread, a node, a channel or a map's key may be called like an API key. What is shown of it is masked here, on the whole page,
so that no label is forgotten. What addresses it stays: a masked link would lead nowhere, and a masked field would be stored.
"""

from __future__ import annotations

import re

from studio.render.secrets import MASKED, key_spans

_PIECES = re.compile(
    r"""(<(?:textarea|script|style)\b.*?</(?:textarea|script|style)>|<(?:[^<>"']|"[^"]*"|'[^']*')*>)""", re.DOTALL
)
_SHOWN = re.compile(r"""(\s(?:title|aria-label|placeholder|alt)=)("[^"]*"|'[^']*')""")
_INLINE = re.compile(r"</?(?:mark|ins|del|wbr)\b")
"""Tags that may stand in the middle of a word."""


def without_keys(page: str) -> str:
    """HTML with the keys in its texts and labels masked."""
    plain = "".join(piece for piece in _PIECES.split(page)[::2]) if _INLINE.search(page) else ""
    if not key_spans(page) and not (plain and key_spans(plain)):
        return page
    pieces = _PIECES.split(page)
    for index in range(1, len(pieces), 2):
        tag, end, held = pieces[index].partition(">") if pieces[index].startswith("<textarea") else (pieces[index], "", "")
        pieces[index] = _SHOWN.sub(lambda found: found[1] + _masked(found[2]), tag) + end + held
    run: list[int] = []
    for index in range(0, len(pieces), 2):
        run.append(index)
        if index + 1 >= len(pieces) or not _INLINE.match(pieces[index + 1]):
            _mask_run(pieces, run)
            run = []
    return "".join(pieces)


def _masked(text: str) -> str:
    for start, end in reversed(key_spans(text)):
        text = text[:start] + MASKED + text[end:]
    return text


def _mask_run(pieces: list[str], run: list[int]) -> None:
    """Mask in texts that follow each other within one line of words: each by itself, then where a key goes over several."""
    for index in run:
        pieces[index] = _masked(pieces[index])
    if len(run) < 2:
        return
    for start, end in reversed(key_spans("".join(pieces[index] for index in run))):
        at, told = 0, False
        for index in run:
            text = pieces[index]
            first, last = max(start - at, 0), min(end - at, len(text))
            at += len(text)
            if first < last:
                pieces[index] = text[:first] + ("" if told else MASKED) + text[last:]
                told = True
