"""Two branches side by side: the two ends, where they part, their supersteps, how the ends differ, both conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from studio import tagged
from studio.beside import (
    SHORT,
    SIGNS,
    WORDS,
    How,
    Parts,
    both_sides,
    by_channel,
    ends_differ,
    how_of,
    named,
    other_end,
    parted,
    stretches,
    tally,
    two_ends,
)
from studio.branches import Branches, StepPair, Wrote, wrote
from studio.chats import MessagePair
from studio.errors import RefError
from studio.history.walk import leaves
from studio.model import Address, Comparison
from studio.render import gate, labels, masking, preview, secrets
from studio.render.threadnames import thread_name
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views.changes import Group, channel_group
from studio.web.views.timeline import badges
from studio.web.views.values import Bubble, Reveal, Shown, Span, bubble, shown

PAGE = 40
"""Supersteps, or messages, that are drawn at once; what is folded counts as one."""
MOST_LINES = 4
MOST_DRAWN = 60
"""Values of a superstep, those included that are opened on demand."""
MOST_TEXT = 4_000
MOST_OPTIONS = 30
KEEP = 120
"""Characters at both ends of a long text that both sides have."""
OPS = {"=": "same", "-": "del", "+": "ins"}


@dataclass(frozen=True, slots=True)
class End:
    """One of the two checkpoints that the branches end at."""

    number: str
    title: str
    href: str
    badges: tuple[tuple[str, str], ...]
    thread: str
    """The thread, where the other end is in another one."""
    facts: str
    ref: str
    """What to type for it."""
    pinned: bool


@dataclass(frozen=True, slots=True)
class WroteLine:
    key: str
    value: Shown
    shared: bool


@dataclass(frozen=True, slots=True)
class Cell:
    href: str
    number: str
    title: str
    badges: tuple[tuple[str, str], ...]
    lines: tuple[WroteLine, ...]
    rest: tuple[WroteLine, ...]
    """Opened on demand."""
    more: int
    """Values that are not drawn at all."""


@dataclass(frozen=True, slots=True)
class Pair:
    how: How
    sign: str
    word: str
    left: Cell | None
    right: Cell | None
    first: bool
    """It is the first one that differs."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of one side; `spans` where its text is compared by words with the one beside it."""

    bubble: Bubble
    spans: tuple[Span, ...]
    calls: tuple[tuple[str, bool], ...]
    """(call in words, whether the message beside it does not make it)."""
    href: str
    number: str


@dataclass(frozen=True, slots=True)
class Talk:
    how: How
    sign: str
    word: str
    left: Said | None
    right: Said | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Pairs in a row that are alike, opened on demand."""

    words: str
    names: str
    href: str


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a long list, and the way to the next one."""

    kind: str
    """`steps` or `chats`."""
    items: tuple[Pair | Talk | Fold, ...]
    more: int
    more_href: str


@dataclass(frozen=True, slots=True)
class First:
    """The first difference."""

    how: How
    left: str
    left_href: str
    right: str
    right_href: str
    path: str
    before: Shown | None
    after: Shown | None


@dataclass(frozen=True, slots=True)
class Side:
    """The whole view. `empty`: said instead where there are no two branches."""

    thread: str
    empty: str = ""
    left: End | None = None
    right: End | None = None
    swap_href: str = ""
    shared: str = ""
    shared_href: str = ""
    same: bool = False
    first: First | None = None
    steps: Window | None = None
    steps_tally: str = ""
    steps_cut: str = ""
    groups: tuple[Group, ...] = ()
    talk_group: Group | None = None
    """The differences of the conversation's channel, which the chats show, too."""
    differences: str = ""
    ends_known: bool = True
    chats: Window | None = None
    chats_tally: str = ""
    chats_note: str = ""
    channel: str = ""
    options: tuple[tuple[str, str, bool], ...] = ()
    """(words, link, chosen) of the branches to put at the left."""
    problems: tuple[str, ...] = ()


