"""Pieces of text that all panes draw with: every stored text passes the output gate, nothing is parsed as markup."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content

from studio.model import Address, Author, Row, Value
from studio.render import explained, gate, labels, masking, preview
from studio.render.words import word_diff

LONG_TEXT = 20_000
"""A single text is shown up to this many characters in a pane; the editor shows the rest."""


def text(raw: str, style: str = "", width: int | None = None) -> Content:
    """One line of stored text, gated, cut to `width` characters."""
    shown = gate.line(raw, width)
    return Content.styled(shown, style) if style else Content(shown)


def own(words: str, style: str = "") -> Content:
    """Words of the studio itself."""
    return Content.styled(words, style) if style else Content(words)


def block(raw: str, style: str = "", limit: int = LONG_TEXT) -> Content:
    """Stored text of several lines, gated; above `limit` characters the rest is counted, not drawn."""
    cut = len(raw) - limit
    shown = gate.clean(raw[:limit] if cut > 0 else raw)
    content = Content.styled(shown, style) if style else Content(shown)
    return content if cut <= 0 else content + Content.styled(f" … {cut:,} more characters", "$faint")


def join(*parts: Content | str | None, gap: str = " ") -> Content:
    """The parts that are there, with a gap between."""
    return Content(gap).join([Content(part) if isinstance(part, str) else part for part in parts if part])


def masked(path: str, value: Value, show_secrets: bool) -> bool:
    return not show_secrets and masking.reason_at(path, value) is not None


def value(path: str, stored: Value, width: int, style: str = "", *, show_secrets: bool = False) -> Content:
    """A value in one line."""
    shown = preview.summary(stored, max(8, width), key=masking.name_in(path), show_secrets=show_secrets)
    return Content.styled(shown, style) if style else Content(shown)


def old(content: Content | str) -> Content:
    return _ground(content, "$old on $old-ground")


def new(content: Content | str) -> Content:
    return _ground(content, "$new on $new-ground")


def _ground(content: Content | str, style: str) -> Content:
    inner = Content(content) if isinstance(content, str) else content
    return (Content(" ") + inner + Content(" ")).stylize(style)


def words_changed(before: str, after: str, *, limit: int = LONG_TEXT) -> Content | None:
    """Word diff of two texts, unchanged stretches folded; None when they are too big to compare.

    Removed words are struck through and begin with `-`, added ones begin with `+`, so that colour is not needed to read it.
    """
    parts = word_diff(before, after)
    if parts is None:
        return None
    pieces: list[Content] = []
    room = limit
    for index, (op, piece) in enumerate(parts):
        if room <= 0:
            pieces.append(own(" …", "$faint"))
            break
        if op == "=":
            shown = _fold_middle(piece, first=index == 0, last=index == len(parts) - 1)
            pieces.append(shown)
            room -= len(shown)
            continue
        shown_piece = gate.clean(piece[:room])
        if op == "+" and index and parts[index - 1][0] == "-":
            pieces.append(Content(" "))
        sign, style = ("-", "$old on $old-ground strike") if op == "-" else ("+", "$new on $new-ground")
        sign_style = "$old on $old-ground" if op == "-" else style
        pieces.append(own(sign, f"{sign_style} bold") + Content.styled(shown_piece, style))
        room -= len(shown_piece)
    return Content("").join(pieces)


def _fold_middle(piece: str, *, first: bool, last: bool, keep: int = 90) -> Content:
    """An unchanged stretch: its ends, with the count of what is left out."""
    if len(piece) <= 2 * keep + 40:
        return Content(gate.clean(piece))
    head = "" if first else piece[:keep]
    tail = "" if last else piece[-keep:]
    left_out = len(piece) - len(head) - len(tail)
    return Content(gate.clean(head)) + own(f" ⋯ {left_out:,} characters ⋯ ", "$faint") + Content(gate.clean(tail))


def authors(found: Iterable[Author]) -> str:
    """`plan_refund`, `read_policy ∥ read_history`, `input`, or an honest word when it is not known. Gated."""
    names: list[str] = []
    for author in found:
        name = "input" if author.node == "__start__" else gate.line(author.node or "", 60)
        if name and name not in names:
            names.append(name)
    return " ∥ ".join(names) or "author not known"


def number(row: Row | None, address: Address | None = None) -> str:
    """`#4`, `4.1`, `s2`; a piece of the id where the row is not known."""
    if row is None:
        return "…" + gate.line(address.checkpoint_id[-6:]) if address else "?"
    return f"#{row.number}" if row.number.isdigit() else row.number


def title(row: Row, width: int = 60) -> str:
    """What ran, or what made the checkpoint. Gated."""
    return gate.line(row.label or "checkpoint", width)


def gap(row: Row) -> float | None:
    """Seconds since the row before; of a fork None, since it was made whenever a person came back to the thread."""
    return row.seconds if row.origin_checkpoint_id is None else None


def heading(row: Row, room: int, *, lead: str = "") -> Content:
    """`#3 plan · step 3 · 14:02:09 · +2.4 s`, with as many whole facts as there is room for."""
    shown = Content.assemble((lead + number(row) + " ", "$quiet"), (title(row, 44), "bold"))
    for fact in facts(row):
        longer = shown + Content.styled(f" · {fact}", "$quiet")
        if longer.cell_length > room:
            break
        shown = longer
    return shown.truncate(max(8, room), ellipsis=True)


def facts(row: Row) -> list[str]:
    """`step 3`, `14:02:09`, `+2.4 s`."""
    checkpoint = row.checkpoint
    parts = [
        f"step {checkpoint.step}" if checkpoint.step is not None else "",
        labels.when(checkpoint.created_at, date=False).partition(".")[0],
    ]
    parts.append(labels.duration(gap(row)))
    parts.append(explained.gap_short(row))
    return [part for part in parts if part]
