"""What promoting a branch adds to the opened file: which rows of the scratch file, and whether they are whole there.

A branch goes as it is stored, under the ids that it has: from where it leaves the file's own rows down to the chosen
checkpoint, with every subgraph checkpoint that ran from it and all its writes. A fork's stored parent is its origin's parent,
so in the file it is the sibling of its origin. Rows that the scratch file holds as copies of the file's own are compared with
them and stay out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from studio import value
from studio.errors import PatchError
from studio.forks import needs
from studio.forks.copy import NEWEST_FORMAT
from studio.forks.rows import NewRow, NewWrite
from studio.history.namespaces import ns_task_id
from studio.model import Address, Checkpoint, RawCheckpoint, WriteRow
from studio.requests import PromotedRow, Promotion
from studio.stores.base import Store

_AGAIN = "Fork it again from what the file holds now; this branch stays in the scratch file."
_READ_AT_ONCE = 200

Origins = Mapping[Address, tuple[Address, str]]
"""Fork -> (origin, sha256 of the origin's blob)"""
Written = Mapping[Address, tuple[WriteRow, ...]]


class Branch(Struct, frozen=True):
    """A branch that is ready to be stored."""

    promotion: Promotion
    new: tuple[NewRow, ...]
    writes: tuple[NewWrite, ...]
    anchors: Mapping[Address, bytes]
    """Stored blobs of the file's own rows that the branch rests on: they must still be these when it is stored."""


def gather(store: Store, base: Store, scratch: Store | None, address: Address, origins: Origins) -> Branch:
    """The branch that leads to a checkpoint of the scratch file.

    `store` is the overlay of `base` and `scratch`. PatchError with the reason where the branch cannot be added as it is.
    """
    headers = {header.address: header for _, header in store.checkpoints(address.thread_id)}
    own = {at: header for at, header in headers.items() if header.origin == "scratch"}
    if address not in own or scratch is None:
        _check_same(base, scratch, address)
        message = f"Checkpoint {address.checkpoint_id} is in the file already."
        raise PatchError(
            message, "Only what lies in the scratch file can be put into the file: rows that are numbered s1, s2, …", "in-base"
        )
    chosen, uncalled = _chosen(store, own, headers, address)
    found = _read(store, chosen)
    for raw in found.values():
        _check_row(raw)
    top = _first(found, address.thread_id)
    held = _carried(scratch, headers, own, address.thread_id)
    anchors = _anchors(base, found, top, headers, origins, held)
    written = needs.writes_under(store, list(found))
    _check_unwritten(needs.writes_under(base, list(found)), base.location)
    _check_deltas(found, headers, anchors, needs.writes_under(base, list(held)), needs.writes_under(scratch, list(held)))
    rows = tuple(_row(raw, written.get(at, ())) for at, raw in found.items())
    before = max(
        (at.checkpoint_id for at, header in headers.items() if header.origin == "base" and not at.checkpoint_ns), default=None
    )
    last = max(at.checkpoint_id for at in found if not at.checkpoint_ns)
    made_from = origins.get(top.header.address)
    promotion = Promotion(
        address,
        base.location,
        rows,
        before,
        max(before or "", last),
        top.header.parent_checkpoint_id,
        made_from[0] if made_from is not None else None,
        (*_warnings(before, last), *_origin_warning(base, top, origins), *_left_warning(uncalled)),
    )
    return Branch(
        promotion,
        tuple(needs.moved(raw, address.thread_id, raw.header.checkpoint_ns) for raw in found.values()),
        tuple(NewWrite(address.thread_id, row) for at in found for row in written.get(at, ())),
        {at: raw.stored_blob for at, raw in anchors.items()},
    )


def _chosen(
    store: Store, own: Mapping[Address, Checkpoint], headers: Mapping[Address, Checkpoint], address: Address
) -> tuple[set[Address], int]:
    """The rows that go along: the branch of the root graph, and what ran from each of its checkpoints, at any depth.

    With the count of those of which nothing says whether they belong to it.
    """
    inner = [at for at in own if at.checkpoint_ns]
    called_from = _callers(store, inner, headers)
    root = called_from.get(address, address)
    if root is None or root not in own:
        raise PatchError(
            f"The scratch file does not say from which checkpoint the subgraph {address.checkpoint_ns!r} was called.",
            "Promote the calling checkpoint of the outer graph instead.",
            "unknown-caller",
        )
    branch = _upward([root], own)
    first = min(at.checkpoint_id for at in branch)
    ran = [
        at
        for at in inner
        if called_from[at] in branch or (called_from[at] is None and _is_memory(at) and at.checkpoint_id < first)
    ]
    chosen = branch | _upward(ran, own)
    return chosen, sum(called_from[at] is None and not _is_memory(at) and at not in chosen for at in inner)


def _callers(store: Store, inner: Sequence[Address], headers: Mapping[Address, Checkpoint]) -> dict[Address, Address | None]:
    """Subgraph checkpoint -> the checkpoint of the root graph whose superstep it is part of; None where that is nowhere."""
    raws = _read(store, inner)
    tasks: dict[str, Address] = {}
    if any(not _parents(raw) for raw in raws.values()):
        thread = inner[0].thread_id
        tasks = {task: Address(thread, ns, identity) for ns, identity, task in store.task_keys(thread)}
    found: dict[Address, Address | None] = {}
    for at in inner:
        named = _parents(raws[at]).get("") if at in raws else None
        root: Address | None = Address(at.thread_id, "", named) if isinstance(named, str) else None
        ns = at.checkpoint_ns
        while root is None and (task := ns_task_id(ns)) in tasks:
            caller = tasks[task or ""]
            root, ns = (caller, "") if not caller.checkpoint_ns else (None, caller.checkpoint_ns)
        found[at] = root if root in headers else None
    return found


def _parents(raw: RawCheckpoint) -> Mapping[str, Any]:
    parents = value.decode_metadata(raw.metadata).get("parents")
    return parents if isinstance(parents, dict) else {}


def _is_memory(at: Address) -> bool:
    """Whether it belongs to a subgraph with a memory of its own, whose namespace names no task."""
    return ":" not in at.checkpoint_ns.split("|", 1)[0]


def _upward(starts: Iterable[Address], own: Mapping[Address, Checkpoint]) -> set[Address]:
    """The rows with all their ancestors among `own`."""
    found: set[Address] = set()
    for start in starts:
        at = start
        while at in own and at not in found:
            found.add(at)
            at = Address(at.thread_id, at.checkpoint_ns, own[at].parent_checkpoint_id or "")
    return found


def _read(store: Store, wanted: Iterable[Address]) -> dict[Address, RawCheckpoint]:
    """Stored rows in the order of their ids."""
    order = sorted(wanted, key=lambda at: (at.checkpoint_id, at.checkpoint_ns))
    found: dict[Address, RawCheckpoint] = {}
    for start in range(0, len(order), _READ_AT_ONCE):
        stored = store.raw(order[start : start + _READ_AT_ONCE])
        found |= {at: stored[at] for at in order[start : start + _READ_AT_ONCE] if at in stored}
    return found


def _first(found: Mapping[Address, RawCheckpoint], thread_id: str) -> RawCheckpoint:
    """The checkpoint of the root graph with which the branch begins."""
    return next(
        raw
        for at, raw in found.items()
        if not at.checkpoint_ns and Address(thread_id, "", raw.header.parent_checkpoint_id or "") not in found
    )


def _check_row(raw: RawCheckpoint) -> None:
    """PatchError for a row that cannot be put into the file with a good conscience."""
    where = f"Checkpoint {raw.header.checkpoint_id}"
    tag = raw.tag or "json"
    if "+" in tag:
        message = f"{where} is encrypted ({tag}), so it cannot be checked before it is added."
        raise PatchError(message, "Start with --aes-key-env NAME, the environment variable that holds the key.", "encrypted")
    if tag == "pickle":
        raise PatchError(f"{where} is stored as a pickle, which the studio never loads, so it cannot be checked.", "", "pickle")
    record = value.decode(raw.tag, raw.blob)
    fmt = record.get("v") if isinstance(record, dict) else None
    if not isinstance(fmt, int):
        raise PatchError(f"{where} cannot be decoded ({tag}).", "Fork it again from what the file holds.", "undecodable")
    if fmt > NEWEST_FORMAT:
        message = f"{where} has format {fmt}; the newest format known here is {NEWEST_FORMAT}."
        raise PatchError(message, "A newer version of the studio may know it.", "newer-format")


def _check_same(base: Store, scratch: Store | None, address: Address) -> None:
    """PatchError when the file holds other contents under the id of a checkpoint of the scratch file."""
    mine = scratch.raw([address]).get(address) if scratch is not None else None
    theirs = base.raw([address]).get(address)
    if mine is not None and theirs is not None and mine.stored_blob != theirs.stored_blob:
        message = f"{base.location} holds checkpoint {address.checkpoint_id} already, with other contents than the scratch file."
        raise PatchError(message, "Nothing in a file is ever replaced. " + _AGAIN, "other-contents")


def _check_unwritten(there: Written, path: str) -> None:
    """PatchError when the file holds writes under an id that the branch is about to bring: they would become part of it."""
    taken = sorted(at.checkpoint_id for at, rows in there.items() if rows)
    if taken:
        message = f"{path} holds writes under checkpoint {taken[0]} already, though not the checkpoint itself."
        raise PatchError(
            message, "They would become part of this branch. Make the fork anew: it gets an id of its own.", "writes-there"
        )


def _carried(
    scratch: Store, headers: Mapping[Address, Checkpoint], own: Mapping[Address, Checkpoint], thread_id: str
) -> dict[Address, RawCheckpoint]:
    """The rows of the scratch file that are copies of the file's own."""
    return _read(
        scratch, [one.address for _, one in scratch.checkpoints(thread_id) if one.address in headers and one.address not in own]
    )


def _anchors(
    base: Store,
    found: Mapping[Address, RawCheckpoint],
    top: RawCheckpoint,
    headers: Mapping[Address, Checkpoint],
    origins: Origins,
    held: Mapping[Address, RawCheckpoint],
) -> dict[Address, RawCheckpoint]:
    """The file's own rows that the branch rests on, read now. PatchError where they are gone or others than when it was made."""
    thread_id = top.header.thread_id
    made_from = [origins[at] for at in found if at in origins and origins[at][0].thread_id == thread_id]
    recorded = {origin: sha256 for origin, sha256 in made_from if origin not in found and _is_base(origin, headers)}
    gone = next((origin for origin, _ in made_from if origin not in headers), None)
    if gone is not None:
        message = f"Checkpoint {gone.checkpoint_id}, which this branch was forked from, is no longer in the file."
        raise PatchError(message, _AGAIN, "origin-gone")
    parents = {
        Address(thread_id, at.checkpoint_ns, raw.header.parent_checkpoint_id)
        for at, raw in found.items()
        if raw.header.parent_checkpoint_id
    } - found.keys()
    stored = _read(base, {*recorded, *(at for at in parents if at in headers)})
    for origin, sha256 in recorded.items():
        if origin not in stored or hashlib.sha256(stored[origin].stored_blob).hexdigest() != sha256:
            message = f"Checkpoint {origin.checkpoint_id}, which this branch was forked from, has changed since in the file."
            raise PatchError(message, _AGAIN, "origin-changed")
    for parent in parents - stored.keys():  # a fork hangs where its origin hangs, also where that leads nowhere
        same = any(
            raw.header.checkpoint_ns == parent.checkpoint_ns and raw.header.parent_checkpoint_id == parent.checkpoint_id
            for raw in stored.values()
        )
        if not same:
            message = f"Checkpoint {parent.checkpoint_id}, below which this branch hangs, is no longer in the file."
            raise PatchError(message, _AGAIN, "parent-gone")
    above = _upward(stored, headers) & held.keys()
    for at, mine in _read(base, above).items():
        copy = held[at]
        if (mine.stored_blob, mine.metadata, mine.tag) != (copy.stored_blob, copy.metadata, copy.tag):
            raise PatchError(
                f"Checkpoint {at.checkpoint_id}, which this branch rests on, has changed since in the file.",
                _AGAIN,
                "origin-changed",
            )
        stored[at] = mine
    return stored


def _is_base(at: Address, headers: Mapping[Address, Checkpoint]) -> bool:
    return at in headers and headers[at].origin == "base"


def _check_deltas(
    found: Mapping[Address, RawCheckpoint],
    headers: Mapping[Address, Checkpoint],
    anchors: Mapping[Address, RawCheckpoint],
    of_file: Written,
    of_scratch: Written,
) -> None:
    """PatchError where a delta channel of the branch rests on writes under the file's own checkpoints that are others there.

    Those that only the scratch file holds (an update of such a checkpoint stores some) would change, added to the file, what that
    checkpoint shows; those that only the file holds came later, and would become part of the branch.
    """
    for raw in found.values():
        record = value.decode(raw.tag, raw.blob)
        for channel in sorted(needs.delta_channels(record, value.decode_metadata(raw.metadata), ())):
            for one in _way_up(raw, channel, headers, anchors, found):
                mine, theirs = _of_channel(of_scratch.get(one, ()), channel), _of_channel(of_file.get(one, ()), channel)
                if mine - theirs:
                    raise PatchError(
                        f"The value of {channel} is stored as writes under checkpoint {one.checkpoint_id} of the file itself,"
                        " which promoting leaves as it is.",
                        "Make the same change with --in-place instead.",
                        "delta",
                    )
                if theirs - mine:
                    raise PatchError(
                        f"The value of {channel} rests on the writes under checkpoint {one.checkpoint_id}, and the file has got"
                        " more of them since: there the branch would show another value.",
                        _AGAIN,
                        "origin-changed",
                    )


def _way_up(
    raw: RawCheckpoint,
    channel: str,
    headers: Mapping[Address, Checkpoint],
    anchors: Mapping[Address, RawCheckpoint],
    found: Mapping[Address, RawCheckpoint],
) -> list[Address]:
    """The file's own checkpoints whose writes a delta channel is made of: up to the nearest, inclusive, that stores its value."""
    way: list[Address] = []
    header, seen = raw.header, {raw.header.address}
    while header.parent_checkpoint_id:
        at = Address(header.thread_id, header.checkpoint_ns, header.parent_checkpoint_id)
        if at in seen or at not in headers:
            break
        seen.add(at)
        header, stored = headers[at], found.get(at) or anchors.get(at)
        if at in anchors and at not in found:
            way.append(at)
        record = value.decode(stored.tag, stored.blob) if stored is not None else None
        values = record.get("channel_values") if isinstance(record, dict) else None
        if isinstance(values, dict) and channel in values:
            break
    return way


def _of_channel(written: Sequence[WriteRow], channel: str) -> set[tuple[object, ...]]:
    return {(row.task_id, row.idx, row.tag, row.value) for row in written if row.channel == channel}


def _row(raw: RawCheckpoint, writes: Sequence[WriteRow]) -> PromotedRow:
    header = raw.header
    digest = hashlib.sha256()
    for part in (raw.tag, raw.stored_blob, raw.metadata, header.parent_checkpoint_id):
        digest.update(repr(part).encode())
    for row in sorted(writes, key=lambda one: (one.task_id, one.idx)):
        stored = (row.value, row.tag) if row.sealed is None else (row.sealed.blob, row.sealed.tag)
        digest.update(repr((row.task_id, row.idx, row.channel, *stored)).encode())
    kind = header.source or "unknown"
    return PromotedRow(header.address, header.parent_checkpoint_id, len(raw.stored_blob), kind, len(writes), digest.hexdigest())


def _origin_warning(base: Store, top: RawCheckpoint, origins: Origins) -> tuple[str, ...]:
    """A thread of its own rests on nothing in the file, so it may go into one that has changed; that is said."""
    made_from = origins.get(top.header.address)
    if made_from is None or made_from[0].thread_id == top.header.thread_id:
        return ()
    origin, sha256 = made_from
    stored = base.raw([origin]).get(origin)
    if stored is not None and hashlib.sha256(stored.stored_blob).hexdigest() == sha256:
        return ()
    what = "is no longer in the file" if stored is None else "has changed since in the file"
    return (f"Checkpoint {origin.checkpoint_id}, which this thread was made from, {what}.",)


def _left_warning(uncalled: int) -> tuple[str, ...]:
    if not uncalled:
        return ()
    rows = "1 subgraph checkpoint stays" if uncalled == 1 else f"{uncalled} subgraph checkpoints stay"
    return (f"{rows} in the scratch file: nothing there says from which checkpoint they were called.",)


def _warnings(before: str | None, last: str) -> tuple[str, ...]:
    if before is None or last > before:
        return ()
    return (
        f"The thread went on meanwhile: its head stays {before}, which sorts after this branch. A program reaches the branch with"
        f" its checkpoint_id, {last}.",
    )
