"""What only the rest of a thread can tell in formats 1 and 2: who listens to which channel.

One pass over a thread, kept as long as the store does not change. Formats 3 and later need none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from studio.explain.blob import Blob, read_blob
from studio.explain.channels import NOT_NODES, spelled_sources, spelled_target
from studio.explain.schedule import Learned
from studio.history.namespaces import static_ns
from studio.model import START, Address, RawCheckpoint
from studio.stores.base import Store, ThreadKeys

OTHER_THREADS = 200
"""How many other threads of a file are asked who follows a node that this thread never passed."""

EMPTY = Learned({}, frozenset(), {}, frozenset())


class Lesson:
    """Collects what the blobs of one graph (a namespace without its task ids) show."""

    def __init__(self) -> None:
        self.triggers: dict[str, set[str]] = {}
        self.nodes: set[str] = set()
        self.ran: dict[tuple[str, str], tuple[str, ...]] = {}
        self.channels: set[str] = set()

    def add(self, blob: Blob) -> None:
        self.channels.update(blob.versions)
        for name, channels in blob.seen.items():
            if name not in NOT_NODES:
                self.nodes.add(name)
                self.triggers.setdefault(name, set()).update(channels)
        for channel in blob.versions:
            target = spelled_target(channel)
            if target:
                self.nodes.add(target)
                self.triggers.setdefault(target, set()).add(channel)
            self.nodes.update(name for name in spelled_sources(channel) if name != START)
        written = blob.metadata.get("writes")
        if not isinstance(written, Mapping) or blob.source == "input":
            return
        names = tuple(name for name in written if isinstance(name, str) and not name.startswith("__"))
        self.nodes.update(names)
        parent = blob.parent
        if parent is not None and parent != blob.address and blob.source == "loop":
            key = (parent.checkpoint_ns, parent.checkpoint_id)
            self.ran[key] = tuple(dict.fromkeys((*self.ran.get(key, ()), *names)))

    def done(self) -> Learned:
        triggers = {name: frozenset(channels) for name, channels in self.triggers.items()}
        return Learned(triggers, frozenset(self.nodes), self.ran, frozenset(self.channels))


def learn_thread(raws: Iterable[RawCheckpoint]) -> dict[str, Learned]:
    """static namespace -> what its blobs show."""
    lessons: dict[str, Lesson] = {}
    for raw in raws:
        blob = read_blob(raw)
        if blob.readable:
            lessons.setdefault(static_ns(raw.header.checkpoint_ns), Lesson()).add(blob)
    return {ns: lesson.done() for ns, lesson in lessons.items()}


def learn_others(store: Store, mine: Learned, graph: str) -> Learned:
    """What the threads of the file that ran the same graph show, from the latest checkpoint of each."""
    lesson = Lesson()
    for keys in islice(store.threads(), OTHER_THREADS):
        for blob in latest_blobs(store, keys, graph):
            if blob.readable and alike(mine.channels, blob.versions):
                lesson.add(blob)
    return lesson.done()


def latest_blobs(store: Store, keys: ThreadKeys, graph: str) -> Iterator[Blob]:
    """The last checkpoint of each run of a graph in a thread: only the root's is known without reading headers."""
    wanted: dict[str, Address] = {}
    if not graph:
        if keys.latest:
            wanted[""] = Address(keys.thread_id, "", keys.latest)
    elif any(static_ns(ns) == graph for ns in keys.namespaces):
        for _, header in store.checkpoints(keys.thread_id):
            if static_ns(header.checkpoint_ns) == graph:
                wanted[header.checkpoint_ns] = header.address
    for raw in store.raw(wanted.values()).values():
        yield read_blob(raw)


def alike(mine: Collection[str], other: Collection[str]) -> bool:
    """Whether two threads seem to run one graph: nearly all channels of the shorter one are in the other."""
    return bool(mine) and sum(channel in other for channel in mine) >= 0.8 * len(mine)


def widened(mine: Learned, others: Learned) -> Learned:
    """What this thread shows, and for nodes that it never reached what other threads of the file show."""
    triggers = dict(mine.triggers)
    for name, channels in others.triggers.items():
        triggers[name] = triggers.get(name, frozenset()) | channels
    return Learned(triggers, mine.nodes | others.nodes, mine.ran, mine.channels)
