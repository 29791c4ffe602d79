"""What the index keeps of one record: where it lies and how it hangs together with others; no text.

A *record* is one JSON value of a file. Readers of each format make records, `turns` makes supersteps of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from studio import times
from studio.stores.transcripts.source import Source

Kind = Literal[
    "prompt",  # a person speaks
    "answer",  # the model speaks, or calls tools
    "result",  # what a tool gave back
    "mark",  # the program says that a person interrupted
    "context",  # what the program put beside a prompt: attachments, instructions, commands, hooks
    "boundary",  # the context was compacted here
    "summary",  # what replaced it
    "note",  # bookkeeping outside the conversation
]

Tokens = tuple[int, int, int, int]
"""input without cache, output, cache read, cache creation"""
NO_TOKENS: Tokens = (0, 0, 0, 0)
NOT_COUNTED = -1
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class Record(Struct, gc=False):
    file: int
    """Place of its file in the transcript's list of files."""
    line: int
    offset: int
    length: int
    kind: Kind
    id: str
    parent: str | None = None
    at: int | None = None
    """Microseconds since 1970."""
    key: str = ""
    """What makes records one answer."""
    lane: str = ""
    """Named by the records themselves: `side` for a sidechain in the same file, the agent's id in a file of its own."""
    calls: tuple[tuple[str, str], ...] = ()
    """(id, tool) of the calls that it makes."""
    results: tuple[tuple[str, bool], ...] = ()
    """(id of the call, failed) of what it answers."""
    tokens: Tokens | None = None
    model: str | None = None
    said: int = 0
    """A hash of the text of a prompt, to tell copies; 0 without one."""
    more: dict[str, Any] | None = None
    """What few records have."""
    shown: int = NOT_COUNTED
    """How many messages its reader makes of it."""


class Note(Struct, gc=False):
    """A record outside the tree that says something about the whole: a title, a leaf, a cost, a queued prompt."""

    record: Record
    what: str
    value: Any = None


class Indexed(Struct):
    """One file, read once."""

    format: str
    source: Source
    session: str = ""
    records: list[Record] = field(default_factory=list)
    """Those of the tree, in file order."""
    notes: list[Note] = field(default_factory=list)
    problems: list[tuple[str, int, str]] = field(default_factory=list)
    """(kind, line, message)"""
    unknown: dict[str, int] = field(default_factory=dict)
    """Types of records that no reader knows, with their counts."""
    total: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    """Of the whole file: cwd, version, title, what it was forked from."""
    seen: set[str] = field(default_factory=set)
    repeats: int = 0
    agent: str | None = None
    """The subagent whose file it is."""
    ours: bool = False
    """A fork that the studio wrote, read along with its source."""
    state: Any = None
    """The reader's own, for a file that goes on."""


class Reader(Protocol):
    """One format."""

    format: str

    def take(self, to: Indexed, line: int, offset: int, length: int, data: bytes) -> None:
        """Index one record. ValueError: no JSON."""

    def finish(self, to: Indexed) -> None:
        """All records of the file were taken."""

    def messages(self, record: Record, document: Any) -> Sequence[dict[str, Any]]:
        """The messages of a record in the form that front ends draw."""

    def effects(self, record: Record, document: Any, calls: dict[str, dict[str, Any]]) -> Sequence[tuple[str, str | None, Any]]:
        """(what, id of the call that did it, detail) of what a record changed beside the messages; `calls`: id -> the call."""


def moment(stored: object) -> tuple[int | None, bool]:
    """(microseconds since 1970, whether it is stored in the usual form)."""
    if isinstance(stored, str):
        if len(stored) == 24 and stored[10] == "T" and stored[19] == "." and stored[23] == "Z":
            try:
                return (datetime.fromisoformat(stored) - EPOCH) // MICROSECOND, True
            except ValueError:
                return None, False
        found = times.parse(stored)
        return (None, False) if found is None else ((found - EPOCH) // MICROSECOND, False)
    if isinstance(stored, (int, float)) and not isinstance(stored, bool):
        seconds = stored / 1000 if stored > 1e11 else stored
        try:
            return (datetime.fromtimestamp(seconds, UTC) - EPOCH) // MICROSECOND, False
        except (ValueError, OverflowError, OSError):
            return None, False
    return None, False


def iso(moment: int | None) -> str | None:
    """A moment as the times of other stores are written."""
    return None if moment is None else (EPOCH + moment * MICROSECOND).isoformat(timespec="microseconds")


def whole(number: object) -> int:
    """A stored count; 0 for what is none."""
    if type(number) is int:
        return number if -(2**62) < number < 2**62 else 0
    return int(number) if isinstance(number, float) and abs(number) < 2**62 else 0
