"""One checkpoint row, decoded just far enough to explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from studio.codec.inert import UNREAD
from studio.explain.channels import NOT_NODES, TASKS, is_internal, members, spelled_target
from studio.model import Address, Problem, RawCheckpoint, Value
from studio.stores.headers import is_step
from studio.stores.sealed import SUFFIX, is_sealed
from studio.value import KEY_HINT, Opaque, Tagged, decode, decode_metadata

NEWEST_FORMAT = 4
_NAMES_TOLD = 8
_ROOM_FOR_NAMES, _ROOM_FOR_NAME = 180, 90
"""Characters of a sentence that names may take, and one of them; `Problem.names` holds all."""


class Blob(Struct, frozen=True):
    """A decoded checkpoint. Values stay inert and lazily nested; nothing here is derived from other rows.

    `readable` is False for an encrypted, pickled or damaged row: then all maps are empty and `format` is None.
    """

    raw: RawCheckpoint
    readable: bool
    format: int | None
    values: Mapping[str, Value]
    versions: Mapping[str, Any]
    seen: Mapping[str, Mapping[str, Any]]
    sends: Sequence[Value]
    metadata: Mapping[str, Any]
    problems: tuple[Problem, ...]

    @property
    def address(self) -> Address:
        return self.raw.header.address

    @property
    def parent(self) -> Address | None:
        up = self.raw.header.parent_checkpoint_id
        return Address(self.address.thread_id, self.address.checkpoint_ns, up) if up else None

    @property
    def step(self) -> int | None:
        step = self.metadata.get("step", self.raw.header.step)
        return step if is_step(step) else None

    @property
    def source(self) -> str | None:
        source = self.metadata.get("source", self.raw.header.source)
        return source if isinstance(source, str) else None

    @property
    def old(self) -> bool:
        """Formats 1 and 2: scheduling channels named after nodes, triggers only to be learned."""
        return self.format is not None and self.format < 3

    def nodes(self) -> set[str]:
        """Nodes that ran on the way to this checkpoint or that its scheduling channels name."""
        found = {name for name in self.seen if name not in NOT_NODES}
        for channel in self.versions:
            target = spelled_target(channel)
            if target:
                found.add(target)
        return found

    def state_values(self, node_names: frozenset[str] | set[str] = frozenset()) -> tuple[dict[str, Value], dict[str, Value]]:
        """(state channels, internal channels); `node_names` only where the format names channels after nodes."""
        state: dict[str, Value] = {}
        internal: dict[str, Value] = {}
        for channel, value in self.values.items():
            (internal if is_internal(channel, node_names) else state)[channel] = value
        if self.sends and TASKS not in internal and not self.raw.pending_sends:
            internal[TASKS] = list(self.sends)
        return state, internal


def read_blob(raw: RawCheckpoint) -> Blob:
    """Decode a row; what cannot be read is a problem in the result, never an exception."""
    where = raw.header.address.checkpoint_id
    problems: list[Problem] = []
    metadata = decode_metadata(raw.metadata)
    doc = decode(raw.tag, raw.blob)
    if not isinstance(doc, Mapping):
        problems.append(unreadable(doc, raw.tag, where))
        return Blob(raw, False, None, {}, {}, {}, (), metadata, tuple(problems))
    fmt = doc.get("v")
    if not isinstance(fmt, int) or isinstance(fmt, bool):
        fmt = None
        problems.append(Problem("undecodable", where, "the checkpoint does not say which format it has"))
    elif fmt > NEWEST_FORMAT:
        message = f"format {fmt} is newer than {NEWEST_FORMAT}: shown as far as it is known"
        problems.append(Problem("newer-format", where, message))
    values = text_map(doc.get("channel_values"))
    seen = {node: text_map(channels) for node, channels in text_map(doc.get("versions_seen")).items()}
    versions, sends = text_map(doc.get("channel_versions")), pending(doc, values, raw)
    return Blob(raw, True, fmt, values, versions, seen, sends, metadata, tuple(problems))


def unreadable(doc: Value, tag: str | None, where: str) -> Problem:
    """Why a row shows no state."""
    if is_sealed(tag):
        how = KEY_HINT if (tag or "").endswith(SUFFIX) else f"encrypted in a way that is not known here ({tag})"
        return Problem("undecodable", where, f"the state is {how}")
    if isinstance(doc, Opaque) and doc.names:
        message = f"the state cannot be read: a pickle, which would import {named(doc.names)}"
        return Problem("undecodable", where, message, doc.names)
    reason = doc.reason if isinstance(doc, Opaque) else "not a checkpoint"
    return Problem("undecodable", where, f"the state cannot be read: {reason}")


def named(names: Sequence[str]) -> str:
    """Names in a sentence: the first of them, each whole where it is no longer than a line."""
    known = names[:-1] if names[-1:] == (UNREAD,) else names
    told: list[str] = []
    for name in known[:_NAMES_TOLD]:
        short = name if len(name) <= _ROOM_FOR_NAME else f"{name[: _ROOM_FOR_NAME - 1]}…"
        if told and sum(map(len, told)) + len(short) > _ROOM_FOR_NAMES:
            break
        told.append(short)
    more = len(known) - len(told)
    if known is not names:
        return f"{', '.join(told)} and at least {more:,} more (it was not read to its end)" if told else UNREAD
    return ", ".join(told) + (f" and {more:,} more" if more > 0 else "")


def text_map(value: Value) -> dict[str, Any]:
    if type(value) is dict:  # its keys are text, else it were a `MapValue`
        return value
    return {key: item for key, item in value.items() if isinstance(key, str)} if isinstance(value, Mapping) else {}


def pending(doc: Mapping[str, Value], values: Mapping[str, Value], raw: RawCheckpoint) -> list[Value]:
    """The Sends that wait for the next step, in order: a channel in format 4, a list beside the channels before."""
    found: list[Value] = []
    channel = members(values.get(TASKS))
    if channel:
        found.extend(channel)
    beside = members(doc.get("pending_sends"))
    if beside:
        found.extend(beside)
    found.extend(decode(row.tag, row.value or b"") for row in raw.pending_sends)
    return found


def send_parts(value: Value) -> tuple[str, Value] | None:
    """(node, argument) of a stored Send in any of its forms."""
    if isinstance(value, Tagged):
        node: Value = None
        arg: Value = None
        if value.kind == "fields":
            node, arg = value.fields.get("node"), value.fields.get("arg")
        elif value.kind == "args" and len(value.args) >= 2:
            node, arg = value.args[0], value.args[1]
        return (node, arg) if isinstance(node, str) else None
    if isinstance(value, Mapping) and isinstance(value.get("node"), str):
        return value["node"], value.get("arg")
    return None
