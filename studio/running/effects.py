"""What already happened after a checkpoint and may happen a second time when a run starts there: executed tool calls.

Read from the writes of the tasks that ran from the checkpoint and from all that followed it, subgraphs and earlier re-runs
included. A file without writes is read by the messages of its newest states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from studio import value as codec
from studio.codec.inert import MapValue
from studio.codec.objects import Tagged
from studio.errors import RefError
from studio.history.walk import upward
from studio.model import Address, Task, Value
from studio.render import preview
from studio.render.gate import line

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

_CHECKPOINTS = 3_000
_CHUNK = 64
_FORKS = 32
_LEAVES = 4
_DEPTH = 4
_SHOWN = 20


class _Seen:
    """Tool calls by id, and the calls whose results were seen, in order."""

    def __init__(self) -> None:
        self.calls: dict[str, preview.ToolCall] = {}
        self.results: dict[str, str | None] = {}
        """call id -> name of the tool, of results."""

    def look(self, stored: Value) -> None:
        for part in _parts(stored):
            if isinstance(part, dict) and part.get("type") == "tool_call" and isinstance(part.get("id"), str):
                self.calls[part["id"]] = preview.ToolCall(part["id"], str(part.get("name", "?")), part.get("args"))
            message = preview.message(part)
            if message is None:
                continue
            self.calls.update({call.id: call for call in message.tool_calls if call.id})
            if message.role == "tool" and message.tool_call_id:
                self.results.setdefault(message.tool_call_id, message.name)


def past_tool_calls(session: Session, address: Address, kept: Sequence[Task] = ()) -> tuple[str, ...]:
    """Tool calls that were executed after this checkpoint (on a fork: after its origin too), in words.

    Not those of `kept` tasks, which do not run again.
    """
    tree = session.tree(address.thread_id)
    before, after = _Seen(), _Seen()
    for stored in session.state(address).values.values():
        before.look(stored)
    kept_ids = {task.id for task in kept}
    kept_spaces = [ns for task in kept for ns in task.subgraph_ns]
    starts = _starts(tree, address)
    followers = _followers(tree, starts)
    for start in range(0, len(followers), _CHUNK):
        for at, rows in session.overlay.writes(followers[start : start + _CHUNK]).items():
            for row in rows:
                if row.idx >= 0 and row.value is not None and not row.channel.startswith("branch:"):
                    is_kept = row.task_id in kept_ids or any(at.checkpoint_ns.startswith(ns) for ns in kept_spaces)
                    (before if is_kept else after).look(codec.decode(row.tag, row.value))
    if not after.results:
        _look_at_leaves(session, tree, followers, after)
    calls = {**before.calls, **after.calls}
    executed = [(ident, name) for ident, name in after.results.items() if ident not in before.results]
    words = [_in_words(ident, name, calls.get(ident)) for ident, name in executed]
    return (*words[:_SHOWN], f"and {len(words) - _SHOWN} more tool calls") if len(words) > _SHOWN else tuple(words)


def _starts(tree: CheckpointTree, address: Address) -> list[Address]:
    """The checkpoint, and where each fork on the way to it was made: what ran there after that may run again here."""
    starts = [address]
    for start in starts:  # grows while it is read
        for above in islice(upward(tree, start), _CHECKPOINTS):
            origin = tree.origin(above)
            if origin is not None and origin not in starts and len(starts) < _FORKS:
                starts.append(origin)
    return starts


def _followers(tree: CheckpointTree, starts: Iterable[Address]) -> list[Address]:
    """The starting checkpoints and all that came after them, subgraphs and forks included, in the order found."""
    found: dict[Address, None] = {}
    queue = list(starts)
    for at in queue:  # grows while it is read
        if at in found or len(found) >= _CHECKPOINTS:
            continue
        found[at] = None
        queue.extend((*tree.children(at), *tree.inner(at), *tree.forks(at)))
    return list(found)


def _look_at_leaves(session: Session, tree: CheckpointTree, followers: list[Address], seen: _Seen) -> None:
    leaves = [at for at in followers if not tree.children(at)]
    for leaf in leaves[-_LEAVES:]:
        try:
            state = session.state(leaf)
        except RefError:
            continue
        for stored in state.values.values():
            seen.look(stored)


def _parts(stored: Value) -> Iterator[Value]:
    """The value and what it holds, a few levels deep: messages sit in lists, in updates, in the argument of a Send."""
    level = [stored]
    for _ in range(_DEPTH):
        inner: list[Value] = []
        for item in level:
            yield item
            if isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, MapValue):
                inner.extend(pair[1] for pair in item.pairs)
            elif isinstance(item, Tagged) and item.kind in ("args", "snapshot", "items"):
                inner.extend(item.args or item.items or ([item.payload] if item.kind == "snapshot" else []))
        level = inner


def _in_words(ident: str, name: str | None, call: preview.ToolCall | None) -> str:
    what = preview.recorded_call(call) if call is not None else line(name or "a tool")
    return f"{what} (call {line(ident, 40)})"
