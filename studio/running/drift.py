"""What the graph of today and the stored checkpoint do not have in common: channels, their types, nodes, a `schema_version`.

The child tells what the compiled graph has; nothing stored is built for it. What a file has not may be new in the graph, or was
never reached: the file cannot tell the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from studio.codec.objects import Tagged
from studio.explain.channels import NOT_NODES, ROOT, is_internal
from studio.model import START, State, Value
from studio.render.gate import line
from studio.render.preview import summary
from studio.requests import Drift, TypeChange
from studio.value import MapValue

_VERSION = "schema_version"
_PLAIN = {bool: "bool", int: "int", float: "float", str: "str", bytes: "bytes", list: "list", dict: "dict", MapValue: "dict"}
_FITS = {"int": ("bool",), "float": ("int", "bool"), "tuple": ("list",), "list": ("tuple",)}
"""Stored types that count as another declared one: what JSON and msgpack make of it, or what Python lets pass."""


def drift(state: State, known: Mapping[str, Any], later: Sequence[State] = ()) -> Drift:
    """The differences between a checkpoint of the root graph and what the child told of the graph.

    What only `later` states of the thread hold is in the file as well.
    """
    nodes = {str(name) for name in known.get("nodes") or ()}
    declared = {str(name): found for name, found in (known.get("channel_types") or {}).items()}
    ran = {name for one in (state, *later) for name in _ran(one)}
    old = ran if state.format in (1, 2) else ()
    stored = {name for name in (*state.channel_versions, *state.values) if not is_internal(name, old)}
    has = {name for name in declared if not is_internal(name, nodes if state.format in (1, 2) else ()) and name != ROOT}
    changes = [_changed(name, state.values[name], declared[name]) for name in sorted(stored & has) if name in state.values]
    return Drift(
        channels_gone=tuple(sorted(stored - has - {ROOT})) if declared else (),
        channels_new=tuple(sorted(has - stored - {name for one in later for name in one.channel_versions})),
        types=tuple(change for change in changes if change is not None),
        nodes_gone=tuple(sorted(ran - nodes)) if nodes else (),
        nodes_new=tuple(sorted(nodes - ran)),
        schema_version=_versions(state, known.get(_VERSION)),
    )


def with_inner(found: Drift, known: Mapping[str, Any], inner: Mapping[str, Sequence[State]]) -> Drift:
    """The differences, those of the nodes of subgraphs added. `inner` gives stored states by namespace without task ids.

    A subgraph without a checkpoint in the file is not told of: nobody can say from it what ran there.
    """
    topology = known.get("topology")
    gone, new = list(found.nodes_gone), list(found.nodes_new)
    for ns, states in inner.items():
        graph = topology.get(ns) if isinstance(topology, Mapping) else None
        listed = graph.get("nodes") if isinstance(graph, Mapping) else None
        if not isinstance(listed, list) or not states:
            continue
        nodes, where = {str(name) for name in listed}, " in ".join(reversed(ns.split("|")))
        ran = {name for one in states for name in _ran(one)}
        gone += [f"{name} in {where}" for name in sorted(ran - nodes)]
        new += [f"{name} in {where}" for name in sorted(nodes - ran)]
    return replace(found, nodes_gone=tuple(gone), nodes_new=tuple(new))


def _ran(state: State) -> set[str]:
    """Nodes that ran before a checkpoint or are to run from it."""
    scheduled = {task.name for task in state.tasks if task.name}
    return {name for name in (*state.versions_seen, *scheduled) if name not in NOT_NODES and name != START}


def _changed(name: str, value: Value, declared: Mapping[str, Any]) -> TypeChange | None:
    accepts = declared.get("accepts")
    kind = _kind(value)
    if not isinstance(accepts, list) or kind is None or kind in accepts:
        return None
    if any(kind in _FITS.get(one, ()) for one in accepts):
        return None
    return TypeChange(name, kind, line(str(declared.get("type")), 120))


def _kind(value: Value) -> str | None:
    """The stored type of a plain value; None for objects, whose classes only the graph's own code can compare."""
    if isinstance(value, Tagged):
        return value.name if value.is_set else None
    return _PLAIN.get(type(value))


def _versions(state: State, now: Any) -> tuple[str, str] | None:
    """(stored, the graph's) where both have one and they differ."""
    places: Sequence[Mapping[str, Any]] = (state.values, state.metadata)
    stored = next((place[_VERSION] for place in places if place.get(_VERSION) is not None), None)
    if stored is None or now is None or str(stored) == str(now):
        return None
    return summary(stored, 60), line(str(now), 60)


def in_words(found: Drift) -> list[str]:
    """What a run should not surprise with, a sentence each."""

    def names(listed: Sequence[str]) -> str:
        shown = ", ".join(line(name, 60) for name in listed[:8])
        return shown + (f" and {len(listed) - 8} more" if len(listed) > 8 else "")

    told = []
    if found.schema_version is not None:
        stored, now = found.schema_version
        told.append(f"The stored state has schema_version {stored}, the graph has {now}.")
    if found.channels_gone:
        told.append(f"The graph has no channel {names(found.channels_gone)}: what is stored there does not reach its nodes.")
    for change in found.types:
        told.append(f"{line(change.channel, 60)} is stored as {change.stored}, and the graph says {change.declared}.")
    if found.nodes_gone:
        told.append(f"Ran in this thread, and is not in the graph any more: {names(found.nodes_gone)}.")
    return told
