"""The timeline: rows of 40 px in chunks of 200, each with its own small drawing of lanes, bends and a status shape.

A lane belongs to a chain of rows from the row it branched off to its last row (`studio.history.lanes`). What is drawn in a
row follows from this row and its two neighbours alone, so any window of a million rows costs the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from studio.history.walk import leaves
from studio.model import Address, Problem, Row
from studio.render import explained, gate, labels
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.wording import RowWords

CHUNK = 200
ROW_HEIGHT = 40
MIDDLE = ROW_HEIGHT // 2
LEFT = 16
"""Centre of lane 0 from the left edge."""
MOST_CHIPS = 3
ROW_ROOM = 345
"""Pixels for lanes, title, badges and chips in a row of an ordinary window; in a narrower one chips are cut, not dropped."""
MORE_ROOM = 24
"""Pixels of the count of channels without a chip."""
SOURCES = {"loop": "superstep", "input": "input", "update": "update_state", "fork": "fork"}


OUTSIDE_BADGE = ("≠ outside its writes", "wait")
Outside = Callable[[Address], tuple[str, ...]]
"""Checkpoint -> channels that changed outside their writes, as far as somebody has looked."""


Words = Callable[[Address], RowWords | None]
"""Turn of a transcript -> what its row says beside its title."""
QUIET = frozenset(("messages", "tokens", "context_tokens", "cost_usd"))
"""Channels that nearly every turn of a transcript writes: no news in a row."""


def no_channels(_address: Address) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line or bend as an SVG path; `kind` is main, sub or fork; dashed in the scratch file."""

    d: str
    kind: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """The status: dot, square, hollow, cross."""

    form: str
    kind: str
    x: int
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class RowView:
    dom_id: str
    href: str
    number: str
    title: str
    subtitle: str
    badges: tuple[tuple[str, str], ...]
    """(text, kind) with kind head, wait, fail, fork, mark."""
    chips: tuple[str, ...]
    more_chips: int
    """Channels without a chip, because there is no room for it."""
    channels: str
    """All of them, in words."""
    gap: str
    when: str
    iso: str
    level: int
    position: int
    size: int
    selected: bool
    strokes: tuple[Stroke, ...]
    shape: Shape
    status: str
    words: str = ""
    """Of a turn of a transcript: its first words, or what its first call is about."""
    count: str = ""
    is_prompt: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    start: int
    count: int
    rows: tuple[RowView, ...] | None
    """None = not loaded yet: a placeholder of the same height."""
    href: str

    @property
    def height(self) -> int:
        return self.count * ROW_HEIGHT


@dataclass(frozen=True, slots=True)
class Timeline:
    summary: str
    chunks: tuple[Chunk, ...]
    width: int
    href: str
    """Fragment that draws the timeline again."""
    total: int
    problems: tuple[str, ...]
    height: int = ROW_HEIGHT


