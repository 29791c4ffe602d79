"""A stored message with one part of it said otherwise: a text, a tool call; and new messages in the form of those beside them.

The rest of a message stays: its type, ids, blocks that are no text, response metadata, usage. Providers leave copies of a call in
content blocks and in `additional_kwargs`; they follow the call, or the model would be told the old arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from studio import tagged
from studio.codec import jsontext
from studio.errors import PatchError
from studio.model import Tagged_JSON, Value
from studio.render import masking, preview, secrets
from studio.value import Tagged, equal

_LANGCHAIN = {
    "user": ("human", "HumanMessage"),
    "assistant": ("ai", "AIMessage"),
    "tool": ("tool", "ToolMessage"),
    "system": ("system", "SystemMessage"),
}
"""Role -> (type, class) in LangChain; the type is also the class's module in langchain_core.messages."""
_COMMON: dict[str, Any] = {"content": "", "additional_kwargs": {}, "response_metadata": {}, "type": "", "name": None, "id": None}
_OWN: dict[str, dict[str, Any]] = {
    "user": {},
    "system": {},
    "assistant": {"tool_calls": [], "invalid_tool_calls": [], "usage_metadata": None},
    "tool": {"tool_call_id": "", "artifact": None, "status": "success"},
}
_CALL_BLOCKS = {"tool_use": ("id", "input"), "tool_call": ("id", "args"), "function_call": ("call_id", "arguments")}
"""Type of a content block that copies a call -> where its id and its arguments stand."""


def texts_of(message: Value) -> list[tuple[int | None, str]]:
    """(block, text) of what can be edited as text; block None: the content is one text. A list without one gets a new block."""
    content = _fields(message).get("content")
    if isinstance(content, str):
        return [(None, content)]
    if not isinstance(content, list):
        return [(None, "")] if content is None else []
    found: list[tuple[int | None, str]] = []
    found += [(at, text) for at, block in enumerate(content) if (text := _block_text(block)) is not None]
    return found or [(len(content), "")]


def masked_text(stored: str, *, show_secrets: bool = False) -> str:
    """A text as an editor offers it: secrets in it are masked."""
    return stored if show_secrets else secrets.mask_text(stored)


def typed_text(stored: str, typed: str, *, show_secrets: bool = False) -> str:
    """What was typed in the place of `masked_text`, which itself stands for the stored text. PatchError: a mask stays in it."""
    shown = masked_text(stored, show_secrets=show_secrets)
    if typed == shown:
        return stored
    if shown != stored and secrets.MASKED in typed:
        raise PatchError(
            "The text around a masked part cannot be changed.",
            "Leave it as it was shown, write the whole text, or work with --show-secrets.",
            "masked",
        )
    return typed


def with_text(message: Value, block: int | None, text: str) -> Value:
    """The message with another text in one place."""
    fields = _fields(message)
    content = fields.get("content")
    if block is None:
        return _with(message, content=text if text or content is not None else None)
    if not isinstance(content, list) or not 0 <= block <= len(content):
        raise IndexError(block)
    if block == len(content):
        return _with(message, content=[*content, {"type": "text", "text": text}]) if text else message
    old = content[block]
    if _block_text(old) is None:
        raise IndexError(block)
    new = text if isinstance(old, str) else {**old, "text": text}
    return _with(message, content=[*content[:block], new, *content[block + 1 :]])


def _block_text(block: Value) -> str | None:
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else None


def arguments_are_text(message: Value, index: int) -> bool:
    """Whether the arguments of a call are stored as a text of JSON, as OpenAI has them, not as a map."""
    call = _calls(message)[index]
    function = call.get("function")
    return isinstance(function, dict) and isinstance(function.get("arguments"), str)


