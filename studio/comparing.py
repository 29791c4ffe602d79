"""Changes between two checkpoints, each with its author where the file tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from studio.diff import diff
from studio.errors import RefError
from studio.model import Address, Author, Change, Comparison, Problem, State, Verdict

if TYPE_CHECKING:
    from studio.session import Session

STEPS_BACK = 40
"""How far a diff over several supersteps is traced step by step to name its authors."""


def compare(session: Session, after: Address, before: Address | None = None, *, origin: bool = False) -> Comparison:
    """Changes over state values from `before` to `after`.

    Default base: the stored parent, None for a root; with `origin`, the checkpoint that a fork was made from. Raises RefError
    when a checkpoint is not there, or when `origin` is asked of a checkpoint that is no fork.
    """
    state = session.state(after)
    parent = stored_parent(session, state)
    if before is None:
        if origin:
            tree = session.tree(after.thread_id)
            before = tree.origin(after)
            if before is None:
                raise RefError(
                    f"#{tree.number(after)} is no fork with a known origin", "leave --origin out to compare with the parent"
                )
        else:
            before = parent
    base = session.state(before) if before is not None else None
    unknown = {
        *state.unrebuilt,
        *(base.unrebuilt if base is not None else ()),
    }  # a value that is not known was neither added nor lost
    changes = [
        change for change in diff(base.values if base is not None else None, state.values) if change.channel not in unknown
    ]
    if before == parent:
        named: Sequence[Change] = session.explainer.with_authors(base, state, changes)
    elif before is not None and session.origin(after) == before:
        named = [replace(change, authors=(Author(None, None, "source"),)) for change in changes]
    elif before is not None and before.thread_id == after.thread_id:
        named = _traced(session, before, after, changes)
    else:
        named = [replace(change, authors=(Author(None, None, "none"),)) for change in changes]
    unsure = [*(base.problems if base is not None else ()), *state.problems]
    explained: dict[str, Verdict] = {}
    if before == parent:
        explained = session.explainer.checked(base, state)
        unsure += unexplained(state, explained)
        session.note_outside(after, explained)
    at = base.checkpoint if base is not None else None
    return Comparison(at, state.checkpoint, tuple(named), tuple(dict.fromkeys(unsure)), explained)


def checked(session: Session, state: State) -> dict[str, Verdict]:
    """Channel -> whether the writes under the stored parent lead to its value."""
    parent = stored_parent(session, state)
    explained = session.explainer.checked(session.state(parent) if parent is not None else None, state)
    session.note_outside(state.checkpoint.address, explained)
    return explained


def unexplained(state: State, explained: Mapping[str, Verdict]) -> list[Problem]:
    """The channels that changed outside their writes, as problems of the checkpoint that holds them."""
    where = state.checkpoint.checkpoint_id
    return [
        Problem("unexplained-value", f"{where}/{channel}", f"changed outside its writes: {found.why}")
        for channel, found in explained.items()
        if found.how == "outside"
    ]


def stored_parent(session: Session, state: State) -> Address | None:
    """The parent that the record names, if it is in this file; found without the thread's tree, however long that is."""
    at = state.checkpoint
    if not at.parent_checkpoint_id:
        return None
    parent = Address(at.thread_id, at.checkpoint_ns, at.parent_checkpoint_id)
    try:
        return session.state(parent).checkpoint.address
    except RefError:
        return None


def _traced(session: Session, before: Address, after: Address, changes: Sequence[Change]) -> list[Change]:
    """Authors for a diff over several supersteps: who last changed that value, or what it lies in, on the way to `after`.

    The way begins at `before`, or where the two branches part.
    """
    unknown = (Author(None, None, "none"),)
    authors: dict[str, dict[Author, None]] = {}
    exact: dict[str, tuple[Author, ...]] = {}
    for address in session.way(before, after, STEPS_BACK - 1):
        for change in compare(session, address, session.base_of(address)).changes:
            authors.setdefault(change.channel, {}).update(dict.fromkeys(change.authors))
            exact[change.path] = change.authors

    def of(change: Change) -> tuple[Author, ...]:
        path = change.path
        while path:
            if path in exact:
                return exact[path]
            path = path.rpartition("/")[0]
        return tuple(authors.get(change.channel, ())) or unknown

    return [replace(change, authors=of(change)) for change in changes]
