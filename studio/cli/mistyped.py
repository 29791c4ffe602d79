"""What a call may have meant whose first word is no command: `studio lss FILE`, `studio FILE ls`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable

from studio.errors import UsageError

_SLUG = "no-such-command"


def told(first: str, others: list[str], commands: Iterable[str]) -> UsageError | None:
    """Why a call that opens `first` is none; None where nothing tells that a command was meant.

    `others` are the words that the terminal UI has no use for. A file always wins, whatever its name is.
    """
    known = list(commands)
    if not os.path.lexists(first) and "://" not in first:
        meant = _like(first, known)
        if not others and not (meant and first.isalpha()):
            return None
        like = f"did you mean `studio {meant}{' …' if others else ''}`?"
        hint = like if meant else "`studio --help` lists the commands"
        return UsageError(f"there is no command {first!r}, and no file of that name", hint, _SLUG)
    word = next((one for one in others if not one.startswith("-")), None)
    meant = _like(word, known) if word is not None else None
    if word is None or meant is None:
        return None
    message = f"{word!r} stands behind the file" if word in known else f"there is no command {word!r}"
    return UsageError(message, f"the command comes first: `studio {meant} {first}`", _SLUG)


def _like(word: str, commands: list[str]) -> str | None:
    """The command that a word is, or is most like."""
    return next(iter(difflib.get_close_matches(word, commands, 1)), None)
