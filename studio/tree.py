"""The checkpoint tree of one thread, as every front end reads it: rows, branches, references, problems.

Several roots, orphans, parent loops and clock steps are displayed and listed in `problems`, never hidden. How the structure comes
about is `studio.history.growth`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from studio.errors import RefError
from studio.history.facts import Facts, Key
from studio.history.gaps import missing_steps
from studio.history.growth import Growth
from studio.history.node import Node
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
        return len(self._order)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, Address) and address.thread_id == self.thread_id and self._key(address) in self._nodes

    def _node(self, address: Address) -> Node:
        node = self._nodes.get(self._key(address)) if address.thread_id == self.thread_id else None
        if node is None:
            raise RefError(f"no checkpoint {address.checkpoint_id} in thread {address.thread_id}", "`studio tree` lists them")
        return node

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
            state = (self.facts.version, len(self._nodes), len(self.facts.elsewhere))
            if self._found_problems is None or self._found_problems[0] != state:
                self._found_problems = (state, self._problems())
            return list(self._found_problems[1])

    def _problems(self) -> list[Problem]:
        out = [
            orphan(self.thread_id, self._nodes[key].number, parent[1])
            for parent, keys in self._waiting.items()
            for key in keys
            if self._nodes[key].checkpoint.origin == "base"
        ]
        if self.facts.elsewhere:
            forks = sorted((node for key in self.facts.elsewhere if (node := self._nodes.get(key))), key=lambda node: node.index)
            numbers = ", ".join(f"#{node.number}" for node in forks)
            out.append(Problem("other-version", self.thread_id, f"forks of another version of this file: {numbers}"))
        if self._loops:
            numbers = ", ".join(f"#{self._nodes[key].number}" for key in sorted(self._loops, key=lambda k: self._nodes[k].index))
            out.append(Problem("parent-loop", self.thread_id, f"parent links form a loop: {numbers}"))
        return [*out, *self._tallied().problems(self.thread_id, self.lacks_metadata)]

    def _tallied(self) -> Tally:
        if self._tally.turned != self._turned:
            self._tally = Tally(self._turned)
        self._tally.take_in(self._nodes)
        return self._tally

    def header(self, address: Address) -> Checkpoint:
        return self._node(address).checkpoint

    def index(self, address: Address) -> int:
        return self._node(address).index

    def address_at(self, index: int) -> Address:
        return self._address(self._order[index])

    def headers(self) -> Iterator[Checkpoint]:
        """Of all rows, in display order."""
        with self.lock:
            order = list(self._order)
        return (self._nodes[key].checkpoint for key in order)

    def parent(self, address: Address) -> Address | None:
        """By stored link, in the same namespace."""
        parent = self._node(address).parent
        return self._address(parent) if parent is not None else None

    def grew_from(self, address: Address) -> Address | None:
        """Where the drawn line comes from: the parent, a fork's origin, or the row whose task called this subgraph."""
        above = self._node(address).drawn_from
        return self._address(above) if above is not None else None

    def origin(self, address: Address) -> Address | None:
        origin = self.facts.origins.get(self._key(address))
        return self._address(origin) if origin is not None and origin in self._nodes else None

    def children(self, address: Address) -> tuple[Address, ...]:
        with self.lock:
            return tuple(self._address(key) for key in self._node(address).children)

    def children_of(self, address: Address) -> list[tuple[str, str | None]]:
        """(id, source) of the children of a checkpoint; none of one that is not in this tree."""
        with self.lock:
            node = self._nodes.get(self._key(address))
            found = [self._nodes[child].checkpoint for child in node.children] if node is not None else []
        return [(child.checkpoint_id, child.source) for child in found]

    def forks(self, address: Address) -> tuple[Address, ...]:
        """Forks that were made from this checkpoint."""
        key = self._key(address)
        with self.lock:
            made = [fork for fork, origin in self.facts.origins.items() if origin == key]
            return tuple(self._address(fork) for fork in made if fork in self._nodes)

    def caller(self, address: Address) -> Address | None:
        """The row whose task first called the subgraph that this row belongs to."""
        caller = self._namespace_caller.get(address.checkpoint_ns) if address.checkpoint_ns else None
        return self._address(caller) if caller is not None else None

    def inner(self, address: Address) -> tuple[Address, ...]:
        """Rows of the subgraphs that ran from this checkpoint."""
        with self.lock:
            return tuple(self._address(key) for key in self._node(address).inner)

    def branch(self, address: Address) -> list[Address]:
        """From the root of its namespace to this checkpoint; a fork's branch goes through its origin's parents."""
        with self.lock:
            out, node = [address], self._node(address)
            while True:
                above = node.parent
                if above is None and node.drawn_from is not None and node.drawn_from[0] == node.key[0]:
                    above = node.drawn_from
                if above is None:
                    return out[::-1]
                out.append(self._address(above))
                node = self._nodes[above]

    def leaves(self, ns: str = "") -> tuple[Address, ...]:
        """Rows of a namespace without children, in display order."""
        with self.lock:
            return tuple(self._address(key) for key in self._order if key[0] == ns and not self._nodes[key].children)

    def roots(self, ns: str = "") -> tuple[Address, ...]:
        with self.lock:
            tops = [key for key in self._order if key[0] == ns and self._nodes[key].parent is None]
            return tuple(self._address(key) for key in tops if key not in self.facts.origins)

    def number(self, address: Address) -> str:
        return self._node(address).number

    def row(self, address: Address) -> Row:
        self._learn(self.index(address), self.index(address) + 1)
        with self.lock:  # an index holds until the tree grows
            index = self._node(address).index
            row = self._rows(index, index + 1)[0]
        return self._looked_at(row)

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        """Rows start..stop-1 in display order. Only leaves among them cost a look at a state."""
        self._learn(start, stop)
        with self.lock:
            stop = len(self._order) if stop is None else min(stop, len(self._order))
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
                count = len(self._order)
                first, last = start // BLOCK * BLOCK, -(-(count if stop is None else stop) // BLOCK) * BLOCK
                if count <= AT_ONCE:
                    first, last = 0, count
                keys = self._order[max(0, first) : max(0, last)]
                above = (self._nodes[key].parent for key in keys)
                wanted = self.facts.missing(dict.fromkeys([*keys, *(key for key in above if key is not None)]))
                if not wanted:
                    return
                nodes, version = [self._nodes[key] for key in wanted], self.facts.version
                headers = [node.checkpoint for node in nodes]
                children = [self._nodes[child].checkpoint for node in nodes for child in node.children]
            reading = self._read(headers, children)
            with self.lock:
                self.facts.take(wanted, reading, version)

    def _rows(self, start: int, stop: int) -> list[Row]:
        passing = self._lanes.passing(start, stop)
        return [self._row(self._order[i], tuple(sorted(passing[i - start]))) for i in range(start, stop)]

    def _looked_at(self, row: Row) -> Row:
        """A leaf with its live status, read outside the lock."""
        if self._look is None or not row.is_leaf:
            return row
        status, following = self._look(row.checkpoint.address)
        return replace(row, status=status, next=following)

    def _row(self, key: Key, passing: tuple[int, ...]) -> Row:
        node, facts = self._nodes[key], self.facts
        header = node.checkpoint
        lane = self._lanes.lane(node.index)
        above = self._nodes.get(node.drawn_from) if node.drawn_from is not None else None
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
        if node.parent is not None and origin is None and header.source not in ("fork", "input"):
            made_by = self._made_by(self._nodes[node.parent], header.source == "update")
            channels = channels or (facts.written.get(node.parent, ()) if made_by else ())
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
            missing_steps=missing_steps(header, self._nodes[node.parent].checkpoint if node.parent is not None else None),
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
        beside = sum(self._nodes[child].checkpoint.source == "update" for child in parent.children)
        return tuple(run for run in runs if run.task_id in updates) if beside == 1 else ()

    def _label(self, node: Node, made_by: tuple[NodeRun, ...], origin: Key | None) -> str:
        named = self.facts.fork_labels.get(node.key)
        if named:
            return named
        if node.key in self.facts.elsewhere:
            return "fork of another version"
        if origin is not None and origin in self._nodes:
            return f"copy of #{self._nodes[origin].number}"
        source = node.checkpoint.source
        if source == "fork":
            return "re-run" if node.parent is not None else "copy"
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
            return [key for key in self._order if ns is None or key[0] == ns]

    def by_number(self, number: str) -> Key | None:
        found = self._by_number.get(number)
        if found is None and number.isascii() and number.isdigit() and len(number) < 12 and str(int(number)) == number:
            at = int(number)
            found = self._in_order[at] if at < len(self._in_order) else None
        return found


def _joined(names: list[str]) -> str:
    """`a ∥ b`, and `grade ×4` for many tasks of one node."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return " ∥ ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.items())
