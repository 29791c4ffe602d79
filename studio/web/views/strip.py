"""The strip of tokens over a transcript: a bar for each turn, as high as what the model saw, the turn in view lit."""

from __future__ import annotations

from dataclasses import dataclass

from studio import reading, wording
from studio.model import Address
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place

WIDTH, HEIGHT = 960, 30
MOST = 160
GAP = 1


@dataclass(frozen=True, slots=True)
class BarView:
    x: float
    width: float
    cached_y: float
    cached: float
    fresh_y: float
    fresh: float
    out_y: float
    out: float
    title: str
    href: str
    here: bool
    later: bool
    compacted: bool


@dataclass(frozen=True, slots=True)
class StripView:
    bars: tuple[BarView, ...]
    totals: tuple[tuple[str, str], ...]
    title: str
    width: int = WIDTH
    height: int = HEIGHT


def strip_view(session: Session, tree: CheckpointTree, place: Place, address: Address) -> StripView | None:
    branch = session.branch(address)
    found = reading.strip(branch, MOST) if branch is not None else None
    if found is None or not found.bars:
        return None
    step = min(18.0, WIDTH / len(found.bars))
    most = max(1, found.most)
    bars = []
    for at, bar in enumerate(found.bars):
        scale = (HEIGHT - 4) / most
        cached = bar.tokens.cache_read * scale
        fresh = (bar.tokens.input + bar.tokens.cache_creation) * scale
        out = max(1.5, bar.tokens.output * scale) if bar.tokens.output else 0.0
        top = max(0.0, HEIGHT - cached - fresh - out)
        number = tree.number(bar.address)
        what = f"context {wording.token_words(bar.tokens.context)} · output {wording.token_words(bar.tokens.output)}"
        several = f" · highest of {bar.turns} turns" if bar.turns > 1 else ""
        bars.append(
            BarView(
                x=round(at * step, 2),
                width=round(max(1.0, step - GAP), 2),
                cached_y=round(HEIGHT - cached, 2),
                cached=round(cached, 2),
                fresh_y=round(HEIGHT - cached - fresh, 2),
                fresh=round(fresh, 2),
                out_y=round(top, 2),
                out=round(out, 2),
                title=f"#{number} · {'compacted' if bar.compacted else what}{several}",
                href=place.at_address(bar.address, path=None).url(),
                here=at == found.here,
                later=at > found.here,
                compacted=bar.compacted,
            )
        )
    return StripView(
        tuple(bars),
        tuple(wording.total_words(found.total, found.context, found.cost)),
        "Tokens of each turn: what came from the cache, what was new, the answer. Totals of this branch up to here.",
        width=round(step * len(found.bars)) if len(found.bars) else WIDTH,
    )
