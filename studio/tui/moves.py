"""Small questions that the screens ask of a tree or a state: other branches, open questions, what a fork hands back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from studio.errors import StudioError
from studio.model import Address, State, Value
from studio.stores.base import Capability

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree


@dataclass(frozen=True, slots=True)
class Made:
    """A fork that was written, and whether the person asked to run it."""

    address: Address
    origin: Address
    then_run: bool


@dataclass(frozen=True, slots=True)
class Question:
    """An interrupt that waits for an answer."""

    id: str | None
    value: Value
    node: str | None = None


def can_fork(session: Session) -> bool:
    return Capability.RAW_FORK in session.store.capabilities


def has_branches(tree: CheckpointTree | None) -> bool:
    return tree is not None and tree.lane_count > 1


def leaf_below(tree: CheckpointTree, address: Address) -> Address:
    """The end of the line that goes down from a checkpoint by first children."""
    seen = {address}
    while True:
        below = tree.children(address)
        if not below or below[0] in seen:
            return address
        address = below[0]
        seen.add(address)


def upward(tree: CheckpointTree, address: Address) -> Iterator[Address]:
    """From a checkpoint to the root of its namespace, step by step: a long thread costs no more than what is looked at."""
    seen: set[Address] = set()
    at: Address | None = address
    while at is not None and at not in seen:
        yield at
        seen.add(at)
        above = tree.parent(at)
        if above is None:
            grown = tree.grew_from(at)
            above = grown if grown is not None and grown.checkpoint_ns == at.checkpoint_ns else None
        at = above


def same_point(tree: CheckpointTree, address: Address, by: int) -> Address | None:
    """The checkpoint as many steps from the root on the next branch of the same namespace; its end where it is shorter."""
    leaves = list(tree.leaves(address.checkpoint_ns))
    if len(leaves) < 2:
        return None
    leaf = leaf_below(tree, address)
    at = leaves.index(leaf) if leaf in leaves else 0
    depth = len(tree.branch(address)) - 1
    for offset in range(1, len(leaves)):
        branch = tree.branch(leaves[(at + by * offset) % len(leaves)])
        target = branch[min(depth, len(branch) - 1)]
        if target != address:
            return target
    return leaves[(at + by) % len(leaves)]


def origin_of(tree: CheckpointTree | None, address: Address) -> Address | None:
    """The checkpoint that the fork above this one was made from; None on a branch that is no fork of ours."""
    if tree is None:
        return None
    try:
        for above in upward(tree, address):
            origin = tree.origin(above)
            if origin is not None:
                return origin
    except (StudioError, LookupError):
        return None
    return None


def open_questions(state: State) -> tuple[Question, ...]:
    """The interrupts of a checkpoint that nobody answered."""
    return tuple(
        Question(interrupt.id, interrupt.value, task.name)
        for task in state.tasks
        for interrupt in task.interrupts
        if not interrupt.answered
    )
