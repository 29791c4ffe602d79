"""Claude Code sessions of every known layout: which records make the tree, and what each of them says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from sys import intern
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from studio.stores.transcripts import content
from studio.stores.transcripts.names import Names, word
from studio.stores.transcripts.record import NO_TOKENS, Indexed, Kind, Note, Record, Tokens, moment, whole
from studio.stores.transcripts.source import loads

TREE = frozenset(("user", "assistant", "system", "attachment", "progress"))
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "agent-name": "agentName", "summary": "summary"}
KNOWN = TREE | TITLES.keys() | frozenset(
    [
        "last-prompt", "queue-operation", "file-history-snapshot", "file-history-delta", "mode", "permission-mode",
        "cost-state", "api-request", "api-request-shape", "api-request-blob", "api-request-resumed", "tools-used",
        "atis-latch", "isolation-latch", "content-replacement", "pr-link", "tag", "agent-color", "agent-setting",
        "worktree-state", "attribution-snapshot", "task-summary", "speculation-accept", "fork-context-ref", "memory-mode",
        "bridge-session", "model", "goal",
    ]
)  # fmt: skip
NO_NODES = KNOWN - TREE
INTERRUPTED = "[Request interrupted by user"
_COMMAND = re.compile(
    r"\s*<(command-name|command-message|command-args|local-command-stdout|local-command-stderr|bash-input|bash-stdout)>"
)
_COMMAND_NAME = re.compile(r"<command-name>\s*/?([^<]*?)\s*</command-name>")
_COMMAND_ARGS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL_INPUT = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_TYPED = re.compile(r"/[A-Za-z][\w:.-]*(?=\s|$)")
_NOTIFIED = re.compile(r"\s*<task-notification>")
_TOOL_USE = re.compile(r"<tool-use-id>\s*([^<\s]+)\s*</tool-use-id>")
_TASK = re.compile(r"<task-id>\s*([^<\s]+)\s*</task-id>")


TOLD = TITLES.keys() | {"queue-operation", "last-prompt", "cost-state", "permission-mode"}
"""Types of notes that are decoded."""


class _Block(Struct, gc=False):
    type: str | None = None
    id: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    is_error: bool | None = None


class _Usage(Struct, gc=False):
    input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    cache_read_input_tokens: int | float | None = None
    cache_creation_input_tokens: int | float | None = None


class _Message(Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: list[_Block] | str | None = None
    usage: _Usage | None = None


class _Attached(Struct, gc=False):
    type: str | None = None


class _Line(Struct, gc=False):
    type: str | None = None
    uuid: str | None = None
    parentUuid: str | UnsetType | None = UNSET
    logicalParentUuid: str | None = None
    sessionId: str | None = None
    timestamp: str | float | None = None
    isSidechain: bool | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isApiErrorMessage: bool | None = None
    message: _Message | None = None
    agentId: str | None = None
    cwd: str | None = None
    gitBranch: str | None = None
    version: str | None = None
    permissionMode: str | None = None
    subtype: str | None = None
    leafUuid: str | None = None
    costUSD: float | None = None
    attachment: _Attached | None = None


class _Words(Struct, gc=False):
    text: str | None = None


class _Worded(Struct, gc=False):
    content: list[_Words] | str | None = None


class _Said(Struct, gc=False):
    """The texts of a message of several blocks, and nothing else of its line."""

    message: _Worded | None = None


class _Started(Struct, gc=False):
    agentId: str | None = None
    status: Any = None


class _Result(Struct, gc=False):
    """What the result of a call says of the subagent that it started."""

    toolUseResult: _Started | None = None


class Reading(Struct):
    """What the index pass of one file knows so far; strings that come again are one object."""

    sessions: dict[str, int] = field(default_factory=dict)
    last: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    permission_mode: str | None = None
    key: str = ""
    model: str | None = None
    used: tuple[Any, ...] = ()
    """As they are stored."""
    tokens: Tokens = NO_TOKENS
    open: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Calls that no result was seen of."""
    version: str | None = None


