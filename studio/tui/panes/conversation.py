"""Conversation: the branch read as one chat, each message linked to the superstep that brought it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from studio import toolcalls
from studio.errors import StudioError
from studio.history.walk import upward
from studio.model import Address, Value
from studio.render import gate, labels, preview, secrets
from studio.tui import draw
from studio.tui.lines import BLANK, Line
from studio.tui.point import Point, row_of

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

SHOWN = 200
"""Messages drawn at once; earlier ones are folded."""
WALK = 80
"""Branches up to this many checkpoints are walked to find where each message came from."""

_STYLES = {"user": "$lane-fork", "assistant": "$primary", "tool": "$lane-sub", "system": "$faint"}


def build(point: Point, tree: CheckpointTree, session: Session) -> tuple[Line, ...]:
    """The lines of the pane."""
    found = preview.message_channels(point.state.values)
    if not found:
        return (
            Line(draw.own("No conversation here.", "bold"), 1),
            Line(draw.own("None of the channels holds chat messages; State shows what there is.", "$quiet"), 1),
        )
    came_from = _origins(point, tree, session, found)
    unanswered = toolcalls.open_calls(point.state)
    lines: list[Line] = []
    for channel in found:
        messages: list[Value] = point.state.values[channel]
        if len(found) > 1:
            lines.append(Line(draw.text(channel, "bold"), 1))
        early, late = messages[:-SHOWN], messages[-SHOWN:]
        if early:
            folded = [
                line
                for index, item in enumerate(early[-2000:], max(0, len(early) - 2000))
                for line in _message(channel, index, item, came_from, tree, point.show_secrets, unanswered)
            ]
            lines.append(Line(draw.own(f"▸ {labels.plural(len(early), 'earlier message')}", "$faint"), 1, folded=tuple(folded)))
        for index, item in enumerate(late, len(early)):
            lines.extend(_message(channel, index, item, came_from, tree, point.show_secrets, unanswered))
    return tuple(lines)


def _key(channel: str, index: int, item: Value) -> tuple[str, str]:
    view = preview.message(item)
    return channel, f"id:{view.id}" if view and view.id else str(index)


def _origins(point: Point, tree: CheckpointTree, session: Session, channels: Sequence[str]) -> dict[tuple[str, str], Address]:
    """Where each message was first seen on this branch, for branches short enough to walk."""
    branch = list(islice(upward(tree, point.address), WALK + 1))[::-1]
    if len(branch) > WALK:
        return {}
    seen: dict[tuple[str, str], Address] = {}
    for address in branch:
        row = row_of(tree, address)
        if row is not None and row.channels and not set(row.channels) & set(channels) and address != point.address:
            continue
        try:
            values = session.state(address).values
        except StudioError:
            continue
        for channel in channels:
            items = values.get(channel)
            for index, item in enumerate(items if isinstance(items, list) else ()):
                seen.setdefault(_key(channel, index, item), address)
    return seen


def _message(
    channel: str,
    index: int,
    item: Value,
    came_from: Mapping[tuple[str, str], Address],
    tree: CheckpointTree,
    show_secrets: bool,
    unanswered: Mapping[tuple[str, int], Collection[str]],
) -> list[Line]:
    view = preview.message(item)
    address = came_from.get(_key(channel, index, item))
    row = row_of(tree, address) if address else None
    right = None
    if address:
        right = draw.own(f"{draw.number(row, address)} {draw.title(row, 24) if row else ''}".strip(), "$faint")
    path = f"/{channel.replace('~', '~0').replace('/', '~1')}/{index}"
    if view is None or draw.masked(path, item, show_secrets):
        return [Line(draw.value(path, item, 160, show_secrets=show_secrets), 2, path=path, address=address, right=right), BLANK]
    style = _STYLES.get(view.role, "$quiet")
    name = f"{view.role} · {gate.line(view.name, 40)}" if view.name else view.role
    head = draw.own(name, f"{style} bold")
    if view.status == "error":
        head = head + draw.own("  error", "$error")
    lines = [Line(head, 1, path=path, address=address, right=right)]
    text = view.text if show_secrets else secrets.mask_text(view.text)
    if text:
        lines.append(Line(draw.block(text, "$quiet" if view.role in ("tool", "system") else "", limit=6_000), 1, bar=style))
    for call in view.tool_calls:
        words = draw.own("⚒ " + preview.call_text(call, 600), "$quiet")
        if call.id in unanswered.get((channel, index), ()):
            words = words + draw.own("  no answer", "$wait bold")
        lines.append(Line(words, 1, bar=style, hanging=2))
    lines.append(BLANK)
    return lines
