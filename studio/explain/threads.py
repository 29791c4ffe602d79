"""What the rest of a thread tells about one checkpoint, fetched when first asked for and kept until the store changes.

Nothing here is needed for an ordinary checkpoint of format 3 or later: those explain themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar
from weakref import WeakMethod

from studio.explain.cache import Bounded
from studio.explain.channels import INTERRUPT, RESUME
from studio.explain.interrupts import questions
from studio.explain.learn import EMPTY, learn_others, learn_thread, widened
from studio.explain.rows import group
from studio.explain.schedule import Learned
from studio.history.namespaces import static_ns
from studio.model import Address, Checkpoint, SeenGraph, Value, WriteRow
from studio.stores.base import Store
from studio.stores.chain import Chain, Chained

T = TypeVar("T")

ChildrenOf = Callable[[Address], Sequence[tuple[str, str | None]] | None]


class Threads:
    """Knowledge about whole threads. Thread-safe; each answer is computed at most a few times when asked for at once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.RLock()
        self._cache = Bounded(256)

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            found: T | None = self._cache.get(key)
        if found is None:
            found = make()
            with self._lock:
                self._cache.put(key, found)
        return found

    def children(self, thread_id: str) -> dict[tuple[str, str], list[tuple[str, str | None]]]:
        """(ns, checkpoint id) -> (id, source) of its children: one pass over the headers of a thread."""
        return self._once(("children", thread_id), lambda: by_parent(header for _, header in self.store.checkpoints(thread_id)))

    def note_children(self, thread_id: str, children_of: ChildrenOf) -> None:
        """Take the children of a thread's checkpoints from a method of somebody who knows them anyway, while that one lives.

        It gives None for a checkpoint whose children it does not know.
        """
        with self._lock:
            self._cache.put(("children of", thread_id), WeakMethod(children_of))

    def children_of(self, address: Address) -> Sequence[tuple[str, str | None]]:
        """(id, source) of each child."""
        found = self._told(address)
        if found is not None:
            return found
        return self.children(address.thread_id).get((address.checkpoint_ns, address.checkpoint_id), [])

    def _told(self, address: Address) -> Sequence[tuple[str, str | None]] | None:
        """The same from whoever knows them anyway."""
        with self._lock:
            held: WeakMethod[ChildrenOf] | None = self._cache.get(("children of", address.thread_id))
        known = held() if held is not None else None
        return known(address) if known is not None else None

    def sources_of_children(self, address: Address) -> Sequence[str | None]:
        """The source of each child of a checkpoint that has more than one; () for all others.

        Of a plain chain the store proves that it has none such, without a pass over its headers.
        """
        thread_id = address.thread_id
        children = self._told(address)
        if children is None:
            if not address.checkpoint_ns and self._chain(thread_id) is not None:
                return ()
            children = self.children_of(address)
        return [source for _, source in children] if len(children) > 1 else ()

    def _chain(self, thread_id: str) -> Chain | None:
        """The root checkpoints of a thread where they are proven to be one chain, nothing of it in a scratch file; not asked
        where its headers were read anyway."""
        return self._once(("chain", thread_id), lambda: (self._proven(thread_id),))[0]

    def _proven(self, thread_id: str) -> Chain | None:
        with self._lock:
            if self._cache.get(("children", thread_id)) is not None:
                return None
        proves: Callable[[str], Chained | None] | None = getattr(self.store, "chained", None)
        store = proves(thread_id) if proves is not None else None
        return store.chain(thread_id, 0) if store is not None else None

    def way_down(self, address: Address, most: int) -> list[Address]:
        """Up to `most` checkpoints below one: the first child that a superstep made, its first such child, and so on."""
        chain = self._chain(address.thread_id) if not address.checkpoint_ns else None
        place = chain.index(address.checkpoint_id) if chain is not None else None
        if chain is not None and place is not None:
            ids = [chain[at] for at in range(place + 1, min(place + 1 + most, len(chain)))]
            return [Address(address.thread_id, "", identity) for identity in ids]
        found: list[Address] = []
        here = address
        while len(found) < most:
            children = [identity for identity, source in self.children_of(here) if source == "loop"]
            if not children or any(one.checkpoint_id == children[0] for one in found):
                break
            here = Address(here.thread_id, here.checkpoint_ns, children[0])
            found.append(here)
        return found

    def channels(self, thread_id: str) -> frozenset[str]:
        """All channels that rows of a thread were written to: joins that a checkpoint has not seen yet."""
        return self._once(
            ("channels", thread_id), lambda: frozenset(row.channel for _, row in self.store.write_headers(thread_id)) | {""}
        )

    def answers(self, thread_id: str) -> dict[str, Value]:
        """Question id -> answer, of all questions of a thread whose own task holds the answer."""

        def make() -> dict[str, Value]:
            rows: dict[tuple[str, str], list[WriteRow]] = {}
            for row in self.store.scan_writes(thread_id, [INTERRUPT, RESUME]):
                rows.setdefault((row.checkpoint_ns, row.checkpoint_id), []).append(row)
            found: dict[str, Value] = {}
            for group_rows in rows.values():
                for task in group(group_rows).values():
                    answers = task.resumes()
                    for question in questions(task, None, []) if answers else ():
                        if question.id is not None:
                            found[question.id] = answers[-1]
            return found

        return self._once(("answers", thread_id), make)

    def subgraphs(self, thread_id: str) -> dict[str, tuple[str, ...]]:
        """The namespaces that subgraphs ran in, by what calls them: a task's id, or its whole namespace where the subgraph has
        its own memory and no id stands in the name."""

        def make() -> dict[str, tuple[str, ...]]:
            found: dict[str, list[str]] = {}
            for ns in self.namespaces(thread_id):
                parts = ns.split("|")
                while parts and parts[-1].isdigit():  # a further call in the same task
                    parts.pop()
                ident = parts[-1].rpartition(":")[2] if parts and ":" in parts[-1] else ""
                if ident or parts:
                    found.setdefault(ident or "|".join(parts), []).append(ns)
            return {caller: tuple(sorted(spaces)) for caller, spaces in found.items()}

        return self._once(("subgraphs", thread_id), make)

    def unstored(self, thread_id: str) -> Mapping[str, str]:
        """Namespaces that something names although they hold no checkpoint, with what names them."""

        def make() -> Mapping[str, str]:
            from studio.explain.unstored import implied

            written = getattr(self.store, "written_namespaces", None)
            return implied(self.namespaces(thread_id), written(thread_id) if callable(written) else ())

        return self._once(("unstored", thread_id), make)

    def namespaces(self, thread_id: str) -> tuple[str, ...]:
        direct = getattr(self.store, "namespaces", None)
        if callable(direct):
            return tuple(direct(thread_id))
        return self._once(("namespaces",), self._nested).get(thread_id, ())

    def _nested(self) -> dict[str, tuple[str, ...]]:
        """thread -> its namespaces, for the threads that have more than the root: one pass over the keys of the file."""
        return {keys.thread_id: keys.namespaces for keys in self.store.threads() if any(keys.namespaces)}

    def graphs(self, thread_id: str, make: Callable[[], tuple[SeenGraph, ...]]) -> tuple[SeenGraph, ...]:
        """The graphs that a thread showed; `make` counts them when nobody has yet."""
        return self._once(("graphs", thread_id), make)

    def graphs_known(self, thread_id: str) -> bool:
        with self._lock:
            return self._cache.get(("graphs", thread_id)) is not None

    def learned(self, address: Address) -> Learned:
        """Formats 1 and 2: what the nodes of this checkpoint's graph did in this thread."""
        by_graph = self._once(("learned", address.thread_id), lambda: learn_thread(self.store.scan(address.thread_id)))
        return by_graph.get(static_ns(address.checkpoint_ns), EMPTY)

    def learned_widely(self, address: Address) -> Learned:
        """The same, and what other threads of the file that ran the same graph did."""
        mine, graph = self.learned(address), static_ns(address.checkpoint_ns)
        key = ("others", graph, mine.channels)  # threads of one graph share it: one pass over the others serves a whole list
        return widened(mine, self._once(key, lambda: learn_others(self.store, mine, graph)))


def by_parent(headers: Iterable[Checkpoint]) -> dict[tuple[str, str], list[tuple[str, str | None]]]:
    found: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    for header in headers:
        if header.parent_checkpoint_id:
            key = (header.checkpoint_ns, header.parent_checkpoint_id)
            found.setdefault(key, []).append((header.checkpoint_id, header.source))
    return found
