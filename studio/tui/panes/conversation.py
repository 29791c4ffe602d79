"""Conversation: the branch read as one chat, a window at a time: prose, calls folded with their results, each beat linked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from studio import reading, tagged, toolcalls, wording
from studio.reading import Beat, Call, Said
from studio.render import gate, labels, preview
from studio.render import prose as prose_of
from studio.tui import draw, prose
from studio.tui.lines import BLANK, Line
from studio.tui.point import Point, row_of

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

EARLIER = "earlier"
"""What the line above the window does: more of the conversation."""
FOLDED = 4_000
"""Characters of thinking, context or a summary that unfold."""
SHORT = 300
"""What a program says in so few characters needs no folding."""
_STYLES = {"prompt": "$lane-fork", "answer": "$primary", "result": "$lane-sub"}
_STATES = {
    "answered": ("✓", "$success"),
    "failed": ("✕", "$error"),
    "open": ("no answer", "$wait bold"),
    "waiting": ("…", "$faint"),
}


def build(point: Point, tree: CheckpointTree, session: Session, windows: int = 1) -> tuple[Line, ...]:
    """The lines of the pane: so many windows back from the end."""
    turns = session.is_transcript
    count = windows * (reading.TURNS if turns else reading.MESSAGES)
    channels = [None] if turns else reading.channels(session, point.address)
    lines: list[Line] = []
    for channel in channels:
        found = reading.chat(session, tree, point.address, channel=channel, count=count)
        if found is None:
            continue
        if len(channels) > 1:
            lines.append(Line(draw.text(found.channel, "bold"), 1))
        if found.start:
            told = f"▲ {labels.plural(found.start, f'earlier {found.unit}')}"
            lines += [Line(draw.own(told, "$primary"), 1, act=EARLIER), BLANK]
        pen = _Pen(point, tree, session, found.channel)
        for beat in found.beats:
            lines += pen.beat(beat)
    if not lines:
        return (
            Line(draw.own("No conversation here.", "bold"), 1),
            Line(draw.own("None of the channels holds chat messages; State shows what there is.", "$quiet"), 1),
        )
    return tuple(lines)


class _Pen:
    def __init__(self, point: Point, tree: CheckpointTree, session: Session, channel: str) -> None:
        self.point, self.tree, self.channel, self.secret = point, tree, channel, point.show_secrets
        branch = session.branch(point.address)
        self.turns = branch is not None
        self.cwd = branch.cwd if branch is not None else ""
        unanswered = {} if self.turns else toolcalls.open_calls(point.state)
        self.open = {ident for (name, _), idents in unanswered.items() if name == channel for ident in idents}
        self.model: str | None = None

    def beat(self, beat: Beat) -> list[Line]:
        row = row_of(self.tree, beat.address)
        here = beat.address == self.point.address and self.turns
        facts = []
        if beat.model and beat.model != self.model:
            facts.append(gate.line(beat.model, 40))
            self.model = beat.model
        if beat.tokens is not None:
            facts.append(f"{wording.token_words(beat.tokens.context)} in {wording.token_words(beat.tokens.output)} out")
        if beat.seconds is not None and beat.seconds >= 0.05:
            facts.append(labels.duration(beat.seconds))
        number = draw.number(row, beat.address)
        lines: list[Line] = []
        for at, item in enumerate(beat.items):
            head = draw.own(f"{number} ", "bold $primary" if here else "$faint") if not at else draw.own("")
            right = (
                draw.own(" · ".join(facts) if self.turns else draw.title(row, 24) if row else "", "$faint") if not at else None
            )
            lines += self.item(item, head, right, beat, here, first=not at)
        return [*lines, BLANK] if lines else []

    def item(self, item: Said, number: Content, right: Content | None, beat: Beat, here: bool, *, first: bool) -> list[Line]:
        path = tagged.join_path([self.channel, str(item.at)]) if item.at is not None else None
        if item.at is not None and draw.masked(path or "", self.point.state.values[self.channel], self.secret):
            value = self.point.state.values[self.channel][item.at]
            return [
                Line(
                    draw.value(path or "", value, 160, show_secrets=self.secret), 2, path=path, address=beat.address, right=right
                )
            ]
        style = _STYLES.get(item.kind, "$quiet")
        text = wording.text_of(item.pieces)
        shown = item.kind in ("prompt", "answer") or item.kind == "result" and not self.turns
        who = {"prompt": "user", "answer": "assistant", "result": "tool"}.get(item.kind, "")
        if item.kind == "prompt" and item.queued:
            who = "user, meanwhile"
        name = gate.line(item.name, 60)
        if not shown:
            return self.folded(item, text, number, right, beat, first=first)
        head = number + draw.own(who if not name else f"{who} · {name}", f"{'$error' if item.failed else style} bold")
        if item.failed:
            head = head + draw.own("  service error" if item.kind == "answer" and self.turns else "  error", "$error bold")
        lines = [Line(head, 1, path=path, address=beat.address, right=right, mark=here and first)]
        bar = "$error" if item.failed else style
        for piece in item.pieces:
            if piece.kind == "thinking":
                lines.append(self.thinking(piece.text))
        if text:
            found = prose_of.prose(text, show_secrets=self.secret)
            lines += prose.blocks(found.blocks, bar=bar)
            if found.more:
                lines.append(Line(draw.own(f"… {found.more:,} more characters; State has all of them", "$faint"), 3))
        lines += [
            Line(draw.own(f"▣ {wording.chip_words(piece.chip)}", "$quiet"), 3) for piece in item.pieces if piece.chip is not None
        ]
        for call in item.calls:
            lines += self.call(call, here)
        return lines

    def folded(self, item: Said, text: str, number: Content, right: Content | None, beat: Beat, *, first: bool) -> list[Line]:
        """Context, a summary, a command, an error of the service: a headline that unfolds."""
        words = wording.item_words(item)
        style = "$wait" if item.kind in ("compacted", "summary") else "$error" if item.kind == "retry" else "$faint"
        body = "" if item.kind == "compacted" and wording.compaction_words(text) else text
        shown, more = prose_of.plain(body, show_secrets=self.secret, limit=FOLDED)
        inside = (
            [Line(draw.own(part, "$quiet"), 4, bar="$line") for part in shown.strip("\n").split("\n")] if shown.strip() else []
        )
        if more:
            inside.append(Line(draw.own(f"… {more:,} more characters; State has all of them", "$faint"), 4))
        lines = []
        if first:
            lines.append(
                Line(
                    number + draw.own("───" if not inside and item.kind == "compacted" else "", "$faint"),
                    1,
                    address=beat.address,
                    right=right,
                )
            )
        sign = "▸ " if inside else "· "
        if len(inside) == 1 and len(text) <= SHORT and item.kind in ("retry", "note", "command"):
            lines += [Line(draw.own(words, style), 3), *inside]
        else:
            lines.append(Line(draw.own(sign + words, style), 3, folded=tuple(inside), hanging=2))
        return lines

    def thinking(self, text: str) -> Line:
        shown, _ = prose_of.plain(text, show_secrets=self.secret, limit=FOLDED)
        if not shown.strip():
            return Line(draw.own("thinking, not stored in the clear", "italic $faint"), 3)
        inside = tuple(Line(draw.own(part, "italic $quiet"), 4, bar="$line") for part in shown.strip("\n").split("\n"))
        return Line(draw.own("▸ thinking", "italic $faint"), 3, folded=inside)

    def call(self, call: Call, here: bool) -> list[Line]:
        words = wording.call_words(call, cwd=self.cwd, show_secrets=self.secret)
        state = "waiting" if call.state == "open" and not self.turns and call.id not in self.open else call.state
        inside = prose.call_lines(words)
        opened = here and bool(inside) and (call.state == "failed" or bool(words.patches))
        sign = "▾ " if opened else "▸ " if inside else "· "
        about = words.about if self.turns else preview.arguments_text(preview.ToolCall(call.id, call.name, call.args), 400)
        head = draw.own(sign, "$faint") + draw.own(words.name, "bold") + draw.own(f"  {about}", "$quiet")
        if words.count:
            head = head + draw.own(f"  {words.count}", "$faint")
        mark, style = _STATES[state]
        lines = [Line(head, 3, folded=() if opened else tuple(inside), right=draw.own(mark, style), nowrap=self.turns, hanging=4)]
        lines += inside if opened else []
        for track in call.tracks:
            row = row_of(self.tree, track)
            lines.append(Line(draw.own(f"→ agent's track {draw.number(row, track)}", "$lane-sub"), 5, address=track))
        return lines
