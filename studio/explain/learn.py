"""What only the rest of a file can tell: who listens to which channel in formats 1 and 2, joins that this checkpoint has not seen.

One pass over a thread, kept as long as the store does not change. Formats 3 and later need none of it for `next`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from studio.explain.blob import Blob, read_blob
from studio.explain.channels import NOT_NODES, spelled_sources, spelled_target
from studio.explain.ids import static_ns
from studio.explain.schedule import Learned
from studio.model import START, Address, RawCheckpoint
from studio.stores.base import Store

OTHER_THREADS = 200
"""How many other threads of a file are asked who follows a node that this thread never passed."""

EMPTY = Learned({}, frozenset(), {})


class Lesson:
    """Collects what the blobs of one graph (a namespace without its task ids) show."""

    def __init__(self) -> None:
        self.triggers: dict[str, set[str]] = {}
        self.nodes: set[str] = set()
        self.ran: dict[tuple[str, str], tuple[str, ...]] = {}

    def add(self, blob: Blob) -> None:
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
        if parent is not None and blob.source == "loop":
            key = (parent.checkpoint_ns, parent.checkpoint_id)
            self.ran[key] = tuple(dict.fromkeys((*self.ran.get(key, ()), *names)))

    def done(self) -> Learned:
        return Learned({name: frozenset(channels) for name, channels in self.triggers.items()}, frozenset(self.nodes), self.ran)


def learn_thread(raws: Iterable[RawCheckpoint]) -> dict[str, Learned]:
    """static namespace -> what its blobs show."""
    lessons: dict[str, Lesson] = {}
    for raw in raws:
        blob = read_blob(raw)
        if blob.readable:
            lessons.setdefault(static_ns(raw.header.checkpoint_ns), Lesson()).add(blob)
    return {ns: lesson.done() for ns, lesson in lessons.items()}


def learn_file(store: Store) -> dict[str, Learned]:
    """The same from the latest checkpoint of the first threads of a file: graphs are mostly shared by threads."""
    wanted = [Address(keys.thread_id, "", keys.latest) for keys in islice(store.threads(), OTHER_THREADS) if keys.latest]
    lessons: dict[str, Lesson] = {}
    for at in range(0, len(wanted), 20):
        for raw in store.raw(wanted[at : at + 20]).values():
            blob = read_blob(raw)
            if blob.readable:
                lessons.setdefault("", Lesson()).add(blob)
    return {ns: lesson.done() for ns, lesson in lessons.items()}


def widened(mine: Learned, others: Learned) -> Learned:
    """What this thread shows, and for nodes that it never reached what other threads of the file show."""
    triggers = dict(mine.triggers)
    for name, channels in others.triggers.items():
        triggers[name] = triggers.get(name, frozenset()) | channels
    return Learned(triggers, mine.nodes | others.nodes, mine.ran)
