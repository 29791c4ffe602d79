"""What a superstep changed, grouped by the task that wrote it, and what is scheduled from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from studio import noted, tagged, toolcalls
from studio.beside import ChannelEnds
from studio.calling import SubgraphRun
from studio.history.namespaces import ns_node
from studio.model import START, Author, Change, Comparison, State, Task, Value, Verdict
from studio.render import explained, gate, labels, likeness, masking, preview, questions, secrets
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views.values import (
    NOTHING,
    Bubble,
    Line,
    Lines,
    Reveal,
    Shown,
    Span,
    bubble,
    kind_of,
    lines_of,
    shown,
    text_spans,
)

MOST_CHANGES = 120
"""Changes drawn at once in one group."""
MOST_UNCHANGED = 60
SHORT_TEXT = 48
"""Characters up to which a changed text is drawn as old → new."""
LONG_TEXT = 1200
Runs = Mapping[str, tuple[SubgraphRun, ...]]
"""Task id -> the subgraph runs that it started."""
NO_RUNS: Runs = {}
SIGNS = {"add": ("+", "added"), "remove": ("−", "removed"), "replace": ("~", "changed"), "move": ("↷", "moved")}


@dataclass(frozen=True, slots=True)
class ChangeView:
    path: str
    href: str
    """Selects the path: the right column then says why."""
    form: str
    """`scalar`, `text`, `message`, `lines` or `move`: how it is drawn."""
    op: str
    sign: str
    sign_word: str
    selected: bool
    before: Shown | None = None
    after: Shown | None = None
    spans: tuple[Span, ...] = ()
    bubble: Bubble | None = None
    lines: Lines | None = None
    state_href: str = ""
    from_path: str = ""
    mark: str = ""
    mark_kind: str = ""
    mark_title: str = ""
    """Whether the superstep's writes lead to it, in one sentence."""
    note: str = ""
    """The same where they do not: shown, once for each channel."""
    apart: str = ""
    """What differs where the two sides look alike."""


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    note: str
    changes: tuple[ChangeView, ...]
    more: int = 0
    kind: str = "task"
    """`task`, `input`, `edit` or `unknown`."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    summary: str
    lines: tuple[tuple[Line, str], ...]
    """(line, link into State)."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    name: str
    status: str
    status_kind: str
    text: str
    question: str = ""
    answer: str = ""
    error: str = ""
    note: str = ""
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    groups: tuple[Group, ...]
    unchanged: Unchanged | None
    scheduled: tuple[Scheduled, ...]
    next_text: str
    empty: str
    problems: tuple[str, ...]
    compared: str
    gap: str
    nothing_scheduled: str
    """Said where there are no tasks."""


def changes(
    place: Place, comparison: Comparison, state: State, tree: CheckpointTree, reveal: Reveal = NOTHING, runs: Runs = NO_RUNS
) -> Changes:
    before = comparison.before
    compared, number = "the empty state", ""
    if before is not None:
        number = tree.number(before.address) if before.address in tree else before.checkpoint_id
        parent = tree.parent(state.checkpoint.address)
        origin = tree.origin(state.checkpoint.address)
        word = "parent" if before.address == parent else "origin" if before.address == origin else "base"
        compared = f"#{number} (pinned)" if before.checkpoint_id == place.base else f"{word} #{number}"
    groups = _groups(place, comparison, reveal, f"#{number}")
    told = {found.path.split("/")[1] for group in groups for found in group.changes if found.note}
    return Changes(
        groups=groups,
        unchanged=None if comparison.closed else _unchanged(place, comparison, state),
        scheduled=tuple(scheduled(task, place, tree, runs) for task in state.tasks),
        next_text=f"next: {labels.names(state.next)}" if state.next else "",
        nothing_scheduled=noted.nothing_scheduled(state),
        empty="" if groups else noted.hidden_change(comparison) or _nothing_changed(comparison),
        problems=noted.sentences(
            (
                problem
                for problem in (*state.problems, *comparison.problems, *toolcalls.problems(state))
                if not (problem.kind == "unexplained-value" and problem.where.partition("/")[2] in told)
            ),
            tree,
            state.checkpoint.address,
        ),
        compared=gate.line(compared),
        gap=labels.sentence(explained.gap_between(comparison, tree.row(state.checkpoint.address))),
    )


