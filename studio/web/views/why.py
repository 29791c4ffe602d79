"""The right column's why: the chain of `studio.why` as steps with links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from studio import why as core
from studio.errors import StudioError
from studio.model import START, Address, Task
from studio.render import gate, labels, masking, preview
from studio.session import Session
from studio.web.links import Place
from studio.web.views.values import Line, shown

BASIS = {"writes": "from its stored writes", "versions": "inferred from version numbers", "source": "from the record's source"}


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


def why(session: Session, place: Place, path: str) -> Why:
    """The chain behind the value at `path` in the checkpoint of `place`."""
    chain = core.chain(session, place.address, path)
    key = masking.name_in(path, dict(session.state(place.address).values))
    summary = preview.summary(chain.value, 60, key=key) if chain.exists else "not there"
    steps: tuple[Step, ...] = ()
    note = "" if chain.complete else "Earlier supersteps are not listed."
    if chain.writer is None:
        note = "No superstep that was looked at changed it: its origin is not known."
    else:
        listed = (_gap(step, place) if isinstance(step, core.Gap) else _earlier(step, place) for step in chain.short())
        steps = (_writer(chain.writer, place), *listed)
    return Why(
        path=gate.line(path, 200),
        title=f"Why is this {summary}?" if chain.exists else "Why is this gone?",
        value=summary,
        steps=steps,
        note=note,
        clear_href=place.to(path=None).url(),
    )


def failed(place: Place, path: str, error: StudioError) -> Why:
    """The column when the chain cannot be read."""
    return Why(gate.line(path, 200), "Why?", "", (), gate.line(error.message, 200), place.to(path=None).url())


def _writer(step: core.Step, place: Place) -> Step:
    number, href = step.row.number, place.at_address(step.address).url()
    if step.kind == "input":
        return Step("Input", "gave it", f"#{number}", href, number, kind="input")
    if step.kind == "edit":
        return Step(gate.line(step.row.label, 80), "set it", f"#{number} · edited by hand", href, number, kind="writer")
    if step.kind == "unknown":
        return Step("Not known", "who wrote it", f"#{number} · the file holds no write for it", href, number, kind="writer")
    at = step.row.checkpoint.step
    detail = f"#{number}" + (f" · step {at}" if at is not None else "") + f" · {BASIS.get(step.basis, 'not certain')}"
    return Step(_names(step.nodes), "wrote it", detail, href, number, kind="writer")


def _earlier(step: core.Step, place: Place) -> Step:
    """A superstep before the write: what it wrote by name, or the very value in it that looks related."""
    is_input = step.kind == "input"
    first = step.changes[0]
    picked = step.related or (((first.path, first.after),) if is_input else ())
    did = "gave" if is_input else "wrote"
    if not picked:
        channels = list(dict.fromkeys(gate.line(change.channel, 40) for change in step.changes))
        did += " " + ", ".join(channels[:4]) + (" …" if len(channels) > 4 else "")
    ran = _ran(step.reasons)
    return Step(
        "Input" if is_input else _names(step.nodes) or gate.line(step.row.label, 80),
        did,
        f"#{step.row.number}" + (f" · {ran}" if ran and not is_input else ""),
        _link(place, step.address, picked[0][0] if picked else first.path),
        step.row.number,
        tuple(Line(gate.line(path, 60), shown(value, masking.name_in(path), path=path, width=64)) for path, value in picked),
        bool(step.related),
        "input" if is_input else "step",
    )


def _gap(gap: core.Gap, place: Place) -> Step:
    href = _link(place, gap.nearest.address, gap.nearest.changes[0].path)
    return Step(labels.plural(gap.count, "superstep"), "before" if gap.before else "between", "", href, "", kind="between")


def _link(place: Place, address: Address, path: str) -> str:
    return place.at_address(address, path=path).url()


def _ran(reasons: Sequence[core.Reason]) -> str:
    return _words(reasons[0]) if len(reasons) == 1 else f"{len(reasons)} tasks" if reasons else ""


def because(task: Task) -> str:
    """Why a task ran, in words: `after classify`, `after read_policy and read_history`, `by a Send`."""
    return _words(core.reason(task))


def _words(reason: core.Reason) -> str:
    if reason.kind == "send":
        return "by a Send"
    if reason.kind == "input":
        return "started by the input"
    if reason.kind == "nodes":
        return "after " + " and ".join(gate.line(name, 60) for name in reason.names[:4])
    if any(channel.startswith("branch:to:") for channel in reason.names):
        return "by an edge"
    return gate.line("triggered by " + ", ".join(reason.names[:3]), 120) if reason.names else ""


def _names(names: Sequence[str]) -> str:
    return " and ".join(gate.line(name, 60) for name in names if name != START)
