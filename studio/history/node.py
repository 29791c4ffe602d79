"""One row of a growing checkpoint tree, with its links to others."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from studio.history.facts import Key
from studio.model import Checkpoint


class Node(Struct):
    checkpoint: Checkpoint
    key: Key
    number: str = ""
    parent: Key | None = None
    """By stored link, in the same namespace, when it is there."""
    drawn_from: Key | None = None
    """Row that the line comes from: parent, origin of a fork, or the caller of a subgraph."""
    children: list[Key] = field(default_factory=list)
    inner: Sequence[Key] = ()
    """Rows of subgraphs that were called from here, in first-seen order."""
    inner_count: int = 0
    within: bool = False
    """It stands among the inner rows of another one."""
    depth: int = 0
    index: int = -1
    lane_child: Key | None = None
    """The child that goes on in this row's lane."""

    def take_inner(self, node: Node) -> None:
        if not isinstance(self.inner, list):
            self.inner = []  # few rows have any
        self.inner.append(node.key)
        node.within = True

    @property
    def age(self) -> tuple[int, str, str, str]:
        """Sort key: outer namespaces first, then time, then id."""
        ns, identity = self.key
        return (ns.count("|") + bool(ns), self.checkpoint.created_at or "", identity, ns)
