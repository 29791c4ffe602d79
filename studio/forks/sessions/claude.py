"""A Claude Code session as a new session file: one straight chain of records under a new id.

The recipe was tried with the programs of `TRIED`: each was sent exactly the chosen messages, then the new prompt.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from studio import times
from studio.errors import PatchError
from studio.forks.sessions import place, splice
from studio.forks.sessions.pieces import Layout, Line, Piece, lines_of
from studio.forks.sessions.recipe import NO_RESULT, Cut, Made, nearest, spoken, version_of
from studio.forks.sessions.splice import Path
from studio.render.shell import word
from studio.stores.transcripts.claude import carried_over
from studio.stores.transcripts.homes import claude_home
from studio.stores.transcripts.names import Names
from studio.stores.transcripts.record import iso, moment
from studio.stores.transcripts.source import loads

TRIED = ((1, 0, 128), (2, 0, 22), (2, 1, 20), (2, 1, 89), (2, 1, 332))
_FORGOTTEN = Names(("progress", "summary"))


class ClaudeLayout(Layout):
    def path(self, piece: Piece, nth: int) -> Path | None:
        held = _content(piece)
        if held is None:
            return None
        if not isinstance(held, list):
            return ("message", "content")
        results = [at for at, one in enumerate(held) if _is(one, "tool_result")]
        if piece.record.kind == "answer" or not results:
            return ("message", "content")
        return ("message", "content", results[nth], "content") if nth < len(results) else None

    def is_block(self, block: Any) -> bool:
        return not _is(block, "tool_use")

    def remove_call(self, piece: Piece, ident: str) -> None:
        held = _content(piece)
        places = [at for at, one in enumerate(held or ()) if _is(one, "tool_use") and one.get("id") == ident]
        if isinstance(held, list) and len(places) == len(held):
            piece.gone = True
        elif places:
            piece.data = splice.without_items(piece.data, ("message", "content"), places)

    def remove_message(self, piece: Piece, nth: int) -> None:
        held = _content(piece)
        if not isinstance(held, list):
            raise PatchError("This message is stored together with others and cannot be dropped alone.", "Drop all.", "together")
        results = [at for at, one in enumerate(held) if _is(one, "tool_result")]
        places = [results[nth]] if nth < len(results) else [at for at in range(len(held)) if at not in results]
        if len(piece.said) - piece.said.count({}) <= 1:
            piece.gone = True
            return
        piece.data = splice.replaced(
            piece.data, [(splice.find(piece.data, ("message", "content", at)), b"null") for at in places]
        )  # places of the others stay as they are until the record is written
        piece.said[nth] = {}
        piece.gone = all(not one for one in piece.said)


def _content(piece: Piece) -> Any:
    """As the bytes say it now."""
    document = loads(piece.data)
    message = document.get("message") if isinstance(document, dict) else None
    return message.get("content") if isinstance(message, dict) else None


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def check(cut: Cut) -> None:
    """Refuse what no program goes on from rightly; PatchError."""
    versions = [_field(piece, "version") for piece in cut.branch.pieces]
    found = version_of(next((one for one in reversed(versions) if one), None))
    if found is None:
        cut.warnings.append("These records name no version of Claude Code: whether it goes on from them is not known.")
    elif found < (1, 0, 0):
        raise PatchError(
            f"Claude Code {'.'.join(map(str, found))} keeps only a part of the history of a session that another wrote.",
            "Resume the session itself with a newer Claude Code, then fork what that writes.",
            "old-program",
        )
    elif (told := nearest(found, TRIED)) is not None:
        cut.notes.append(f"The recipe was {told}.")


def begin(cut: Cut) -> None:
    """Leave out what lies before the last compaction: the model is sent nothing of it."""
    boundaries = [at for at, piece in enumerate(cut.branch.pieces) if piece.record.kind == "boundary"]
    if not boundaries or boundaries[-1] == 0:
        return
    start = boundaries[-1]
    before = cut.branch.pieces[:start]
    kept = {id(piece) for piece in cut.branch.pieces[start:]}
    left = [line for line in cut.branch.lines if id(line.parts[0][0]) not in kept]
    if any(line.wanted is not line.message for line in left):
        raise PatchError(
            "What lies before a compaction is not sent to the model any more: an edit there changes nothing.",
            "Edit the summary, or fork before the compaction.",
            "before-boundary",
        )
    cut.branch.pieces = cut.branch.pieces[start:]
    cut.branch.lines = [line for line in cut.branch.lines if id(line.parts[0][0]) in kept]
    carried = carried_over(cut.branch.pieces[0].document)
    count = _carry(cut, before, carried[1]) if carried is not None else 0
    cut.notes.append(
        f"The fork begins at the last compaction: the {len(left)} messages before it are not sent to the model"
        + (f", but for {count} that the compaction carried over." if count else ".")
    )


def _carry(cut: Cut, before: Sequence[Piece], ids: Sequence[str]) -> int:
    """Put the messages that a compaction carried over behind its summary, where the program sends them."""
    moved = [piece for piece in before if piece.record.id in ids]
    turn = cut.branch.pieces[0].turn
    at = max(
        at for at, piece in enumerate(cut.branch.pieces) if piece.turn == turn and piece.record.kind in ("boundary", "summary")
    )
    cut.branch.pieces[at + 1 : at + 1] = moved
    lines: list[Line] = []
    for one in dict.fromkeys(piece.turn for piece in moved):
        lines += lines_of([piece for piece in moved if piece.turn == one], cut.one.woven.turns[one])
    behind = max(
        (
            at
            for at, line in enumerate(cut.branch.lines)
            if line.turn == turn and line.parts[0][0].record.kind in ("boundary", "summary")
        ),
        default=-1,
    )
    cut.branch.lines[behind + 1 : behind + 1] = lines
    meta = ("compactMetadata",)
    first = cut.branch.pieces[0]
    first.data = splice.without_fields(first.data, ["preservedSegment", "preservedMessages"], meta)  # the chain says it now
    return len(lines)


def make(cut: Cut) -> Made:
    session = str(uuid.uuid4())
    pieces = [piece for piece in cut.pieces if (piece.document or {}).get("type") not in _FORGOTTEN]
    if not any(piece.record.kind in ("prompt", "answer", "summary") for piece in pieces):
        raise PatchError(
            "Nothing of a conversation lies before this point: there is nothing to fork.",
            f"Begin a new session: claude {spoken(cut.prompt)}" if cut.prompt else "Fork at a later turn.",
            "nothing-before",
        )
    cwd = _cwd(cut)
    own = cut.first_own(pieces)
    ids = {piece.record.id: str(uuid.uuid4()) for piece in pieces[own:]}
    no_ids = any(piece.document is not None and not _field(piece, "uuid") for piece in pieces)
    if no_ids:
        ids = {piece.record.id: str(uuid.uuid4()) for piece in pieces}
        cut.notes.append("The records have no ids: the fork gives them new ones.")
    stamped = _times(pieces, cut)
    data = bytearray()
    ends: list[int] = []
    records: list[str | None] = []
    copies: list[str | None] = []
    last: str | None = None
    for at, piece in enumerate(pieces):
        ident = ids.get(piece.record.id, piece.record.id)
        data += _record(piece, session, ident, last, cut, cwd, stamped[at], ids) + b"\n"
        ends.append(len(data))
        records.append(piece.record.id if at < own and not no_ids else None)
        copies.append(piece.record.id)
        last = ident
        for call, _ in cut.open_calls.get(piece.turn, ()) if _ends_answer(pieces, at) else ():
            stamp = stamped[-1] if piece.turn == pieces[-1].turn else _field(piece, "timestamp")
            last, line = _no_result(piece, session, last, cwd, call, stamp)
            data += line + b"\n"
            ends.append(len(data))
            records.append(None)
            copies.append(None)
    title = {"type": "custom-title", "customTitle": cut.title, "sessionId": session}
    data += splice.encoded(title) + b"\n"
    name = f"{session}.jsonl"
    made = Made(session, name, data, "claude-code", cwd, None, records=records)
    made.program, made.copies = "Claude Code", copies
    before = next((at for at, known in enumerate(records) if known is None), len(records))
    made.own_at = ends[before - 1] if before else 0, before
    made.replaces = pieces[own].turn if own < len(pieces) else None
    made.version = next((str(one) for piece in reversed(pieces) if (one := _field(piece, "version"))), None)
    if cwd is not None:
        made.target = place.claude_target(cwd, name)
        made.root = os.path.join(claude_home(), "projects")
        made.may_make = os.path.isdir(cwd)
    go = f"cd {word(cwd)} && " if cwd is not None else ""
    said = _said(cut.prompt)
    made.commands = {
        "interactive": f"{go}claude --resume {session}{said}",
        "print": f"{go}claude -p --resume {session}{said or ' ' + word('…')}",
    }
    if any(_field(piece, "entrypoint") == "sdk-cli" for piece in pieces):
        cut.notes.append("Newer programs hide sessions of `claude -p` from their list; resuming by the id works.")
    cut.notes.append("Add --fork-session to the command and the program writes to a file of its own, not to this one.")
    return made


def _said(prompt: str | None) -> str:
    if prompt is None:
        return ""
    return f" {'-- ' if prompt.startswith('-') else ''}{spoken(prompt)}"


def _field(piece: Piece, name: str) -> Any:
    return piece.document.get(name) if isinstance(piece.document, dict) else None


def _cwd(cut: Cut) -> str | None:
    """Where the session was begun, so that the program finds the fork in the same project; the source's folder decides."""
    found = [str(one) for piece in cut.branch.pieces if isinstance(one := _field(piece, "cwd"), str) and one]
    folder = os.path.basename(os.path.dirname(cut.one.group.files[0].path)) if cut.one.group.files else ""
    fits = next((one for one in found if place.claude_folder(one) == folder), None)
    cwd = fits or (found[0] if found else None)
    if cwd is None:
        cut.warnings.append("No working folder is recorded: the program looks for a session in the folder of its project.")
    elif not os.path.isdir(cwd):
        cut.notes.append(f"The recorded working folder {cwd} is not on this machine; the fork belongs to it all the same.")
    return cwd


