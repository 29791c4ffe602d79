"""The parts of two branches side by side as lines: in two columns with a sign between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from textual.content import Content

from studio import beside
from studio.beside import SIGNS, WORDS, How, Parts
from studio.branches import Branches, StepPair, Wrote, wrote
from studio.chats import MessagePair
from studio.model import Address, Value
from studio.render import gate, labels, masking, preview
from studio.tui import draw, lanes
from studio.tui.lines import BLANK, Line
from studio.tui.panes import changes

if TYPE_CHECKING:
    from studio.session import Session

PAGE = 120
"""Supersteps or messages that are drawn at once; what is folded counts as one."""
MOST_VALUES = 5
MOST_TEXT = 2_000
MORE = "/…"
"""The path of the line that draws more."""
STYLES: dict[How, str] = {
    "same": "$success",
    "changed": "$wait bold",
    "left": "$lane-main",
    "right": "$lane-fork",
    "unread": "$faint",
}
Cells = list[Content]
"""The rows of one side of a pair."""


@dataclass(frozen=True, slots=True)
class PairLine(Line):
    """The first line of a pair of supersteps: both checkpoints, where they are there."""

    at_left: Address | None = None
    at_right: Address | None = None


@dataclass(frozen=True, slots=True)
class MoreLine(Line):
    """Draws what stands from `start` on."""

    start: int = 0


def build(session: Session, found: Branches, part: str, start: int, width: int) -> tuple[Line, ...]:
    """The lines of a part, `width` cells wide; a page of them from the pair `start` on. Raises StudioError."""
    if part == "ends":
        return tuple(_ends(session, found))
    return tuple(_steps(session, found, start, width) if part == "steps" else _chats(session, found, start, width))


def end(session: Session, found: Branches, side: int, chosen: int, pinned: Address | None) -> Content:
    """One of the two ends in a line."""
    address = (found.left if side < 0 else found.right).checkpoint.address
    other = (found.right if side < 0 else found.left).checkpoint.address
    word, style = ("◂ left ", "$lane-main") if side < 0 else ("▸ right", "$lane-fork")
    row = session.row(address)
    facts = [*(["pinned"] if address == pinned else []), *(["head"] if row.is_head else [])]
    facts += [f"in thread {gate.line(address.thread_id, 40)}"] if address.thread_id != other.thread_id else []
    shown = Content.assemble((f"{word} ", f"{style} bold"), (f"{draw.number(row)} ", "$quiet"), (draw.title(row, 44), "bold"))
    shown = shown + draw.own("".join(f" · {fact}" for fact in facts), "$primary")
    return shown + draw.own("   enter goes to this side", "$faint") if side == chosen else shown


def first_difference(session: Session, found: Branches) -> Content:
    if found.first is None:
        if any(beside.how_of(pair) == "unread" for pair in found.steps):
            return draw.own("No superstep that was compared differs; some cannot be.", "$wait")
        same = not found.ends.changes and not found.ends.closed
        return draw.own("No difference: both did the same." if same else "No superstep differs.", "$success")
    pair = found.steps[found.first]
    head = draw.own("First difference ", "$wait bold")
    if pair.left is None or pair.right is None:
        at = pair.left or pair.right
        assert at is not None
        return head + draw.own(f"{WORDS[beside.how_of(pair)]} {beside.named(session, at)}")
    head = head + draw.own(f"{beside.named(session, pair.left)} | {beside.named(session, pair.right)}")
    if pair.path is None:
        return head
    values = [draw.value(pair.path, value, 40, show_secrets=session.show_secrets) for value in (pair.before, pair.after)]
    where = draw.text(pair.path, "$quiet", 60)
    return head + Content("\n  ") + where + Content("  ") + draw.old(values[0]) + Content(" ") + draw.new(values[1])


def _page(
    hows: Sequence[How], start: int, single: Callable[[int], list[Line]], fold: Callable[[How, int, int], Line]
) -> list[Line]:
    lines: list[Line] = []
    shown, at = 0, start
    for how, first, last in beside.stretches(hows[start:]):
        if shown >= PAGE:
            break
        first, at, shown = start + first, start + last, shown + 1
        lines += single(first) if at - first == 1 else [fold(how, first, at)]
    if at < len(hows):
        lines.append(MoreLine(draw.own(f"▾ {len(hows) - at:,} more, enter shows them", "$primary"), 1, path=MORE, start=at))
    return lines


def _columns(left: Cells, right: Cells, how: How, width: int) -> list[Content]:
    """Both sides in rows of equal width, with the sign in the first one."""
    column = (width - 5) // 2
    rows = []
    for index, (one, other) in enumerate(zip_longest(left, right, fillvalue=Content(""))):
        cell = one.truncate(column, ellipsis=True)
        sign = draw.own(f" {SIGNS[how]} ", STYLES[how]) if not index else draw.own(" │ ", "$line")
        rows.append(cell + Content(" " * (column - cell.cell_length)) + sign + other.truncate(column, ellipsis=True))
    return rows


# ------------------------------------------------------------------ supersteps


def _steps(session: Session, found: Branches, start: int, width: int) -> list[Line]:
    hows = [beside.how_of(pair) for pair in found.steps]

    def single(at: int) -> list[Line]:
        return _pair(session, found.steps[at], hows[at], width)

    def fold(how: How, first: int, last: int) -> Line:
        pairs = found.steps[first:last]
        names = labels.names([session.row(pair.right).label for pair in pairs[:60] if pair.right is not None])
        word = "did the same" if how == "same" else "are not compared"
        head = draw.own(f"▸ {labels.plural(last - first, 'superstep')} {word}", "$quiet") + draw.own(
            f"  {gate.line(names, 100)}", "$faint"
        )
        return Line(head, 1, nowrap=True, folded=tuple(line for pair in pairs for line in _pair(session, pair, how, width)))

    lines = _page(hows, start, single, fold)
    if found.cut and not any(isinstance(line, MoreLine) for line in lines):
        lines.append(Line(draw.own(f"{labels.plural(found.cut, 'more superstep')} not aligned", "$faint"), 1))
    return lines or [Line(draw.own("Neither went on from where they part.", "$quiet"), 1)]


def _pair(session: Session, pair: StepPair, how: How, width: int) -> list[Line]:
    values = ((), ()) if how in ("same", "unread") else wrote(session, pair)
    left = _cell(session, pair.left, values[0], how, is_left=True)
    right = _cell(session, pair.right, values[1], how, is_left=False)
    rows = _columns(left, right, how, width)
    head = PairLine(rows[0], 1, nowrap=True, address=pair.right or pair.left, at_left=pair.left, at_right=pair.right)
    return [head, *(Line(row, 1, nowrap=True) for row in rows[1:])]


def _cell(session: Session, address: Address | None, found: Sequence[Wrote], how: How, *, is_left: bool) -> Cells:
    if address is None:
        return [draw.own("nothing like it", "$faint")]
    row = session.row(address)
    shape, style = lanes.shape(row)
    title = draw.title(row, 60)
    rows = [Content.assemble((f"{shape} ", style), (f"{draw.number(row)} ", "$faint"), (title, "" if how == "same" else "bold"))]
    for one in found[:MOST_VALUES]:
        shown = (
            draw.own("not there", "$faint")
            if one.gone
            else draw.value(one.path, one.value, 100, show_secrets=session.show_secrets)
        )
        plain = one.shared or how != "changed"
        shown = shown.stylize("$faint") if plain else draw.old(shown) if is_left else draw.new(shown)
        rows.append(Content("  ") + draw.text(one.path, "$quiet", 40) + Content(" ") + shown)
    if len(found) > MOST_VALUES:
        rows.append(draw.own(f"  +{len(found) - MOST_VALUES} more", "$faint"))
    return rows


# ------------------------------------------------------------------ ends


def _ends(session: Session, found: Branches) -> list[Line]:
    lines: list[Line] = []
    for one in beside.by_channel(found):
        head = draw.text(one.channel, "bold", 60) + draw.own(
            f"  {labels.plural(len(one.changes), 'difference')}, {one.by}", "$faint"
        )
        drawn = changes.changes(one.changes, None, show_secrets=session.show_secrets, heads=False)
        if one.channel == found.chats.channel:
            lines += [Line(draw.own("▸ ", "$faint") + head + draw.own("  side by side in 3", "$faint"), 1, folded=drawn)]
        else:
            lines += [Line(head, 1), *drawn, BLANK]
    return lines or [Line(draw.own("Both ends hold the same values.", "$quiet"), 1)]


# ------------------------------------------------------------------ chats


def _chats(session: Session, found: Branches, start: int, width: int) -> list[Line]:
    talk = found.chats
    if talk.channel is None:
        return [Line(draw.own("Neither end holds messages.", "$quiet"), 1)]

    def single(at: int) -> list[Line]:
        return _said(session, talk.channel or "", talk.pairs[at], width)

    def fold(how: How, first: int, last: int) -> Line:
        words = draw.own(f"▸ {labels.plural(last - first, 'message')} that both have", "$quiet")
        return Line(words, 1, folded=tuple(line for at in range(first, min(last, first + 400)) for line in single(at)))

    lines = _page([pair.how for pair in talk.pairs], start, single, fold)
    if talk.cut and not any(isinstance(line, MoreLine) for line in lines):
        lines.append(Line(draw.own(f"{labels.plural(talk.cut, 'more message')} not aligned", "$faint"), 1))
    return lines or [Line(draw.own("Neither end holds messages.", "$quiet"), 1)]


def _said(session: Session, channel: str, pair: MessagePair, width: int) -> list[Line]:
    column = (width - 5) // 2
    parts = beside.both_sides(pair, show_secrets=session.show_secrets)
    sides = []
    for at, value, spans in ((pair.left_at, pair.left, parts and parts[0]), (pair.right_at, pair.right, parts and parts[1])):
        if at is None:
            sides.append([draw.own("not said", "$faint")])
        else:
            sides.append([row for one in _message(session, channel, value, spans) for row in one.wrap(column) or [Content("")]])
    rows = _columns(sides[0], sides[1], pair.how, width)
    path = f"/{channel.replace('~', '~0').replace('/', '~1')}/{pair.right_at if pair.right_at is not None else pair.left_at}"
    return [Line(rows[0], 1, nowrap=True, path=path), *(Line(row, 1, nowrap=True) for row in rows[1:]), BLANK]


def _message(session: Session, channel: str, value: Value, spans: Parts | None) -> Cells:
    view = preview.message(value)
    if view is None or (not session.show_secrets and masking.reason_at(f"/{channel}", value) is not None):
        return [draw.value(f"/{channel}", value, 200, show_secrets=session.show_secrets)]
    rows = [draw.own(f"{view.role} · {gate.line(view.name, 40)}" if view.name else view.role, "$primary bold")]
    text = masking.text(view.text, show_secrets=session.show_secrets)
    if spans:
        rows.append(Content("").join([_span(op, piece) for op, piece in spans]))
    elif text:
        rows.append(draw.block(text, limit=MOST_TEXT))
    rows += [draw.own("⚒ " + preview.call_text(call, 300), "$quiet") for call in view.tool_calls]
    return rows


def _span(op: str, piece: str) -> Content:
    shown = gate.clean(piece)
    return Content(shown) if op == "=" else Content.styled(shown, "$old on $old-ground" if op == "-" else "$new on $new-ground")
