"""What putting a branch into the opened file does to its thread, in words that all front ends share."""

from __future__ import annotations

from collections.abc import Callable

from studio.render.gate import line
from studio.requests import Promotion

TITLE = "Put this branch into the file itself"
ASSURANCE = "Rows are only added: none that is there is changed or deleted. The studio never takes them out again."


def place_words(found: Promotion, number: Callable[[str], str]) -> str:
    """Where the branch will hang in the thread. `number` gives what an id is called, `#4`, or "" where it has no number."""
    if found.forked_from is not None and found.forked_from.thread_id != found.address.thread_id:
        return "a thread of its own in the file"
    origin = _named(found.forked_from.checkpoint_id, number) if found.forked_from is not None else ""
    if found.hangs_below is None:
        return f"a second root of the thread, beside {origin}" if origin else "a root of the thread"
    below = f"below {_named(found.hangs_below, number)}"
    return f"{below}, beside {origin}, which it was forked from" if origin else below


def head_words(found: Promotion, number: Callable[[str], str]) -> str:
    """The thread's head, which LangGraph resumes when it is given no checkpoint, before and after."""
    after = _named(found.head_after, number)
    if found.head_before is None:
        return f"{after}, since the thread is new; a program that goes on with it starts there"
    if found.head_before == found.head_after:
        return f"stays {after}"
    return f"{_named(found.head_before, number)} now, {after} afterwards; a program that goes on with the thread starts there"


def _named(identity: str, number: Callable[[str], str]) -> str:
    return line(" ".join(part for part in (number(identity), identity) if part))
