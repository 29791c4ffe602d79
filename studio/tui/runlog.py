"""A run in words: its plan, each of its events, how it ended. Prints and logs of user code pass the output gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studio.errors import StudioError
from studio.render import gate, labels, questions, runwords, secrets
from studio.requests import RunEvent, RunPlan
from studio.tui import draw
from studio.tui.lines import BLANK, Line
from studio.tui.moves import WRITTEN, Made

TYPE_IT = "Name it below as path/file.py:attribute or module:attribute; the next runs take it, too."
STATUS = {
    "planning": ("planning …", "$quiet"),
    "planned": ("ready", "$primary"),
    "no-plan": ("cannot run yet", "$error"),
    "choose": ("which graph?", "$wait"),
    "running": ("running …", "$wait"),
    "paused": ("waiting for an answer", "$wait"),
    "done": ("done", "$success"),
    "failed": ("failed", "$error"),
    "cancelled": ("cancelled", "$quiet"),
}


def plan_lines(plan: RunPlan, *, answered: bool = False) -> tuple[Line, ...]:
    """What a run will do, before it does. `answered`: its questions were, in this dialog."""
    lines = [Line(draw.own("Runs", "bold $primary"), 1)]
    lines.append(
        Line(
            draw.text(runwords.runs(plan) or "nothing: the graph ended here", "bold" if plan.starts else "$quiet", 400),
            2,
        )
    )
    if plan.kept:
        lines += [Line(draw.own("Kept", "bold $primary"), 1), Line(draw.text(labels.names(plan.kept), "$quiet", 400), 2)]
    if answered and plan.asks:
        lines += [BLANK, Line(draw.own("Answered", "bold $success"), 1)]
        lines += [Line(draw.own("✓ ", "bold $success") + draw.text(one, width=600), 2, hanging=2) for one in plan.asks]
    for title, style, words in (
        ("Will ask", "$wait", () if answered else plan.asks),
        (labels.MAY_HAPPEN_AGAIN, "$error", plan.side_effects),
        ("To know", "$wait", plan.warnings),
    ):
        if words:
            lines += [BLANK, Line(draw.own(title, f"bold {style}"), 1)]
            lines += [Line(draw.own("! ", f"bold {style}") + draw.text(one, width=600), 2, hanging=2) for one in words]
    if limits := runwords.limits(plan):
        lines += [BLANK, Line(draw.own("How far", "bold $primary"), 1), Line(draw.text(limits, "$quiet", 400), 2, hanging=2)]
    if told := runwords.told(plan):
        lines += [BLANK, Line(draw.own("Good to know", "bold $primary"), 1)]
        lines += [
            Line(draw.own(f"{name.lower()}  ", "$faint") + draw.text(text, "$quiet", 600), 2, hanging=2) for name, text in told
        ]
    unsafe = [use for use in plan.types if not use.safe]
    lines += [BLANK, Line(draw.own("With", "bold $primary"), 1)]
    lines.append(_fact("graph", plan.graph.partition(" = ")[0] if plan.graph_file else plan.graph))
    if plan.graph_file:
        lines.append(_fact("code", plan.graph_file))
    lines.append(_fact("python", plan.interpreter))
    for name, given in (("config", plan.config), ("context", plan.context)):
        if given:
            lines.append(_fact(name, secrets.mask_text(runwords.settings(given))))
    if plan.types:
        known = len(plan.types) - len(unsafe)
        lines.append(_fact("types", f"{known} known to be safe" + (f", {len(unsafe)} not" if unsafe else "") + ":"))
    for use in sorted(plan.types, key=lambda use: use.safe):
        mark = draw.own("  ") if use.safe else draw.own("! ", "bold $wait")
        where = draw.text(f"  ×{use.count}  {', '.join(use.channels)}", "$faint", 200)
        lines.append(Line(mark + draw.text(use.name, "$quiet" if use.safe else "$wait") + where, 9, hanging=2))
    lines += [BLANK, Line(draw.own("Writes to", "bold $primary"), 1)]
    copied = "a copy in the scratch file" if plan.makes_copy else "the scratch file"
    lines.append(Line(draw.own(f"{copied}; the opened file stays as it is", "$quiet"), 2))
    lines.append(Line(draw.text(plan.stored_in, "$faint", 400), 2, fold=True))
    return tuple(lines)


def _fact(name: str, words: str) -> Line:
    return Line(draw.own(name.ljust(7), "$faint") + draw.text(words, "$quiet", 400), 2, hanging=7, fold=True)


def fork_lines(made: Made) -> tuple[Line, ...]:
    """The fork that was written just before, above the plan of its run."""
    if not made.surprises:
        return (Line(draw.own("✓ ", "$success") + draw.own(f"Forked. {WRITTEN}", "$quiet"), 1, hanging=2), BLANK)
    told = (Line(draw.text(one, width=600), 2) for one in made.surprises)
    return (Line(draw.own(made.title, "bold $wait"), 1), *told, BLANK)


def refusal_lines(error: StudioError) -> tuple[Line, ...]:
    """Why there is no plan, and what helps."""
    title = draw.own("Which graph?", "bold $wait") if error.candidates else draw.own("This cannot run yet", "bold $error")
    lines = [Line(title, 1), Line(draw.block(error.message, limit=4_000), 2)]
    if names_no_graph(error):
        lines += [BLANK, Line(draw.own(TYPE_IT, "$quiet"), 2)]
    elif error.hint and not error.candidates:
        lines.append(Line(draw.block(error.hint, "$quiet", 2_000), 2))
    if error.candidates:
        lines += [BLANK, *_choices(error.candidates)]
    return tuple(lines)


def names_no_graph(error: StudioError) -> bool:
    """The refusal is about the name of the graph, and there is nothing to choose from: it is typed."""
    return not error.candidates and error.slug in ("no-graph", "no-graph-file")


def graph_lines(names: tuple[str, ...], told: str = "") -> tuple[Line, ...]:
    """What a person may name as the graph; `told`: why its names are not known."""
    lines = [Line(draw.own("Which graph?", "bold $wait"), 1), BLANK]
    if told:
        lines += [Line(draw.block(told, "$error", 2_000), 2), BLANK]
    if names:
        lines += [*_choices(names), BLANK]
    lines.append(Line(draw.own(TYPE_IT, "$quiet"), 1))
    return tuple(lines)


def _choices(names: tuple[str, ...]) -> list[Line]:
    listed = [Line(draw.text(name, "$primary", 200), 2) for name in names[:30]]
    more = [Line(draw.own(f"and {len(names) - 30} more", "$faint"), 2)] if len(names) > 30 else []
    return [Line(draw.own("Choose one of", "bold") + draw.own("  ↑ ↓ in the field below", "$faint"), 1), *listed, *more]


def event_lines(event: RunEvent, *, error_told: bool = False) -> list[Line]:
    """One event of a run as lines of the log; [] for what needs no words. `error_told`: an error event came before the end."""
    data = event.data
    if event.event == "log":
        return _log(data)
    if event.event == "task":
        return [Line(draw.own("○ ", "$primary") + draw.text(_name(data), "bold", 60) + draw.own(" …", "$faint"), 1)]
    if event.event == "task_result":
        return _task_result(data)
    if event.event == "checkpoint":
        step = data.get("step")
        words = f"saved step {step}" if isinstance(step, int) else "saved"
        following = data.get("next")
        nodes = ", ".join(str(one) for one in following) if isinstance(following, (list, tuple)) else ""
        return [Line(draw.own("  " + words, "$faint") + draw.text(f"  next: {nodes}" if nodes else "", "$faint", 120), 1)]
    if event.event == "error":
        return _error(data)
    if event.event == "end":
        return _end(data, error_told)
    return []


def _name(data: Mapping[str, Any]) -> str:
    found = data.get("name") or data.get("node")
    return found if isinstance(found, str) else "?"


def _log(data: Mapping[str, Any]) -> list[Line]:
    text = data.get("text") or data.get("message") or data.get("line") or ""
    if not isinstance(text, str):
        text = str(text)
    stream = data.get("stream")
    shown = draw.block(secrets.mask_text(text.rstrip("\n")), "$quiet" if stream != "stderr" else "$wait", limit=4_000)
    return [Line(shown, 3, bar="$line")] if text.strip() else []


def _task_result(data: Mapping[str, Any]) -> list[Line]:
    error = data.get("error")
    asked = data.get("interrupts")
    if error:
        return [Line(draw.own("✕ ", "$error") + draw.text(_name(data), "bold", 60) + draw.own("  failed", "$error"), 1)]
    if asked:
        return [
            Line(draw.own("■ ", "$wait") + draw.text(_name(data), "bold", 60) + draw.own("  stopped for an answer", "$wait"), 1)
        ]
    result = data.get("result")
    wrote = ""
    if isinstance(result, dict):
        wrote = ", ".join(str(key) for key in list(result)[:6])
    elif isinstance(data.get("channels"), (list, tuple)):
        wrote = ", ".join(str(key) for key in data["channels"][:6])
    return [
        Line(
            draw.own("● ", "$success")
            + draw.text(_name(data), "bold", 60)
            + draw.text(f"  wrote {wrote}" if wrote else "", "$quiet", 200),
            1,
        )
    ]


def _error(data: Mapping[str, Any]) -> list[Line]:
    lines = []
    message = data.get("message") or data.get("error") or data.get("type") or "an error"
    lines.append(Line(draw.own("✕ ", "$error") + draw.block(secrets.mask_text(str(message)), "$error", 4_000), 1, hanging=2))
    trace = data.get("traceback")
    if isinstance(trace, str) and trace.strip():
        body = Line(draw.block(secrets.mask_text(trace.rstrip()), "$quiet", 12_000), 3, bar="$error")
        lines.append(Line(draw.own("▸ traceback", "$faint"), 3, folded=(body,)))
    return lines


def _end(data: Mapping[str, Any], error_told: bool) -> list[Line]:
    status = str(data.get("status", "ended"))
    words, style = STATUS.get(status, (gate.line(status, 40), "$quiet"))
    if status == "paused" and not data.get("interrupts"):
        words = "stopped"
    lines = [BLANK, Line(draw.own(words, f"bold {style}"), 1)]
    error = data.get("error")
    if status == "failed" and error and not error_told:
        text = error.get("message") or error.get("type") if isinstance(error, dict) else error
        lines.append(Line(draw.block(secrets.mask_text(str(text)), "$error", 4_000), 1))
    for one in data.get("interrupts") or ():
        if isinstance(one, dict):
            words = questions.asked(questions.handed_over(one.get("value")), 400).words
            lines.append(Line(draw.own("■ ", "$wait") + draw.text(words, "bold", 400), 1, hanging=2))
    return lines
