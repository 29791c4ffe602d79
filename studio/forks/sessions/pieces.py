"""The messages of a branch with the stored bytes that say them, and what an edit makes of each.

A *piece* is one stored JSON object: a line of a session, an item of a list, a message of a conversation. It says one message or
several, or none (what a program put beside a prompt), or a part of one (an answer is stored block by block).
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Any, ClassVar

from msgspec import Struct, field

from studio import tagged
from studio.codec.paths import find_index, join_path, split_path
from studio.errors import PatchError, RefError
from studio.forks.sessions import splice
from studio.forks.sessions.splice import Path
from studio.requests import Patch
from studio.stores.transcripts import content
from studio.stores.transcripts.fold import Folded, merged
from studio.stores.transcripts.items import CALLS, OUTPUTS, item_messages
from studio.stores.transcripts.record import Record
from studio.stores.transcripts.source import Source, loads
from studio.stores.transcripts.turns import Turn

Message = dict[str, Any]
ONLY_CONTENT = "Only the content of a message can be changed in a session."


class Piece(Struct):
    record: Record
    at: int
    """Place of the record in the woven transcript."""
    turn: str
    own: bytes | None
    """Its bytes, where they are not simply those of the record."""
    document: Any
    """As it is stored; of a record of Claude Code the fields of `HEAD` alone, as there may be many."""
    said: list[Message]
    """What it says, in the reader's form."""
    source: Source | None = None
    gone: bool = False
    """Dropped from the fork."""
    changed: bool = False

    @property
    def data(self) -> bytes:
        """PatchError: the file was changed meanwhile."""
        if self.own is not None:
            return self.own
        assert self.source is not None
        return _bytes(self.source, self.record)

    @data.setter
    def data(self, new: bytes) -> None:
        self.own = new


class Line(Struct):
    """One message of the state, with the pieces that say it: (piece, which of its messages)."""

    message: Message
    parts: list[tuple[Piece, int]]
    turn: str
    wanted: Message | None = None
    """What it is to say in the fork; None = it is dropped."""


class Branch(Struct):
    pieces: list[Piece] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    queued: int = 0
    """Prompts that stand nowhere but in the program's queue."""

    def messages(self) -> list[Message]:
        return [line.wanted for line in self.lines if line.wanted is not None]


HEAD = (
    "type", "uuid", "timestamp", "version", "cwd", "entrypoint", "session_id", "isSidechain", "userType",
    "sourceToolAssistantUUID", "compactMetadata",
)  # fmt: skip
_SHORT = 24
"""Characters of a text that stands in many records; ids are longer."""
_ORDER = {"answer": 0, "result": 1}


def of_branch(folded: Folded, turns: Sequence[Turn]) -> Branch:
    """Everything on the way from the root to a turn, each turn's answer first, then what its calls gave."""
    branch = Branch()
    for turn in turns:
        records = [(at, folded.woven.records[at]) for at in turn.records if folded.woven.records[at].kind != "note"]
        if turn.kind == "loop":
            records.sort(key=lambda one: _ORDER.get(one[1].kind, 2))
        made = [piece for at, record in records for piece in _pieces(folded, turn, at, record)]
        branch.pieces += made
        branch.lines += lines_of(made, turn)
        branch.queued += sum(note.what != "command" for note in turn.queued)
    return branch


def lines_of(pieces: Sequence[Piece], turn: Turn) -> list[Line]:
    """As `fold` has them: the lines of an answer as one message, then the rest."""
    if any((piece.record.more or {}).get("response") for piece in pieces):  # with what was asked, in the order of the items
        return [Line(one, [(piece, at)], turn.id, one) for piece in pieces for at, one in enumerate(piece.said)]
    answer: Line | None = None
    rest: list[Line] = []
    for piece in pieces:
        for nth, message in enumerate(piece.said):
            if message.get("type") != "ai" or turn.kind != "loop":
                rest.append(Line(message, [(piece, nth)], turn.id, message))
            elif answer is None:
                answer = Line(message, [(piece, nth)], turn.id, message)
            else:
                answer.message = answer.wanted = merged(answer.message, message)
                answer.parts.append((piece, nth))
    if answer is None:
        return rest
    names = {call["id"]: call["name"] for call in answer.message.get("tool_calls") or ()}
    for line in rest:
        if line.message.get("type") == "tool" and line.message.get("tool_call_id") in names:
            line.message.setdefault("name", names[line.message["tool_call_id"]])
    return [answer, *rest]


