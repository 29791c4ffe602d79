"""What a list says of each transcript at a location, kept in the data folder: one that did not change is not read for a list.

A *card* holds for the files that it names, each as it was: size, times and inode. Everything on it was told by the transcript.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from studio.model import Status
from studio.stores.outline import Summary
from studio.stores.transcripts import keeping
from studio.stores.transcripts.finding import Found, known_heads, remember_head

MANY, LARGE = 20, 8 << 20
"""Transcripts of a location, or bytes of its files, from which on their cards are kept."""
MOST = 20_000
SUFFIX = "list"
TEXT = 600
"""Characters of a text; a list shows fewer."""
Was = tuple[int, int, int, int]
"""Size, time of the content, inode, time of the inode."""


class Look(Struct, array_like=True):
    """The head of a transcript, as a list shows it."""

    id: str
    parent: str | None
    step: int | None
    source: str | None
    created_at: str | None
    size_bytes: int
    status: Status | None
    texts: list[str]
    """Of a person: the first and the last."""


class Card(Struct, array_like=True):
    files: list[tuple[str, Was]]
    thread_id: str
    spaces: tuple[str, ...]
    turns: int
    head: str | None
    summary: Summary
    look: Look | None
    facts: dict[str, Any]
    problems: list[tuple[str, str, str]]

    @property
    def first(self) -> str:
        return self.files[0][0]


class _List(Struct, array_like=True):
    location: str
    heads: dict[str, tuple[Was, Found | None]]
    cards: list[Card] = field(default_factory=list)


_decoder = msgspec.msgpack.Decoder(_List)


def was(path: str) -> Was | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns


def files_now(paths: Iterable[str]) -> list[tuple[str, Was]] | None:
    """None where one of them is gone."""
    found = [(path, now) for path in paths if (now := was(path)) is not None]
    return found or None


def load(location: str) -> dict[str, Card]:
    """The cards of a location by the first file of each; what is known of heads of files is remembered, too."""
    data = keeping.read(keeping.path_for(location, SUFFIX))
    if data is None:
        return {}
    try:
        held = _decoder.decode(data)
    except (msgspec.DecodeError, ValueError):
        return {}
    if held.location != os.path.realpath(location):
        return {}
    for path, (then, found) in held.heads.items():
        remember_head(path, then, found)
    return {card.first: card for card in held.cards if card.files}


def save(location: str, cards: Sequence[Card]) -> None:
    size = sum(then[0] for card in cards for _, then in card.files)
    if (len(cards) < MANY and size < LARGE) or len(cards) > MOST:
        return
    paths = {path for card in cards for path, _ in card.files}
    heads = {path: known for path, known in known_heads().items() if path in paths}
    try:
        data = msgspec.msgpack.encode(_List(os.path.realpath(location), heads, list(cards)))
    except (ValueError, TypeError, OverflowError):
        return  # a text that is no Unicode, say
    keeping.write(keeping.path_for(location, SUFFIX), data)
