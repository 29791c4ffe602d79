"""Tool calls and their answers in the messages of a state: a model refuses a conversation with a call that nobody answered.

Only what the state itself shows is told. A call of the last messages is no problem while tasks are scheduled that may answer it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from studio.model import START, Problem, State, Value
from studio.render import preview, secrets
from studio.render.gate import line
from studio.render.preview import ToolCall

OPEN, EARLY, ORPHAN, DOUBLE = "open-tool-call", "tool-answer-before-call", "orphan-tool-answer", "duplicate-tool-answer"
MOST = 20_000
"""Messages of a channel that are looked at, the last ones: how the ones before are paired is not asked."""
_TOLD = 50
_NEW = 6
"""Of those that an edit made."""


class Finding(Struct, frozen=True):
    """One thing about the message at `index` of a channel; `ident` is the id of the call."""

    kind: str
    channel: str
    index: int
    ident: str
    message: str


class Said(Struct, frozen=True):
    """What a message says of tool calls: all that pairing them looks at."""

    role: str
    answers: str | None = None
    """Id of the call that a tool's message answers."""
    calls: tuple[ToolCall, ...] = ()


def said(value: Value) -> Said | None:
    """None for what is no message."""
    parts = preview.role_of(value)
    if parts is None:
        return None
    role, fields = parts
    if role == "tool":
        ident = fields.get("tool_call_id")
        return Said(role, ident if isinstance(ident, str) else None)
    return Said(role, None, tuple(call for call in preview.calls_of(fields) if call.id) if role == "assistant" else ())


Look = Callable[[Value], Said | None]


def problems(state: State) -> tuple[Problem, ...]:
    """What is wrong with the tool calls of a state, each with its place."""
    found = findings(state)
    where = state.checkpoint.checkpoint_id
    told = [Problem(one.kind, f"{where}/{line(one.channel)}/{one.index}", one.message) for one in found[:_TOLD]]
    if len(found) > _TOLD:
        told.append(Problem(OPEN, where, f"and {len(found) - _TOLD:,} more tool calls or answers without their other half"))
    return tuple(told)


def new_problems(before: State, after: State) -> tuple[str, ...]:
    """What is wrong with the tool calls of a state and was not before it was edited, as sentences."""
    known = {(one.kind, one.channel, one.ident) for one in findings(before)}
    new = [one for one in findings(after) if (one.kind, one.channel, one.ident) not in known]
    told = [f"/{line(one.channel, 60)}/{one.index}: {one.message}." for one in new[:_NEW]]
    return (*told, f"{len(new) - _NEW:,} more tool calls or answers lose their other half.") if len(new) > _NEW else tuple(told)


def open_calls(state: State) -> Mapping[tuple[str, int], frozenset[str]]:
    """(channel, index of the message) -> ids of its calls that nobody answered."""
    found: dict[tuple[str, int], set[str]] = {}
    for one in findings(state):
        if one.kind == OPEN:
            found.setdefault((one.channel, one.index), set()).add(one.ident)
    return {place: frozenset(idents) for place, idents in found.items()}


def findings(state: State, look: Look = said) -> list[Finding]:
    """Of all channels that are lists of messages, in order. `look` reads one message, for who asks often about the same ones."""
    return [
        one
        for channel, value in state.values.items()
        if isinstance(value, list) and not secrets.is_secret_name(channel) and any(preview.role_of(item) for item in value[-3:])
        for one in _of_channel(channel, value, look, answerable=_may_be_answered(state))
    ]


def _may_be_answered(state: State) -> bool:
    """Whether something is about to run, or waits for a person, that may answer the last calls."""
    if state.status == "failed":
        return False
    return state.next is None or any(task.name != START for task in state.tasks)


class _Asked(Struct):
    call: ToolCall
    index: int
    answered: bool = False


def _of_channel(channel: str, messages: list[Value], look: Look, *, answerable: bool) -> Iterator[Finding]:
    start = max(0, len(messages) - MOST)
    asked: list[_Asked] = []
    latest: dict[str, _Asked] = {}
    first: dict[str, _Asked] = {}
    unasked: list[tuple[int, str]] = []
    found: list[Finding] = []
    last_call = last_word = -1
    for index in range(start, len(messages)):
        message = look(messages[index])
        if message is None:
            continue
        ident = message.answers
        if ident is not None:
            question = latest.get(ident)
            if question is None:
                unasked.append((index, ident))
            elif question.answered:
                found.append(Finding(DOUBLE, channel, index, ident, f"a second answer to the tool call {line(ident, 80)}"))
            else:
                question.answered = True
        elif message.role != "tool":
            last_word = index
            for call in message.calls:
                last_call = index
                latest[call.id or ""] = question = _Asked(call, index)
                asked.append(question)
                first.setdefault(call.id or "", question)
    for index, ident in unasked:
        later = first.get(ident)
        if later is not None:
            later.answered = True  # said once
            text = f"the answer to {preview.call_text(later.call)} stands before the call {line(ident, 80)}"
            found.append(Finding(EARLY, channel, index, ident, text))
        elif not start:
            found.append(Finding(ORPHAN, channel, index, ident, f"an answer to a tool call that is not here ({line(ident, 80)})"))
    for one in asked:
        if not one.answered and not (answerable and one.index == last_call == last_word):
            text = f"the tool call {preview.call_text(one.call)} has no answer ({line(one.call.id or '', 80)})"
            found.append(Finding(OPEN, channel, one.index, one.call.id or "", text))
    yield from sorted(found, key=lambda one: one.index)
