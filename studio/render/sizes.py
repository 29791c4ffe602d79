"""Sizes of channels as lines of text: bytes, share, a bar, what grew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from studio.render import labels

SPARKS = "▁▂▃▄▅▆▇█"
MOST = 200


class HasSizes(Protocol):
    """`studio.growing.Compared`."""

    @property
    def here(self) -> HasBytes: ...

    def grew(self, channel: str) -> int | None: ...
    def share(self, channel: str) -> float: ...
    def by_size(self) -> list[str]: ...


class HasBytes(Protocol):
    @property
    def total(self) -> int: ...
    @property
    def channels(self) -> dict[str, int]: ...
    @property
    def scheduling(self) -> dict[str, int]: ...
    @property
    def rest(self) -> int: ...
    @property
    def is_readable(self) -> bool: ...


class Line(Struct, frozen=True):
    name: str
    size: str
    share: str
    bar: str
    grew: str


def lines(found: HasSizes, *, bar: int, names: int = MOST) -> Iterator[Line]:
    """The state channels, largest first, at most `names`; then the scheduling channels, the record around them, and all of it."""
    here = found.here
    ordered = found.by_size()
    for name in ordered[:names]:
        yield _line(name, here.channels[name], found.share(name), bar, grown(found.grew(name)))
    if len(ordered) > names:
        rest = sum(here.channels[name] for name in ordered[names:])
        yield _line(labels.plural(len(ordered) - names, "more channel"), rest, _part(rest, here.total), bar, "")
    if here.scheduling:
        size = sum(here.scheduling.values())
        yield _line(labels.plural(len(here.scheduling), "scheduling channel"), size, _part(size, here.total), bar, "")
    around = "names, versions and metadata" if here.is_readable else "a record that cannot be read"
    yield _line(around, here.rest, _part(here.rest, here.total), bar, "")
    yield Line("the whole checkpoint", labels.size(here.total), "", "", "")


def _line(name: str, size: int, share: float, bar: int, grew: str) -> Line:
    return Line(name, labels.size(size), percent(share), "█" * round(share * bar), grew)


def _part(size: int, total: int) -> float:
    return size / total if total else 0.0


def percent(share: float) -> str:
    """`34 %`, `<1 %`; empty for nothing."""
    return "" if share <= 0 else "<1 %" if share < 0.01 else f"{share * 100:.0f} %"


def grown(by: int | None) -> str:
    """`+1.2 KB`, `−40 B`; empty where nothing changed or nothing is known."""
    return "" if not by else ("+" if by > 0 else "−") + labels.size(abs(by))


def spark(sizes: Sequence[int], width: int = 60) -> str:
    """A line of small bars, from zero to the largest of the sizes."""
    top = max(sizes, default=0)
    return "".join(SPARKS[min(7, size * 8 // (top + 1))] for size in sizes[-width:])
