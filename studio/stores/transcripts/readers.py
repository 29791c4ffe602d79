"""The reader of each format."""

from __future__ import annotations

from studio.stores.transcripts.claude import Claude
from studio.stores.transcripts.record import Reader


def reader_of(name: str) -> Reader:
    """A fresh reader; what no reader knows is kept as raw records."""
    if name == "claude-code":
        return Claude()
    if name in ("codex", "codex-old"):
        from studio.stores.transcripts.codex import Codex

        return Codex(name)
    if name in ("openai-items", "openai-responses"):
        from studio.stores.transcripts.items import Items

        return Items(name)
    from studio.stores.transcripts.chat import Chat

    return Chat(name)
