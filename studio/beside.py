"""What both UIs say of two branches side by side: which two, what is folded away, how many are the same, which words differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from studio.branches import Branches, StepPair
from studio.chats import MessagePair
from studio.codec.paths import split_path
from studio.history.walk import last_of, leaves, upward
from studio.model import START, Address, Change, Comparison, Value
from studio.render import gate, labels, masking, preview
from studio.render.words import Op, word_diff

if TYPE_CHECKING:
    from studio.session import Session

How = Literal["same", "changed", "left", "right", "unread"]
Parts = Sequence[tuple[Op, str]]

SHORT = 2
"""Pairs in a row that are alike and stand open: more of them are folded."""
LEAST_SHARED = 0.25
"""Part of two texts that must be the same for their words to be compared; below it, each is shown as a whole."""
LONGEST = 20_000
"""Characters of a text that are compared by words."""
SIGNS: dict[How, str] = {"same": "=", "changed": "≠", "left": "◂", "right": "▸", "unread": "·"}
WORDS: dict[How, str] = {
    "same": "the same",
    "changed": "different",
    "left": "only left",
    "right": "only right",
    "unread": "not compared",
}


def how_of(pair: StepPair) -> How:
    if pair.left is None or pair.right is None:
        return "right" if pair.left is None else "left"
    return "unread" if pair.same is None else "same" if pair.same else "changed"


def ends_differ(ends: Comparison) -> str:
    """`3 differences`, or that they cannot be told."""
    return "not known: a state cannot be read" if ends.closed else labels.plural(len(ends.changes), "difference")


def stretches(hows: Iterable[How], short: int | None = SHORT) -> Iterator[tuple[How, int, int]]:
    """(how, first, behind the last): more than `short` in a row that are the same, or not compared, as one; else single pairs."""
    start = 0
    for how, group in groupby(hows):
        stop = start + sum(1 for _ in group)
        if short is not None and how in ("same", "unread") and stop - start > short:
            yield how, start, stop
        else:
            yield from ((how, at, at + 1) for at in range(start, stop))
        start = stop


def tally(hows: Iterable[How]) -> str:
    """`2 the same, 4 different, 1 only right`."""
    found = list(hows)
    return ", ".join(f"{found.count(how):,} {word}" for how, word in WORDS.items() if how in found)


def both_sides(pair: MessagePair, *, show_secrets: bool = False) -> tuple[Parts, Parts] | None:
    """The text of a message that differs as the left and as the right end have it: what both have under `=`, the rest under `-`
    and `+`. Masked, not gated. None where they have too little in common, or are too long."""
    texts = [_text(side, show_secrets) for side in (pair.left, pair.right)]
    if pair.how != "changed" or max(map(len, texts)) > LONGEST:
        return None
    parts = word_diff(texts[0], texts[1]) or []
    shared = sum(len(text) for op, text in parts if op == "=")
    if shared < LEAST_SHARED * max(map(len, texts)):
        return None
    return [part for part in parts if part[0] != "+"], [part for part in parts if part[0] != "-"]


def _text(value: Value, show_secrets: bool) -> str:
    found = preview.message(value)
    return masking.text(found.text, show_secrets=show_secrets) if found is not None else ""


def two_ends(session: Session, here: Address, base: Address | None) -> tuple[Address | None, Address]:
    """(left, right): the pinned base and this checkpoint, else the ends of another branch and of the one through here.

    The left one is None where the thread has one branch.
    """
    if base is not None and base != here:
        return base, here
    right = last_of(session.tree(here.thread_id), here)
    return other_end(session, right), right


def other_end(session: Session, right: Address) -> Address | None:
    """The branch that one compares with first: that of the nearest fork's origin, else another of the thread, the head first."""
    tree = session.tree(right.thread_id)
    line = list(upward(tree, right))
    for step in line:
        origin = session.forest.made_from(step) or tree.origin(step)
        if origin is not None and origin.thread_id in session.thread_ids():
            return last_of(session.tree(origin.thread_id), origin)
    end = last_of(tree, right)
    others = [leaf for leaf in leaves(tree, right.checkpoint_ns) if leaf not in line and leaf != end]
    if tree.head is not None and tree.head in others:
        return tree.head
    return others[-1] if others else None


class ChannelEnds(Struct, frozen=True):
    """How a channel differs at the two ends. `by`: who made it so, in words."""

    channel: str
    by: str
    changes: tuple[Change, ...]


def by_channel(found: Branches) -> list[ChannelEnds]:
    """What differs at the ends: first the channel in which the branches part, last the one that the chats show."""
    groups: dict[str, list[Change]] = {}
    for change in found.ends.changes:
        groups.setdefault(change.channel, []).append(change)
    path = found.steps[found.first].path if found.first is not None else None
    cause = split_path(path)[0] if path else None
    order = sorted(groups, key=lambda channel: (channel == found.chats.channel, channel != cause))
    return [ChannelEnds(channel, _by(groups[channel], found.ends), tuple(groups[channel])) for channel in order]


def _by(changes: Sequence[Change], ends: Comparison) -> str:
    authors = [author for change in changes for author in change.authors]
    names = list(dict.fromkeys("input" if author.node == START else author.node for author in authors if author.node))
    if names:
        return f"by {labels.names(names[:4])}{' …' if len(names) > 4 else ''}"
    edited = ends.after.origin == "scratch" or any(author.basis == "source" for author in authors)
    return "set by hand" if edited else "author not known"


def parted(session: Session, found: Branches) -> str:
    """Where the two ways part, in words. Gated."""
    left, right = found.left.checkpoint.address, found.right.checkpoint.address
    if left == right:
        return "both are the same checkpoint"
    if found.ancestor is None:
        return "they share no checkpoint"
    if found.ancestor in (left, right):
        first, last = (left, right) if found.ancestor == left else (right, left)
        later = labels.plural(len(found.steps) + found.cut, "superstep")
        return f"{named(session, last)} comes {later} after {named(session, first)}"
    return f"they part after {named(session, found.ancestor)}"


def named(session: Session, address: Address) -> str:
    """`#4 plan_refund`. Gated."""
    row = session.row(address)
    return f"#{row.number} {gate.line(row.label, 60)}"