def lane_step(lane_count: int) -> int:
    """Distance of two lanes in pixels; many lanes are drawn closer together."""
    return 16 if lane_count <= 7 else max(4, 112 // lane_count)


def lane_width(lane_count: int) -> int:
    return 2 * LEFT + min(max(0, lane_count - 1), 40) * lane_step(lane_count)


def timeline(
    tree: CheckpointTree,
    place: Place,
    visible: Sequence[int] = (),
    of_file: Sequence[Problem] = (),
    outside: Outside = no_channels,
    words: Words | None = None,
) -> Timeline:
    """The whole timeline with only the chunks filled that hold the cursor or a visible row. Of the file's problems, those that do
    not concern another thread."""
    total = len(tree)
    cursor = tree.index(place.address) if place.at and place.address in tree else 0
    wanted = {cursor // CHUNK, *(index // CHUNK for index in visible)}
    chunks = tuple(
        chunk(tree, place, start, load=start // CHUNK in wanted, outside=outside, words=words) for start in range(0, total, CHUNK)
    )
    return Timeline(
        summary=_summary(tree),
        chunks=chunks,
        width=lane_width(tree.lane_count),
        href=place.to(at=None, path=None, tab="changes").url("timeline"),
        total=total,
        problems=tuple(
            labels.problem_text(problem)
            for problem in (*tree.problems, *(one for one in of_file if _concerns(one, place.thread)))
        ),
    )


def _concerns(problem: Problem, thread_id: str | None) -> bool:
    where = problem.where
    return not where.startswith("thread ") or where == f"thread {thread_id}" or where.startswith(f"thread {thread_id}, ")


def _summary(tree: CheckpointTree) -> str:
    inner = sum(1 for name in tree.namespaces if name)
    inside = f", {tree.inner_count:,} in {labels.plural(inner, 'subgraph')}" if inner else ""
    parts = [labels.plural(len(tree), "checkpoint") + inside]
    branches = len(leaves(tree))
    if branches > 1:
        parts.append(labels.plural(branches, "branch"))
    return " · ".join(parts)


def chunk(
    tree: CheckpointTree,
    place: Place,
    start: int,
    *,
    load: bool = True,
    outside: Outside = no_channels,
    words: Words | None = None,
) -> Chunk:
    count = min(CHUNK, len(tree) - start)
    link = place.to(at=None, ns="", path=None, tab="changes").url("rows", [("start", str(start))])
    return Chunk(start, count, _rows(tree, place, start, start + count, outside, words) if load else None, link)


def _rows(
    tree: CheckpointTree, place: Place, start: int, stop: int, outside: Outside, words: Words | None
) -> tuple[RowView, ...]:
    low = max(0, start - 1)
    rows = tree.rows(low, stop + 1)
    pen = _Pen(rows, tree.lane_count)
    found = (_row(tree, place, rows, index, low, pen, outside) for index in range(start - low, min(stop - low, len(rows))))
    if words is None:
        return tuple(found)
    return tuple(_turn(view, rows[at], words(rows[at].checkpoint.address)) for at, view in enumerate(found, start - low))


def _row(tree: CheckpointTree, place: Place, rows: Sequence[Row], index: int, low: int, pen: _Pen, outside: Outside) -> RowView:
    row = rows[index]
    address = row.checkpoint.address
    selected = address == place.address
    chips = _chips(row, tree.lane_count)
    return RowView(
        dom_id="cp-" + _short(f"{address.checkpoint_ns} {address.checkpoint_id}"),
        href=Place(place.file).at_address(address).url(),
        number=row.number,
        title=gate.line(row.label, 80),
        subtitle=_subtitle(row),
        badges=badges(row) + ((OUTSIDE_BADGE,) if outside(address) else ()),
        chips=chips,
        more_chips=len(row.channels) - len(chips),
        channels=gate.line(", ".join(row.channels), 300),
        gap="" if row.origin_checkpoint_id is not None else labels.duration(row.seconds),
        when=labels.when(row.checkpoint.created_at) + " UTC",
        iso=row.checkpoint.created_at or "",
        level=row.depth + 1,
        position=low + index + 1,
        size=len(tree),
        selected=selected,
        strokes=pen.strokes(index),
        shape=pen.shape(index),
        status=labels.status_word(row.status) if row.status else "",
    )


def _turn(view: RowView, row: Row, said: RowWords | None) -> RowView:
    """A row of a transcript: who it was and what was said in place of the channels that every turn writes."""
    if said is None:
        return view
    badges_ = [badge for badge in view.badges if badge[0] != "failed"]
    if said.badge:
        badges_.append((said.badge, said.badge_kind))
    elif row.status == "failed":
        badges_.append(("failed", "fail"))
    if row.is_leaf and not row.is_head and not row.depth:
        badges_.append(("abandoned", "left"))
    news = [gate.line(name, 22) for name in row.channels if name not in QUIET]
    plain = said.words and view.title in ("prompt", "context", "answer")
    title = "" if plain else view.title
    who = "" if title and said.who == "assistant" else view.title if plain and not row.depth else said.who
    facts = [f"#{view.number}", *([who] if who else []), *([] if row.checkpoint.parent_checkpoint_id is None else news[:3])]
    return replace(
        view,
        title=title,
        words=said.words,
        subtitle=" · ".join(facts),
        badges=tuple(badges_),
        chips=(),
        more_chips=0,
        count=said.count,
        is_prompt=view.title == "prompt",
    )


def _chips(row: Row, lane_count: int) -> tuple[str, ...]:
    """Names of written channels, as many as fit beside the row's title and badges."""
    badge_room = sum(24 + 6 * len(text) for text, _ in badges(row))
    room = ROW_ROOM - lane_width(lane_count) - badge_room - int(7.6 * len(row.label))
    found: list[str] = []
    for channel in row.channels[:MOST_CHIPS]:
        name = gate.line(channel, 22)
        room -= 17 + int(6.6 * len(name))
        if room < (0 if len(found) + 1 == len(row.channels) else MORE_ROOM):
            break
        found.append(name)
    return tuple(found)


def _short(name: str) -> str:
    """A name for an element that stays the same while rows come in between."""
    return hashlib.blake2s(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _subtitle(row: Row) -> str:
    number = f"#{row.number}"
    if row.checkpoint.origin == "scratch" and row.origin_checkpoint_id is not None:
        return f"{number} · fork of #{row.parent_number}" if row.parent_number else f"{number} · fork"
    source = SOURCES.get(row.checkpoint.source or "", row.checkpoint.source or "?")
    if row.depth and source == "superstep":
        source = "subgraph"
    cipher = " · encrypted" if row.checkpoint.encrypted else ""
    gap = explained.gap_short(row)
    return gate.line(f"{number} · {source}{cipher}" + (f" · {gap}" if gap else ""), 80)


def badges(row: Row) -> tuple[tuple[str, str], ...]:
    """What a person must know about a row without opening it."""
    out: list[tuple[str, str]] = []
    if row.origin_checkpoint_id is not None:
        out.append(("fork", "fork"))
    if row.status == "paused":
        out.append(("waiting", "wait"))
    elif row.status == "answered":
        out.append(("asked → answered", "wait"))
    elif row.status == "failed":
        out.append(("failed", "fail"))
    if row.is_head:
        out.append(("head", "head"))
    return tuple(out)


def kind_of(row: Row) -> str:
    """The colour of a row's lane: a subgraph, a branch beside the main line, or the main line."""
    if row.depth:
        return "sub"
    return "fork" if row.lane or row.checkpoint.origin == "scratch" or row.origin_checkpoint_id is not None else "main"


class _Pen:
    """Draws the lanes of a window of rows."""

    def __init__(self, rows: Sequence[Row], lane_count: int) -> None:
        self.rows = rows
        self.step = lane_step(lane_count)

    def x(self, lane: int) -> int:
        return LEFT + min(lane, 40) * self.step

    def shape(self, index: int) -> Shape:
        row = self.rows[index]
        forms = {"paused": "square", "answered": "square", "failed": "cross", "unknown": "hollow"}
        form = forms.get(row.status or "", "dot")
        kind = {"square": "wait", "cross": "fail"}.get(form, kind_of(row))
        return Shape(form, kind, self.x(row.lane), row.checkpoint.origin == "scratch" and row.origin_checkpoint_id is not None)

    def strokes(self, index: int) -> tuple[Stroke, ...]:
        row = self.rows[index]
        above = self.rows[index - 1] if index else None
        below = self.rows[index + 1] if index + 1 < len(self.rows) else None
        out: list[Stroke] = []
        for lane in sorted(row.lanes):
            kind, dashed = self._look(lane, index)
            x = self.x(lane)
            came = above is not None and lane in above.lanes and not self._ends(above, lane)
            if lane == row.lane:
                goes = below is not None and lane in below.lanes and not self._ends(row, lane)
                top, bottom = (0 if came else MIDDLE), (ROW_HEIGHT if goes else MIDDLE)
                if top != bottom:
                    out.append(Stroke(f"M{x} {top}V{bottom}", kind, dashed))
                if not goes and row.depth:
                    out += self._rejoin(index)
            elif came:
                out.append(Stroke(f"M{x} 0V{ROW_HEIGHT}", kind, dashed))
            else:  # a lane that branches off here
                start, bend = self.x(row.lane), ROW_HEIGHT - 4
                out.append(Stroke(f"M{start} {MIDDLE}C{start} {bend} {x} {MIDDLE + 4} {x} {ROW_HEIGHT}", kind, dashed))
        return tuple(out)

    def _rejoin(self, index: int) -> list[Stroke]:
        """The end of a finished subgraph leads back into the line of the row that called it."""
        row = self.rows[index]
        if row.status not in ("done", "ran", "answered"):
            return []
        for other in reversed(self.rows[:index]):
            if other.depth < row.depth and row.parent_lane is None and other.lane < row.lane and other.lane in row.lanes:
                x, to = self.x(row.lane), self.x(other.lane)
                return [
                    Stroke(
                        f"M{x} {MIDDLE}C{x} {ROW_HEIGHT} {to} {MIDDLE} {to} {ROW_HEIGHT}",
                        kind_of(row),
                        row.checkpoint.origin == "scratch",
                    )
                ]
        return []

    @staticmethod
    def _ends(row: Row, lane: int) -> bool:
        return row.lane == lane and row.is_leaf

    def _look(self, lane: int, index: int) -> tuple[str, bool]:
        """Kind and dashes of a lane at a row: those of the row on it that comes next, else of the last one."""
        for row in (*self.rows[index:], *reversed(self.rows[:index])):
            if row.lane == lane:
                return kind_of(row), row.checkpoint.origin == "scratch"
        return ("fork" if lane else "main"), False
