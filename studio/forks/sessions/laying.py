"""Writing the known files of a moment into a new folder: nothing outside of it, nothing over anything."""

from __future__ import annotations

import os
from collections.abc import Sequence

from studio.errors import UsageError
from studio.forks.sessions.versions import Moment, Version
from studio.model import Problem

OUTSIDE = "_outside"
"""Files that lay outside of the working folder."""
_LONGEST = 255


def lay(moment: Moment, folder: str) -> dict[str, str]:
    """Write what is known whole; path of the session -> where it was written. What cannot be written is added to the problems.

    Raises UsageError unless `folder` is new or empty.
    """
    out = os.path.abspath(folder)
    _check(out, moment)
    try:
        os.makedirs(out, mode=0o755, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror or error}", "choose another folder") from error
    written: dict[str, str] = {}
    for one in moment.files:
        if one.known != "content" or one.data is None:
            continue
        parts = place_of(one, moment.cwd)
        if parts is None:
            moment.problems.append(Problem("odd-path", one.path, "not written: this is no name for a file in the folder"))
            continue
        try:
            written[one.path] = _write(out, parts, one.data)
        except OSError as error:
            moment.problems.append(Problem("not-written", one.path, f"not written: {error.strerror or error}"))
    return written


def _check(out: str, moment: Moment) -> None:
    hint = "name a new folder; the files of the session are never written over"
    if os.path.islink(out):
        raise UsageError(f"{out} is a link", hint)
    if os.path.lexists(out) and not os.path.isdir(out):
        raise UsageError(f"{out} is no folder", hint)
    if os.path.isdir(out):
        try:
            if os.listdir(out):
                raise UsageError(f"{out} is not empty", hint)
        except OSError as error:
            raise UsageError(f"{out} cannot be read: {error.strerror or error}", hint) from error
    if moment.cwd is not None and os.path.realpath(out) == os.path.realpath(moment.cwd):
        raise UsageError(f"{out} is the working folder of the session", hint)


def place_of(one: Version, cwd: str | None) -> list[str] | None:
    """The names of the folders and the file below the chosen folder; None for what cannot stand there."""
    path = one.path
    if cwd is not None and path.startswith(cwd.rstrip("/") + "/"):
        parts = path[len(cwd.rstrip("/")) + 1 :].split("/")
    elif os.path.isabs(path):
        parts = [OUTSIDE, *path.strip("/").split("/")]
    else:
        parts = path.split("/")
    return parts if parts and all(map(_is_name, parts)) else None


def _is_name(name: str) -> bool:
    if name in ("", ".", "..") or len(name.encode("utf-8", "surrogatepass")) > _LONGEST:
        return False
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return all(char.isprintable() for char in name)


def _write(out: str, parts: Sequence[str], data: bytes) -> str:
    """Each folder is opened without following links, so that nothing can be put in between."""
    flags = os.O_RDONLY | os.O_DIRECTORY | getattr(os, "O_NOFOLLOW", 0)
    here = os.open(out, flags)
    try:
        for name in parts[:-1]:
            try:
                os.mkdir(name, 0o755, dir_fd=here)
            except FileExistsError:
                pass
            below = os.open(name, flags, dir_fd=here)
            os.close(here)
            here = below
        handle = os.open(parts[-1], os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o644, dir_fd=here)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    finally:
        os.close(here)
    return os.path.join(out, *parts)
