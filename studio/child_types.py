"""Which stored types may be built in the child process, and the gate that lets no other through.

LangGraph's loader imports and calls whatever a stored value names. `TypeGate` reads the names out of the bytes first, without
importing anything, and raises `BlockedTypes` for a name that is not on LangGraph's safe list, in the graph's own schema, trusted
by the person, or written by this very process. It works with every release, also those that have no strict mode.

Standard library only and valid for Python 3.9: `child.py` loads this file by path inside the user's interpreter.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import json
import os
import sys
import typing
from collections.abc import Iterable
from typing import Any


def read_safe_list(path: str) -> frozenset[str]:
    """Dotted names of a list with lines `module: Name Name …`; `#` begins a comment line."""
    names = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            module, colon, listed = line.partition(":")
            if colon and not line.startswith("#"):
                names += [f"{module}.{name}" for name in listed.split()]
    return frozenset(names)


SAFE = read_safe_list(os.path.join(os.path.dirname(os.path.abspath(__file__)), "safe_types.txt"))
"""What may be built without asking; the studio's plan reads the same file."""

_BUILDING_CODES = (0, 1, 2, 3, 4, 5)
"""Ext codes whose payload begins with the module and the name that the loader would import and call."""
_METHOD_CODE = 3
"""`[module, name, argument, method]`: the loader calls `method` of the class with the argument."""
_SNAPSHOT_CODE = 7
_UNREADABLE = "(a name that cannot be read)"
_SAFE_METHODS = {
    "datetime.datetime": {"fromisoformat"},
    "datetime.date": {"fromisoformat"},
    "datetime.time": {"fromisoformat"},
}
_BUILDING_METHODS = {"construct", "model_construct"}
"""How older JSON rows build pydantic models: no more than the constructor does."""


def called_name(name: str, method: object) -> str:
    """What loading would call: the type itself, or `type.method` where a stored value asks for a method that may do harm."""
    if method is None or (isinstance(method, str) and (method in _SAFE_METHODS.get(name, ()) or method in _BUILDING_METHODS)):
        return name
    return "{}.{}".format(name, method) if isinstance(method, str) else _UNREADABLE


class BlockedTypes(Exception):
    """Stored values name types that nobody allowed; `names` lists them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = sorted(set(names))
        super().__init__("stored values would import " + ", ".join(self.names))


def names_in_msgpack(data: bytes) -> set[str]:
    """Dotted names that loading this msgpack document would import, nested ones included."""
    found: set[str] = set()

    def hook(code: int, payload: bytes) -> None:
        if code in _BUILDING_CODES:
            parts = unpack(payload)
            if isinstance(parts, list) and len(parts) > 1 and isinstance(parts[0], str) and isinstance(parts[1], str):
                method = parts[3] if code == _METHOD_CODE and len(parts) > 3 else None
                found.add(called_name(parts[0] + "." + parts[1], method))
            else:
                found.add(_UNREADABLE)  # a map with the keys 0 and 1 would pass for an array in the loader
        elif code == _SNAPSHOT_CODE:
            unpack(payload)

    try:
        import ormsgpack

        def unpack(raw: bytes) -> Any:
            return ormsgpack.unpackb(raw, ext_hook=hook, option=ormsgpack.OPT_NON_STR_KEYS)
    except ImportError:  # releases before checkpoint 2.0.22
        import msgpack  # type: ignore[import-not-found]

        def unpack(raw: bytes) -> Any:
            return msgpack.unpackb(raw, ext_hook=hook, strict_map_key=False, object_pairs_hook=list)

    unpack(data)
    return found


def names_in_json(data: bytes | str) -> set[str]:
    """Dotted names that a JSON document with `lc` constructors would import."""
    found: set[str] = set()

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        node = dict(items)
        ident = node.get("id")
        kind = node.get("lc")
        if node.get("type") == "constructor" and kind in (1, 2) and ident is not None:
            if not isinstance(ident, list) or not ident or not all(isinstance(part, str) for part in ident):
                found.add(_UNREADABLE)  # the loader unpacks whatever stands here, the keys of a map too
            elif kind == 2:
                methods = node.get("method")
                for method in methods if isinstance(methods, list) else [methods]:
                    found.add(called_name(".".join(ident), method))
            elif not _is_langchain_class(ident):
                found.add(".".join(ident))
        return node

    json.loads(data, object_pairs_hook=pairs)
    return found


def _is_langchain_class(ident: list[Any]) -> bool:
    return ident[0] in ("langchain", "langchain_core") and any(ident[-1] == name.rpartition(".")[2] for name in SAFE)


class TypeGate:
    """The names that may be built. Shared by every serializer of a run; grows when the graph is known and when it writes."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self.allowed = set(SAFE) | set(trusted)

    def allow(self, names: Iterable[str]) -> None:
        self.allowed.update(names)

    def names(self, tag: str, data: bytes) -> set[str]:
        if tag == "msgpack":
            return names_in_msgpack(data)
        return names_in_json(data) if tag == "json" else set()

    def check(self, tag: str, data: bytes) -> None:
        """Raise BlockedTypes when loading would build something that is not allowed."""
        blocked = self.names(tag, data) - self.allowed
        if blocked:
            raise BlockedTypes(blocked)

    def modules(self) -> set[tuple[str, str]]:
        """The allowed names as LangGraph's (module, name) pairs."""
        return {(name.rpartition(".")[0], name.rpartition(".")[2]) for name in self.allowed}


