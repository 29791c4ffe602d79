"""A list whose items are read when somebody asks for them: the messages of a conversation that is larger than memory should be.

It is a `list`, so that whoever draws a value needs to know no other type. What lies underneath are *marks*, one for each item and
the same for the same item, so that two such lists are compared without reading what they have in common.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import count
from operator import eq
from typing import Any, SupportsIndex, overload


class LazyList(list[Any]):
    """Nobody changes it. A subclass reads the items."""

    @abstractmethod
    def item(self, at: int) -> Any:
        """The item at a place within the list."""

    @abstractmethod
    def source(self) -> object:
        """What gives the marks their meaning: only those of one source can be compared."""

    def marks(self) -> Iterator[Any]:
        return super().__iter__()

    def same_start(self, other: LazyList) -> int:
        """How many items from the first on have the same marks in both."""
        if self.source() is not other.source():
            return 0
        most = min(len(self), len(other))
        return next((at for at, same in zip(count(), map(eq, self.marks(), other.marks()), strict=False) if not same), most)

    @overload
    def __getitem__(self, at: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Any:
        if isinstance(at, slice):
            return [self.item(one) for one in range(*at.indices(len(self)))]
        return self.item(range(len(self))[at])

    def __iter__(self) -> Iterator[Any]:
        return map(self.item, range(len(self)))

    def __reversed__(self) -> Iterator[Any]:
        return map(self.item, range(len(self) - 1, -1, -1))

    def __contains__(self, wanted: object) -> bool:
        return any(one == wanted for one in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and len(self) == len(other) and all(map(eq, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __add__(self, other: list[Any]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self]

    def __repr__(self) -> str:
        return f"<{len(self)} items>"

    def copy(self) -> list[Any]:
        return [*self]

    def index(self, wanted: Any, start: SupportsIndex = 0, stop: SupportsIndex = 2**62) -> int:
        return [*self].index(wanted, start, stop)

    def count(self, wanted: Any) -> int:
        return [*self].count(wanted)
