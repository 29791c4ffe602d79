"""One checkpoint that somebody exported by hand: the bytes of a `checkpoint` column in their own file, as a store of one row.

Told by its content, msgpack or JSON text: a map with the keys that every release writes. What else stood in the row and beside it
(thread, namespace, parent, metadata, writes) is not in such a file; the thread is called as the file is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from studio import times
from studio.errors import OpenError, PatchError
from studio.lazy import lazy
from studio.model import Address, Checkpoint, Problem, RawCheckpoint, WriteRow
from studio.stores.base import Capability, ThreadKeys
from studio.stores.headers import uuid6_time
from studio.stores.sniff import ELSEWHERE, HEAD, begins_like_checkpoint, why
from studio.stores.view import View
from studio.value import Opaque, decode

T = TypeVar("T")

LIMIT = 64 << 20
"""Bytes of a checkpoint that is read from a file of its own."""
KEYS = ("v", "ts", "id", "channel_values", "channel_versions")
WORDS = "one checkpoint, exported by hand: its thread, parent, metadata and writes are not here"
HINT = "Name a database that LangGraph's SqliteSaver has written, or a file with the bytes of one row's checkpoint column."
IF_ENCRYPTED = "If it was exported from an encrypted row: that opens in its database alone, with --aes-key-env."

_NAMES = 60
"""Names of a pickle that are told."""
_SLUG = "not-a-database"
_NOTHING = "nothing-known"
_BOM = b"\xef\xbb\xbf"
_PICKLE = lazy(rb"\x80[\x02-\x05]")
_JSON = lazy(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
_METADATA = frozenset({"source", "step"})


class _Read(Struct, frozen=True):
    tag: str
    blob: bytes
    header: Checkpoint


class LoneStore:
    """A file that holds one checkpoint, as a `Store` of one thread with one row. It is read again when the file changes.

    Raises OpenError, in words, for any other content, and for more than `LIMIT` bytes.
    """

    kind = "checkpoint"
    layout = "lone"
    capabilities: frozenset[Capability] = frozenset()
    words = WORDS
    lacks_metadata = (
        "step and source are not in this file: one checkpoint exported by hand holds neither, they stand in the metadata column"
    )
    no_forks = PatchError(
        "This is one checkpoint, exported by hand: without its thread, parent and writes nothing can be forked or run from it.",
        "Open the database that it came from.",
        "lone-checkpoint",
    )

    def __init__(self, location: str) -> None:
        self.location = os.path.abspath(location)
        self._lock = threading.Lock()
        self._closed = False
        self._found: tuple[object, _Read] | None = None
        self._row()

    def token(self) -> tuple[tuple[int, int, int] | None]:
        try:
            found = os.stat(self.location)
        except OSError:
            return (None,)
        return ((found.st_size, found.st_mtime_ns, found.st_ino),)

    def problems(self) -> list[Problem]:
        return []

    def close(self) -> None:
        self._closed, self._found = True, None

    # ---- lists

    def threads(self) -> Iterator[ThreadKeys]:
        header = self._row().header
        yield ThreadKeys(header.thread_id, ("",), 1, header.checkpoint_id)

    def namespaces(self, thread_id: str) -> tuple[str, ...]:
        """The root alone: nothing tells the real one."""
        return ("",) if thread_id == self._row().header.thread_id else ()

    def checkpoints(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, Checkpoint]]:
        header = self._row().header
        return [(1, header)] if thread_id == header.thread_id and after < 1 else []

    def census(self, thread_id: str, upto: int, writes_upto: int) -> tuple[int, object] | None:
        header = self._row().header
        return int(thread_id == header.thread_id and upto > 0), header

    def write_headers(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, WriteRow]]:
        return []

    def writes_end(self, thread_id: str) -> int:
        return 0

    def task_keys(self, thread_id: str) -> Sequence[tuple[str, str, str]]:
        return []

    def write_headers_under(self, addresses: Iterable[Address]) -> Mapping[Address, Sequence[WriteRow]]:
        return {}

    def metadata(self, thread_id: str, ns: str, take: Callable[[bytes], T]) -> Mapping[str, T]:
        header = self._row().header
        return {header.checkpoint_id: take(b"")} if (thread_id, ns) == (header.thread_id, "") else {}

    # ---- rows by key, streams

    def raw(self, addresses: Iterable[Address]) -> dict[Address, RawCheckpoint]:
        row = self._row()
        here = row.header.address
        return {here: RawCheckpoint(row.header, row.tag, row.blob, None, b"")} if here in set(addresses) else {}

    def writes(self, addresses: Iterable[Address]) -> dict[Address, tuple[WriteRow, ...]]:
        return {}

    def scan(self, thread_id: str | None = None) -> Iterator[RawCheckpoint]:
        here = self._row().header.address
        if thread_id in (None, here.thread_id):
            yield from self.raw([here]).values()

    def scan_writes(self, thread_id: str, channels: Sequence[str]) -> Iterator[WriteRow]:
        return iter(())

    # ---- the file

    def _row(self) -> _Read:
        if self._closed:
            raise OpenError(f"{self.location} was closed.")
        with self._lock:
            token = self.token()
            if self._found is None or self._found[0] != token:
                self._found = (token, _read(self.location))
            return self._found[1]


def open_lone(location: str, view: View, otherwise: OpenError) -> LoneStore:
    """The store over a file that is no database. Raises OpenError: in words where it is a part of a row, else `otherwise`."""
    if not _may_be_a_value(location):
        raise otherwise
    try:
        store = LoneStore(location)
    except OpenError as error:
        raise (error if error.slug != _NOTHING else OpenError(otherwise.message, error.hint, otherwise.slug)) from None
    if view.tables is not None:
        message = f"{location} is one checkpoint, exported by hand: it has no tables."
        raise OpenError(message, "Leave out --tables.", "no-such-tables")
    return store


def _may_be_a_value(location: str) -> bool:
    """Whether a file begins as JSON, a map or another compound of msgpack, or a pickle does."""
    try:
        with open(location, "rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return bool(_JSON.match(head)) or (head[:1] >= b"\x80" and not head.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")))


def _read(location: str) -> _Read:
    try:
        size = os.path.getsize(location)
        with open(location, "rb") as file:
            blob = file.read(LIMIT + 1)
    except OSError as error:
        raise OpenError(f"{location} cannot be read: {why(error)}.", slug="unreadable") from error
    begins_like_one = begins_like_checkpoint(blob[:HEAD])
    if len(blob) > LIMIT:
        if not begins_like_one:
            raise OpenError(f"{location} holds no checkpoint.", HINT, _NOTHING)
        message = f"{location} begins like one checkpoint, but it has {size >> 20:,} MB, and {LIMIT >> 20} MB of one are read."
        raise OpenError(message, "Open the database that it came from.", "too-large")
    as_json = _JSON.match(blob) is not None
    text = blob.removeprefix(_BOM) if as_json else blob
    tag = "json" if as_json else "pickle" if _PICKLE.match(blob) and blob.endswith(b".") else "msgpack"
    found = decode(tag, text)
    if not isinstance(found, Mapping) or not _is_checkpoint(found):
        raise _refusal(location, tag, found, begins_like_one)
    address = Address(os.path.basename(location), "", found["id"])
    return _Read(tag, text, Checkpoint(address, None, None, None, _created_at(found), len(text)))


def _created_at(found: Mapping[str, Any]) -> str | None:
    """Its keys may stand in any order here, so the time is not looked for in the first bytes."""
    stored = times.parse(found["ts"]) if isinstance(found["ts"], str) else None
    return stored.isoformat() if stored is not None else uuid6_time(found["id"])


def _is_checkpoint(found: Mapping[str, Any]) -> bool:
    return (
        all(key in found for key in KEYS)
        and isinstance(found["id"], str)
        and isinstance(found["channel_values"], Mapping)
        and isinstance(found["channel_versions"], Mapping)
    )


def _refusal(location: str, tag: str, found: object, begins_like_one: bool) -> OpenError:
    """What a file holds that is neither a database nor a checkpoint, in words; `_NOTHING` where it may be anything."""
    form = "JSON" if tag == "json" else "msgpack"
    if isinstance(found, Opaque):
        if found.reason == "pickle":
            more = f" and {len(found.names) - _NAMES:,} more" if len(found.names) > _NAMES else ""
            names = f"; loading it would import {', '.join(found.names[:_NAMES])}{more}" if found.names else ""
            return OpenError(f"{location} is a Python pickle, which is never loaded here{names}.", HINT, _SLUG)
        if begins_like_one:
            return OpenError(f"{location} begins like a checkpoint in {form}, but it is not whole.", ELSEWHERE, "damaged")
        return OpenError(f"{location} holds no checkpoint.", HINT if tag == "json" else IF_ENCRYPTED, _NOTHING)
    if isinstance(found, Mapping):
        if found.keys() >= _METADATA and "channel_values" not in found:
            message = f"{location} holds the metadata of a checkpoint in {form}, not the checkpoint itself."
            return OpenError(message, "Export the checkpoint column of the same row.", _SLUG)
        if "channel_values" in found:
            missing = [key for key in KEYS if key not in found]
            lacks = f"it lacks {', '.join(missing)}" if missing else "its id is no text, or its channels are no maps"
            return OpenError(f"{location} is like a checkpoint in {form}, but {lacks}.", ELSEWHERE, _SLUG)
    if tag == "json":
        return OpenError(f"{location} holds no checkpoint.", HINT, _NOTHING)
    kind = "a map" if isinstance(found, Mapping) else "a list" if isinstance(found, list) else "one value"
    message = (
        f"{location} holds {kind} in msgpack, as the value of a write or of a channel: no checkpoint, and no SQLite database."
    )
    return OpenError(message, HINT, _SLUG)
