"""Everything that the panes draw about one checkpoint, read from the session in one go, off the UI thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from studio import kinship, reading
from studio.calling import Caller, SubgraphRun
from studio.errors import StudioError
from studio.growing import Compared
from studio.model import Address, Checkpoint, Comparison, Row, State
from studio.reading import Strip
from studio.render.threadnames import thread_name
from studio.tui import draw
from studio.tui.strip import BARS

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree


@dataclass(frozen=True, slots=True, repr=False)
class Point:
    """A checkpoint with its state and what changed on the way to it.

    Its repr is short: the framework asks the arguments of every worker for theirs, on the thread that draws.
    """

    row: Row
    state: State
    comparison: Comparison
    against: str
    """What the changes are relative to, in words: `parent #3`, `origin #4`, `#1 (pinned)`, `nothing before it`."""
    sizes: Compared
    """Bytes of its channels, beside those of its parent."""
    caller: Caller | None
    """The task that called the subgraph which it belongs to."""
    runs: dict[str, tuple[SubgraphRun, ...]]
    """Task id -> the subgraph runs that it started."""
    show_secrets: bool = False
    kin: tuple[tuple[str, Address], ...] = ()
    """(words, checkpoint) of what this was made from and what was made of it, in other threads."""

    strip: Strip | None = None
    """What the turns of a transcript took."""

    @property
    def address(self) -> Address:
        return self.row.checkpoint.address


def load(session: Session, tree: CheckpointTree, address: Address, base: Address | None = None) -> Point:
    """Read a point. `base` pins what it is compared with; a base equal to the point itself is ignored. Raises StudioError."""
    row = tree.row(address)
    state = session.state(address)
    pinned = base if base is not None and base != address else None
    comparison = session.compare(address, pinned or session.base_of(address))
    against = _against(tree, row, comparison, pinned is not None)
    return Point(
        row,
        state,
        comparison,
        against,
        session.sizes(address),
        session.caller(state),
        session.subgraph_runs(state),
        session.show_secrets,
        _kin(session, state.checkpoint),
        strip=_strip(session, address),
    )


def _strip(session: Session, address: Address) -> Strip | None:
    branch = session.branch(address)
    return reading.strip(branch, BARS) if branch is not None else None


def _kin(session: Session, checkpoint: Checkpoint) -> tuple[tuple[str, Address], ...]:
    found = session.kin(checkpoint).elsewhere(checkpoint.thread_id)
    named = [("made from", found.made_from)] if found.made_from is not None else []
    named += [("forked to", at) for at in found.made]
    return tuple((f"{words} {kinship.name(session, at)} of thread {thread_name(at.thread_id, 60)}", at) for words, at in named)


def _against(tree: CheckpointTree, row: Row, comparison: Comparison, pinned: bool) -> str:
    before = comparison.before
    if before is None:
        return "nothing before it"
    shown = draw.number(row_of(tree, before.address), before.address)
    if pinned:
        return f"{shown} (pinned)"
    if row.origin_checkpoint_id == before.checkpoint_id:
        return f"origin {shown}"
    return f"parent {shown}"


def row_of(tree: CheckpointTree, address: Address) -> Row | None:
    """The row of an address, or None when the tree does not hold it."""
    try:
        return tree.row(address)
    except (StudioError, LookupError):
        return None
