"""One transcript with all its files: indexed when first looked at, read on as it grows."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from studio.errors import OpenError
from studio.model import Problem
from studio.prices import Prices
from studio.quiet import keep_for_good, no_collection
from studio.stores.transcripts import costs, kept
from studio.stores.transcripts.adopted import Fork, adopt
from studio.stores.transcripts.claude import said
from studio.stores.transcripts.finding import Group
from studio.stores.transcripts.fold import COUNTS, Folded
from studio.stores.transcripts.record import Indexed, Reader, Record, Tokens
from studio.stores.transcripts.source import Source, loads
from studio.stores.transcripts.turns import AGENT_TOOLS, Lane, Turn, Woven, weave

COST = "cost_usd"
MANY = 20_000
"""Records of a transcript that are worth hiding from the garbage collector."""
CHOSEN = "chosen with --active"


class Transcript:
    """Thread-safe; what it hands out does not change any more: a growth makes new ones."""

    def __init__(self, group: Group) -> None:
        self.thread_id = group.thread_id
        self.group = group
        self._lock = threading.RLock()
        self._token: object = None
        self._indexed: dict[str, tuple[Indexed, Reader]] = {}
        self._folded: Folded | None = None
        self._arrived: dict[str, int] = {}
        self._depth: dict[str, int] = {}
        self._callers_of: dict[str, tuple[str, str, str]] = {}
        self.spaces: tuple[str, ...] = ("",)
        self.prices: Prices | None = None
        """By which answers are estimated whose cost nobody recorded."""
        self.chosen: str | None = None
        """The turn whose branch a person took for the active one."""

    # ---- reading

    def paths(self) -> list[str]:
        return [one.path for one in (*self.group.files, *self.group.agents)]

    def token(self) -> tuple[object, ...]:
        return tuple(stat_of(path) for path in self.paths())

    def look(self) -> Folded:
        """As of now. Raises OpenError where no file of it can be read."""
        with self._lock:
            token = self.token()
            if self._folded is None or token != self._token:
                with no_collection():
                    self._weave()
                    if self._folded is not None and len(self._folded.woven.records) > MANY:
                        keep_for_good()
                self._token = token
            assert self._folded is not None
            return self._folded

    @property
    def is_read(self) -> bool:
        return self._folded is not None

    def as_read(self, now: Sequence[object]) -> bool:
        """Whether it was read from files that were as they are now."""
        return self._folded is not None and tuple(now) == self._token

    def let_go(self) -> None:
        """Forget what was read; it is read again when asked for."""
        with self._lock:
            self._folded, self._indexed = None, {}

    def beside(self) -> list[str]:
        """The files that say by which call a subagent was started."""
        return [one.path.removesuffix(".gz").removesuffix(".jsonl") + ".meta.json" for one in self.group.agents]

    def folded(self) -> Folded:
        """As of the last look."""
        return self._folded or self.look()

    @property
    def woven(self) -> Woven:
        return self.folded().woven

    def _weave(self) -> None:
        files: list[Indexed] = []
        readers: list[Reader] = []
        refused: OpenError | None = None
        for found in (*self.group.files, *self.group.agents):
            try:
                indexed, reader = self._index(found.path, found.format, found.agent, found.fork)
            except OpenError as error:
                refused = error
                continue
            files.append(indexed)
            readers.append(reader)
        if not files and refused is not None:
            raise refused
        forks = {one.path: one.fork for one in self.group.files if one.fork is not None}
        link = getattr(readers[0], "link", None) if readers else None
        if link is not None:
            link([file for file in files if file.source.path not in forks])
        for file in files:
            if (fork := forks.get(file.source.path)) is not None:
                file.ours = True
                adopt(file, fork)
        woven = weave(files, self._callers(), lambda record: _prompts(files, record))
        if self.chosen is not None:
            woven.take(self.chosen, CHOSEN)
        for file in files:
            woven.problems += file.source.problems
        if not woven.turns:
            name = files[0].source.name if files else self.thread_id
            counted = sum(file.total for file in files)
            if self.is_empty():
                woven.problems.append(Problem("empty-file", name, "a file of zero bytes: a start that led to nothing"))
            else:
                woven.problems.append(Problem("no-messages", name, f"no messages, {counted} other records{_title(files)}"))
        for ident in woven.turns:
            self._arrived.setdefault(ident, len(self._arrived) + 1)
        self._depth = {}
        self._callers_of = {lane.ns: caller for lane in woven.lanes.values() if (caller := _caller(woven, lane)) is not None}
        self.spaces = tuple(sorted({turn.ns for turn in woven.turns.values()})) or ("",)
        self._folded = Folded(woven, readers, self.prices)

    def _index(self, path: str, kind: str, agent: str | None, fork: Fork | None = None) -> tuple[Indexed, Reader]:
        from studio.stores.transcripts.readers import reader_of

        held = self._indexed.get(path)
        was_kept = 0
        is_whole = fork is None or fork.own_at == (0, 0)  # of a fork, its own records may do
        if held is None and is_whole and (known := kept.load(path, kind, agent)) is not None:
            held = self._indexed[path] = known[0], reader_of(kind)
            was_kept = held[0].source.complete
            if known[1]:
                return held
        unwoven = held is None or bool(was_kept)
        if held is not None and stat_of(path) == held[0].source.stat:
            return held
        if held is not None and held[0].source.goes_on() and kind == "claude-code":
            indexed, reader = held
            start, lines = indexed.source.complete, indexed.source.lines
            indexed.records = [one for one in indexed.records if one.offset < start]
            indexed.notes = [one for one in indexed.notes if one.record.offset < start]
            indexed.problems = [one for one in indexed.problems if 0 < one[1] <= lines]
            go_on = True
        else:
            indexed, reader, go_on = Indexed(kind, Source(path), agent=agent), reader_of(kind), False
            if fork is not None and not is_whole:
                (indexed.source.complete, indexed.source.lines), go_on = fork.own_at, True
        indexed.source.read(partial(reader.take, indexed), go_on=go_on)
        reader.finish(indexed)
        self._indexed[path] = (indexed, reader)
        if is_whole and (unwoven or not go_on) and indexed.source.complete > was_kept * (kept.SHARE + 1) / kept.SHARE:
            kept.save(indexed)  # before it is woven, which names its lanes
        return indexed, reader

    def _callers(self) -> dict[str, str]:
        """agent -> call, from the files beside those of subagents."""
        found = {}
        for one, path in zip(self.group.agents, self.beside(), strict=True):
            try:
                if os.path.getsize(path) > 1 << 20:
                    continue
                with open(path, "rb") as file:
                    document = loads(file.read())
            except OSError:
                continue
            call = document.get("toolUseId") if isinstance(document, dict) else None
            if isinstance(call, str) and one.agent:
                found[one.agent] = call
        return found

    def is_empty(self) -> bool:
        """Whether its files have no bytes at all."""
        return not any(stat[0] for path in self.paths() if (stat := stat_of(path)) is not None)

    # ---- turns

    def cursor(self, ident: str) -> int:
        return self._arrived[ident]

    def depth(self, ident: str) -> int:
        """How many turns lead to it."""
        turns, path = self.woven.turns, []
        at: str | None = ident
        while at is not None and at in turns and at not in self._depth:
            path.append(at)
            above = turns[at]
            at = above.parent if not above.lost else None
        base = self._depth[at] if at is not None and at in self._depth else -1
        for one in reversed(path):
            base += 1
            self._depth[one] = base
        return self._depth[ident]

    def named(self, ref: str) -> str | None:
        """The turn that a record, an answer or a call of this id belongs to."""
        woven = self.woven
        at = woven.place.get(ref)
        if at is not None:
            return woven.turn_of[at] or None
        return woven.by_call.get(ref)

    def choose(self, turn_id: str) -> bool:
        """Take the branch through a turn for the active one, before anything is shown and after the files have grown; False for a
        subagent's turn."""
        with self._lock:
            taken = self.woven.take(turn_id, CHOSEN)
            self.chosen = turn_id if taken else self.chosen
            return taken

    def raw(self, turn: Turn) -> bytes:
        """Its records as stored, as one JSON array."""
        woven = self.woven
        parts = [
            woven.files[record.file].source.bytes_at(record.offset, record.length)
            for record in (woven.records[at] for at in turn.records)
        ]
        return b"[" + b",\n".join(parts) + b"]"

    # ---- the whole

    @property
    def title(self) -> str | None:
        """What the session is called, by a person or by its program."""
        return title_of(self.woven.files, self.woven.place)

    def facts(self) -> dict[str, Any]:
        """What a list says of it beside what every thread has."""
        woven = self.woven
        branch = self.folded().branch(woven.head) if woven.head is not None else []
        model = next((name for turn in reversed(branch) for at in turn.records if (name := model_of(woven.records[at]))), None)
        tokens = _named(woven.tokens)
        own = [file for file in woven.files if not file.ours]
        names = list(dict.fromkeys(file.session for file in own if file.session and file.agent is None))
        return {
            "format": woven.files[0].format if woven.files else None,
            "title": self.title,
            "model": model,
            "tokens": tokens,
            **({"tokens_of_all_files": _named(woven.all_tokens)} if woven.all_tokens not in (None, woven.tokens) else {}),
            COST: costs.whole(woven),
            "active": woven.why,
            "sessions": names,
            "files": [file.source.path for file in own],
            **({"forks": [file.source.path for file in woven.files if file.ours]} if len(own) < len(woven.files) else {}),
            "repeated_records": woven.repeats + woven.shared,
            "copied_messages": woven.copied,
        }

    def metadata(self, turn: Turn) -> bytes:
        """What a row of a checkpoint table has as metadata."""
        woven = self.woven
        first = woven.records[turn.records[0]]
        found: dict[str, Any] = {
            "source": turn_source(turn),
            "step": self.depth(turn.id),
            "file": woven.files[first.file].source.name,
            "lines": [woven.records[at].line for at in turn.records[:200]],
        }
        if turn.copy_of is not None:
            found["copy_of"] = turn.copy_of
        if turn.lost:
            found["link_lost"] = turn.parent
        if turn.ns:
            caller = self.caller(turn.ns)
            if caller is not None:
                found["parents"] = {caller[0]: caller[1]}
        return json.dumps(found).encode()

    def caller(self, ns: str) -> tuple[str, str, str] | None:
        """(namespace, turn, call) that a subagent's lane hangs below: the turn from which the call was made."""
        return self._callers_of.get(ns)


