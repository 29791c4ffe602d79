"""Ids that a checkpoint should not have: the empty one, and one that another row of its namespace has too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from studio.model import Checkpoint, Problem


def odd_ids(thread_id: str, found: Sequence[tuple[int, Checkpoint]]) -> Iterator[Problem]:
    """A problem for each row of a thread, given as (row number, header), whose id is empty or was there before."""
    ids = {header.address.checkpoint_id for _, header in found}
    if len(ids) == len(found) and "" not in ids:
        return
    seen: set[tuple[str, str]] = set()
    for rowid, header in found:
        key = (header.checkpoint_ns, header.checkpoint_id)
        if key in seen:
            where = f"thread {thread_id}, checkpoint {header.checkpoint_id}"
            yield Problem("duplicate-id", where, f"The id occurs again in row {rowid}.")
        elif not header.checkpoint_id:
            yield Problem("empty-id", f"thread {thread_id}, row {rowid}", "This checkpoint has an empty id.")
        seen.add(key)
