"""Prose, code, patches and calls of a conversation as lines of a pane."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.content import Content

from studio import wording
from studio.render import patches, prose
from studio.tui import draw
from studio.tui.lines import Line

LOOKS = {
    "strong": "bold", "em": "italic", "strike": "strike", "code": "$lane-sub", "link": "underline", "target": "$faint",
    "keyword": "$primary", "string": "$new", "number": "$lane-fork", "comment": "italic $faint", "name": "$lane-sub",
    "builtin": "$wait", "added": "$new", "removed": "$old",
}  # fmt: skip
WIDEST_CELL = 40
_GROUNDS = {"add": "$new on $new-ground", "remove": "$old on $old-ground", "hunk": "$faint", "same": "$quiet"}


def spans(found: Iterable[prose.Span], style: str = "") -> Content:
    pieces = []
    for span in found:
        looks = " ".join([style, *(LOOKS.get(look, "") for look in span.looks)]).strip()
        pieces.append(Content.styled(span.text, looks) if looks else Content(span.text))
    return Content("").join(pieces)


def blocks(found: Sequence[prose.Block], *, bar: str = "", indent: int = 1) -> list[Line]:
    """A text with Markdown. `bar`: the style of the bar at its left."""
    lines: list[Line] = []
    for at, block in enumerate(found):
        if at and not (block.kind == "item" and found[at - 1].kind == "item"):
            lines.append(Line(Content(""), indent, bar=bar))
        lead = "  " * max(0, block.level - 1) if block.kind != "heading" else ""
        quote = Content.styled("│ " * block.quote, "$faint") if block.quote else Content("")
        if block.kind == "code":
            lines += [Line(Content(lead + " ") + spans(line), indent, bar=bar or "$line", fold=True) for line in block.lines]
        elif block.kind == "heading":
            lines.append(Line(quote + spans(block.spans, "bold"), indent, bar=bar))
        elif block.kind == "item":
            marker = f"{lead}{block.marker or ' '} "
            lines.append(Line(draw.own(marker, "$faint") + quote + spans(block.spans), indent, bar=bar, hanging=len(marker)))
        elif block.kind == "table":
            lines += _table(block, bar, indent)
        elif block.kind == "rule":
            lines.append(Line(draw.own("─" * 12, "$line"), indent, bar=bar))
        else:
            lines.append(Line(quote + spans(block.spans), indent, bar=bar))
    return lines


def _table(block: prose.Block, bar: str, indent: int) -> list[Line]:
    cells = [[spans(cell, "bold" if not at else "") for cell in row] for at, row in enumerate(block.rows)]
    count = max(map(len, cells), default=0)
    widths = [min(WIDEST_CELL, max((row[at].cell_length for row in cells if at < len(row)), default=0)) for at in range(count)]
    gap = draw.own(" │ ", "$line")
    lines = []
    for row in cells:
        padded = [cell + Content(" " * max(0, width - cell.cell_length)) for cell, width in zip(row, widths, strict=False)]
        lines.append(Line(gap.join(padded), indent, bar=bar, fold=True))
    return lines


def patch(found: patches.Patch, indent: int = 4) -> list[Line]:
    """A patch of a file, with the numbers of its lines where they are known."""
    highest = max((line.new or line.old or 0 for line in found.lines), default=0)
    width = len(str(highest)) if highest else 0
    lines = []
    for line in found.lines:
        number = f"{line.new or line.old or '':>{width}} " if width else ""
        style = _GROUNDS[line.kind]
        text = draw.own(number, "$faint") + draw.own(f"{patches.SIGNS[line.kind]} {line.text}", style)
        lines.append(Line(text, indent, fold=True, hanging=len(number) + 2))
    if found.more:
        lines.append(Line(draw.own(f"… {found.more:,} more lines", "$faint"), indent))
    return lines


def call_lines(words: wording.CallWords) -> list[Line]:
    """What unfolds below a call: arguments, list, patches, result."""
    lines = []
    for given in words.arguments:
        if not given.lines:
            lines.append(Line(draw.own(f"{given.label} ", "$faint") + Content(given.text), 4, hanging=2))
            continue
        lines.append(Line(draw.own(given.label, "$faint"), 4))
        lines += [Line(spans(line), 5, bar="$line", fold=True) for line in given.lines]
        if given.more:
            lines.append(Line(draw.own(f"… {given.more:,} more characters", "$faint"), 5))
    lines += [todo(one) for one in words.todos]
    for one in words.patches:
        lines.append(Line(draw.own(one.path, "bold") + draw.own(f"  {one.words}", _touch_style(one.state)), 4))
        lines += patch(one.patch)
    if words.result:
        failed = words.state == "failed"
        style, bar = ("$error", "$error") if failed else ("$quiet", "$line")
        lines += [Line(draw.own(text, style), 4, bar=bar, fold=text[:1] == " ") for text in words.result.split("\n")]
        if words.result_more:
            lines.append(Line(draw.own(f"… {words.result_more:,} more characters; State and Raw have them", "$faint"), 5))
    lines += [Line(draw.own(f"▣ {wording.chip_words(chip)}", "$quiet"), 4) for chip in words.pictures]
    return lines


def todo(one: wording.TodoLine, indent: int = 4) -> Line:
    style = {"done": "$faint", "in progress": "bold"}.get(one.status, "")
    sign = {"done": "$success", "in progress": "$wait"}.get(one.status, "$quiet")
    return Line(draw.own(f"{one.sign} ", sign) + draw.own(one.text, style), indent, hanging=2)


def _touch_style(state: str) -> str:
    return {"created": "$new", "failed": "$error", "deleted": "$error", "edited": "$primary"}.get(state, "$faint")


def touch(words: str, state: str) -> Content:
    return draw.own(words, _touch_style(state))
