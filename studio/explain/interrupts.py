"""The questions of a task and their answers.

A task keeps its latest question in one row and all answers so far in another. A question waits for an answer as long as
its task has not finished, unless its own id says that it is one of those already answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studio.explain.ids import interrupt_id
from studio.explain.rows import TaskRows, row_value
from studio.model import Interrupt, Value
from studio.value import Tagged, equal

_NONE: Mapping[str, Any] = {}


def questions(task: TaskRows, ns: str | None, shared_answer: list[Value], *, old: bool = False) -> tuple[Interrupt, ...]:
    """The questions in a task's rows.

    `ns` is the task's own namespace (`node:task_id` with its parents) where known, `shared_answer` the plain resume value of
    the step ([] = none), which is the answer of a task that finished without an answer of its own. `old`: written by a release
    that knew no ids of questions (formats 1 and 2).
    """
    if not task.questions:
        return ()
    found: list[Interrupt] = []
    answers = task.resumes()
    raised = [item for row in task.questions for item in as_list(row_value(row))]
    for at, item in enumerate(raised):
        fields = parts(item)
        value = fields.get("value", item) if fields else item
        ident = fields.get("id") or fields.get("interrupt_id")
        if not isinstance(ident, str):
            ident = None if old else old_id(fields)
        place = position(ident, ns, len(answers)) if "response_schema" in fields and len(raised) == 1 else None
        if place is not None and place < len(answers):
            found.append(Interrupt(ident, value, True, answers[place]))
        elif task.finished and not task.updated:
            given = last_answer(answers, at if len(raised) > 1 else place, shared_answer)
            found.append(Interrupt(ident, value, True, given[0] if given else None))
        else:
            found.append(Interrupt(ident, value, False))
    return tuple(found)


def earlier_answers(task: TaskRows, asked: Sequence[Interrupt]) -> tuple[Value, ...]:
    """What a task was answered before its latest question, `asked`: that one's row takes the place of the earlier ones."""
    answers = task.resumes() if len(asked) == 1 else []
    if not answers:
        return ()
    taken = asked[0].answered and equal(answers[-1], asked[0].answer)
    return tuple(answers[:-1] if taken else answers)


def last_answer(answers: list[Value], place: int | None, shared: list[Value]) -> list[Value]:
    """[the answer to a finished task's question], [] where the file does not hold it.

    The answer that let the task finish may stand in the step's plain answer alone, since the row of the task's own answers is
    not replaced by a task that ends.
    """
    if place is not None:
        return answers[place : place + 1] or shared
    if shared and not any(equal(shared[0], answer) for answer in answers):
        return shared
    return answers[-1:]


def as_list(value: Value) -> list[Value]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def parts(item: Value) -> Mapping[str, Value]:
    """The fields of a stored Interrupt, of whatever release and serializer."""
    if isinstance(item, Tagged):
        return item.fields if item.kind == "fields" else _NONE
    if isinstance(item, Mapping) and "value" in item and not item.keys().isdisjoint(("id", "interrupt_id", "when", "ns")):
        return item
    return _NONE


def old_id(fields: Mapping[str, Value]) -> str | None:
    """Before ids were stored (format 3, up to 0.5) the id of a question followed from its namespace."""
    ns = fields.get("ns")
    if isinstance(ns, list) and ns and all(isinstance(part, str) for part in ns):
        return interrupt_id("|".join(ns))
    return None


def position(ident: str | None, ns: str | None, most: int) -> int | None:
    """How many questions the task had asked before this one, proven by the id; None when it proves nothing."""
    if ident is None or ns is None:
        return None
    return next((k for k in range(most + 1) if interrupt_id(ns, k) == ident), None)
