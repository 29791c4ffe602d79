"""What a recipe is given and what it makes: the parts that all formats share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from studio.forks.sessions.pieces import Branch, Message, Piece
from studio.render.shell import word
from studio.stores.transcripts.transcript import Transcript
from studio.stores.transcripts.turns import Turn

NO_RESULT = "Error: no result. This session was forked before the tool had answered."


class Cut(Struct):
    """Where a session is to be cut, with what is wanted there."""

    one: Transcript
    turn: Turn
    """The turn that was chosen."""
    branch: Branch
    """The pieces to write, edited."""
    turns: list[Turn]
    """Those of the pieces."""
    prompt: str | None = None
    """The chosen prompt, which is not stored: it is said again when the program goes on."""
    title: str = ""
    source: str = ""
    """Real path of the file that forks of this session are kept under."""
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    open_calls: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Turn -> (id, tool) of its calls without a result, which the recipe completes."""
    names: dict[str, str] = field(default_factory=dict)
    """Ids of records in a file that was read by itself -> those that they have beside other files."""
    wanted: list[Message] = field(default_factory=list)
    """What the fork is to say."""

    @property
    def pieces(self) -> list[Piece]:
        return [piece for piece in self.branch.pieces if not piece.gone]

    def first_own(self, pieces: Sequence[Piece]) -> int:
        """The first piece that is the fork's own: from the first change on, at the latest those of its last turn.

        What lies before is the source's, and is told to be the same.
        """
        last = pieces[-1].turn if pieces else ""
        before: Piece | None = None
        kept = {id(piece) for piece in pieces}
        gone = False
        place = {id(piece): at for at, piece in enumerate(pieces)}
        for piece in self.branch.pieces:
            if id(piece) not in kept:
                gone = gone or bool(piece.said)
                continue
            if gone or piece.changed or piece.turn == last:
                found = place[id(piece)]
                while found and pieces[found - 1].turn == piece.turn:
                    found -= 1  # a turn is shared as a whole, or not at all
                return found
            before = piece
        return place[id(before)] + 1 if before is not None else 0


class Made(Struct):
    """A fork as bytes, with what a person needs to go on from it."""

    session: str
    name: str
    data: bytes | bytearray
    format: str
    cwd: str | None
    target: str | None
    """Where the program looks for it; None where no program does."""
    root: str = ""
    """The folder that must be there for that."""
    may_make: bool = False
    records: list[str | None] = field(default_factory=list)
    """For each record of the fork, the source's that it repeats; None for its own."""
    copies: list[str | None] = field(default_factory=list)
    """For each record of the fork, the source's that it was made of; None for what the recipe added."""
    program: str = ""
    version: str | None = None
    commands: dict[str, str] = field(default_factory=dict)
    own_at: tuple[int, int] = (0, 0)
    """(byte, line) where the fork's own records begin, in a file of lines that tell their links themselves."""
    replaces: str | None = None
    """The turn of the source in whose place the fork's first own turn stands."""


def spoken(text: str) -> str:
    """A prompt as one word of a shell, on one line and without a character that a terminal would not show as it is."""
    if all(char.isprintable() for char in text):
        return word(text)
    names = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "'": "\\'", "\\": "\\\\"}
    out = []
    for char in text:
        plain = char if char.isprintable() else f"\\U{ord(char):08x}" if ord(char) > 0x7F else f"\\x{ord(char):02x}"
        out.append(names.get(char, plain))
    return f"$'{''.join(out)}'"


def version_of(text: object) -> tuple[int, ...] | None:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text) if isinstance(text, str) else None
    return tuple(map(int, found.groups())) if found else None


def nearest(version: tuple[int, ...], tried: Sequence[tuple[int, ...]]) -> str | None:
    """What to say of a version that the recipe was not tried with; None for one that it was."""
    if version in tried:
        return None
    below = [one for one in tried if one < version]
    name = ".".join(map(str, max(below) if below else min(tried)))
    return f"not tried with version {'.'.join(map(str, version))}; the nearest that was tried is {name}"


def value_at(document: Any, *path: str) -> Any:
    for step in path:
        document = document.get(step) if isinstance(document, dict) else None
    return document