def guarded(serializer_class: Any, gate: TypeGate) -> Any:
    """A serializer like LangGraph's own that asks the gate before it builds anything."""
    has_strict_mode = hasattr(serializer_class, "with_msgpack_allowlist")

    class GuardedSerializer(serializer_class):  # type: ignore[misc]
        def dumps_typed(self, obj: Any) -> Any:
            tag, data = super().dumps_typed(obj)
            if tag == "msgpack":
                # What this process writes is made of classes that it has loaded: reading it back is as safe.
                gate.allow(names_in_msgpack(data))
            return tag, data

        def loads_typed(self, data: Any) -> Any:
            gate.check(data[0], data[1])
            reader = self
            if has_strict_mode:
                reader = serializer_class.with_msgpack_allowlist(self, gate.modules())
                if data[0] == "json":
                    reader = copy.copy(reader)
                    reader._allowed_json_modules = {tuple(name.split(".")) for name in gate.allowed}
            return serializer_class.loads_typed(reader, data)

        def loads(self, data: Any) -> Any:  # metadata in older releases
            gate.check("json", data)
            return super().loads(data)

    return GuardedSerializer()


def schema_names(graph: Any) -> set[str]:
    """Dotted names of the types in a compiled graph's schema and its subgraphs', as LangGraph collects them in strict mode."""
    names: set[str] = set()
    for part in _with_subgraphs(graph):
        collected = getattr(part, "_serde_allowlist", None)
        if collected is not None:
            names.update(".".join(key) for key in collected)
        else:
            for found in _declared_types(part):
                _collect(found, names, set())
        own_saver = getattr(part, "checkpointer", None)
        modules = getattr(getattr(own_saver, "serde", None), "_allowed_msgpack_modules", None)
        if isinstance(modules, (set, frozenset)):  # the user's own code lists them as trusted
            names.update(".".join(key) for key in modules if isinstance(key, tuple))
    return names


def _with_subgraphs(graph: Any) -> list[Any]:
    try:
        return [graph] + [part for _, part in graph.get_subgraphs(recurse=True)]
    except Exception:  # older releases have no such method
        return [graph]


def _declared_types(graph: Any) -> list[Any]:
    builder = getattr(graph, "builder", None)
    found = list(getattr(builder, "schemas", None) or ())
    for channel in dict(getattr(graph, "channels", None) or {}).values():
        try:
            found.append(channel.ValueType)
        except Exception:  # a channel without a declared type
            continue
    return found


def _collect(kind: Any, names: set[str], seen: set[int]) -> None:
    """Add the enums, dataclasses, pydantic models and named tuples that a type hint mentions, at any depth."""
    if id(kind) in seen:
        return
    seen.add(id(kind))
    for part in typing.get_args(kind):
        _collect(part, names, seen)
    if not isinstance(kind, type) or typing.get_origin(kind) is not None:
        return
    has_fields = dataclasses.is_dataclass(kind) or any(hasattr(kind, mark) for mark in ("model_fields", "__fields__", "_fields"))
    if has_fields or issubclass(kind, enum.Enum):
        names.add(kind.__module__ + "." + kind.__name__)
    if has_fields or hasattr(kind, "__total__"):
        try:
            hints = typing.get_type_hints(kind)
        except Exception:  # a hint that cannot be resolved here
            hints = {}
        for part in hints.values():
            _collect(part, names, seen)


def lend_to_main(names: Iterable[str], module_name: str) -> set[str]:
    """Let `__main__.X` in a file mean `X` of the graph's module: the program that wrote it was started as a script.

    Returns the dotted `__main__` names that now work.
    """
    lent: set[str] = set()
    main, module = sys.modules["__main__"], sys.modules.get(module_name)
    for name in names:
        owner, _, short = name.rpartition(".")
        found = getattr(module, short, None) if owner == module_name else None
        if isinstance(found, type) and getattr(main, short, found) is found:
            setattr(main, short, found)
            lent.add("__main__." + short)
    return lent


def describe(names: Iterable[str], allowed: Iterable[str], schema: Iterable[str]) -> dict[str, str]:
    """What would become of each stored type: `safe`, `schema`, `missing` (its loaded module has no such class) or `other`."""
    result: dict[str, str] = {}
    for name in names:
        module, _, short = name.rpartition(".")
        loaded = sys.modules.get(module)
        if name in SAFE:
            result[name] = "safe"
        elif loaded is not None and not hasattr(loaded, short):
            result[name] = "missing"
        elif name in schema or name in allowed:
            result[name] = "schema"
        else:
            result[name] = "other"
    return result
