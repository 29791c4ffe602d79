"""One branch of a transcript, read part by part: its turns as a conversation, its files, its todos, what it took.

Only the turns that are asked for are decoded. What files and lists need of each turn is small; it is kept for every turn that
was looked at once, as long as the transcript does not grow.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from weakref import WeakKeyDictionary

from msgspec import Struct

from studio.explain.told import Beat, CallState, Said, Tokens, Touch, TouchState, told
from studio.model import Address, Value
from studio.render import patches, toolwords
from studio.stores.transcripts import content, costs
from studio.stores.transcripts.codex import SHELLS, patch_in
from studio.stores.transcripts.fold import Folded, apply
from studio.stores.transcripts.fold import Said as Decoded
from studio.stores.transcripts.transcript import Transcript
from studio.stores.transcripts.turns import Turn
from studio.times import seconds_between

BIG = 4_000_000
"""Bytes of a turn whose words are not looked at for a mere line of it."""
LARGEST_IMAGE = 40_000_000
PICTURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
"""Types of pictures that are shown, with their first bytes."""
_STATES: Mapping[str, TouchState] = {"read": "read", "created": "created", "edited": "edited", "deleted": "deleted"}
_FILE_TOOLS = content.EDITS | {"Read", "apply_patch"}

Doing = Literal["added", "started", "done", "reopened", "removed", "reworded"]


class Todo(Struct, frozen=True):
    key: str
    text: str
    status: str

    @property
    def is_done(self) -> bool:
        return self.status in toolwords.DONE


class TodoChange(Struct, frozen=True):
    what: Doing
    text: str


class TodoStep(Struct, frozen=True):
    """A turn that changed the list, with the whole list after it."""

    address: Address
    changes: tuple[TodoChange, ...]
    todos: tuple[Todo, ...]


class FileEvent(Struct, frozen=True):
    """What a turn did to a file; the patch is read on demand."""

    address: Address
    touch: Touch


class Spent(Struct, frozen=True):
    """What one turn took."""

    address: Address
    tokens: Tokens
    kind: str = "loop"


class Brief(Struct, frozen=True):
    """A turn in a line."""

    kind: str
    """input, loop or compaction."""
    words: str = ""
    """Raw: the first words that were said, or what its first call is about."""
    call: tuple[str, Value] | None = None
    """The first call: (tool, arguments)."""
    more_calls: int = 0
    failed: int = 0
    """Calls that failed."""
    open: int = 0
    retry: bool = False
    error: bool = False
    """The answer is an error of the service."""
    plus: int = 0
    minus: int = 0
    cwd: str = ""
    agent: bool = False
    """It belongs to a subagent."""


class _Light(Struct):
    """What is kept of each turn that was looked at."""

    touches: tuple[Touch, ...] = ()
    """Without their patches."""
    lists: tuple[tuple[str, Any], ...] = ()


_lock = threading.Lock()
_lights: WeakKeyDictionary[Folded, dict[str, _Light]] = WeakKeyDictionary()
_tracks: WeakKeyDictionary[Folded, dict[str, tuple[Address, ...]]] = WeakKeyDictionary()


class Branch:
    """The turns from the first one to the one that was asked for. Holds no text."""

    def __init__(self, one: Transcript, turn: Turn) -> None:
        self.one, self.turn = one, turn
        self.folded = one.folded()
        self.turns = self.folded.branch(turn.id)
        self.cwd = cwd_of(one)

    def __len__(self) -> int:
        return len(self.turns)

    def address(self, turn: Turn) -> Address:
        return Address(self.one.thread_id, turn.ns, turn.id)

    # ---- the conversation

    def beats(self, start: int, stop: int) -> list[Beat]:
        """The turns of a stretch of the branch, as they are read."""
        return [self.beat(index) for index in range(max(0, start), min(stop, len(self.turns)))]

    def beat(self, index: int) -> Beat:
        turn = self.turns[index]
        above = self.turns[index - 1] if index else None
        records = self.folded.woven.records
        model = next((name for at in turn.records if (name := records[at].model)), None)
        return Beat(
            self.address(turn),
            tuple(self.said(turn)),
            index,
            Tokens(*turn.tokens) if any(turn.tokens) else None,
            model,
            seconds_between(above.last_at or above.at, turn.last_at or turn.at) if above is not None else None,
        )

    def said(self, turn: Turn) -> list[Said]:
        decoded = self.folded.said(turn)
        by_call = _touched(decoded)
        return told(
            decoded.messages,
            touches=lambda ident, name, args, state: by_call.get(ident) or refused(ident, name, args, state),
            tracks=self.tracks,
            failed=turn.failed,
        )

    def tracks(self, call: str) -> tuple[Address, ...]:
        """Where the lanes begin that a call started."""
        with _lock:
            found = _tracks.get(self.folded)
        if found is None:
            firsts: dict[str, Address] = {}
            for turn in self.folded.woven.turns.values():
                if turn.ns and turn.ns not in firsts:
                    firsts[turn.ns] = self.address(turn)
            found = {}
            for lane in self.folded.woven.lanes.values():
                if lane.call is not None and lane.ns in firsts:
                    found[lane.call] = (*found.get(lane.call, ()), firsts[lane.ns])
            with _lock:
                _tracks[self.folded] = found
        return found.get(call, ())

    # ---- files and lists

    def _light(self, turn: Turn) -> _Light:
        with _lock:
            kept = _lights.setdefault(self.folded, {})
        found = kept.get(turn.id)
        if found is None:
            found = kept[turn.id] = self._look(turn) if self._may_tell(turn) else _Light()
        return found

    def _may_tell(self, turn: Turn) -> bool:
        names = {name for _, name in turn.calls}
        tells = names & (_FILE_TOOLS | content.TODOS | content.TASKS | SHELLS) or any(name.startswith("mcp__") for name in names)
        return bool(tells) or self.folded.may_change(turn)

    def _look(self, turn: Turn) -> _Light:
        decoded = self.folded.said(turn)
        touched = [touch for one in _all_touches(decoded) for touch in one]
        bare = tuple(
            Touch(one.path, one.state, one.call, "", one.plus, one.minus, one.moved_to, one.by_person) for one in touched
        )
        return _Light(bare, tuple((what, detail) for what, _, detail in decoded.effects if what in ("todos", "task")))

    def files(self) -> dict[str, list[FileEvent]]:
        """Path -> what happened to it on this branch, oldest first; the paths in the order of their last event, newest first."""
        found: dict[str, list[FileEvent]] = {}
        for turn in self.turns:
            for touch in self._light(turn).touches:
                events = found.pop(touch.path, [])
                events.append(FileEvent(self.address(turn), touch))
                found[touch.path] = events
        return dict(reversed(found.items()))

    def touches(self) -> tuple[Touch, ...]:
        """What the last turn of the branch did to files, with the patches."""
        return tuple(touch for one in _all_touches(self.folded.said(self.turn)) for touch in one)

    def todos(self) -> list[TodoStep]:
        """The turns that changed the list of todos or tasks, oldest first."""
        values: dict[str, Any] = {}
        found: list[TodoStep] = []
        before: tuple[Todo, ...] = ()
        for turn in self.turns:
            lists = self._light(turn).lists
            if not lists:
                continue
            for what, detail in lists:
                apply(values, what, detail)
            after = _todos(values)
            changes = _changed(before, after)
            if changes:
                found.append(TodoStep(self.address(turn), changes, after))
            before = after
        return found

    # ---- what it took

    def spent(self) -> list[Spent]:
        """What each turn took, to the end of the line that goes on from here; `len(self)` says where this turn stands."""
        return [*(self._spent(turn) for turn in self.turns), *(self._spent(turn) for turn in self._onward())]

    def _spent(self, turn: Turn) -> Spent:
        return Spent(self.address(turn), Tokens(*turn.tokens), turn.kind)

    def _onward(self) -> Iterator[Turn]:
        """To the head where it lies on the way, else along the first children."""
        turns, head = self.folded.woven.turns, self.folded.woven.head
        towards = {turn.id for turn in self.folded.branch(head)} if head is not None else set()
        at, seen = self.turn, 0
        while at.children and seen < len(turns):
            at, seen = turns[next((child for child in at.children if child in towards), at.children[0])], seen + 1
            yield at

    def cost(self) -> Any:
        """Up to this turn, as the channel of the state has it: recorded, or an estimate that says so."""
        held: Any = None
        for turn in self.turns:
            held = costs.charged(held, self.folded.woven, turn, self.folded.beside(turn), self.folded.prices)
        return held

    # ---- pictures

    def picture(self, digest: str) -> tuple[str, bytes] | None:
        """(type, bytes) of a picture that this turn holds; None where there is none of a type that is shown."""
        for at in self.turn.records:
            for kind, data in _binaries(self.folded.document(self.folded.woven.records[at])):
                if len(data) <= LARGEST_IMAGE and content.chip(data, kind)["sha256_of_base64"] == digest:
                    return _picture(data)
        return None


def brief(one: Transcript, turn: Turn) -> Brief:
    """A turn in a line."""
    agent = bool(turn.ns)
    failed = sum(1 for result in turn.results.values() if result)
    waiting = sum(1 for ident, _ in turn.calls if ident not in turn.results)
    counted = {"failed": failed, "open": waiting if turn.kind == "loop" else 0, "agent": agent, "error": turn.failed}
    if turn.size > BIG:
        return Brief(turn.kind, more_calls=max(0, len(turn.calls) - 1), **counted)  # type: ignore[arg-type]
    decoded = one.folded().said(turn)
    items = told(decoded.messages)
    call = next(((found.name, _head(found.args)) for item in items for found in item.calls), None)
    first = {"loop": ("answer", "retry"), "compaction": ("compacted", "summary"), "input": ("prompt", "result", "command")}[
        turn.kind
    ]
    words = ""
    for kind in (*first, "prompt", "result", "retry", "command", "note", "context"):
        words = next((text for item in items if item.kind == kind and (text := _first_text(item))), "")
        if words:
            break
    touched = [touch for found in _all_touches(decoded) for touch in found if touch.state != "failed"]
    return Brief(
        turn.kind,
        words[:600],
        call,
        max(0, len(turn.calls) - 1),
        retry=bool(items) and all(item.kind == "retry" for item in items),
        plus=sum(touch.plus for touch in touched),
        minus=sum(touch.minus for touch in touched),
        cwd=cwd_of(one),
        **counted,  # type: ignore[arg-type]
    )


def _head(args: Value) -> Value:
    """Arguments with long texts cut: a line of them is all that is shown."""
    if isinstance(args, str):
        return args[: toolwords.LOOKED_AT]
    if not isinstance(args, dict):
        return args
    return {key: value[: toolwords.LOOKED_AT] if isinstance(value, str) else value for key, value in args.items()}


def _first_text(item: Said) -> str:
    found = next((piece.text for piece in item.pieces if piece.kind == "text" and piece.text.strip()), "")
    if item.kind in ("command", "note"):
        found = item.name or found
    return found.strip() or next((f"[{piece.text or 'binary'}]" for piece in item.pieces if piece.kind == "binary"), "")


def cwd_of(one: Transcript) -> str:
    files = one.woven.files
    found = next((file.facts.get("cwd") for file in files if isinstance(file.facts.get("cwd"), str)), None)
    if found is None:
        state = next(
            (file.state for file in files if isinstance(file.state, dict) and isinstance(file.state.get("told"), dict)), None
        )
        found = state["told"].get("cwd") if state is not None else None
    return found if isinstance(found, str) else ""


# ---- files


def _touched(decoded: Decoded) -> dict[str, tuple[Touch, ...]]:
    """Call -> what it did to files."""
    args = {call["id"]: call.get("args") for message in decoded.messages for call in _calls_of(message)}
    found: dict[str, tuple[Touch, ...]] = {}
    for what, ident, detail in decoded.effects:
        if what == "file" and ident is not None:
            found[ident] = (*found.get(ident, ()), _touch(ident, detail[0], detail[1], args.get(ident)))
    return found


def _all_touches(decoded: Decoded) -> Iterator[tuple[Touch, ...]]:
    """Of each call, those that were refused too."""
    by_call = _touched(decoded)
    failed = {message.get("tool_call_id") for message in decoded.messages if message.get("status") == "error"}
    for message in decoded.messages:
        for call in _calls_of(message):
            ident = call.get("id")
            if ident in by_call:
                yield by_call[ident]
            elif ident in failed:
                yield refused(str(ident), str(call.get("name")), call.get("args"), "failed")


def _calls_of(message: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    held = message.get("tool_calls")
    return [call for call in held if isinstance(call, dict) and isinstance(call.get("id"), str)] if isinstance(held, list) else []


def _touch(ident: str, path: str, change: Mapping[str, Any], args: Any) -> Touch:
    patch = change.get("patch") or ""
    if patch and "@@" not in patch:
        patch = proposed(args) or patch
    plus, minus = patches.counts(patch)
    moved = change.get("moved_to")
    state = _STATES.get(str(change.get("state")), "edited")
    return Touch(path, state, ident, patch, plus, minus, moved if isinstance(moved, str) else None, bool(change.get("by_person")))


def refused(ident: str, name: str, args: Value, state: CallState) -> tuple[Touch, ...]:
    """What a call that failed, or was not answered, would have done to a file."""
    if state == "answered" or name not in _FILE_TOOLS | SHELLS:
        return ()
    text = patch_in({"args": args, "name": name})
    if text:
        return tuple(Touch(path, "failed", ident, str(one.get("patch", ""))) for path, one in content.patched(text))
    given = args if isinstance(args, dict) else {}
    path = given.get("file_path") or given.get("notebook_path")
    return (Touch(path, "failed", ident, proposed(given)),) if name in _FILE_TOOLS and isinstance(path, str) else ()


def proposed(args: Any) -> str:
    """The patch that the arguments of an edit ask for."""
    given = args if isinstance(args, dict) else {}
    several = given.get("edits")
    edits = [one for one in several if isinstance(one, dict)] if isinstance(several, list) else [given]
    found = []
    for one in edits:
        old, new = one.get("old_string"), one.get("new_string")
        if isinstance(old, str) and isinstance(new, str):
            found.append(patches.of_texts(old[: content.PATCH_LIMIT], new[: content.PATCH_LIMIT]))
    return "\n@@\n".join(found)


# ---- lists


def _todos(values: Mapping[str, Any]) -> tuple[Todo, ...]:
    """Todos, then tasks, in their order."""
    found = []
    for at, one in enumerate(values.get("todos") or ()):
        text = str(one.get("content") or one.get("text") or "")
        found.append(Todo(str(one.get("id") or text or at), text, str(one.get("status", "pending"))))
    for number, one in (values.get("tasks") or {}).items():
        found.append(Todo(f"#{number}", str(one.get("subject") or f"task {number}"), str(one.get("status", "pending"))))
    return tuple(found)


def _changed(before: Sequence[Todo], after: Sequence[Todo]) -> tuple[TodoChange, ...]:
    old, new = {one.key: one for one in before}, {one.key: one for one in after}
    found = []
    for one in after:
        was = old.get(one.key)
        if was is None:
            found.append(TodoChange(_doing(one, "added"), one.text))
            continue
        if was.text != one.text:
            found.append(TodoChange("reworded", one.text))
        if was.status != one.status:
            found.append(TodoChange(_doing(one, "reopened"), one.text))
    found += [TodoChange("removed", one.text) for one in before if one.key not in new]
    return tuple(found)


def _doing(one: Todo, otherwise: Doing) -> Doing:
    return "done" if one.is_done else "started" if one.status == "in_progress" else otherwise


# ---- pictures


def _binaries(value: Any) -> Iterator[tuple[Any, str]]:
    """(type, base64) of everything binary in a record."""
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, dict):
            held = one.get("data") or one.get("base64") or one.get("result")
            if isinstance(held, str) and len(held) > 64:
                yield one.get("media_type") or one.get("type"), held
            rest += one.values()
        elif isinstance(one, list):
            rest += one
        elif isinstance(one, str) and one.startswith("data:") and ";base64," in one[:100]:
            kind, _, data = one[5:].partition(";base64,")
            yield kind, data


def _picture(data: str) -> tuple[str, bytes] | None:
    """The type is told by the first bytes alone: what a record calls its content is not believed."""
    try:
        raw = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return None
    for kind, first in PICTURES.items():
        if raw.startswith(first) and (kind != "image/webp" or raw[8:12] == b"WEBP"):
            return kind, raw
    return None
