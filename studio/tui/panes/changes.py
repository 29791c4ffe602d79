"""Changes: what this superstep changed, grouped by the tasks that wrote it, then what was scheduled from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from studio import noted, tagged, toolcalls
from studio.calling import SubgraphRun
from studio.model import Author, Change, State, Task, Value, Verdict
from studio.render import explained as explained_words
from studio.render import gate, labels, likeness, masking, pairs, preview, questions, secrets
from studio.tui import draw
from studio.tui.lines import BLANK, Line
from studio.tui.point import Point, row_of
from studio.value import Tagged

if TYPE_CHECKING:
    from studio.tree import CheckpointTree

Runs = Mapping[str, tuple[SubgraphRun, ...]]
"""Task id -> the subgraph runs that it started."""
SHORT = 48
"""A text up to this long is shown as old → new; longer ones as a word diff."""
MOST_CHANGES = 400
_BASIS = {"versions": "inferred from versions", "none": "", "source": "", "writes": ""}


def build(point: Point, tree: CheckpointTree) -> tuple[Line, ...]:
    """The lines of the pane."""
    found = point.comparison
    base = found.before.address if found.before is not None else None
    before = draw.number(row_of(tree, base), base) if base is not None else ""
    what = list(changes(found.changes, point.state, show_secrets=point.show_secrets, explained=found.explained, before=before))
    if not what:
        hidden = noted.hidden_change(found)
        what.append(Line(draw.own(hidden or _nothing_changed(point), "$wait" if hidden else "$quiet"), 1))
    gap = explained_words.gap_between(found, point.row)
    if gap:
        what.insert(0, Line(draw.own(f"{labels.sentence(gap)}.", "$faint"), 1))
    if not found.closed:
        what.extend(_unchanged(point))
    then = scheduled(point.state, tree, point.runs)
    lines = [*then, BLANK, *what] if _wants_a_person(point.state) else [*what, BLANK, *then]
    caller = called_from(point, tree)
    above = [*([caller] if caller is not None else []), *kin_lines(point)]
    if above:
        lines = [*above, BLANK, *lines]
    odd = (*point.state.problems, *found.problems, *toolcalls.problems(point.state))
    problems = noted.sentences(odd, tree, point.address)
    for told in problems[:20]:
        lines.append(Line(draw.join(draw.own("!", "$wait bold"), draw.own(told, "$wait")), 1, hanging=2))
    if len(problems) > 20:
        lines.append(Line(draw.own(labels.plural(len(problems) - 20, "more problem"), "$wait"), 1))
    return tuple(lines)


def _wants_a_person(state: State) -> bool:
    """A failure or an open question comes before everything else."""
    waits = any(not interrupt.answered for task in state.tasks for interrupt in task.interrupts)
    return state.status in ("failed", "paused") and (waits or any(task.status == "failed" for task in state.tasks))


def _nothing_changed(point: Point) -> str:
    if point.comparison.before is None:
        return "The first checkpoint: the state is still empty."
    if point.row.origin_checkpoint_id is not None:
        return f"The same point again: every value equals its {point.against}."
    return f"Nothing changed since {point.against}."


def changes(
    found: Sequence[Change],
    state: State | None,
    *,
    show_secrets: bool = False,
    heads: bool = True,
    explained: Mapping[str, Verdict] | None = None,
    before: str = "",
) -> tuple[Line, ...]:
    """Changes grouped by author, in the order they came; what their writes do not explain says so once for each channel.

    `before` is the number of what the state is compared with.
    """
    told = explained_words.told_at(found, explained or {})
    groups: dict[tuple[Author, ...], list[Change]] = {}
    shown = sorted(found[:MOST_CHANGES], key=_is_message)  # what was said comes after what was decided
    for change in shown:
        groups.setdefault(tuple(change.authors), []).append(change)
    apart = likeness.told_apart(shown, show_secrets=show_secrets)
    lines: list[Line] = []
    width = _path_width([path for change in shown for path in _shown_paths(change, show_secrets)])
    for authors, group in groups.items():
        if heads:
            if lines:
                lines.append(BLANK)
            lines.append(_head(authors, group, state, explained or {}, before))
        for change in group:
            lines.extend(_change(change, width, show_secrets))
            if (change.op, change.path) in apart:
                lines.append(Line(draw.own(f"({apart[change.op, change.path]})", "$wait"), 4, hanging=1))
            if change.path in told:
                verdict = told[change.path]
                style = "$wait" if verdict.how == "outside" else "$faint"
                lines.append(Line(draw.own("≠ " + explained_words.sentence(verdict), style), 4, hanging=2))
    if len(found) > MOST_CHANGES:
        lines.append(
            Line(draw.own(f"{labels.plural(len(found) - MOST_CHANGES, 'more change')}; State shows every value", "$wait"), 1)
        )
    return tuple(lines)


def _shown_paths(change: Change, show_secrets: bool) -> list[str]:
    few = few_fields(change.path, change.after, show_secrets) if change.op == "add" else []
    return [path for path, _ in few] or [change.path]


def _is_message(change: Change) -> bool:
    return (
        change.path.startswith("/messages/")
        or preview.message(change.before if change.op == "remove" else change.after) is not None
    )


def _path_width(paths: Sequence[str]) -> int:
    return min(26, max((len(path) for path in paths if len(path) <= 26), default=12))


def _head(
    authors: tuple[Author, ...], group: Sequence[Change], state: State | None, explained: Mapping[str, Verdict], before: str
) -> Line:
    known = any(author.node for author in authors)
    name = draw.authors(authors)
    edited = state is not None and state.checkpoint.source in ("update", "fork")
    if not known and (edited or any(author.basis == "source" for author in authors)):
        name, known = "edited by hand", True
    content = draw.own(name, "bold $primary" if known else "$wait")
    where = labels.made_towards(authors, before)
    if where:
        content = content + draw.own(f" {where}", "$quiet")
    inferred = next((_BASIS[author.basis] for author in authors if _BASIS.get(author.basis)), "")
    if inferred:
        content = content + draw.own(f"  {inferred}", "$faint")
    channels: list[str] = []
    for change in group:
        if change.channel not in channels:
            channels.append(change.channel)
    wrote = gate.line(", ".join(channels), 40)
    checked = {explained_words.kind(explained[channel]) for channel in channels if channel in explained}
    tick = " ✓" if checked == {"explained"} else ""
    return Line(content, 1, right=draw.own(f"changed {wrote}{tick}", "$faint"))


def _path(path: str, width: int) -> Content:
    shown = gate.line(path, 200)
    return Content.styled(shown.ljust(width) if len(shown) <= width else shown, "$quiet")


def _change(change: Change, width: int, show_secrets: bool) -> list[Line]:
    path = change.path
    whole = change.after if change.op != "remove" else change.before
    if change.op in ("add", "remove") and preview.message(whole) is not None and not draw.masked(path, whole, show_secrets):
        return message(path, whole, width, sign="+" if change.op == "add" else "-", show_secrets=show_secrets)
    if change.op == "move":
        moved = draw.join(draw.own("↷ moved from", "$faint"), draw.text(change.from_path or "?", "$quiet"))
        return [Line(_path(path, width) + Content("  ") + moved, 2, path=path)]
    if change.op == "add":
        return _whole(path, change.after, width, "+", show_secrets)
    if change.op == "remove":
        return _whole(path, change.before, width, "-", show_secrets)
    return _replace(change, width, show_secrets)


def _whole(path: str, stored: Value, width: int, sign: str, show_secrets: bool) -> list[Line]:
    """An added or removed value in one line, a container or a long text with the rest folded below; few fields stand in full."""
    few = few_fields(path, stored, show_secrets)
    if few:
        return [line for inner, value in few for line in _whole(inner, value, width, sign, show_secrets)]
    shown = draw.value(path, stored, 160, show_secrets=show_secrets)
    ground = draw.new if sign == "+" else draw.old
    content = (
        _path(path, width) + Content("  ") + draw.own(f"{sign} ", "$new bold" if sign == "+" else "$old bold") + ground(shown)
    )
    folded = inside(path, stored, show_secrets=show_secrets, editable=sign == "+")
    if folded:
        content = content + draw.own(" ▸", "$faint")
    return [Line(content, 2, path=path if sign == "+" else None, folded=folded, hanging=min(4, width))]


def few_fields(path: str, stored: Value, show_secrets: bool, most: int = 8) -> list[tuple[str, Value]]:
    """(path, value) of a small record's fields; [] for anything else."""
    if path.count("/") > 1 or draw.masked(path, stored, show_secrets) or not isinstance(stored, (dict, Tagged)):
        return []
    if isinstance(stored, Tagged) and stored.kind != "fields":
        return []
    children = tagged.children(stored)
    return (
        [(tagged.join_path([*tagged.split_path(path), step]), value) for step, value in children]
        if 0 < len(children) <= most
        else []
    )


