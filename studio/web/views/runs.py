"""A run as it goes: its steps, its log, how it ended; and two branches side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from studio.history.walk import last_of, leaves, upward
from studio.model import Address, Change, Comparison
from studio.render import gate, labels, masking, secrets
from studio.render.questions import handed_over
from studio.requests import RunEvent
from studio.runs import Run
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views.changes import Group, _groups
from studio.web.views.chat import message_channels
from studio.web.views.forks import AnswerRow, answer_row
from studio.web.views.timeline import badges
from studio.web.views.values import NOTHING, Line, Shown, shown

MOST_LOG = 400
MOST_STEPS = 200
MOST_LINES = 3
MOST_DRAWN = 100
"""Lines of a step, those included that are opened on demand."""
WORDS = {
    "running": ("Running", "run"),
    "done": ("Done", "ok"),
    "paused": ("Paused: it asks a question", "wait"),
    "failed": ("Failed", "fail"),
    "cancelled": ("Cancelled", "idle"),
}


@dataclass(frozen=True, slots=True)
class LogLine:
    kind: str
    """`step`, `out`, `err`, `note`."""
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class RunView:
    id: str
    status: str
    title: str
    kind: str
    lines: tuple[LogLine, ...]
    skipped: int
    error: str
    refresh: str
    cancel_action: str
    questions: tuple[AnswerRow, ...]
    answer_action: str
    head_href: str
    head_number: str
    compare_href: str
    follow: bool
    """The view goes to the branches by itself when this run ends, once."""


def run_view(run: Run, tree: CheckpointTree | None, place: Place, *, follow: bool = False) -> RunView:
    events = list(run.events)
    drawn = [line for line in (_line(event) for event in events) if line is not None]
    title, kind = WORDS.get(run.status, (run.status, "idle"))
    end: Mapping[str, Any] = run.end or {}
    head = _address(end.get("head"), place)
    head_href = head_number = compare = ""
    if head is not None and tree is not None and head in tree:
        row = tree.row(head)
        head_href, head_number = place.at_address(head, tab="changes", path=None, base=None, base_ns=None).url(), row.number
        compare = branches_href(tree, place, head)
    error = end.get("error")
    extra = [("follow", "1")] if follow else []
    return RunView(
        id=run.id,
        status=run.status,
        title=title,
        kind=kind,
        lines=tuple(drawn[-MOST_LOG:]),
        skipped=max(0, len(drawn) - MOST_LOG),
        error=gate.clean(secrets.mask_text(_error_text(error))) if error and run.status == "failed" else "",
        refresh=place.url(f"run/{run.id}", extra),
        cancel_action=place.url(f"run/{run.id}/cancel"),
        questions=_questions(end) if run.status == "paused" else (),
        answer_action=place.at_address(head, path=None).url("answer") if head is not None else place.url("answer"),
        head_href=head_href,
        head_number=head_number,
        compare_href=compare,
        follow=follow and run.status in ("done", "paused") and bool(compare),
    )


def _error_text(error: Any) -> str:
    if isinstance(error, Mapping):
        return str(error.get("traceback") or error.get("message") or error.get("text") or error)
    return str(error)


def _questions(end: Mapping[str, Any]) -> tuple[AnswerRow, ...]:
    out = []
    for index, item in enumerate(end.get("interrupts") or ()):
        if isinstance(item, Mapping):
            out.append(answer_row(str(item.get("id") or index), str(item.get("task") or ""), handed_over(item.get("value"))))
    return tuple(out)


def _address(found: Any, place: Place) -> Address | None:
    if isinstance(found, Address):
        return found
    if isinstance(found, Mapping) and found.get("checkpoint_id"):
        return Address(
            str(found.get("thread_id", place.thread)), str(found.get("checkpoint_ns", "")), str(found["checkpoint_id"])
        )
    return None


def _line(event: RunEvent) -> LogLine | None:
    data = event.data

    def text(*names: str) -> str:
        found = next((data[name] for name in names if data.get(name) is not None), "")
        return gate.line(secrets.mask_text(str(found)), 2000)

    match event.event:
        case "task":
            return LogLine("step", f"{text('name', 'node')} started", "")
        case "task_result":
            failed = data.get("error")
            asked = data.get("interrupts")
            word = "failed" if failed else "asks a question" if asked else "finished"
            return LogLine("err" if failed else "step", f"{text('name', 'node')} {word}", "")
        case "checkpoint":
            step = data.get("step")
            return LogLine("note", "checkpoint" + (f" of step {step}" if isinstance(step, int) else " saved"), "")
        case "log":
            stream = str(data.get("stream") or data.get("level") or "")
            return LogLine("err" if stream in ("stderr", "ERROR", "CRITICAL") else "out", text("text", "message", "line"), stream)
        case "error":
            return LogLine("err", text("message", "error", "text"), "")
        case "end":
            return LogLine("note", f"run {text('status')}", "")
    return None


# ------------------------------------------------------------------ two branches


@dataclass(frozen=True, slots=True)
class Cell:
    href: str
    number: str
    title: str
    badges: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    rest: tuple[Line, ...] = ()
    """Opened on demand: the ones that did not fit, then the differences that the step above had already."""
    more: int = 0
    """Lines that are not drawn at all."""


@dataclass(frozen=True, slots=True)
class Pair:
    left: Cell | None
    right: Cell | None
    differs: bool


@dataclass(frozen=True, slots=True)
class Branches:
    left_title: str
    right_title: str
    shared: str
    pairs: tuple[Pair, ...]
    more: int
    groups: tuple[Group, ...]
    same: bool
    options: tuple[tuple[str, str, bool], ...]
    """(words, link, chosen) of the branches to compare with."""
    empty: str = ""


def branches_href(tree: CheckpointTree, place: Place, leaf: Address) -> str:
    """The side-by-side view of this leaf and the branch it was forked from; "" when there is no other branch."""
    other = other_leaf(tree, leaf)
    if other is None:
        return ""
    return place.at_address(leaf, tab="branches", path=None, base=other.checkpoint_id, base_ns=None).url()


def other_leaf(tree: CheckpointTree, address: Address) -> Address | None:
    """The branch to compare with: that of the nearest fork's origin, else any other leaf, the head first."""
    line = list(upward(tree, address))
    for step in line:
        origin = tree.origin(step)
        if origin is not None:
            return last_of(tree, origin)
    end = last_of(tree, address)
    others = [leaf for leaf in leaves(tree, address.checkpoint_ns) if leaf not in line and leaf != end]
    if tree.head is not None and tree.head in others:
        return tree.head
    return others[-1] if others else None


