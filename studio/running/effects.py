"""What already happened after a checkpoint and may happen a second time when a run starts there: tool calls, and nodes that ran.

Read from the writes of the tasks that ran from the checkpoint and from all that followed it, subgraphs and earlier re-runs
included. A file without writes is read by the messages of its newest states. A call without a result may have happened as well,
where a task that makes such calls began and did not finish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from studio import value as codec
from studio.codec.inert import MapValue
from studio.codec.objects import Tagged
from studio.errors import RefError
from studio.history.walk import upward
from studio.model import START, Address, State, Task, Value
from studio.render import preview
from studio.render.gate import line
from studio.requests import PastCall, PastNode

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

_CHECKPOINTS = 3_000
_CHUNK = 64
_FORKS = 32
_LEAVES = 4
_DEPTH = 4
_SHOWN = 20
_CALLS = 1_000
_ROWS = 500
"""Checkpoints whose nodes are counted."""
_ENDED = ("done", "paused")
"""How a run of the studio ends when every task in it has ended as the file says."""


@dataclass(frozen=True, slots=True)
class Past:
    """What the branch did after a checkpoint."""

    calls: tuple[PastCall, ...]
    nodes: tuple[PastNode, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The calls, a line each."""
        told = [_in_words(call) for call in self.calls]
        return (*told[:_SHOWN], f"and {len(told) - _SHOWN} more tool calls") if len(told) > _SHOWN else tuple(told)


class _Seen:
    """Tool calls by id, and the calls whose results were seen, in order."""

    def __init__(self) -> None:
        self.calls: dict[str, preview.ToolCall] = {}
        self.results: dict[str, str | None] = {}
        """call id -> name of the tool, of results."""
        self.failed: set[str] = set()

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
                if message.status == "error":
                    self.failed.add(message.tool_call_id)


def past(session: Session, address: Address, kept: Sequence[Task] = ()) -> Past:
    """What was done after this checkpoint (on a fork: after its origin too), but for `kept` tasks, which do not run again."""
    tree = session.tree(address.thread_id)
    before, after = _Seen(), _Seen()
    for at in (address, *_callers(tree, [address])):
        for stored in session.state(at).values.values():
            before.look(stored)
    kept_ids = {task.id for task in kept}
    kept_spaces = [ns for task in kept for ns in task.subgraph_ns]
    starts = _starts(tree, address)
    ahead = _followers(tree, starts, _around(tree, starts))
    followers = list(ahead)
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
    found = [_call(ident, name, calls.get(ident), "failed" if ident in after.failed else "answered") for ident, name in executed]
    done = {*before.results, *after.results}
    for call in _unanswered(session, tree, followers, kept_ids):
        if call.id is not None and call.id not in done:
            done.add(call.id)
            found.append(_call(call.id, None, call, "unknown"))
    coming = [at for at, is_ahead in ahead.items() if is_ahead and not any(at.checkpoint_ns.startswith(ns) for ns in kept_spaces)]
    return Past(tuple(found[:_CALLS]), _nodes(tree, address, coming, kept_ids))


def _unanswered(
    session: Session, tree: CheckpointTree, followers: Sequence[Address], kept: set[str | None]
) -> list[preview.ToolCall]:
    """The last calls of the newest states where a task that may make them began, or could have, and has no result."""
    found = []
    for leaf in [at for at in followers if not tree.children(at)][-_LEAVES:]:
        try:
            state = session.state(leaf)
        except RefError:
            continue
        if any(task.id not in kept and _may_have_called(session, state, task) for task in state.tasks):
            for stored in state.values.values():
                found += _last_calls(stored)
    return found


def _may_have_called(session: Session, state: State, task: Task) -> bool:
    """Whether a task without a result may have made the calls that wait: it failed, or nobody knows how far it came.

    A task that asks or was not seen to begin counts where it runs tools by its name or its argument: others, like one that asks a
    person first, come before the calls.
    """
    if task.status == "failed":
        return True
    sent = isinstance(task.arg, dict) and (task.arg.get("type") == "tool_call" or "tool_call" in task.arg)
    if task.status not in ("paused", "pending") or not (sent or "tool" in (task.name or "").lower()):
        return False
    checkpoint = state.checkpoint
    if task.status == "paused" or checkpoint.origin != "scratch":
        return task.status == "paused" or checkpoint.source in ("loop", "input")
    from studio.notes import Notes

    runs = Notes(session.scratch.notes_path).runs(checkpoint.thread_id)
    return bool(runs) and runs[-1].status not in _ENDED


def _last_calls(stored: Value) -> list[preview.ToolCall]:
    """The calls of the last message of a model in a list of messages, when only results of tools come after it."""
    for item in reversed(stored) if isinstance(stored, list) else ():
        message = preview.message(item)
        if message is None or message.role not in ("tool", "assistant"):
            return []
        if message.role == "assistant":
            return list(message.tool_calls)
    return []


