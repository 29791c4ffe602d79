"""What rows of `writes` and our own records say about the checkpoints of one thread.

Who ran from a checkpoint and what was written is read when its row comes into view, a block of rows at a time: a thread of a
hundred thousand supersteps has three hundred thousand writes, and nobody looks at all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from studio.model import Checkpoint, NodeRun, WriteRow

Key = tuple[str, str]
"""(checkpoint_ns, checkpoint_id) inside one thread."""

MOST = 20_000
"""Checkpoints whose writes are remembered."""


class Reading(Struct):
    """What the rows under some checkpoints say."""

    ran: dict[Key, tuple[NodeRun, ...]] = field(default_factory=dict)
    written: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    asked: set[Key] = field(default_factory=set)
    update_tasks: set[str] = field(default_factory=set)
    made: dict[Key, tuple[NodeRun, ...]] = field(default_factory=dict)
    """Where the file itself says what made a checkpoint: those tasks; then also `changed` and `labels`."""
    changed: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    labels: dict[Key, str] = field(default_factory=dict)

    def note_rows(self, rows: Iterable[WriteRow]) -> None:
        for row in rows:
            if row.channel == "__interrupt__":
                self.asked.add((row.checkpoint_ns, row.checkpoint_id))
            if row.task_path is not None and row.task_path.startswith("~__interrupt__"):
                self.update_tasks.add(row.task_id)


Read = Callable[[Sequence[Checkpoint], Sequence[Checkpoint]], Reading]
"""Reads the rows under the first headers; the second are the children of those."""


class Facts(Struct):
    """Filled by whoever reads the file; the tree holds its lock meanwhile."""

    ran: dict[Key, tuple[NodeRun, ...]] = field(default_factory=dict)
    """Tasks that ran FROM a checkpoint."""
    written: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    """State channels written by those tasks."""
    asked: set[Key] = field(default_factory=set)
    """Checkpoints from which a task asked a question."""
    update_tasks: set[str] = field(default_factory=set)
    """Task ids under which `update_state` stored its writes."""
    callers: dict[str, Key] = field(default_factory=dict)
    """Task id -> the checkpoint it ran from; filled once a thread has subgraphs."""
    origins: dict[Key, Key] = field(default_factory=dict)
    """Fork -> the checkpoint it was made from."""
    promoted: set[Key] = field(default_factory=set)
    """Rows of the base that were put there from the scratch file, and are numbered with its rows."""
    elsewhere: set[Key] = field(default_factory=set)
    """Forks of another version: what they were made from is gone, or was stored anew with other contents."""
    made: dict[Key, tuple[NodeRun, ...]] = field(default_factory=dict)
    """Tasks that made a checkpoint, where the file says so."""
    changed: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    labels: dict[Key, str] = field(default_factory=dict)
    fork_labels: dict[Key, str] = field(default_factory=dict)
    fork_channels: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    version: int = 0
    """Another one since something was forgotten: what was being read then may be old."""
    _known: set[Key] = field(default_factory=set)

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Those whose rows were not read yet."""
        return [key for key in keys if key not in self._known]

    def take(self, keys: Sequence[Key], reading: Reading, version: int) -> bool:
        """Remember what the rows under these checkpoints say, unless it may be old by now; returns whether it was not."""
        if version != self.version:
            return False
        if len(self._known) + len(keys) > MOST:
            self._known.clear()
            for held in (self.ran, self.written, self.asked, self.made, self.changed, self.labels):
                held.clear()
        self._known.update(keys)
        for key in keys:
            if key in reading.ran:
                self.ran[key] = reading.ran[key]
            if key in reading.written:
                self.written[key] = reading.written[key]
            if key in reading.asked:
                self.asked.add(key)
            if key in reading.made:
                self.made[key] = reading.made[key]
                self.changed[key] = reading.changed.get(key, ())
                self.labels[key] = reading.labels.get(key, "")
        self.update_tasks |= reading.update_tasks
        return True

    def forget(self, keys: Iterable[Key]) -> None:
        """New rows came under these checkpoints, or new children."""
        self.version += 1
        if not self._known:
            return
        for key in keys:
            self._known.discard(key)
            self.ran.pop(key, None)
            self.written.pop(key, None)
            self.asked.discard(key)

    def note_callers(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """(namespace, checkpoint id, task id) of tasks that wrote; the first one of an id stands."""
        for ns, identity, task in rows:
            self.callers.setdefault(task, (ns, identity))
