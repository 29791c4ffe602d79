"""The one door of the core: everything that a front end asks for goes through a `Session`.

A session is one opened location with its scratch file, drawn as one tree. It owns no logic of its own: reading is
`stores` + `explain`, the tree is `tree`, edits are `forks`, runs are `runs`. It keeps what was read until the file changes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from studio.cache import LRU
from studio.calling import Caller, Calls, SubgraphRun
from studio.errors import OpenError, RefError, StudioError, UsageError
from studio.explain.explainer import explainer_of
from studio.forest import Forest
from studio.live import Watcher
from studio.model import Address, Checkpoint, Comparison, Hit, Problem, RawCheckpoint, Row, SeenGraph, State, Thread, Verdict
from studio.overlay import Overlay
from studio.overview import threads as list_threads
from studio.recorded import Recorded
from studio.spots import Spots
from studio.stores import open_store
from studio.stores.base import Store
from studio.stores.sealed import AesKey, Unsealer
from studio.stores.view import PLAIN, View, options_of, view_of, words_of
from studio.tree import CheckpointTree

if TYPE_CHECKING:
    from studio.branches import Branches
    from studio.explain.branch import Branch, Brief
    from studio.growing import Compared, Growth
    from studio.kinship import Kin
    from studio.neighbours import Neighbours
    from studio.prices import Prices
    from studio.render.snippets import Source
    from studio.requests import GraphSpec
    from studio.stretch import Stretch
    from studio.unsearched import Unsearched

STATES_KEPT, STATES_BYTES = 64, 64_000_000
COMPARED_KEPT, COMPARED_BYTES = 64, 64_000_000
BESIDE_KEPT = 4
FULL_ID = 32
"""Ids of checkpoints have at least so many characters; anything shorter may be a number, a word or a part of an id."""


class Session(Recorded):
    """One opened location. Thread-safe; every call is short but for `run`, which returns at once."""

    def __init__(
        self,
        store: Store,
        scratch: str | None = None,
        *,
        show_secrets: bool = False,
        graph: GraphSpec | None = None,
        aes_key: AesKey | None = None,
        prices: Prices | None = None,
    ) -> None:
        super().__init__(graph, scratch)
        self.store = store
        self.location = store.location
        self.kind = store.kind
        self.show_secrets = show_secrets
        self.aes_key = aes_key
        """Opens encrypted rows for reading, and closes what forks and runs of them store."""
        self.prices = prices
        """The user's table for estimates of what a transcript cost."""
        if prices is not None and hasattr(store, "set_prices"):
            store.set_prices(prices)
        self.overlay = Overlay(store, unsealer=Unsealer(aes_key, store.location) if aes_key is not None else None)
        self.explainer = explainer_of(self.overlay, store)
        self.forest = Forest(self.overlay, self.explainer, self.state, self._read_origins)
        self.spots = Spots(self.overlay, self.explainer, self.forest)
        self.forest.number_of = self.spots.number
        self._comparing = threading.RLock()
        self._states: LRU[Address, State] = LRU(STATES_KEPT, STATES_BYTES)
        self._compared: LRU[tuple[Address, Address | None, bool], Comparison] = LRU(COMPARED_KEPT, COMPARED_BYTES)
        self._beside: LRU[tuple[Address, Address], Branches] = LRU(BESIDE_KEPT)
        self._calls = Calls(self)
        self._outside: LRU[Address, tuple[str, ...]] = LRU(4 * STATES_KEPT)
        self._token: object = None
        self._watcher = Watcher(self._look)
        self._failures = 0
        self._lost: Problem | None = None
        self._active: str | None = None
        self.lost_beside: Sequence[Problem] = ()
        """What could not be opened in the folder that this file was chosen from."""
        self._callbacks: list[Callable[[str], None]] = []
        self._open_scratch()

    @classmethod
    def open(
        cls,
        location: str,
        *,
        scratch: str | None = None,
        show_secrets: bool = False,
        graph: GraphSpec | None = None,
        aes_key: AesKey | None = None,
        view: View = PLAIN,
        prices: Prices | None = None,
    ) -> Session:
        """Open a location, or the `view` of it that was chosen, for reading.

        Raises OpenError when it is missing, not readable, or holds no checkpoints' tables.
        """
        return cls(open_store(location, view), scratch, show_secrets=show_secrets, graph=graph, aes_key=aes_key, prices=prices)

    def beside(self, view: View) -> Session:
        """Another view of the same file as a session of its own, with a scratch file of its own."""
        return Session.open(
            self.location, show_secrets=self.show_secrets, graph=self._graph, aes_key=self.aes_key, view=view, prices=self.prices
        )

    @property
    def view(self) -> View:
        """Which part of the file is shown."""
        return view_of(self.store)

    @property
    def view_words(self) -> str:
        """The same in words, for a header; empty for LangGraph's own tables in the file as it is."""
        return words_of(self.store)

    @property
    def view_options(self) -> list[str]:
        """The words of a command that show the same part, with the same forks, again."""
        scratch = ["--scratch", self.scratch_path] if self._given_scratch is not None else []
        prices = ["--prices", self.prices.path] if self.prices is not None else []
        active = ["--active", self._active] if self._active is not None else []
        return [*options_of(self.store), *scratch, *prices, *active]

    def close(self) -> None:
        """End runs and watching, and close the stores."""
        self._watcher.close()
        if self._runs is not None:
            self._runs.close()
        self.overlay.close()

    # ------------------------------------------------------------------ reading

    def threads(self) -> Iterator[Thread]:
        """Threads in the order of their ids; the first is there at once."""
        return list_threads(self.overlay, self.explainer)

    def thread_ids(self, most: int | None = None) -> list[str]:
        """The ids of all threads, or of the first ones; reads their keys alone."""
        return [keys.thread_id for keys in islice(self.overlay.threads(), most)]

    def default_thread(self) -> str | None:
        """The thread to show first: the one whose latest checkpoint id is largest."""
        newest: Callable[[], str | None] | None = getattr(self.store, "newest_thread", None)
        if newest is not None:
            return newest()
        best = max(self.overlay.threads(), key=lambda keys: keys.latest or "", default=None)
        return best.thread_id if best is not None else None

    def one_thread(self, thread_id: str | None) -> str:
        """The named thread, or the only one. Raises RefError (none such) or UsageError (several: with their ids)."""
        if thread_id is not None:
            if not self.overlay.namespaces(thread_id):
                raise self._no_thread(thread_id)
            return thread_id
        found = self.thread_ids()
        if not found:
            raise RefError("this file holds no threads yet", "it has LangGraph's tables, but no rows", "no-threads")
        if len(found) > 1:
            raise UsageError("several threads: choose one with --thread", "", "choose-thread", candidates=tuple(found))
        return found[0]

    def _no_thread(self, thread_id: str) -> RefError:
        if thread_id in self.thread_ids():  # an index still names it
            hint = "`studio ls` says what is lost in this file"
            return RefError(f"none of the rows of thread {thread_id!r} can be read", hint, "unreadable-thread")
        return RefError(f"no thread {thread_id!r}", "`studio ls` lists the threads", "no-such-thread")

    def tree(self, thread_id: str) -> CheckpointTree:
        """The thread's tree as of the last look; grows in place on `refresh`. Raises RefError: no such thread."""
        with self._lock:
            self.spots.note_tree(thread_id)
            tree = self.forest.tree(thread_id)
        if not len(tree):
            raise self._no_thread(thread_id)
        return tree

    def stretch(self, thread_id: str) -> Stretch | None:
        """A long thread that is one plain chain without its tree; None where a tree is needed, or there already."""
        with self._lock:
            return self.spots.stretch(thread_id)

    def passing_tree(self, thread_id: str) -> CheckpointTree:
        """The thread's tree for one look: it is not kept, and does not grow."""
        with self._lock:
            self.spots.note_tree(thread_id)
            return self.forest.passing(thread_id)

    def resolve(self, ref: str, thread_id: str | None = None, ns: str | None = None) -> Address:
        """What a person calls a checkpoint (`studio.history.refs`), as an address. Raises RefError or UsageError."""
        if len(ref) >= FULL_ID:  # a full id needs no tree, which a long thread is slow to build
            named = [thread_id] if thread_id is not None else self.thread_ids()
            found = list(self.overlay.raw(Address(one, ns or "", ref) for one in named))
            if len(found) == 1:
                return found[0]
        thread = self.one_thread(thread_id)
        of_record: Callable[[str, str], Address | None] | None = getattr(self.store, "named", None)
        at = of_record(thread, ref) if of_record is not None and not ref.removeprefix("#").isdigit() else None
        if at is not None:
            return at
        with self._lock:
            spot = self.spots.resolve(ref, thread, ns)
        return spot if spot is not None else self.tree(thread).resolve(ref, ns)

    def number(self, address: Address) -> str:
        """What a checkpoint is called in its thread. Raises RefError: not there."""
        with self._lock:
            found = self.spots.number(address)
        return found if found is not None else self.tree(address.thread_id).number(address)

    def row(self, address: Address) -> Row:
        """A checkpoint as a line of its tree, for a look at it alone: its lanes are of no meaning. Raises RefError: not there."""
        with self._lock:
            found = self.spots.row(address)
        return found if found is not None else self.tree(address.thread_id).row(address)

    def state(self, address: Address) -> State:
        """Everything about one checkpoint, decoded inertly. Raises RefError: not there."""
        states = self._states  # a growth replaces them: what was read before it stays with the old ones
        kept = states.get(address)
        if kept is None:
            kept = self.explainer.state(address)
            states.put(address, kept, kept.checkpoint.size_bytes)
        return kept

    def prefetch(self, addresses: Sequence[Address]) -> None:
        """Make `state` cheap for a few dozen checkpoints that will be asked for next."""
        self.explainer.prefetch(addresses)

    def compare(self, after: Address, before: Address | None = None, *, origin: bool = False) -> Comparison:
        """Changes from `before` (default: the stored parent; with `origin`, the fork's origin) to `after`, with authors."""
        compared, key = self._compared, (after, before, origin)
        with self._comparing:  # who asks meanwhile, as a pane beside a pane does, takes the same answer
            found = compared.get(key)
            if found is None:
                from studio import comparing

                found = comparing.compare(self, after, before, origin=origin)
                compared.put(key, found, found.after.size_bytes)
        return found

    def side_by_side(self, left: Address, right: Address) -> Branches:
        """The branches that lead to two checkpoints, of one thread or of two. Raises RefError: one is not there."""
        from studio import branches

        kept = self._beside
        found = kept.get((left, right))
        if found is None:
            found = branches.side_by_side(self, left, right)
            kept.put((left, right), found)
        return found

    @property
    def is_transcript(self) -> bool:
        """Whether agents' transcripts are open: their turns can be read as a conversation, with files, todos and tokens."""
        return self.kind == "transcript"

    def thread_title(self, thread_id: str) -> str:
        """What a transcript is called, by a person or by its program; "" where it is called nothing, and of a database."""
        ask: Callable[[str], str] | None = getattr(self.overlay.base, "thread_title", None)
        return ask(thread_id) if ask is not None else ""

    def take_branch(self, address: Address) -> None:
        """Take the branch of a transcript through a turn for the active one, as long as this session is open: its head is the
        newest turn there. UsageError for a database, whose head is its newest checkpoint, and for a subagent's turn."""
        take: Callable[[Address], bool] | None = getattr(self.overlay.base, "take_branch", None)
        if take is None:
            raise UsageError("only an agent's session has an active branch to choose", "leave out --active", "no-branches")
        if not take(address):
            raise UsageError("that is a turn of a subagent", "name a turn of the session itself", "no-branch")
        self._active = address.checkpoint_id
        self.refresh()

    def branch(self, address: Address) -> Branch | None:
        """The turns of a transcript that lead to a checkpoint, read part by part; None for a checkpoint of a database."""
        return self.explainer.branch(address)

    def brief(self, address: Address) -> Brief | None:
        """A turn of a transcript in a line: who, the first words, its tools; None for a checkpoint of a database."""
        return self.explainer.brief(address) if self.is_transcript else None

    def checked(self, state: State) -> dict[str, Verdict]:
        """Channel -> whether the writes of the superstep that made a checkpoint lead to its value."""
        from studio import comparing

        return comparing.checked(self, state)

    def note_outside(self, address: Address, explained: Mapping[str, Verdict]) -> None:
        """Remember the channels of a checkpoint that changed outside their writes, for its row in a timeline."""
        found = tuple(channel for channel, told in explained.items() if told.how == "outside")
        self._outside.put(address, found)

    def outside(self, address: Address) -> tuple[str, ...]:
        """Channels that changed outside their writes, as far as somebody has looked at this checkpoint."""
        return self._outside.get(address) or ()

    def base_of(self, address: Address) -> Address | None:
        """What a front end compares a row with unless told otherwise: the fork's origin, else the stored parent."""
        with self._lock:
            above = self.spots.above(address)
        if above is not None:
            return above[0]
        tree = self.tree(address.thread_id)
        origin = tree.origin(address)
        return origin if origin is not None and tree.header(address).source == "fork" else tree.parent(address)

    def origin(self, address: Address) -> Address | None:
        """The checkpoint that a fork was made from; None of what is no fork."""
        with self._lock:
            above = self.spots.above(address)
        return self.tree(address.thread_id).origin(address) if above is None else None

    def kin(self, checkpoint: Checkpoint) -> Kin:
        """What a checkpoint was made from and what was made of it, other threads included."""
        from studio import kinship

        return kinship.kin(self, checkpoint)

    def chain_between(self, before: Address, after: Address, most: int) -> Sequence[Address] | None:
        """The rows from behind `before` to `after` in a long plain thread; none where they are more than so many, or it is the
        other way round. None where the thread's tree must tell."""
        with self._lock:
            return self.spots.way(before, after, most)

    def search(
        self,
        text: str,
        thread_id: str | None = None,
        limit: int = 200,
        *,
        others: bool = True,
        passed: Unsearched | None = None,
    ) -> Iterator[Hit]:
        """Where values hold `text`, each value at its first occurrence; the given thread first, then, with `others`, the rest.

        `passed` notes what could not be looked into.
        """
        from studio import searching
        from studio.unsearched import Unsearched

        return searching.search(self, text, thread_id, limit, others=others, passed=passed or Unsearched())

    def graphs(self, thread_id: str) -> tuple[SeenGraph, ...]:
        """The graphs of a thread as it showed them (`Explainer.graphs`): a pass over the thread, once per change of the files.

        What the code draws stands beside that once a plan or `load_code` has asked it.
        """
        return self.with_code(thread_id, self.explainer.graphs(thread_id))

    def graphs_known(self, thread_id: str) -> bool:
        """Whether `graphs` answers at once."""
        return self.explainer.graphs_known(thread_id)

    def graphs_before(self, thread_id: str) -> tuple[SeenGraph, ...]:
        """The last count of a thread, which may be older than the file; () where there was none."""
        return self.with_code(thread_id, self.explainer.graphs_before(thread_id))

    def neighbours(self) -> Neighbours:
        """What lies in the same file beside the checkpoints that are shown: other sets of them, stores, caches, other tables."""
        from studio.neighbours import Neighbours

        return Neighbours(self.store)

    def source(self) -> Source:
        """The opened file for code that opens it. Raises PatchError where no saver could read it."""
        from studio.render.snippets import Source

        refused = self.fork_refusal()
        if refused is not None:
            raise refused
        if not options_of(self.store):
            return Source(self.location)
        shown = next((one for one in self.neighbours().sets() if one.shown), None)
        with_wal = not self.view.without_wal
        if shown is None or shown.checkpoints.lower() == "checkpoints":
            return Source(self.location, with_wal=with_wal)
        return Source(self.location, shown.checkpoints, shown.writes, with_wal)

    def sizes(self, address: Address) -> Compared:
        """Stored bytes of each channel, beside those of the stored parent. Raises RefError: not there."""
        from studio import comparing, growing

        return growing.compared(self, address, comparing.stored_parent(self, self.state(address)))

    def growth(self, address: Address) -> Growth:
        """What grew on the branch up to a checkpoint, and how large its thread is."""
        from studio import growing

        return growing.growth(self, address)

    def caller(self, state: State) -> Caller | None:
        """The task that called the subgraph which a checkpoint belongs to."""
        return self._calls.caller(state)

    def subgraph_runs(self, state: State) -> dict[str, tuple[SubgraphRun, ...]]:
        """Task id -> the subgraph runs that it started, of the tasks of a checkpoint that started some."""
        at = state.checkpoint.address
        calls = self._calls
        found = {task.id: calls.runs(at, task) for task in state.tasks if task.id is not None}
        return {ident: runs for ident, runs in found.items() if runs}

    def raw(self, address: Address) -> RawCheckpoint:
        """The stored row. Raises RefError: not there."""
        found = self.overlay.raw([address]).get(address)
        if found is None:
            raise RefError(f"no checkpoint {address.checkpoint_id}", "`studio tree` lists the checkpoints")
        return found

    def refused_key(self, *addresses: Address) -> bool:
        """Whether the AES key that was given did not open one of these checkpoints, or of none given, any row that was read."""
        unsealer = self.overlay.unsealer
        return unsealer is not None and unsealer.refused(*addresses)

    def problems(self) -> list[Problem]:
        lost = [self._lost] if self._lost is not None else []
        broken: list[Problem] = []
        if os.path.exists(self.scratch.notes_path):
            from studio import interrupted

            broken = interrupted.problems(self.scratch.notes_path)
        return [*self.overlay.problems(), *lost, *self._unread.values(), *broken, *self.lost_beside]

    def _whole(self) -> Session:
        return self

    # ------------------------------------------------------------------ live

    @property
    def is_followed(self) -> bool:
        """False while somebody watches and the file is gone or cannot be read: what is shown may be old."""
        return self._lost is None

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with "tree" when the file grew, "follow" when `is_followed` changed and "run:ID" when a run said something;
        returns the way to stop.

        Callbacks come from other threads. The file is polled every 250 ms while anyone listens.
        """
        with self._lock:
            self._callbacks.append(callback)
        stop = self._watcher.subscribe(lambda: None)

        def unsubscribe() -> None:
            stop()
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return unsubscribe

    def _look(self) -> object:
        """One poll. A file that cannot be read twice in a row is a problem until it can be read again."""
        try:
            if not self.overlay.is_there():
                raise OpenError(f"{self.location} is gone")
            self.refresh()
        except StudioError as error:
            self._failures += 1
            if self._failures == 2:
                self._lost = Problem("not-followed", self.location, f"what is shown may be old: {error.message}")
                self.notify("follow")
                self.notify("tree")
            raise
        self._failures = 0
        if self._lost is not None:
            self._lost = None
            self.notify("follow")
            self.notify("tree")
        return self._token

    def refresh(self) -> bool:
        """Look at the files now; True when something changed since the last look."""
        with self._lock:
            self._open_scratch()
            token = self.overlay.token()
            if token == self._token and not self.forest.owes_count:
                return False
            first = self._token is None
            self.explainer.forget()
            self._states = LRU(STATES_KEPT, STATES_BYTES)
            self._compared = LRU(COMPARED_KEPT, COMPARED_BYTES)
            self._beside = LRU(BESIDE_KEPT)
            self._calls = Calls(self)
            self.forest.refresh()
            self._token = token  # only now: a look that failed half-way is done again
        if not first:
            self.notify("tree")
        return not first

    def notify(self, name: str) -> None:
        """Tell all subscribers."""
        with self._lock:
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(name)
