"""The checkpoint tree of one thread: order, numbers, lanes and names, from headers and parent links alone.

Identity is (namespace, checkpoint id); structure comes from parent links, never from steps or the order of ids. Several roots,
orphans and parent loops are displayed and listed in `problems`. Numbers are given at first sight in topological order and
never change while a thread grows. Nothing here recurses, so a chain of a million checkpoints is fine.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from studio.errors import RefError
from studio.lanes import Lanes
from studio.model import Address, Checkpoint, NodeRun, Problem, Row, Status, WriteRow
from studio.namespaces import depth, ns_task_id, outer_namespace
from studio.refs import resolve
from studio.times import seconds_between

Key = tuple[str, str]
"""(checkpoint_ns, checkpoint_id) inside one thread."""


@dataclass(slots=True)
class Facts:
    """What rows of `writes` and our own records say about the checkpoints of a thread; filled by the session."""

    ran: dict[Key, tuple[NodeRun, ...]] = field(default_factory=dict)
    """Tasks that ran FROM a checkpoint."""
    written: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    """State channels written by those tasks."""
    asked: set[Key] = field(default_factory=set)
    """Checkpoints from which a task asked a question."""
    callers: dict[str, Key] = field(default_factory=dict)
    """Task id -> the checkpoint it ran from."""
    origins: dict[Key, Key] = field(default_factory=dict)
    """Fork -> the checkpoint it was made from."""
    fork_labels: dict[Key, str] = field(default_factory=dict)
    fork_channels: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    marks: dict[Key, tuple[str, ...]] = field(default_factory=dict)

    def note_writes(self, rows: Iterable[WriteRow]) -> None:
        for row in rows:
            key = (row.checkpoint_ns, row.checkpoint_id)
            self.callers.setdefault(row.task_id, key)
            if row.channel == "__interrupt__":
                self.asked.add(key)


@dataclass(slots=True)
class _Node:
    checkpoint: Checkpoint
    key: Key
    number: str = ""
    parent: Key | None = None
    """By stored link, in the same namespace, when it is there."""
    drawn_from: Key | None = None
    """Row that the line comes from: parent, origin of a fork, or the caller of a subgraph."""
    children: list[Key] = field(default_factory=list)
    inner: list[Key] = field(default_factory=list)
    """Rows of subgraphs that were called from here, in first-seen order."""
    inner_count: int = 0
    depth: int = 0
    index: int = -1
    lane_child: Key | None = None
    """The child that goes on in this row's lane."""


Look = Callable[[Address], tuple[Status | None, tuple[str | None, ...] | None]]
"""(live status, next) of a leaf: the only question that needs a state, so it is asked for rows in view alone."""


