"""One-line summaries of stored values, and messages as a person reads them. Everything returned is gated and masked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from studio.model import Value
from studio.render import pairs, secrets
from studio.render.gate import line
from studio.value import KEY_HINT, MapValue, Opaque, Tagged

MASK = "••••••••"
LONGEST_NUMBER = 4_000
"""Bits of an integer that is shown in digits: far fewer than Python's limit for that."""
DEEPEST = 3
"""Levels of a value that a summary opens; below them only sizes are told."""
NO_NAME = object()
"""What an item of a list stands under; null can be the key of a map."""
_NAMES = 4
"""What a pickle would import, as far as a summary names it."""
_NAMES_OF_ROLES = {
    "user": "human HumanMessage HumanMessageChunk user",
    "assistant": "ai AIMessage AIMessageChunk assistant",
    "system": "system SystemMessage developer",
    "tool": "tool ToolMessage FunctionMessage function",
    "remove": "RemoveMessage remove",
    "chat": "ChatMessage chat",
}
_ROLES = {name: role for role, names in _NAMES_OF_ROLES.items() for name in names.split()}


class ToolCall(Struct, frozen=True):
    id: str | None
    name: str
    args: Value


class MessageView(Struct, frozen=True):
    """A chat message: `role` is user, assistant, system, tool, remove or chat; `text` is raw, not yet gated."""

    role: str
    id: str | None
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    status: str | None = None
    """`error` for a tool result that says so."""


def message(value: Value) -> MessageView | None:
    """A stored value as a message, or None when it is none: LangChain messages of any era, or `{role, content}` maps."""
    found = role_of(value)
    if found is None:
        return None
    role, fields = found
    return MessageView(
        role=role,
        id=_text(fields.get("id")),
        text=content_text(fields.get("content")),
        tool_calls=calls_of(fields),
        tool_call_id=_text(fields.get("tool_call_id")),
        name=_text(fields.get("name")),
        status=_text(fields.get("status")) if fields.get("status") == "error" else None,
    )


def message_channels(values: Mapping[str, Value]) -> list[str]:
    """Channels that hold chat messages, `messages` first."""
    found = [name for name, value in values.items() if isinstance(value, list) and any(message(item) for item in value[:3])]
    return sorted(found, key=lambda name: (name != "messages", name))


def role_of(value: Value) -> tuple[str, dict[str, Any]] | None:
    """(role, fields) of a stored message, its text not looked at; None for anything else."""
    if isinstance(value, Tagged):
        role = _ROLES.get(value.name) if value.module.startswith(("langchain", "langgraph")) else None
        fields: Any = value.fields if role else None
    elif isinstance(value, dict) and ("content" in value or "tool_calls" in value):
        kind = value.get("role") or value.get("type")
        role = _ROLES.get(kind) if isinstance(kind, str) else None
        fields = value
    else:
        return None
    if not role or not isinstance(fields, dict) or not ("content" in fields or "tool_calls" in fields or role == "remove"):
        return None
    return role, fields


def calls_of(fields: dict[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls of a message, in LangChain's form or OpenAI's."""
    calls = fields.get("tool_calls")
    return tuple(_call(call) for call in calls if isinstance(call, dict)) if isinstance(calls, list) else ()


def content_text(content: Value) -> str:
    """The readable text of message content: a string, or blocks of which non-text ones are named in brackets."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else line(_summary(content, 200, DEEPEST + 1, False), 200)
    parts = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            parts.append(block["text"])
        elif isinstance(block, dict):
            parts.append(f"[{block.get('type', 'block')}]")
    return "\n".join(parts)


def _call(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    if isinstance(function, dict):
        return ToolCall(_text(call.get("id")), str(function.get("name", "?")), function.get("arguments"))
    return ToolCall(_text(call.get("id")), str(call.get("name", "?")), call.get("args"))


def _text(value: Value) -> str | None:
    return value if isinstance(value, str) else None


def call_text(call: ToolCall, width: int = 160) -> str:
    """`issue_refund(order="4711", amount=499.0)`, gated and masked."""
    return _call_text(call, width, 0, False)


def recorded_call(call: ToolCall, width: int = 160) -> str:
    """`issue_refund, recorded with order="4711", amount=499.0`: what it was called with once, and need not be again."""
    inner = _arguments(call, 0, False)
    return line(f"{line(call.name)}, recorded with {inner or 'no arguments'}", width)


def arguments_text(call: ToolCall, width: int = 160) -> str:
    """`order="4711", amount=499.0`, gated and masked."""
    return line(_arguments(call, 0, False), width)


def _call_text(call: ToolCall, width: int, depth: int, show_secrets: bool) -> str:
    return line(f"{line(call.name)}({_arguments(call, depth, show_secrets)})", width)


def _arguments(call: ToolCall, depth: int, show_secrets: bool) -> str:
    if isinstance(call.args, dict):
        shown = ((str(key), _masked_or(value, str(key), 60, depth, show_secrets)) for key, value in call.args.items())
        named = ((key if show_secrets else secrets.mask_keys(key), text) for key, text in shown)
        return ", ".join(f"{line(key)}={line(text, 60)}" for key, text in named)
    return "" if call.args is None else line(_summary(call.args, 120, depth, show_secrets), 120)


def summary(value: Value, width: int = 80, *, key: str | None = None, show_secrets: bool = False) -> str:
    """A value in one line of at most `width` characters: scalars exact, texts quoted, collections by size and first items."""
    return line(_masked_or(value, key, width, 0, show_secrets), width)


def _masked_or(value: Value, key: str | None, room: int, depth: int, show_secrets: bool) -> str:
    if not show_secrets and secrets.hides_all(key, value):
        return MASK
    return _summary(value, room, depth, show_secrets)


def _summary(value: Value, room: int, depth: int, show_secrets: bool) -> str:
    if not show_secrets and _is_secret(value):
        return MASK
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, str):
        return '"' + _head(value, 4 * room + 16, show_secrets).replace("\n", " ⏎ ") + '"'
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value):,} bytes"
    if isinstance(value, Opaque):
        return _opaque(value)
    shown = message(value) if depth <= DEEPEST else None
    if shown:
        if shown.role == "remove":
            return f"remove message {shown.id or ''}"
        calls = " ".join("⚒ " + _call_text(call, 60, depth + 1, show_secrets) for call in shown.tool_calls)
        return f"{shown.role}: {_head(shown.text, 4 * room, show_secrets)} {calls}".replace("\n", " ").strip()
    if isinstance(value, Tagged):
        return _tagged_summary(value, room, depth, show_secrets)
    if isinstance(value, list):
        return _collection(
            "[]", [(NO_NAME, item) for item in value[:12]], len(value), room, depth, show_secrets, pairs.announced(value)
        )
    if isinstance(value, dict):
        return _collection("{}", list(islice(value.items(), 12)), len(value), room, depth, show_secrets, pairs.announced(value))
    if isinstance(value, MapValue):
        return _collection("{}", list(value.pairs[:12]), len(value.pairs), room, depth, show_secrets, pairs.announced(value))
    return f"⟨{type(value).__name__}⟩"


