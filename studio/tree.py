"""The checkpoint tree of one thread, as every front end reads it: rows, branches, references, problems.

Several roots, orphans, parent loops and clock steps are displayed and listed in `problems`, never hidden. How the structure comes
about is `studio.history.growth`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from studio.errors import RefError
from studio.history.facts import Facts, Key
from studio.history.gaps import missing_steps
from studio.history.growth import Growth
from studio.history.node import NO_ROW, Links, Node
from studio.history.refs import resolve
from studio.history.tally import Tally, orphan
from studio.model import Address, Checkpoint, NodeRun, Problem, Row, Status
from studio.times import seconds_between

__all__ = ["CheckpointTree", "Facts", "Key"]

BLOCK = 256
"""Rows whose writes are read together."""
AT_ONCE = 3_000
"""Rows of a thread that is read as a whole instead."""
READ_AGAIN = 4
"""Readings of a window that a growing file may overtake; after them it is shown as it is, and the growth is told anyway."""


class CheckpointTree(Growth):
    """Rows of one thread in display order. `extend` adds headers; everything else reads."""

    _found_problems: tuple[object, list[Problem]] | None = None
    _tally = Tally()

    def __len__(self) -> int:
        return len(self._links.order)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, Address) and address.thread_id == self.thread_id and self._links.slot(_key(address)) >= 0

    def _find(self, address: Address) -> tuple[Links, int]:
        """What is known of the rows, and which one it is: the two belong together, also when the tree is built anew meanwhile."""
        links = self._links
        slot = links.slot(_key(address)) if address.thread_id == self.thread_id else NO_ROW
        if slot < 0:
            raise RefError(f"no checkpoint {address.checkpoint_id} in thread {address.thread_id}", "`studio tree` lists them")
        return links, slot

    def _at(self, links: Links, slot: int) -> Address:
        return Address(self.thread_id, *links.headers.key(slot))

    @property
    def lane_count(self) -> int:
        return self._lanes.width

    @property
    def branch_count(self) -> int:
        """Leaves of the root namespace."""
        with self.lock:
            return self._tallied().leaves

    lacks_metadata = ""
    """Why no checkpoint of this tree has metadata, where the kind of its store holds none."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        with self.lock:
            return tuple(sorted(self._tallied().namespaces))

    @property
    def inner_count(self) -> int:
        """Checkpoints of subgraphs."""
        with self.lock:
            return self._tallied().inner

    @property
    def problems(self) -> list[Problem]:
        """Loops and orphans, each with its place; gone through once for each state of the tree."""
        with self.lock:
            state = (self.facts.version, len(self._links), len(self.facts.elsewhere))
            if self._found_problems is None or self._found_problems[0] != state:
                self._found_problems = (state, self._problems())
            return list(self._found_problems[1])

    def _problems(self) -> list[Problem]:
        links = self._links
        out = [
            orphan(self.thread_id, links.number(slot), parent[1])
            for parent, slots in self._waiting.items()
            for slot in slots
            if links.headers.origin(slot) == "base"
        ]
        if self.facts.elsewhere:
            found = [slot for key in self.facts.elsewhere if (slot := links.slot(key)) >= 0]
            numbers = ", ".join(f"#{links.number(slot)}" for slot in sorted(found, key=links.index.__getitem__))
            out.append(Problem("other-version", self.thread_id, f"forks of another version of this file: {numbers}"))
        if self._loops:
            numbers = ", ".join(f"#{links.number(slot)}" for slot in sorted(self._loops, key=links.index.__getitem__))
            out.append(Problem("parent-loop", self.thread_id, f"parent links form a loop: {numbers}"))
        return [*out, *self._tallied().problems(self.thread_id, self.lacks_metadata)]

    def _tallied(self) -> Tally:
        if self._tally.turned != self._turned:
            self._tally = Tally(self._turned)
        self._tally.take_in(self._links)
        return self._tally

    def header(self, address: Address) -> Checkpoint:
        links, slot = self._find(address)
        return links.headers.header(slot)

    def index(self, address: Address) -> int:
        links, slot = self._find(address)
        return links.index[slot]

    def address_at(self, index: int) -> Address:
        links = self._links
        return self._at(links, links.order[index])

    def headers(self) -> Iterator[Checkpoint]:
        """Of all rows, in display order."""
        with self.lock:
            links = self._links
            order = links.order[:]
        return map(links.headers.header, order)

    def named(self, parents: Collection[tuple[str, str | None]]) -> list[Checkpoint]:
        """The rows whose parents are these: (namespace, id), in display order."""
        with self.lock:
            links = self._links
            found = links.headers.named(parents)
            return [links.headers.header(slot) for slot in sorted(found, key=links.index.__getitem__)]

    def parent(self, address: Address) -> Address | None:
        """By stored link, in the same namespace."""
        links, slot = self._find(address)
        above = links.parent[slot]
        return self._at(links, above) if above >= 0 else None

    def grew_from(self, address: Address) -> Address | None:
        """Where the drawn line comes from: the parent, a fork's origin, or the row whose task called this subgraph."""
        links, slot = self._find(address)
        above = links.drawn_from[slot]
        return self._at(links, above) if above >= 0 else None

    def origin(self, address: Address) -> Address | None:
        origin = self.facts.origins.get(_key(address))
        return Address(self.thread_id, *origin) if origin is not None and self._links.slot(origin) >= 0 else None

    def children(self, address: Address) -> tuple[Address, ...]:
        with self.lock:
            links, slot = self._find(address)
            return tuple(self._at(links, child) for child in links.children(slot))

    def children_of(self, address: Address) -> list[tuple[str, str | None]]:
        """(id, source) of the children of a checkpoint; none of one that is not in this tree."""
        with self.lock:
            links = self._links
            slot = links.slot(_key(address))
            found = [links.headers.header(child) for child in links.children(slot)] if slot >= 0 else []
        return [(child.checkpoint_id, child.source) for child in found]

    def forks(self, address: Address) -> tuple[Address, ...]:
        """Forks that were made from this checkpoint."""
        key = _key(address)
        with self.lock:
            made = [fork for fork, origin in self.facts.origins.items() if origin == key]
            return tuple(Address(self.thread_id, *fork) for fork in made if self._links.slot(fork) >= 0)

    def caller(self, address: Address) -> Address | None:
        """The row whose task first called the subgraph that this row belongs to."""
        with self.lock:
            caller = self._namespace_caller.get(address.checkpoint_ns) if address.checkpoint_ns else None
            return self._at(self._links, caller) if caller is not None else None

    def inner(self, address: Address) -> tuple[Address, ...]:
        """Rows of the subgraphs that ran from this checkpoint."""
        with self.lock:
            links, slot = self._find(address)
            return tuple(self._at(links, row) for row in links.inner.get(slot, ()))

    def branch(self, address: Address) -> list[Address]:
        """From the root of its namespace to this checkpoint; a fork's branch goes through its origin's parents."""
        with self.lock:
            links, slot = self._find(address)
            out: list[Address] = []
            while slot >= 0 and len(out) < len(links):  # records of forks that contradict each other end somewhere too
                out.append(self._at(links, slot))
                above, drawn = links.parent[slot], links.drawn_from[slot]
                if above < 0 and drawn >= 0 and links.headers.ns(drawn) == links.headers.ns(slot):
                    above = drawn
                slot = above
            return out[::-1]

    def leaves(self, ns: str = "") -> tuple[Address, ...]:
        """Rows of a namespace without children, in display order."""
        with self.lock:
            links = self._links
            found = (slot for slot in links.order if links.first_child[slot] < 0 and links.headers.ns(slot) == ns)
            return tuple(self._at(links, slot) for slot in found)

    def roots(self, ns: str = "") -> tuple[Address, ...]:
        with self.lock:
            links = self._links
            tops = (slot for slot in links.order if links.parent[slot] < 0 and links.headers.ns(slot) == ns)
            found = [self._at(links, slot) for slot in tops]
            return tuple(address for address in found if _key(address) not in self.facts.origins)

    def number(self, address: Address) -> str:
        links, slot = self._find(address)
        return links.number(slot)

    def row(self, address: Address) -> Row:
        self._learn(self.index(address), self.index(address) + 1)
        with self.lock:  # an index holds until the tree grows
            index = self.index(address)
            row = self._rows(index, index + 1)[0]
        return self._looked_at(row)

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        """Rows start..stop-1 in display order. Only leaves among them cost a look at a state."""
        self._learn(start, stop)
        with self.lock:
            stop = len(self) if stop is None else min(stop, len(self))
            start = max(0, start)
            if start >= stop:
                return []
            rows = self._rows(start, stop)
        return [self._looked_at(row) for row in rows]

    def _learn(self, start: int, stop: int | None) -> None:
        """Read who ran from the rows of a window and from their parents: whole blocks, outside the lock."""
        if self._read is None:
            return
        for _ in range(READ_AGAIN):
            with self.lock:
                links, count = self._links, len(self)
                first, last = start // BLOCK * BLOCK, -(-(count if stop is None else stop) // BLOCK) * BLOCK
                if count <= AT_ONCE:
                    first, last = 0, count
                slots = links.order[max(0, first) : max(0, last)]
                above = (links.parent[slot] for slot in slots)
                rows = {links.headers.key(slot): slot for slot in dict.fromkeys([*slots, *(slot for slot in above if slot >= 0)])}
                wanted, version = self.facts.missing(rows), self.facts.version
                if not wanted:
                    return
                known = {slot: links.headers.header(slot) for slot in map(rows.__getitem__, wanted)}
                headers = list(known.values())
                below = (child for slot in known for child in links.children(slot))
                children = [known[child] if child in known else links.headers.header(child) for child in below]
            reading = self._read(headers, children)
            with self.lock:
                if self.facts.take(wanted, reading, version):
                    return

    def _rows(self, start: int, stop: int) -> list[Row]:
        passing = self._lanes.passing(start, stop)
        order = self._links.order
        return [self._row(order[i], tuple(sorted(passing[i - start]))) for i in range(start, stop)]

    def _looked_at(self, row: Row) -> Row:
        """A leaf with its live status, read outside the lock."""
        if self._look is None or not row.is_leaf:
            return row
        status, following = self._look(row.checkpoint.address)
        return replace(row, status=status, next=following)

    def _row(self, slot: int, passing: tuple[int, ...]) -> Row:
        links, facts = self._links, self.facts
        node = links.node(slot)
        key, header = node.key, node.checkpoint
        lane = self._lanes.lane(node.index)
        parent = links.node(node.parent) if node.parent >= 0 else None
        above = parent if node.drawn_from == node.parent else links.node(node.drawn_from) if node.drawn_from >= 0 else None
        above_lane = self._lanes.lane(above.index) if above is not None and above.index < node.index else None
        ran_from = facts.ran.get(key, ())
        status: Status | None
        following: tuple[str | None, ...] | None
        if node.children:
            status = "answered" if key in facts.asked else "ran"
            following = tuple(run.name for run in ran_from) or None
        else:
            status, following = None, None
        origin = facts.origins.get(key)
        made_by: tuple[NodeRun, ...] = ()
        channels = facts.fork_channels.get(key, ())
        if parent is not None and origin is None and header.source not in ("fork", "input"):
            made_by = self._made_by(parent, header.source == "update")
            channels = channels or (facts.written.get(parent.key, ()) if made_by else ())
        if key in facts.made:
            made_by, channels = facts.made[key], facts.changed.get(key, ())
        return Row(
            checkpoint=header,
            number=node.number,
            lane=lane,
            depth=node.depth,
            lanes=passing,
            parent_lane=above_lane if above_lane != lane else None,
            origin_checkpoint_id=origin[1] if origin is not None else None,
            nodes=made_by,
            next=following,
            status=status,
            is_head=self.head == header.address,
            channels=channels,
            seconds=self._seconds(node, above),
            parent_number=above.number if above is not None else None,
            label=self._label(node, made_by, origin),
            is_leaf=not node.children,
            missing_steps=missing_steps(header, parent.checkpoint if parent is not None else None),
        )

    def _made_by(self, parent: Node, by_update: bool) -> tuple[NodeRun, ...]:
        """Tasks that ran from the parent; for an update, the one it stored its writes under, if it is the only update.

        By name, since the order in which parallel tasks were stored differs from run to run.
        """
        updates = self.facts.update_tasks
        runs = tuple(sorted(self.facts.ran.get(parent.key, ()), key=lambda run: run.name or ""))
        if not by_update:
            ran = tuple(run for run in runs if run.task_id not in updates)
            return ran or runs
        beside = sum(self._links.headers.header(child).source == "update" for child in parent.children)
        return tuple(run for run in runs if run.task_id in updates) if beside == 1 else ()

    def _label(self, node: Node, made_by: tuple[NodeRun, ...], origin: Key | None) -> str:
        named = self.facts.fork_labels.get(node.key) or self.facts.labels.get(node.key)
        if named:
            return named
        if node.key in self.facts.elsewhere:
            return "fork of another version"
        made_from = self._links.slot(origin) if origin is not None else NO_ROW
        if made_from >= 0:
            return f"copy of #{self._links.number(made_from)}"
        source = node.checkpoint.source
        if source == "fork":
            return "re-run" if node.parent >= 0 else "copy"
        if source == "input":
            return "input"
        names = _joined([run.name or "?" for run in made_by])
        if source == "update":
            return f"update as {names}" if names else "update_state"
        return names or {"loop": "superstep"}.get(source or "", source or "checkpoint")

    def _seconds(self, node: Node, above: Node | None) -> float | None:
        return seconds_between(above.checkpoint.created_at, node.checkpoint.created_at) if above is not None else None

    def resolve(self, ref: str, ns: str | None = None) -> Address:
        """What a person calls a checkpoint, as an address; see `studio.history.refs`. Raises RefError."""
        return resolve(self, ref, ns)

    def keys(self, ns: str | None = None) -> list[Key]:
        """(namespace, id) of every row in display order, or of one namespace."""
        with self.lock:
            headers = self._links.headers
            return [headers.key(slot) for slot in self._links.order if ns is None or headers.ns(slot) == ns]

    def with_id(self, part: str, ns: str | None = None, *, whole: bool = False) -> list[Key]:
        """(namespace, id) of the rows whose id holds a text, or is it, in display order."""
        with self.lock:
            links, headers = self._links, self._links.headers
            if not whole:
                keys = (headers.key(slot) for slot in links.order if ns is None or headers.ns(slot) == ns)
                return [key for key in keys if part in key[1]]
            spaces = {kind[0] for kind in headers.kinds} if ns is None else {ns}
            found = [slot for space in spaces if (slot := links.slot((space, part))) >= 0]
            return [headers.key(slot) for slot in sorted(found, key=links.index.__getitem__)]

    def by_number(self, number: str) -> Key | None:
        with self.lock:
            found = self._numbering.find(number)
            return self._links.headers.key(found) if found >= 0 else None


def _key(address: Address) -> Key:
    return (address.checkpoint_ns, address.checkpoint_id)


def _joined(names: list[str]) -> str:
    """`a ∥ b`, and `grade ×4` for many tasks of one node."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return " ∥ ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.items())
