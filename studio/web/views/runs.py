"""A run as it goes: its steps, its log, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from studio.model import Address
from studio.render import gate, runwords, secrets
from studio.render.questions import handed_over
from studio.requests import RunEvent
from studio.runs import Run
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views.branches import branches_href
from studio.web.views.forks import AnswerRow, answer_row

MOST_LOG = 400
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


def run_view(run: Run, session: Session, tree: CheckpointTree | None, place: Place, *, follow: bool = False) -> RunView:
    events = list(run.events)
    drawn = [line for line in (_line(event) for event in events) if line is not None]
    title, kind = WORDS.get(run.status, (run.status, "idle"))
    end: Mapping[str, Any] = run.end or {}
    head = _address(end.get("head"), place)
    head_href = head_number = compare = ""
    if head is not None and tree is not None and head in tree:
        row = tree.row(head)
        head_href, head_number = place.at_address(head, tab="changes", path=None, base=None, base_ns=None).url(), row.number
        compare = branches_href(session, place, head)
    error = end.get("error")
    extra = [("follow", "1")] if follow else []
    return RunView(
        id=run.id,
        status=run.status,
        title=runwords.stopped(end, bool(run.request.before or run.request.after)) if run.status == "paused" and end else title,
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
