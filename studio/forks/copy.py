"""The copy recipe: the same point once more, as a sibling of its origin. The other recipes start from it.

A `Draft` is a decoded checkpoint on its way to a new row. Only what a recipe names is changed; everything else keeps its
stored bytes, because untouched values of `studio.value` encode to the bytes they came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from studio import value
from studio.codec import jsontext
from studio.errors import PatchError
from studio.forks import ids
from studio.forks.rows import NewRow
from studio.model import PENDING_SENDS, Address, RawCheckpoint, Value

NEWEST_FORMAT = 4
"""Newest `checkpoint.v` whose meaning is known here."""

_KEY_HINT = "Start with --aes-key-env NAME, the environment variable that holds the key."

_NOT_CARRIED = ("langgraph_", "checkpoint_", "__")
"""Metadata that older releases stored about one run and one step, by the beginning of its key."""


class Draft(Struct):
    """A checkpoint about to be stored; `record` is ours to change."""

    origin: RawCheckpoint
    thread_id: str
    checkpoint_ns: str
    parent: str | None
    record: dict[str, Value]
    metadata: dict[str, Any]
    version: int | str
    """The version that every channel edited by this fork gets."""
    edited: set[str] = field(default_factory=set)
    """Channels set, changed or removed; all others must keep their bytes."""

    @property
    def values(self) -> dict[str, Value]:
        return self.record["channel_values"]  # type: ignore[no-any-return]

    @property
    def format(self) -> int:
        return self.record["v"]  # type: ignore[no-any-return]

    @property
    def step(self) -> int:
        return self.metadata["step"]  # type: ignore[no-any-return]

    @property
    def sends_beside(self) -> bool:
        """Whether the Sends that wait are stored beside the channels (formats 1 to 3)."""
        return PENDING_SENDS not in self.values and bool(self.record.get("pending_sends"))

    def set_channel(self, channel: str, new: Value) -> None:
        """Store the final value of a channel; reducers are not applied."""
        if channel == PENDING_SENDS and self.sends_beside:
            self._set_sends(new)
            return
        self.values[channel] = new
        self._bump(channel)

    def remove_channel(self, channel: str) -> None:
        if channel == PENDING_SENDS and self.sends_beside:
            self._set_sends([])
            return
        self.values.pop(channel, None)
        self._bump(channel)

    def _set_sends(self, new: Value) -> None:
        """Such a list has no version. A scheduled Send runs because it stands there."""
        self.record["pending_sends"] = new
        self.edited.add(PENDING_SENDS)

    def _bump(self, channel: str) -> None:
        self.record["channel_versions"][channel] = self.version
        self.edited.add(channel)

    def row(self, checkpoint_id: str) -> NewRow:
        """The row to insert under a new id. PatchError when a value cannot be stored in this file's encoding."""
        record = {**self.record, "id": checkpoint_id, "ts": ids.timestamp(checkpoint_id)}
        if "updated_channels" in record:
            record["updated_channels"] = None
        return NewRow(
            Address(self.thread_id, self.checkpoint_ns, checkpoint_id),
            self.parent,
            self.origin.tag,
            value.encode(self.origin.tag, record, self.origin.blob),
            self.origin.metadata_tag,
            jsontext.dumps(self.metadata).encode("utf-8", "surrogatepass"),
            self.origin.sealed,
        )


def open_record(raw: RawCheckpoint) -> dict[str, Value]:
    """Decode a stored checkpoint for forking. PatchError with the reason when a fork of it would be wrong."""
    where = f"checkpoint {raw.header.checkpoint_id}"
    tag = raw.tag or "json"
    if "+" in tag:
        raise PatchError(f"{where} is encrypted ({tag}), so it cannot be forked without its key.", _KEY_HINT, "encrypted")
    if tag == "pickle":
        raise PatchError(
            f"{where} is stored as a pickle, which the studio never loads, so it cannot be forked.",
            "A graph with a msgpack serializer can store the thread again in a form that can be forked.",
            "pickle",
        )
    record = value.decode(raw.tag, raw.blob)
    if not isinstance(record, dict):
        raise PatchError(f"{where} cannot be decoded ({tag}), so it cannot be forked.", "Fork an earlier one.", "undecodable")
    fmt = record.get("v")
    if not isinstance(fmt, int) or isinstance(fmt, bool):
        raise PatchError(f"{where} does not say its format version, so it cannot be forked.", "", "unknown-format")
    if fmt > NEWEST_FORMAT:
        raise PatchError(
            f"{where} has format {fmt}; the newest format known here is {NEWEST_FORMAT}, so it cannot be forked.",
            "A newer version of the studio may know it.",
            "newer-format",
        )
    for key in ("channel_values", "channel_versions", "versions_seen"):
        if not isinstance(record.get(key), dict):
            raise PatchError(f"{where} has no readable `{key}`, so it cannot be forked.", "", "undecodable")
    again = value.encode(raw.tag, dict(record), raw.blob)
    if again != raw.blob and not value.equal(value.decode(raw.tag, again), record):
        raise PatchError(f"{where} would not keep its values when written again, so it cannot be forked.", "", "not-exact")
    return record


def start(
    raw: RawCheckpoint, record: Mapping[str, Value], metadata: Mapping[str, Any], *, thread_id: str, ns: str, parent: str | None
) -> Draft:
    """A draft that equals `raw` but for its place."""
    versions = record["channel_versions"]
    fresh = {**record, "channel_values": dict(record["channel_values"]), "channel_versions": dict(versions)}
    return Draft(
        raw,
        thread_id,
        ns,
        parent,
        fresh,
        fork_metadata(metadata, raw.header.step, thread_id if thread_id != raw.header.thread_id else None),
        ids.next_version(versions.values()),
    )


def fork_metadata(stored: Mapping[str, Any], step: int | None, new_thread: str | None = None) -> dict[str, Any]:
    """Metadata of a fork: as LangGraph's `__copy__` writes it, plus what the user's program put there to find a thread by."""
    known = stored.get("step")
    at = known if isinstance(known, int) and not isinstance(known, bool) else (step if step is not None else -1)
    parents = stored.get("parents")
    metadata: dict[str, Any] = {"source": "fork", "step": at + 1, "parents": parents if isinstance(parents, dict) else {}}
    if "writes" in stored:
        metadata["writes"] = None
    ours = ("source", "step", "parents", "writes", "run_id")
    metadata |= {key: kept for key, kept in stored.items() if key not in ours and not key.startswith(_NOT_CARRIED)}
    if new_thread is not None and "thread_id" in metadata:
        metadata["thread_id"] = new_thread
    return metadata
