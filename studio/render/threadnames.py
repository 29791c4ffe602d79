"""A thread's name as people read it: one without a visible character is told in brackets, which no real name is confused with."""

from __future__ import annotations

import json
import re

from studio.render import masking
from studio.render.gate import line

_TOLD = re.compile(r"\((no name|\d+ spaces?)\)")


def thread_name(thread_id: str, width: int = 120) -> str:
    """`(no name)` for an empty id, `(3 spaces)` for blank ones; a real name that reads like that stands in quotes. Gated."""
    if not thread_id:
        return "(no name)"
    if not thread_id.strip():
        return f"({len(thread_id)} space{'' if len(thread_id) == 1 else 's'})"
    return line(f'"{thread_id}"' if _TOLD.fullmatch(thread_id) else thread_id, width)


def titled(title: str, thread_id: str, width: int = 120) -> str:
    """The title of a thread that has one, masked and gated; else its name."""
    return line(masking.text(title), width) if title.strip() else thread_name(thread_id, width)


def typed(thread_id: str) -> str:
    """What to give `--thread`, which also takes a JSON string: that, where the name itself would not be seen."""
    return json.dumps(thread_id) if not thread_id.strip() or thread_id.startswith('"') else thread_id