def _times(pieces: Sequence[Piece], cut: Cut) -> list[str | None]:
    """A new time for the records that need one: the last message must have the newest, and each must have one."""
    stamps: list[str | None] = [None] * len(pieces)
    newest: datetime | None = None
    last = max(at for at, piece in enumerate(pieces) if piece.record.kind in ("prompt", "answer", "result", "summary", "mark"))
    added = 0
    for at, piece in enumerate(pieces):
        stored = _field(piece, "timestamp")
        known, _ = moment(stored)
        now = times.parse(iso(known))
        if now is None or not isinstance(stored, str):
            now = now or (newest + timedelta(milliseconds=1) if newest is not None else datetime.now(UTC))
            stamps[at] = _iso(now)
            added += 1
        if at == last and newest is not None and now <= newest:
            now = newest + timedelta(milliseconds=1)
            stamps[at] = _iso(now)
        if at <= last:
            newest = now if newest is None else max(newest, now)
    if added:
        cut.notes.append(f"{added} records have no time as the program writes it: the fork gives them one.")
    return [*stamps, _iso((newest or datetime.now(UTC)) + timedelta(milliseconds=1))]


def _iso(moment_: datetime) -> str:
    up = moment_ if moment_.microsecond % 1000 == 0 else moment_ + timedelta(milliseconds=1)
    return up.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{up.microsecond // 1000:03d}Z"


def _ends_answer(pieces: Sequence[Piece], at: int) -> bool:
    """Whether the results of an answer end here: what follows is no result."""
    if pieces[at].record.kind not in ("answer", "result"):
        return False
    below = pieces[at + 1] if at + 1 < len(pieces) else None
    return below is None or below.turn != pieces[at].turn or below.record.kind not in ("answer", "result")


def _record(
    piece: Piece, session: str, ident: str, parent: str | None, cut: Cut, cwd: str | None, stamp: str | None, ids: dict[str, str]
) -> bytes:
    data = splice.on_one_line(piece.data)
    if piece.said and {} in piece.said:  # blocks that were dropped
        start = splice.find(data, ("message", "content"))[0]
        gone = [at for at, (one, end) in enumerate(splice.items(data, start)) if data[one:end] == b"null"]
        data = splice.without_items(data, ("message", "content"), gone)
    document = piece.document if isinstance(piece.document, dict) else {}
    source = cut.one.woven.files[piece.record.file].session
    fields: dict[str, Any] = {"parentUuid": parent, "uuid": ident, "sessionId": session}
    if "session_id" in document:
        fields["session_id"] = session
    if document.get("isSidechain") is not False:
        fields["isSidechain"] = False
    if stamp is not None:
        fields["timestamp"] = stamp
    needed = {"cwd": cwd, "version": "2.0.0", "userType": "external"}
    fields.update({name: value for name, value in needed.items() if name not in document and value is not None})
    answer = document.get("sourceToolAssistantUUID")
    if isinstance(answer, str) and answer in ids:
        fields["sourceToolAssistantUUID"] = ids[answer]
    fields["forkedFrom"] = {"sessionId": source, "messageUuid": piece.record.id}
    return splice.with_fields(data, fields)


def _no_result(piece: Piece, session: str, parent: str, cwd: str | None, call: str, stamp: str | None) -> tuple[str, bytes]:
    document = piece.document if isinstance(piece.document, dict) else {}
    ident = str(uuid.uuid4())
    block = {"type": "tool_result", "tool_use_id": call, "content": NO_RESULT, "is_error": True}
    record = {
        "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": document.get("cwd", cwd),
        "sessionId": session, "version": document.get("version", "2.0.0"), "type": "user",
        "message": {"role": "user", "content": [block]}, "uuid": ident, "timestamp": stamp, "toolUseResult": NO_RESULT,
    }  # fmt: skip
    return ident, splice.encoded(record)
