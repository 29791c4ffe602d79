"""A branch read as one chat, each message linked to the superstep that brought it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from studio import tagged, toolcalls
from studio.history.walk import upward
from studio.model import Address, State, Value
from studio.render import gate, preview, secrets
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views.values import Bubble, bubble

PAGE = 80
MOST_LOOKS = 300


@dataclass(frozen=True, slots=True)
class Conversation:
    channel: str
    bubbles: tuple[Bubble, ...]
    earlier: int
    earlier_href: str
    others: tuple[tuple[str, str], ...]
    """Other channels that hold messages, with links."""
    empty: str = ""
    edit_href: str = ""


def message_channels(state: State) -> list[str]:
    """Channels whose value is a list of messages, the longest first."""
    found = [
        (len(value), name)
        for name, value in state.values.items()
        if isinstance(value, list) and value and sum(1 for item in value[:5] if preview.message(item)) * 2 > len(value[:5])
    ]
    return [name for _, name in sorted(found, key=lambda pair: (-pair[0], pair[1]))]


def conversation(
    session: Session, tree: CheckpointTree, place: Place, state: State, *, before: int | None = None
) -> Conversation:
    """The last messages up to index `before` of the longest message channel, or of the channel of the selected path."""
    channels = message_channels(state)
    if not session.show_secrets:
        channels = [name for name in channels if not secrets.is_secret_name(name)]
    if not channels:
        return Conversation("", (), 0, "", (), empty="No channel of this state holds messages.")
    wanted = (tagged.split_path(place.path) or [""])[0] if place.path else ""
    channel = wanted if wanted in channels else channels[0]
    messages: list[Value] = state.values[channel]
    stop = len(messages) if before is None else max(0, min(before, len(messages)))
    start = max(0, stop - PAGE)
    births = _births(session, tree, state.checkpoint.address, channel, messages, start, stop)
    unanswered = toolcalls.open_calls(state)
    bubbles = []
    for index in range(start, stop):
        path = tagged.join_path([channel, str(index)])
        drawn = bubble(
            messages[index],
            limit=4000,
            unanswered=unanswered.get((channel, index), ()),
            path=gate.line(path, 120),
            why=place.to(path=path, tab="conversation").url(),
            edit=place.to(path=path, tab="conversation").url("messages", [("open", str(index))]),
            selected=place.path == path,
        )
        if drawn is None:
            drawn = Bubble("chat", "item", preview.summary(messages[index], 400), path=gate.line(path, 120))
        born = births.get(index)
        if born is not None:
            drawn = replace(drawn, number=tree.number(born), href=place.at_address(born, path=path, tab="changes").url())
        bubbles.append(drawn)
    others = tuple(
        (gate.line(name, 60), place.to(tab="conversation", path=tagged.join_path([name])).url())
        for name in channels
        if name != channel
    )
    earlier_href = place.url(extra=[("before", str(start))])
    edit_href = place.to(tab="conversation", path=tagged.join_path([channel])).url("messages")
    return Conversation(gate.line(channel, 60), tuple(bubbles), start, earlier_href, others, edit_href=edit_href)


def _births(
    session: Session, tree: CheckpointTree, at: Address, channel: str, messages: list[Value], start: int, stop: int
) -> dict[int, Address]:
    """Index -> the checkpoint that first held that message on this branch, as far as a bounded walk back tells."""
    keys = [_identity(message, index) for index, message in enumerate(messages)]
    born = dict.fromkeys(range(start, stop), at)
    below = at
    line = upward(tree, at)
    next(line)
    for looked, address in enumerate(line):
        if looked >= MOST_LOOKS:
            break
        if not _may_change(tree, below, channel):
            held = None
        else:
            value = session.state(address).values.get(channel)
            held = {_identity(message, index) for index, message in enumerate(value)} if isinstance(value, list) else set()
        alive = False
        for index in range(start, stop):
            if born[index] == below and (held is None or keys[index] in held):
                born[index] = address
                alive = True
        if not alive:
            break
        below = address
    return born


def _may_change(tree: CheckpointTree, address: Address, channel: str) -> bool:
    row = tree.row(address)
    return not row.channels or channel in row.channels or row.origin_checkpoint_id is not None


def _identity(message: Value, index: int) -> str:
    found = preview.message(message)
    if found is None:
        return f"#{index}"
    return found.id or f"{index}:{found.role}:{hash(found.text)}"
