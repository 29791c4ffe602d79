"""The numbers of a tree's rows without the tree: small enough to be kept for every thread that was shown."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

from studio.history.facts import Key
from studio.history.node import Node


class Numbers:
    """Which number each row has, some 20 bytes a row; rows are told by the hashes of their keys."""

    __slots__ = ("_hashes", "_inner", "_numbers", "counters")

    def __init__(self, nodes: Iterable[Node], counters: Mapping[str, int]) -> None:
        """`counters`: how many rows had a number of their own, by origin."""
        known = list(nodes)
        self._hashes = array("q", (hash(node.key) for node in known))
        self._numbers = " ".join(node.number for node in known)
        self._inner = {hash(node.key): node.inner_count for node in known if node.inner_count}
        self.counters = dict(counters)

    def of(self, keys: Iterable[Key]) -> dict[Key, tuple[str, int]]:
        """(number, count of inner rows) of those among the keys that had one."""
        numbers = dict(zip(self._hashes, self._numbers.split(" "), strict=True)) if self._hashes else {}
        wanted = ((key, hash(key)) for key in keys)
        return {key: (numbers[mark], self._inner.get(mark, 0)) for key, mark in wanted if mark in numbers}

    def come_by_themselves(self, keys: Sequence[Key]) -> bool:
        """Whether rows that are numbered in the order of these keys, from 0, get their numbers again."""
        count = len(self._hashes)
        if self._inner or self.counters["scratch"] or self.counters["base"] != count or len(keys) < count:
            return False
        if self._hashes != array("q", (hash(key) for key in keys[:count])):
            return False
        return self._numbers == " ".join(map(str, range(count)))