def _replace(change: Change, width: int, show_secrets: bool) -> list[Line]:
    path, before, after = change.path, change.before, change.after
    hidden = draw.masked(path, before, show_secrets) or draw.masked(path, after, show_secrets)
    if isinstance(before, str) and isinstance(after, str) and not hidden and max(len(before), len(after)) > SHORT:
        words = draw.words_changed(before, after)
        if words is None:
            words = draw.own(f"text replaced, {len(before):,} → {len(after):,} characters", "$quiet")
        return [Line(_path(path, width), 2, path=path), Line(words, 4)]
    old = draw.value(path, before, 60, show_secrets=show_secrets)
    new = draw.value(path, after, 120, show_secrets=show_secrets)
    content = _path(path, width) + Content("  ") + draw.old(old) + draw.own(" → ", "bold") + draw.new(new)
    folded = () if hidden else inside(path, after, show_secrets=show_secrets, editable=True)
    return [Line(content, 2, path=path, folded=folded, hanging=min(4, width))]


def inside(path: str, stored: Value, *, show_secrets: bool, editable: bool, most: int = 60) -> tuple[Line, ...]:
    """What is folded below a one-line value: its children, or a long text in full; nothing below a masked one."""
    if not show_secrets and secrets.hides_all(masking.name_in(path), stored):
        return ()
    if isinstance(stored, str):
        whole = stored if show_secrets or len(stored) <= 150 else secrets.mask_text(stored)
        return (Line(draw.block(whole), 4, bar="$line"),) if len(stored) > 150 else ()
    if isinstance(stored, Tagged) and stored.kind == "args":
        return ()
    if names := preview.untold(stored):
        return tuple(Line(draw.text(name, width=340), 6, fold=True) for name in names)
    children = tagged.children(stored)
    if len(children) < 2 and not any(tagged.children(child) for _, child in children[:1]):
        return ()
    lines = []
    if not show_secrets and pairs.announced(stored) is not None:
        return ()  # in its one line the secret member is masked
    for step, child in children[:most]:
        inner = tagged.join_path([*tagged.split_path(path), step])
        shown = (
            Content.styled(gate.line(step, 24).ljust(14), "$quiet")
            + Content(" ")
            + draw.value(inner, child, 140, show_secrets=show_secrets)
        )
        lines.append(Line(shown, 6, path=inner if editable else None, hanging=2))
    if len(children) > most:
        lines.append(Line(draw.own(f"… {len(children) - most:,} more; State shows them", "$faint"), 6))
    return tuple(lines)


