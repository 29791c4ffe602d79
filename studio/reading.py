"""A branch read as one conversation, a window at a time: of a transcript turn by turn, of a database message by message.

Both come as the same beats, so that front ends draw one chat. A window costs what is in it: of a transcript only its turns are
decoded; of a database the channel is there with the state, and a bounded walk finds where each message came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from studio.explain.branch import Branch, Brief, FileEvent, Spent, Todo, TodoChange, TodoStep
from studio.explain.told import Beat, Call, Chip, Piece, Said, Tokens, Touch, told
from studio.history.walk import upward
from studio.model import Address, Value
from studio.render import preview, secrets

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

TURNS, MESSAGES = 30, 60
"""What a window holds."""
MOST_LOOKS = 300
"""Checkpoints that are looked at to find where the messages of a window came from."""


class Chat(Struct, frozen=True):
    """A window of a conversation. `start` turns or messages come before it; `total` lead to the checkpoint."""

    beats: tuple[Beat, ...] = ()
    start: int = 0
    stop: int = 0
    total: int = 0
    unit: str = "turn"
    channel: str = "messages"
    others: tuple[str, ...] = ()
    """Other channels that hold messages."""


def chat(
    session: Session,
    tree: CheckpointTree,
    address: Address,
    *,
    channel: str | None = None,
    before: int | None = None,
    count: int | None = None,
) -> Chat | None:
    """The last turns or messages, or those before place `before`; None where no channel holds messages."""
    branch = session.branch(address)
    if branch is not None:
        stop = len(branch) if before is None else max(0, min(before, len(branch)))
        start = max(0, stop - (count or TURNS))
        return Chat(tuple(branch.beats(start, stop)), start, stop, len(branch))
    return _of_state(session, tree, address, channel, before, count or MESSAGES)


def channels(session: Session, address: Address) -> list[str]:
    """Channels of a state that hold messages, the longest first."""
    values = session.state(address).values
    found = []
    for name, value in values.items():
        if not isinstance(value, list) or not value or not session.show_secrets and secrets.is_secret_name(name):
            continue
        if sum(1 for item in value[:5] if preview.message(item)) * 2 > len(value[:5]):
            found.append((-len(value), name))
    return [name for _, name in sorted(found)]


def _of_state(
    session: Session, tree: CheckpointTree, address: Address, channel: str | None, before: int | None, count: int
) -> Chat | None:
    found = channels(session, address)
    if not found:
        return None
    name = channel if channel in found else found[0]
    messages: list[Value] = session.state(address).values[name]
    stop = len(messages) if before is None else max(0, min(before, len(messages)))
    start = max(0, stop - count)
    while start and stop - start < 2 * count and _is_result(messages[start]):
        start -= 1  # a call and its results stay together
    born = _births(session, tree, address, name, messages, start, stop)
    held = messages[start:stop]
    beats = []
    items = told(held, start=start)
    for at, group in groupby(items, key=lambda item: born.get(item.at if item.at is not None else -1, address)):
        beats.append(Beat(at, tuple(group)))
    others = tuple(one for one in found if one != name)
    return Chat(tuple(beats), start, stop, len(messages), "message", name, others)


def _is_result(value: Value) -> bool:
    found = preview.role_of(value)
    return found is not None and found[0] == "tool"


def _births(
    session: Session, tree: CheckpointTree, at: Address, channel: str, messages: Sequence[Value], start: int, stop: int
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


class Strip(Struct, frozen=True):
    """What the turns of a branch took, as bars: several turns in one bar where there are more of them."""

    bars: tuple[Bar, ...]
    here: int
    """The bar of the turn that is looked at."""
    total: Tokens
    """Of the branch up to this turn."""
    context: int
    """Tokens that the model saw in the last answer up to here."""
    most: int
    cost: Any = None
    """As the channel `cost_usd` has it: a number that was recorded, or an estimate that names its table."""


class Bar(Struct, frozen=True):
    address: Address
    """Of its turn that saw most."""
    tokens: Tokens
    turns: int
    compacted: bool = False


def strip(branch: Branch, bars: int = 120) -> Strip | None:
    """None where the file tells no tokens."""
    spent = branch.spent()
    if not any(one.tokens.context or one.tokens.output for one in spent):
        return None
    told_ = [at for at, one in enumerate(spent) if one.tokens.context or one.tokens.output or one.kind == "compaction"]
    size = max(1, -(-len(told_) // max(1, bars)))
    here = len(branch) - 1
    found: list[Bar] = []
    lit = 0
    for start in range(0, len(told_), size):
        group = told_[start : start + size]
        top = max(group, key=lambda at: spent[at].tokens.context)
        if group[0] <= here:
            lit = len(found)
        compacted = any(spent[at].kind == "compaction" for at in group)
        shown = here if here in group else top
        found.append(Bar(spent[shown].address, spent[top].tokens, len(group), compacted))
    upto = [one.tokens for one in spent[: here + 1]]
    total = Tokens(
        sum(one.input for one in upto),
        sum(one.output for one in upto),
        sum(one.cache_read for one in upto),
        sum(one.cache_creation for one in upto),
    )
    context = next((one.context for one in reversed(upto) if one.context), 0)
    return Strip(tuple(found), lit, total, context, max((bar.tokens.context for bar in found), default=0), branch.cost())


__all__ = [
    "Bar", "Beat", "Branch", "Brief", "Call", "Chat", "Chip", "FileEvent", "Piece", "Said", "Spent", "Strip", "Todo",
    "TodoChange", "TodoStep", "Tokens", "Touch", "channels", "chat", "strip",
]  # fmt: skip
