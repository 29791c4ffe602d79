"""How a checkpoint tree grows: links, loops, callers, numbers, display order and lanes.

Identity is (namespace, checkpoint id); structure comes from parent links, never from steps or the order of ids. Numbers are
given at first sight in topological order and never change. Nothing here recurses, so a chain of a million checkpoints is fine.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from studio.history.facts import Facts, Key, Read
from studio.history.lanes import Lanes
from studio.history.namespaces import depth, enclosing, ns_task_id
from studio.history.node import Node
from studio.history.numbers import Numbers
from studio.model import Address, Checkpoint, Status

LOOSE_ASKED = 16
"""Subgraphs without a known caller that are asked for it again at each growth."""

Look = Callable[[Address], tuple[Status | None, tuple[str | None, ...] | None]]
"""(live status, next) of a leaf: the only question that needs a state, so it is asked for rows in view alone."""


class Growth:
    """The structure of one thread's tree; `CheckpointTree` reads it."""

    def __init__(
        self,
        thread_id: str,
        look: Look | None = None,
        parents_of: Callable[[Address], Mapping[str, str]] | None = None,
        read: Read | None = None,
    ) -> None:
        """`look` gives a leaf's live status, `parents_of` gives `metadata.parents` of a subgraph's checkpoint, `read` what the
        rows of `writes` under some checkpoints say."""
        self.thread_id = thread_id
        self.lock = threading.RLock()
        """Held while the tree grows and while rows are read, since a watcher extends it beside the readers."""
        self.facts = Facts()
        self.head: Address | None = None
        self._look = look
        self._parents_of = parents_of
        self._read = read
        self._nodes: dict[Key, Node] = {}
        self._order: list[Key] = []
        self._waiting: dict[Key, list[Key]] = {}
        self._counters = {"base": 0, "scratch": 0}
        self._loops: set[Key] = set()
        self._lanes = Lanes()
        self._namespace_caller: dict[str, Key | None] = {}
        self._by_number: dict[str, Key] = {}
        """But for those in `_in_order`."""
        self._in_order: list[Key] = []
        """Rows whose number is their place in this list: nearly all of a long thread."""
        self._turned = 0
        """How often rows that were in the tree may have come to hang elsewhere."""
        self._loose: dict[str, list[Key]] = {}
        """Namespace -> its rows that came before the row that called it."""
        self._held_numbers: dict[Key, tuple[str, int]] = {}
        """Number and count of inner rows that rows had before the tree was built anew."""
        self._to_keep: Numbers | None = None
        """What rows had in a tree that was dropped, until they are back."""

    # ------------------------------------------------------------------ growing

    def start_again(self, keys: Iterable[Key]) -> None:
        """Empty the tree, since rows of it are gone from the file. Those with these keys keep their numbers when they return."""
        numbers = self.numbers()
        fresh = Growth(self.thread_id)
        fresh.facts.version = self.facts.version + 1
        self.facts, self.head, self._nodes, self._order, self._waiting = fresh.facts, None, fresh._nodes, fresh._order, {}
        self._loops, self._lanes, self._namespace_caller, self._by_number = set(), fresh._lanes, {}, {}
        self._in_order, self._loose = [], {}
        self._hold(numbers, keys)
        self._turned += 1

    @property
    def stage(self) -> tuple[int, int]:
        """Another one since a row came, went, or may have come to hang elsewhere."""
        with self.lock:
            return self._turned, len(self._nodes)

    def numbers(self) -> Numbers:
        """The numbers of all rows, for a tree that is built in the place of this one."""
        with self.lock:
            return Numbers(self._nodes.values(), self._counters)

    def keep_numbers(self, numbers: Numbers) -> None:
        """Give rows the numbers that they had in a tree that was dropped. For a tree that is still empty."""
        self._to_keep = numbers

    def count_from(self, number: int) -> None:
        """Give the next row of the base this number. For a part of a tree, while it is empty."""
        self._counters["base"] = number

    def _hold(self, numbers: Numbers, keys: Iterable[Key]) -> None:
        held = numbers.of(keys)
        # of rows that are all gone no number is in use: the next fork is s1 again, as for whoever opens the file now
        kept = {number.startswith("s") for number, _ in held.values()}
        before = numbers.counters
        self._counters = {"base": before["base"] if held else 0, "scratch": before["scratch"] if True in kept else 0}
        self._held_numbers = held

    def extend(self, headers: Iterable[Checkpoint]) -> int:
        """Take in headers (known ones are ignored); returns how many were new. Call after `facts` were updated."""
        with self.lock:
            fresh, nodes = [], self._nodes
            for header in headers:
                key = (header.address.checkpoint_ns, header.address.checkpoint_id)
                if key not in nodes:
                    node = nodes[key] = Node(header, key)
                    fresh.append(node)
            kept, self._to_keep = self._to_keep, None
            keys = [node.key for node in fresh] if kept is not None else []
            in_order = kept is None or kept.come_by_themselves(keys)
            if fresh and not (in_order and self._goes_on(fresh)):
                if kept is not None:
                    self._hold(kept, keys)
                self._take_in(fresh)
            self._find_head(fresh)
            return len(fresh)

    def _goes_on(self, fresh: Sequence[Node]) -> bool:
        """Rows of the root that only go on where the tree ends, the rule in a long thread: one pass. False: nothing was done."""
        nodes, origins, waiting = self._nodes, self.facts.origins, self._waiting
        if self._counters["scratch"] or self._held_numbers or self._loose:
            return False
        newest, before = ("", ""), ""
        for node in fresh:
            key, header = node.key, node.checkpoint
            if key[0] or self._is_of_scratch(node) or key in origins or key in waiting:
                return False
            age = (header.created_at or "", key[1])
            if header.parent_checkpoint_id != before or not before:
                above = nodes.get(("", header.parent_checkpoint_id or ""))
                if age <= newest or (above is not None and above.index < 0 and above.age >= node.age):
                    return False
            newest, before = max(newest, age), key[1]
        in_lanes = True
        last: Node | None = None
        for node in fresh:
            if last is not None and not last.children and node.checkpoint.parent_checkpoint_id == last.key[1] and in_lanes:
                last.children.append(node.key)
                node.parent = node.drawn_from = last.key
                last.lane_child = node.key
                node.index = self._lanes.go_on()
                self._order.append(node.key)
            else:
                self._link(node)
                node.drawn_from = node.parent
                in_lanes = in_lanes and self._append(node)
            self._next_number(node)
            last = node
        if not in_lanes:
            self._lay_out()
        return True

    def _take_in(self, fresh: Sequence[Node]) -> None:
        self._turned += 1
        for node in fresh:
            self._link(node)
        relinked = any(node.key in self._waiting for node in fresh)
        if relinked:
            for node in fresh:
                for orphan in self._waiting.pop(node.key, ()):
                    self._adopt(self._nodes[orphan], node.key)
        self._break_loops(fresh, through_known=relinked)
        self._attach(fresh)
        for ns in list(self._loose)[-LOOSE_ASKED:]:  # perhaps the row that called it has just come
            self._caller(self._nodes[self._loose[ns][0]])
        self._number(fresh)
        self._lay_out()

    def _link(self, node: Node) -> None:
        parent_id = node.checkpoint.parent_checkpoint_id
        if not parent_id:
            return
        parent = (node.key[0], parent_id)
        if parent in self._nodes:
            self._adopt(node, parent)
        else:
            self._waiting.setdefault(parent, []).append(node.key)

    def _adopt(self, node: Node, parent: Key) -> None:
        node.parent = parent
        self._nodes[parent].children.append(node.key)
        if node.index >= 0 and node.key not in self.facts.origins:  # its parent came later than itself
            node.drawn_from = parent

    def _break_loops(self, fresh: Sequence[Node], through_known: bool) -> None:
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
                ring = path[path.index(key) :]
                cut = min(ring, key=lambda k: self._nodes[k].age)
                self._loops.update(ring)
                node = self._nodes[cut]
                if node.parent is not None:
                    self._nodes[node.parent].children.remove(cut)
                    if node.drawn_from == node.parent:
                        node.drawn_from = None
                node.parent = None
            for seen in path:
                state[seen] = 2

    def _attach(self, fresh: Sequence[Node]) -> None:
        for node in sorted(fresh, key=_BY_AGE):
            caller = self._caller(node) if node.key[0] else None
            origin = self.facts.origins.get(node.key)
            if origin is not None and (origin not in self._nodes or origin == node.key or not self._forked_beside(node, origin)):
                origin = None
            if origin is not None and origin[0] == node.key[0]:
                node.drawn_from = origin
            elif node.parent is not None:
                node.drawn_from = node.parent
            else:  # a fork inside a subgraph stands below the row that calls it now, not below its origin
                node.drawn_from = caller if caller is not None else origin
            node.depth = depth(node.key[0])

    def _forked_beside(self, node: Node, origin: Key) -> bool:
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

    def _caller(self, node: Node) -> Key | None:
        """The row of the enclosing namespace whose task ran this subgraph; None when it cannot be found."""
        ns = node.key[0]
        known = self._namespace_caller.get(ns)
        if known is not None:
            return known
        around = enclosing(ns)
        task = ns_task_id(ns)
        caller = self.facts.callers.get(task) if task else None
        if caller is None or caller not in self._nodes or caller[0] not in around:
            caller = None
            parents = self._parents_of(node.checkpoint.address) if self._parents_of is not None else {}
            for outer in around:  # a call inside an entrypoint has a namespace around it that holds no checkpoint
                named = parents.get(outer)
                if isinstance(named, str):  # not there yet: the row to wait for, rather than one farther out
                    caller = (outer, named) if (outer, named) in self._nodes else None
                    break
        if caller is not None and caller != node.key:
            self._namespace_caller[ns] = caller
            self._take_loose(ns, caller)
        return caller

    def _take_loose(self, ns: str, caller: Key) -> None:
        """Rows of a subgraph that came before its caller's stand below it from now on; they keep their numbers."""
        for key in self._loose.pop(ns, ()):
            node = self._nodes[key]
            self._nodes[caller].take_inner(node)
            if node.drawn_from is None:
                node.drawn_from = caller

    def _number(self, fresh: Sequence[Node]) -> None:
        """Numbers in topological order, ties by time and id; outer namespaces first, as inner numbers begin with theirs."""
        pending = {node.key for node in fresh}
        above = {node.key: node.drawn_from for node in fresh}
        ready = [(node.age, node.key) for node in fresh if above[node.key] not in pending]
        below: dict[Key, list[Key]] = {}
        for key, parent in above.items():
            if parent in pending:
                below.setdefault(parent, []).append(key)
        heapq.heapify(ready)
        while ready:
            _, key = heapq.heappop(ready)
            self._give_number(self._nodes[key])
            pending.discard(key)
            for child in below.get(key, ()):
                heapq.heappush(ready, (self._nodes[child].age, child))
        for key in sorted(pending, key=lambda k: self._nodes[k].age):  # only reached by records that contradict each other
            self._nodes[key].drawn_from = None
            self._give_number(self._nodes[key])

    def _give_number(self, node: Node) -> None:
        of_scratch = self._is_of_scratch(node)
        caller = self._namespace_caller.get(node.key[0]) if node.key[0] else None
        holder = self._nodes[caller] if caller is not None else None
        if holder is None and node.key[0]:
            self._loose.setdefault(node.key[0], []).append(node.key)
        if node.key in self._held_numbers:
            node.number, node.inner_count = self._held_numbers.pop(node.key)
            if holder is not None:
                holder.take_inner(node)
        elif holder is not None and not (of_scratch and not self._is_of_scratch(holder)):
            holder.inner_count += 1
            holder.take_inner(node)
            node.number = f"{holder.number}.{holder.inner_count}"
        elif of_scratch:
            self._counters["scratch"] += 1
            node.number = f"s{self._counters['scratch']}"
            if holder is not None:
                holder.take_inner(node)
        else:
            self._next_number(node)
            return
        self._by_number[node.number] = node.key

    def _is_of_scratch(self, node: Node) -> bool:
        """Whether it is numbered with the rows of the scratch file: one that was promoted still is."""
        return node.checkpoint.origin == "scratch" or node.key in self.facts.promoted

    def _next_number(self, node: Node) -> None:
        at = self._counters["base"]
        node.number = str(at)
        self._counters["base"] += 1
        if at == len(self._in_order):
            self._in_order.append(node.key)
        else:
            self._by_number[node.number] = node.key

    def _lay_out(self) -> None:
        """Display order: by number at the top level, each row followed by the subgraph rows that ran from it; then lanes."""
        tops = sorted((n for n in self._nodes.values() if not n.within), key=lambda n: _number_key(n.number))
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

    def _parents_first(self, tops: list[Node]) -> list[Node]:
        """Keep the number order but for rows whose parent was seen later: those wait for it."""
        keys = {node.key for node in tops}
        done: set[Key] = set()
        held: dict[Key, list[Node]] = {}
        out: list[Node] = []
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

    def _append(self, node: Node) -> bool:
        parent, goes_on = self._line(node, len(self._order))
        if self._order and not self._lanes.append(parent, goes_on):
            return False
        if not self._order:
            self._lanes = Lanes.build([-1], [False])
        node.index = len(self._order)
        self._order.append(node.key)
        return True

    def _line(self, node: Node, index: int | None = None) -> tuple[int, bool]:
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

    def _find_head(self, fresh: Sequence[Node]) -> None:
        """LangGraph resumes the largest id of the root namespace; scratch rows count only where the base has none."""
        best = (False, "")
        if self.head is not None:
            best = (self._nodes[self._key(self.head)].checkpoint.origin == "base", self.head.checkpoint_id)
        for origin in ("base", "scratch"):
            ids = (node.key[1] for node in fresh if not node.key[0] and node.checkpoint.origin == origin)
            top = max(ids, default=None)
            if top is not None and (self.head is None or (origin == "base", top) > best):
                best = (origin == "base", top)
                self.head = Address(self.thread_id, "", top)

    @staticmethod
    def _key(address: Address) -> Key:
        return (address.checkpoint_ns, address.checkpoint_id)

    def _address(self, key: Key) -> Address:
        return Address(self.thread_id, key[0], key[1])


_BY_AGE = attrgetter("age")


def _number_key(number: str) -> tuple[bool, tuple[int, ...]]:
    return number.startswith("s"), tuple(int(part) for part in number.lstrip("s").split("."))
