"""What a file tells about a graph without its code: its nodes, what starts each, which of them wait for the end of a run.

Learned from the stored records of one graph: all namespaces in which it ran in a thread. In formats 1 and 2 nothing but
`versions_seen` says what starts a node, so there the whole thread is read; later formats spell it in channel names, and
the newest record of each branch knows them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from studio import value
from studio.explain import channels
from studio.explain.ids import parse_path
from studio.history.namespaces import static_ns
from studio.model import Address, Checkpoint, Value, WriteRow
from studio.stores.base import Store

_MOST_LEAVES = 64
_CHUNK = 32
_NOT_NODES = channels.NOT_NODES | {"__start__", ""}


class Shape(Struct, frozen=True):
    nodes: frozenset[str]
    triggers: dict[str, frozenset[str]]
    """Channels that started each node, as far as seen."""
    branch_targets: frozenset[str]
    """Nodes with a `branch:to:` channel."""
    joins: frozenset[str]
    """`join:a+b:n` channels."""
    deferred: frozenset[str]
    """Nodes whose `branch:to:` channel holds `[value, released]`."""
    state_channels: frozenset[str]
    """Every channel seen that is no scheduling channel: what the graph is known to declare."""

    def triggers_of(self, node: str) -> frozenset[str]:
        """All triggers that enter the id of a task of this node in formats 3 and 4."""
        joins = {name for name in self.joins if (channels.join_parts(name) or ("", ""))[1] == node}
        return frozenset({f"branch:to:{node}"} | joins)


def learn(
    store: Store, address: Address, fmt: int, headers: Sequence[Checkpoint], writes: Sequence[WriteRow], goto: str | None = None
) -> Shape:
    """Learn the graph that made `address`; with `goto` also whether that node is deferred, which may take reading the thread."""
    graph = static_ns(address.checkpoint_ns)
    same = _same_graph(graph)
    own = [header for header in headers if same(header.checkpoint_ns)]
    learner = _Learner(fmt)
    for ns, channel, task_path in {(row.checkpoint_ns, row.channel, row.task_path) for row in writes}:
        if same(ns):
            learner.see_write(channel, task_path)
    if fmt < 3:
        for raw in store.scan(address.thread_id):
            if static_ns(raw.header.checkpoint_ns) == graph:
                learner.see_record(value.decode(raw.tag, raw.blob))
    else:
        wanted = [address, *(header.address for header in leaves(own)[:_MOST_LEAVES])]
        for raw in store.raw(wanted).values():
            learner.see_record(value.decode(raw.tag, raw.blob))
        if goto is not None:
            _see_whether_deferred(store, own, learner, goto)
    return learner.shape()


def _same_graph(graph: str) -> Callable[[str], bool]:
    """Whether a namespace runs that graph; asked for thousands of rows in few namespaces."""
    return lru_cache(maxsize=4096)(lambda ns: static_ns(ns) == graph)


def routes(writes: Sequence[WriteRow], ns: str) -> dict[str, set[str]]:
    """node -> nodes that it started by a branch, as far as the writes of its graph name their task."""
    same = _same_graph(static_ns(ns))
    found: dict[str, set[str]] = {}
    for where, channel, task_path in {(row.checkpoint_ns, row.channel, row.task_path) for row in writes}:
        target = channels.branch_target(channel)
        path = parse_path(task_path)
        if target and path.kind == "pull" and path.node and same(where):
            found.setdefault(path.node, set()).add(target)
    return found


def leaves(headers: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Checkpoints without a child, newest id first."""
    listed = [(header.address, header) for header in headers]
    parents = {(at.checkpoint_ns, header.parent_checkpoint_id) for at, header in listed}
    found = [header for at, header in listed if (at.checkpoint_ns, at.checkpoint_id) not in parents]
    return sorted(found, key=lambda header: header.checkpoint_id, reverse=True)


def _see_whether_deferred(store: Store, headers: Sequence[Checkpoint], learner: _Learner, node: str) -> None:
    """A branch channel is stored for one step only, so its form shows just before the node ran: read back to one such step."""
    if f"branch:to:{node}" not in learner.names or node in learner.deferred:
        return
    addresses = [header.address for header in headers]
    for start in range(0, len(addresses), _CHUNK):
        for raw in store.raw(addresses[start : start + _CHUNK]).values():
            if node in learner.see_record(value.decode(raw.tag, raw.blob)):
                return


def last_nodes(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The nodes that made a checkpoint: those that saw the highest version, several when they ran in parallel."""
    best: list[tuple[Any, str]] = []
    for node, versions in record["versions_seen"].items():
        if node not in channels.NOT_NODES and isinstance(versions, dict) and versions:
            best.append((max(versions.values(), key=lambda version: (channels.major(version), str(version))), node))
    top = max((channels.major(version) for version, _ in best), default=-1)
    return tuple(sorted(node for version, node in best if channels.major(version) == top))


class _Learner:
    def __init__(self, fmt: int) -> None:
        self.fmt = fmt
        self.nodes: set[str] = set()
        self.triggers: dict[str, set[str]] = defaultdict(set)
        self.names: set[str] = set()
        """Every channel name seen."""
        self.deferred: set[str] = set()

    def see_write(self, channel: str, task_path: str | None) -> None:
        if channel not in channels.MARKERS:
            self.names.add(channel)
        path = parse_path(task_path)
        if path.kind == "pull" and path.node:
            self.nodes.add(path.node)

    def see_record(self, record: Value) -> set[str]:
        """Take in one decoded checkpoint; returns the nodes whose branch channel it holds."""
        if not isinstance(record, dict):
            return set()
        seen: Any = record.get("versions_seen")
        if isinstance(seen, dict):
            for node, versions in seen.items():
                if isinstance(node, str) and node not in _NOT_NODES:
                    self.nodes.add(node)
                    if isinstance(versions, dict):
                        self.triggers[node].update(versions)
        for part in ("channel_versions", "channel_values"):
            names: Any = record.get(part)
            if isinstance(names, dict):
                self.names.update(names)
        values: Any = record.get("channel_values")
        held = set()
        for channel, stored in values.items() if isinstance(values, dict) else ():
            target = channels.branch_target(channel)
            parts = channels.join_parts(channel)
            if target is not None:
                held.add(target)
            if isinstance(stored, list) and len(stored) == 2 and isinstance(stored[1], bool) and (target or parts):
                self.deferred.add(target or (parts[1] if parts else ""))
        return held

    def shape(self) -> Shape:
        nodes = set(self.nodes)
        joins = {name for name in self.names if channels.join_parts(name)}
        for name in self.names:
            target = channels.spelled_target(name)
            if target:
                nodes.add(target)
        for name in joins:
            parts = channels.join_parts(name)
            if parts and self.fmt < 3:
                self.triggers[parts[1]].add(name)
        nodes -= _NOT_NODES
        internal_names = nodes if self.fmt < 3 else ()
        return Shape(
            frozenset(nodes),
            {node: frozenset(found) for node, found in self.triggers.items()},
            frozenset(name[10:] for name in self.names if name.startswith("branch:to:")),
            frozenset(joins),
            frozenset(self.deferred),
            frozenset(name for name in self.names if not channels.is_internal(name, internal_names)),
        )
