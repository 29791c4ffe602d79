"""A head at a glance: where its thread stands, and its values, without a whole state where nothing waits in it.

Most threads of a list are done: nothing is scheduled, nothing was written under the head, no value is missing from it. That is
seen from the names of its channels. Every other head is explained in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from studio.explain.channels import NOT_NODES, TASKS, is_available, is_internal, newer, spelled_target
from studio.explain.delta import COUNTERS
from studio.model import Checkpoint, RawCheckpoint, Status, Value, WriteRow
from studio.value import Tagged, decode, decode_metadata

_FORMATS = (3, 4)
_SHORT = 1_000
"""Bytes of metadata that is decoded once for all threads that have the same: many say no more than their step."""

_is_internal = lru_cache(maxsize=1024)(is_internal)


class Glance(Struct, frozen=True):
    """What a list shows of a head; `values` are of its state channels."""

    header: Checkpoint
    status: Status | None
    values: Mapping[str, Value]
    metadata: Mapping[str, Any]
    closed: str = ""
    """Why nothing of its state can be read."""


def finished(raw: RawCheckpoint, rows: Sequence[WriteRow]) -> Glance | None:
    """The glance of a head from which nothing more runs; None where a whole explanation must tell, or differs in any value."""
    if rows or raw.tag != "msgpack" or raw.pending_sends:
        return None
    doc = decode(raw.tag, raw.blob)
    if type(doc) is not dict or doc.get("v") not in _FORMATS or doc.get("pending_sends"):
        return None
    values, versions, seen = doc.get("channel_values"), doc.get("channel_versions"), doc.get("versions_seen")
    if type(values) is not dict or type(versions) is not dict or type(seen) is not dict or not versions:
        return None
    idle: set[str] = set()
    for name, value in values.items():
        if _is_internal(name):
            if not _is_idle(name, value):
                return None
            idle.add(name)
        elif type(value) is Tagged and value.kind == "snapshot":
            return None
    for name in versions.keys() - values.keys():
        if not _is_internal(name):  # emptied, or told by writes further up
            return None
    now = versions.items()
    for node, channels in seen.items():
        if type(channels) is not dict:
            return None
        if channels.items() <= now:  # nothing newer than what the node saw, the rule
            continue
        for channel, version in channels.items():
            current = versions.get(channel)
            if current == version or channel not in values:  # most channels of a thread that is done
                continue
            if node not in NOT_NODES and spelled_target(channel) is None and newer(current, version):
                return None
    metadata = _same_metadata(raw.metadata) if len(raw.metadata) < _SHORT else decode_metadata(raw.metadata)
    if metadata.get(COUNTERS):
        return None
    state = {name: value for name, value in values.items() if name not in idle} if idle else values
    return Glance(raw.header, "done", state, metadata)


@lru_cache(maxsize=64)
def _same_metadata(stored: bytes) -> Mapping[str, Any]:
    """The document that stored metadata holds, one object for all who ask: nobody changes it."""
    return decode_metadata(stored)


def _is_idle(channel: str, value: Value) -> bool:
    """Whether a scheduling channel starts nothing: no Sends, or a join that still waits for others."""
    return (channel == TASKS and value == []) or (channel.startswith("join:") and not is_available(channel, value))
