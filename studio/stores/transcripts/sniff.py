"""Which format a file is in, told by its content past bookkeeping lines: the first `LINES` records that can be parsed decide.

A file that begins with `SURE` records of Claude Code and nothing else is a session of it; no more of that one is read.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from studio.stores.sniff import first_bytes
from studio.stores.transcripts.claude import KNOWN
from studio.stores.transcripts.names import Names
from studio.stores.transcripts.source import BOM, GZIP, UTF16, loads, whole_records

START, HEAD = 64 << 10, 256 << 10
LINES, SURE = 200, 20
CODEX = frozenset(
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "token_usage_record")
)
ITEMS = Names(
    [
        "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
        "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call",
        "apply_patch_call_output", "web_search_call", "file_search_call", "computer_call", "computer_call_output",
        "image_generation_call", "code_interpreter_call", "mcp_list_tools", "mcp_approval_request",
        "mcp_approval_response", "mcp_call", "tool_search_call", "tool_search_call_output", "compaction", "item_reference",
    ]
)  # fmt: skip
LANGCHAIN = frozenset(("human", "ai", "tool", "system", "function", "remove", "chat", "AIMessageChunk"))
_CLAUDE_LINE = re.compile(rb'"(?:parentUuid|leafUuid|sessionId)"\s*:')
_CODEX_LINE = re.compile(rb'"payload"\s*:\s*\{')


class _Named(Struct):
    type: str | None = None
    uuid: msgspec.Raw | UnsetType = UNSET
    parentUuid: msgspec.Raw | UnsetType = UNSET
    sessionId: msgspec.Raw | UnsetType = UNSET
    leafUuid: msgspec.Raw | UnsetType = UNSET


_named = msgspec.json.Decoder(_Named)


def sniff(path: str) -> str | None:
    """The name of a format, `raw` for other lines of JSON objects, `empty`, or None for what is no transcript."""
    try:
        head = first_bytes(path, HEAD)
    except OSError:
        return None
    return sniff_head(head)


def is_session(start: bytes) -> bool:
    """Whether its first lines are records of Claude Code and nothing else, so many that the rest is not asked."""
    sure = at = 0
    while sure < SURE and (end := start.find(b"\n", at)) >= 0:
        if not _of_session(start[at:end]):
            return False
        sure, at = sure + 1, end + 1
    return sure == SURE


def sniff_head(head: bytes) -> str | None:
    if is_session(head):
        return "claude-code"
    if not head:
        return "empty"
    whole = len(head) < HEAD
    if head.startswith(GZIP):
        try:
            head, whole = zlib.decompressobj(31).decompress(head, HEAD), False
        except zlib.error:
            return None
    elif (encoding := UTF16.get(head[:2])) is not None:
        head = head[2:].decode(encoding, "ignore").encode()
    head = head.removeprefix(BOM).lstrip(b" \t\r\n\0")
    if head.startswith(b"["):
        return _scored(_parts(head))
    if not head.startswith(b"{") and b'{"' not in head:
        return None
    first = loads(head) if whole else None
    if isinstance(first, dict):
        held = first.get("data") if first.get("object") == "list" else first.get("messages")
        if isinstance(held, list):
            return _scored(held[:LINES])
        if "channel_values" in first:
            return None
    documents: list[Any] = []
    sessions = 0
    lines = head.split(b"\n")
    for line in lines if whole else lines[:-1] or lines:
        body = line.strip(b" \t\r\0")
        if _of_session(body):
            sessions += 1
            if sessions > LINES // 2:
                return "claude-code"
            continue
        found = loads(body) if body.startswith(b"{") else None
        if found is None and body and sessions + len(documents) < 3:
            found = next((loads(body[at : at + length]) for at, length in whole_records(body)), None)
        if isinstance(found, dict):
            documents.append(found)
            if sessions + len(documents) >= LINES:
                break
    if documents or sessions:
        return _scored(documents, sessions)
    if re.match(rb'\{\s*"object"\s*:\s*"list"', head):
        return "openai-items"
    if re.match(rb'\{\s*"messages"\s*:\s*\[', head):
        return "chat"
    if _CLAUDE_LINE.search(head):
        return "claude-code"
    return "codex" if _CODEX_LINE.search(head) else None


def _parts(head: bytes) -> list[Any]:
    import json

    text = head.decode("utf-8", "replace")
    found: list[Any] = []
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0 and len(found) < LINES:
        try:
            one, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(one)
        at = text.find("{", at)
    return found


def _of_session(body: bytes) -> bool:
    """Whether a line is a record of Claude Code for sure; quicker than reading all of it, and most lines of most files are."""
    try:
        named = _named.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if named.sessionId is UNSET and named.leafUuid is UNSET:
        return False
    linked = named.uuid is not UNSET and named.parentUuid is not UNSET and named.sessionId is not UNSET
    return linked or named.type in KNOWN


def _scored(documents: list[Any], sessions: int = 0) -> str | None:
    scores: dict[str, int] = {"claude-code": sessions} if sessions else {}
    for one in documents:
        if isinstance(one, dict):
            name = kind_of(one)
            scores[name] = scores.get(name, 0) + 1
    if not scores:
        return None
    known = {name: score for name, score in scores.items() if name != "raw"}
    if not known:
        return "raw"
    if "codex-old" in known and "openai-items" in known:
        return "codex-old"
    return max(known, key=lambda name: (known[name], name))


def kind_of(one: dict[str, Any]) -> str:
    """The format that a record is of."""
    kind = one.get("type")
    named = isinstance(kind, str)
    word = kind if isinstance(kind, str) else ""
    if ("uuid" in one and "parentUuid" in one and "sessionId" in one) or (
        named and kind in KNOWN and ("sessionId" in one or "leafUuid" in one)
    ):
        return "claude-code"
    if named and kind in CODEX and "payload" in one:
        return "codex"
    if "record_type" in one or ("instructions" in one and "timestamp" in one and "id" in one and not named):
        return "codex-old"
    if one.get("object") == "response" or isinstance(one.get("response"), dict):
        return "openai-responses"
    if kind in ("user", "assistant", "system", "result") and "session_id" in one and "parentUuid" not in one:
        return "claude-stream"
    if named and (word.startswith(("thread.", "turn.", "item.")) or kind == "error") and "payload" not in one:
        return "codex-stream"
    if "lc" in one and kind == "constructor":
        return "langchain"
    if named and kind in LANGCHAIN and ("content" in one or "data" in one):
        return "langchain"
    if kind in ("user", "assistant") and isinstance(one.get("message"), dict):
        return "claude-code"
    if kind in ITEMS and "payload" not in one and (kind != "message" or isinstance(one.get("content"), list)):
        return "openai-items"
    if isinstance(one.get("role"), str) and ("content" in one or "tool_calls" in one):
        return "chat"
    if isinstance(one.get("messages"), list):
        return "chat"
    return "raw"
