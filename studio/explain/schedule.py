"""What runs next from a checkpoint, read off its own channels.

LangGraph starts one task per waiting Send, and every node that listens to an available channel which changed since the node
last ran. From format 3 on the names of the channels tell who listens. In formats 1 and 2 that has to be learned from nodes
that ran (`studio.explain.learn`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from studio.explain.blob import Blob, send_parts
from studio.explain.channels import NOT_NODES, branch_target, is_available, join_parts, newer, spelled_sources, spelled_target
from studio.model import START, Value

Kind = Literal["pull", "push"]


class Planned(Struct, frozen=True):
    """A task that a checkpoint schedules. `fired` = channels that start it now; `index` = position of its Send."""

    name: str | None
    kind: Kind
    fired: tuple[str, ...] = ()
    index: int | None = None
    arg: Value = None
    inferred: bool = False


def sends(blob: Blob) -> list[Planned]:
    """One task per waiting Send, in order. A packet that is no Send starts nothing, but keeps its position."""
    found = []
    for index, packet in enumerate(blob.sends):
        parts = send_parts(packet)
        if parts is not None:
            found.append(Planned(parts[0], "push", ("__pregel_tasks",), index, parts[1]))
    return found


def planned(blob: Blob) -> list[Planned]:
    """Format 3 and later: Sends first, then nodes in the order of their channels, which is the order of the graph."""
    found = sends(blob)
    if not blob.versions:
        return found
    fired: dict[str, list[str]] = {}
    listeners = other_listeners(blob.seen)
    for channel, value in blob.values.items():
        target = branch_target(channel)
        if target is None:
            parts = join_parts(channel)
            target = parts[1] if parts else None
        names = [target] if target else listeners.get(channel, ())
        for name in names:
            if is_available(channel, value) and wants(blob, name, channel):
                fired.setdefault(name, []).append(channel)
    if START in blob.values and START not in listeners:
        fired[START] = [START]
    for name, channels in fired.items():
        found.append(Planned(name, "pull", tuple(channels), inferred=name == START and START not in listeners))
    return found


def wants(blob: Blob, name: str, channel: str) -> bool:
    """Whether a node has not yet seen this version of a channel; one that never ran takes what is available."""
    seen = blob.seen.get(name)
    return seen is None or newer(blob.versions.get(channel), seen.get(channel))


def other_listeners(seen: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """channel -> nodes that were once started by it, for channels whose name does not spell their target (`__start__`)."""
    found: dict[str, list[str]] = {}
    for name, channels in seen.items():
        if name not in NOT_NODES:
            for channel in channels:
                if spelled_target(channel) is None:
                    found.setdefault(channel, []).append(name)
    return found


def triggers_of(blob: Blob, name: str, extra: Iterable[str] = ()) -> set[str]:
    """All channels known to start a node: they enter its task id from format 3 on, fired or not."""
    found = set(blob.seen.get(name, ()))
    if name != START and not (found and all(spelled_target(channel) is None for channel in found)):
        found.add(f"branch:to:{name}")
    for channel in (*blob.versions, *blob.values, *extra):
        parts = join_parts(channel)
        if parts and parts[1] == name:
            found.add(channel)
    if name == START:
        found.add(START)
    return found


class Learned(Struct, frozen=True):
    """What nodes of one graph in formats 1 and 2 were seen to do.

    `triggers`: node -> channels that ever started it. `ran`: (ns, checkpoint id) -> names that a child says ran from there.
    `channels`: all that have a version.
    """

    triggers: Mapping[str, frozenset[str]]
    nodes: frozenset[str]
    ran: Mapping[tuple[str, str], tuple[str, ...]]
    channels: frozenset[str]


def planned_old(blob: Blob, learned: Learned) -> tuple[list[Planned], set[str]]:
    """Formats 1 and 2: (tasks, channels that are waiting and that nobody is known to listen to)."""
    found = sends(blob)
    if not blob.versions:
        return found, set()
    fired: dict[str, list[str]] = {}
    loose: set[str] = set()
    starters = [name for name, channels in learned.triggers.items() if START in channels] or [START]
    for channel, value in blob.values.items():
        target = spelled_target(channel)
        if channel == START:
            names: Iterable[str] = starters
        elif target is not None:
            names = (target,)
        elif channel in learned.nodes:
            names = [name for name, channels in learned.triggers.items() if channel in channels]
            if not names:
                loose.add(channel)
        else:
            continue
        for name in names:
            if is_available(channel, value) and newer(blob.versions.get(channel), blob.seen.get(name, {}).get(channel)):
                fired.setdefault(name, []).append(channel)
    led_on = {source for channel in blob.values for source in spelled_sources(channel)}
    if blob.sends:
        loose.clear()
    loose -= led_on  # a source that chose a branch, or that a join waits for, needs no other follower
    found.extend(Planned(name, "pull", tuple(channels)) for name, channels in fired.items())
    names_now = {task.name for task in found}
    for name in learned.ran.get((blob.address.checkpoint_ns, blob.address.checkpoint_id), ()):
        if name not in names_now:
            names_now.add(name)
            found.append(Planned(name, "pull", inferred=True))
            loose.clear()
    return found, loose
