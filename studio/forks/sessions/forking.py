"""Forks of a session, from what a person asks for to the file that was read back."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from studio import diff
from studio.errors import PatchError, RefError
from studio.forks.sessions import claude, codex, items, outlook, pieces, place, rollouts, splice, versions
from studio.forks.sessions.pieces import Branch, Layout, Line, Message
from studio.forks.sessions.recipe import NO_RESULT, Cut, Made
from studio.model import Address, Change
from studio.requests import ForkPreview, ForkRequest, ForkResult, Resume
from studio.stores.transcripts import content
from studio.stores.transcripts.adopted import own_id
from studio.stores.transcripts.finding import Group, look_at
from studio.stores.transcripts.fold import Folded
from studio.stores.transcripts.store import TranscriptStore
from studio.stores.transcripts.transcript import Transcript, title_of
from studio.stores.transcripts.turns import Turn, Woven

_KEPT = frozenset(("claude-code", "codex", "codex-old"))
"""Formats of programs that keep a session and go on from it."""
_TO_POST = frozenset(("openai-items", "openai-responses", "chat", "langchain"))
_MODEL = "assistant"


class SessionForker:
    """Forks of the transcripts of one store. Reads the store, writes beside our other forks."""

    def __init__(self, store: TranscriptStore) -> None:
        self.store = store

    def refusal(self, request: ForkRequest) -> PatchError | None:
        """What no fork of a session can do; the rest is refused when it is tried."""
        for given, words in (
            (request.goto is not None, "--goto"),
            (request.is_update, "--as-node and --update"),
            (request.in_place, "--in-place"),
            (request.new_thread is not None, "--new-thread"),
        ):
            if given:
                return PatchError(
                    f"{words} is for checkpoints: an agent's session runs no graph of yours.",
                    "A fork of a session takes --set, --unset and --install.",
                    "session",
                )
        return None

    def files_at(self, address: Address) -> versions.Moment:
        return versions.at(*self._at(address))

    def outlook(self, address: Address) -> outlook.Outlook:
        return outlook.after(*self._at(address))

    def _at(self, address: Address) -> tuple[Transcript, Turn]:
        found = self.store.turn(address)
        if found is None:
            raise RefError(f"there is no checkpoint {address.checkpoint_id}", "`studio tree` lists the turns")
        found[0].look()
        return found[0], found[0].woven.turns.get(found[1].id, found[1])

    def preview(self, request: ForkRequest) -> ForkPreview:
        try:
            cut, before = self._cut(request, None)
            made = _made(cut)
        except PatchError as error:
            return ForkPreview((), None, (), f"{error.message} {error.hint}".strip())
        after = [*cut.wanted, *([{"type": "human", "content": cut.prompt}] if cut.prompt is not None else [])]
        changes = _changes(before, cut)
        return ForkPreview(
            changes, _next(cut), (*cut.warnings, *cut.notes), None, {"messages": after}, session=_resume(cut, made, None, None)
        )

    def fork(self, request: ForkRequest, number: str | None = None) -> ForkResult:
        """Write the fork, read it back and compare. Raises PatchError or RefError; then nothing is stored."""
        if refused := self.refusal(request):
            raise refused
        cut, _ = self._cut(request, number)
        made = _made(cut)
        made.copies = [cut.names.get(one, one) if one is not None else None for one in made.copies]
        made.records = [cut.names.get(one, one) if one is not None else None for one in made.records]
        source = cut.source
        path = place.store(source, made.name, made.data)
        made.data = b""  # it may be large, and is read back from where it is stored now
        stored = _read(path)
        surprises = _surprises(stored, made, cut)
        installed = None
        if request.install:
            try:
                if made.target is None:
                    raise PatchError(
                        "No program keeps such a session, so there is no place to install it.",
                        "Leave out --install.",
                        "no-program",
                    )
                if surprises:
                    raise PatchError("The fork is not what was asked for, so it is not installed.", surprises[0], "not-verified")
                place.install(path, made.target, made.root, made.may_make)
                installed = made.target
            except PatchError:
                place.remove(path)
                raise
        own = _own(stored, made)
        place.note(_sheet(path, made, cut, request.address, source, own, installed))
        address = Address(request.address.thread_id, "", own.last or request.address.checkpoint_id)
        return ForkResult(
            address,
            own.parent,
            path,
            request.address,
            _recipe(request, cut),
            _next(cut),
            not surprises,
            tuple(surprises),
            address,
            (address,),
            session=_resume(cut, made, path, installed),
        )

    # ---- what is to be written

    def _cut(self, request: ForkRequest, number: str | None) -> tuple[Cut, list[Message]]:
        one, turn = self._at(request.address)
        if turn.ns:
            raise PatchError(
                "This turn is a subagent's: its program goes on from a main conversation alone.",
                f"Fork at the turn that called it: {_caller(one, turn)}.",
                "subagent",
            )
        kind = _format(one, turn)
        if kind not in _KEPT | _TO_POST:
            raise PatchError(
                f"This file is of the kind {kind}: it is printed output, and nothing goes on from it.",
                "Fork the session file that the program kept.",
                "no-session",
            )
        before = one.folded().messages(turn.id) if request.patch else _last_words(one.folded(), turn)
        title, source, chosen, woven = _title(one, turn, number), _source(one), turn, one.woven
        names: dict[str, str] = {}
        if kind == "codex" and (alone := rollouts.alone(one, turn)) is not None:
            one, turn, names = alone
        folded = one.folded()
        turns = folded.branch(turn.id)
        branch = pieces.of_branch(folded, turns)
        _rename(branch, names)
        notes = pieces.edit(branch, before, request.patch)
        cut = Cut(one, turn, branch, turns, title=title, source=source, notes=notes, names=names)
        if turns and turns[0].lost:
            cut.warnings.append("The link to what came before is lost: the fork begins where the chain does.")
        if branch.queued:
            cut.notes.append(f"{branch.queued} prompts stand only in the program's queue: they are no part of the fork.")
        _keep_to_the_way(cut, pieces.on_the_way(folded, turns), kind)
        layout = _layout(kind)
        if kind in _KEPT:
            _take_prompt(cut, kind)
        if kind == "claude-code":
            claude.check(cut)
            claude.begin(cut)
        elif kind in ("codex", "codex-old"):
            codex.check(cut)
        else:
            items.check(cut, kind)
        _inside(cut, woven, chosen, request)
        cut.notes += pieces.apply(branch, layout)
        _open_calls(cut, kind)
        cut.wanted = _wanted(cut)
        _neighbours(cut)
        return cut, before


def _last_words(folded: Folded, turn: Turn) -> list[Message]:
    """The messages of the last turn in which a person speaks."""
    for step in reversed(folded.branch(turn.id)):
        messages = folded.said(step).messages
        if any(one.get("type") == "human" for one in messages):
            return messages
    return []


def _rename(branch: Branch, names: dict[str, str]) -> None:
    for line in branch.lines:
        line.message["id"] = names.get(line.message.get("id", ""), line.message.get("id"))


def _layout(kind: str) -> Layout:
    if kind == "claude-code":
        return claude.ClaudeLayout()
    if kind in ("codex", "codex-old"):
        return codex.CodexLayout()
    return items.ItemsLayout() if items.is_items(kind) else items.ChatLayout()


def _format(one: Transcript, turn: Turn) -> str:
    woven = one.woven
    return woven.files[woven.records[turn.records[0]].file].format


def _made(cut: Cut) -> Made:
    kind = _format(cut.one, cut.turn)
    try:
        if kind == "claude-code":
            return claude.make(cut)
        return codex.make(cut) if kind in _KEPT else items.make(cut, kind)
    except splice.NotThere as error:
        raise PatchError(
            f"A record of this branch is not as its program writes it ({error}), so it cannot be written into a new session.",
            "Fork at a turn before it.",
            "odd-record",
        ) from error


def _source(one: Transcript) -> str:
    """The file that the forks of a session are kept under."""
    files = [found for found in (*one.group.files, *one.group.agents) if not found.fork]
    return os.path.realpath((files or one.group.files)[0].path)


def _caller(one: Transcript, turn: Turn) -> str:
    caller = one.caller(turn.ns)
    lane = next((lane for lane in one.woven.lanes.values() if lane.ns == turn.ns), None)
    return (lane.turn if lane is not None and lane.turn else None) or (caller[1] if caller else "it is not known")


def _title(one: Transcript, turn: Turn, number: str | None) -> str:
    title = title_of(one.woven.files, one.woven.place)
    if not title:
        first = next((line for line in one.folded().branch(turn.id) if line.kind == "input"), None)
        said = one.folded().said(first).messages if first is not None else []
        title = next((content.text_of(each.get("content")) for each in said if each.get("type") == "human"), "") or "session"
    words = " ".join(title.split())
    return f"{words[:60]} (fork at {'#' + number if number else turn.id[:8]})"


def _keep_to_the_way(cut: Cut, way: set[int], kind: str) -> None:
    """Leave out what a program put beside the conversation on another way."""
    if kind not in _KEPT:
        return
    beside = _beside(cut.branch, way)
    lines = [line for line in cut.branch.lines if id(line.parts[0][0]) in beside]
    if any(line.wanted is not line.message and line.wanted is not None for line in lines):
        raise PatchError(
            "This message lies beside the way to the fork: the program does not send it.", "Leave it as it is.", "beside"
        )
    cut.branch.pieces = [one for one in cut.branch.pieces if id(one) not in beside]
    cut.branch.lines = [line for line in cut.branch.lines if id(line.parts[0][0]) not in beside]
    if lines:
        cut.notes.append(f"{len(lines)} notes of the program that lie beside the way are left out.")


def _beside(branch: Branch, way: set[int]) -> set[int]:
    """The pieces, by their identity, that a program put beside the conversation on another way."""
    return {id(one) for one in branch.pieces if one.record.kind == "context" and one.at not in way}


def _take_prompt(cut: Cut, kind: str) -> None:
    """A prompt at the end is not stored: the program would take it as answered. It is said again when the session goes on."""
    if cut.turn.kind != "input":
        if kind != "claude-code":
            _drop_trailing_context(cut)
        return
    mine = [line for line in cut.branch.lines if line.turn == cut.turn.id]
    spoken = [line for line in mine if line.message.get("type") == "human"]
    if not spoken:
        return
    line = spoken[-1]
    if line.wanted is None:
        return
    text = line.wanted.get("content")
    if not isinstance(text, str):
        cut.warnings.append(
            "The prompt holds more than text, which no command line can say: it is stored, and the program takes it as "
            "answered before your next words."
        )
        return
    cut.prompt = text
    first = line.parts[0][0]
    start = next(at for at, piece in enumerate(cut.branch.pieces) if piece is first)
    while kind != "claude-code" and start and cut.branch.pieces[start - 1].turn == cut.turn.id:
        start -= 1  # Codex writes the contexts of a turn anew
    _end_at(cut, start)
    if kind != "claude-code":
        _drop_trailing_context(cut)
    left = {piece.turn for piece in cut.branch.pieces}
    cut.turns = [turn for turn in cut.turns if turn.id in left]


def _end_at(cut: Cut, start: int) -> None:
    gone = {id(piece) for piece in cut.branch.pieces[start:]}
    cut.branch.pieces = cut.branch.pieces[:start]
    cut.branch.lines = [line for line in cut.branch.lines if not any(id(piece) in gone for piece, _ in line.parts)]


def _drop_trailing_context(cut: Cut) -> None:
    """What Codex wrote before the next prompt hangs below the last answer: it is written anew before any prompt."""
    end = len(cut.branch.pieces)
    while (
        end
        and cut.branch.pieces[end - 1].record.kind == "context"
        and any(piece.record.kind in ("answer", "result") for piece in cut.branch.pieces[:end])
    ):
        end -= 1
    _end_at(cut, end)


def _inside(cut: Cut, woven: Woven, turn: Turn, request: ForkRequest) -> None:
    """Say where the cut is when a record inside a turn was named."""
    record = woven.place.get(request.record or "")
    if record is None or cut.prompt is not None:
        return
    later = [at for at in turn.records if at > record and woven.records[at].kind in ("answer", "result")]
    if later and record in turn.records:
        cut.notes.append(
            f"The record {request.record} lies inside a turn: the fork is cut at its end, where the calls have their results."
        )


def _open_calls(cut: Cut, kind: str) -> None:
    answered = pieces.result_ids(cut.branch.pieces)
    last = cut.pieces[-1].turn if cut.pieces else ""
    called: dict[str, set[str]] = {}
    for line in cut.branch.lines:
        for call in line.wanted.get("tool_calls") or () if line.wanted is not None else ():
            called.setdefault(line.turn, set()).add(str(call["id"]))
    for turn in cut.turns:
        kept = called.get(turn.id, set())
        found = [(ident, name) for ident, name in turn.calls if ident in kept and ident not in answered]
        if items.is_items(kind):
            found = [one for one in found if one[1] not in items_answered()]
        if found and kind in ("codex", "codex-old") and turn.id != last:
            continue  # the program adds these itself
        if found:
            cut.open_calls[turn.id] = found
    for calls in cut.open_calls.values():
        for ident, name in calls:
            cut.warnings.append(f"The call {name} ({ident}) has no result: the fork says that it failed.")


def items_answered() -> frozenset[str]:
    from studio.stores.transcripts.items import ANSWERED

    return ANSWERED


def _wanted(cut: Cut) -> list[Message]:
    """What the fork is to say, message by message, calls that were open completed."""
    found: list[Message] = []
    lines = cut.branch.lines
    for at, line in enumerate(lines):
        if line.wanted is not None:
            found.append(line.wanted)
        ends = at + 1 == len(lines) or lines[at + 1].turn != line.turn or _is_beside(lines[at + 1])
        if ends and not _is_beside(line):
            for ident, name in cut.open_calls.get(line.turn, ()):
                found.append({"type": "tool", "tool_call_id": ident, "name": name, "content": NO_RESULT, "status": "error"})
    return found


def _is_beside(line: Line) -> bool:
    return line.parts[0][0].record.kind not in ("answer", "result")


def _neighbours(cut: Cut) -> None:
    kinds = [one.get("type") for one in cut.wanted if one.get("type") in ("human", "ai")]
    if any(line.wanted is None for line in cut.branch.lines) and any(
        one == two == "human" for one, two in zip(kinds, kinds[1:], strict=False)
    ):
        cut.warnings.append("With what is dropped two prompts follow each other: the model is sent both, one after the other.")


# ---- what came of it


def _recipe(request: ForkRequest, cut: Cut) -> str:
    return "set" if request.patch else "copy"


def _next(cut: Cut) -> tuple[str | None, ...]:
    last = cut.wanted[-1] if cut.wanted else {}
    return (_MODEL,) if cut.prompt is not None or last.get("type") in ("human", "tool") else ()


def _resume(cut: Cut, made: Made, path: str | None, installed: str | None) -> Resume:
    return Resume(
        session=made.session,
        program=made.program,
        version=made.version,
        cwd=made.cwd,
        prompt=cut.prompt,
        commands=made.commands,
        target=made.target,
        installed=installed,
        notes=tuple(cut.notes),
        warnings=tuple(cut.warnings),
    )


def _changes(before: Sequence[Message], cut: Cut) -> tuple[Change, ...]:
    """What was edited, against the same messages unedited."""
    was = {"messages": [line.message for line in cut.branch.lines]}
    now = {"messages": [line.wanted for line in cut.branch.lines if line.wanted is not None]}
    spoken = next((one for one in reversed(before) if one.get("type") == "human"), None)
    if cut.prompt is not None and spoken is not None:
        was["messages"].append(spoken)
        now["messages"].append({**spoken, "content": cut.prompt})
    return tuple(diff.diff(was, now))


def _sheet(path: str, made: Made, cut: Cut, address: Address, source: str, own: Own, installed: str | None) -> place.Sheet:
    now = datetime.now(UTC).isoformat()
    try:
        with open(source, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        digest = hashlib.sha256().hexdigest()
    return place.Sheet(
        path, source, address.thread_id, address.checkpoint_id, made.session, made.records, cut.prompt, now, made.format,
        digest, own.first, cut.names.get(made.replaces or "", made.replaces), _hash_of(cut.one, made.replaces),
        made.copies,
        made.own_at,
        own.last,
        made.commands,
        installed,
    )  # fmt: skip


def _hash_of(one: Transcript, turn: str | None) -> str:
    found = one.woven.turns.get(turn or "")
    return hashlib.sha256(one.raw(found)).hexdigest() if found is not None else ""


def _read(path: str) -> Transcript | None:
    """What our own reader makes of a stored file."""
    found = look_at(path)
    if found is None:
        return None
    one = Transcript(Group(found.session or path, [found], [], 0.0))
    one.look()
    return one


def _surprises(stored: Transcript | None, made: Made, cut: Cut) -> list[str]:
    """The stored file through our own reader, against what was wanted."""
    if stored is None:
        return ["what was stored is not read as a session"]
    folded = stored.folded()
    head = folded.woven.head
    found = _sent(folded, head, made.format) if head is not None else iter(())
    told = []
    if made.format == "claude-code" and len(folded.woven.heads()) > 1:
        told.append(f"the stored session has {len(folded.woven.heads())} branches, not one")
    wanted = stored_count = 0
    first = ""
    for at, (want, got) in enumerate(zip_longest(_plain(cut.wanted, made), _plain(found, made))):
        wanted += want is not None
        stored_count += got is not None
        if want != got and want is not None and got is not None and not first:
            name = next(name for name in ("type", "content", "tool_calls", "tool_call_id", "status") if want[name] != got[name])
            first = f"message {at} of the fork: its {name} is not what was to be stored"
    if wanted != stored_count:
        told.append(f"{stored_count} messages were read back, {wanted} were to be stored")
    return [*told, first] if first else told


def _sent(folded: Folded, head: str, kind: str) -> Iterator[Message]:
    """What a program would send of a session: the messages on the way to its head, read turn by turn."""
    turns = folded.branch(head)
    way = pieces.on_the_way(folded, turns)
    for turn in turns:
        branch = pieces.of_branch(folded, [turn])
        beside = _beside(branch, way) if kind in _KEPT else set()
        yield from (line.message for line in branch.lines if id(line.parts[0][0]) not in beside)


def _plain(messages: Iterable[Message], made: Made) -> Iterator[Message]:
    """What counts of messages: who says what; answers that stand together as one, ids left out."""
    held: Message | None = None
    for message in messages:
        kind = message.get("type")
        if kind == "tool" and message.get("name") == "agent":
            kind = "human"  # the report of a subagent stands in a prompt's place
        calls: list[Any] = [(one.get("id"), one.get("name"), one.get("args")) for one in message.get("tool_calls") or ()]
        one: Message = {
            "type": kind, "content": pieces.content_blocks(message) or message.get("content") or [], "tool_calls": calls,
            "tool_call_id": message.get("tool_call_id"), "status": message.get("status"),
        }  # fmt: skip
        if made.format in ("openai-items", "openai-responses", "chat") and kind == "tool":
            one["status"] = None  # these have no such field
        if kind == "ai" and held is not None and held["type"] == "ai":
            held["content"] = [*held["content"], *one["content"]]
            held["tool_calls"] = [*held["tool_calls"], *calls]
            continue
        if held is not None:
            yield held
        held = one
    if held is not None:
        yield held


class Own(Struct):
    """Turns of a fork by the ids that they have in the tree of its source."""

    first: str | None = None
    """The first that is not the source's."""
    last: str | None = None
    parent: str | None = None
    """Of the last."""


def _own(stored: Transcript | None, made: Made) -> Own:
    woven = stored.woven if stored is not None else None
    if woven is None or woven.head is None:
        return Own()
    at_of = {record.id: at for at, record in enumerate(woven.files[0].records)}

    def name(turn: str | None) -> str | None:
        if turn not in woven.turns:
            return None
        record = woven.records[woven.turns[turn].records[0]]
        at = at_of[record.id]
        return (made.records[at] if at < len(made.records) else None) or own_id(made.session, record, made.format, at)

    fresh = next((at for at, known in enumerate(made.records) if known is None and at < len(at_of)), None)
    own = woven.turn_of[woven.place[woven.files[0].records[fresh].id]] if fresh is not None else None
    return Own(name(own), name(woven.head), name(woven.turns[woven.head].parent))
