"""The state at every turn: what each one says and changes, folded along its branch.

Messages are read from the file when asked for. The small channels are folded once for each turn and shared between turns that
change nothing, so a state costs no more than the messages in it.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from studio.cache import LRU
from studio.codec.lazylist import LazyList
from studio.prices import Prices
from studio.stores.transcripts import content, costs
from studio.stores.transcripts.names import Names
from studio.stores.transcripts.record import NOT_COUNTED, Reader, Record
from studio.stores.transcripts.turns import Turn, Woven

SAID_KEPT, SAID_BYTES = 4096, 8_000_000
LARGE = 16_000_000
"""Stored bytes of a branch from which on its messages are read when asked for, one turn after the other."""
STATES_KEPT, STATES_BYTES = 2048, 16_000_000
KEPT_EACH = 64
"""Turns of a branch of which one keeps its small channels."""
START = "__start__"
MODEL = "assistant"
"""What the task is called that gives an answer."""
LOOKS = Names(
    (*content.EDITS, *content.TASKS, *content.TODOS, "Read", "shell", "exec_command", "local_shell", "apply_patch", "exec")
)
"""Tools whose calls may change a channel."""
COUNTS = ("input", "output", "cache_read", "cache_creation")


class Said(Struct):
    """A turn, decoded: its messages, and what else it did as (what, call, detail)."""

    messages: list[dict[str, Any]]
    effects: list[tuple[str, str | None, Any]]
    size: int


class Messages(LazyList):
    """The messages of a large branch. The marks are the turns."""

    def __init__(self, folded: Folded, branch: Sequence[Turn]) -> None:
        self._folded = folded
        self._turns = branch
        self._ends = array("q")
        end = 0
        marks: list[str] = []
        for turn in branch:
            count = folded.count(turn)
            marks += [turn.id] * count
            end += count
            self._ends.append(end)
        super().__init__(marks)

    def source(self) -> object:
        return self._folded

    def item(self, at: int) -> Any:
        place = bisect_right(self._ends, at)
        said = self._folded.said(self._turns[place]).messages
        return said[at - (self._ends[place - 1] if place else 0)]

    def __iter__(self) -> Iterator[Any]:
        for turn in self._turns:
            yield from self._folded.said(turn).messages


class Held(Struct):
    """The messages of the state that was asked for last; `ends` says where those of each turn end."""

    turns: list[str]
    ends: list[int]
    messages: list[dict[str, Any]]


class Folded:
    """States of one woven transcript. Thread-safe."""

    def __init__(self, woven: Woven, readers: Sequence[Reader], prices: Prices | None = None) -> None:
        self.woven, self.readers, self.prices = woven, readers, prices
        self._lock = threading.RLock()
        self._said: LRU[str, Said] = LRU(SAID_KEPT, SAID_BYTES)
        self._last = Held([], [], [])
        self._small: LRU[str, dict[str, Any]] = LRU(STATES_KEPT, STATES_BYTES)
        self._modes: dict[str, list[tuple[str, Any]]] | None = None

    # ---- one turn

    def document(self, record: Record) -> Any:
        return self.woven.files[record.file].source.json_at(record.offset, record.length)

    def said(self, turn: Turn) -> Said:
        with self._lock:
            kept = self._said.get(turn.id)
        if kept is None:
            kept = self._decode(turn)
            with self._lock:
                self._said.put(turn.id, kept, kept.size)
        return kept

    def _decode(self, turn: Turn) -> Said:
        woven = self.woven
        ai: dict[str, Any] | None = None
        rest: list[dict[str, Any]] = []
        documents: list[tuple[Record, Any]] = []
        size = 400
        for at in turn.records:
            record = woven.records[at]
            if record.kind == "note":
                continue
            document = self.document(record)
            documents.append((record, document))
            size += record.length
            for message in self.readers[record.file].messages(record, document):
                if record.more is not None and "said_as" in record.more:
                    message["id"] = record.more["said_as"]
                if message.get("type") == "ai" and turn.kind == "loop":
                    ai = message if ai is None else merged(ai, message)
                else:
                    rest.append(message)
        for note in turn.queued:
            text = note.value[1] if isinstance(note.value, tuple) else ""
            ident = f"queued:{note.record.file}:{note.record.line}"
            if note.what == "command":
                rest.append({"type": "system", "id": ident, "name": "context", "content": content.cut(text)})
                continue
            rest.append({"type": "human", "id": ident, "content": content.cut(text), "additional_kwargs": {"queued": True}})
        if ai is not None:
            if any(turn.tokens):
                ai["usage_metadata"] = usage(turn)
            names = {call["id"]: call["name"] for call in ai.get("tool_calls") or ()}
            for message in rest:
                if message["type"] == "tool" and message.get("tool_call_id") in names:
                    message.setdefault("name", names[message["tool_call_id"]])
        messages = [ai, *rest] if ai is not None else rest
        calls = {call["id"]: call for call in (ai or {}).get("tool_calls") or () if isinstance(call.get("id"), str)}
        effects: list[tuple[str, str | None, Any]] = []
        for record, document in documents:
            effects += self.readers[record.file].effects(record, document, calls)
        return Said(messages, effects, size)

    # ---- states

    def branch(self, ident: str) -> list[Turn]:
        """From the root to a turn."""
        turns = self.woven.turns
        out: list[Turn] = []
        at: str | None = ident
        while at is not None and at in turns and not (out and out[-1].lost):
            out.append(turns[at])
            at = turns[at].parent
        return out[::-1]

    def messages(self, ident: str) -> list[dict[str, Any]]:
        return [message for turn in self.branch(ident) for message in self.said(turn).messages]

    def small(self, ident: str) -> dict[str, Any]:
        """The channels beside the messages at a turn; nobody changes them."""
        path: list[Turn] = []
        base: dict[str, Any] = {}
        turns = self.woven.turns
        at: str | None = ident
        while at is not None and at in turns:
            kept = self._small.get(at)
            if kept is not None:
                base = kept
                break
            path.append(turns[at])
            at = turns[at].parent if not turns[at].lost else None
        for left in range(len(path) - 1, -1, -1):
            base = self._step(path[left], base)
            if left % KEPT_EACH == 0:
                self._keep(path[left], base)
        return base

    def _keep(self, turn: Turn, small: dict[str, Any]) -> None:
        parts = sum(len(value) for value in small.values() if isinstance(value, (dict, list)))
        self._small.put(turn.id, small, 400 + 200 * parts)

    def _step(self, turn: Turn, base: dict[str, Any], said: Said | None = None) -> dict[str, Any]:
        values = dict(base)
        records = [self.woven.records[at] for at in turn.records]
        for record in records:
            for name in ("cwd", "git_branch", "permission_mode", "model"):
                found = (record.more or {}).get(name)
                if found:
                    values[name] = found
            if record.model:
                values["model"] = record.model
        beside = list(self.beside(turn))
        values.update((name, value) for name, value in beside if name != "cost_usd")
        if any(turn.tokens):
            held = values.get("tokens") or dict.fromkeys(COUNTS, 0)
            values["tokens"] = {name: held[name] + count for name, count in zip(COUNTS, turn.tokens, strict=True)}
            values["context_tokens"] = turn.tokens[0] + turn.tokens[2] + turn.tokens[3]
        cost = costs.charged(values.get("cost_usd"), self.woven, turn, beside, self.prices)
        if cost is not None:
            values["cost_usd"] = cost
        if self.may_change(turn):
            for what, _, detail in said.effects if said is not None else self.effects(turn):
                apply(values, what, detail)
        return values

    def effects(self, turn: Turn) -> list[tuple[str, str | None, Any]]:
        """What a turn did beside its messages, which are not made for that: of its records only such calls and their results
        are read."""
        kept = self._said.get(turn.id)
        if kept is not None:
            return kept.effects
        looked = {ident for ident, name in turn.calls if _looks(name)}
        calls: dict[str, dict[str, Any]] = {}
        answers: list[tuple[Record, Any]] = []
        for at in turn.records:
            record = self.woven.records[at]
            asks = record.kind == "answer" and any(ident in looked for ident, _ in record.calls)
            replies = any(ident in looked for ident, _ in record.results)
            document = self.document(record) if asks or replies else None
            for message in self.readers[record.file].messages(record, document) if asks else ():
                found = message.get("tool_calls") if message.get("type") == "ai" else None
                calls.update((call["id"], call) for call in found or () if isinstance(call.get("id"), str))
            if replies:
                answers.append((record, document))
        return [one for record, document in answers for one in self.readers[record.file].effects(record, document, calls)]

    def count(self, turn: Turn) -> int:
        """How many messages a turn has, told by the index where that knows."""
        found, answers = len(turn.queued), 0
        for at in turn.records:
            record = self.woven.records[at]
            if record.shown == NOT_COUNTED:
                return len(self.said(turn).messages)
            if record.kind == "answer":
                answers = 1
            else:
                found += record.shown
        return found + answers

    def may_change(self, turn: Turn) -> bool:
        return any(_looks(name) for _, name in turn.calls) or any(
            (self.woven.records[at].more or {}).get("changes") for at in turn.records
        )

    def beside(self, turn: Turn) -> Iterator[tuple[str, Any]]:
        """What notes between the records of the tree set: permission mode, the running cost."""
        if self._modes is None:
            modes: dict[str, list[tuple[str, Any]]] = {}
            names = {"permission-mode": "permission_mode", "cost-state": "cost_usd"}
            for file in self.woven.files:
                for note in file.notes:
                    name = names.get(note.what)
                    at = self.woven.place.get(note.record.parent or "")
                    if name is not None and note.value is not None and at is not None:
                        modes.setdefault(self.woven.turn_of[at], []).append((name, note.value))
            self._modes = modes
        yield from self._modes.get(turn.id, ())

    def values(self, ident: str) -> dict[str, Any]:
        """The whole state at a turn."""
        branch = self.branch(ident)
        if sum(turn.size for turn in branch) > LARGE:
            return {"messages": Messages(self, branch), **self.small(ident)}
        with self._lock:
            held = self._last
        same = 0  # what the last state has in common with this one is not read again, and is the same in memory
        while same < min(len(branch), len(held.turns)) and branch[same].id == held.turns[same]:
            same += 1
        ends = held.ends[:same]
        messages = held.messages[: ends[-1]] if ends else []
        small = self.small(branch[same - 1].id) if same else {}
        for turn in branch[same:]:
            said = self.said(turn)
            messages += said.messages
            ends.append(len(messages))
            kept = self._small.get(turn.id)
            if kept is None:
                kept = self._step(turn, small, said)
                self._keep(turn, kept)
            small = kept
        with self._lock:
            self._last = Held([turn.id for turn in branch], ends, messages)
        return {"messages": list(messages), **small}


def _looks(name: str) -> bool:
    return name in LOOKS or name.startswith("mcp__")


def merged(one: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two lines of one answer as one message."""
    parts = [as_blocks(one.get("content")), as_blocks(more.get("content"))]
    blocks = [*parts[0], *parts[1]]
    only = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], dict) and blocks[0].get("type") == "text" else {}
    made = {**one, "content": only["text"] if isinstance(only.get("text"), str) else blocks or ""}
    made["tool_calls"] = [*(one.get("tool_calls") or ()), *(more.get("tool_calls") or ())]
    meta = {**(one.get("response_metadata") or {}), **(more.get("response_metadata") or {})}
    if meta:
        made["response_metadata"] = meta
    return made


