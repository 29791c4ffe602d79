"""What the child process does with a loaded graph: run it, describe it. Writing as a node is in `child_update.py`.

The operations are coroutines over a `Driver` of `child_driver.py`, which calls LangGraph's sync or its async methods; with a
sync graph nothing ever waits, and `child.py` runs them without an event loop.

Standard library and the user's LangGraph only, valid for Python 3.9: `child.py` loads this file by path.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterable
from typing import Any

types = sys.modules["_studio_child_types"]
loading = sys.modules["_studio_child_graph"]
driving = sys.modules["_studio_child_driver"]
reporting = sys.modules["_studio_child_report"]
topologies = sys.modules["_studio_child_topology"]

_RESUME_IDX = -4

Failure = driving.Failure


def questions(snapshot: Any) -> list[tuple[str, list[Any]]]:
    """(task name, its open questions) for each task of a snapshot, in order."""
    return [(task.name, list(getattr(task, "interrupts", None) or ())) for task in snapshot.tasks]


def question_id(question: Any) -> str | None:
    """`id` in current releases, `interrupt_id` in 0.4 to 0.6; older ones have none."""
    return getattr(question, "id", None) or getattr(question, "interrupt_id", None)


def numbered(names: Iterable[str]) -> list[tuple[str, int]]:
    """Each name with how often it occurred before: what tells the tasks of several Sends apart."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        result.append((name, seen.get(name, 0)))
        seen[name] = seen.get(name, 0) + 1
    return result


async def carry_rows(driver: Any, carried: list[dict[str, Any]], checkpoint_id: str) -> bool:
    """Give a copied checkpoint the rows of the origin's tasks, under the ids that this very LangGraph computes for them.

    Finished tasks keep their writes and are not run again; an answered question gets a `__resume__` row with the answers so far.
    Returns False, with nothing written, when the tasks are not the same ones.
    """
    snapshot = await driver.get_state(driver.config(checkpoint_id))
    tasks = dict(zip(numbered(task.name for task in snapshot.tasks), snapshot.tasks))  # noqa: B905 - Python 3.9
    if any((item["name"], item["ordinal"]) not in tasks for item in carried):
        return False
    known = [row[1] for row in driver.rows("PRAGMA table_info(writes)")]
    for item in carried:
        task_id = tasks[item["name"], item["ordinal"]].id
        rows = [{**row, "value": base64.b64decode(row["value"])} for row in item["rows"]]
        if "answer" in item:
            before = item.get("answered")
            answers = driver.serde.loads_typed((before["tag"], base64.b64decode(before["value"]))) if before else []
            answers = answers if isinstance(answers, list) else [answers]
            answers = [*(answers[:-1] if item.get("again") else answers), driver.value(item["answer"])]
            tag, value = driver.serde.dumps_typed(answers)
            path = item.get("task_path")
            rows.append({"idx": _RESUME_IDX, "channel": "__resume__", "tag": tag, "value": value, "task_path": path})
        for row in rows:
            cells = {
                "thread_id": driver.request["thread_id"], "checkpoint_ns": "", "checkpoint_id": checkpoint_id, "task_id": task_id,
                "task_path": row.get("task_path") or "", "idx": row["idx"], "channel": row["channel"], "type": row["tag"],
                "value": row["value"],
            }  # fmt: skip
            cells = {key: value for key, value in cells.items() if key in known}
            marks = ", ".join("?" * len(cells))
            driver.rows(f"INSERT OR IGNORE INTO writes ({', '.join(cells)}) VALUES ({marks})", *cells.values())
    return True


def translate(answers: dict[str, Any], asked: list[dict[str, Any]], snapshot: Any) -> dict[str, Any]:
    """Answers by the ids that the person saw -> answers by the ids of the same questions now."""
    open_now = questions(snapshot)
    by_task = dict(zip(numbered(name for name, _ in open_now), (found for _, found in open_now)))  # noqa: B905 - Python 3.9
    result = {}
    for task in asked:
        for old, new in zip(task["interrupts"], by_task.get((task["name"], task["ordinal"]), [])):  # noqa: B905 - Python 3.9
            if old in answers:
                result[question_id(new) or old] = answers[old]
    if len(result) < len(answers):
        raise Failure("answers", "the questions asked now are not the ones that were answered", interrupts=described(snapshot))
    return result


