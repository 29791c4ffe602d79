"""OpenAI Responses and Conversations: items as a chain, stored responses as a tree by `previous_response_id`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from studio.stores.transcripts import content
from studio.stores.transcripts.claude import said
from studio.stores.transcripts.names import Names, word
from studio.stores.transcripts.record import Indexed, Record, moment, whole
from studio.stores.transcripts.source import loads

CALLS = {
    "function_call": "function", "custom_tool_call": "tool", "local_shell_call": "local_shell", "shell_call": "shell",
    "apply_patch_call": "apply_patch", "web_search_call": "web_search", "file_search_call": "file_search",
    "computer_call": "computer", "code_interpreter_call": "code_interpreter", "image_generation_call": "image_generation",
    "mcp_call": "mcp", "tool_search_call": "tool_search",
}  # fmt: skip
OUTPUTS = Names(
    [
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "tool_search_call_output",
    ]
)
ANSWERED = Names(("web_search", "file_search", "code_interpreter", "image_generation", "mcp", "tool_search"))
"""Tools of the service: their results are in the call itself or stay there."""


class Items:
    def __init__(self, name: str) -> None:
        self.format = name

    def take(self, to: Indexed, line: int, offset: int, length: int, data: bytes) -> None:
        document = loads(data)
        if not isinstance(document, dict):
            raise ValueError("no object")
        to.total += 1
        if to.state is None:
            to.state = {"order": []}
        record = Record(0, line, offset, length, "note", "")
        if document.get("object") == "response" or isinstance(document.get("response"), dict):
            self._response(to, record, document)
            return
        record.id = str(document.get("id") or f"{to.source.name}:{line}:{offset}")
        kind, role = word(document.get("type"), "message"), document.get("role")
        record.at = moment(document.get("created_at"))[0]
        if kind == "message" and role != "assistant":
            text = content.text_of(document.get("content"))
            record.kind, record.said = ("prompt" if role == "user" else "context"), said(text)
        elif kind in OUTPUTS:
            record.kind = "result"
            ident = document.get("id") if kind == "local_shell_call_output" else document.get("call_id")
            record.results = ((str(ident), document.get("status") in ("failed", "incomplete")),)
            record.id = str(document.get("id") or f"{to.source.name}:{line}:{offset}")
        else:
            record.kind = "answer"
            if kind in CALLS:
                ident, name, _ = item_call(document)
                record.calls = ((ident, name),)
        to.records.append(record)

    def _response(self, to: Indexed, record: Record, document: dict[str, Any]) -> None:
        held = document["response"] if isinstance(document.get("response"), dict) else document
        record.id = str(held.get("id") or f"{to.source.name}:{record.line}")
        record.kind, record.key = "answer", record.id
        record.at = moment(held.get("created_at"))[0]
        before = held.get("previous_response_id")
        record.parent = before if isinstance(before, str) else None
        record.model = held.get("model") if isinstance(held.get("model"), str) else None
        output = held.get("output")
        items = [one for one in output if isinstance(one, dict)] if isinstance(output, list) else []
        found = [item_call(one) for one in items if word(one.get("type")) in CALLS]
        record.calls = tuple((ident, name) for ident, name, _ in found)
        done = [(ident, False) for ident, name, _ in found if name in ANSWERED]
        given = (
            document.get("input") or (document.get("request") or {}).get("input")
            if isinstance(document.get("request") or {}, dict)
            else None
        )
        outputs = (
            [one for one in given if isinstance(one, dict) and one.get("type") in OUTPUTS] if isinstance(given, list) else []
        )
        record.more = {"response": True, **({"failed": True} if held.get("status") == "failed" else {})}
        record.results = (*done, *((str(one.get("call_id")), False) for one in outputs))
        usage = held.get("usage")
        if isinstance(usage, dict):
            details = usage.get("input_tokens_details")
            cached = whole(details.get("cached_tokens")) if isinstance(details, dict) else 0
            record.tokens = (whole(usage.get("input_tokens")) - cached, whole(usage.get("output_tokens")), cached, 0)
        to.records.append(record)

    def finish(self, to: Indexed) -> None:
        to.session = to.source.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
        if any((record.more or {}).get("response") for record in to.records):
            return
        if _newest_first(to):
            to.records.reverse()
        chain(to)

    def messages(self, record: Record, document: Any) -> list[dict[str, Any]]:
        if not isinstance(document, dict):
            return []
        if not (record.more or {}).get("response"):
            return item_messages(document, record.id)
        held = document["response"] if isinstance(document.get("response"), dict) else document
        found: list[dict[str, Any]] = []
        given = document.get("input") or (document.get("request") or {}).get("input")
        if isinstance(given, str):
            found.append({"type": "human", "id": f"{record.id}:input", "content": content.cut(given)})
        for at, one in enumerate(given if isinstance(given, list) else ()):
            found += item_messages(one, f"{record.id}:input:{at}") if isinstance(one, dict) else []
        output = held.get("output")
        for one in output if isinstance(output, list) else ():
            found += item_messages(one, record.id) if isinstance(one, dict) else []
        return found

    def effects(self, record: Record, document: Any, calls: dict[str, dict[str, Any]]) -> Sequence[tuple[str, str | None, Any]]:
        found: list[tuple[str, str | None, Any]] = []
        for ident, failed in record.results:
            if ident in calls:
                found += content.effects_of_tool(ident, calls[ident], {}, failed)
        return found


def _newest_first(to: Indexed) -> bool:
    """Whether a list stands in the order of the service: its results before their calls, or its times going back."""
    calls: dict[str, int] = {}
    results: dict[str, int] = {}
    for at, record in enumerate(to.records):
        for ident, _ in record.calls:
            calls.setdefault(ident, at)
        for ident, _ in record.results:
            results.setdefault(ident, at)
    votes = sum(1 if at < calls[ident] else -1 for ident, at in results.items() if ident in calls)
    times = [record.at for record in to.records if record.at is not None]
    votes += sum(1 if one > two else -1 if one < two else 0 for one, two in zip(times, times[1:], strict=False))
    if votes:
        return votes > 0
    listed = to.source.listed
    kinds = [record.kind for record in to.records if record.kind in ("prompt", "answer")]
    return listed is not None and listed.is_list and bool(kinds) and kinds[0] == "answer" and kinds[-1] == "prompt"


def chain(to: Indexed) -> None:
    """Records in their order as one chain, the answers between two others as one."""
    last: str | None = None
    key, answered = "", False
    for record in to.records:
        if record.parent is None:
            record.parent = last
        last = record.id
        if record.kind == "answer":
            if not key or answered:
                key, answered = record.id, False
            record.key = key
        elif record.kind == "result":
            answered = True
        elif record.kind == "prompt":
            key = ""


def item_call(item: dict[str, Any]) -> tuple[str, str, Any]:
    """(id, name, arguments) of a call."""
    kind = str(item.get("type"))
    ident = item.get("call_id") or item.get("id") or "?"
    name = item.get("name") if isinstance(item.get("name"), str) else CALLS.get(kind, kind)
    args: Any = item.get("arguments")
    if isinstance(args, str):
        try:
            parsed = json.loads(args)
            args = parsed if isinstance(parsed, dict) else args
        except (ValueError, RecursionError):
            pass
    if args is None:
        args = item.get("input") if "input" in item else item.get("action") if "action" in item else item.get("queries")
    return str(ident), str(name), content.small(args)


def item_output(item: dict[str, Any]) -> Any:
    output = item.get("output")
    if isinstance(output, str) and output.startswith('{"output"'):
        try:
            inner = json.loads(output)
            if isinstance(inner, dict) and isinstance(inner.get("output"), str):
                return content.cut(inner["output"])
        except (ValueError, RecursionError):
            pass
    return content.shown(output) if output is not None else ""


def item_messages(item: dict[str, Any], ident: str) -> list[dict[str, Any]]:
    """An item as a message."""
    kind, role = word(item.get("type"), "message") or "message", item.get("role")
    if kind == "message" or role is not None:
        shown = content.shown(item.get("content"))
        if role == "assistant":
            return [{"type": "ai", "id": ident, "content": shown, "tool_calls": []}]
        return [{"type": "human" if role == "user" else "system", "id": ident, "content": shown}]
    if kind == "reasoning":
        text = content.text_of(item.get("summary")) or content.text_of(item.get("content"))
        held = [{"type": "thinking", "thinking": content.cut(text)}] if text else []
        return [{"type": "ai", "id": ident, "content": held or "", "tool_calls": []}]
    if kind in OUTPUTS:
        call = item.get("id") if kind == "local_shell_call_output" else item.get("call_id")
        return [{"type": "tool", "id": ident, "tool_call_id": word(call) or None, "content": item_output(item)}]
    if kind in CALLS:
        call_id, name, args = item_call(item)
        given = args if isinstance(args, dict) else {"input": args}
        found = [
            {
                "type": "ai",
                "id": ident,
                "content": "",
                "tool_calls": [{"id": call_id, "name": name, "args": given, "type": "tool_call"}],
            }
        ]
        if name in ANSWERED and (item.get("results") or item.get("result") or item.get("output")):
            held = content.small({key: item[key] for key in ("results", "result", "output") if key in item})
            found.append({"type": "tool", "id": f"{ident}:result", "tool_call_id": call_id, "content": json.dumps(held)})
        return found
    return [{"type": "system", "id": ident, "name": str(kind), "content": json.dumps(content.small(item))}]
