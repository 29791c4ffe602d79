"""Agent transcripts: sessions of coding agents and logs of chats, as time-travel trees."""

from __future__ import annotations

import os

from studio.errors import OpenError
from studio.stores.base import Store
from studio.stores.view import View


def is_transcript(path: str) -> bool:
    """Whether a file that is no database holds records of a conversation, or is an empty session file."""
    from studio.stores.transcripts.sniff import sniff

    if not os.path.isfile(path):
        return False
    kind = sniff(path)
    return kind is not None and (kind not in ("empty", "raw") or path.endswith((".jsonl", ".jsonl.gz")))


def holds_transcripts(folder: str) -> bool:
    from studio.stores.transcripts import finding

    return finding.holds_transcripts(folder)


def open_transcripts(location: str, view: View) -> Store:
    """A file, or all transcripts below a folder. Raises OpenError."""
    from studio.stores.transcripts.store import TranscriptStore

    if view.tables is not None:
        raise OpenError(f"{location} is a transcript: it has no tables.", "Leave out --tables.", "no-such-tables")
    return TranscriptStore(location)