def _named(tokens: Tokens | None) -> dict[str, int] | None:
    return dict(zip(COUNTS, tokens, strict=True)) if tokens is not None else None


def _caller(woven: Woven, lane: Lane) -> tuple[str, str, str] | None:
    if lane.call is None or lane.turn is None:
        return None
    turn = woven.turns[lane.turn]
    above = turn.parent if turn.parent in woven.turns and not turn.lost else turn.id
    return turn.ns, str(above), lane.ns.rpartition("|")[2].partition(":")[2]


def turn_source(turn: Turn) -> str:
    return {"input": "input", "loop": "loop", "compaction": "compaction"}[turn.kind]


def title_of(files: Sequence[Indexed], place: dict[str, int]) -> str | None:
    """The last one of the strongest kind that names a session of the group: given by a person, by the model, a summary."""
    found: dict[str, str] = {}
    for file in files:
        if isinstance(file.facts.get("title"), str):
            found["summary"] = file.facts["title"]
        for note in file.notes:
            if not isinstance(note.value, tuple) or note.what == "queue-operation":
                continue
            text, leaf = note.value
            if isinstance(text, str) and text and (note.what != "summary" or leaf is None or leaf in place or not file.records):
                found[note.what] = text
    return next((found[what] for what in ("custom-title", "agent-name", "ai-title", "summary") if what in found), None)


def _title(files: Sequence[Indexed]) -> str:
    title = title_of(files, {})
    return f", titled {title!r}" if title else ""


def model_of(record: Record) -> str | None:
    return record.model or (record.more or {}).get("model")


def _prompts(files: Sequence[Indexed], record: Record) -> list[tuple[str, int]]:
    """(call, hash of its prompt) of the calls in a record that may start a subagent."""
    document = files[record.file].source.json_at(record.offset, record.length)
    message = document.get("message") if isinstance(document, dict) else None
    held = message.get("content") if isinstance(message, dict) else None
    found = []
    for block in held if isinstance(held, list) else ():
        if isinstance(block, dict) and block.get("name") in AGENT_TOOLS and isinstance(block.get("input"), dict):
            prompt = block["input"].get("prompt")
            if isinstance(prompt, str) and isinstance(block.get("id"), str):
                found.append((block["id"], said(prompt)))
    return found


def stat_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
