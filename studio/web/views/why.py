"""The why chain of one value: who wrote it, what made that task run, back to the input.

A stored write proves an author; a trigger proves what made a task run. Which part of the state a task read is not stored, so
steps that only look related are marked as such.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from studio import tagged
from studio.errors import StudioError
from studio.history.walk import upward
from studio.model import START, Address, Author, Change, Comparison, Task, Value
from studio.render import gate, preview
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views.values import Line, last_key, shown

MOST_EARLIER = 60
"""Supersteps before the write that are looked at."""
NEAREST = 2
MOST_LOOKS = 200
"""Checkpoints compared while looking for the superstep that wrote the value."""


@dataclass(frozen=True, slots=True)
class Step:
    who: str
    did: str
    detail: str
    href: str
    number: str
    lines: tuple[Line, ...] = ()
    related: bool = False
    """It holds the same text or number: it looks related, nothing stored proves it."""
    kind: str = "step"
    """`writer`, `step`, `between` or `input`."""


@dataclass(frozen=True, slots=True)
class Why:
    path: str
    title: str
    value: str
    steps: tuple[Step, ...]
    note: str = ""
    clear_href: str = ""


def why(session: Session, tree: CheckpointTree, place: Place, path: str, value: Value, exists: bool) -> Why:
    """The chain behind the value at `path` in the checkpoint of `place`."""
    summary = preview.summary(value, 60, key=last_key(path)) if exists else "not there"
    try:
        steps, note = _chain(session, tree, place, path, value)
    except StudioError as error:
        steps, note = (), gate.line(error.message, 200)
    return Why(
        path=gate.line(path, 200),
        title=f"Why is this {summary}?" if exists else "Why is this gone?",
        value=summary,
        steps=steps,
        note=note,
        clear_href=place.to(path=None).url(),
    )


def _chain(session: Session, tree: CheckpointTree, place: Place, path: str, value: Value) -> tuple[tuple[Step, ...], str]:
    at, comparison, hit = _writer(session, tree, place.address, path)
    if at is None or comparison is None or hit is None:
        return (), "No superstep that was looked at changed it: its origin is not known."
    above = upward(tree, at)
    next(above)
    needle = _needle(value)
    earlier: list[Step] = []
    reached_root = True
    for looked, current in enumerate(above):
        if looked >= MOST_EARLIER:
            reached_root = False
            break
        drawn = _earlier_step(session, tree, place, current, needle)
        if drawn is not None:
            earlier.append(drawn)
    note = "" if reached_root else "Earlier supersteps are not listed."
    return (_writer_step(tree, place, at, comparison, hit), *_short(earlier)), note


def _short(steps: Sequence[Step]) -> list[Step]:
    """The nearest steps, those that look related and the input; what lies between is only counted."""
    inputs = [index for index, step in enumerate(steps) if step.kind == "input"][:1]
    related = [index for index, step in enumerate(steps) if step.related]
    kept = sorted({*range(min(NEAREST, len(steps))), *related[:2], *related[-2:], *inputs})
    out: list[Step] = []
    last = -1
    for index in kept:
        between = index - last - 1
        if between == 1:
            out.append(steps[index - 1])
        elif between:
            out.append(Step(f"{between} supersteps", "between", "", steps[last + 1].href, "", kind="between"))
        out.append(steps[index])
        last = index
    if len(steps) - last > 1:
        out.append(Step(f"{len(steps) - last - 1} supersteps", "before", "", steps[last + 1].href, "", kind="between"))
    return out


def _writer(
    session: Session, tree: CheckpointTree, start: Address, path: str
) -> tuple[Address | None, Comparison | None, Change | None]:
    """The last superstep on this branch that changed the value, something inside it, or something around it."""
    channel = (tagged.split_path(path) or [""])[0]
    for looked, address in enumerate(upward(tree, start)):
        if looked >= MOST_LOOKS:
            break
        row = tree.row(address)
        if row.channels and channel not in row.channels and row.origin_checkpoint_id is None:
            continue  # the writes under its parent say that this superstep left the channel alone
        comparison = session.compare(address, session.base_of(address))
        hit = next((change for change in comparison.changes if _covers(change.path, path)), None)
        if hit is not None:
            return address, comparison, hit
    return None, None, None


def _covers(changed: str, path: str) -> bool:
    return changed == path or path.startswith(changed.rstrip("/") + "/") or changed.startswith(path.rstrip("/") + "/")


def _writer_step(tree: CheckpointTree, place: Place, at: Address, comparison: Comparison, hit: Change) -> Step:
    authors = [author for author in hit.authors if author.node]
    names = _names(authors)
    row = tree.row(at)
    if [author.node for author in authors] == [START]:
        return Step("Input", "gave it", f"#{row.number}", place.at_address(at).url(), row.number, kind="input")
    if not names:
        who = row.label if row.origin_checkpoint_id or comparison.after.source in ("fork", "update") else "Not known"
        did = "set it" if who != "Not known" else "who wrote it"
        detail = f"#{row.number} · edited by hand" if did == "set it" else f"#{row.number} · the file holds no write for it"
        return Step(gate.line(who, 80), did, detail, place.at_address(at).url(), row.number, kind="writer")
    basis = {
        "writes": "from its stored writes",
        "versions": "inferred from version numbers",
        "source": "from the record's source",
    }.get(authors[0].basis, "not certain")
    step = comparison.after.step
    detail = f"#{row.number}" + (f" · step {step}" if step is not None else "") + f" · {basis}"
    return Step(names, "wrote it", detail, place.at_address(at).url(), row.number, kind="writer")


def _earlier_step(
    session: Session, tree: CheckpointTree, place: Place, at: Address, needle: re.Pattern[str] | None
) -> Step | None:
    """A superstep before the write: what it wrote by name, or the very value in it that looks related."""
    comparison = session.compare(at)
    row = tree.row(at)
    first = tree.parent(at) is None
    changed = [change for change in comparison.changes if change.op != "remove"]
    if not changed:
        return None
    related = [found for change in changed if (found := _mention(change.path, change.after, needle)) is not None][:2]
    picked = related or ([(changed[0].path, changed[0].after)] if first else [])
    names = _names([author for change in changed for author in change.authors if author.node])
    is_input = first or names == START or comparison.after.source == "input"
    who = "Input" if is_input else names or gate.line(row.label, 80)
    did = "gave" if is_input else "wrote"
    if not picked:
        channels = list(dict.fromkeys(gate.line(change.channel, 40) for change in changed))
        did += " " + ", ".join(channels[:4]) + (" …" if len(channels) > 4 else "")
    lines = tuple(Line(gate.line(path, 60), shown(value, last_key(path), path=path, width=64)) for path, value in picked)
    ran = _because(session, tree, at)
    return Step(
        who,
        did,
        f"#{row.number}" + (f" · {ran}" if ran and not is_input else ""),
        place.at_address(at, path=picked[0][0] if picked else changed[0].path).url(),
        row.number,
        lines,
        bool(related),
        "input" if is_input else "step",
    )


def _because(session: Session, tree: CheckpointTree, at: Address) -> str:
    parent = tree.parent(at)
    if parent is None:
        return ""
    tasks = session.state(parent).tasks
    return because(tasks[0]) if len(tasks) == 1 else f"{len(tasks)} tasks" if tasks else ""


def because(task: Task) -> str:
    """Why a task ran, in words: `after classify`, `after read_policy and read_history`, `sent by plan`."""
    if task.path and task.path.startswith(("~__pregel_push", "__pregel_push")):
        return "by a Send"
    names = list(dict.fromkeys(author.node for trigger in task.triggers for author in trigger.authors if author.node))
    if names == [START]:
        return "started by the input"
    if names:
        return "after " + " and ".join(gate.line(name, 60) for name in names[:4])
    channels = [trigger.channel for trigger in task.triggers]
    if any(channel.startswith("branch:to:") for channel in channels):
        return "by an edge"
    return gate.line("triggered by " + ", ".join(channels[:3]), 120) if channels else ""


def _names(authors: Sequence[Author]) -> str:
    return " and ".join(gate.line(name, 60) for name in dict.fromkeys(author.node for author in authors if author.node))


def _needle(value: Value) -> re.Pattern[str] | None:
    """What a related value would contain: the same text, or the same digits whatever their separators."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        digits = re.sub(r"\D", "", f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value))
        digits = digits.rstrip("0") or digits
        return re.compile(r"(?<!\d)" + r"[.,' ]?".join(digits) + r"(?:[.,']?0*)*(?!\d)") if len(digits) >= 2 else None
    if isinstance(value, str) and 3 <= len(value) <= 200:
        return re.compile(re.escape(value), re.IGNORECASE)
    return None


def _mention(path: str, value: Value, needle: re.Pattern[str] | None) -> tuple[str, Value] | None:
    """The innermost value in which the text or number occurs, found in a bounded look; of a long text the part around it."""
    if needle is None or not needle.search(preview.summary(value, 4000)):
        return None
    for _ in range(8):
        message = preview.message(value)
        if message is not None or isinstance(value, str):
            return path, _around(message.text if message is not None else str(value), needle)
        inner = next(
            ((step, item) for step, item in tagged.children(value)[:200] if needle.search(preview.summary(item, 2000))), None
        )
        if inner is None:
            break
        path, value = tagged.join_path([*tagged.split_path(path), inner[0]]), inner[1]
    return path, value


def _around(text: str, needle: re.Pattern[str], room: int = 22) -> str:
    found = needle.search(text[:1_000_000])
    if found is None or len(text) <= 2 * room + 10:
        return text
    start, stop = max(0, found.start() - room), min(len(text), found.end() + room)
    return ("…" if start else "") + text[start:stop] + ("…" if stop < len(text) else "")
