"""What a tree says of all its rows: counted once, and of a tree that only goes on, over the new rows alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from msgspec import Struct, field

from studio.history.facts import Key
from studio.history.node import Node
from studio.model import Problem
from studio.times import seconds_between

NAMED = 8
"""Rows that a problem names."""


class Tally(Struct):
    turned: int = -1
    """The state of older rows (`Growth._turned`) that the counts hold for."""
    seen: int = 0
    inner: int = 0
    parents: int = 0
    """Rows of the root namespace that have a child."""
    namespaces: set[str] = field(default_factory=set)
    blank: list[str] = field(default_factory=list)
    """Numbers of rows without step and source."""
    skewed: list[str] = field(default_factory=list)
    """Numbers of rows that are older than their parent by their own time."""

    @property
    def leaves(self) -> int:
        """Rows of the root namespace without a child."""
        return self.seen - self.inner - self.parents

    def problems(self, thread_id: str, lacks_metadata: str = "") -> list[Problem]:
        out = []
        if self.blank:
            why = lacks_metadata or f"step and source cannot be read: {', '.join(self.blank[:NAMED])}"
            out.append(Problem("no-metadata", thread_id, why))
        if self.skewed:
            out.append(
                Problem("clock-step", thread_id, f"older than its parent by its own time: {', '.join(self.skewed[:NAMED])}")
            )
        return out

    def take_in(self, nodes: Mapping[Key, Node]) -> None:
        """Count the rows behind those that were seen; they stand in the order in which they came."""
        for node in islice(nodes.values(), self.seen, None):
            header = node.checkpoint
            self.seen += 1
            self.inner += bool(node.key[0])
            self.namespaces.add(node.key[0])
            if header.step is None and not header.source:
                self.blank.append(f"#{node.number}")
            if node.parent is None:
                continue
            above = nodes[node.parent]
            self.parents += not node.key[0] and above.children[0] == node.key  # each by its first child
            if is_skewed(header.created_at, above.checkpoint.created_at):
                self.skewed.append(f"#{node.number}")


def orphan(thread_id: str, number: str, parent_id: str) -> Problem:
    return Problem("orphan-parent", f"{thread_id} #{number}", f"its parent {parent_id} is not in this file")


def is_skewed(after: str | None, before: str | None) -> bool:
    """Whether a checkpoint is older than its parent by their own times."""
    if before is None or after is None or before <= after:  # equal offsets, the rule, compare as text
        return False
    gap = seconds_between(before, after)
    return gap is not None and gap < 0