def branches(session: Session, tree: CheckpointTree, place: Place) -> Branches:
    """Two branches from the point where they part, step beside step, and the difference of their ends."""
    right_leaf = last_of(tree, place.address)
    left_leaf = None
    if place.base:
        left_leaf = Address(place.thread or "", place.base_ns if place.base_ns is not None else place.ns, place.base)
        if left_leaf not in tree:
            left_leaf = None
    if left_leaf is None or left_leaf == right_leaf:
        left_leaf = other_leaf(tree, right_leaf)
    if left_leaf is None:
        return Branches(
            "", "", "", (), 0, (), False, (), empty="This thread has one branch. Fork from any checkpoint to make another one."
        )
    left_line, right_line = tree.branch(left_leaf), tree.branch(right_leaf)
    shared = 0
    while shared < min(len(left_line), len(right_line)) and left_line[shared] == right_line[shared]:
        shared += 1
    left, right = left_line[shared:], right_line[shared:]
    if right and left and tree.origin(right[0]) == left_line[shared - 1]:
        left = left_line[shared - 1 :]  # a fork stands beside its origin
    pairs: list[Pair] = []
    known: Sequence[Change] = ()
    for index in range(min(MOST_STEPS, max(len(left), len(right)))):
        pair, known = _pair(session, tree, place, left[index : index + 1], right[index : index + 1], known)
        pairs.append(pair)
    ends = session.compare(right_leaf, left_leaf)
    plain = Comparison(ends.before, ends.after, tuple(_anonymous(ends)), ends.problems)
    options = tuple(
        (
            f"#{tree.number(leaf)} {gate.line(tree.row(leaf).label, 40)}",
            place.to(tab="branches", base=leaf.checkpoint_id, base_ns=None).url(),
            leaf == left_leaf,
        )
        for leaf in leaves(tree, right_leaf.checkpoint_ns)[-30:]
        if leaf != right_leaf
    )
    return Branches(
        left_title=_branch_title(tree, left_leaf),
        right_title=_branch_title(tree, right_leaf),
        shared=f"{labels.plural(shared, 'checkpoint')} shared" if shared else "nothing shared",
        pairs=tuple(pairs),
        more=max(0, max(len(left), len(right)) - MOST_STEPS),
        groups=_groups(place, plain, NOTHING, ""),
        same=not ends.changes,
        options=options,
    )


