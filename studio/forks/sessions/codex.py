"""A Codex rollout as a new rollout: the lines of the source up to the end of a step, under a new id.

Events that repeat an item for the screen go along; where a text is edited, so are its copies. Lines that begin the next turn stay
away. Tried with the programs of `TRIED`.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from studio.errors import PatchError
from studio.forks.sessions import place, splice
from studio.forks.sessions.pieces import Layout, Piece
from studio.forks.sessions.recipe import NO_RESULT, Cut, Made, nearest, spoken, value_at, version_of
from studio.forks.sessions.splice import Path
from studio.render.shell import word
from studio.stores.transcripts.homes import codex_home
from studio.stores.transcripts.record import Indexed
from studio.stores.transcripts.source import Source, loads

TRIED = ((0, 36, 0), (0, 98, 0), (0, 140, 0), (0, 171, 0))
_ENDS = frozenset(("task_complete", "turn_aborted", "patch_apply_end", "exec_command_end", "mcp_tool_call_end", "web_search_end"))
"""Events behind the items of a step that belong to it."""
_COUNTS = frozenset(("token_count",))
_DONE = frozenset(("CommandExecution", "FileChange", "McpToolCall", "WebSearch"))
_BASE_FIELDS = ("history_base", "forked_from_ordinal_exclusive")


class CodexLayout(Layout):
    text_type: ClassVar[dict[str, str]] = {
        "human": "input_text",
        "ai": "output_text",
        "tool": "input_text",
        "system": "input_text",
    }

    def path(self, piece: Piece, nth: int) -> Path | None:
        held = piece.document.get("payload", piece.document) if isinstance(piece.document, dict) else None
        base: Path = ("payload",) if isinstance(piece.document, dict) and "payload" in piece.document else ()
        if not isinstance(held, dict):
            return None
        kind = held.get("type") or "message"
        if kind == "message":
            return (*base, "content")
        if str(kind).endswith("_output"):
            return (*base, "output")
        return None


class Line:
    """One line of a rollout, with what the recipe asks of it."""

    __slots__ = ("data", "document", "offset", "piece", "record")

    def __init__(self, data: bytes, offset: int) -> None:
        self.data, self.offset = data, offset
        self.document: Any = None
        self.piece: Piece | None = None
        self.record: str | None = None
        """Id of the record that it holds."""

    def read(self) -> Any:
        if self.document is None:
            self.document = loads(self.data) or {}
        return self.document

    @property
    def kind(self) -> str:
        return str(value_at(self.read(), "type"))

    @property
    def event(self) -> str:
        return str(value_at(self.read(), "payload", "type")) if self.kind == "event_msg" else ""


def check(cut: Cut) -> None:
    file = _file(cut)
    if file.format == "codex-old":
        cut.warnings.append(
            "This rollout has the layout of Codex 0.20: newer programs refuse it. It is written as that program wrote it."
        )
        return
    found = version_of(file.facts.get("version"))
    if found is None:
        cut.warnings.append("The rollout names no version of Codex: whether it goes on from it is not known.")
    elif (told := nearest(found, TRIED)) is not None:
        cut.notes.append(f"The recipe was {told}.")


def make(cut: Cut) -> Made:
    pieces = cut.pieces
    if not any(piece.record.kind in ("prompt", "answer", "boundary") for piece in pieces):
        raise PatchError(
            "Nothing of a conversation lies before this point: there is nothing to fork.",
            f"Begin a new session: codex {spoken(cut.prompt)}" if cut.prompt else "Fork at a later turn.",
            "nothing-before",
        )
    file = _file(cut)
    old, version = file.session, version_of(file.facts.get("version"))
    is_old = file.format == "codex-old"
    session = str(uuid.uuid4()) if is_old or (version is not None and version < (0, 98, 0)) else uuid7()
    lines = _until(cut, file, {piece.record.id: piece for piece in cut.branch.pieces})
    kept: list[Line] = []
    copies: list[tuple[str, str]] = []
    for line in lines:
        if line.piece is not None and line.piece.changed:
            copies.append((_text(line.data), "" if line.piece.gone else _text(line.piece.data)))
        if line.piece is None or not line.piece.gone:
            kept.append(line)
    out: list[bytes] = []
    records: list[str | None] = []
    made_of: list[str | None] = []
    own = cut.first_own(pieces)
    shared = {id(piece) for piece in pieces[:own]}
    first_meta = True
    last_ordinal = -1
    for line in kept:
        data = line.piece.data if line.piece is not None and line.piece.changed else line.data
        document = line.read()
        if not is_old and line.kind == "session_meta":
            if first_meta:
                data = _meta(data, document, session, old, version, cut)
            first_meta = False
        elif is_old and not out and "instructions" in document:
            data = splice.with_fields(data, {"id": session})
        elif line.piece is None and not is_old:
            changed = _copy(line, data, copies)
            if changed is None:
                continue
            data = splice.renamed(changed, old, session)
        ordinal = document.get("ordinal")
        last_ordinal = max(last_ordinal, ordinal) if isinstance(ordinal, int) else last_ordinal
        out.append(splice.on_one_line(data))
        if line.record is not None:  # of an abandoned turn too: the program undoes it again
            records.append(line.record if line.piece is None or id(line.piece) in shared else None)
            made_of.append(line.record)
    for call, _ in cut.open_calls.get(pieces[-1].turn, ()):
        last_ordinal += 1 if last_ordinal >= 0 else 0
        out.append(_no_result(pieces, call, is_old, last_ordinal if last_ordinal >= 0 else None))
        records.append(None)
        made_of.append(None)
    moment = datetime.now(UTC)
    name = f"rollout-{moment.astimezone():%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
    cwd = _cwd(cut, lines)
    made = Made(session, name, b"".join(one + b"\n" for one in out), file.format, cwd, place.codex_target(name), records=records)
    made.replaces = pieces[own].turn if own < len(pieces) else None
    made.copies = made_of
    made.root, made.may_make = os.path.join(codex_home(), "sessions"), True
    made.program, made.version = "Codex", file.facts.get("version")
    go = f"cd {word(cwd)} && " if cwd is not None else ""
    said = f" {'-- ' if (cut.prompt or '').startswith('-') else ''}{spoken(cut.prompt)}" if cut.prompt is not None else ""
    made.commands = {
        "interactive": f"{go}codex resume {session}{said}",
        "print": f"{go}codex exec resume {session}{said or ' ' + word('…')}",
    }
    if not is_old:
        cut.notes.append("Resume it by its id: newer programs do not find a file with --last that they did not write themselves.")
    return made


def uuid7() -> str:
    """An id that begins with the time, as Codex gives them."""
    number = (int(time.time() * 1000) << 80) | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | (7 << 76)
    number = number & ~(0x3 << 62) | (2 << 62)
    return str(uuid.UUID(int=number & (1 << 128) - 1))


def _file(cut: Cut) -> Indexed:
    """The file whose lines lead to the turn."""
    files = cut.one.woven.files
    return files[cut.branch.pieces[-1].record.file if cut.branch.pieces else 0]


def _lines_of(source: Source, end: int | None = None) -> list[Line]:
    """The records of a file up to a byte, as their bytes; what is no JSON object is left out."""
    size = end if end is not None else (source.stat or (0, 0, 0))[0]
    if end is None and source.complete == 0 and size == 0:
        return []
    data = source.bytes_at(0, size)
    found: list[Line] = []
    offset = 0
    for whole in data.split(b"\n"):
        body = whole.strip(b" \t\r\n\0").removeprefix(b"\xef\xbb\xbf")
        if body.startswith(b"{") and body.endswith(b"}"):
            found.append(Line(body, offset + whole.index(body)))
        offset += len(whole) + 1
    return found


def _known(file: Indexed, by_id: dict[str, Piece]) -> list[Line]:
    """The lines of a file with the records and pieces that they hold."""
    ids = {record.offset: record.id for record in file.records}
    lines = _lines_of(file.source)
    for line in lines:
        line.record = ids.get(line.offset)
        line.piece = by_id.get(line.record or "")
    return lines


def _until(cut: Cut, file: Indexed, by_id: dict[str, Piece]) -> list[Line]:
    """The lines of the source up to the end of the cut, those of the files that it goes on from first."""
    files = cut.one.woven.files
    end = max(piece.record.offset for piece in cut.branch.pieces if files[piece.record.file] is file)
    base = file.facts.get("base")
    found: list[Line] = []
    passed = False
    for line in _known(file, by_id):
        if not passed:
            found.append(line)
            passed = line.offset >= end
        elif not _belongs(line, file):
            break
        else:
            found.append(line)
    if base is not None:
        found = [*_base(cut, base, by_id), *found]
        metas = [at for at, line in enumerate(found) if line.kind == "session_meta"]
        own = metas[-1] if metas else 0
        found = [found[own], *(line for at, line in enumerate(found) if at not in metas)] if metas else found
    return found


def _base(cut: Cut, base: tuple[Any, Any], by_id: dict[str, Piece], depth: int = 0) -> list[Line]:
    """The lines of the thread that a rollout goes on from, up to where it does."""
    thread, end = base
    files = cut.one.woven.files
    found: list[Line] = []
    for file in files:
        if file.session != thread or depth > 50:
            continue
        above = file.facts.get("base")
        mine: list[Line] = []
        for line in _known(file, by_id):
            ordinal = line.read().get("ordinal")
            if isinstance(ordinal, int) and isinstance(end, int) and ordinal >= end:
                break
            mine.append(line)
        if above is not None and above[0] != thread:
            mine = [*_base(cut, above, by_id, depth + 1), *mine]
        if len(mine) > len(found):
            found = mine
    if not found:
        raise PatchError(
            f"This rollout goes on from thread {thread}, whose file is not here.",
            "Open the folder that holds both.",
            "base-missing",
        )
    return found


def _belongs(line: Line, file: Indexed) -> bool:
    """Whether a line behind the last item of a step still belongs to that step."""
    if line.kind == "token_usage_record":
        return True
    event = line.event
    if event in _COUNTS:
        found = version_of(file.facts.get("version"))
        return found is None or found >= (0, 98, 0)  # older ones write it before the answer that it counts
    return event in _ENDS or (event == "item_completed" and value_at(line.read(), "payload", "item", "type") in _DONE)


def _meta(data: bytes, document: Any, session: str, old: str, version: tuple[int, ...] | None, cut: Cut) -> bytes:
    held = document.get("payload") or {}
    fields: dict[str, Any] = {"id": session}
    if "session_id" in held:
        fields["session_id"] = session
    if version is None or version >= (0, 98, 0):
        fields["forked_from_id"] = old
    data = splice.with_fields(data, fields, ("payload",))
    gone = [name for name in _BASE_FIELDS if name in held]
    return splice.without_fields(data, gone, ("payload",)) if gone else data


def _text(data: bytes) -> str:
    """The text of an item, as events repeat it."""
    from studio.stores.transcripts import content

    document = loads(data) or {}
    held = document.get("payload", document)
    return content.text_of(held.get("content")) if isinstance(held, dict) and held.get("type") == "message" else ""


def _copy(line: Line, data: bytes, copies: Sequence[tuple[str, str]]) -> bytes | None:
    """A line beside the items: with the new text where it repeats one that was edited; None where that was dropped."""
    if line.kind != "event_msg" or not copies:
        return data
    payload = value_at(line.read(), "payload") or {}
    paths: list[Path] = []
    if isinstance(payload.get("message"), str):
        paths.append(("payload", "message"))
    held = value_at(payload, "item", "content")
    paths += [("payload", "item", "content", at, "text") for at in range(len(held) if isinstance(held, list) else 0)]
    for path in paths:
        try:
            shown = loads(splice.part(data, path))
        except splice.NotThere:
            continue
        new = next((text for old, text in copies if old and old == shown), None)
        if new == "":
            return None
        if new is not None:
            data = splice.put(data, path, splice.encoded(new))
    return data


def _no_result(pieces: Sequence[Piece], call: str, is_old: bool, ordinal: int | None) -> bytes:
    made = next((one for one in pieces if any(ident == call for ident, _ in one.record.calls)), pieces[-1])
    held = made.document.get("payload", made.document) if isinstance(made.document, dict) else {}
    kind = "custom_tool_call_output" if held.get("type") == "custom_tool_call" else "function_call_output"
    item = {"type": kind, "call_id": call, "output": NO_RESULT}
    if is_old:
        return splice.encoded(item)
    record: dict[str, Any] = {"timestamp": value_at(pieces[-1].document, "timestamp")}
    if ordinal is not None:
        record["ordinal"] = ordinal
    return splice.encoded({**record, "type": "response_item", "payload": item})


def _cwd(cut: Cut, lines: Sequence[Line]) -> str | None:
    """The folder of the last turn that is kept."""
    for line in reversed(lines):
        if line.kind in ("turn_context", "session_meta"):
            found = value_at(line.read(), "payload", "cwd")
            if isinstance(found, str):
                return found
    return None