def _pieces(folded: Folded, turn: Turn, at: int, record: Record) -> list[Piece]:
    source = folded.woven.files[record.file].source
    data = _bytes(source, record)
    document = loads(data)
    more = record.more or {}
    try:
        if more.get("response"):
            return list(_of_response(turn, at, record, data, document))
        place = more.get("at")
        if place is not None:
            data = splice.part(data, ("messages", place))
    except splice.NotThere as error:
        raise PatchError(f"A record of {source.path} is damaged: {error}.", "Fork at another turn.", "damaged") from error
    said = list(folded.readers[record.file].messages(record, document))
    if folded.woven.files[record.file].format == "claude-code" and isinstance(document, dict):
        document = {name: _once(document[name]) for name in HEAD if name in document}
    return [Piece(record, at, turn.id, None if place is None else data, document, said, source)]


def _once(value: Any) -> Any:
    return intern(value) if isinstance(value, str) and len(value) < _SHORT else value


def _bytes(source: Source, record: Record) -> bytes:
    data = source.bytes_at(record.offset, record.length)
    if len(data) != record.length:
        raise PatchError(f"A record of {source.path} cannot be read any more.", "Open it again.", "moved")
    return data


def _of_response(turn: Turn, at: int, record: Record, data: bytes, document: Any) -> list[Piece]:
    """The items of a stored response, and of the request beside it."""
    made: list[Piece] = []
    inner: Path = ("response",) if isinstance(document.get("response"), dict) else ()
    held = document["response"] if inner else document
    request: Path = ("input",) if document.get("input") else ("request", "input")
    given = document.get("input") or (document.get("request") or {}).get("input")
    if isinstance(given, str):
        text = splice.part(data, request)
        message = {"type": "human", "id": f"{record.id}:input", "content": content.cut(given)}
        made.append(Piece(record, at, turn.id, b'{"role":"user","content":' + text + b"}", {"role": "user"}, [message]))
    for path, list_, name in ((request, given, f"{record.id}:input:"), ((*inner, "output"), held.get("output"), "")):
        for nth, one in enumerate(list_ if isinstance(list_, list) else ()):
            if isinstance(one, dict):
                said = item_messages(one, f"{name}{nth}" if name else record.id)
                made.append(Piece(record, at, turn.id, splice.part(data, (*path, nth)), one, said))
    return made


def on_the_way(folded: Folded, turns: Sequence[Turn]) -> set[int]:
    """Places of the records that lead to the end of a branch, and of what hangs below that end.

    A program sends what stands on the chain of parents. What hangs beside it is of another way, or was only for the screen.
    """
    woven = folded.woven
    if not turns:
        return set()
    inside = {turn.id: at for at, turn in enumerate(turns)}

    def last(turn: Turn) -> int:
        said = [at for at in turn.records if woven.records[at].kind not in ("context", "note")]
        return (said or turn.records)[-1]

    end = last(turns[-1])
    found: set[int] = set()
    at: int | None = end
    while at is not None and at not in found:
        found.add(at)
        record = woven.records[at]
        above = woven.place.get(record.parent or "")
        if above is not None and woven.turn_of[above] in inside and woven.records[above].lane == record.lane:
            at = above
            continue
        number = inside.get(woven.turn_of[at], 0)
        at = last(turns[number - 1]) if number else None
    for below in turns[-1].records:
        if woven.records[below].kind != "context" or below in found:
            continue
        path: list[int] = []
        up: int | None = below
        while up is not None and up not in found and woven.turn_of[up] == turns[-1].id and up not in path:
            path.append(up)
            up = woven.place.get(woven.records[up].parent or "")
        if up == end or up in found and up > end:
            found.update(path)
    return found


# ---- what is wanted