def as_blocks(held: Any) -> list[Any]:
    if isinstance(held, list):
        return held
    return [{"type": "text", "text": held}] if isinstance(held, str) and held else []


def usage(turn: Turn) -> dict[str, Any]:
    fresh, output, read, made = turn.tokens
    whole = fresh + read + made
    details = {"cache_read": read, "cache_creation": made}
    return {"input_tokens": whole, "output_tokens": output, "total_tokens": whole + output, "input_token_details": details}


def apply(values: dict[str, Any], what: str, detail: Any) -> None:
    """Set one effect; what was there before is not changed, as other turns share it."""
    if what == "todos":
        values["todos"] = detail
    elif what == "task":
        number, change = detail
        tasks = dict(values.get("tasks") or {})
        if change.get("status") == "deleted":
            tasks.pop(number, None)
        else:
            held = {**tasks.get(number, {})}
            for name, value in change.items():
                if name in ("addBlocks", "addBlockedBy") and isinstance(value, list):
                    mine, theirs = ("blocks", "blockedBy") if name == "addBlocks" else ("blockedBy", "blocks")
                    held[mine] = list(dict.fromkeys([*held.get(mine, ()), *map(str, value)]))
                    for other in map(str, value):
                        if other in tasks:
                            tasks[other] = {**tasks[other], theirs: list(dict.fromkeys([*tasks[other].get(theirs, ()), number]))}
                else:
                    held[name] = value
            tasks[number] = held
        values["tasks"] = tasks
    elif what == "file":
        path, change = detail
        files = dict(values.get("files") or {})
        held = files.get(path, {})
        if change["state"] == "read":
            if not held:
                files[path] = change
        else:
            state = "created" if held.get("state") == "created" and change["state"] == "edited" else change["state"]
            files[path] = {**change, "state": state, "edits": held.get("edits", 0) + 1}
        values["files"] = files
    elif what == "set":
        values.update(detail)
