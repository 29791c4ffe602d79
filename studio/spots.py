"""One checkpoint of a long thread without the thread's tree: its number, its row, what a person calls it.

A number says where a row stands among all rows. Where the root checkpoints of a thread are proven to be one plain chain, or to
be numbered in the order of their ids, that is the place of its id, and the row, its parent, that one's children and its own are
all of the tree that a look at it needs. Everywhere else, and once there is a tree, the tree answers; both give the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from studio.explain import Explainer
from studio.forest import Forest
from studio.history.namespaces import static_ns
from studio.history.tally import Tally
from studio.model import Address, Checkpoint, Row
from studio.overlay import Overlay
from studio.stores.chain import Chain, Chained
from studio.stores.forked import Forked
from studio.stretch import Stretch
from studio.tree import AT_ONCE, CheckpointTree

LONG = AT_ONCE
"""Checkpoints up to which a thread's tree is there at once; it also says what is odd in the thread."""
SHORTEST_PART = 4
_NUMBER = re.compile(r"0|[1-9]\d{0,10}", re.ASCII)
_BACK = re.compile(r"head(?:~(\d{1,9}))?")


class _Long(Struct, frozen=True):
    """A thread whose numbers are the places of its ids, and the store that says so."""

    thread_id: str
    chain: Chain
    store: Chained

    def address(self, at: int) -> Address:
        return Address(self.thread_id, "", self.chain[at])

    def header(self, at: int) -> list[Checkpoint]:
        """The one header; none where the row is gone."""
        address = self.address(at)
        return self.store.headers_between(address, address)


