"""Words of a command for a shell to read, whatever bytes a file's name has."""

from __future__ import annotations

import os
import shlex


def word(text: str) -> str:
    """One word, quoted. Bytes that are not UTF-8 are written as `$'\\377'`, which bash, zsh and ksh read as those bytes."""
    if not is_text(text):
        shown = (chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03o}" for byte in os.fsencode(text))
        return f"$'{''.join(shown)}'"
    return shlex.quote(text)


def is_text(name: str) -> bool:
    """Whether a name is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