def _nothing_changed(comparison: Comparison) -> str:
    return "Nothing in the state changed." if comparison.before is not None else "The state is empty here."


def _groups(place: Place, comparison: Comparison, reveal: Reveal, before: str) -> tuple[Group, ...]:
    found: dict[tuple[Author, ...], list[Change]] = {}
    for change in comparison.changes:
        found.setdefault(change.authors, []).append(change)
    return tuple(_group(place, authors, members, comparison, reveal, before) for authors, members in found.items())


def channel_group(place: Place, found: ChannelEnds, comparison: Comparison) -> Group:
    """How one channel differs at the ends of two branches."""
    drawn = _group(place, (), found.changes, comparison, NOTHING, "")
    return replace(drawn, title=gate.line(found.channel, 80), note=found.by, kind="task")


def _group(
    place: Place, authors: Sequence[Author], members: Sequence[Change], comparison: Comparison, reveal: Reveal, before: str
) -> Group:
    names = list(dict.fromkeys(gate.line(author.node, 80) for author in authors if author.node))
    note = f"changed {_channels(members)}"
    kind = "task"
    title = " and ".join(names[:6])
    bases = {author.basis for author in authors}
    if not names:
        title, note, kind = "Author not known", "this file does not tell which task wrote it", "unknown"
        edited = comparison.after.origin == "scratch" or comparison.after.source in ("fork", "update")
        if edited or "source" in bases:
            title, note, kind = "Edited by hand", "set in a fork", "edit"
    elif names == [START]:
        title, note, kind = "Input", "given from outside", "input"
    elif "versions" in bases:
        note += " · inferred from version numbers"
    where = labels.made_towards(authors, gate.line(before))
    if where:
        note = where if kind == "input" else f"{note} {where}"
    members = sorted(
        members, key=lambda change: preview.message(change.before if change.op == "remove" else change.after) is not None
    )
    told = explained.told_at(comparison.changes, comparison.explained)
    apart = likeness.told_apart(comparison.changes)
    drawn = [
        _checked(
            replace(_change(place, change, reveal), apart=apart.get((change.op, change.path), "")),
            change.authors,
            comparison.explained.get(change.channel),
            change.path in told,
        )
        for change in members[:MOST_CHANGES]
    ]
    return Group(title, note, tuple(drawn), max(0, len(members) - MOST_CHANGES), kind)


def _channels(members: Sequence[Change], most: int = 4) -> str:
    """`refund, messages and 3 more`: the channels that changes are in."""
    names = list(dict.fromkeys(gate.line(change.channel, 40) for change in members))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _checked(view: ChangeView, view_authors: Sequence[Author], found: Verdict | None, told: bool) -> ChangeView:
    """With the mark that says whether the superstep's writes lead to it; `told`: with the sentence in full."""
    if found is None:
        return view
    if found.how == "outside" and not told and any(author.node for author in view_authors):
        return view  # this part of the value has an author
    words = explained.sentence(found)
    return replace(
        view, mark=explained.mark(found), mark_kind=explained.kind(found), mark_title=words, note=words if told else ""
    )


def _change(place: Place, change: Change, reveal: Reveal) -> ChangeView:
    sign, word = SIGNS[change.op]
    key = masking.name_in(change.path)
    base = ChangeView(
        path=gate.line(change.path, 300),
        href=place.to(path=change.path).url(),
        form="scalar",
        op=change.op,
        sign=sign,
        sign_word=word,
        selected=place.path == change.path,
        state_href=place.to(path=change.path, tab="state").url(),
        before=shown(change.before, key, path=change.path, reveal=reveal) if change.op not in ("add", "move") else None,
        after=shown(change.after, key, path=change.path, reveal=reveal) if change.op != "remove" else None,
    )
    if change.op == "move":
        return replace(base, form="move", from_path=gate.line(change.from_path or "", 300))
    value = change.before if change.op == "remove" else change.after
    if any(side is not None and side.masked for side in (base.before, base.after)):
        return base
    drawn = bubble(value, sign=sign, sign_word=word)
    if drawn is not None:
        return replace(base, form="message", bubble=drawn)
    spans = _text_change(change)
    if spans:
        return replace(base, form="text", spans=spans)
    if change.op in ("add", "remove") and kind_of(value) in ("list", "map", "type") and _many(value):
        lines = lines_of(value, change.path, reveal, lambda inner: place.to(path=inner).url(), place.path, limit=10)
        return replace(base, form="lines", lines=lines)
    return base


