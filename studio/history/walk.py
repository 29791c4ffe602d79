"""Steps through a checkpoint tree that cost little however long the thread is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from studio.model import Address

if TYPE_CHECKING:
    from studio.tree import CheckpointTree

FAR = 4_000
"""Rows up to which a branch is walked as a whole; a longer thread is scrubbed by rows."""

_LEAVES: WeakKeyDictionary[CheckpointTree, tuple[tuple[int, int], dict[str, tuple[Address, ...]]]] = WeakKeyDictionary()


def upward(tree: CheckpointTree, address: Address) -> Iterator[Address]:
    """This checkpoint and those it grew from, to the root of its namespace; a fork goes on at its stored parent."""
    at: Address | None = address
    while at is not None:
        yield at
        above = tree.parent(at)
        if above is None:
            drawn = tree.grew_from(at)
            above = drawn if drawn is not None and drawn.checkpoint_ns == at.checkpoint_ns else None
        at = above


def depth(tree: CheckpointTree, address: Address, limit: int = FAR) -> int | None:
    """Steps from the root; None when it is farther than `limit`."""
    count = -1
    for count, _ in enumerate(upward(tree, address)):
        if count > limit:
            return None
    return count


def downward(tree: CheckpointTree, address: Address, limit: int | None = None) -> Iterator[Address]:
    """The line that goes on after this checkpoint: first children to the end."""
    steps = 0
    while limit is None or steps < limit:
        children = tree.children(address)
        if not children:
            return
        address, steps = children[0], steps + 1
        yield address


def last_of(tree: CheckpointTree, address: Address) -> Address:
    """The end of the line that goes on from here."""
    for following in downward(tree, address):
        address = following
    return address


def leaves(tree: CheckpointTree, ns: str = "") -> tuple[Address, ...]:
    """Rows of a namespace without children; found once per state of the tree."""
    with tree.lock:  # it may grow meanwhile: what is found belongs to the stage that is asked for here
        stage = tree.stage
        known, found = _LEAVES.get(tree, (None, {}))
        if known != stage:
            found = {}
            _LEAVES[tree] = (stage, found)
        if ns not in found:
            found[ns] = tree.leaves(ns)
        return found[ns]


def neighbour_branch(tree: CheckpointTree, address: Address, step: int) -> Address | None:
    """The same point on the branch before or after: equally far from the root, else that branch's last row."""
    ends = leaves(tree, address.checkpoint_ns)
    if len(ends) < 2:
        return None
    own = next(reversed([address, *downward(tree, address, FAR)]))
    place = ends.index(own) if own in ends else 0
    end = ends[(place + step) % len(ends)]
    here, there = depth(tree, address), depth(tree, end)
    if here is None or there is None or there <= here:
        return end
    for distance, at in enumerate(upward(tree, end)):
        if distance == there - here:
            return at
    return end
