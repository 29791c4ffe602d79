"""Patches as lines with numbers, and patches of two texts: what an edit of an agent did to a file."""

from __future__ import annotations

import difflib
import re
from typing import Literal

from msgspec import Struct

from studio.render import gate, secrets

_HUNK = re.compile(r"^@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@(.*)$")
COMPARED = 3_000
"""Lines of two texts together up to which they are compared line by line."""


class PatchLine(Struct, frozen=True):
    """One line of a patch, gated: `hunk` for the heads of its parts."""

    kind: Literal["add", "remove", "same", "hunk"]
    text: str
    old: int | None = None
    new: int | None = None


class Patch(Struct, frozen=True):
    lines: tuple[PatchLine, ...] = ()
    more: int = 0
    """Lines that were left out."""


SIGNS = {"add": "+", "remove": "−", "same": " ", "hunk": "⋯"}


def counts(text: str) -> tuple[int, int]:
    """(lines added, lines removed)."""
    plus = minus = 0
    for line in text.split("\n"):
        plus += line.startswith("+")
        minus += line.startswith("-")
    return plus, minus


def of_texts(before: str, after: str) -> str:
    """The patch that makes one text of another; without numbers of lines, as it stands somewhere in a file."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > COMPARED:
        return "\n".join([*("-" + line for line in old), *("+" + line for line in new)])
    found = list(difflib.unified_diff(old, new, n=3, lineterm=""))[2:]
    return "\n".join("@@" if line.startswith("@@") and at else line for at, line in enumerate(found) if at or line[:2] != "@@")


def read(text: str, *, show_secrets: bool = False, most: int = 400) -> Patch:
    """A patch of a file, gated and masked, with the numbers of its lines where it names them."""
    shown = text if show_secrets else secrets.mask_text(text)
    lines = shown.split("\n") if shown else []
    found: list[PatchLine] = []
    old: int | None = None
    new: int | None = None
    for line in lines[:most]:
        head = _HUNK.match(line)
        if head is not None:
            old, new = int(head[1]), int(head[2])
            if found or old > 1 or new > 1 or head[3].strip():
                found.append(PatchLine("hunk", gate.clean(head[3].strip(), multiline=False)))
        elif line.startswith("@@"):
            old = new = None
            found.append(PatchLine("hunk", gate.clean(line[2:].strip(), multiline=False)))
        elif line.startswith("+"):
            found.append(PatchLine("add", _text(line[1:]), None, new))
            new = new + 1 if new is not None else None
        elif line.startswith("-"):
            found.append(PatchLine("remove", _text(line[1:]), old, None))
            old = old + 1 if old is not None else None
        else:
            found.append(PatchLine("same", _text(line.removeprefix(" ")), old, new))
            old, new = (old + 1 if old is not None else None), (new + 1 if new is not None else None)
    return Patch(tuple(found), max(0, len(lines) - most))


def _text(line: str) -> str:
    return gate.clean(line.expandtabs(4) if len(line) < 10_000 else line)