class Spots:
    """Not thread-safe by itself: the session holds its lock. Each answer is None where only the tree knows it."""

    def __init__(self, overlay: Overlay, explainer: Explainer, forest: Forest) -> None:
        self._overlay = overlay
        self._explainer = explainer
        self._forest = forest
        self._known: dict[str, tuple[object, _Long | None]] = {}
        self._trees: set[str] = set()
        """Threads whose rows got their numbers from a tree."""
        self._origins: Mapping[Address, Address] = {}
        self._promoted: Collection[Address] = ()

    def note_tree(self, thread_id: str) -> None:
        """A tree gives, or gave, the rows of a thread their numbers."""
        self._trees.add(thread_id)

    def set_forks(self, origins: Mapping[Address, Address], promoted: Collection[Address]) -> None:
        """The recorded forks with what they were made from, and the rows that were put into the base."""
        if (origins, promoted) != (self._origins, self._promoted):
            self._trees.update(held for held, (_, long) in self._known.items() if long is not None)  # what was proven is older
        self._origins, self._promoted = origins, promoted

    def _long(self, thread_id: str) -> _Long | None:
        """A thread whose root checkpoints have their places as their numbers, as long as no tree has given any."""
        if thread_id in self._trees or any(thread_id == at.thread_id for at in self._promoted):
            return None
        token = self._overlay.token()
        held = self._known.get(thread_id)
        if held is not None:  # of a file that grew since the tree tells: rows keep the numbers that were given before
            return held[1] if held[0] == token else None
        store = self._overlay.chained(thread_id)
        chain = store.line(thread_id, LONG) if store is not None else None
        if self._overlay.token() != token:
            return None
        found = (
            _Long(thread_id, chain, store) if chain is not None and store is not None and self._hang(chain, thread_id) else None
        )
        self._known[thread_id] = (token, found)
        if found is not None:
            self._forest.note_numbered(thread_id, self._overlay.cursor_behind(found.chain.last_row))
            self._explainer.note_children(thread_id, self._children_of)
        return found

    def _hang(self, chain: Chain, thread_id: str) -> bool:
        """Whether each recorded fork stands behind what it was made from, which its line comes from."""
        for fork, origin in self._origins.items():
            if fork.thread_id == thread_id == origin.thread_id and not fork.checkpoint_ns:
                here, there = chain.index(fork.checkpoint_id), chain.index(origin.checkpoint_id)
                if here is not None and (origin.checkpoint_ns or (there is not None and there >= here)):
                    return False
        return True

    def _at(self, address: Address) -> tuple[_Long, int] | None:
        long = self._long(address.thread_id) if not address.checkpoint_ns else None
        at = long.chain.index(address.checkpoint_id) if long is not None else None
        return (long, at) if long is not None and at is not None else None

    def resolve(self, ref: str, thread_id: str, ns: str | None) -> Address | None:
        """As `studio.history.refs` does, where one checkpoint of the chain is meant and none of a subgraph could be."""
        long = self._long(thread_id) if not ns and not ref.removeprefix("#").startswith("at:") else None
        if long is None:
            return None
        chain, store = long.chain, long.store
        has_subgraphs = ns is None and any(space.ns for space in chain.spaces)
        at = chain.index(ref)
        if at is not None:
            return long.address(at)
        at = _named(chain, ref.removeprefix("#"))
        if at is not None:
            return long.address(at) if not has_subgraphs or not store.is_inside(thread_id, ref) else None
        found = chain.holding(ref) if len(ref) >= SHORTEST_PART else []
        if len(found) != 1 or (has_subgraphs and store.is_inside(thread_id, ref, in_part=True)):
            return None
        return long.address(found[0])

    def number(self, address: Address) -> str | None:
        found = self._at(address)
        return str(found[1]) if found is not None else None

    def row(self, address: Address) -> Row | None:
        """As in the whole tree, but for its lanes: they are those of a thread without subgraphs."""
        found = self._at(address)
        if found is None:
            return None
        long, at = found
        if self._may_be_copy(long, at):
            return None
        part = self._around(long, at)
        return part.row(address) if part is not None else None

    def stretch(self, thread_id: str) -> Stretch | None:
        """The thread as its whole tree, where it has no subgraphs and a pass over its headers finds the chain."""
        long = self._long(thread_id)
        if long is None or len(long.chain.spaces) > 1 or isinstance(long.chain, Forked):
            return None
        if any(thread_id == fork.thread_id for fork in self._origins):
            return None
        survey = long.store.survey(thread_id, long.chain)
        self._overlay.writes_end(thread_id)  # notes writes that wait for a checkpoint
        if survey is None:
            return None
        tally = Tally(blank=[f"#{at}" for at in survey.blank], skewed=[f"#{at}" for at in survey.skewed])
        return Stretch(thread_id, long.chain, tally, lambda start, stop: self._part(long, start, stop))

    def _part(self, long: _Long, start: int, stop: int) -> CheckpointTree | None:
        """A tree in which the rows start..stop-1 of a chain are as in the whole one; None where one of them is gone."""
        first, end = max(0, start - 1), min(len(long.chain), stop + 1)
        headers = long.store.headers_between(long.address(first), long.address(end - 1))
        if [header.checkpoint_id for header in headers] != [long.chain[at] for at in range(first, end)]:
            return None
        return self._planted(long, headers, first)

    def _planted(self, long: _Long, headers: Sequence[Checkpoint], first: int) -> CheckpointTree:
        graphs = {static_ns(space.ns): space.last_row for space in long.chain.spaces}
        lasts = long.store.headers_at(list(graphs.values()))
        return self._forest.part(headers, first, long.address(len(long.chain) - 1), lasts)

    def _around(self, long: _Long, at: int) -> CheckpointTree | None:
        """A tree in which one row is as in the whole one; None where it, its parent, or a child of the two is gone."""
        if not isinstance(long.chain, Forked):
            return self._part(long, at, at + 1)
        above = long.chain.above(at)
        near = {at, *long.chain.below(at), *((above, *long.chain.below(above)) if above is not None else ())}
        places = sorted(near)
        headers = [header for place in places for header in long.header(place)]
        if len(headers) != len(places):
            return None
        part = self._planted(long, headers[:1], places[0])
        head, part.head = part.head, None  # it need not be among these rows
        for place, header in zip(places[1:], headers[1:], strict=True):
            part.count_from(place)
            part.extend([header])
        part.head = head
        return part

    def _may_be_copy(self, long: _Long, at: int) -> bool:
        """Whether a row is a recorded fork, or may be a copy of one beside it, which only a look at both tells."""
        if long.address(at) in self._origins:
            return True
        return long.chain.has_kin(at) and any(header.source == "fork" for header in long.header(at))

    def above(self, address: Address) -> tuple[Address | None] | None:
        """What a checkpoint grew from, in a tuple: a first one grew from nothing."""
        found = self._at(address)
        if found is None:
            return None
        long, at = found
        if self._may_be_copy(long, at):
            return None
        above = long.chain.above(at)
        return (long.address(above) if above is not None else None,)

    def way(self, before: Address, after: Address, most: int) -> Sequence[Address] | None:
        """The rows from behind `before` to `after`; none where they are more than so many, or one does not follow the other."""
        one, other = self._at(before), self._at(after)
        if one is None or other is None or one[0] is not other[0]:
            return None
        return [other[0].address(at) for at in other[0].chain.way(one[1], other[1], most)]

    def _children_of(self, address: Address) -> list[tuple[str, str | None]] | None:
        found = self._at(address)
        if found is None:
            return None
        long, at = found
        return [(one.checkpoint_id, one.source) for child in long.chain.below(at) for one in long.header(child)]


def _named(chain: Chain, word: str) -> int | None:
    """The place that a number or a word names."""
    back = _BACK.fullmatch(word)
    at = None
    if _NUMBER.fullmatch(word):
        at = int(word)
    elif back is not None:
        at = chain.back(len(chain) - 1, int(back[1] or 0))
    elif word == "root":
        at = 0
    return at if at is not None and 0 <= at < len(chain) else None
