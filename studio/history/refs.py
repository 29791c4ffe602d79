"""How a person names a checkpoint: full id, number, `head`, `head~N`, `root`, `at:TIME`, or a part of an id."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from studio.errors import RefError
from studio.model import Address
from studio.times import end_of, parse

if TYPE_CHECKING:
    from studio.history.facts import Key
    from studio.tree import CheckpointTree

_SHORTEST_PART = 4
"""Characters of an id that name it; fewer could be a mistyped number."""


def resolve(tree: CheckpointTree, ref: str, ns: str | None = None) -> Address:
    """The one checkpoint that `ref` names, tried in the order above; `ns` narrows to a namespace.

    Raises RefError: no such checkpoint, or several (with the candidates).
    """
    keys = tree.with_id(ref, ns, whole=True)
    if len(keys) > 1 and ("", ref) in keys:
        keys = [("", ref)]
    if not keys:
        keys = _by_words(tree, ref.removeprefix("#"), ns)
    if not keys and len(ref) >= _SHORTEST_PART:
        keys = tree.with_id(ref, ns)
    if len(keys) == 1:
        return Address(tree.thread_id, *keys[0])
    if not keys:
        hint = "give a number as `studio tree` shows it, an id, head, head~N, root or at:TIME"
        if 0 < len(ref) < _SHORTEST_PART and tree.with_id(ref, ns):
            hint = f"a part of an id needs at least {_SHORTEST_PART} characters; " + hint
        raise RefError(f"no checkpoint {ref!r} in thread {tree.thread_id}", hint)
    shown = [f"#{tree.number(Address(tree.thread_id, *key))} {key[1]}" for key in keys[:12]]
    raise RefError(
        f"{ref!r} fits {len(keys)} checkpoints: {', '.join(shown)}",
        "give the number, more of the id, or --ns",
        "ambiguous-ref",
        candidates=tuple(shown),
    )


def _by_words(tree: CheckpointTree, ref: str, ns: str | None) -> list[Key]:
    numbered = tree.by_number(ref)
    if numbered is not None and (ns is None or numbered[0] == ns):
        return [numbered]
    if ref == "root":
        roots = tree.roots(ns or "")
        return [(roots[0].checkpoint_ns, roots[0].checkpoint_id)] if roots else []
    if ref == "head" or re.fullmatch(r"head~\d{1,9}", ref):
        return _head_back(tree, int(ref[5:] or 0), ns or "")
    if ref.startswith("at:"):
        return _at(tree, ref[3:], ns or "")
    return []


def _head_back(tree: CheckpointTree, steps: int, ns: str) -> list[Key]:
    """The head (largest id, as LangGraph resumes) and `steps` parents up."""
    if ns:
        keys = tree.keys(ns)
        at = Address(tree.thread_id, *max(keys)) if keys else None
    else:
        at = tree.head
    while steps and at is not None:
        at, steps = tree.parent(at), steps - 1
    return [(at.checkpoint_ns, at.checkpoint_id)] if at is not None else []


def _at(tree: CheckpointTree, text: str, ns: str) -> list[Key]:
    """The last checkpoint, by its own time, that is not after `text`: a time in whole seconds has all rows of that second."""
    moment = end_of(text)
    if moment is None:
        raise RefError(f"{text!r} is not a time", "write at:2026-03-14T14:02:09 (UTC)", "bad-time")
    best: tuple[float, int, Key] | None = None
    for position, key in enumerate(tree.keys(ns)):
        at = parse(tree.header(Address(tree.thread_id, *key)).created_at)
        if at is not None and at <= moment and (best is None or (at.timestamp(), position) > best[:2]):
            best = (at.timestamp(), position, key)
    return [best[2]] if best is not None else []
