"""Changes between two checkpoints, each with its author where the file tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from studio.codec.paths import child
from studio.diff import diff
from studio.errors import RefError
from studio.model import Address, Author, Change, Comparison, Op, Problem, State, Value, Verdict
from studio.render.pairs import announced
from studio.tagged import join_path, split_path
from studio.value import MISSING, Missing

if TYPE_CHECKING:
    from studio.session import Session


def compare(session: Session, after: Address, before: Address | None = None, *, origin: bool = False) -> Comparison:
    """Changes over state values from `before` to `after`.

    Default base: the stored parent, None for a root; with `origin`, the checkpoint that a fork was made from. Raises RefError
    when a checkpoint is not there, or when `origin` is asked of a checkpoint that is no fork. Where one of the two cannot be read
    there are no changes, and `closed` names it.
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
    closed = tuple(one.checkpoint.address for one in (base, state) if one is not None and one.closed)
    if closed:
        told = dict.fromkeys([*(base.problems if base is not None else ()), *state.problems])
        return Comparison(base.checkpoint if base is not None else None, state.checkpoint, (), tuple(told), closed=closed)
    unknown = {
        *state.unrebuilt,
        *(base.unrebuilt if base is not None else ()),
    }  # a value that is not known was neither added nor lost
    old: Mapping[str, Value] = base.values if base is not None else {}
    found = [change for change in diff(base.values if base is not None else None, state.values) if change.channel not in unknown]
    changes = pairs_whole(found, old, state.values)
    if before == parent:
        named: Sequence[Change] = by_hand(session, after, session.explainer.with_authors(base, state, changes))
    elif before is not None and before in (session.origin(after), session.forest.made_from(after)):
        named = [replace(change, authors=(Author(None, None, "source"),)) for change in changes]
    elif before is not None:
        from studio.tracing import traced  # what most looks at a file do not need

        named = traced(session, before, after, changes)
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


def by_hand(session: Session, after: Address, changes: Sequence[Change]) -> Sequence[Change]:
    """The changes of a write as a node, each by the node that the studio recorded: LangGraph stores no more than the values."""
    written = session.updates().get(after)
    if not written:
        return changes

    def named(change: Change) -> Change:
        if any(author.node is not None or author.basis != "source" for author in change.authors):
            return change
        nodes = [node for node, channels in written if change.channel in channels]
        return replace(change, authors=tuple(Author(node, None, "source") for node in nodes)) if nodes else change

    return [named(change) for change in changes]


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


def pairs_whole(changes: Sequence[Change], before: Mapping[str, Value], after: Mapping[str, Value]) -> list[Change]:
    """Changes inside a pair whose one member names a secret, as a change of the pair: alone, the other member would not show
    that it is one."""
    done: dict[str, Change] = {}
    states = dict(before), dict(after)
    for change in changes:
        old: Value | Missing = states[0]
        new: Value | Missing = states[1]
        kept, steps = change, split_path(change.path)
        for depth, step in enumerate(steps):
            if depth > 1 and any(not isinstance(one, Missing) and announced(one) for one in (old, new)):
                path = join_path(steps[:depth])
                op: Op = "add" if isinstance(old, Missing) else "remove" if isinstance(new, Missing) else "replace"
                was, now = (None if isinstance(one, Missing) else one for one in (old, new))
                kept = Change(path, op, was, now)
                break
            old = MISSING if isinstance(old, Missing) else child(old, step)
            new = MISSING if isinstance(new, Missing) else child(new, step)
        done.setdefault(kept.path if kept is not change else f"{change.op} {change.path}", kept)
    return list(done.values())


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
