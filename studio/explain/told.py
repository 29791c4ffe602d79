"""A conversation as a person reads it: who said what, each call with its result, what it did to files. Everything is as stored.

The same shapes hold what an agent's transcript tells and what a channel of messages in a checkpoint tells. Front ends gate and
mask every text when they draw it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from studio.model import Address, Value
from studio.render import preview

CallState = Literal["answered", "failed", "open"]
SaidKind = Literal["prompt", "answer", "result", "context", "compacted", "summary", "retry", "command", "note", "removed"]
TouchState = Literal["read", "created", "edited", "deleted", "failed"]
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_COMMAND_ARGS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_OUTPUT = re.compile(r"<(local-command-stdout|local-command-stderr|bash-input|bash-stdout|bash-stderr)>(.*?)</\1>", re.DOTALL)
_WRAPPED = re.compile(
    r"<(command-name|command-message|command-args|local-command-stdout|local-command-stderr|bash-input|bash-stdout|bash-stderr)>"
    r".*?</\1>",
    re.DOTALL,
)
_NOTIFIED = "<task-notification>"
_SUMMARY = re.compile(r"<summary>\s*(.*?)\s*</summary>", re.DOTALL)
_RESULT = re.compile(r"<result>\s*(.*?)\s*</result>", re.DOTALL)
_LOOKED_AT = 200_000
_CONTEXT_NAMES: Mapping[str, SaidKind] = {
    "context": "context", "summary": "summary", "compacted": "compacted", "interrupted": "note", "api_error": "retry",
    "local_command": "command", "away_summary": "note",
}  # fmt: skip


class Chip(Struct, frozen=True):
    """Binary content by its type, size and hash; the bytes stay in the file."""

    media_type: str | None
    size: int
    digest: str


class Piece(Struct, frozen=True):
    """A part of what was said: text, thinking, something binary, or a block of another kind by its name."""

    kind: Literal["text", "thinking", "binary", "other"]
    text: str = ""
    chip: Chip | None = None


class Touch(Struct, frozen=True):
    """What a call did to a file."""

    path: str
    state: TouchState
    call: str | None = None
    patch: str = ""
    plus: int = 0
    minus: int = 0
    moved_to: str | None = None
    by_person: bool = False
    """A person changed the edit before it was made."""


class Call(Struct, frozen=True):
    """A call of a tool with its result."""

    id: str | None
    name: str
    args: Value
    state: CallState
    result: tuple[Piece, ...] = ()
    touches: tuple[Touch, ...] = ()
    tracks: tuple[Address, ...] = ()
    """Where the subagents begin that it started."""


class Said(Struct, frozen=True):
    kind: SaidKind
    id: str | None
    pieces: tuple[Piece, ...] = ()
    calls: tuple[Call, ...] = ()
    name: str = ""
    failed: bool = False
    queued: bool = False
    """A prompt that was typed while the agent worked."""
    at: int | None = None
    """Its place in the channel, where that is known."""


class Tokens(Struct, frozen=True):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_creation: int = 0

    @property
    def context(self) -> int:
        return self.input + self.cache_read + self.cache_creation


class Beat(Struct, frozen=True):
    """What one turn, or one checkpoint, brought to the conversation."""

    address: Address
    items: tuple[Said, ...]
    index: int = 0
    """Its place on the branch."""
    tokens: Tokens | None = None
    model: str | None = None
    seconds: float | None = None
    """Since the turn before."""


Touches = Callable[[str, str, Value, CallState], tuple[Touch, ...]]
Tracks = Callable[[str], tuple[Address, ...]]


def told(
    messages: Sequence[Value],
    *,
    touches: Touches | None = None,
    tracks: Tracks | None = None,
    start: int | None = None,
    failed: bool = False,
) -> list[Said]:
    """Messages in their order, results with their calls; a result whose call is not among them stands alone.

    `start`: the place of the first one in its channel. `failed`: the answers are errors of the service.
    """
    results: dict[str, tuple[dict[str, Any], int]] = {}
    asked = {call.id for value in messages for call in _calls(value) if call.id is not None}
    for at, value in enumerate(messages):
        found = preview.role_of(value)
        if found is not None and found[0] == "tool" and found[1].get("tool_call_id") in asked:
            results.setdefault(str(found[1]["tool_call_id"]), (found[1], at))
    taken = {at for _, at in results.values()}
    said: list[Said] = []
    for at, value in enumerate(messages):
        if at in taken:
            continue
        place = None if start is None else start + at
        found = preview.role_of(value)
        if found is None:
            said.append(Said("note", None, (Piece("other", preview.summary(value, 400)),), at=place))
            continue
        role, fields = found
        calls = tuple(_call(one, results, touches, tracks) for one in preview.calls_of(fields))
        extra = fields.get("additional_kwargs")
        queued = isinstance(extra, Mapping) and extra.get("queued") is True
        kind, name, parts = _read(
            _kind(role, fields), _text(fields.get("name")) or "", tuple(pieces(fields.get("content"))), queued
        )
        said.append(
            Said(
                kind,
                _text(fields.get("id")),
                parts,
                calls,
                name,
                failed and role == "assistant" or fields.get("status") == "error",
                queued,
                place,
            )
        )
    return said


def _read(kind: SaidKind, name: str, parts: tuple[Piece, ...], queued: bool) -> tuple[SaidKind, str, tuple[Piece, ...]]:
    """What a program wrapped in tags of its own, unwrapped: commands with their output, reports of background agents."""
    text = parts[0].text if len(parts) == 1 and parts[0].kind == "text" and len(parts[0].text) <= _LOOKED_AT else ""
    head = text.lstrip()[:40]
    if head.startswith(_NOTIFIED) and kind in ("prompt", "result"):
        told_, result = _SUMMARY.search(text), _RESULT.search(text)
        words = told_[1] if told_ else "an agent reported"
        if queued:
            return "note", words, parts
        return "result", words, (Piece("text", result[1]),) if result else parts
    if kind in ("context", "command", "prompt") and head.startswith(("<command-", "<local-command-", "<bash-")):
        called, given, output = _COMMAND.search(text), _COMMAND_ARGS.search(text), [one[1] for one in _OUTPUT.findall(text)]
        words = " ".join(part for part in (called[1] if called else "", given[1] if given else "") if part)
        said = "\n".join(one.strip("\n") for one in output if one.strip())
        beside = _WRAPPED.sub("", text).strip()  # words of a person around the tags are never dropped
        if (words or said) and not beside:
            return "command", words, (Piece("text", said),) if said else ()
        return "context" if kind == "command" else kind, name, parts
    return kind, name, parts


def pieces(content: Value) -> Iterable[Piece]:
    """The parts of a message's content."""
    if content is None or content == "":
        return
    if isinstance(content, str):
        yield Piece("text", content)
        return
    for one in content if isinstance(content, list) else [content]:
        if isinstance(one, str):
            yield Piece("text", one)
            continue
        if not isinstance(one, dict):
            yield Piece("other", preview.summary(one, 200))
            continue
        chip = chip_in(one)
        if chip is not None:
            yield Piece("binary", _text(one.get("type")) or "", chip)
        elif isinstance(one.get("text"), str):
            yield Piece("text", one["text"])
        elif isinstance(one.get("thinking"), str):
            yield Piece("thinking", one["thinking"])
        elif one.get("type") in ("reasoning", "thinking", "redacted_thinking"):
            yield Piece("thinking", _summaries(one))
        elif one.get("type") == "tool_use":
            continue  # it stands among the calls
        else:
            yield Piece("other", preview.summary(one, 200))


