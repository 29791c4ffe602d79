"""The goto recipe: another node runs next, also from a finished head."""

from __future__ import annotations

from studio import value
from studio.errors import PatchError
from studio.explain import channels
from studio.forks.copy import Draft
from studio.forks.shape import Shape
from studio.model import Value

END = "__end__"
"""Going to the end: nothing runs next."""


def apply(draft: Draft, node: str, shape: Shape) -> tuple[tuple[str, ...], list[str]]:
    """Make `node` the next one. Returns (nodes that run next, warnings). PatchError when the file cannot tell how to start it."""
    if node != END:
        _check(node, shape, draft.format)
    for channel in [name for name in draft.values if _schedules(name, shape, draft.format)]:
        draft.remove_channel(channel)
    if draft.record.get("pending_sends"):
        draft.record["pending_sends"] = []
    for channel, stored in list(draft.values.items()):
        if channel.startswith("join:"):
            _empty_full_join(draft, channel, stored, node)
    if node == END:
        return (), []
    if draft.format >= 3:
        draft.set_channel(f"branch:to:{node}", [None, True] if node in shape.deferred else None)
        return (node,), []
    return _start_by_learned_trigger(draft, node, shape)


def _check(node: str, shape: Shape, fmt: int) -> None:
    if node not in shape.nodes:
        known = tuple(sorted(shape.nodes))
        hint = f"Known nodes: {', '.join(known) or 'none'}."
        raise PatchError(f"No node {node!r} is known in this thread.", hint, "unknown-node", candidates=known)
    if fmt >= 3 and not is_goable(node, shape, fmt):
        reason = "No node of this thread is started by a branch (a functional entrypoint, or no step was taken yet)."
        raise PatchError(reason, "Copy the checkpoint instead, or give the graph a new input.", "no-trigger")


def is_goable(node: str, shape: Shape, fmt: int) -> bool:
    """Whether the file tells how to start a known node. From format 3 on, a graph with branch channels has one for each node."""
    return bool(shape.branch_targets) if fmt >= 3 else trigger(node, shape) is not None


def trigger(node: str, shape: Shape) -> tuple[str, list[str]] | None:
    """Formats 1 and 2: (the channel that best starts a node, other nodes that it starts too); None when none was seen."""
    others = {
        channel: sorted(name for name, triggers in shape.triggers.items() if name != node and channel in triggers)
        for channel in shape.triggers.get(node, ())
        if not channel.startswith("join:") and channel != "__start__"
    }
    best = min(others, key=lambda name: (len(others[name]), name), default=None)
    return (best, others[best]) if best is not None else None


def _schedules(channel: str, shape: Shape, fmt: int) -> bool:
    """True for a channel whose presence makes a node run."""
    if channel in ("__start__", "__pregel_tasks") or channel.startswith(("branch:", "start:")):
        return True
    return fmt < 3 and channel in shape.nodes


def _empty_full_join(draft: Draft, channel: str, stored: Value, node: str) -> None:
    """A full join would start its node beside the chosen one; a partly filled one goes on waiting.

    A deferred join is `[names, released]`: a full one that is not released yet waits for the end of the run anyway.
    """
    deferred = isinstance(stored, list) and len(stored) == 2 and isinstance(stored[1], bool)
    names = stored[0] if deferred else stored
    parts = channels.join_parts(channel)
    if parts is None or not channels.is_full(parts[0], names) or (deferred and not stored[1]):
        return
    seen = channels.members(names) or []
    left = [name for name in seen if name != node] if node in seen else []
    if isinstance(names, value.Tagged):
        emptied: Value = names.replace(items=left) if names.kind == "items" else names.replace(args=[left])
    else:
        emptied = left
    draft.set_channel(channel, [emptied, False] if deferred else emptied)


def _start_by_learned_trigger(draft: Draft, node: str, shape: Shape) -> tuple[tuple[str, ...], list[str]]:
    """Formats 1 and 2: set a channel that started this node before, preferring one that starts no other node."""
    found = trigger(node, shape)
    if found is None:
        raise PatchError(
            f"What starts {node!r} is not stored in this file (format {draft.format}), so it cannot be chosen as the next node.",
            "Choose a node that ran after a plain edge or a branch, or use update_state with your graph.",
            "no-trigger",
        )
    channel, also = found
    if channel.startswith("start:"):
        content = "__start__"
    elif channel.startswith("branch:"):
        content = channel.split(":")[1]
    else:
        content = channel
    draft.set_channel(channel, content)
    warnings = [f"{', '.join(also)} will run as well: {channel!r} starts them together with {node!r}."] if also else []
    return (node, *also), warnings