def untold(value: Value) -> tuple[str, ...]:
    """All that loading a pickle would import, where its one line has no room for it; not gated."""
    return value.names if isinstance(value, Opaque) and len(value.names) > _NAMES else ()


def _opaque(value: Opaque) -> str:
    """What is known of bytes that stay closed: of a pickle, what loading it would import."""
    if value.reason == "encrypted":
        return f"⟨{KEY_HINT}; {value.size:,} bytes⟩"
    names = [line(name, 80) for name in value.names[:_NAMES]]
    more = [f"{len(value.names) - _NAMES} more"] if len(value.names) > _NAMES else []
    would = f", would import {', '.join([*names, *more])}" if names else ""
    return f"⟨{value.reason}, {value.size:,} bytes{would}⟩"


def _head(text: str, size: int, show_secrets: bool) -> str:
    """The beginning of a text: only what a summary would show is looked at, so that megabytes cost nothing."""
    return text[:size] if show_secrets else secrets.head(text, size)


def _is_secret(value: Value) -> bool:
    return not isinstance(value, str) and secrets.reason(None, value) is not None


def _collection(
    brackets: str,
    items: list[tuple[Any, Value]],
    size: int,
    room: int,
    depth: int,
    show_secrets: bool,
    pair: tuple[Any, str] | None,
) -> str:
    opening, closing = brackets[0], brackets[1]
    if not size:
        return opening + closing
    if depth >= DEEPEST or room < 12:
        return f"{opening}{size:,} item{'s' if size != 1 else ''}{closing}"
    parts: list[str] = []
    used = 2
    for at, (name, item) in enumerate(items):
        key = name if isinstance(name, str) else None
        beside = pair[1] if pair is not None and pair[0] == (at if name is NO_NAME else name) else pairs.key_name(name)
        text = _masked_or(item, beside, max(8, room - used), depth + 1, show_secrets)
        called = "" if name is NO_NAME else key if key is not None else _summary(name, 20, depth + 1, show_secrets)
        part = text if name is NO_NAME else f"{called if show_secrets else secrets.mask_keys(called)}: {text}"
        if parts and used + len(part) > room - 6:
            break
        parts.append(part)
        used += len(part) + 2
    more = f", +{size - len(parts):,}" if size > len(parts) else ""
    return opening + ", ".join(parts) + more + closing


def _tagged_summary(value: Tagged, room: int, depth: int, show_secrets: bool) -> str:
    name = value.name
    if value.kind == "fields":
        shown = list(value.fields.items())[:12]
        return name + _collection("()", shown, len(value.fields), room - len(name), depth, show_secrets, pairs.announced(value))
    if value.kind == "items":
        items = [(NO_NAME, item) for item in value.items[:12]]
        return name + _collection("{}", items, len(value.items), room - len(name), depth, show_secrets, pairs.announced(value))
    if value.kind == "array":
        payload = value.payload
        if isinstance(payload, list) and len(payload) >= 2:
            shape = "×".join(str(n) for n in payload[1]) if isinstance(payload[1], list) else "?"
            return f"array {payload[0]} {shape}"
        return "array"
    if value.kind == "snapshot":
        return _summary(value.payload, room, depth + 1, show_secrets) if depth <= DEEPEST else "⟨snapshot⟩"
    if value.kind == "args":
        args = value.args
        if len(args) == 1 and isinstance(args[0], (str, int, float)) and not isinstance(args[0], bool):
            inner = args[0] if isinstance(args[0], str) else number(args[0])
            return f"{inner} {name}" if name in _BARE else f"{name}({_summary(args[0], room, depth + 1, show_secrets)})"
        return name + _collection(
            "()",
            [(NO_NAME, item) for item in args[:12]],
            len(args),
            room - len(name),
            depth,
            show_secrets,
            pairs.announced(value),
        )
    return f"⟨{name or 'extension ' + str(value.code)}⟩"


_BARE = {"date", "datetime", "time", "UUID", "Decimal", "ZoneInfo", "IPv4Address", "IPv6Address"}


def number(value: float) -> str:
    """A number as its stored type shows it: `499.0` stays a float, NaN and infinities by name, huge integers by size."""
    if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER:
        return f"⟨integer of {value.bit_length():,} bits⟩"
    return repr(value).replace("inf", "∞")