def edit(branch: Branch, messages: Sequence[Message], patch: Patch) -> list[str]:
    """Set what each line is to say. `messages` are those of the state, whose places a path names. Returns notes.

    Raises PatchError for what a session cannot hold.
    """
    place = _places(branch, messages) if patch else {}
    notes: list[str] = []
    for path, document in patch.set.items():
        steps, line = _line_at(path, messages, place)
        assert line.wanted is not None
        found = tagged.apply_patch({"m": line.wanted}, Patch({join_path(["m", *steps]): document}))["m"]
        if not isinstance(found, dict):
            raise PatchError(f"{path}: this is no message any more.", "Set its content.", "no-message")
        apart = [name for name in (*found, *line.wanted) if name != "content" and found.get(name) != line.wanted.get(name)]
        if apart:
            raise PatchError(f"{path}: {ONLY_CONTENT} This changes {apart[0]!r}.", "Set …/content.", "only-content")
        line.wanted = found
    for path in patch.unset:
        steps, line = _line_at(path, messages, place)
        if steps:
            raise PatchError(f"{path}: {ONLY_CONTENT}", "Remove a whole message: --unset /messages/N.", "only-content")
        notes += _drop(branch, line)
    return notes


def _places(branch: Branch, messages: Sequence[Message]) -> dict[int, Line]:
    """Place in the state -> line. Within a turn the state has what its calls gave in file order."""
    waiting: dict[tuple[Any, ...], list[Line]] = {}
    for line in branch.lines:
        waiting.setdefault(_key(line.message), []).append(line)
    return {at: held.pop(0) for at, message in enumerate(messages) if (held := waiting.get(_key(message)))}


def _key(message: Message) -> tuple[Any, ...]:
    return message.get("type"), message.get("id"), message.get("tool_call_id")


def _is_queued(message: Message) -> bool:
    return str(message.get("id", "")).startswith("queued:")


def _line_at(path: str, messages: Sequence[Message], place: dict[int, Line]) -> tuple[list[str], Line]:
    try:
        steps = split_path(path)
    except RefError as error:
        raise PatchError(error.message, error.hint, "bad-path") from error
    if not steps or steps[0] != "messages":
        raise PatchError(
            f"{path}: a session stores messages alone; todos, files and the rest follow from them.",
            "Paths look like /messages/3/content.",
            "only-messages",
        )
    index = find_index(messages, steps[1]) if len(steps) > 1 else None
    if index is None:
        raise PatchError(f"there is no {path}", f"there are {len(messages)} messages, from /messages/0 on", "no-such-path")
    line = place.get(index)
    if line is None and not _is_queued(messages[index]):
        raise PatchError(f"{path}: where this message is stored cannot be told.", "Leave it as it is.", "not-exact")
    if line is None:
        raise PatchError(
            f"{path}: this prompt was typed while the model worked, and stands only in the program's queue.",
            "It is no part of a fork; say it again when you go on.",
            "queued",
        )
    if line.wanted is None:
        raise PatchError(f"{path}: this message is dropped already.", "", "no-such-path")
    return steps[2:], line


def _drop(branch: Branch, line: Line) -> list[str]:
    """Drop a message, and with a call its result and the other way round."""
    kind = line.message.get("type")
    piece = line.parts[0][0]
    if piece.record.kind in ("boundary", "summary"):
        raise PatchError(
            "What a compaction wrote cannot be dropped: the context begins with it.", "Edit the summary.", "boundary"
        )
    notes: list[str] = []
    line.wanted = None
    if kind == "ai":
        calls = {call["id"]: call["name"] for call in line.message.get("tool_calls") or ()}
        for other in branch.lines:
            call = other.message.get("tool_call_id")
            if other.wanted is not None and other.message.get("type") == "tool" and call in calls:
                other.wanted = None
                notes.append(f"With the answer goes the result of its call {calls[call]} ({call}).")
    elif kind == "tool":
        call = line.message.get("tool_call_id")
        for other in branch.lines:
            calls_of = other.wanted.get("tool_calls") if other.wanted is not None else None
            if not calls_of or not any(one["id"] == call for one in calls_of):
                continue
            assert other.wanted is not None
            if any(
                one is not line and one.wanted is not None and one.message.get("tool_call_id") == call for one in branch.lines
            ):
                continue  # answered twice: the other result stays
            rest = [one for one in calls_of if one["id"] != call]
            name = next(one["name"] for one in calls_of if one["id"] == call)
            notes.append(f"With the result goes its call {name} ({call}).")
            if not rest and not _says_something(other.wanted):
                other.wanted = None
                notes.append("The answer had nothing else to say: it is dropped as a whole.")
            else:
                other.wanted = {**other.wanted, "tool_calls": rest}
    return notes


def _says_something(message: Message) -> bool:
    held = message.get("content")
    if isinstance(held, str):
        return bool(held)
    return any(isinstance(one, dict) and one.get("type") != "thinking" for one in held or ())


