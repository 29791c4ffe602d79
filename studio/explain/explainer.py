"""`Explainer`: everything that raw rows tell about a checkpoint, without any user code.

It reads one checkpoint, its parent's rows and its own, and only where those do not suffice more of the thread. Nothing in it
raises for what a file holds; what cannot be known is None, or a problem.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from studio.cache import LRU
from studio.errors import RefError
from studio.explain.authors import Step, Written, attribute, by_channel, noted_writes, written_by_task
from studio.explain.blob import Blob
from studio.explain.channels import NULL_TASK
from studio.explain.checking import Checker
from studio.explain.edges import seen_graphs, started_graphs
from studio.explain.glance import Glance, finished
from studio.explain.ids import parse_path
from studio.explain.nodes import run_nodes, written_channels
from studio.explain.planning import Planner, editor_of
from studio.explain.reader import Reader
from studio.explain.rows import TaskRows, forget_large, group
from studio.explain.sizes import Sizes, sizes_of
from studio.explain.tasks import live_status
from studio.explain.threads import ChildrenOf, Threads
from studio.explain.unstored import evidence
from studio.explain.values import Values
from studio.history.namespaces import static_ns
from studio.model import (
    START,
    Address,
    Author,
    Change,
    Checkpoint,
    NodeRun,
    Problem,
    RawCheckpoint,
    SeenGraph,
    State,
    Task,
    Verdict,
    WriteRow,
)
from studio.stores.base import Capability, Store

if TYPE_CHECKING:
    from studio.explain.branch import Branch, Brief

_GRAPHS_ASKED = 8
_COUNTS_KEPT = 8
_AHEAD, _AHEAD_BYTES = 64, 4_000_000


class Explainer:
    """Derives states, tasks, authors and edges from a store. Safe to use from several threads; caches are bounded."""

    measures: frozenset[str] = frozenset()
    """Channels that tell what a step cost, not what it did: two steps that differ in nothing else did the same."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._counting = threading.Lock()
        self._counted: LRU[str, tuple[SeenGraph, ...]] = LRU(_COUNTS_KEPT)
        self.forget()

    def forget(self) -> None:
        """Drop what was learned, after the store changed.

        The rooms are made anew instead of emptied: a reading that began before puts what it finds where nobody looks any more.
        """
        forget_large()
        self.reader = Reader(self.store)
        self.threads = Threads(self.store)
        self.values = Values(self.reader, self.threads)
        self.planner = Planner(self.reader, self.threads)
        self.checker = Checker(self.reader, self.threads, self.state)

    def note_children(self, thread_id: str, children_of: ChildrenOf) -> None:
        """Spare a pass over a thread: somebody knows the children of its checkpoints anyway."""
        self.threads.note_children(thread_id, children_of)

    # -- as an agent's transcript is read -------------------------------------------------------------------------------

    def branch(self, address: Address) -> Branch | None:
        """The turns that lead to a checkpoint of a transcript; None in a database."""
        return None

    def brief(self, address: Address) -> Brief | None:
        """A turn of a transcript in a line; None for a checkpoint of a database."""
        return None

    # -- one checkpoint -------------------------------------------------------------------------------------------------

    def state(self, address: Address) -> State:
        """All about one checkpoint. `RefError` when it is not there."""
        blob = self.reader.blob(address)
        if blob is None:
            raise RefError(f"there is no checkpoint {address.checkpoint_id} in thread {address.thread_id}")
        return self._explain(blob)

    def glances(self, addresses: Sequence[Address]) -> dict[Address, Glance]:
        """What a list shows of some heads, those of no checkpoint left out. Cheaper than `state`, and the same."""
        raws, rows = self.store.raw(addresses), self.store.writes(addresses)
        has_writes, lost = Capability.WRITES in self.store.capabilities, self._writes_lost()
        found: dict[Address, Glance] = {}
        for address, raw in raws.items():
            under = rows.get(address, ())
            glance = finished(raw, under) if has_writes and not (lost is not None and lost(address)) else None
            if glance is None:
                self.reader.keep_rows(address, under)
                state = self._explain(self.reader.take(raw), causes=False)
                closed = state.problems[0].message if state.closed and state.problems else ""
                glance = Glance(raw.header, state.status, state.values, state.metadata, closed)
            found[address] = glance
        return found

    def prefetch(self, addresses: Sequence[Address]) -> None:
        """Make `state` cheap for a few dozen checkpoints that will be asked for next."""
        self.reader.prefetch(addresses)

    def states(self, raws: Iterable[RawCheckpoint]) -> Iterator[State]:
        """States of many checkpoints in the order given; parents before children is fastest. Bounded memory."""
        source = iter(raws)
        waiting: deque[Blob] = deque()
        while True:
            # what comes next is at hand before it is asked for: a delta channel looks for its next snapshot
            fresh = self._taken(source) if len(waiting) <= 2 * _AHEAD else []
            self.reader.rows([address for blob in fresh for address in (blob.address, blob.parent) if address is not None])
            waiting.extend(fresh)
            if not waiting:
                return
            yield self._explain(waiting.popleft())

    def _taken(self, source: Iterator[RawCheckpoint]) -> list[Blob]:
        """The next checkpoints of a pass, as many as are handled together."""
        found: list[Blob] = []
        size = 0
        for raw in islice(source, _AHEAD):
            found.append(self.reader.take(raw))
            size += len(raw.blob)
            if size > _AHEAD_BYTES:
                break
        return found

    def _explain(self, blob: Blob, causes: bool = True) -> State:
        """Without `causes` nobody is named as the writer of what triggers its tasks, and the rows above it are not read."""
        address, parent = blob.address, blob.parent if causes else None
        rows = self.reader.rows([address] if parent is None else [address, parent])
        mine = group(rows[address])
        tasks, others, known = self.planner.tasks(blob, mine, rows[parent] if parent is not None else ())
        if blob.raw.header.origin == "base" and self._lacks_writes(address):
            tasks, told = unwritten(tasks), known and not tasks  # nothing says whether a task has run
        else:
            told = known
        if any(task.status not in ("pending", "unknown") and not task.subgraph_ns for task in tasks):
            tasks = self._unstored(address, tasks, mine)
        values, internal = blob.state_values(self.threads.learned(address).nodes if blob.old else frozenset())
        values, rebuilt, lost = self.values.completed(blob, values, mine)
        names = tuple(task.name for task in tasks if parse_path(task.path).kind != "handler")
        loose = loose_questions(others, address)
        status = live_status(tasks, told)
        problems = [
            *blob.problems,
            *shared_ids(tasks, address),
            *loose,
            *(
                Problem("rebuilt-unavailable", f"{address.checkpoint_id}/{name}", f"not rebuildable: {why}")
                for name, why in lost.items()
            ),
        ]
        return State(
            checkpoint=blob.raw.header,
            values=values,
            internal=internal,
            rebuilt=rebuilt,
            tasks=tuple(tasks),
            next=names if known and None not in names else None,
            metadata=blob.metadata,
            format=blob.format,
            channel_versions=blob.versions,
            versions_seen=blob.seen,
            status="unknown" if loose and status == "done" else status,
            problems=tuple(problems),
            others=tuple(others),
            unrebuilt=lost,
            closed=not blob.readable,
        )

    def _lacks_writes(self, address: Address) -> bool:
        """Whether the store holds no writes, or those under this checkpoint may be lost. They were read before."""
        lost = self._writes_lost()
        return Capability.WRITES not in self.store.capabilities or (lost is not None and lost(address))

    def _writes_lost(self) -> Callable[[Address], bool] | None:
        found: Callable[[Address], bool] | None = getattr(self.store, "writes_lost", None)
        return found

    def _unstored(self, address: Address, tasks: Sequence[Task], mine: Mapping[str, TaskRows]) -> list[Task]:
        """The tasks, each with what says that a subgraph of it is missing here."""
        named, shared = self.threads.unstored(address.thread_id), ambiguous(tasks)
        found = []
        for task in tasks:
            ran = task.status != "pending"
            why = evidence(task, mine.get(task.id or ""), address.checkpoint_ns, named, shared) if ran else ""
            found.append(replace(task, unstored=why) if why else task)
        return found

    def sizes(self, address: Address) -> Sizes:
        """Stored bytes of each channel of a checkpoint. `RefError` when it is not there."""
        blob = self.reader.blob(address)
        if blob is None:
            raise RefError(f"there is no checkpoint {address.checkpoint_id} in thread {address.thread_id}")
        return sizes_of(blob, self.threads.learned(address).nodes if blob.old else frozenset())

    # -- changes ----------------------------------------------------------------------------------------------------------

    def with_authors(self, before: State | None, after: State, changes: Sequence[Change]) -> tuple[Change, ...]:
        """The changes that lead to `after`, each with who made it. `before` should be its stored parent (None for a root)."""
        if not changes:
            return ()
        blob = self.reader.blob(after.checkpoint.address)
        if blob is None:
            return tuple(changes)
        return tuple(attribute(changes, self._step(blob, before, after)))

    def checked(self, before: State | None, after: State) -> dict[str, Verdict]:
        """Channel -> whether the writes under `before` lead to its value; {} where `before` is not the parent of a superstep."""
        return self.checker.check(before, after)

    def _step(self, blob: Blob, before: State | None, after: State) -> Step:
        parent = blob.parent
        follows = before is None or before.checkpoint.address == parent
        above = self.reader.rows_at(parent) if (follows or blob.source == "fork") else ()
        own = [row for row in self.reader.rows_at(blob.address) if row.task_id == NULL_TASK]
        sibling = before is not None and before.checkpoint.parent_checkpoint_id == blob.raw.header.parent_checkpoint_id
        source = blob.source if follows or (sibling and blob.source in ("fork", "update")) else None
        if source == "input":
            editor = Author(START, None, "source")
        elif source in ("update", "fork"):
            editor = Author(editor_of(blob), None, "source")
        else:
            editor = Author(None, None, "none")

        def name_of(ident: str, path: str | None) -> str | None:
            return self.planner.row_name(blob, ident, path)

        noted = noted_writes(blob.metadata) if follows and blob.source == "loop" else {}
        ids = {task.name: task.id for task in before.tasks} if before is not None else {}

        def only_task() -> Author | None:
            tasks = before.tasks if before is not None and blob.source == "loop" and follows and not above else ()
            return Author(tasks[0].name, tasks[0].id, "versions") if len(tasks) == 1 else None

        above_by, own_by = by_channel(above if follows else ()), by_channel(own)
        return Step(
            before=before.values if before is not None else {},
            after=after.values,
            writers=lambda channel: written_by_task(above_by.get(channel, ()), channel, name_of),
            commanded=lambda channel: written_by_task(own_by.get(channel, ()), channel, name_of),
            noted=lambda channel: [
                Written(Author(name, ids.get(name), "writes"), values) for name, values in noted.get(channel, {}).items()
            ],
            source=source,
            editor=editor,
            sole_child=lambda: parent is not None and len(self.threads.children_of(parent)) < 2,
            only_task=only_task,
        )

    # -- whole threads ------------------------------------------------------------------------------------------------------

    def node_runs(
        self,
        thread_id: str,
        headers: Sequence[Checkpoint],
        rows: Sequence[WriteRow],
        last: Sequence[Checkpoint] | None = None,
    ) -> dict[tuple[str, str], tuple[NodeRun, ...]]:
        """(ns, checkpoint id) -> the tasks that ran FROM that checkpoint, as far as the headers of its rows tell.

        `headers` hold these checkpoints and their children; `last` is the last checkpoint of each graph of the thread, found
        among the headers where it is not given.
        """
        return run_nodes(
            headers,
            rows,
            known_names=lambda: self._names_of(headers if last is None else last),
            names_at=self.planner.names_at,
            noted=lambda: self._ran_in(thread_id, headers if last is None else last),
            thread_id=thread_id,
        )

    def _names_of(self, headers: Sequence[Checkpoint]) -> set[str]:
        """Nodes that the last checkpoint of each graph of a thread knows."""
        last = {static_ns(header.checkpoint_ns): header.address for header in headers}
        found: set[str] = set()
        for address in list(last.values())[-_GRAPHS_ASKED:]:
            blob = self.reader.blob(address)
            if blob is not None:
                found |= blob.nodes()
        return found

    def _ran_in(self, thread_id: str, headers: Sequence[Checkpoint]) -> dict[tuple[str, str], tuple[str, ...]]:
        """What `metadata.writes` of old releases says ran; {} where the thread is of a newer format."""
        if not headers:
            return {}
        first = self.reader.blob(headers[-1].address)
        if first is None or not first.old:
            return {}
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for ns in {header.checkpoint_ns for header in headers}:
            found.update(self.threads.learned(Address(thread_id, ns, "")).ran)
        return found

    def written_channels(
        self, thread_id: str, rows: Iterable[WriteRow], last: Sequence[Checkpoint]
    ) -> dict[tuple[str, str], tuple[str, ...]]:
        """(ns, checkpoint id) -> the state channels that rows under it were written to; `last` as for `node_runs`."""
        newest = self.reader.blob(last[-1].address) if last else None
        nodes: set[str] = set()
        if newest is not None and newest.old:
            for ns in {header.checkpoint_ns for header in last}:
                nodes |= self.threads.learned(Address(thread_id, ns, "")).nodes
        return written_channels(rows, nodes)

    def graphs(self, thread_id: str) -> tuple[SeenGraph, ...]:
        """The graphs of a thread as it showed them, outer ones first: nodes with their runs, edges with how often each was taken.

        One pass over the thread, then kept until the store changes; who asks meanwhile waits for the same answer.
        """
        threads = self.threads
        with self._counting:
            found = threads.graphs(thread_id, lambda: self._count(thread_id))
        self._counted.put(thread_id, found)
        return found

    def graphs_known(self, thread_id: str) -> bool:
        """Whether `graphs` answers at once."""
        return self.threads.graphs_known(thread_id)

    def graphs_before(self, thread_id: str) -> tuple[SeenGraph, ...]:
        """The last count of a thread, which may be older than the store; () where there was none."""
        return self._counted.get(thread_id) or ()

    def _count(self, thread_id: str) -> tuple[SeenGraph, ...]:
        headers = [header for _, header in self.store.checkpoints(thread_id)]
        ends = [self.reader.blob(header.address) for header in (*headers[:1], *headers[-1:])]
        if any(blob is not None and blob.old for blob in ends):
            return started_graphs(self.states(self.store.scan(thread_id)))
        return seen_graphs(self.store, thread_id, headers, lambda rows: self.node_runs(thread_id, headers, rows))


