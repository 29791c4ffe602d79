"""The trees of one session: built when a thread is first looked at, extended when the file grows, built anew when rows went."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct, field

from studio.diff import diff
from studio.errors import RefError, StudioError
from studio.explain import Explainer
from studio.history.facts import Key, Reading
from studio.history.namespaces import static_ns
from studio.history.numbers import Numbers
from studio.history.packed import Packed
from studio.model import Address, Checkpoint, State, Status
from studio.overlay import Overlay
from studio.quiet import keep_for_good, no_collection
from studio.tree import CheckpointTree
from studio.value import decode, decode_metadata

if TYPE_CHECKING:
    from studio.forks.scratch import Written

TREES_KEPT = 8
"""Trees of the threads that were looked at last; a search goes through more, and they are built again when asked for."""
COPIES_CHECKED = 200
"""Copies per thread whose origin is inferred from their blobs; a list never reads more."""
MANY = 20_000
"""Checkpoints of a thread whose tree is worth hiding from the garbage collector."""
COUNT_AT_ONCE = 0.02
"""Seconds: where counting the rows of a thread takes less, that is done at each growth."""
COUNT_ALWAYS = 10_000
"""Checkpoints of a thread up to which they are counted at each growth, however busy the machine is."""
COUNT_SHARE = 40
"""Where it takes longer, it is done again after so many times as long."""
Caller = tuple[str, str, str]
"""(namespace, checkpoint id, task id)"""
_MOVED = object()
"""A census that equals no other."""


class _Grown(Struct):
    tree: CheckpointTree
    headers_cursor: int = 0
    writes_cursor: int | None = None
    """None before the first look: 0 is that of a thread without writes."""
    base_rows: int = 0
    census: object = None
    """What the store said about the rows up to `counted`: it says something else when one of them was deleted or replaced."""
    counted: tuple[int, int] = (0, 0)
    """The cursors, of headers and of writes, that the census goes up to."""
    count_from: float = 0.0
    """When rows are counted again: counting a long thread takes a while, and its file may grow many times a second."""
    owes_count: bool = False
    """It grew since without being counted."""
    last: dict[str, Checkpoint] = field(default_factory=dict)
    """The last checkpoint of each graph: it knows the most nodes."""
    has_callers: bool = False

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.count_from

    def start_again(self) -> None:
        self.headers_cursor = self.base_rows = 0
        self.writes_cursor = None
        self.last.clear()
        self.has_callers = False


class Forest:
    """Trees by thread id. Not thread-safe by itself: the session holds its lock."""

    def __init__(
        self, overlay: Overlay, explainer: Explainer, state_of: Callable[[Address], State], read_origins: Callable[[], None]
    ) -> None:
        """`read_origins` calls `set_origins` with what is recorded now."""
        self._overlay = overlay
        self._explainer = explainer
        self._state_of = state_of
        self._read_origins = read_origins
        self._grown: OrderedDict[str, _Grown] = OrderedDict()
        self._numbers: dict[str, Numbers] = {}
        """Of the trees that were dropped: a row that was shown keeps its number."""
        self._seen: dict[str, int] = {}
        """Thread -> the first cursor behind the rows whose numbers were told without a tree."""
        self._origins: Mapping[Address, tuple[Address, str]] = {}
        self._forks: dict[Address, list[tuple[Address, str]]] = {}
        self._promoted: Collection[Address] = ()
        self._updates: Mapping[Address, Written] = {}
        self._naming: set[str] = set()
        self.number_of: Callable[[Address], str | None] = lambda at: None
        """Gives a number without a tree, where that can be done."""

    def set_origins(self, origins: Mapping[Address, tuple[Address, str]]) -> None:
        """Fork -> (origin, hash of its blob), as recorded when the studio forked."""
        self._origins, self._forks = origins, {}
        for fork, (origin, sha256) in origins.items():
            self._forks.setdefault(origin, []).append((fork, sha256))

    def origin_of(self, fork: Address) -> tuple[Address, str] | None:
        """What a fork was made from, and the hash of its blob, as recorded."""
        return self._origins.get(fork)

    def recorded_forks(self, origin: Address) -> list[tuple[Address, str]]:
        """(fork, hash of the origin's blob) of what was recorded as made from a checkpoint, in any thread."""
        return self._forks.get(origin, [])

    def set_promoted(self, promoted: Collection[Address]) -> None:
        """Rows that were put into the base: they keep the numbers of the scratch file, so that no other row's number shifts."""
        self._promoted = promoted

    def set_updates(self, updates: Mapping[Address, Written]) -> None:
        """As which nodes rows were written by hand; it may be told after a row is there."""
        fresh = {at for at in updates if at not in self._updates}
        self._updates = updates
        for thread_id in {at.thread_id for at in fresh} & self._grown.keys():
            self._name_updates(self._grown[thread_id].tree, fresh)

    def _name_updates(self, tree: CheckpointTree, rows: Iterable[Address]) -> None:
        """`update as web, docs`: what LangGraph does not store."""
        with tree.lock:
            for at in rows:
                nodes = [node for node, _ in self._updates.get(at, ())]
                if nodes and at.thread_id == tree.thread_id:
                    tree.facts.fork_labels[at.checkpoint_ns, at.checkpoint_id] = f"update as {' ∥ '.join(nodes)}"

    def note_numbered(self, thread_id: str, behind: int) -> None:
        """The rows up to a cursor were given their numbers without a tree; it gives the same before it sees others."""
        self._seen[thread_id] = behind

    def part(self, headers: Sequence[Checkpoint], first: int, head: Address, lasts: Sequence[Checkpoint]) -> CheckpointTree:
        """A tree of some rows of a plain chain, the first of which has the number `first`.

        `lasts` are the last checkpoints of the thread's graphs.
        """
        grown = self._planted(head.thread_id, None)
        grown.last = {static_ns(header.checkpoint_ns): header for header in lasts}
        grown.tree.count_from(first)
        grown.tree.extend(headers)
        grown.tree.head = head
        return grown.tree

    def made_from(self, fork: Address) -> Address | None:
        """What a fork of ours was made from, in whichever thread that is; None for a checkpoint that is no fork of ours."""
        found = self._origins.get(fork)
        return found[0] if found is not None else None

    def tree(self, thread_id: str) -> CheckpointTree:
        grown = self._grown.get(thread_id)
        if grown is None:
            grown = self._planted(thread_id, self._numbers.get(thread_id))
            with no_collection():
                self._grow(thread_id, grown)
                if len(grown.tree) > MANY:
                    keep_for_good()
            self._grown[thread_id] = grown
            self._numbers.pop(thread_id, None)
            while len(self._grown) > TREES_KEPT:
                dropped, old = self._grown.popitem(last=False)
                self._numbers[dropped] = old.tree.numbers()
        self._grown.move_to_end(thread_id)
        return grown.tree

    def passing(self, thread_id: str) -> CheckpointTree:
        """A tree for one look, which is not kept and does not grow; its rows have the same numbers as in the others."""
        grown = self._grown.get(thread_id)
        passing = self._planted(thread_id, self._numbers.get(thread_id) if grown is None else grown.tree.numbers())
        with no_collection():
            self._grow(thread_id, passing)
        if grown is None and len(passing.tree):
            self._numbers[thread_id] = passing.tree.numbers()
        else:
            self._numbers.pop(thread_id, None)
        return passing.tree

    def _planted(self, thread_id: str, numbers: Numbers | None) -> _Grown:
        grown = _Grown(
            CheckpointTree(thread_id, self._look, self._parents, lambda wanted, below: self._read_facts(grown, wanted, below))
        )
        grown.tree.lacks_metadata = getattr(self._overlay.base, "lacks_metadata", "")
        if numbers is not None:
            grown.tree.keep_numbers(numbers)
        return grown

    @property
    def owes_count(self) -> bool:
        """Whether a tree grew without a look for deleted rows, and such a look is due."""
        return any(grown.owes_count and grown.is_due for grown in self._grown.values())

    def refresh(self) -> None:
        """Extend every tree that is in use by what was stored since."""
        for thread_id, grown in self._grown.items():
            self._grow(thread_id, grown)

    def _grow(self, thread_id: str, grown: _Grown) -> None:
        tree = grown.tree
        began, due = time.monotonic(), grown.is_due
        anew = due and grown.census is not None and self._census(thread_id, grown) != grown.census
        counting = time.monotonic() - began
        if anew:
            grown.start_again()
        before, fresh = self._read_headers(thread_id, grown)
        if not anew and len(tree) and (any(self._came_in(tree, one) for one in fresh) or self._origin_is_back(tree, fresh)):
            anew = True
            grown.start_again()
            before, fresh = self._read_headers(thread_id, grown)
        seen = before(self._seen.pop(thread_id, 0))
        if grown.writes_cursor is not None:
            writes = self._overlay.write_headers(thread_id, grown.writes_cursor)
            grown.writes_cursor = max((cursor for cursor, _ in writes), default=grown.writes_cursor)
        else:
            writes = ()
            grown.writes_cursor = self._overlay.writes_end(thread_id)
        callers: Iterable[Caller] = [(row.checkpoint_ns, row.checkpoint_id, row.task_id) for _, row in writes]
        if not grown.has_callers and any(ns for ns, *_ in fresh.kinds):
            callers, grown.has_callers = self._overlay.task_keys(thread_id), True
        grown.owes_count = not due
        if due:
            began, grown.counted = time.monotonic(), (grown.headers_cursor, grown.writes_cursor or 0)
            census = self._census(thread_id, grown)
            # rows that were deleted between the two readings are noticed now, and the next look builds the tree anew
            grown.census = census if census is None or census[0] == grown.base_rows else _MOVED
            counting += time.monotonic() - began
            slow = counting > COUNT_AT_ONCE and grown.base_rows > COUNT_ALWAYS
            grown.count_from = began + counting * COUNT_SHARE if slow else 0.0
        if any(origin == "scratch" or source == "fork" for _, source, origin, _ in fresh.kinds):
            self._read_origins()  # after the rows: a fork that was just stored brings its origin with it
        grown.last.update({static_ns(ns): header for ns, header in fresh.last_of_each().items()})
        origins, elsewhere, apart = self._origins_in(thread_id, fresh)
        origins.update(self._infer_copies(fresh, None if anew else tree, {*origins, *elsewhere}))
        places = {Address(thread_id, *key): fresh.find(*key) for key in (*origins, *apart)}
        with tree.lock:
            if anew:
                tree.start_again(map(fresh.key, range(len(fresh))))
            if grown.has_callers:
                tree.facts.note_callers(callers)
            tree.facts.origins.update(origins)
            tree.facts.elsewhere.update(elsewhere)
            tree.facts.promoted.update((at.checkpoint_ns, at.checkpoint_id) for at in self._promoted if at.thread_id == thread_id)
            tree.facts.forget((row.checkpoint_ns, row.checkpoint_id) for _, row in writes)
            tree.facts.forget((h.checkpoint_ns, h.parent_checkpoint_id) for h in fresh if h.parent_checkpoint_id)
            tree.extend(fresh, seen)
            head_of: Callable[[str], str | None] | None = getattr(self._overlay.base, "head", None)
            head = head_of(thread_id) if head_of is not None else None
            if head is not None and (at := Address(thread_id, "", head)) in tree:
                tree.head = at
        self._explainer.note_children(thread_id, tree.children_of)
        if self._updates:
            found = (h.address for h in fresh if h.source in ("update", "input") and h.address in self._updates)
            self._name_updates(tree, found)
        named = [at for key in (*origins, *apart) if (at := Address(thread_id, *key)) in self._origins]
        for fork in sorted(named, key=places.__getitem__)[:COPIES_CHECKED]:
            self._name_fork(tree, fork)

    @staticmethod
    def _came_in(tree: CheckpointTree, header: Checkpoint) -> bool:
        """Whether a row of the scratch file is one of the base now: it was promoted."""
        return header.origin == "base" and header.address in tree and tree.header(header.address).origin == "scratch"

    def _origin_is_back(self, tree: CheckpointTree, fresh: Packed) -> bool:
        """Whether the origin of a fork that had lost it is there again: the file was away, or was read while it was written."""
        for key in tree.facts.elsewhere:
            found = self._origins.get(Address(tree.thread_id, *key))
            if found is not None and found[0].thread_id == tree.thread_id:
                if fresh.find(found[0].checkpoint_ns, found[0].checkpoint_id) >= 0:
                    return True
        return False

    def _read_facts(self, grown: _Grown, headers: Sequence[Checkpoint], children: Sequence[Checkpoint]) -> Reading:
        """Who ran from some checkpoints. Called from any thread: it only reads."""
        told: Callable[[str, Sequence[Checkpoint]], Reading] | None = getattr(self._explainer, "read_turns", None)
        if told is not None:
            return told(grown.tree.thread_id, headers)
        under = self._overlay.write_headers_under([header.address for header in headers])
        rows = [row for found in under.values() for row in found]
        reading = Reading()
        last = list(grown.last.values())
        reading.ran = self._explainer.node_runs(grown.tree.thread_id, [*headers, *children], rows, last)
        reading.written = self._explainer.written_channels(grown.tree.thread_id, rows, last) if rows else {}
        reading.note_rows(rows)
        return reading

    def _read_headers(self, thread_id: str, grown: _Grown) -> tuple[Callable[[int], int], Packed]:
        """(how many stand before a cursor, headers that were stored since)."""
        gathered = self._overlay.gather(thread_id) if not grown.headers_cursor else None
        if gathered is not None:
            grown.headers_cursor, grown.base_rows = gathered.end, gathered.base_rows
            return gathered.before, gathered.headers
        headers = self._overlay.checkpoints(thread_id, grown.headers_cursor)
        if headers:
            grown.headers_cursor = max(cursor for cursor, _ in headers)
        grown.base_rows += sum(header.origin == "base" for _, header in headers)
        fresh = Packed(thread_id)
        ends = [cursor for cursor, header in headers if fresh.add([header])]
        return lambda cursor: bisect_left(ends, cursor), fresh

    def _census(self, thread_id: str, grown: _Grown) -> tuple[int, object] | None:
        return self._overlay.census(thread_id, *grown.counted)

    def _origins_in(self, thread_id: str, headers: Packed) -> tuple[dict[Key, Key], set[Key], list[Key]]:
        """(fork -> origin, forks whose origin is gone or was stored anew with other contents, those made from another thread)."""
        recorded = {
            fork: made_from
            for fork, made_from in self._origins.items()
            if fork.thread_id == thread_id and headers.find(fork.checkpoint_ns, fork.checkpoint_id) >= 0
        }
        if not recorded:
            return {}, set(), []
        import hashlib  # loads a large library, and most files have no fork

        hashes = {
            address: hashlib.sha256(raw.stored_blob).hexdigest()
            for address in {origin for origin, _ in recorded.values()}
            if (raw := self._overlay.raw([address]).get(address)) is not None
        }
        origins: dict[Key, Key] = {}
        elsewhere: set[Key] = set()
        apart: list[Key] = []
        for fork, (origin, sha256) in recorded.items():
            key = (fork.checkpoint_ns, fork.checkpoint_id)
            if hashes.get(origin) != sha256:
                elsewhere.add(key)
            elif origin.thread_id == thread_id:
                origins[key] = (origin.checkpoint_ns, origin.checkpoint_id)
            else:
                apart.append(key)
        return origins, elsewhere, apart

    def _name_fork(self, tree: CheckpointTree, fork: Address) -> None:
        """A fork of ours is called by its change: `set /refund/amount`, `goto approve`; unchanged ones keep `copy of #4`."""
        origin = self._origins[fork][0]
        if origin.thread_id == fork.thread_id and origin not in tree:
            return
        try:
            before, after = self._state_of(origin), self._state_of(fork)
        except StudioError:
            return
        if before.closed or after.closed:
            return
        changes = diff(before.values, after.values)
        key = (fork.checkpoint_ns, fork.checkpoint_id)
        parts = []
        if changes:
            paths = list(dict.fromkeys(change.path for change in changes))
            verb = "remove" if all(change.op == "remove" for change in changes) else "set"
            parts.append(f"{verb} {paths[0]}" + (f" +{len(paths) - 1}" if len(paths) > 1 else ""))
        if after.next != before.next and after.next and self._overlay.kind != "transcript":
            parts.append("goto " + ", ".join(name or "?" for name in after.next))
        if origin.thread_id != fork.thread_id:
            number = self._number_in(origin)
            origin_words = f"{f'#{number} of ' if number is not None else ''}thread {origin.thread_id}"
            parts.append(f"from {origin_words}" if parts else f"copy of {origin_words}")
        with tree.lock:
            if changes:
                tree.facts.fork_channels[key] = tuple(dict.fromkeys(change.channel for change in changes))
            if parts:
                tree.facts.fork_labels[key] = ", ".join(parts)

    def _number_in(self, at: Address) -> str | None:
        """What a checkpoint is called in another thread; None where it is not there, and while that thread is named."""
        if at.thread_id in self._naming:
            return None
        grown = self._grown.get(at.thread_id)
        if grown is None and (told := self.number_of(at)) is not None:
            return told
        self._naming.add(at.thread_id)
        try:
            return (grown.tree if grown is not None else self.passing(at.thread_id)).number(at)
        except RefError:
            return None
        finally:
            self._naming.discard(at.thread_id)

    def _infer_copies(self, fresh: Packed, before: CheckpointTree | None, explained: set[Key]) -> dict[Key, Key]:
        """LangGraph's own `__copy__` does not record its origin: a sibling with equal channel versions is it."""
        copied = {kind for kind, (_, source, *_) in enumerate(fresh.kinds) if source == "fork"}
        slots = (slot for slot, kind in enumerate(fresh.kind_of) if kind in copied) if copied else ()
        forks = [fresh.header(slot) for slot in slots if fresh.key(slot) not in explained][:COPIES_CHECKED]
        found: dict[Key, Key] = {}
        if not forks:
            return found
        siblings: dict[tuple[str, str | None], list[Checkpoint]] = defaultdict(list)
        parents = {(fork.checkpoint_ns, fork.parent_checkpoint_id) for fork in forks}
        for header in chain(before.named(parents) if before is not None else (), map(fresh.header, fresh.named(parents))):
            siblings[header.checkpoint_ns, header.parent_checkpoint_id].append(header)
        for fork in forks:
            beside = [h for h in siblings[fork.checkpoint_ns, fork.parent_checkpoint_id] if h.checkpoint_id < fork.checkpoint_id]
            if not beside:
                continue
            raws = self._overlay.raw([fork.address, *(h.address for h in beside[:20])])
            versions = {address: _versions(raw.tag, raw.blob) for address, raw in raws.items()}
            mine = versions.get(fork.address)
            same = [h for h in beside if mine and versions.get(h.address) == mine]
            if same:
                found[fork.checkpoint_ns, fork.checkpoint_id] = (same[0].checkpoint_ns, same[0].checkpoint_id)
        return found

    def _look(self, address: Address) -> tuple[Status | None, tuple[str | None, ...] | None]:
        standing: Callable[[Address], tuple[Status, tuple[str | None, ...]]] | None = getattr(self._explainer, "standing", None)
        if standing is not None:
            return standing(address)
        try:
            state = self._state_of(address)
        except StudioError:
            return "unknown", None
        return "unknown" if self._overlay.later_lost(address) else state.status, state.next

    def _parents(self, address: Address) -> Mapping[str, str]:
        raw = self._overlay.raw([address]).get(address)
        parents = decode_metadata(raw.metadata).get("parents") if raw is not None else None
        return parents if isinstance(parents, dict) else {}


def _versions(tag: str | None, blob: bytes) -> object:
    document = decode(tag, blob)
    return document.get("channel_versions") if isinstance(document, dict) else None