_decode = msgspec.json.Decoder(_Line).decode
_words = msgspec.json.Decoder(_Said)
_started = msgspec.json.Decoder(_Result)
SHOWN_BESIDE = Names(("api_error", "local_command", "away_summary"))
"""Records of the program that are shown beside the messages."""


def _told(data: bytes) -> _Line:
    """The named fields of a record of which one has another type than usual: that one is taken as not there.

    ValueError: no JSON object.
    """
    document = loads(data)
    if not isinstance(document, dict):
        raise ValueError("no object")
    made: _Line = _lenient(_Line, document)
    return made


def _lenient(kind: type[Any], document: dict[str, Any]) -> Any:
    made = kind()
    for one in msgspec.structs.fields(kind):
        value = document.get(one.name, UNSET)
        if value is UNSET:
            continue
        if one.name == "message" and isinstance(value, dict):
            value = _lenient(_Message, value)
        elif one.name == "usage" and isinstance(value, dict):
            value = _lenient(_Usage, value)
        elif one.name == "attachment" and isinstance(value, dict):
            value = _lenient(_Attached, value)
        elif one.name == "content" and isinstance(value, list):
            value = [_lenient(_Block, block) for block in value if isinstance(block, dict)]
        else:
            try:
                value = msgspec.convert(value, one.type)
            except msgspec.ValidationError:
                continue
        setattr(made, one.name, value)
    return made


