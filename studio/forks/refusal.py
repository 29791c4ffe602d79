"""What cannot be forked at all, however it is asked for."""

from __future__ import annotations

from studio.errors import PatchError
from studio.forks.copy import open_record
from studio.model import RawCheckpoint
from studio.stores.base import Store


def of_store(store: Store) -> PatchError | None:
    """Why nothing of this store can be forked or run again."""
    found: PatchError | None = getattr(store, "no_forks", None)
    return found


def of_row(raw: RawCheckpoint) -> PatchError | None:
    """Why this checkpoint cannot be forked or run again: its row cannot be opened, or not be written again as it is."""
    try:
        open_record(raw)
    except PatchError as error:
        return error
    return None
