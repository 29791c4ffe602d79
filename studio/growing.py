"""How large a checkpoint and its thread are, which channels make up the size, and what grew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from studio.explain.sizes import Sizes
from studio.model import Address

if TYPE_CHECKING:
    from studio.session import Session

POINTS = 60
"""Checkpoints whose sizes are told along a branch, however long it is."""
OPENED, OPENED_BYTES = 6, 24_000_000
"""Checkpoints on the branch that are opened to tell which channel grew, and the bytes they may have together."""


class Compared(Struct, frozen=True):
    """The sizes of a checkpoint and of its parent (None for a root)."""

    here: Sizes
    before: Sizes | None

    def grew(self, channel: str) -> int | None:
        """Bytes that a channel has more than in the parent; None where there is no parent to compare with."""
        if self.before is None or not self.before.is_readable:
            return None
        return self.here.channels.get(channel, 0) - self.before.channels.get(channel, 0)

    def share(self, channel: str) -> float:
        """Part of the whole record, 0 to 1."""
        return self.here.channels.get(channel, 0) / self.here.total if self.here.total else 0.0

    def by_size(self) -> list[str]:
        """The state channels, largest first."""
        return sorted(self.here.channels, key=lambda name: (-self.here.channels[name], name))


class Growth(Struct, frozen=True):
    """The sizes of a branch up to one checkpoint, sampled."""

    checkpoint_bytes: int
    """Of all checkpoints of the thread, in every namespace."""
    write_bytes: int | None
    """Of the values in all its rows of `writes`; None where a damaged table does not tell."""
    checkpoints: int
    points: tuple[tuple[Address, int], ...]
    """Checkpoints of the branch, oldest first, with their bytes."""
    opened: tuple[Address, ...]
    """Those of them whose channels were looked at: none that cannot be read."""
    channels: tuple[tuple[str, tuple[int, ...]], ...]
    """Channel -> its bytes at each of `opened`, the channels that are largest now first."""


def compared(session: Session, address: Address, before: Address | None) -> Compared:
    """The sizes of a checkpoint beside those of its parent. Raises RefError: not there."""
    return Compared(session.explainer.sizes(address), session.explainer.sizes(before) if before is not None else None)


def growth(session: Session, address: Address) -> Growth:
    """What grew on the branch up to a checkpoint. Few checkpoints are opened, however long it is; its headers are walked."""
    tree = session.tree(address.thread_id)
    branch = tree.branch(address)
    points = tuple((one, tree.header(one).size_bytes) for one in sampled(branch, POINTS))
    opened: list[Address] = []
    budget = OPENED_BYTES
    for one in reversed(sampled(branch, OPENED)):
        budget -= tree.header(one).size_bytes
        if budget < 0 and opened:
            break
        opened.insert(0, one)
    read = [(one, found) for one in opened if (found := session.explainer.sizes(one)).is_readable]
    sizes = [found.channels for _, found in read]
    names = sorted({name for found in sizes for name in found}, key=lambda name: (-sizes[-1].get(name, 0), name))
    return Growth(
        checkpoint_bytes=sum(header.size_bytes for header in tree.headers()),
        write_bytes=session.overlay.write_bytes(address.thread_id),
        checkpoints=len(tree),
        points=points,
        opened=tuple(one for one, _ in read),
        channels=tuple((name, tuple(found.get(name, 0) for found in sizes)) for name in names),
    )


def sampled(branch: list[Address], most: int) -> list[Address]:
    """At most `most` of a branch, evenly spread, the first and the last among them."""
    count = len(branch)
    if count <= most:
        return list(branch)
    return [branch[index * (count - 1) // (most - 1)] for index in range(most)]