def _nodes(tree: CheckpointTree, address: Address, ahead: Sequence[Address], kept: set[str | None]) -> tuple[PastNode, ...]:
    """Nodes that ran to make the checkpoints that lie ahead, in the order in which they ran first, but for `kept` tasks."""
    passed = {address, *islice(upward(tree, address), _CHECKPOINTS)}
    counts: Counter[str] = Counter()
    for at in sorted(ahead[:_ROWS], key=tree.index):
        if at in passed:
            continue
        ran = [node for node in tree.row(at).nodes if node.name not in (None, START) and node.status == "done"]
        counts.update(node.name for node in ran if node.name is not None and node.task_id not in kept)
    return tuple(PastNode(line(name, 60), runs) for name, runs in counts.items())


def _starts(tree: CheckpointTree, address: Address) -> dict[Address, int]:
    """The checkpoint, and where each fork on the way to it was made: what ran there after that may run again here.

    With each the number of supersteps from there on that this branch has behind it: so many of that line are not done again.
    """
    starts = {address: 0}
    queue = [address]
    for start in queue:  # grows while it is read
        steps, below = 0, start
        for above in islice(upward(tree, start), _CHECKPOINTS):
            steps, below = steps + _is_step(tree, above, below), above
            origin = tree.origin(above)
            if origin is not None and origin not in starts and len(starts) < _FORKS:
                starts[origin] = starts[start] + steps
                queue.append(origin)
    return starts


def _is_step(tree: CheckpointTree, parent: Address, child: Address) -> bool:
    """Whether a checkpoint stands a superstep after its parent: LangGraph puts a copy there when it runs a passed one again.

    Its step is the next one; that of any other copy, which stands beside what it copies, is the next but one.
    """
    if child == parent:
        return False
    header, above = tree.header(child), tree.header(parent)
    again = header.source == "fork" and tree.origin(child) is None
    return not (again and header.step is not None and above.step is not None and header.step == above.step + 1)


def _around(tree: CheckpointTree, starts: Iterable[Address]) -> list[Address]:
    """What came after the tasks that called the starts: from inside a subgraph the whole thread runs on.

    Not the calling checkpoints themselves: what else ran from them, and what the subgraph did before, is not done again.
    """
    found: list[Address] = []
    for caller in _callers(tree, starts):
        origin = tree.origin(caller)
        for made in (caller, *((origin,) if origin is not None else ()), *tree.forks(caller)):
            found += [child for child in tree.children(made) if child not in found]
    return found


def _callers(tree: CheckpointTree, starts: Iterable[Address]) -> list[Address]:
    """The checkpoints whose tasks called the subgraphs that the starts lie in, inner ones first."""
    found: list[Address] = []
    for at in starts:
        outer = tree.caller(at)
        while outer is not None and outer not in found:
            found.append(outer)
            outer = tree.caller(outer)
    return found


def _followers(tree: CheckpointTree, starts: Mapping[Address, int], around: Iterable[Address]) -> dict[Address, bool]:
    """The starting checkpoints and all that came after them, subgraphs and forks included, in the order found.

    With each whether it lies ahead: behind as many supersteps as the branch has behind it. `around` are the first of the outer
    graph that came after; they do.
    """
    found: dict[Address, bool] = {}
    queue = [*((at, 0, behind, at.checkpoint_ns) for at, behind in starts.items())]
    queue += ((at, 1, 0, at.checkpoint_ns) for at in around)
    for at, depth, behind, ns in queue:  # grows while it is read; a subgraph runs within one superstep
        is_ahead = depth > behind
        if at in found:
            found[at] = found[at] or is_ahead
            continue
        if len(found) >= _CHECKPOINTS:
            continue
        found[at] = is_ahead
        queue.extend(
            (child, depth + (at.checkpoint_ns == ns and _is_step(tree, at, child)), behind, ns) for child in tree.children(at)
        )
        queue.extend((inner, depth + (at.checkpoint_ns == ns), behind, ns) for inner in tree.inner(at))
        queue.extend((fork, depth, behind, ns) for fork in tree.forks(at))
    return found


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


def _call(ident: str, name: str | None, call: preview.ToolCall | None, outcome: str) -> PastCall:
    if call is None:
        return PastCall(line(name or "a tool"), line(ident, 40), "", outcome)
    return PastCall(line(call.name), line(ident, 40), preview.arguments_text(call) or "no arguments", outcome)


def _in_words(call: PastCall) -> str:
    what = line(f"{call.tool}, recorded with {call.arguments}" if call.arguments else call.tool, 160)
    how = {"failed": ": it failed", "unknown": ": no result is stored, it may have happened"}.get(call.outcome, "")
    return f"{what} (call {call.call_id}){how}"
