"""Supersteps that no row was stored for: with durability `exit` only the last checkpoint of a run is kept."""

from __future__ import annotations

from studio.model import Checkpoint

Gap = tuple[int, int]
"""First and last step that were not stored."""


def missing_steps(checkpoint: Checkpoint, parent: Checkpoint | None) -> Gap | None:
    """The steps between a checkpoint and its parent, or before a first one. None where nothing is missing or cannot be told.

    Only a superstep follows the one before it by one; edits, inputs and forks may stand at any step. A parent that is named but
    not there is another thing: a loss.
    """
    step = checkpoint.step
    if step is None or checkpoint.source not in ("loop", "input"):
        return None
    if parent is not None:
        first = parent.step + 1 if parent.step is not None else step
    else:
        first = -1 if checkpoint.source == "loop" and step > 0 and not checkpoint.parent_checkpoint_id else step
    return (first, step - 1) if first < step else None