class Claude:
    format = "claude-code"

    def take(self, to: Indexed, line: int, offset: int, length: int, data: bytes) -> None:
        try:
            found, usual_types = _decode(data), True
        except (msgspec.ValidationError, UnicodeDecodeError):
            found, usual_types = _told(data), False
        to.total += 1
        kind = found.type
        if to.state is None:
            to.state = Reading()
        state: Reading = to.state
        session = found.sessionId
        if session:
            state.sessions[session] = state.sessions.get(session, 0) + 1
        is_message = False
        if kind == "assistant" or kind == "user":
            is_message = found.message is not None
        else:
            if kind not in KNOWN:
                to.unknown[str(kind)] = to.unknown.get(str(kind), 0) + 1
            linked = found.uuid is not None and found.parentUuid is not UNSET
            if kind in NO_NODES or not (linked or kind in TREE):
                self._note(to, line, offset, length, found, data)
                return
        at, usual = moment(found.timestamp)
        if not usual:
            if found.timestamp is not None:
                to.problems.append(("odd-timestamp", line, f"its time is stored as {found.timestamp!r}"))
            elif found.uuid is not None:
                to.problems.append(("missing-timestamp", line, "no time is stored"))
        ident = found.uuid or f"{to.source.name}:{line}"
        named, last = found.parentUuid, state.last
        parent = last if named == last else named if isinstance(named, str) else None
        if found.uuid is None and is_message and parent is None:  # no ids: the order is the chain
            parent, to.facts["no_links"] = last, True
        state.last = ident
        record = Record(0, line, offset, length, "context", ident, parent, at)
        if to.agent is not None:
            record.lane = to.agent
        elif found.isSidechain:
            record.lane = "side"
        elif found.agentId:
            record.lane = found.agentId
        more: dict[str, Any] = {}
        if parent is None and found.logicalParentUuid:
            record.parent, more["logical"] = found.logicalParentUuid, True
        cwd, branch, mode, version = found.cwd, found.gitBranch, found.permissionMode, found.version
        is_root = record.parent is None  # each root tells where it was
        if cwd and (is_root or cwd != state.cwd):
            more["cwd"] = state.cwd = cwd
        if branch and (is_root or branch != state.git_branch):
            more["git_branch"] = state.git_branch = branch
        if mode and (is_root or mode != state.permission_mode):
            more["permission_mode"] = state.permission_mode = mode
        if not to.records:
            to.facts.setdefault("cwd", cwd)
        if version != state.version and version:
            to.facts["version"] = state.version = version
        self._sort(record, found, data, more, state)
        if usual_types:
            record.shown = 1 if record.kind == "answer" else _shown(record, found)
        if more:
            record.more = more
        to.records.append(record)

    def _sort(self, record: Record, found: _Line, data: bytes, more: dict[str, Any], state: Reading) -> None:
        """What kind of record it is."""
        message, kind = found.message, found.type
        if kind == "assistant" and message is not None:
            record.kind = "answer"
            key, model = message.id or record.id, message.model
            if key == state.key:
                key = state.key
            else:
                state.key = key
            record.key = key
            if isinstance(message.content, list):
                calls = [(one.id, intern(one.name or "?")) for one in message.content if one.type == "tool_use" and one.id]
                if calls:
                    record.calls = tuple(calls)
                    state.open.update((call[0], call) for call in calls)
            made_up = model == "<synthetic>"
            if not made_up and model is not None:
                if model == state.model:
                    model = state.model
                else:
                    state.model = model
                record.model = model
            if message.usage is not None and not made_up:
                used = message.usage
                tokens = (
                    used.input_tokens, used.output_tokens, used.cache_read_input_tokens, used.cache_creation_input_tokens
                )  # fmt: skip
                if tokens != state.used:  # repeated on each line of an answer
                    state.used, state.tokens = tokens, (whole(tokens[0]), whole(tokens[1]), whole(tokens[2]), whole(tokens[3]))
                record.tokens = state.tokens
            if made_up or found.isApiErrorMessage:
                more["failed"] = True
            if found.costUSD:
                more["cost"] = found.costUSD
        elif kind == "user" and message is not None:
            blocks: Sequence[_Block] = message.content if isinstance(message.content, list) else ()
            answered = [(one.tool_use_id, bool(one.is_error)) for one in blocks if one.type == "tool_result" and one.tool_use_id]
            if answered:
                given = state.open
                record.results = tuple([(given.pop(ident, (ident,))[0], failed) for ident, failed in answered])
                if b'"agentId"' in data:
                    self._agent(data, more)
            record.kind = self._said(record, found, message, blocks, data, more)
        elif kind == "system" and found.subtype == "compact_boundary":
            record.kind = "boundary"
            carried = carried_over(loads(data))
            if carried is not None:
                more["carried"] = carried
        elif kind == "attachment" and b'"queued_command"' in data:
            more["queued"] = True
        elif kind == "system" and found.subtype == "local_command":
            _name_command(content.text_of((loads(data) or {}).get("content")), more)

    @staticmethod
    def _agent(data: bytes, more: dict[str, Any]) -> None:
        """The subagent that a result names."""
        try:
            told = _started.decode(data).toolUseResult
        except (msgspec.ValidationError, UnicodeDecodeError):
            result = (loads(data) or {}).get("toolUseResult")
            if not isinstance(result, dict) or not isinstance(result.get("agentId"), str):
                return
            told = _Started(result["agentId"], result.get("status"))
        if told is not None and told.agentId is not None:
            more["agent"], more["status"] = told.agentId, told.status

    def _said(
        self, record: Record, found: _Line, message: _Message, blocks: Sequence[_Block], data: bytes, more: dict[str, Any]
    ) -> Kind:
        if found.isCompactSummary:
            return "summary"
        if record.results and all(one.type == "tool_result" for one in blocks):
            return "result"
        text = message.content if isinstance(message.content, str) else None
        if text is None:
            text = _text(data)
        if text.startswith(INTERRUPTED):
            return "mark"
        if _NOTIFIED.match(text):
            call, task = _TOOL_USE.search(text), _TASK.search(text)
            more["notifies"] = call[1] if call else None
            more["agent"] = task[1] if task else None
            return "result"
        if found.isMeta or _COMMAND.match(text):
            _name_command(text, more)
            return "result" if record.results else "context"
        record.said = said(text)
        if found.isSidechain or record.lane:
            more["prompt"] = record.said
        return "prompt"

    def _note(self, to: Indexed, line: int, offset: int, length: int, found: _Line, data: bytes) -> None:
        what = str(found.type)
        value: Any = None
        record = Record(0, line, offset, length, "note", "", parent=to.state.last, at=moment(found.timestamp)[0])
        document: Any = None
        if what in TOLD:
            document = loads(data)
        if not isinstance(document, dict):
            to.notes.append(Note(record, what))
            return
        if what in TITLES:
            value = (document.get(TITLES[what]), found.leafUuid)
        elif what == "queue-operation":
            value = (document.get("operation"), content.text_of(document.get("content")))
        elif what == "last-prompt":
            value = found.leafUuid
        elif what == "cost-state":
            cost = document.get("totalCostUSD")
            value = cost if isinstance(cost, (int, float)) else None
        elif what == "permission-mode":
            value = document.get("permissionMode")
        to.notes.append(Note(record, what, value))

    def finish(self, to: Indexed) -> None:
        _link_carried(to.records)
        sessions = to.state.sessions if to.state is not None else {}
        stem = to.source.name.removesuffix(".gz").removesuffix(".jsonl")
        to.session = max(sessions, key=lambda one: (sessions[one], one == stem)) if sessions else stem
        if stem in sessions:
            to.session = stem
        foreign = {one: count for one, count in sessions.items() if one != to.session}
        if foreign and to.agent is None:
            names = ", ".join(f"{one} ({count})" for one, count in sorted(foreign.items()))
            to.problems.append(("foreign-session", 0, f"records of other sessions: {names}"))

    # ---- what a record says

    def messages(self, record: Record, document: Any) -> list[dict[str, Any]]:
        message = document.get("message") if isinstance(document, dict) else None
        if not isinstance(message, dict):
            return self._beside(record, document)
        held = message.get("content")
        if record.kind == "answer":
            return [self._answer(record, document, message, held)]
        found = [self._result(record, block) for block in held if _is(block, "tool_result")] if isinstance(held, list) else []
        rest = [one for one in held if not _is(one, "tool_result")] if isinstance(held, list) else held
        if not rest:
            return found
        shown = content.shown(rest)
        if record.kind == "summary":
            found.append({"type": "system", "id": record.id, "name": "summary", "content": shown})
        elif record.kind == "mark":
            found.append({"type": "system", "id": record.id, "name": "interrupted", "content": shown})
        elif record.kind == "context":
            found.append({"type": "system", "id": record.id, "name": "context", "content": shown})
        elif (record.more or {}).get("notifies") or (
            record.kind == "result" and (record.more or {}).get("agent") and not record.results
        ):
            call = (record.more or {}).get("notifies")
            found.append({"type": "tool", "id": record.id, "name": "agent", "tool_call_id": word(call) or None, "content": shown})
        else:
            found.append({"type": "human", "id": record.id, "content": shown})
        return found

    def _beside(self, record: Record, document: Any) -> list[dict[str, Any]]:
        if not isinstance(document, dict):
            return []
        kind = document.get("type")
        if record.kind == "boundary":
            return [{"type": "system", "id": record.id, "name": "compacted", "content": content.boundary(document)}]
        attached = document.get("attachment")
        if isinstance(attached, dict) and attached.get("type") == "queued_command":
            said = content.shown(attached.get("prompt"))
            return [{"type": "human", "id": record.id, "content": said, "additional_kwargs": {"queued": True}}]
        if kind == "system" and document.get("subtype") in SHOWN_BESIDE:
            text = (
                content.text_of(document.get("content")) or content.text_of(document.get("error")) or str(document.get("subtype"))
            )
            return [{"type": "system", "id": record.id, "name": str(document["subtype"]), "content": text}]
        return []

    def _answer(self, record: Record, document: dict[str, Any], message: dict[str, Any], held: Any) -> dict[str, Any]:
        calls = []
        rest = held
        if isinstance(held, list):
            calls = [
                {
                    "id": word(one.get("id"), f"call:{at}"),
                    "name": str(one.get("name", "?")),
                    "args": one.get("input"),
                    "type": "tool_call",
                }
                for at, one in enumerate(held)
                if _is(one, "tool_use")
            ]
            rest = [one for one in held if not _is(one, "tool_use")]
        made: dict[str, Any] = {
            "type": "ai",
            "id": record.id,
            "content": content.shown(rest) if rest else "",
            "tool_calls": calls,
        }
        meta = {"message_id": message.get("id"), "model": message.get("model"), "stop_reason": message.get("stop_reason")}
        made["response_metadata"] = {name: value for name, value in meta.items() if value is not None}
        return made

    def _result(self, record: Record, block: dict[str, Any]) -> dict[str, Any]:
        made = {
            "type": "tool",
            "id": record.id,
            "tool_call_id": word(block.get("tool_use_id")) or None,
            "content": content.shown(block.get("content")),
        }
        if block.get("is_error"):
            made["status"] = "error"
        return made

    def effects(self, record: Record, document: Any, calls: dict[str, dict[str, Any]]) -> list[tuple[str, str | None, Any]]:
        found: list[tuple[str, str | None, Any]] = []
        if not isinstance(document, dict):
            return found
        result = document.get("toolUseResult")
        for ident, failed in record.results:
            call = calls.get(ident)
            if call is None:
                continue
            detail = result if isinstance(result, dict) and len(record.results) == 1 else {}
            found += content.effects_of_tool(ident, call, detail, failed)
        return found


