"""The why pane: the chain of `studio.why` as lines that jump to each superstep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from studio import why
from studio.render import gate, labels, masking, preview, questions
from studio.tui import draw
from studio.tui.lines import Line
from studio.tui.point import Point

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

BASIS = {"writes": "from its writes", "versions": "inferred from versions"}


@dataclass(frozen=True, slots=True)
class Why:
    title: str
    lines: tuple[Line, ...]


def explain(session: Session, tree: CheckpointTree, point: Point, path: str | None) -> Why:
    """The chain for the value at `path`, or why the superstep as a whole ran."""
    if path is None:
        return Why(f"why {draw.number(point.row)} ran", tuple(_ran(session, tree, point)))
    chain = why.chain(session, point.address, path)
    key = masking.name_in(path, point.state.editable)
    shown = preview.summary(chain.value, 32, key=key, show_secrets=session.show_secrets)
    title = f"why {gate.line(path, 44)} " + (f"is {shown}" if chain.exists else "is gone")
    if chain.writer is None:
        return Why(title, (Line(draw.own("No superstep that was looked at changed it: its origin is not known.", "$quiet"), 1),))
    lines = [_wrote(chain.writer, path), *_reasons(chain.writer.reasons)]
    lines += [_gap(step) if isinstance(step, why.Gap) else _earlier(step, session.show_secrets) for step in chain.short()]
    if not chain.complete:
        lines.append(Line(draw.own("   earlier supersteps are not listed", "$faint"), 1))
    return Why(title, tuple(lines))


def _ran(session: Session, tree: CheckpointTree, point: Point) -> list[Line]:
    words = {
        "input": "An input started it.",
        "update": "An edit made it; no task ran.",
        "fork": "A fork made it; no task ran.",
    }.get(point.row.checkpoint.source or "", "")
    if point.row.nodes or not words:
        none = Line(draw.own("Not known: this file does not tell why it ran.", "$quiet"), 1)
        return _reasons(why.reasons(session, tree, point.address)) or [none]
    return [Line(draw.own(words, "$quiet"), 1)]


def _wrote(step: why.Step, path: str) -> Line:
    if step.kind == "edit":
        words = draw.own("You set it here" if step.row.checkpoint.origin == "scratch" else "It was set by hand", "bold")
    elif step.kind == "input":
        words = draw.own("The input gave it", "bold")
    elif step.kind == "node":
        words = draw.own(labels.names(step.nodes), "bold $primary") + draw.own(" wrote it")
    else:
        words = draw.own("Who wrote it is not known", "bold $wait")
    change, how = step.changes[0], BASIS.get(step.basis, "")
    if change.path == path and change.op == "replace":
        words = words + draw.own("  was ", "$faint") + draw.value(path, change.before, 160)
    number = draw.own(f"{draw.number(step.row)} ", "$quiet")
    return Line(number + words + draw.own(f"  {how}" if how else "", "$faint"), 1, address=step.address, hanging=4)


def _reasons(reasons: tuple[why.Reason, ...]) -> list[Line]:
    lines: list[Line] = []
    for reason in reasons[:3]:
        if reason.kind == "input":
            because = draw.own("the input came", "$quiet")
        elif reason.kind == "send":
            because = draw.own("a Send started it with its own argument", "$quiet")
        elif reason.kind == "nodes":
            done = " finished" if len(reason.names) < 2 else " joined"
            because = draw.text(" and ".join(reason.names[:3]), "$primary", 60) + draw.own(done, "$quiet")
        elif reason.names:
            because = draw.text(reason.names[0], "$quiet", 50) + draw.own(" was written", "$quiet")
        else:
            continue
        name = draw.text(reason.task or "it", "bold", 30)
        lines.append(Line(draw.own("   ← ", "$faint") + name + draw.own(" ran because ", "$quiet") + because, 1, hanging=5))
        for interrupt in reason.interrupts[:1]:
            asked = (
                draw.own("   ← ", "$faint")
                + draw.own("asked ", "$quiet")
                + draw.text(questions.asked(interrupt.value, 160).words, width=160)
            )
            if interrupt.answered:
                asked = asked + draw.own("  answered ", "$faint") + draw.own(preview.summary(interrupt.answer, 160))
            lines.append(Line(asked, 1, hanging=5))
    return lines


def _earlier(step: why.Step, show_secrets: bool) -> Line:
    """One superstep before the write, with the value in it that looks related, or the first it wrote."""
    path, value = step.related[0] if step.related else (step.changes[0].path, step.changes[0].after)
    who = "input" if step.kind == "input" else draw.title(step.row, 60)
    more = f" +{len(step.changes) - 1}" if len(step.changes) > 1 and not step.related else ""
    content = (
        draw.own("   ← ", "$faint")
        + draw.own(f"{draw.number(step.row)} ", "$quiet")
        + draw.own(who, "bold")
        + (draw.own("  looks related", "bold $wait") if step.related else draw.own(""))
        + draw.own("  ")
        + draw.text(path, "$quiet", 120)
        + draw.own(" = ", "$faint")
        + draw.value(path, value, 160, show_secrets=show_secrets)
        + draw.own(more, "$faint")
    )
    return Line(content, 1, address=step.address, hanging=5)


def _gap(gap: why.Gap) -> Line:
    words = f"   … {labels.plural(gap.count, 'superstep')} {'before' if gap.before else 'between'}"
    return Line(draw.own(words, "$faint"), 1, address=gap.nearest.address)
