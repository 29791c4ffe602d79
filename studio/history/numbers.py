"""The numbers of a tree's rows without the tree: small enough to be kept for every thread that was shown."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

from studio.history.facts import Key
from studio.history.node import Links
from studio.history.packed import mark_of


class Numbers:
    """Which number each row has, some 20 bytes a row; rows are told by the hashes of their keys."""

    __slots__ = ("_hashes", "_inner", "_numbers", "counters")

    def __init__(self, links: Links, counters: Mapping[str, int]) -> None:
        """`counters`: how many rows had a number of their own, by origin."""
        mark = links.headers.mark
        self._hashes = array("q", map(mark, range(len(links))))
        named = links.numbers or any(number != slot for slot, number in enumerate(links.places))
        self._numbers = " ".join(map(links.number, range(len(links)))) if named else None
        """None: each has its place as its number."""
        self._inner = {mark(slot): count for slot, count in links.inner_count.items() if count}
        self.counters = dict(counters)

    def of(self, keys: Iterable[Key]) -> dict[Key, tuple[str, int]]:
        """(number, count of inner rows) of those among the keys that had one."""
        texts = self._numbers.split(" ") if self._numbers is not None else map(str, range(len(self._hashes)))
        numbers = dict(zip(self._hashes, texts, strict=True)) if self._hashes else {}
        wanted = ((key, mark_of(key)) for key in keys)
        return {key: (numbers[mark], self._inner.get(mark, 0)) for key, mark in wanted if mark in numbers}

    def come_by_themselves(self, marks: array[int]) -> bool:
        """Whether rows with these hashes, numbered in their order from 0, get their numbers again."""
        count = len(self._hashes)
        if self._numbers is not None or self._inner or self.counters["scratch"] or self.counters["base"] != count:
            return False
        return len(marks) >= count and self._hashes == marks[:count]
