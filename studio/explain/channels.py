"""What the names of channels say: which hold state, which schedule, and what a scheduling name spells out.

LangGraph keeps its scheduling in channels beside the state. From format 3 on their names are a grammar: `branch:to:N`
starts N, `join:a+b:N` starts N once a and b are done, `__pregel_tasks` holds the Sends. Formats 1 and 2 also use
`start:N`, `branch:SRC:COND:N` and one channel named after each node, which starts whoever follows it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import lru_cache
from math import isfinite
from typing import Any

from studio.model import PENDING_SENDS, START, Value
from studio.value import Tagged

TASKS = PENDING_SENDS
ERROR = "__error__"
ERROR_SOURCE = "__error_source_node__"
INTERRUPT = "__interrupt__"
RESUME = "__resume__"
SCHEDULED = "__scheduled__"
NO_WRITES = "__no_writes__"
INPUT = "__input__"
ROOT = "__root__"
NULL_TASK = "00000000-0000-0000-0000-000000000000"

CONTROL = frozenset((ERROR, ERROR_SOURCE, INTERRUPT, RESUME, SCHEDULED))
"""Rows that say what happened to a task, not what it produced. A task with any other row has finished."""

MARKERS = CONTROL | {NO_WRITES}
"""Rows that are no writes in a reader's eyes."""

NOT_NODES = frozenset((INPUT, INTERRUPT, "__snapshot_bumps__"))
"""Keys of `versions_seen` that are no nodes."""


def is_internal(channel: str, node_names: Container[str] = ()) -> bool:
    """True for a scheduling channel; `node_names` only counts in formats 1 and 2, where a channel of that name is one.

    `__root__` is the whole state of a graph whose state is not a map, so it is none.
    """
    if channel.startswith(("branch:", "join:", "start:")):
        return True
    if channel.startswith("__"):
        return channel != ROOT
    return channel in node_names


@lru_cache(maxsize=512)
def branch_target(channel: str) -> str | None:
    """The node that `branch:to:N` starts."""
    return channel[10:] if channel.startswith("branch:to:") else None


@lru_cache(maxsize=512)
def join_parts(channel: str) -> tuple[str, str] | None:
    """`join:a+b:N` -> (`a+b`, `N`). Node names hold no `:`, so the last one parts them."""
    if not channel.startswith("join:"):
        return None
    sources, colon, target = channel[5:].rpartition(":")
    return (sources, target) if colon else None


@lru_cache(maxsize=512)
def spelled_target(channel: str) -> str | None:
    """The node that a scheduling channel of any format names as the one to start, if it names one."""
    if channel.startswith("branch:to:"):
        return channel[10:]
    if channel.startswith("start:"):
        return channel[6:]
    if channel.startswith(("join:", "branch:")):
        target = channel.rpartition(":")[2]
        return target or None
    return None


def spelled_sources(channel: str, stored: Iterable[Value] = ()) -> tuple[str, ...]:
    """The nodes that a scheduling channel names as its writers: all of a join, the source of an old branch, START.

    `stored` is what the join holds: names with a `+` in them cannot be parted by the channel's name alone.
    """
    if channel.startswith("start:"):
        return (START,)
    if channel.startswith("join:"):
        known = tuple(name for name in stored if isinstance(name, str))
        parts = join_parts(channel)
        return known or (tuple(parts[0].split("+")) if parts else ())
    if channel.startswith("branch:") and not channel.startswith("branch:to:"):
        source = channel[7:].partition(":")[0]
        return (source,) if source else ()
    return ()


def members(value: Value) -> list[Any] | None:
    """The items of a stored list or set, None for anything else."""
    if isinstance(value, list):
        return value
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Tagged):
        if value.kind == "items":
            return list(value.items)
    return None


def is_available(channel: str, value: Value) -> bool:
    """Whether a stored channel can start a node now: joins must be full, deferred channels must have been released."""
    pair = isinstance(value, (list, tuple)) and len(value) == 2 and isinstance(value[1], bool)
    if channel.startswith("branch:to:"):
        return bool(value[1]) if pair else True
    if channel.startswith("join:"):
        parts = join_parts(channel)
        if parts is None:
            return True
        if pair:
            return bool(value[1]) and is_full(parts[0], value[0])
        return is_full(parts[0], value)
    return True


def is_full(sources: str, value: Value) -> bool:
    """Whether the names in a join's value are all of `a+b`; lengths decide, so a `+` inside a name does no harm."""
    names = members(value)
    if not names or not all(isinstance(name, str) for name in names):
        return False
    return sum(map(len, names)) + len(names) - 1 == len(sources) and all(name in sources for name in names)


def newer(version: Any, seen: Any) -> bool:
    """Whether a channel changed since a node saw it (None = never). Versions are text or numbers, each with its own order."""
    if version is None:
        return False
    if seen is None:
        return True
    try:
        return bool(version > seen)
    except TypeError:
        return major(version) > major(seen)


def major(version: Any) -> int:
    """The counting part of a version: `00…05.0.27` -> 5; -1 for what is no version."""
    if isinstance(version, bool) or version is None:
        return -1
    if isinstance(version, (int, float)):
        return int(version) if isinstance(version, int) or isfinite(version) else -1
    head = str(version).partition(".")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) < 100 else -1
