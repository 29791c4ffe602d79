"""The recipe for a fork inside a subgraph: the calling checkpoints are copied from the root down.

A subgraph finds its checkpoint by its namespace, which holds the id of the task that calls it, and that id follows from
the calling checkpoint. So a fork of the calling checkpoint gives the task a new id, and the inner fork goes into the
namespace of that id. The stored id has to be reproduced first: an id that matches proves that the new one is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from studio import value
from studio.errors import PatchError
from studio.explain import channels
from studio.explain.ids import task_id
from studio.forks.shape import Shape
from studio.history.namespaces import ns_node, ns_task_id, outer_namespace
from studio.model import Address, RawCheckpoint, Value, WriteRow


class Call(Struct, frozen=True):
    """How the task that runs a subgraph gets its id."""

    node: str
    kind: Literal["pull", "push", "persistent"]
    triggers: tuple[str, ...] = ()
    index: int = 0

    def inner_namespace(self, fmt: int, checkpoint_id: str, ns: str, step: int) -> str:
        """The subgraph's namespace below a checkpoint `checkpoint_id` of step `step` in `ns`."""
        prefix = f"{ns}|" if ns else ""
        if self.kind == "persistent":
            return prefix + self.node
        return f"{prefix}{self.node}:{self.task_id(fmt, checkpoint_id, ns, step)}"

    def task_id(self, fmt: int, checkpoint_id: str, ns: str, step: int) -> str:
        """The task's id at a checkpoint of step `step` in `ns`; a persistent subgraph's cannot be told from here."""
        if self.kind == "persistent":
            raise ValueError(self.node)
        return task_id(
            fmt, checkpoint_id, ns, self.node, step + 1, self.kind, self.triggers if self.kind == "pull" else self.index
        )


def path(raw: RawCheckpoint, writes: Sequence[WriteRow]) -> list[Address]:
    """The checkpoints from the root down to the chosen one, each upper one the place where the next level was called.

    PatchError when the file does not say where that was.
    """
    address = raw.header.address
    stored = value.decode_metadata(raw.metadata).get("parents")
    parents: Mapping[str, Any] = stored if isinstance(stored, dict) else {}
    found = [address]
    ns = address.checkpoint_ns
    while ns:
        if ns.rsplit("|", 1)[-1].isdigit():
            raise PatchError(
                "This subgraph was called a second time inside one task, so its calls cannot be forked one by one.",
                "Fork the calling checkpoint of the outer graph instead.",
                "second-call",
            )
        outer = outer_namespace(ns)
        called_from = parents.get(outer)
        if not isinstance(called_from, str):
            task = ns_task_id(ns)
            under = {row.checkpoint_id for row in writes if task and row.task_id == task and row.checkpoint_ns == outer}
            if len(under) != 1:
                raise PatchError(
                    f"This file does not say from which checkpoint the subgraph {ns!r} was called.",
                    "Fork the calling checkpoint of the outer graph instead.",
                    "unknown-caller",
                )
            called_from = under.pop()
        found.append(Address(address.thread_id, outer, called_from))
        ns = outer
    return found[::-1]


def find_call(outer: Address, record: Mapping[str, Value], step: int, inner_ns: str, shape: Shape) -> Call:
    """Reproduce the id in `inner_ns` at the calling checkpoint. PatchError when it cannot be reproduced."""
    node, wanted = ns_node(inner_ns), ns_task_id(inner_ns)
    found = Call(node, "persistent") if wanted is None else reproduce(outer, record, step, node, wanted, shape)
    if found is None:
        raise PatchError(
            f"The id of the task that ran the subgraph at {node!r} cannot be reproduced: a run would not find a fork inside it.",
            "Fork the calling checkpoint of the outer graph instead.",
            "unknown-task-id",
        )
    return found


def reproduce(at: Address, record: Mapping[str, Value], step: int, node: str, wanted: str, shape: Shape) -> Call | None:
    """How a task of `node` at a checkpoint got the id `wanted`; None when it cannot be reproduced."""
    fmt = record["v"]
    pulls = [Call(node, "pull", triggers) for triggers in _candidates(record, node, shape)]
    for call in (*pulls, *(Call(node, "push", index=index) for index in range(_sends(record)))):
        try:
            if call.task_id(fmt, at.checkpoint_id, at.checkpoint_ns, step) == wanted:
                return call
        except ValueError:  # a checkpoint id that is not hexadecimal
            return None
    return None


def _candidates(record: Mapping[str, Value], node: str, shape: Shape) -> list[tuple[str, ...]]:
    """Sets of triggers to try: all of the node (formats 3 and 4), or those that fired now (1 and 2)."""
    if record["v"] >= 3:
        full = tuple(sorted(shape.triggers_of(node)))
        learned = tuple(sorted(shape.triggers.get(node, ())))
        return list(dict.fromkeys([full, learned, (f"branch:to:{node}",), ("__start__",)]))
    seen = record["versions_seen"].get(node)
    known = seen if isinstance(seen, dict) else {}
    versions, values = record["channel_versions"], record["channel_values"]

    def fired(channel: str) -> bool:
        fits = channel in values and channels.is_available(channel, values[channel])
        return fits and channels.newer(versions.get(channel), known.get(channel))

    learned_triggers = [name for name in shape.triggers.get(node, ()) if fired(name)]
    scheduling = sorted(name for name in values if name not in shape.state_channels and fired(name))
    pairs = [(a, b) for i, a in enumerate(scheduling) for b in scheduling[i + 1 :]][:500]
    return list(dict.fromkeys([tuple(sorted(learned_triggers)), *((name,) for name in scheduling), *pairs]))


def _sends(record: Mapping[str, Value]) -> int:
    pending = channels.members(record["channel_values"].get(channels.TASKS)) or record.get("pending_sends") or ()
    return len(pending) if isinstance(pending, (list, tuple)) else 0
