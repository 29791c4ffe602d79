"""What a fork needs beside its own row, when it is stored away from its origin.

A delta channel's value is spread over the ancestors and their writes; a subgraph with a memory of its own reads that
from its namespace. Without these rows a run would start from nothing, and LangGraph would not say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from studio import value
from studio.forks.rows import NewRow
from studio.model import Address, Checkpoint, RawCheckpoint, Value, WriteRow
from studio.stores.base import Store

_CHUNK = 32


def delta_channels(record: Mapping[str, Value], metadata: Mapping[str, Any], rebuilt: Iterable[str]) -> set[str]:
    """Channels of a checkpoint whose value lies in its ancestors: neither stored here nor without a version."""
    counters = metadata.get("counters_since_delta_snapshot")
    named = {*rebuilt, *(counters if isinstance(counters, dict) else ())}
    return {name for name in named if name not in record["channel_values"] and name in record["channel_versions"]}


def ancestors(store: Store, raw: RawCheckpoint, channels: set[str], headers: Sequence[Checkpoint]) -> list[RawCheckpoint]:
    """The chain of parents up to the one that stores a value of each channel, nearest first; to the root where none does."""
    missing = set(channels)
    address = raw.header.address
    ns = address.checkpoint_ns
    parents = {header.checkpoint_id: header.parent_checkpoint_id for header in headers if header.checkpoint_ns == ns}
    chain: list[Address] = []
    seen = {address.checkpoint_id}
    up = raw.header.parent_checkpoint_id
    while up and up in parents and up not in seen:
        seen.add(up)
        chain.append(Address(address.thread_id, address.checkpoint_ns, up))
        up = parents[up]
    found: list[RawCheckpoint] = []
    for start in range(0, len(chain), _CHUNK):
        stored = store.raw(chain[start : start + _CHUNK])
        for at in chain[start : start + _CHUNK]:
            if not missing or at not in stored:
                return found
            found.append(stored[at])
            record = value.decode(stored[at].tag, stored[at].blob)
            values = record.get("channel_values") if isinstance(record, dict) else None
            missing -= set(values) if isinstance(values, dict) else set()
    return found


def memories(headers: Sequence[Checkpoint], ns: str, before: str) -> list[Address]:
    """Checkpoints of the persistent subgraphs below `ns` (namespaces without task id) with an id below `before`."""
    prefix = f"{ns}|" if ns else ""
    found = []
    for header in headers:
        inner = header.checkpoint_ns
        below = bool(inner) and inner != ns and inner.startswith(prefix)
        if below and ":" not in inner[len(prefix) :].split("|", 1)[0] and header.checkpoint_id < before:
            found.append(header.address)
    return found


def moved(raw: RawCheckpoint, thread_id: str, ns: str) -> NewRow:
    """A stored row as it is, under another thread or namespace."""
    return NewRow(
        Address(thread_id, ns, raw.header.checkpoint_id),
        raw.header.parent_checkpoint_id,
        raw.tag if raw.sealed is None else raw.sealed.tag,
        raw.stored_blob,
        raw.metadata_tag,
        raw.metadata,
    )


def writes_under(store: Store, addresses: Sequence[Address]) -> dict[Address, tuple[WriteRow, ...]]:
    """The writes under some checkpoints, with their values."""
    found: dict[Address, tuple[WriteRow, ...]] = {}
    for start in range(0, len(addresses), _CHUNK):
        found |= store.writes(addresses[start : start + _CHUNK])
    return found