def chip_in(value: Any, depth: int = 0) -> Chip | None:
    """The binary content that a block stands for."""
    if not isinstance(value, dict) or depth > 4:
        return None
    digest, size = value.get("sha256_of_base64"), value.get("bytes")
    if isinstance(digest, str) and isinstance(size, int):
        return Chip(_text(value.get("media_type")), size, digest)
    return next((found for one in value.values() if (found := chip_in(one, depth + 1)) is not None), None)


def _summaries(block: dict[str, Any]) -> str:
    held = block.get("summary")
    parts = [one.get("text") for one in held if isinstance(one, dict)] if isinstance(held, list) else []
    return "\n\n".join(part for part in parts if isinstance(part, str))


def _kind(role: str, fields: Mapping[str, Any]) -> SaidKind:
    named = fields.get("name")
    kinds: Mapping[str, SaidKind] = {
        "user": "prompt",
        "assistant": "answer",
        "tool": "result",
        "remove": "removed",
        "chat": "prompt",
    }
    if role != "system":
        return kinds.get(role, "note")
    kind = _CONTEXT_NAMES.get(named, "context") if isinstance(named, str) else "context"
    if kind == "context" and isinstance(fields.get("content"), str) and fields["content"].lstrip().startswith("<command-"):
        return "command"
    return kind


def _calls(value: Value) -> tuple[preview.ToolCall, ...]:
    found = preview.role_of(value)
    return preview.calls_of(found[1]) if found is not None else ()


def _call(
    call: preview.ToolCall,
    results: Mapping[str, tuple[dict[str, Any], int]],
    touches: Touches | None,
    tracks: Tracks | None,
) -> Call:
    found = results.get(call.id) if call.id is not None else None
    state: CallState = "open" if found is None else "failed" if found[0].get("status") == "error" else "answered"
    return Call(
        call.id,
        call.name,
        call.args,
        state,
        tuple(pieces(found[0].get("content"))) if found is not None else (),
        touches(call.id, call.name, call.args, state) if touches is not None and call.id is not None else (),
        tracks(call.id) if tracks is not None and call.id is not None else (),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
