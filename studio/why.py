"""The why chain of one value: who wrote it, why that task ran, and what the supersteps before it wrote, back to the input.

A stored write proves an author, a trigger proves why a task ran. Which part of the state a task *read* is not stored, so an
earlier value that holds the same text or number is only called *related*. Everything here is data; front ends draw it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from studio import tagged
from studio.codec.jsontext import int_text
from studio.errors import StudioError
from studio.history.walk import upward
from studio.model import START, Address, Author, Basis, Change, Comparison, Interrupt, Row, Task, Value
from studio.render import preview

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

LOOKS_FOR_WRITER = 200
"""Checkpoints compared while looking for the superstep that wrote the value."""
LOOKS_BEFORE = 60
"""Supersteps before the write that are looked at."""
TOGETHER = 4_000_000
"""Bytes of checkpoints that are read in one look."""
NEAREST = 2
"""Supersteps right before the write that are always listed."""

Kind = Literal["node", "input", "edit", "unknown"]


class Reason(Struct, frozen=True):
    """Why one task ran."""

    task: str | None
    kind: Literal["input", "nodes", "send", "channel"]
    names: tuple[str, ...]
    """Nodes that finished (`nodes`), or the trigger channels (`channel`)."""
    interrupts: tuple[Interrupt, ...] = ()


class Step(Struct, frozen=True):
    """A superstep of the chain: what made the checkpoint at `address`."""

    address: Address
    row: Row
    kind: Kind
    nodes: tuple[str, ...]
    """Who wrote, `__start__` left out."""
    basis: Basis
    changes: tuple[Change, ...]
    """For the writer those that touch the value, for earlier steps all that added or replaced something."""
    related: tuple[tuple[str, Value], ...] = ()
    """(path, value) of what holds the same text or number; of a long text the part around it."""
    reasons: tuple[Reason, ...] = ()


class Gap(Struct, frozen=True):
    """Supersteps that the short form leaves out."""

    count: int
    nearest: Step
    before: bool
    """Nothing is listed after them: they are the oldest that were looked at."""


class Chain(Struct, frozen=True):
    path: str
    value: Value
    exists: bool
    writer: Step | None
    """None when no superstep that was looked at changed the value."""
    earlier: tuple[Step, ...]
    complete: bool
    """The chain reaches the root of its branch."""

    def short(self) -> list[Step | Gap]:
        """The nearest earlier steps, those that hold a related value, and the input; what lies between is only counted."""
        steps = self.earlier
        inputs = [index for index, step in enumerate(steps) if step.kind == "input"][:1]
        related = [index for index, step in enumerate(steps) if step.related]
        kept = sorted({*range(min(NEAREST, len(steps))), *related[:2], *related[-2:], *inputs})
        out: list[Step | Gap] = []
        last = -1
        for index in [*kept, len(steps)]:
            between = index - last - 1
            if between == 1 and index < len(steps):
                out.append(steps[index - 1])
            elif between:
                out.append(Gap(between, steps[last + 1], index == len(steps)))
            if index < len(steps):
                out.append(steps[index])
            last = index
        return out


def chain(session: Session, address: Address, path: str) -> Chain:
    """The chain behind the value at `path` in the checkpoint at `address`. Raises RefError when the checkpoint is not there."""
    tree = session.tree(address.thread_id)
    values = session.state(address).values
    try:
        value, exists = tagged.get(values, path), True
    except StudioError:
        value, exists = None, False
    writer = _writer(session, tree, address, path)
    if writer is None:
        return Chain(path, value, exists, None, (), False)
    needle = _needle(value)
    above = list(islice(upward(tree, writer.address), 1, LOOKS_BEFORE + 2))
    session.prefetch(_small(tree, above))
    steps = (_step(session, tree, at, needle) for at in above[:LOOKS_BEFORE])
    return Chain(path, value, exists, writer, tuple(step for step in steps if step is not None), len(above) <= LOOKS_BEFORE)


def _small(tree: CheckpointTree, above: Sequence[Address]) -> list[Address]:
    """The first ones that are together small enough to be read in one look."""
    found, size = [], 0
    for address in above:
        size += tree.header(address).size_bytes
        if size > TOGETHER:
            break
        found.append(address)
    return found


def reasons(session: Session, tree: CheckpointTree, address: Address) -> tuple[Reason, ...]:
    """Why each of the tasks ran that made the checkpoint at `address`; empty for inputs, edits and forks."""
    row, parent = tree.row(address), tree.parent(address)
    if parent is None or not row.nodes:
        return ()
    ran = {run.task_id for run in row.nodes}
    return tuple(reason(task) for task in session.state(parent).tasks if task.id in ran)


def reason(task: Task) -> Reason:
    """Why a task ran or will run, from its path and its triggers."""
    if task.path and task.path.lstrip("~").startswith("__pregel_push"):
        return Reason(task.name, "send", (), task.interrupts)
    names = tuple(dict.fromkeys(author.node for trigger in task.triggers for author in trigger.authors if author.node))
    if names == (START,):
        return Reason(task.name, "input", (), task.interrupts)
    if names:
        return Reason(task.name, "nodes", names, task.interrupts)
    return Reason(task.name, "channel", tuple(trigger.channel for trigger in task.triggers), task.interrupts)


def touches(changed: str, path: str) -> bool:
    """Whether a change at `changed` is at `path`, inside it or around it."""
    return changed == path or path.startswith(changed.rstrip("/") + "/") or changed.startswith(path.rstrip("/") + "/")


def _writer(session: Session, tree: CheckpointTree, start: Address, path: str) -> Step | None:
    """The last superstep on this branch that changed the value, something inside it, or something around it."""
    channel = (tagged.split_path(path) or [""])[0]
    for address in islice(upward(tree, start), LOOKS_FOR_WRITER):
        row = tree.row(address)
        if row.channels and channel not in row.channels and row.origin_checkpoint_id is None:
            continue  # the writes under its parent say that this superstep left the channel alone
        comparison = session.compare(address, session.base_of(address))
        if comparison.closed:
            return None  # it may have written it
        hits = tuple(change for change in comparison.changes if touches(change.path, path))
        if hits:
            return _made(session, tree, address, row, comparison, hits, ())
    return None


def _step(session: Session, tree: CheckpointTree, address: Address, needle: re.Pattern[str] | None) -> Step | None:
    comparison = session.compare(address, session.base_of(address))
    changes = tuple(change for change in comparison.changes if change.op != "remove")
    if not changes:
        return None
    found = (_mention(change.path, change.after, needle) for change in changes)
    related = tuple(islice((one for one in found if one is not None), 2))
    return _made(session, tree, address, tree.row(address), comparison, changes, related)


def _made(
    session: Session,
    tree: CheckpointTree,
    address: Address,
    row: Row,
    comparison: Comparison,
    changes: tuple[Change, ...],
    related: tuple[tuple[str, Value], ...],
) -> Step:
    authors = [author for change in changes for author in change.authors if author.node]
    nodes = tuple(dict.fromkeys(author.node for author in authors if author.node and author.node != START))
    basis: Basis = authors[0].basis if authors else "none"
    kind = _kind(authors, nodes, comparison, row)
    return Step(address, row, kind, nodes, basis, changes, related, reasons(session, tree, address))


def _kind(authors: Sequence[Author], nodes: Sequence[str], comparison: Comparison, row: Row) -> Kind:
    if nodes:
        return "node"
    if authors or comparison.after.source == "input":
        return "input"
    if row.origin_checkpoint_id is not None or comparison.after.source in ("fork", "update"):
        return "edit"
    return "unknown"


# ---------------------------------------------------------------------- related values


def _needle(value: Value) -> re.Pattern[str] | None:
    """What a related value would contain: the same text, or the same digits whatever their separators (`49,9` and 499.0)."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        digits = re.sub(r"\D", "", f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else int_text(value))
        digits = digits.rstrip("0") or digits
        return re.compile(r"(?<!\d)" + r"[.,' ]?".join(digits) + r"(?:[.,']?0*)*(?!\d)") if 2 <= len(digits) <= 40 else None
    if isinstance(value, str) and 3 <= len(value) <= 200:
        return re.compile(re.escape(value), re.IGNORECASE)
    return None


def _mention(path: str, value: Value, needle: re.Pattern[str] | None) -> tuple[str, Value] | None:
    """The innermost value in which the text or number occurs, found in a bounded look."""
    if needle is None or not needle.search(preview.summary(value, 4000)):
        return None
    for _ in range(8):
        message = preview.message(value)
        if message is not None or isinstance(value, str):
            return path, _around(message.text if message is not None else str(value), needle)
        inner = _inner(value, needle)
        if inner is None:
            break
        path, value = tagged.join_path([*tagged.split_path(path), inner[0]]), inner[1]
    return path, value


def _inner(value: Value, needle: re.Pattern[str]) -> tuple[str, Value] | None:
    items: Iterator[tuple[str, Value]] = islice(iter(tagged.children(value)), 200)
    return next(((step, item) for step, item in items if needle.search(preview.summary(item, 2000))), None)


def _around(text: str, needle: re.Pattern[str], room: int = 22) -> str:
    found = needle.search(text[:1_000_000])
    if found is None or len(text) <= 2 * room + 10:
        return text
    start, stop = max(0, found.start() - room), min(len(text), found.end() + room)
    return ("…" if start else "") + text[start:stop] + ("…" if stop < len(text) else "")
