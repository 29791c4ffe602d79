"""A whole thread in few facts: how its checkpoints hang together, when it began and ended, how large it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from studio.model import Checkpoint
from studio.stores.base import Store


class Outline(Struct, frozen=True):
    """`links` are (namespace, checkpoint id, parent id) of every checkpoint; times, in UTC, are the earliest and the latest, or
    those of the least and the largest of ids that tell their time."""

    links: tuple[tuple[str, str, str | None], ...]
    size_bytes: int
    first_at: str | None
    last_at: str | None
    encrypted: int = 0
    """How many of the checkpoints are stored under a cipher."""
    of_file: int | None = None
    """So many of `links`, the first ones, are in the file itself; None: all."""


class Summary(Struct, frozen=True):
    """What a list says of a thread. Roots (without a parent that is there), heads (without a child) and `latest`, the largest id,
    one of the file itself where it has any, are of the root namespace; a loop has neither root nor head. Without `last_at`, the
    time of `latest` is the last one."""

    roots: tuple[str, ...]
    heads: tuple[str, ...]
    latest: str | None
    size_bytes: int
    first_at: str | None
    last_at: str | None
    encrypted: int = 0


def summed(whole: Outline) -> Summary:
    """An outline in short."""
    parents = {identity: parent for ns, identity, parent in whole.links if not ns}
    with_child = set(parents.values())
    resumed = max((identity for ns, identity, _ in whole.links[: whole.of_file] if not ns), default=None)
    return Summary(
        tuple(sorted(identity for identity, parent in parents.items() if not parent or parent not in parents)),
        tuple(sorted(identity for identity in parents if identity not in with_child)),
        resumed if resumed is not None else max(parents, default=None),
        whole.size_bytes,
        whole.first_at,
        whole.last_at,
        whole.encrypted,
    )


def outline(store: Store, thread_id: str) -> Outline:
    """The shortest way that a store offers, else its headers."""
    direct: Callable[[str], Outline | None] | None = getattr(store, "outline", None)
    found = direct(thread_id) if direct is not None else None
    return found if found is not None else of_headers(header for _, header in store.checkpoints(thread_id))


def of_headers(headers: Iterable[Checkpoint]) -> Outline:
    kept = list(headers)
    times = [header.created_at for header in kept if header.created_at is not None]
    return Outline(
        tuple((header.checkpoint_ns, header.checkpoint_id, header.parent_checkpoint_id) for header in kept),
        sum(header.size_bytes for header in kept),
        min(times, default=None),
        max(times, default=None),
        sum(header.encrypted for header in kept),
    )


def joined(one: Outline, other: Outline) -> Outline:
    """The outline of a thread of a file with what a scratch file adds to it."""
    times = [time for time in (one.first_at, one.last_at, other.first_at, other.last_at) if time is not None]
    return Outline(
        one.links + other.links,
        one.size_bytes + other.size_bytes,
        min(times, default=None),
        max(times, default=None),
        one.encrypted + other.encrypted,
        len(one.links),
    )