def _text(data: bytes) -> str:
    """The text blocks of a message, without what stands beside them."""
    try:
        worded = _words.decode(data).message
    except (msgspec.ValidationError, UnicodeDecodeError):
        document = loads(data)
        held = document.get("message") if isinstance(document, dict) else None
        return content.text_of(held.get("content") if isinstance(held, dict) else None)
    words = worded.content if worded is not None else None
    return "\n".join([one.text for one in words if one.text is not None]) if isinstance(words, list) else words or ""


def _shown(record: Record, found: _Line) -> int:
    """How many messages `Claude.messages` gives for a record of the usual form that is no answer."""
    message = found.message
    if message is None:
        return int(
            record.kind == "boundary"
            or (found.attachment is not None and found.attachment.type == "queued_command")
            or (found.type == "system" and found.subtype in SHOWN_BESIDE)
        )
    held = message.content
    if not isinstance(held, list):
        return 1 if held else 0
    results = sum([one.type == "tool_result" for one in held])
    return results + (len(held) > results)


def carried_over(document: Any) -> tuple[str, tuple[str, ...]] | None:
    """(record below which they stand now, records from before) of a compaction that carried some messages over."""
    meta = document.get("compactMetadata") if isinstance(document, dict) else None
    held = meta.get("preservedMessages") if isinstance(meta, dict) else None
    if not isinstance(held, dict) or not isinstance(held.get("anchorUuid"), str):
        return None
    found = [one for name in ("uuids", "allUuids") for one in held.get(name) or () if isinstance(one, str)]
    return (held["anchorUuid"], tuple(dict.fromkeys(found))) if found else None