def message(path: str, stored: Value, width: int, *, sign: str, show_secrets: bool) -> list[Line]:
    """A chat message as a person reads it: who, what, and the tools it calls."""
    view = preview.message(stored)
    assert view is not None
    role = f"{view.role} {gate.line(view.name, 30)}" if view.name and view.role == "tool" else view.role
    style = "$new" if sign == "+" else "$old" if sign == "-" else "$primary"
    head = _path(path, width) + Content("  ") + draw.own(f"{sign} {role}".strip(), f"{style} bold")
    if view.status == "error":
        head = head + draw.own("  error", "$error")
    text = draw.block(masking.text(view.text, show_secrets=show_secrets), "" if sign != "-" else "strike $old", limit=1_500)
    lines = [Line(head, 2, path=path)]
    if view.text:
        lines.append(Line(text, 4, bar=style))
    for call in view.tool_calls:
        lines.append(Line(draw.own("⚒ " + preview.call_text(call, 400), "$quiet"), 4, bar=style, hanging=2))
    return lines


def _unchanged(point: Point) -> list[Line]:
    """One folded line for all that stayed as it was."""
    touched = {change.channel for change in point.comparison.changes}
    same = [channel for channel in point.state.values if channel not in touched]
    words: list[str] = []
    for channel in sorted(touched & set(point.state.values)):
        value = point.state.values[channel]
        if isinstance(value, list) and not any(
            change.path.count("/") == 1 for change in point.comparison.changes if change.channel == channel
        ):
            left = len(value) - sum(change.channel == channel and change.op != "remove" for change in point.comparison.changes)
            if left > 0:
                words.append(labels.counted_in(left, gate.line(channel, 30)))
    words.extend(gate.line(channel, 30) for channel in same[:8])
    if len(same) > 8:
        words.append(labels.plural(len(same) - 8, "more channel"))
    if not words:
        return []
    folded = []
    for channel in same[:200]:
        path = tagged.join_path([channel])
        shown = draw.value(path, point.state.values[channel], 160, show_secrets=point.show_secrets)
        folded.append(Line(_path(path, 18) + Content("  ") + shown, 4, path=path, hanging=4))
    line = draw.own("▸ " if folded else "  ", "$faint") + draw.own(f"{', '.join(words)} unchanged", "$faint")
    return [Line(line, 1, folded=tuple(folded), hanging=2)]