def _text_change(change: Change) -> tuple[Span, ...]:
    """A long text that came, went or changed, as spans; () for everything else."""
    texts = [change.before if change.op != "add" else "", change.after if change.op != "remove" else ""]
    if not all(isinstance(text, str) for text in texts) or (max(map(len, texts)) <= SHORT_TEXT and "\n" not in "".join(texts)):
        return ()
    if change.op == "replace":
        return text_spans(texts[0], texts[1])
    text = texts[0] or texts[1]
    spans = (Span("ins" if change.op == "add" else "del", gate.clean(text[:LONG_TEXT])),)
    return spans + ((Span("fold", f"{len(text) - LONG_TEXT:,} more characters"),) if len(text) > LONG_TEXT else ())


def _many(value: Value) -> bool:
    return len(tagged.children(value)) > 0 and len(preview.summary(value, 200)) > SHORT_TEXT


def _unchanged(place: Place, comparison: Comparison, state: State) -> Unchanged | None:
    """What stayed the same, in one line: whole channels by name, list items by count."""
    touched: dict[str, set[str]] = {}
    for change in comparison.changes:
        steps = tagged.split_path(change.path)
        if steps:
            touched.setdefault(steps[0], set()).add(steps[1] if len(steps) > 1 else "")
    words: list[str] = []
    lines: list[tuple[Line, str]] = []
    for channel, value in state.values.items():
        inner = touched.get(channel)
        if inner is None:
            words.append(gate.line(channel, 60))
            if len(lines) < MOST_UNCHANGED:
                href = place.to(tab="state", path=tagged.join_path([channel])).url()
                lines.append((Line(gate.line(channel, 60), shown(value, channel)), href))
        elif isinstance(value, list) and "" not in inner and len(value) > len(inner):
            words.append(labels.counted_in(len(value) - len(inner), gate.line(channel, 60)))
    if not words or comparison.before is None:
        return None
    shown_words = ", ".join(words[:6]) + (f" and {len(words) - 6} more" if len(words) > 6 else "")
    return Unchanged(f"{shown_words} unchanged", tuple(lines))


STATUS_KINDS = {"done": "ok", "failed": "fail", "paused": "wait", "pending": "idle", "unknown": "idle"}


def scheduled(task: Task, place: Place, tree: CheckpointTree, runs: Runs) -> Scheduled:
    question = answer = note = text = ""
    if task.interrupts:
        last = task.interrupts[-1]
        question = questions.asked(last.value).quoted
        answer = preview.summary(last.answer, 120) if last.answered else ""
        if len(task.interrupts) > 1:
            note = f"{len(task.interrupts)} questions"
    elif task.error:
        text = ""
    elif task.writes:
        channels = list(
            dict.fromkeys(
                gate.line(write.channel, 40)
                for write in task.writes
                if not write.channel.startswith(("__", "branch:", "join:", "start:"))
            )
        )
        text = "wrote " + ", ".join(channels[:6]) if channels else "wrote nothing to the state"
    else:
        text = ""
    return Scheduled(
        name=gate.line(task.name, 80) if task.name else "name not known",
        status=labels.TASK_WORDS[task.status],
        status_kind=STATUS_KINDS[task.status],
        text=text,
        question=question,
        answer=answer,
        error=gate.line((secrets.mask_text(task.error.strip()).splitlines() or [""])[-1], 240) if task.error else "",
        note=note,
        links=tracks(task, place, tree, runs),
    )


def tracks(task: Task, place: Place, tree: CheckpointTree, runs: Runs, word: str = "subgraph ") -> tuple[tuple[str, str], ...]:
    """(words, link to the first row) of each subgraph run that a task started; without a link where its rows are not here."""
    missing = ((gate.line(f"{labels.UNSTORED}: {task.unstored}", 300), ""),) if task.unstored else ()
    found = runs.get(task.id or "", ())
    if not found:
        return (*((f"{word}{gate.line(ns_node(ns), 60)}", "") for ns in task.subgraph_ns if ns), *missing)
    here = (
        (
            f"{word}#{tree.number(run.first)}" + (f" … #{tree.number(run.last)}" if run.count > 1 else ""),
            place.at_address(run.first, path=None).url(),
        )
        for run in found
    )
    return (*here, *missing)