def with_call(message: Value, index: int, name: str, args: Tagged_JSON) -> Value:
    """The message with another name or other arguments in one call, whose id stays. PatchError: the arguments are no map."""
    calls = _calls(message)
    if not 0 <= index < len(calls):
        raise IndexError(index)
    call = calls[index]
    function = call.get("function")
    if not isinstance(function, dict):
        function = None
    stored = function.get("arguments") if function is not None else call.get("args")
    if function is not None and isinstance(stored, str):
        given = args if isinstance(args, str) else tagged.dumps(args)
        if name == function.get("name") and given == stored:
            return message
        if not isinstance(tagged.loads(given), dict):
            raise _no_map(name)
        new = {**call, "function": {**function, "name": name, "arguments": given}}
        return _with_copies(message, index, new, call.get("id"), name, json.loads(given))
    value = tagged.from_tagged(args, stored, masking.hidden_in(None, stored))
    if not isinstance(value, dict):
        raise _no_map(name)
    if equal(value, stored) and name == (function if function is not None else call).get("name"):
        return message
    if function is not None:
        new = {**call, "function": {**function, "name": name, "arguments": value}}
    else:
        new = {**call, "name": name, "args": value}
    return _with_copies(message, index, new, call.get("id"), name, value)


def _no_map(name: str) -> PatchError:
    return PatchError(f"The arguments of {name} must be a map.", 'Write {"name": value, …}.', "no-map")


def _with_copies(message: Value, index: int, call: dict[str, Any], ident: Value, name: str, args: dict[str, Any]) -> Value:
    """Set a call, and what copies it by its id."""
    fields = _fields(message)
    old = _calls(message)[index]
    changed: dict[str, Any] = {"tool_calls": [call if one is old else one for one in fields["tool_calls"]]}
    if isinstance(ident, str) and ident:
        for field, copied in _copies(fields):
            changed[field] = copied(lambda block: _copy(block, ident, name, args))
    return _with(message, **{field: value for field, value in changed.items() if value is not fields.get(field)})


def without_call(message: Value, index: int) -> Value:
    """The message without one of its calls, and without what copies it."""
    calls = _calls(message)
    if not 0 <= index < len(calls):
        raise IndexError(index)
    ident = calls[index].get("id")
    fields = _fields(message)
    changed: dict[str, Any] = {"tool_calls": [one for one in fields["tool_calls"] if one is not calls[index]]}
    if isinstance(ident, str) and ident:
        for field, copied in _copies(fields):
            changed[field] = copied(lambda block: None if _copy(block, ident, "", {}) is not block else block)
    return _with(message, **{field: value for field, value in changed.items() if value is not fields.get(field)})