def described(snapshot: Any) -> list[dict[str, Any]]:
    return [
        {"id": question_id(question), "task": name, "value": reporting.jsonable(getattr(question, "value", question))}
        for name, asked in questions(snapshot)
        for question in asked
    ]


async def run(driver: Any, events: Any) -> dict[str, Any]:
    """Run from a checkpoint until the graph ends, pauses or fails.

    `carry` asks to give the (copied) checkpoint rows of its origin first; `ask_first` to run until the questions are asked
    again, since only then they have ids that can be answered; `asked` says which questions the ids in `answers` meant.
    """
    request = driver.request
    options = reporting.stream_options(driver, request)
    checkpoint_id = request.get("checkpoint_id")
    answers = {key: driver.value(value) for key, value in (request.get("answers") or {}).items()}
    resumes, ask_first = bool(answers or request.get("resume")), request.get("ask_first")
    if request.get("carry"):
        if await carry_rows(driver, request["carry"], request["checkpoint_id"]):
            checkpoint_id = None  # with an id LangGraph would run the finished tasks again
            if any("answer" in item for item in request["carry"]):
                resumes = ask_first = False  # the answers are in the rows
        else:
            events.send("log", stream="studio", text="The tasks differ under this code: all of them run again.")
    reporter = reporting.Reporter(events, request["thread_id"], driver.finished() if checkpoint_id is None else set())

    async def follow(given: Any) -> None:
        try:
            async for item in driver.stream(given, driver.config(checkpoint_id), **options):
                reporter.item(item)
        finally:
            reporter.flush()

    if ask_first:
        await follow(None)
        checkpoint_id = None
    given: Any = driver.value(request["input"]) if request.get("input") else None
    if resumes:
        from langgraph.types import Command

        snapshot = await driver.get_state(driver.config(checkpoint_id))
        open_ids = [question_id(question) for _, found in questions(snapshot) for question in found]
        resume: Any
        if answers:
            resume = translate(answers, request.get("asked") or [], snapshot) if ask_first else answers
            if not any(open_ids) and len(answers) == 1:  # releases that know no ids
                resume = next(iter(answers.values()))
        else:
            resume = driver.value(request["resume"])
            if resume is None:  # `Command(resume=None)` is refused by LangGraph, a map is not
                resume = {ident: None for ident in open_ids if ident}
        given = Command(resume=resume)
    steps = request.get("steps")
    while True:
        reporter.ran.clear()
        await follow(given)
        snapshot = await driver.get_state(driver.config())
        interrupts = described(snapshot)
        going = bool(snapshot.next) and not interrupts
        at_breakpoint = going and (steps is None or reporting.is_breakpoint(driver.graph, request, reporter.ran, snapshot.next))
        steps = None if steps is None else steps - 1
        if not going or at_breakpoint or steps == 0:
            break
        given, checkpoint_id = None, None
    reason = "question" if interrupts else "breakpoint" if at_breakpoint else "steps" if going else None
    status = "paused" if reason else "done"
    return {"status": status, "reason": reason, "interrupts": interrupts, "next": list(snapshot.next)}


def channel_kinds(graph: Any) -> dict[str, str]:
    """Channel -> `LastValue`, `BinaryOperatorAggregate`, …: whether a write replaces the value or goes through a reducer."""
    return {name: type(channel).__name__ for name, channel in graph.channels.items()}


def inspect(graph: Any, request: dict[str, Any], schema: set[str], allowed: set[str], is_async: bool) -> dict[str, Any]:
    """What the graph is made of, and what would become of the stored types that the request names."""
    parts = topologies.topology(graph)
    whole = parts[""]
    return {
        "name": getattr(graph, "name", None), "nodes": whole["nodes"], "edges": whole["edges"], "topology": parts,
        "channels": channel_kinds(graph), "async": is_async, "schema": sorted(schema), "files": loading.own_files(),
        "types": types.describe(request.get("types") or (), allowed, schema),
        "interrupt_before": _names(graph, "interrupt_before_nodes"), "interrupt_after": _names(graph, "interrupt_after_nodes"),
    }  # fmt: skip


def _names(graph: Any, attribute: str) -> list[str]:
    value = getattr(graph, attribute, None)
    return [value] if isinstance(value, str) else [str(name) for name in value or ()]
