"""Plain chats, dumps of a graph's messages, printed streams, and lines of JSON of no known shape: one chain in file order.

Nothing that a dump names is built or imported: a constructor form is read for its arguments alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from studio.stores.transcripts import content
from studio.stores.transcripts.claude import said
from studio.stores.transcripts.items import chain
from studio.stores.transcripts.names import word
from studio.stores.transcripts.record import Indexed, Kind, Record, moment, whole
from studio.stores.transcripts.source import loads

ROLES = {
    "user": "human", "human": "human", "HumanMessage": "human", "assistant": "ai", "ai": "ai", "AIMessage": "ai", "model": "ai",
    "AIMessageChunk": "ai", "tool": "tool", "function": "tool", "ToolMessage": "tool", "FunctionMessage": "tool",
    "system": "system",
    "developer": "system", "SystemMessage": "system", "chat": "human", "ChatMessage": "human", "HumanMessageChunk": "human",
}  # fmt: skip
KINDS: dict[str, Kind] = {"human": "prompt", "ai": "answer", "tool": "result", "system": "context"}


class Chat:
    def __init__(self, name: str) -> None:
        self.format = name

    def take(self, to: Indexed, line: int, offset: int, length: int, data: bytes) -> None:
        document = loads(data)
        if not isinstance(document, dict):
            raise ValueError("no object")
        to.total += 1
        held = document.get("messages")
        if isinstance(held, list):
            for at, one in enumerate(held):
                if isinstance(one, dict):
                    self._one(to, Record(0, line, offset, length, "note", f"{to.source.name}:{line}:{at}"), one, at)
            if to.records and held:  # each line is a conversation of its own
                first = next((one for one in to.records if one.line == line), None)
                if first is not None and first is not to.records[0]:
                    first.more = {**(first.more or {}), "root": True}
            return
        beside = bool(to.records) and to.records[-1].line == line
        ident = f"{to.source.name}:{line}:{offset}" if beside else f"{to.source.name}:{line}"
        self._one(to, Record(0, line, offset, length, "note", ident), document, None)

    def _one(self, to: Indexed, record: Record, document: dict[str, Any], at: int | None) -> None:
        fields = unwrapped(document)
        role = ROLES.get(str(fields.get("role") or fields.get("type")))
        ident = fields.get("id") or fields.get("uuid")
        if isinstance(ident, str) and ident:
            record.id = ident
        more: dict[str, Any] = {} if at is None else {"at": at}
        record.at = moment(fields.get("timestamp") or fields.get("created_at"))[0]
        above = fields.get("parent_id") or fields.get("parent")
        if isinstance(above, str):
            record.parent = above
        if fields.get("type") == "remove" or role is None and self.format == "langchain":
            record.kind, more["remove"] = "context", ident
        else:
            record.kind = KINDS.get(role or "", "context")
        if role == "human":
            record.said = said(content.text_of(fields.get("content")))
        elif role == "ai":
            record.calls = tuple((call["id"], call["name"]) for call in calls_of(fields))
            record.tokens = tokens_of(fields)
            meta = fields.get("response_metadata")
            model = fields.get("model") or (meta.get("model_name") if isinstance(meta, dict) else None)
            record.model = model if isinstance(model, str) else None
        elif role == "tool":
            record.results = ((str(fields.get("tool_call_id")), fields.get("status") == "error"),)
        record.more = more or None
        to.records.append(record)

    def finish(self, to: Indexed) -> None:
        to.session = to.source.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
        last_of: dict[str, int] = {}
        replaced: list[Record] = []
        for at, record in enumerate(to.records):  # the same id again takes the place of the message before
            if record.id in last_of and self.format == "langchain" and not (record.more or {}).get("remove"):
                replaced.append(to.records[last_of[record.id]])
            last_of[record.id] = at
        kept = [record for record in to.records if not any(record is one for one in replaced)]
        gone = {(record.more or {})["remove"] for record in kept if (record.more or {}).get("remove")}
        to.records = [record for record in kept if record.id not in gone] or kept
        chain(to)
        for record in to.records:
            if (record.more or {}).get("root"):
                record.parent = None

    def messages(self, record: Record, document: Any) -> list[dict[str, Any]]:
        if not isinstance(document, dict):
            return []
        at = (record.more or {}).get("at")
        if at is not None:
            held = document.get("messages")
            document = held[at] if isinstance(held, list) and at < len(held) and isinstance(held[at], dict) else {}
        fields = unwrapped(document)
        role = ROLES.get(str(fields.get("role") or fields.get("type")))
        shown = content.shown(fields.get("content"))
        if role == "ai":
            made: dict[str, Any] = {
                "type": "ai",
                "id": record.id,
                "content": shown if shown is not None else "",
                "tool_calls": calls_of(fields),
            }
            return [made]
        if role == "tool":
            made = {"type": "tool", "id": record.id, "tool_call_id": word(fields.get("tool_call_id")) or None, "content": shown}
            if isinstance(fields.get("name"), str):
                made["name"] = fields["name"]
            return [{**made, "status": "error"} if fields.get("status") == "error" else made]
        if role is not None:
            return [{"type": role, "id": record.id, "content": shown}]
        text = json.dumps(content.small(document), ensure_ascii=False)
        return [{"type": "system", "id": record.id, "name": str(document.get("type", "record")), "content": content.cut(text)}]

    def effects(self, record: Record, document: Any, calls: dict[str, dict[str, Any]]) -> Sequence[tuple[str, str | None, Any]]:
        found: list[tuple[str, str | None, Any]] = []
        for ident, failed in record.results:
            if ident in calls:
                found += content.effects_of_tool(ident, calls[ident], {}, failed)
        return found


def unwrapped(document: dict[str, Any]) -> dict[str, Any]:
    """The fields of a message in any of its forms."""
    if "lc" in document and isinstance(document.get("kwargs"), dict):
        path = document.get("id")
        name = path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else ""
        return {**document["kwargs"], "type": document["kwargs"].get("type") or name}
    if isinstance(document.get("data"), dict) and isinstance(document.get("type"), str) and "content" not in document:
        return {**document["data"], "type": document["type"]}
    if isinstance(document.get("message"), dict) and "role" in document["message"]:
        inner = {name: document[name] for name in ("uuid", "timestamp") if name in document}
        return {**inner, **document["message"]}
    return document


def calls_of(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    held = fields.get("tool_calls")
    blocks = fields.get("content")
    if isinstance(blocks, list) and not held:
        held = [one for one in blocks if isinstance(one, dict) and one.get("type") == "tool_use"]
    for at, call in enumerate(held if isinstance(held, list) else ()):
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        name, args = (
            (function.get("name"), function.get("arguments"))
            if isinstance(function, dict)
            else (call.get("name"), call.get("args", call.get("input")))
        )
        if isinstance(args, str):
            try:
                parsed = json.loads(args)
                args = parsed if isinstance(parsed, dict) else {"input": args}
            except (ValueError, RecursionError):
                args = {"input": args}
        found.append(
            {
                "id": str(call.get("id") or f"call:{at}"),
                "name": str(name or "?"),
                "args": content.small(args),
                "type": "tool_call",
            }
        )
    return found


def tokens_of(fields: Mapping[str, Any]) -> tuple[int, int, int, int] | None:
    usage = fields.get("usage_metadata")
    if not isinstance(usage, dict):
        return None
    details = usage.get("input_token_details")
    held = details if isinstance(details, dict) else {}
    read, made = whole(held.get("cache_read")), whole(held.get("cache_creation"))
    return whole(usage.get("input_tokens")) - read - made, whole(usage.get("output_tokens")), read, made