# ---- from what is wanted to bytes


def apply(branch: Branch, layout: Layout) -> list[str]:
    """Change the bytes of the pieces so that they say what is wanted. Returns notes."""
    notes: list[str] = []
    for line in branch.lines:
        if line.wanted is line.message:
            continue
        for piece, _ in line.parts:
            piece.changed = True
        if line.wanted is None:
            _remove(line, layout)
            continue
        kept = {call["id"] for call in line.wanted.get("tool_calls") or ()}
        lost = [call["id"] for call in line.message.get("tool_calls") or () if call["id"] not in kept]
        if line.wanted.get("content") != line.message.get("content"):
            notes += _say(line, layout)
        for ident in lost:
            for piece, _ in line.parts:
                if any(call["id"] == ident for one in piece.said for call in one.get("tool_calls") or ()):
                    layout.remove_call(piece, ident)
    return notes


def _remove(line: Line, layout: Layout) -> None:
    for piece, nth in line.parts:
        if len(piece.said) == 1:
            piece.gone = True
        else:
            layout.remove_message(piece, nth)


class Layout:
    """Where a format keeps the content of a message; each format has its own."""

    text_type: ClassVar[dict[str, str]] = {"human": "text", "ai": "text", "tool": "text", "system": "text"}
    """Type of a new block of text in a message of a kind."""

    def path(self, piece: Piece, nth: int) -> Path | None:
        """The content of a piece's message; None where a program made it of something else."""
        raise NotImplementedError

    def is_block(self, block: Any) -> bool:
        """Whether a stored block is a part of the content, and not a call."""
        return True

    def remove_call(self, piece: Piece, ident: str) -> None:
        piece.gone = True

    def remove_message(self, piece: Piece, nth: int) -> None:
        raise PatchError("This message is stored together with others and cannot be dropped alone.", "Drop all.", "together")

    def blocks_allowed(self) -> bool:
        return True


def _say(line: Line, layout: Layout) -> list[str]:
    assert line.wanted is not None
    new, kind = line.wanted.get("content"), str(line.message.get("type"))
    if len(line.parts) > 1 or kind == "ai":
        return _say_in_parts(line, layout, new)
    piece, nth = line.parts[0]
    path = layout.path(piece, nth)
    if path is None:
        raise PatchError("The program wrote this message of something else: it cannot be edited.", "Drop it.", "no-content")
    try:
        piece.data, notes = _content(piece.data, path, new, layout.text_type.get(kind, "text"))
    except splice.NotThere as error:
        raise PatchError(f"The stored message has no content to edit: {error}.", "", "no-content") from error
    return notes


def _say_in_parts(line: Line, layout: Layout, new: Any) -> list[str]:
    """An answer: its texts stand in one block each, maybe in several lines; no block is added or removed."""
    slots: list[tuple[Piece, Path] | None] = []
    shown: list[Any] = []
    for piece, nth in line.parts:
        own = content_blocks(piece.said[nth])
        path = layout.path(piece, nth)
        places = _text_places(piece, path, layout) if path is not None else []
        shown += own
        slots += (
            [(piece, place) if place is not None else None for place in places] if len(places) == len(own) else [None] * len(own)
        )
    wanted = new if isinstance(new, list) else None
    if isinstance(new, str):
        texts = [at for at, one in enumerate(shown) if isinstance(one, dict) and one.get("type") == "text"]
        if not texts:
            raise PatchError("This answer says no text that could be changed.", "Drop it, or edit a result.", "which-text")
        if len(texts) != 1:
            raise PatchError(
                f"This answer has {len(texts)} texts: name the one to change.", "Set /messages/N/content/K/text.", "which-text"
            )
        wanted = [{**one, "text": new} if at == texts[0] else one for at, one in enumerate(shown)]
    if wanted is None or len(wanted) != len(shown):
        raise PatchError("Blocks of an answer can be changed, not added or removed.", "Drop the whole message instead.", "blocks")
    for one, other, slot in zip(shown, wanted, slots, strict=True):
        if one == other:
            continue
        is_text = isinstance(other, dict) and {**other, "text": ""} == {**one, "text": ""} and one.get("type") == "text"
        if not is_text or not isinstance(other.get("text"), str):
            raise PatchError("Of an answer only texts can be changed: the service signs the rest.", "Drop it instead.", "signed")
        if slot is None:
            raise PatchError("Where this text is stored cannot be told.", "Drop the message instead.", "no-content")
        piece, place = slot
        piece.data = splice.put(piece.data, place, splice.encoded(other["text"]))
    if isinstance(new, str) and line.wanted is not None and isinstance(line.message.get("content"), list):
        line.wanted = {**line.wanted, "content": wanted}
    return []


