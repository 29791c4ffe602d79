"""What must not be written into the opened file itself, as it is shown."""

from __future__ import annotations

from studio.errors import PatchError
from studio.stores.base import Store
from studio.stores.view import view_of

_DAMAGE = ("damaged", "truncated")
"""Kinds of problems that say that pages of the file are wrong or missing."""


def refusal(store: Store, *, by_langgraph: bool) -> PatchError | None:
    """Why nothing can be added to this store's own file.

    `by_langgraph`: its saver would do it, which knows one name for its tables.
    """
    view = view_of(store)
    if view.without_wal:
        return PatchError(
            f"{store.location} is shown without its -wal, and what is written to it goes through that -wal.",
            "Leave out --in-place: the fork goes to a scratch file of its own.",
            "without-wal",
        )
    damage = next((problem for problem in store.problems() if problem.kind in _DAMAGE), None)
    if damage is not None:
        return PatchError(
            f"{store.location} is damaged, and writing to a damaged file can lose more of it. {damage.message}",
            "Leave out --in-place: the fork goes to the scratch file.",
            "damaged",
        )
    if by_langgraph and view.tables is not None and view.tables.lower() != "checkpoints":
        return PatchError(
            f"LangGraph only writes to a table named checkpoints, and {view.tables} is shown.",
            "Leave out --in-place: the scratch file has tables of that name.",
            "renamed-tables",
        )
    return None