def _anonymous(ends: Comparison) -> Sequence[Change]:
    """Changes without authors, so that they make one group."""
    return [replace(change, authors=()) for change in ends.changes]


def _branch_title(tree: CheckpointTree, leaf: Address) -> str:
    row = tree.row(leaf)
    word = "fork" if any(tree.origin(step) for step in tree.branch(leaf)) else "head" if row.is_head else "branch"
    return f"{word} #{row.number}"


def _pair(
    session: Session,
    tree: CheckpointTree,
    place: Place,
    left: Sequence[Address],
    right: Sequence[Address],
    known: Sequence[Change],
) -> tuple[Pair, Sequence[Change]]:
    """Two steps of the same distance from where the branches part, and all that differs between them.

    Each shows its side of what differs since the step above; `known` is what differed there.
    """
    if not left or not right:
        return Pair(_alone(session, tree, place, left), _alone(session, tree, place, right), True), known
    talk = set(message_channels(session.state(right[0])))
    differing = session.compare(right[0], left[0]).changes
    before = {change.path: change for change in known}

    def is_old(change: Change) -> bool:
        same = before.get(change.path)
        return same is not None and (same.op, same.before, same.after) == (change.op, change.before, change.after)

    ordered = sorted(differing, key=lambda change: (is_old(change), change.channel in talk))  # values before words
    fresh = sum(not is_old(change) for change in ordered)
    cells = []
    for address, is_left in ((left[0], True), (right[0], False)):
        lines = [_side(change, is_left) for change in ordered[:MOST_DRAWN]]
        cells.append(_cell(tree, place, address, lines, fresh, len(ordered)))
    return Pair(cells[0], cells[1], bool(differing)), differing


def _side(change: Change, is_left: bool) -> Line:
    value, missing = (change.before, change.op == "add") if is_left else (change.after, change.op == "remove")
    return Line(
        gate.line(change.path, 60),
        Shown("not there", "null") if missing else shown(value, masking.name_in(change.path), path=change.path, width=72),
    )


def _alone(session: Session, tree: CheckpointTree, place: Place, step: Sequence[Address]) -> Cell | None:
    if not step:
        return None
    address = step[0]
    changed = [change for change in session.compare(address, session.base_of(address)).changes if change.op != "remove"]
    talk = set(message_channels(session.state(address)))
    changed.sort(key=lambda change: change.channel in talk)
    lines = [
        Line(gate.line(one.path, 60), shown(one.after, masking.name_in(one.path), path=one.path, width=72))
        for one in changed[:MOST_DRAWN]
    ]
    return _cell(tree, place, address, lines, len(lines), len(changed))


def _cell(tree: CheckpointTree, place: Place, address: Address, lines: Sequence[Line], fresh: int, total: int) -> Cell:
    """The first of `total` lines; `fresh` of them, which stand first, are new in this step."""
    drawn = min(fresh, MOST_LINES)
    row = tree.row(address)
    return Cell(
        href=place.at_address(address, tab="changes", path=None, base=None, base_ns=None).url(),
        number=row.number,
        title=gate.line(row.label, 60),
        badges=badges(row),
        lines=tuple(lines[:drawn]),
        rest=tuple(lines[drawn:]),
        more=total - len(lines),
    )