def _link_carried(records: Sequence[Record]) -> None:
    """What follows a compaction names the last message that was carried over as its parent: it stands below the summary."""
    for boundary in [one for one in records if one.kind == "boundary" and one.more and "carried" in one.more]:
        anchor, carried = (boundary.more or {})["carried"]
        for record in records:
            is_below = record.parent in carried and record.line > boundary.line
            if is_below and record.id not in carried and record is not boundary and not (record.more or {}).get("logical"):
                record.parent = anchor


def _name_command(text: str, more: dict[str, Any]) -> None:
    """Keep what a person typed for the command of this row, as the queue has it: `/compact keep the list`, `!ls`."""
    name, args, shell = _COMMAND_NAME.search(text), _COMMAND_ARGS.search(text), _SHELL_INPUT.search(text)
    if name is not None:
        more["typed"] = (said(f"/{name[1]} {args[1].strip() if args is not None else ''}"),)
    elif shell is not None:
        more["typed"] = said(shell[1]), said("!" + shell[1].strip())


def is_command(text: str) -> bool:
    """Whether a typed text is a command of the program, and no path."""
    return _TYPED.match(text.strip()) is not None


def said(text: str) -> int:
    """A hash of a text that tells copies of it, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.strip().encode("utf-8", "replace"), digest_size=7).digest(), "big") or 1


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind
