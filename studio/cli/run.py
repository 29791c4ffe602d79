"""`studio run`: the user's graph again, from a checkpoint; the plan first, then its events as they come."""

from __future__ import annotations

import queue
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from studio.cli.common import config_arguments, confirmed, json_argument, object_argument, opened, pair_argument
from studio.cli.documents import Documents
from studio.cli.out import Out, line_by_line
from studio.cli.waiting import waiting
from studio.errors import RunError, UsageError
from studio.render import labels, questions, runwords, secrets
from studio.render.gate import line
from studio.render.masking import MASKED
from studio.requests import RunEvent, RunPlan, RunRequest
from studio.session import Session

EXIT = {"done": 0, "paused": 4, "failed": 1, "cancelled": 130}


def run(options: Namespace, out: Out) -> int:
    with opened(options, out) as session:
        address = session.resolve(options.ref, options.thread, options.ns)
        request = RunRequest(
            address,
            input=json_argument(options.input, "--input") if options.input is not None else None,
            has_input=options.input is not None,
            resume=json_argument(options.resume, "--resume") if options.resume is not None else None,
            has_resume=options.resume is not None,
            answers=_answers(options.answer),
            before=tuple(options.before),
            after=tuple(options.after),
            in_place=options.in_place,
            trust_types=options.trust_types,
            recursion_limit=options.recursion_limit,
            config=config_arguments(options.config),
            context=object_argument(options.context, "--context") if options.context is not None else {},
            steps=options.steps,
            timeout=options.timeout,
            new_thread=options.new_thread,
        )
        with waiting(out, options.graph):
            plan = session.plan(request, look=True)
        if out.as_json:
            out.document({"event": "plan", **Documents(out.show_secrets).plan(plan)})
        else:
            _plan_text(plan, out)
        if options.dry_run:
            return 0
        _may_start(plan, options, out, session)
        return _follow(session, request, out)