def _copies(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(field, a function that maps the copies of calls in it) of the fields that may hold some."""
    found: list[tuple[str, Any]] = []
    for field in ("content", "tool_call_chunks"):
        held = fields.get(field)
        if isinstance(held, list):
            found.append((field, lambda change, held=held: _mapped(held, change)))
    extra = fields.get("additional_kwargs")
    if isinstance(extra, dict) and isinstance(extra.get("tool_calls"), list):

        def inside(change: Any) -> Any:
            calls = _mapped(extra["tool_calls"], change)
            return extra if calls is extra["tool_calls"] else {**extra, "tool_calls": calls}

        found.append(("additional_kwargs", inside))
    return found


def _mapped(held: list[Any], change: Any) -> list[Any]:
    new = [change(block) for block in held]
    return held if all(one is other for one, other in zip(new, held, strict=True)) else [one for one in new if one is not None]


def _copy(block: Any, ident: str, name: str, args: dict[str, Any]) -> Any:
    """A block or entry that copies this call, with its new name and arguments; anything else as it is."""
    if not isinstance(block, dict):
        return block
    function = block.get("function")
    if isinstance(function, dict):
        if block.get("id") != ident:
            return block
        return {**block, "function": {**function, "name": name, "arguments": _like(function.get("arguments"), args)}}
    kind = block.get("type")
    id_key, args_key = _CALL_BLOCKS.get(kind, ("id", "args")) if isinstance(kind, str) else ("id", "args")
    if block.get(id_key) != ident or not ("name" in block and args_key in block):
        return block
    new = {**block, "name": name, args_key: _like(block[args_key], args)}
    return {**new, "partial_json": _like("", args)} if isinstance(block.get("partial_json"), str) else new


def _like(stored: Any, args: dict[str, Any]) -> Any:
    """Arguments in the form in which a copy has them: a text of JSON, or a map."""
    if not isinstance(stored, str):
        return args
    try:
        return jsontext.dumps(args, jsontext.PYTHON)
    except (TypeError, PatchError):  # a value that JSON has not
        return tagged.dumps(tagged.to_tagged(args))


def new_message(role: str, text: str, beside: Sequence[Value], at: int, given: Mapping[str, Any]) -> Value:
    """A message in the form of those that it will stand among. `given`: `id`, and the `call` that a tool result answers."""
    if role not in _LANGCHAIN or not isinstance(text, str):
        raise KeyError(role)
    sample = _sample(role, beside, at)
    call, ident = given.get("call"), given.get("id")
    if role == "tool" and not isinstance(call, str):
        raise PatchError("A tool result needs the call that it answers.", "Choose one.", "no-open-call")
    name = _tool_name(call, beside) if isinstance(call, str) else None
    kind, class_name = _LANGCHAIN[role]
    if isinstance(sample, dict):
        return _plain_message(role, text, sample, beside, call, ident)
    fields: dict[str, Any] = {**_COMMON, **_OWN[role], "content": text, "type": kind, "name": name, "id": ident}
    if role == "tool":
        fields["tool_call_id"] = call
    if isinstance(sample, Tagged) and isinstance(sample.code, str):
        held = _fields(sample)
        kept = {key: value for key, value in fields.items() if value not in (None, {}) or key in held}
        path = [*sample.module.split("."), class_name]
        return Tagged(sample.code, None, {"lc": int(sample.code[2]), "type": "constructor", "id": path, "kwargs": kept})
    if isinstance(sample, Tagged) and isinstance(sample.code, int):
        if "example" in sample.fields and role in ("user", "assistant"):
            fields["example"] = False
        method = [sample.method] if sample.method is not None else []
        return Tagged.of_payload(sample.code, [_module(sample.module, kind), class_name, fields, *method])
    return Tagged.of_payload(5, [f"langchain_core.messages.{kind}", class_name, fields, "model_validate_json"])


def _sample(role: str, beside: Sequence[Value], at: int) -> Value:
    """The nearest message of the same role, else the nearest one."""
    near = sorted(range(len(beside)), key=lambda index: abs(index - at))
    found: Value = None
    for index in near[:400]:
        parts = preview.role_of(beside[index])
        if parts is not None and parts[0] in _LANGCHAIN:
            if parts[0] == role:
                return beside[index]
            found = beside[index] if found is None else found
    return found


def _module(module: str, kind: str) -> str:
    """`langchain_core.messages.human` -> `….tool`; a module that holds all classes stays."""
    above, _, last = module.rpartition(".")
    return f"{above}.{kind}" if last in {kind for kind, _ in _LANGCHAIN.values()} | {"function", "chat"} else module


def _plain_message(role: str, text: str, sample: dict[str, Any], beside: Sequence[Value], call: Value, ident: Value) -> Value:
    key = "role" if "role" in sample else "type"
    made: dict[str, Any] = {key: role if key == "role" else _LANGCHAIN[role][0]}
    if any(isinstance(one, dict) and isinstance(one.get("id"), str) for one in beside[:200]):
        made["id"] = ident
    if role == "tool":
        made["tool_call_id"] = call
    return {**made, "content": text}


def _tool_name(ident: str, beside: Sequence[Value]) -> str | None:
    for message in reversed(beside):
        parts = preview.role_of(message)
        for call in preview.calls_of(parts[1]) if parts is not None else ():
            if call.id == ident:
                return call.name
    return None


def _fields(message: Value) -> Mapping[str, Any]:
    parts = preview.role_of(message)
    if parts is None:
        raise KeyError("no message")
    return parts[1]


def _calls(message: Value) -> list[dict[str, Any]]:
    """The calls of a message, as `preview.calls_of` counts them: entries that are no map are not among them."""
    calls = _fields(message).get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _with(message: Value, **fields: Any) -> Value:
    if isinstance(message, Tagged):
        return message.replace(fields={**message.fields, **fields})
    return {**message, **fields}