def branches_href(session: Session, place: Place, leaf: Address) -> str:
    """The side-by-side view of this leaf and the branch it was forked from; "" when there is no other branch."""
    other = other_end(session, leaf)
    return "" if other is None else place.beside(other, leaf).url()


def ends_of(session: Session, tree: CheckpointTree, place: Place) -> tuple[Address | None, Address]:
    """The two checkpoints: those that were chosen or pinned, else the ends of the branch through the cursor and of another one.

    Raises RefError: what was chosen is not there.
    """
    here = place.address
    if place.left:
        thread = place.left_thread if place.left_thread is not None else here.thread_id
        named_ns = place.left_ns if place.left_ns is not None else here.checkpoint_ns
        wanted = Address(thread, named_ns, place.left)
        other = session.tree(thread)
        return (wanted if wanted in other else other.resolve(place.left, place.left_ns)), here
    pinned = Address(here.thread_id, place.base_ns if place.base_ns is not None else here.checkpoint_ns, place.base or "")
    return two_ends(session, here, pinned if pinned in tree else None)


def side(session: Session, tree: CheckpointTree, place: Place) -> Side:
    """Everything that the tab draws at first."""
    thread = place.thread or ""
    left, right = ends_of(session, tree, place)
    if left is None:
        return Side(
            thread, "This thread has one branch. Fork from any checkpoint to make another one, or pin one (d) to compare with it."
        )
    found = session.side_by_side(left, right)
    drawn = _Drawn(session, place, found)
    hows = [how_of(pair) for pair in found.steps]
    said: list[How] = [pair.how for pair in found.chats.pairs]
    plain = Comparison(found.ends.before, found.ends.after, found.ends.changes, found.ends.problems)
    at_end = drawn.place_of(right, tab="state")
    groups = [(one.channel == found.chats.channel, channel_group(at_end, one, plain)) for one in by_channel(found)]
    cut = labels.plural(found.cut, "more superstep")
    return Side(
        thread=thread,
        left=drawn.end(left, right, pinned=not place.left and place.base == left.checkpoint_id),
        right=drawn.end(right, left),
        swap_href=place.beside(right, left).url(),
        shared=labels.sentence(parted(session, found)),
        shared_href=drawn.place_of(found.ancestor).url() if found.ancestor is not None else "",
        same=found.first is None and not found.ends.changes and not found.ends.closed and "unread" not in hows,
        first=drawn.first(),
        steps=drawn.steps(0, len(found.steps)),
        steps_tally=tally(hows),
        steps_cut=f"{cut} of both branches are not aligned" if found.cut else "",
        groups=tuple(group for is_talk, group in groups if not is_talk),
        talk_group=next((group for is_talk, group in groups if is_talk), None),
        differences=ends_differ(found.ends),
        ends_known=not found.ends.closed,
        chats=drawn.chats(0, len(found.chats.pairs)) if drawn.may_show_chats else None,
        chats_tally=tally(said),
        chats_note=drawn.chats_note(),
        channel=gate.line(found.chats.channel or "", 80),
        options=_options(session, tree, place, left, right),
        problems=tuple(gate.line(labels.problem_text(problem), 300) for problem in found.ends.problems),
    )


def window(
    session: Session, tree: CheckpointTree, place: Place, kind: str, start: int, stop: int | None, *, unfold: bool
) -> Window:
    """One part of the supersteps, or of the chats. Raises RefError: there are no two branches."""
    left, right = ends_of(session, tree, place)
    if left is None:
        raise RefError("there is no other branch", "fork from a checkpoint to make one")
    drawn = _Drawn(session, place, session.side_by_side(left, right))
    if kind == "steps":
        return drawn.steps(start, stop, unfold=unfold)
    return drawn.chats(start, stop, unfold=unfold) if drawn.may_show_chats else Window(kind, (), 0, "")