def _answers(texts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for ident, value in (pair_argument(text, "--answer") for text in texts):
        if ident in found:
            raise UsageError(f"--answer: the question {ident!r} is answered twice", "give one answer to each question")
        found[ident] = value
    return found


def _may_start(plan: RunPlan, options: Namespace, out: Out, session: Session) -> None:
    """Refuse or ask where a person has to decide (design rules 4 and 8)."""
    import sys

    if plan.needs_trust and not options.trust_types:
        names = ", ".join(use.name for use in plan.types if not use.safe)
        hint = "look at the plan (--dry-run); --trust-types allows it"
        raise RunError(f"running would import stored types outside the safe list: {names}", hint, "needs-trust")
    if options.in_place:
        confirmed(
            options,
            out,
            f"This run adds rows to {line(session.location)} itself.",
            f"--in-place writes into {session.location} itself",
        )
    elif plan.side_effects and sys.stdin.isatty() and sys.stderr.isatty():
        confirmed(options, out, "The plan above repeats what already happened once.", "")


def _follow(session: Session, request: RunRequest, out: Out) -> int:
    """Print events until the end. Ctrl-C cancels the run: its whole process group ends."""
    events: queue.SimpleQueue[RunEvent] = queue.SimpleQueue()
    run = session.run(request, events.put)
    cancelled = False
    while True:
        try:
            try:
                event = events.get(timeout=0.2)
            except queue.Empty:
                if run.status == "running":
                    continue
                event = RunEvent("end", dict(run.end or {"status": run.status}))
            if event.event == "plan":
                continue
            _print(event, out, bool(request.before or request.after))
            if event.event == "end":
                return EXIT.get(str(event.data.get("status")), 1)
        except KeyboardInterrupt:
            if cancelled:
                raise
            cancelled = True
            run.cancel()


def _print(event: RunEvent, out: Out, asked: bool) -> None:
    if out.as_json:
        out.say(_json_line({"event": event.event, **_masked(dict(event.data), out)}), flush=True)
    else:
        text = event_text(event, out, asked)
        if text:
            out.say(text, flush=True)


def _json_line(document: dict[str, Any]) -> str:
    from studio.tagged import dumps

    return dumps(document)


def _masked(data: dict[str, Any], out: Out) -> dict[str, Any]:
    """Event data with secrets replaced: it is plain JSON that the user's program had a hand in."""
    if out.show_secrets:
        return data
    found: dict[str, Any] = {}
    for key, value in data.items():
        found[key] = _mask_json(key, value)
    return found


def _mask_json(key: str | None, value: Any, depth: int = 0) -> Any:
    if secrets.reason(key, value) == secrets.BY_NAME:
        return MASKED
    if isinstance(value, str):
        return secrets.mask_text(value)
    if isinstance(value, dict) and depth < 50:
        return {name: _mask_json(name, item, depth + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple)) and depth < 50:
        return [_mask_json(key, item, depth + 1) for item in value]
    return value


def event_text(event: RunEvent, out: Out, asked: bool) -> str:
    """One event as a line; "" for what needs none. `asked`: the call names nodes to stop at."""
    data = _masked(dict(event.data), out)
    if event.event == "task":
        return f"{out.paint('▸', 'blue')} {line(str(data.get('name')))}"
    if event.event == "task_result":
        error = data.get("error")
        if error:
            return out.paint(f"✕ {line(str(data.get('name')))}: {line(str(error), 300)}", "red")
        channels = ", ".join(line(str(one)) for one in data.get("channels") or ())
        waits = " waits for an answer" if data.get("interrupts") else ""
        name = f"{out.paint('●', 'green')} {line(str(data.get('name')))}"
        return f"{name}{out.paint(waits, 'yellow')}  {out.paint(channels, 'cyan')}".rstrip()
    if event.event == "checkpoint":
        step = data.get("step")
        nodes = ", ".join(line(str(one)) for one in data.get("next") or ())
        return out.paint(f"  step {step}  {line(str(data.get('checkpoint_id')))}{'  next ' + nodes if nodes else ''}", "dim")
    if event.event in ("log", "error"):
        said = f"{line(str(data['node']), 60)}: " if data.get("stream") == "model" and data.get("node") else ""
        return out.paint(f"  │ {said}{line_by_line(str(data.get('text', data.get('message', ''))))}", "dim")
    if event.event == "end":
        return _end_text(data, out, asked)
    return ""


def _end_text(data: dict[str, Any], out: Out, asked: bool) -> str:
    status = str(data.get("status"))
    colour = {"done": "green", "paused": "yellow", "failed": "red"}.get(status, "dim")
    words = runwords.stopped(data, asked) if status == "paused" else status
    lines = [out.paint(words, colour, "bold")]
    head = data.get("head")
    if isinstance(head, dict):
        lines[0] += out.paint(f"  head {line(str(head.get('checkpoint_id')))}", "dim")
    for one in data.get("interrupts") or ():
        if isinstance(one, dict):
            words = questions.asked(questions.handed_over(one.get("value")), 300).quoted
            lines.append(out.paint(f"  asks {words}  id {line(str(one.get('id')))}", "yellow"))
    error = data.get("error")
    if isinstance(error, dict):
        lines.append(
            out.paint(
                f"  {line(str(error.get('type') or error.get('kind') or 'error'))}: {line(str(error.get('message', '')), 500)}",
                "red",
            )
        )
        if error.get("traceback"):
            lines.append(out.paint(line_by_line(str(error["traceback"])), "dim"))
        if error.get("hint"):
            lines.append(f"hint: {line(str(error['hint']), 300)}")
    elif error:
        lines.append(out.paint(f"  {line(str(error), 500)}", "red"))
    return "\n".join(lines)


def _types(plan: RunPlan) -> str:
    """The stored types that the run imports: how many, and each by name, those that need trust first."""
    named = [f"{line(use.name)} ×{use.count}" for use in sorted(plan.types, key=lambda use: use.safe)]
    count = labels.plural(len(plan.types), "stored type")
    if not plan.types:
        return ""
    unsafe = sum(not use.safe for use in plan.types)
    how = f"{unsafe} outside the safe list" if unsafe else "all on the safe list or in the graph's schema"
    return f"{count}, {how}: {', '.join(named)}"


def _plan_text(plan: RunPlan, out: Out) -> None:
    def words(parts: tuple[str, ...]) -> str:
        return ", ".join(line(part if out.show_secrets else secrets.mask_text(part), 200) for part in parts)

    def settings(given: Mapping[str, str]) -> str:
        text = runwords.settings(given)
        return text if out.show_secrets else secrets.mask_text(text)

    facts = [
        ("runs", words(plan.runs) or runwords.runs(plan) or "nothing"),
        ("keeps", words(plan.kept)),
        ("asks again", words(plan.asks)),
        *[(labels.MAY_HAPPEN_AGAIN.lower(), words((text,))) for text in plan.side_effects],
        *[(name.lower(), words((text,))) for name, text in runwords.told(plan)],
        ("graph", line(plan.graph)),
        ("code", line(plan.graph_file or "")),
        ("python", line(plan.interpreter)),
        ("new thread", line(plan.new_thread, 80) if plan.new_thread is not None else ""),
        ("config", settings(plan.config)),
        ("context", settings(plan.context)),
        ("limit", runwords.limits(plan)),
        ("imports", _types(plan)),
        ("stored in", line(plan.stored_in) + (" (a copy of this checkpoint first)" if plan.makes_copy else "")),
    ]
    out.say(out.paint("plan", "bold"))
    out.table([["  " + name, value] for name, value in facts if value], [("dim",), ()])
    for warning in plan.warnings:
        out.say(out.paint(f"! {line(warning, 400)}", "yellow"))