class CheckpointTree:
    """Rows of one thread in display order. `extend` adds headers; everything else reads."""

    def __init__(
        self, thread_id: str, look: Look | None = None, parents_of: Callable[[Address], Mapping[str, str]] | None = None
    ) -> None:
        """`look` gives a leaf's live status; `parents_of` gives `metadata.parents` of a subgraph's checkpoint."""
        self.thread_id = thread_id
        self.facts = Facts()
        self.head: Address | None = None
        self._look = look
        self._parents_of = parents_of
        self._nodes: dict[Key, _Node] = {}
        self._order: list[Key] = []
        self._waiting: dict[Key, list[Key]] = {}
        self._counters = {"base": 0, "scratch": 0}
        self._loops: set[Key] = set()
        self._lanes = Lanes()
        self._namespace_caller: dict[str, Key | None] = {}
        self._by_number: dict[str, Key] = {}

    # ------------------------------------------------------------------ growing

    def extend(self, headers: Iterable[Checkpoint]) -> int:
        """Take in headers (known ones are ignored); returns how many were new. Call after `facts` were updated."""
        fresh = []
        for header in headers:
            key = (header.address.checkpoint_ns, header.address.checkpoint_id)
            if key not in self._nodes:
                node = _Node(header, key)
                self._nodes[key] = node
                fresh.append(node)
        if not fresh:
            return 0
        for node in fresh:
            self._link(node)
        relinked = any(node.key in self._waiting for node in fresh)
        if relinked:
            for node in fresh:
                for orphan in self._waiting.pop(node.key, ()):
                    self._adopt(self._nodes[orphan], node.key)
        self._break_loops(fresh, through_known=relinked)
        self._attach(fresh)
        self._number(fresh)
        self._place(fresh, relinked)
        self._find_head(fresh)
        return len(fresh)

    def _link(self, node: _Node) -> None:
        parent_id = node.checkpoint.parent_checkpoint_id
        if not parent_id:
            return
        parent = (node.key[0], parent_id)
        if parent in self._nodes:
            self._adopt(node, parent)
        else:
            self._waiting.setdefault(parent, []).append(node.key)

    def _adopt(self, node: _Node, parent: Key) -> None:
        node.parent = parent
        self._nodes[parent].children.append(node.key)
        if node.index >= 0 and node.key not in self.facts.origins:  # its parent came later than itself
            node.drawn_from = parent

    def _break_loops(self, fresh: Sequence[_Node], through_known: bool) -> None:
        """Find parent loops among new rows; one row of each becomes a root for display, its link is kept as a problem."""
        state: dict[Key, int] = {}
        for start in fresh:
            path: list[Key] = []
            key: Key | None = start.key
            while key is not None and key not in state and key not in self._loops:
                if self._nodes[key].index >= 0 and not through_known:
                    break
                state[key] = 1
                path.append(key)
                key = self._nodes[key].parent
            if key is not None and state.get(key) == 1 and key in path:
                ring = path[path.index(key):]
                cut = min(ring, key=lambda k: self._age(self._nodes[k]))
                self._loops.update(ring)
                node = self._nodes[cut]
                if node.parent is not None:
                    self._nodes[node.parent].children.remove(cut)
                    if node.drawn_from == node.parent:
                        node.drawn_from = None
                node.parent = None
            for seen in path:
                state[seen] = 2

    def _attach(self, fresh: Sequence[_Node]) -> None:
        for node in sorted(fresh, key=self._age):
            origin = self.facts.origins.get(node.key)
            if origin is not None and origin in self._nodes and origin != node.key and self._forked_beside(node, origin):
                node.drawn_from = origin
            elif node.parent is not None:
                node.drawn_from = node.parent
            elif node.key[0]:
                node.drawn_from = self._caller(node)
            node.depth = depth(node.key[0])

    def _forked_beside(self, node: _Node, origin: Key) -> bool:
        """A copy hangs from its origin; guards against records that would make a loop."""
        key: Key | None = origin
        for _ in range(len(self._nodes)):
            if key is None:
                return True
            if key == node.key:
                return False
            above = self._nodes[key]
            key = above.drawn_from if above.drawn_from is not None else above.parent
        return False

    def _caller(self, node: _Node) -> Key | None:
        """The row of the enclosing namespace whose task ran this subgraph; None when it cannot be found."""
        ns = node.key[0]
        known = self._namespace_caller.get(ns)
        if known is not None:
            return known
        outer = outer_namespace(ns)
        task = ns_task_id(ns)
        caller = self.facts.callers.get(task) if task else None
        if caller is None or caller not in self._nodes or caller[0] != outer:
            caller = None
            if self._parents_of is not None:
                parents = self._parents_of(node.checkpoint.address)
                named = parents.get(outer)
                if isinstance(named, str) and (outer, named) in self._nodes:
                    caller = (outer, named)
        if caller is not None and caller != node.key:
            self._namespace_caller[ns] = caller
        return caller

    def _age(self, node: _Node) -> tuple[int, str, str, str]:
        return (node.key[0].count("|") + bool(node.key[0]), node.checkpoint.created_at or "", node.key[1], node.key[0])

    def _number(self, fresh: Sequence[_Node]) -> None:
        """Numbers in topological order, ties by time and id. Outer namespaces first, since inner numbers begin with their row's."""
        pending = {node.key for node in fresh}
        above = {node.key: node.drawn_from for node in fresh}
        ready = [(self._age(node), node.key) for node in fresh if above[node.key] not in pending]
        below: dict[Key, list[Key]] = {}
        for key, parent in above.items():
            if parent in pending:
                below.setdefault(parent, []).append(key)  # type: ignore[arg-type]
        heapq.heapify(ready)
        while ready:
            _, key = heapq.heappop(ready)
            self._give_number(self._nodes[key])
            pending.discard(key)
            for child in below.get(key, ()):
                heapq.heappush(ready, (self._age(self._nodes[child]), child))
        for key in sorted(pending, key=lambda k: self._age(self._nodes[k])):  # only reached by records that contradict each other
            self._nodes[key].drawn_from = None
            self._give_number(self._nodes[key])

    def _give_number(self, node: _Node) -> None:
        origin = node.checkpoint.origin
        caller = self._namespace_caller.get(node.key[0]) if node.key[0] else None
        if node.key[0] and caller is None:
            caller = node.drawn_from if node.drawn_from is not None and node.drawn_from[0] != node.key[0] else None
        holder = self._nodes[caller] if caller is not None else None
        if holder is not None and not (origin == "scratch" and holder.checkpoint.origin == "base"):
            holder.inner_count += 1
            holder.inner.append(node.key)
            node.number = f"{holder.number}.{holder.inner_count}"
        elif origin == "scratch":
            self._counters["scratch"] += 1
            node.number = f"s{self._counters['scratch']}"
            if holder is not None:
                holder.inner.append(node.key)
        else:
            node.number = str(self._counters["base"])
            self._counters["base"] += 1
        self._by_number[node.number] = node.key

    def _place(self, fresh: Sequence[_Node], relinked: bool) -> None:
        """Display order: by number at the top level, each row followed by the subgraph rows that ran from it."""
        in_order = sorted(fresh, key=lambda n: _number_key(n.number))
        simple = not relinked and all(not n.key[0] and n.number.isdigit() for n in in_order)
        if simple and not self._counters["scratch"] and all(self._append(n) for n in in_order):
            return
        tops = sorted((n for n in self._nodes.values() if not self._is_inner(n)), key=lambda n: _number_key(n.number))
        order: list[Key] = []
        for top in self._parents_first(tops):
            stack = [top.key]
            while stack:
                key = stack.pop()
                order.append(key)
                stack.extend(reversed(self._nodes[key].inner))
        self._order = order
        for index, key in enumerate(order):
            self._nodes[key].index = index
            self._nodes[key].lane_child = None
        parents, continues = [], []
        for key in order:
            parent, goes_on = self._line(self._nodes[key])
            parents.append(parent)
            continues.append(goes_on)
        self._lanes = Lanes.build(parents, continues)

    def _parents_first(self, tops: list[_Node]) -> list[_Node]:
        """Keep the number order but for rows whose parent was seen later: those wait for it."""
        keys = {node.key for node in tops}
        done: set[Key] = set()
        held: dict[Key, list[_Node]] = {}
        out: list[_Node] = []
        for top in tops:
            stack = [top]
            while stack:
                node = stack.pop()
                parent = node.drawn_from
                if parent is not None and parent in keys and parent not in done:
                    held.setdefault(parent, []).append(node)
                    continue
                done.add(node.key)
                out.append(node)
                stack.extend(reversed(held.pop(node.key, [])))
        out.extend(node for nodes in held.values() for node in nodes)
        return out

    def _is_inner(self, node: _Node) -> bool:
        caller = self._namespace_caller.get(node.key[0]) if node.key[0] else None
        return caller is not None

    def _append(self, node: _Node) -> bool:
        parent, goes_on = self._line(node, len(self._order))
        if self._order and not self._lanes.append(parent, goes_on):
            return False
        if not self._order:
            self._lanes = Lanes.build([-1], [False])
        node.index = len(self._order)
        self._order.append(node.key)
        return True

    def _line(self, node: _Node, index: int | None = None) -> tuple[int, bool]:
        """(row the line comes from or -1, stays in that row's lane)."""
        above = self._nodes.get(node.drawn_from) if node.drawn_from is not None else None
        at = node.index if index is None else index
        if above is None or not 0 <= above.index < at:
            return -1, False
        same_track = above.key[0] == node.key[0] and node.parent == above.key
        if same_track and above.lane_child in (None, node.key):
            above.lane_child = node.key
            return above.index, True
        return above.index, False

    def _find_head(self, fresh: Sequence[_Node]) -> None:
        """LangGraph resumes the largest id of the root namespace; scratch rows count only where the base has none."""
        for node in fresh:
            ns, checkpoint_id = node.key
            if ns:
                continue
            held = self._nodes[self._key(self.head)] if self.head is not None else None
            rank = (node.checkpoint.origin == "base", checkpoint_id)
            if held is None or rank > (held.checkpoint.origin == "base", held.key[1]):
                self.head = self._address(node.key)

    # ------------------------------------------------------------------ reading

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, Address) and address.thread_id == self.thread_id and self._key(address) in self._nodes

    @staticmethod
    def _key(address: Address) -> Key:
        return (address.checkpoint_ns, address.checkpoint_id)

    def _address(self, key: Key) -> Address:
        return Address(self.thread_id, key[0], key[1])

    def _node(self, address: Address) -> _Node:
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
        return sum(1 for key, node in self._nodes.items() if not key[0] and not node.children)

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(sorted({key[0] for key in self._nodes}))

    @property
    def problems(self) -> list[Problem]:
        """Loops and orphans, each with its place."""
        out = [
            Problem("orphan-parent", f"{self.thread_id}: {self._nodes[key].number}", f"its parent {parent[1]} is not in this file")
            for parent, keys in self._waiting.items() for key in keys
            if self._nodes[key].checkpoint.origin == "base"
        ]
        if self._loops:
            numbers = ", ".join(f"#{self._nodes[key].number}" for key in sorted(self._loops, key=lambda k: self._nodes[k].index))
            out.append(Problem("parent-loop", self.thread_id, f"parent links form a loop: {numbers}"))
        skewed = [f"#{node.number}" for node in self._nodes.values() if self._is_skewed(node)]
        if skewed:
            out.append(Problem("clock-step", self.thread_id, f"older than its parent by its own time: {', '.join(skewed[:8])}"))
        return out

    def _is_skewed(self, node: _Node) -> bool:
        if node.parent is None:
            return False
        gap = seconds_between(self._nodes[node.parent].checkpoint.created_at, node.checkpoint.created_at)
        return gap is not None and gap < 0

    def header(self, address: Address) -> Checkpoint:
        return self._node(address).checkpoint

    def index(self, address: Address) -> int:
        return self._node(address).index

    def address_at(self, index: int) -> Address:
        return self._address(self._order[index])

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
        return tuple(self._address(key) for key in self._node(address).children)

    def forks(self, address: Address) -> tuple[Address, ...]:
        """Forks that were made from this checkpoint."""
        key = self._key(address)
        return tuple(self._address(fork) for fork, origin in self.facts.origins.items() if origin == key and fork in self._nodes)

    def inner(self, address: Address) -> tuple[Address, ...]:
        """Rows of the subgraphs that ran from this checkpoint."""
        return tuple(self._address(key) for key in self._node(address).inner)

    def branch(self, address: Address) -> list[Address]:
        """From the root of its namespace to this checkpoint; a fork's branch goes through its origin's parents."""
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
        return tuple(self._address(key) for key in self._order if key[0] == ns and not self._nodes[key].children)

    def roots(self, ns: str = "") -> tuple[Address, ...]:
        return tuple(
            self._address(key) for key in self._order if key[0] == ns and self._nodes[key].parent is None and key not in self.facts.origins
        )

    def number(self, address: Address) -> str:
        return self._node(address).number

    def row(self, address: Address) -> Row:
        index = self._node(address).index
        return self.rows(index, index + 1)[0]

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        """Rows start..stop-1 in display order. Only leaves among them cost a look at a state."""
        stop = len(self._order) if stop is None else min(stop, len(self._order))
        start = max(0, start)
        if start >= stop:
            return []
        passing = self._lanes.passing(start, stop)
        return [self._row(self._order[i], tuple(sorted(passing[i - start]))) for i in range(start, stop)]

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
        elif self._look is not None:
            status, following = self._look(header.address)
        else:
            status, following = None, None
        origin = facts.origins.get(key)
        made_by: tuple[NodeRun, ...] = ()
        channels = facts.fork_channels.get(key, ())
        if node.parent is not None and origin is None and header.source not in ("fork", "input"):
            made_by = tuple(run for run in facts.ran.get(node.parent, ()) if header.source != "update" or run.status == "done")
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
            marks=facts.marks.get(key, ()),
        )

    def _label(self, node: _Node, made_by: tuple[NodeRun, ...], origin: Key | None) -> str:
        named = self.facts.fork_labels.get(node.key)
        if named:
            return named
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

    def _seconds(self, node: _Node, above: _Node | None) -> float | None:
        return seconds_between(above.checkpoint.created_at, node.checkpoint.created_at) if above is not None else None

    def resolve(self, ref: str, ns: str | None = None) -> Address:
        """A REF of design 5 as an address; see `studio.refs`. Raises RefError."""
        return resolve(self, ref, ns)

    def keys(self, ns: str | None = None) -> list[Key]:
        """(namespace, id) of every row in display order, or of one namespace."""
        return [key for key in self._order if ns is None or key[0] == ns]

    def by_number(self, number: str) -> Key | None:
        return self._by_number.get(number)


def _number_key(number: str) -> tuple[bool, tuple[int, ...]]:
    return number.startswith("s"), tuple(int(part) for part in number.lstrip("s").split("."))


def _joined(names: list[str]) -> str:
    """`a ∥ b`, and `grade ×4` for many tasks of one node."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return " ∥ ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.items())
