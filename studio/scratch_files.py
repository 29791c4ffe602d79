"""The scratch files of this user, for whoever wants to list or delete them."""

from __future__ import annotations

from studio.forks.scratch import Scratch, ScratchFile, list_files, remove

__all__ = ["ScratchFile", "list_files", "path_for", "remove"]


def path_for(location: str) -> str:
    """Where forks of a location go, whether or not there are any yet."""
    return Scratch(location).path