def unwritten(tasks: Sequence[Task]) -> list[Task]:
    """Tasks whose writes are not here: nothing says how far one came that has left no trace."""
    return [replace(task, status="unknown") if task.status == "pending" else task for task in tasks]


def shared_ids(tasks: Sequence[Task], address: Address) -> list[Problem]:
    """Open questions of several tasks under one id cannot be answered by that id."""
    return [
        Problem("ambiguous-interrupt-id", address.checkpoint_id, f"{count} tasks ask under the one id {ident}")
        for ident, count in ambiguous(tasks).items()
    ]


def loose_questions(others: Sequence[Task], address: Address) -> list[Problem]:
    """Open questions whose task is not scheduled here: neither done nor waiting can be said for sure."""
    return [
        Problem(
            "question-without-task",
            address.checkpoint_id,
            f"{task.name or 'a task'} left an open question, but is not scheduled here",
        )
        for task in others
        if any(not question.answered for question in task.interrupts)
    ]


def ambiguous(tasks: Sequence[Task]) -> dict[str, int]:
    """Ids that open questions of several tasks bear, with the number of the tasks."""
    counts: dict[str, int] = {}
    for task in (task for task in tasks if task.interrupts):
        for ident in {question.id for question in task.interrupts if question.id and not question.answered}:
            counts[ident] = counts.get(ident, 0) + 1
    return {ident: count for ident, count in counts.items() if count > 1}


def explainer_of(store: Store, base: Store) -> Explainer:
    """The explainer for what a location holds; the one for transcripts is only loaded for them."""
    if base.kind == "transcript":
        from studio.explain.transcripts import TranscriptExplainer
        from studio.stores.transcripts.store import TranscriptStore

        assert isinstance(base, TranscriptStore)
        return TranscriptExplainer(store, base)
    return Explainer(store)
