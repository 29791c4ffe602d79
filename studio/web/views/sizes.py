"""Sizes in the State tab: bytes of each channel beside its value, and what grew on the branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from studio import tagged
from studio.growing import Compared, Growth
from studio.render import gate, labels
from studio.render import sizes as words
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views.values import Node

WIDTH, HEIGHT = 560, 64
BAR, BAR_HEIGHT = 12, 18
MOST_CHANNELS = 12


@dataclass(frozen=True, slots=True)
class SizesView:
    total: str
    parts: str
    """What beside the channels makes up the checkpoint."""
    sorted: bool
    sort_href: str
    growth_href: str


@dataclass(frozen=True, slots=True)
class Bar:
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class ChannelGrowth:
    name: str
    href: str
    size: str
    grew: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class GrowthView:
    thread: str
    branch: str
    points: str
    """Corners of the line, as SVG writes them."""
    area: str
    first: str
    last: str
    channels: tuple[ChannelGrowth, ...]
    more: int
    since: str
    width: int = WIDTH
    height: int = HEIGHT


def sizes_view(found: Compared, place: Place) -> SizesView:
    here = found.here
    parts = [f"{labels.size(sum(here.channels.values()))} in channels"]
    if here.scheduling:
        parts.append(f"{labels.size(sum(here.scheduling.values()))} in scheduling channels")
    parts.append(f"{labels.size(here.rest)} names, versions and metadata")
    by_size = place.sort == "size"
    return SizesView(
        total=labels.size(here.total),
        parts=", ".join(parts) if here.is_readable else "the record cannot be read",
        sorted=by_size,
        sort_href=place.to(sort=None if by_size else "size").url(),
        growth_href=place.url("growth"),
    )


def ordered(values: Mapping[str, object], found: Compared) -> dict[str, object]:
    """State values, largest first; those that this checkpoint does not hold itself come last."""
    names = [name for name in found.by_size() if name in values]
    return {name: values[name] for name in (*names, *(name for name in values if name not in found.here.channels))}


def sized(node: Node, found: Compared) -> Node:
    """A channel's line with its bytes, its share and its growth."""
    (channel,) = tagged.split_path(node.path) or [""]
    size = found.here.channels.get(channel)
    if size is None:
        return node
    share = words.percent(found.share(channel))
    return replace(node, size=labels.size(size), share=share, grew=words.grown(found.grew(channel)))


def growth_view(found: Growth, tree: CheckpointTree, place: Place) -> GrowthView:
    written = "" if found.write_bytes is None else f" and {labels.size(found.write_bytes)} in writes"
    sizes = [size for _, size in found.points]
    corners = _corners(sizes)
    first = tree.number(found.opened[0]) if found.opened else ""
    return GrowthView(
        thread=f"{labels.size(found.checkpoint_bytes)} in {labels.plural(found.checkpoints, 'checkpoint')}{written}",
        branch=f"#{tree.number(found.points[0][0])} to #{tree.number(found.points[-1][0])}" if found.points else "",
        points=" ".join(f"{x},{y}" for x, y in corners),
        area=f"0,{HEIGHT} " + " ".join(f"{x},{y}" for x, y in corners) + f" {corners[-1][0]},{HEIGHT}" if corners else "",
        first=labels.size(sizes[0]) if sizes else "",
        last=labels.size(sizes[-1]) if sizes else "",
        channels=tuple(
            ChannelGrowth(
                name=gate.line(name, 60),
                href=place.to(tab="state", path=tagged.join_path([name])).url(),
                size=labels.size(steps[-1]),
                grew=words.grown(steps[-1] - steps[0]) if len(steps) > 1 else "",
                bars=_bars(steps),
            )
            for name, steps in found.channels[:MOST_CHANNELS]
        ),
        more=max(0, len(found.channels) - MOST_CHANNELS),
        since=f"since #{first}" if len(found.opened) > 1 else "",
    )


def _corners(sizes: Sequence[int]) -> list[tuple[int, int]]:
    top, last = max(sizes, default=0) or 1, max(1, len(sizes) - 1)
    return [(index * WIDTH // last, HEIGHT - 2 - (HEIGHT - 6) * size // top) for index, size in enumerate(sizes)]


def _bars(steps: Sequence[int]) -> tuple[Bar, ...]:
    top = max(steps, default=0) or 1
    heights = [max(1, BAR_HEIGHT * size // top) if size else 0 for size in steps]
    return tuple(Bar(index * BAR, BAR_HEIGHT - height, height) for index, height in enumerate(heights))
