"""How a checkpoint tree grows: links, loops, callers, numbers, display order and lanes.

Identity is (namespace, checkpoint id); structure comes from parent links, never from steps or the order of ids. Numbers are
given at first sight in topological order and never change. Nothing here recurses, so a chain of a million checkpoints is fine.
Inside, a row is its slot: the place in which it came.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping

from studio.history.facts import Facts, Key, Read
from studio.history.lanes import Lanes
from studio.history.layout import lay_out, line
from studio.history.namespaces import enclosing, ns_task_id
from studio.history.node import NO_ROW, Links
from studio.history.numbering import Numbering, topological
from studio.history.numbers import Numbers
from studio.history.packed import TEXT, Packed
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
        self._turned = 0
        """How often rows that were in the tree may have come to hang elsewhere."""
        self._to_keep: Numbers | None = None
        """What rows had in a tree that was dropped, until they are back."""
        self._empty()

    def _empty(self) -> None:
        self._links = Links(Packed(self.thread_id))
        self._lanes = Lanes()
        self._numbering = Numbering()
        self._waiting: dict[Key, list[int]] = {}
        """Parents that are not there -> the rows that name them."""
        self._loops: set[int] = set()
        self._namespace_caller: dict[str, int] = {}
        self._loose: dict[str, list[int]] = {}
        """Namespace -> its rows that came before the row that called it."""

    # ------------------------------------------------------------------ growing

    def start_again(self, keys: Iterable[Key]) -> None:
        """Empty the tree, since rows of it are gone from the file. Those with these keys keep their numbers when they return."""
        numbers = self.numbers()
        version = self.facts.version + 1
        self.facts, self.head = Facts(version=version), None
        self._empty()
        self._numbering.hold(numbers, keys)
        self._turned += 1

    @property
    def stage(self) -> tuple[int, int]:
        """Another one since a row came, went, or may have come to hang elsewhere."""
        with self.lock:
            return self._turned, len(self._links)

    def numbers(self) -> Numbers:
        """The numbers of all rows, for a tree that is built in the place of this one."""
        with self.lock:
            return Numbers(self._links, self._numbering.counters)

    def keep_numbers(self, numbers: Numbers) -> None:
        """Give rows the numbers that they had in a tree that was dropped. For a tree that is still empty."""
        self._to_keep = numbers

    def count_from(self, number: int) -> None:
        """Give the next row of the base this number. For a part of a tree, while it is empty."""
        self._numbering.counters["base"] = number

    def extend(self, headers: Iterable[Checkpoint], first: int = 0) -> int:
        """Take in headers (known ones are ignored); returns how many were new. Call after `facts` were updated.

        An empty tree keeps packed headers as its own, and takes the first so many of them in before the others.
        """
        with self.lock:
            links = self._links
            if isinstance(headers, Packed) and not len(links.headers) and headers.thread_id == self.thread_id:
                links = self._links = Links(headers)
            else:
                first = 0
                links.headers.add(headers)
            count = self._come(links.make_room(first)) if first else 0
            return count + self._come(links.make_room())

    def _come(self, fresh: range) -> int:
        headers = self._links.headers
        kept, self._to_keep = self._to_keep, None
        in_order = kept is None or kept.come_by_themselves(array("q", map(headers.mark, fresh)))
        if fresh and not (in_order and self._goes_on(fresh)):
            if kept is not None:
                self._numbering.hold(kept, map(headers.key, fresh))
            self._take_in(fresh)
        self._find_head(fresh)
        return len(fresh)

    def _goes_on(self, fresh: range) -> bool:
        """Rows of the root that only go on where the tree ends, the rule in a long thread: one pass. False: nothing was done."""
        links, headers, facts = self._links, self._links.headers, self.facts
        if self._numbering.counters["scratch"] or self._numbering.held or self._loose:
            return False
        kinds = [headers.kinds[kind] for kind in set(headers.kind_of[fresh.start : fresh.stop])]
        if any(ns or origin == "scratch" for ns, _, origin, _ in kinds):
            return False
        if any(self._among(keys, fresh) for keys in (facts.promoted, facts.origins, self._waiting)):
            return False
        named = headers.above
        starts = [slot for slot in fresh if slot == fresh.start or named[slot] != slot - 1]
        if not self._ascend(starts, fresh):
            return False
        in_lanes = True
        for start, end in zip(starts, [*starts[1:], fresh.stop], strict=True):
            in_lanes = self._follow(start, in_lanes)
            if in_lanes and links.first_child[start : end - 1].count(NO_ROW) == end - 1 - start:
                self._follow_on(range(start + 1, end))
                continue
            for slot in range(start + 1, end):
                if in_lanes and links.first_child[slot - 1] < 0:
                    self._follow_on(range(slot, slot + 1))
                else:
                    in_lanes = self._follow(slot, in_lanes)
        if not in_lanes:
            self._lay_out()
        return True

    def _among(self, keys: Collection[Key], fresh: range) -> list[tuple[int, Key]]:
        """Those of some keys that new rows have, in the order of the rows."""
        headers = self._links.headers
        if len(keys) < len(fresh):
            found = ((headers.find(*key), key) for key in keys)
            return sorted((slot, key) for slot, key in found if slot in fresh)
        return [(slot, key) for slot in fresh if (key := headers.key(slot)) in keys] if keys else []

    def _ascend(self, starts: list[int], fresh: range) -> bool:
        """Whether each row that does not follow the one before it comes behind its parent, and by time and id behind the rest."""
        headers = self._links.headers
        if headers.key(fresh.start)[1] == "" and not headers.created_at(fresh.start):
            return False
        order = headers.order()
        newest, behind = None, fresh.start
        for start in starts:
            age = order(start)
            if start > behind:  # of those between the two, the largest
                between = max(map(order, range(behind, start)))
                newest = between if newest is None else max(newest, between)
                behind = start
            if newest is not None and age <= newest:  # type: ignore[operator]
                return False
            above = self._parent_of(start)[0]
            if above >= fresh.start and (above > start or order(above) >= age):  # type: ignore[operator]
                return False
        return True

    def _follow(self, slot: int, in_lanes: bool) -> bool:
        self._link(slot)
        self._links.drawn_from[slot] = self._links.parent[slot]
        in_lanes = in_lanes and self._append(slot)
        self._numbering.go_on(self._links, range(slot, slot + 1))
        return in_lanes

    def _follow_on(self, slots: range) -> None:
        """Rows each of which follows the one before it, which has just come, and is its only child."""
        if not slots:
            return
        links, start, stop = self._links, slots.start, slots.stop
        before, own = array("i", range(start - 1, stop - 1)), array("i", slots)
        links.parent[start:stop] = links.drawn_from[start:stop] = before
        links.first_child[start - 1 : stop - 1] = links.lane_child[start - 1 : stop - 1] = own
        self._numbering.go_on(links, slots)
        self._lanes.go_on(len(slots))
        at = len(links.order)
        links.order.extend(own)
        links.index[start:stop] = array("i", range(at, at + len(slots)))

    def _take_in(self, fresh: range) -> None:
        self._turned += 1
        for slot in fresh:
            self._link(slot)
        relinked = self._among(self._waiting, fresh)
        for slot, key in relinked:
            for orphan in self._waiting.pop(key):
                self._adopt(orphan, slot)
        self._break_loops(fresh, through_known=bool(relinked))
        self._attach(fresh)
        for ns in list(self._loose)[-LOOSE_ASKED:]:  # perhaps the row that called it has just come
            self._caller(self._loose[ns][0])
        topological(self._links, fresh, self._links.headers.order(), self._give_number)
        self._lay_out()

    def _parent_of(self, slot: int) -> tuple[int, Key | None]:
        """The row that a row names as its parent; where that is not there, its key."""
        links, headers = self._links, self._links.headers
        above = headers.above[slot]
        if above == TEXT:
            key = (headers.ns(slot), headers.texts[slot])
            above = links.slot(key)
            return above, key if above < 0 else None
        return (above, None) if above < len(links) else (NO_ROW, headers.key(above))

    def _link(self, slot: int) -> None:
        parent, missing = self._parent_of(slot)
        if missing is not None:
            self._waiting.setdefault(missing, []).append(slot)
        elif parent >= 0:
            self._adopt(slot, parent)

    def _adopt(self, slot: int, parent: int) -> None:
        links = self._links
        links.parent[slot] = parent
        links.take_child(parent, slot)
        if links.index[slot] >= 0 and links.headers.key(slot) not in self.facts.origins:  # its parent came later than itself
            links.drawn_from[slot] = parent

    def _break_loops(self, fresh: range, through_known: bool) -> None:
        """Find parent loops among new rows; one row of each becomes a root for display, its link is kept as a problem."""
        links, order = self._links, self._links.headers.order()
        seen, parent, index = bytearray(len(links)), links.parent, links.index
        for start in fresh:
            path: list[int] = []
            slot = start
            while slot >= 0 and not seen[slot] and slot not in self._loops:
                if index[slot] >= 0 and not through_known:
                    break
                seen[slot] = 1
                path.append(slot)
                slot = parent[slot]
            if slot >= 0 and seen[slot] == 1:
                ring = path[path.index(slot) :]
                cut = min(ring, key=order)
                self._loops.update(ring)
                links.lose_child(parent[cut], cut)
                if links.drawn_from[cut] == parent[cut]:
                    links.drawn_from[cut] = NO_ROW
                parent[cut] = NO_ROW
            for done in path:
                seen[done] = 2

    def _attach(self, fresh: range) -> None:
        links, headers = self._links, self._links.headers
        links.drawn_from[fresh.start : fresh.stop] = links.parent[fresh.start : fresh.stop]
        origins = {slot: self.facts.origins[key] for slot, key in self._among(self.facts.origins, fresh)}
        inner = {kind for kind, (ns, *_) in enumerate(headers.kinds) if ns}
        kind_of = headers.kind_of
        apart = [slot for slot in fresh if kind_of[slot] in inner or slot in origins]
        for slot in apart:
            links.drawn_from[slot] = NO_ROW
        for slot in sorted(apart, key=headers.order()):
            ns = headers.ns(slot)
            caller = self._caller(slot) if ns else NO_ROW
            origin = links.slot(origins[slot]) if slot in origins else NO_ROW
            if origin >= 0 and (origin == slot or not self._forked_beside(slot, origin)):
                origin = NO_ROW
            if origin >= 0 and headers.ns(origin) == ns:
                links.drawn_from[slot] = origin
            elif links.parent[slot] >= 0:
                links.drawn_from[slot] = links.parent[slot]
            else:  # a fork inside a subgraph stands below the row that calls it now, not below its origin
                links.drawn_from[slot] = caller if caller >= 0 else origin

    def _forked_beside(self, slot: int, origin: int) -> bool:
        """A copy hangs from its origin; guards against records that would make a loop."""
        drawn_from, parent = self._links.drawn_from, self._links.parent
        at = origin
        for _ in range(len(self._links)):
            if at < 0:
                return True
            if at == slot:
                return False
            at = drawn_from[at] if drawn_from[at] >= 0 else parent[at]
        return False

    def _caller(self, slot: int) -> int:
        """The row of the enclosing namespace whose task ran this subgraph; NO_ROW when it cannot be found."""
        links, headers = self._links, self._links.headers
        ns = headers.ns(slot)
        known = self._namespace_caller.get(ns)
        if known is not None:
            return known
        around = enclosing(ns)
        task = ns_task_id(ns)
        key = self.facts.callers.get(task) if task else None
        caller = links.slot(key) if key is not None and key[0] in around else NO_ROW
        if caller < 0:
            parents = self._parents_of(self._address(slot)) if self._parents_of is not None else {}
            for outer in around:  # a call inside an entrypoint has a namespace around it that holds no checkpoint
                named = parents.get(outer)
                if isinstance(named, str):  # not there yet: the row to wait for, rather than one farther out
                    caller = links.slot((outer, named))
                    break
        if caller >= 0 and caller != slot:
            self._namespace_caller[ns] = caller
            self._take_loose(ns, caller)
        return caller

    def _take_loose(self, ns: str, caller: int) -> None:
        """Rows of a subgraph that came before its caller's stand below it from now on; they keep their numbers."""
        for slot in self._loose.pop(ns, ()):
            self._links.take_inner(caller, slot)
            if self._links.drawn_from[slot] < 0:
                self._links.drawn_from[slot] = caller

    # ------------------------------------------------------------------ numbers, order, head

    def _give_number(self, slot: int) -> None:
        links, numbering = self._links, self._numbering
        ns = links.headers.ns(slot)
        of_scratch = self._is_of_scratch(slot)
        holder = self._namespace_caller.get(ns, NO_ROW) if ns else NO_ROW
        if holder < 0 and ns:
            self._loose.setdefault(ns, []).append(slot)
        held = numbering.held.pop(links.headers.key(slot), None) if numbering.held else None
        if held is not None:
            number, count = held
            if count or slot in links.inner_count:
                links.inner_count[slot] = count
            if holder >= 0:
                links.take_inner(holder, slot)
        elif holder >= 0 and not (of_scratch and not self._is_of_scratch(holder)):
            count = links.inner_count[holder] = links.inner_count.get(holder, 0) + 1
            links.take_inner(holder, slot)
            number = f"{links.number(holder)}.{count}"
        elif of_scratch:
            numbering.counters["scratch"] += 1
            number = f"s{numbering.counters['scratch']}"
            if holder >= 0:
                links.take_inner(holder, slot)
        else:
            numbering.go_on(links, range(slot, slot + 1))
            return
        numbering.name(links, slot, number)

    def _is_of_scratch(self, slot: int) -> bool:
        """Whether it is numbered with the rows of the scratch file: one that was promoted still is."""
        headers, promoted = self._links.headers, self.facts.promoted
        return headers.origin(slot) == "scratch" or bool(promoted and headers.key(slot) in promoted)

    def _lay_out(self) -> None:
        self._lanes = lay_out(self._links, self._numbering.tops(self._links))

    def _append(self, slot: int) -> bool:
        """Show a row behind all others; False when all are to be laid out anew."""
        links, at = self._links, len(self._links.order)
        parent, goes_on = line(links, slot, at)
        if at and not self._lanes.append(parent, goes_on):
            return False
        if not at:
            self._lanes = Lanes.build([-1], [False])
        links.order.append(slot)
        links.index[slot] = at
        return True

    def _find_head(self, fresh: range) -> None:
        """LangGraph resumes the largest id of the root namespace; scratch rows count only where the base has none."""
        best, headers = (False, ""), self._links.headers
        if self.head is not None:
            best = (headers.origin(headers.find("", self.head.checkpoint_id)) == "base", self.head.checkpoint_id)
        for origin in ("base", "scratch"):
            top = headers.largest("", origin, fresh)
            if top is not None and (self.head is None or (origin == "base", top) > best):
                best = (origin == "base", top)
                self.head = Address(self.thread_id, "", top)

    def _address(self, slot: int) -> Address:
        return Address(self.thread_id, *self._links.headers.key(slot))