def content_blocks(message: Message) -> list[Any]:
    held = message.get("content")
    if isinstance(held, list):
        return held
    return [{"type": "text", "text": held}] if isinstance(held, str) and held else []


def _text_places(piece: Piece, path: Path, layout: Layout) -> list[Path | None]:
    try:
        start, _ = splice.find(piece.data, path)
        if piece.data[start : start + 1] == b'"':
            return [path]
        inside = splice.items(piece.data, start)
    except splice.NotThere:
        return []
    found: list[Path | None] = []
    for at, (one, end) in enumerate(inside):
        block = loads(piece.data[one:end])
        if layout.is_block(block):
            has_text = isinstance(block, dict) and isinstance(block.get("text"), str)
            found.append((*path, at, "text") if has_text else None)
    return found


def _content(data: bytes, path: Path, new: Any, text_type: str) -> tuple[bytes, list[str]]:
    """Another content for a message; blocks that are as they were shown keep their bytes."""
    start, end = splice.find(data, path)
    stored = loads(data[start:end])
    if isinstance(new, str):
        if not isinstance(stored, list):
            if isinstance(stored, str) and stored.startswith('{"output"'):
                inner = stored.encode("utf-8", "surrogatepass")
                try:
                    put = splice.put(inner, ("output",), splice.encoded(new)).decode("utf-8", "surrogatepass")
                    return splice.put(data, path, splice.encoded(put)), []
                except (splice.NotThere, ValueError):
                    pass
            return splice.put(data, path, splice.encoded(new)), []
        texts = [at for at, one in enumerate(stored) if isinstance(one, dict) and isinstance(one.get("text"), str)]
        if len(stored) == 1 and texts:
            return splice.put(data, (*path, 0, "text"), splice.encoded(new)), []
        kind = stored[texts[0]].get("type", text_type) if texts else text_type
        left = len(stored) - len(texts)
        told = [f"{left} blocks that are no text (images, perhaps) are not in the edited message."] if left else []
        return splice.put(data, path, splice.encoded([{"type": kind, "text": new}])), told
    if not isinstance(new, list):
        raise PatchError("The content of a message is a text or a list of blocks.", "", "bad-content")
    held = stored if isinstance(stored, list) else [{"type": text_type, "text": stored}] if isinstance(stored, str) else []
    spans = splice.items(data, start) if isinstance(stored, list) else []
    parts = [data[one:stop] for one, stop in spans] if spans else [splice.encoded(one) for one in held]
    shown = [content.block(one) for one in held]
    out: list[bytes] = []
    for at, one in enumerate(new):
        same = at if at < len(shown) and shown[at] == one else next((k for k, other in enumerate(shown) if other == one), None)
        if same is not None:
            out.append(parts[same])
        elif (
            at < len(shown)
            and isinstance(one, dict)
            and isinstance(shown[at], dict)
            and isinstance(one.get("text"), str)
            and {**one, "text": ""} == {**shown[at], "text": ""}
        ):
            out.append(splice.put(parts[at], ("text",), splice.encoded(one["text"])))
        elif isinstance(one, dict) and "sha256_of_base64" in one:
            raise PatchError("An image can be kept or left out, not made of its hash.", "Leave the block as it is.", "image")
        elif isinstance(one, dict) and one.keys() == {"type", "text"} and one["type"] == "text":
            out.append(splice.encoded({"type": text_type, "text": one["text"]}))
        elif isinstance(one, str):
            out.append(splice.encoded({"type": text_type, "text": one}))
        else:
            out.append(splice.encoded(one))
    return splice.put(data, path, b"[" + b",".join(out) + b"]"), []


def result_ids(pieces: Sequence[Piece]) -> set[str]:
    """Calls that have a result among these pieces."""
    return {str(one.get("tool_call_id")) for piece in pieces if not piece.gone for one in piece.said if one.get("type") == "tool"}


__all__ = ["CALLS", "OUTPUTS", "Branch", "Layout", "Line", "Message", "Piece", "apply", "edit", "of_branch", "result_ids"]
