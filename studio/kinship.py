"""From a fork to what it was made from, and back to all that was made of a checkpoint, also in other threads.

Inside a thread the tree draws this; a fork in a thread of its own is linked to its origin only by what the studio recorded.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from msgspec import Struct

from studio.errors import StudioError
from studio.model import Address, Checkpoint

if TYPE_CHECKING:
    from studio.session import Session

MOST = 100
"""Forks of one checkpoint that are named."""


class Kin(Struct, frozen=True):
    """What a checkpoint was made from, and what was made of it."""

    made_from: Address | None = None
    made: tuple[Address, ...] = ()

    def elsewhere(self, thread_id: str) -> Kin:
        """Only what lies in other threads, which no tree of this one shows."""
        origin = self.made_from if self.made_from is not None and self.made_from.thread_id != thread_id else None
        return Kin(origin, tuple(at for at in self.made if at.thread_id != thread_id))


def kin(session: Session, checkpoint: Checkpoint) -> Kin:
    """By what was recorded when the trees were last refreshed; costs nothing for a checkpoint without forks."""
    at, forest = checkpoint.address, session.forest
    found = [record for one in _above(checkpoint) if (record := forest.origin_of(one)) is not None]
    made_from = next((origin for origin, sha256 in found if _hash(session, origin) == sha256), None)
    recorded = forest.recorded_forks(at)
    own = _hash(session, at) if recorded else None
    forks = [fork for fork, sha256 in recorded if sha256 == own]
    there = session.overlay.raw(forks[:MOST]) if forks else {}
    return Kin(made_from, tuple(fork for fork in sorted(forks[:MOST]) if fork in there))


def _above(checkpoint: Checkpoint) -> list[Address]:
    """The checkpoint; of one that was written as a node, the copy that was made for it, too."""
    at = checkpoint.address
    if checkpoint.source == "update" and checkpoint.origin == "scratch" and checkpoint.parent_checkpoint_id is not None:
        return [at, Address(at.thread_id, at.checkpoint_ns, checkpoint.parent_checkpoint_id)]
    return [at]


def _hash(session: Session, at: Address) -> str | None:
    with contextlib.suppress(StudioError):
        return hashlib.sha256(session.raw(at).stored_blob).hexdigest()
    return None


def name(session: Session, at: Address) -> str:
    """`#4`, or where the number cannot be told the beginning of the id."""
    with contextlib.suppress(StudioError, LookupError):
        return f"#{session.number(at)}"
    return at.checkpoint_id[:12]