def scheduled(state: State, tree: CheckpointTree, runs: Runs) -> list[Line]:
    """The tasks that this checkpoint scheduled, with the questions they asked."""
    following = state.next
    right = None
    if following:
        right = draw.own("next: ", "$faint") + draw.text(labels.names(following), "$quiet", 40)
    lines = [Line(draw.own("Scheduled from here", "bold"), 1, right=right)]
    if not state.tasks:
        return [*lines, Line(draw.own(noted.nothing_scheduled(state), "$quiet"), 2)]
    for task in state.tasks[:50]:
        lines.extend(task_lines(task))
        lines.extend(run_lines(task, tree, runs, 4))
    if len(state.tasks) > 50:
        lines.append(Line(draw.own(f"… {len(state.tasks) - 50:,} more; Tasks shows them", "$faint"), 2))
    return lines


def run_lines(task: Task, tree: CheckpointTree, runs: Runs, indent: int) -> list[Line]:
    """Where the subgraph runs of a task are; enter goes there."""
    lines = []
    for run in runs.get(task.id or "", ()):
        ends = f"{draw.number(row_of(tree, run.first), run.first)} … {draw.number(row_of(tree, run.last), run.last)}"
        words = f"→ subgraph {ends}, {labels.plural(run.count, 'superstep')}"
        lines.append(Line(draw.own(words, "$lane-sub"), indent, address=run.first))
    if task.unstored:
        told = draw.own(f"→ {labels.UNSTORED}: ", "$wait") + draw.text(task.unstored, "$wait", 200)
        lines.append(Line(told, indent, hanging=2))
    return lines


def called_from(point: Point, tree: CheckpointTree) -> Line | None:
    """Who called the subgraph that a checkpoint belongs to; enter goes there."""
    caller = point.caller
    if caller is None:
        return None
    number = draw.number(row_of(tree, caller.address), caller.address)
    words = draw.own(f"↰ called from {number} task ", "$lane-sub") + draw.text(caller.name or "not known", "$lane-sub", 60)
    return Line(words, 1, address=caller.address)


def kin_lines(point: Point) -> list[Line]:
    """Ways to other threads: to what this was made from, and to the forks made of it; enter goes there."""
    return [Line(draw.own(f"⑂ {words}", "$lane-fork"), 1, address=at) for words, at in point.kin[:8]]


def task_lines(task: Task) -> list[Line]:
    """A task in a line or two: how it ended, what it asked."""
    style = {"failed": "$error", "paused": "$wait", "pending": "$primary"}.get(task.status, "$quiet")
    name = draw.text(task.name or "name not known", "bold" if task.name else "$wait", 40)
    lines = [Line(name + Content("  ") + draw.own(labels.TASK_WORDS.get(task.status, task.status), style), 2)]
    for interrupt in task.interrupts:
        shown = draw.own("asked ", "$faint") + draw.text(questions.asked(interrupt.value, 400).words, "bold", 400)
        if interrupt.answered:
            shown = shown + draw.own("  answered ", "$faint") + draw.new(preview.summary(interrupt.answer, 80))
        else:
            shown = shown + draw.own("  a to answer", "$wait")
        lines.append(Line(shown, 4, hanging=2))
    if task.error:
        last = next(reversed(masking.text(task.error.strip()).splitlines()), "error")
        lines.append(Line(draw.block(last, "$error"), 4, hanging=2))
    return lines