def _options(
    session: Session, tree: CheckpointTree, place: Place, left: Address, right: Address
) -> tuple[tuple[str, str, bool], ...]:
    found = [leaf for leaf in leaves(tree, right.checkpoint_ns)[-MOST_OPTIONS:] if leaf != right]
    if left not in found:
        found.insert(0, left)
    return tuple((named(session, leaf), place.beside(leaf, right).url(), leaf == left) for leaf in found)


class _Drawn:
    """Draws the parts of one comparison."""

    def __init__(self, session: Session, place: Place, found: Branches) -> None:
        self.session = session
        self.place = place
        self.found = found
        self.channel = found.chats.channel
        self.may_show_chats = self.channel is not None and (session.show_secrets or not secrets.is_secret_name(self.channel))

    def place_of(self, address: Address, tab: str = "changes", path: str | None = None) -> Place:
        own = address.thread_id == self.place.thread
        place = self.place if own else self.place.to(base=None, base_ns=None)
        return place.at_address(address, tab=tab, path=path)

    def end(self, address: Address, other: Address, *, pinned: bool = False) -> End:
        row = self.session.row(address)
        step = f"step {row.checkpoint.step} · " if row.checkpoint.step is not None else ""
        return End(
            number=row.number,
            title=gate.line(row.label, 80),
            href=self.place_of(address).url(),
            badges=badges(row),
            thread=thread_name(address.thread_id, 60) if address.thread_id != other.thread_id else "",
            facts=step + labels.when(row.checkpoint.created_at),
            ref=f"#{row.number}",
            pinned=pinned,
        )

    def first(self) -> First | None:
        found = self.found
        if found.first is None:
            return None
        pair = found.steps[found.first]
        sides = [
            (named(self.session, at), self.place_of(at).url()) if at is not None else ("", "") for at in (pair.left, pair.right)
        ]
        shown_path = pair.path is not None
        values = [self._value(pair.path or "", value) if shown_path else None for value in (pair.before, pair.after)]
        return First(how_of(pair), *sides[0], *sides[1], gate.line(pair.path or "", 200), values[0], values[1])

    def _value(self, path: str, value: object) -> Shown:
        return shown(value, masking.name_in(path), path=path, width=72, reveal=Reveal(all=self.session.show_secrets))

    # ------------------------------------------------------------------ supersteps

    def steps(self, start: int, stop: int | None, *, unfold: bool = False) -> Window:
        pairs = self.found.steps
        return self._window(
            "steps",
            [how_of(pair) for pair in pairs],
            start,
            stop,
            unfold,
            lambda at: self._pair(pairs[at], at == self.found.first),
        )

    def _window(
        self, kind: str, hows: Sequence[How], start: int, stop: int | None, unfold: bool, draw: Callable[[int], Pair | Talk]
    ) -> Window:
        """A page of what stands from `start` on, alike ones folded unless they are to be unfolded."""
        stop = len(hows) if stop is None else min(stop, len(hows))
        items: list[Pair | Talk | Fold] = []
        at = start
        for how, first, last in stretches(hows[start:stop], SHORT if not unfold else None):
            if len(items) >= PAGE:
                break
            items.append(draw(start + first) if last - first == 1 else self._fold(kind, how, start + first, start + last))
            at = start + last
        return Window(kind, tuple(items), stop - at, self._href(kind, at, stop, unfold))

    def _fold(self, kind: str, how: How, start: int, stop: int) -> Fold:
        count = stop - start
        word = labels.plural(count, "superstep") if kind == "steps" else labels.plural(count, "message")
        does = {"steps": {"same": "did the same", "unread": "are not compared"}, "chats": {"same": "that both have"}}[kind][how]
        names = ""
        if kind == "steps":
            seen = [self.session.row(pair.right).label for pair in self.found.steps[start:stop][:60] if pair.right is not None]
            names = gate.line(labels.names(seen), 160)
        return Fold(f"{word} {does}", names, self._href(kind, start, stop, True))

    def _href(self, kind: str, start: int, stop: int, unfold: bool) -> str:
        extra = [("part", kind), ("start", str(start)), ("stop", str(stop))]
        return self.place.url("branches", [*extra, *([("unfold", "1")] if unfold else [])])

    def _pair(self, pair: StepPair, first: bool) -> Pair:
        how = how_of(pair)
        left, right = wrote(self.session, pair)
        return Pair(how, SIGNS[how], WORDS[how], self._cell(pair.left, left), self._cell(pair.right, right), first)

    def _cell(self, address: Address | None, found: Sequence[Wrote]) -> Cell | None:
        if address is None:
            return None
        row = self.session.row(address)
        lines = tuple(
            WroteLine(
                gate.line(one.path, 80),
                Shown("not there", "null") if one.gone else self._value(one.path, one.value),
                one.shared,
            )
            for one in found[:MOST_DRAWN]
        )
        return Cell(
            href=self.place_of(address).url(),
            number=row.number,
            title=gate.line(row.label, 80),
            badges=badges(row),
            lines=lines[:MOST_LINES],
            rest=lines[MOST_LINES:],
            more=max(0, len(found) - MOST_DRAWN),
        )

    # ------------------------------------------------------------------ chats

    def chats_note(self) -> str:
        if self.channel is None:
            return "Neither end holds messages."
        if not self.may_show_chats:
            return "The name of this channel speaks of a secret: its messages are not shown."
        cut = labels.plural(self.found.chats.cut, "more message")
        return f"{cut} of both ends are not aligned." if self.found.chats.cut else ""

    def chats(self, start: int, stop: int | None, *, unfold: bool = False) -> Window:
        pairs = self.found.chats.pairs
        return self._window("chats", [pair.how for pair in pairs], start, stop, unfold, lambda at: self._talk(pairs[at]))

    def _talk(self, pair: MessagePair) -> Talk:
        how: How = pair.how
        parts = both_sides(pair, show_secrets=self.session.show_secrets)
        left = self._said(pair, True, parts[0] if parts else None)
        right = self._said(pair, False, parts[1] if parts else None)
        note = ""
        if how == "changed" and left is not None and right is not None and _look(left) == _look(right):
            note = "They differ in a part that is not shown here: see how the ends differ."
        return Talk(how, SIGNS[how], WORDS[how], left, right, note)

    def _said(self, pair: MessagePair, is_left: bool, parts: Parts | None) -> Said | None:
        at, value = (pair.left_at, pair.left) if is_left else (pair.right_at, pair.right)
        if at is None:
            return None
        end = (self.found.left if is_left else self.found.right).checkpoint.address
        path = tagged.join_path([self.channel or "", str(at)])
        drawn = bubble(value, limit=MOST_TEXT)
        if drawn is None:
            drawn = Bubble("chat", "item", preview.summary(value, 400, key=self.channel))
        spans = tuple(span for op, text in parts or () for span in _spans(op, text))
        others = _calls(pair.right if is_left else pair.left) if pair.how == "changed" else None
        calls = tuple((call, others is not None and call not in others) for call, _ in drawn.calls)
        href = self.place_of(end, tab="conversation", path=path).url()
        return Said(replace(drawn, path=gate.line(path, 120)), spans, calls, href, str(at))


def _spans(op: str, text: str) -> list[Span]:
    """A piece of a text; a long one that both sides have is folded in its middle."""
    if op != "=" or len(text) <= 4 * KEEP:
        return [Span(OPS[op], gate.clean(text))]
    ends = [Span("same", gate.clean(piece)) for piece in (text[:KEEP], text[-KEEP:])]
    return [ends[0], Span("fold", f"{len(text) - 2 * KEEP:,} characters"), ends[1]]


def _calls(value: object) -> frozenset[str]:
    drawn = bubble(value, limit=0)
    return frozenset(call for call, _ in drawn.calls) if drawn is not None else frozenset()


def _look(said: Said) -> tuple[str, str, tuple[str, ...]]:
    return said.bubble.title, said.bubble.text, tuple(call for call, _ in said.calls)
