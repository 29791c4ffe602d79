"""What a tree says of all its rows: counted once, and of a tree that only goes on, over the new rows alone."""

from __future__ import annotations

from msgspec import Struct, field

from studio.history.node import Links
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

    def take_in(self, links: Links) -> None:
        """Count the rows behind those that were seen; they stand in the order in which they came."""
        headers = links.headers
        spaces = [kind[0] for kind in headers.kinds]
        parent, first_child, kind_of = links.parent, links.first_child, headers.kind_of
        self.namespaces.update(spaces[kind] for kind in set(kind_of[self.seen : len(links)]))
        for slot in range(self.seen, len(links)):
            ns, above = spaces[kind_of[slot]], parent[slot]
            self.seen += 1
            if ns:
                self.inner += 1
            if headers.is_blank(slot):
                self.blank.append(f"#{links.number(slot)}")
            if above < 0:
                continue
            if not ns and first_child[above] == slot:  # each by its first child
                self.parents += 1
            if headers.falls(above, slot) and is_skewed(headers.created_at(slot), headers.created_at(above)):
                self.skewed.append(f"#{links.number(slot)}")


def orphan(thread_id: str, number: str, parent_id: str) -> Problem:
    return Problem("orphan-parent", f"{thread_id} #{number}", f"its parent {parent_id} is not in this file")


def is_skewed(after: str | None, before: str | None) -> bool:
    """Whether a checkpoint is older than its parent by their own times."""
    if before is None or after is None or before <= after:  # equal offsets, the rule, compare as text
        return False
    gap = seconds_between(before, after)
    return gap is not None and gap < 0
