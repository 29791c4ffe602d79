"""What a compiled graph declares: the type of each channel, and its `schema_version` where its author keeps one.

Standard library and the user's LangGraph only, valid for Python 3.9: `child.py` loads this file by path.
"""

from __future__ import annotations

import collections.abc
import sys
import types as python_types
import typing
from typing import Any

_PLAIN = {
    bool: "bool", int: "int", float: "float", str: "str", bytes: "bytes", list: "list", dict: "dict", tuple: "tuple",
    set: "set", frozenset: "frozenset", collections.abc.Sequence: "list", collections.abc.MutableSequence: "list",
    collections.abc.Mapping: "dict", collections.abc.MutableMapping: "dict",
}  # fmt: skip
_VERSION = "schema_version"
_DEEPEST = 20


def channel_types(graph: Any) -> dict[str, dict[str, Any]]:
    """Channel -> its declared type as text, and the plain types that it `accepts`; None where that cannot be said."""
    found = {}
    for name, channel in graph.channels.items():
        try:
            hint = channel.ValueType
        except Exception:  # a channel without a declared type
            hint = Any
        found[str(name)] = {"type": text_of(hint), "accepts": accepts(hint)}
    return found


def text_of(hint: Any) -> str:
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        return hint.__name__
    return str(hint).replace("typing.", "")[:200]


def accepts(hint: Any, depth: int = 0) -> Any:
    """Names of plain types, sorted; None where anything else may stand there."""
    if depth > _DEEPEST or hint is Any or hint is object or isinstance(hint, (str, typing.TypeVar, typing.ForwardRef)):
        return None
    if hint is None or hint is type(None):
        return ["null"]
    origin = typing.get_origin(hint)
    if origin is typing.Union or origin is getattr(python_types, "UnionType", typing.Union):
        found = [accepts(part, depth + 1) for part in typing.get_args(hint)]
        return None if None in found else sorted({name for names in found for name in names})
    if origin is typing.Literal:
        return sorted({_PLAIN[type(value)] for value in typing.get_args(hint) if type(value) in _PLAIN})
    if hasattr(hint, "__metadata__") or str(origin).endswith(("Required", "NotRequired", "ReadOnly")):
        return accepts(typing.get_args(hint)[0], depth + 1)
    kind = origin or hint
    if kind in _PLAIN:
        return [_PLAIN[kind]]
    if isinstance(kind, type) and hasattr(kind, "__total__"):  # a TypedDict
        return ["dict"]
    return None


def schema_version(graph: Any, module_name: str) -> Any:
    """The graph's own `schema_version`: in its metadata, a default of its state, or a constant of its module."""
    metadata = (getattr(graph, "config", None) or {}).get("metadata") or {}
    schema = getattr(getattr(graph, "builder", None), "state_schema", None) or getattr(graph, "schema", None)
    field = (getattr(schema, "model_fields", None) or {}).get(_VERSION)
    module = sys.modules.get(module_name)
    candidates = (
        metadata.get(_VERSION), getattr(field, "default", None), getattr(schema, _VERSION, None),
        getattr(module, "SCHEMA_VERSION", None), getattr(module, _VERSION, None),
    )  # fmt: skip
    return next((found for found in candidates if isinstance(found, (str, int, float))), None)
