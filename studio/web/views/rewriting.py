"""The message editor: the messages of one channel with what was done to them, and the one that is open for editing."""

from __future__ import annotations

from dataclasses import dataclass

from studio import tagged
from studio.model import Tagged_JSON, Value
from studio.render import gate, masking, preview, secrets, spoken
from studio.rewriting import Rewriting

PAGE = 50
"""Messages that stand in the page at once."""
HEAD = 600
"""Characters of a message that is not open."""
LONGEST = 200_000
"""Characters of a text that a page offers for editing; a longer one can only be replaced."""
WORDS = {"user": "user", "assistant": "assistant", "tool": "tool result", "system": "system"}


@dataclass(frozen=True, slots=True)
class TextField:
    block: str
    """Number of the content block, "" where the content is one text."""
    label: str
    kind: str
    """`text`; `json`: it holds characters that a form would change; `new`: only a new one can be written."""
    text: str
    lines: int
    note: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class CallField:
    index: int
    id: str
    name: str
    args: str
    lines: int
    error: str = ""
    drop: str = ""
    """The act that removes the call."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The fields of the message that is open."""

    texts: tuple[TextField, ...] = ()
    calls: tuple[CallField, ...] = ()
    doc: str | None = None
    """The whole message as JSON, when it is edited like that."""
    doc_error: str = ""
    doc_line: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    at: int
    role: str
    title: str
    text: str
    more: int
    calls: tuple[str, ...]
    marks: tuple[str, ...]
    """`changed`, `new`, `moved`, `deleted`."""
    problems: tuple[str, ...]
    failed: bool
    gone: bool
    changed: bool
    first: bool
    last: bool
    answers: tuple[tuple[int, str], ...]
    """(number, call in words) of the calls that a result below this message could answer."""
    open: Opened | None = None
    focus: str = ""
    """Which of its controls gets the focus: `edit`, `up`, `down`, `text` or none."""


@dataclass(frozen=True, slots=True)
class Editor:
    """The message editor of one channel, as it stands in the fork form."""

    channel: str
    """Raw."""
    label: str
    messages: tuple[Message, ...]
    start: int
    stop: int
    of: int
    steps: str
    done: int
    undone: int
    summary: str
    others: tuple[tuple[str, str], ...] = ()
    """(name, link) of other channels that hold messages."""
    opened: int = -1
    as_doc: bool = False
    error: str = ""
    said: str = ""
    """What was just done, for a screen reader."""

    @property
    def earlier(self) -> int:
        return max(0, self.start - PAGE)


def editor(
    edited: Rewriting,
    *,
    start: int | None = None,
    opened: int = -1,
    as_doc: bool = False,
    sent: Opened | None = None,
    focus: tuple[int, str] = (-1, ""),
    show_secrets: bool = False,
    others: tuple[tuple[str, str], ...] = (),
    error: str = "",
    said: str = "",
) -> Editor:
    """`sent` is what stands in the fields of the opened message; None = as it is. `start` None: around what is open."""
    size = len(edited.entries)
    if not 0 <= opened < size or edited.entries[opened].gone:
        opened = -1
    here = opened if opened >= 0 else focus[0]
    first = start if start is not None else (here - PAGE // 2 if here >= 0 else size - PAGE)
    if start is not None and here >= 0 and not start <= here < start + PAGE:
        first = here - PAGE // 2
    first = max(0, min(first, size - PAGE))
    stop = min(size, first + PAGE)
    problems, moved = edited.problems(), edited.moved()
    unanswered = edited.unanswered()
    messages = []
    for at in range(first, stop):
        entry = edited.entries[at]
        shown = preview.message(entry.value)
        gone = entry.gone
        changed = edited.changed(at)
        marks = (
            *(("new",) if entry.origin is None else ("changed",) if changed else ()),
            *(("moved",) if at in moved and not gone else ()),
        )
        text = secrets.head(shown.text, HEAD) if shown else preview.summary(entry.value, HEAD)
        messages.append(
            Message(
                at=at,
                role=shown.role if shown else "chat",
                title=_title(shown),
                text=gate.clean(text[:HEAD]),
                more=max(0, len(shown.text) - HEAD) if shown else 0,
                calls=tuple(preview.call_text(call, 300) for call in shown.tool_calls) if shown else (),
                marks=("deleted",) if gone else marks,
                problems=tuple(gate.line(text, 300) for text in problems.get(at, ())),
                failed=bool(shown and shown.status == "error"),
                gone=gone,
                changed=changed and entry.origin is not None,
                first=at == 0,
                last=at == size - 1,
                answers=tuple(
                    (number, preview.call_text(call, 60)) for number, (caller, call) in enumerate(unanswered) if caller <= at
                ),
                open=(sent or fields(entry.value, as_doc=as_doc, show_secrets=show_secrets)) if at == opened else None,
                focus=focus[1] if at == focus[0] else "",
            )
        )
    return Editor(
        channel=edited.channel,
        label=gate.line(edited.channel, 60),
        messages=tuple(messages),
        start=first,
        stop=stop,
        of=size,
        steps=tagged.dumps({"steps": [dict(step) for step in edited.steps], "done": edited.done}),
        done=edited.done,
        undone=len(edited.steps) - edited.done,
        summary=edited.summary(),
        others=others,
        opened=opened,
        as_doc=as_doc,
        error=gate.line(error, 300),
        said=said,
    )


def _title(shown: preview.MessageView | None) -> str:
    if shown is None:
        return "item"
    return WORDS.get(shown.role, shown.role) + (f" · {gate.line(shown.name, 60)}" if shown.name else "")


def fields(message: Value, *, as_doc: bool = False, show_secrets: bool = False) -> Opened:
    """What can be typed into an opened message."""
    if as_doc or preview.message(message) is None:
        doc = masking.document(message, show_secrets=show_secrets, readable=False, limit=LONGEST)
        return Opened(doc=tagged.dumps(doc, indent=2))
    texts = spoken.texts_of(message)
    shown = preview.message(message)
    calls = shown.tool_calls if shown is not None else ()
    return Opened(
        tuple(_text_field(block, text, len(texts) > 1, show_secrets) for block, text in texts),
        tuple(
            CallField(
                index,
                gate.line(call.id or "", 80),
                gate.line(call.name, 200),
                args := arguments(call.args, show_secrets=show_secrets),
                lines_of(args),
            )
            for index, call in enumerate(calls)
        ),
    )


def _text_field(block: int | None, text: str, several: bool, show_secrets: bool) -> TextField:
    name = "" if block is None else str(block)
    label = f"text of block {block}" if several else "text"
    if len(text) > LONGEST:
        note = f"The stored text has {len(text):,} characters, too many to edit here. Leave this empty to keep it."
        return TextField(name, label, "new", "", 4, note)
    shown = spoken.masked_text(text, show_secrets=show_secrets)
    note = "" if shown == text else "A masked part stands for what is stored: leave the text as it is, or write all of it."
    if not gate.is_clean(shown):
        shown, kind = tagged.dumps(shown), "json"
        note = note or "It holds invisible or control characters, so it is written as JSON."
    else:
        kind = "text"
    return TextField(name, label, kind, shown, lines_of(shown, 62), note)


def arguments(args: Value, *, show_secrets: bool = False) -> str:
    """The arguments of a call as JSON to edit; a text that holds them is shown as it is where that can be done."""
    if isinstance(args, str):
        shown = spoken.masked_text(args, show_secrets=show_secrets)
        return shown if gate.is_clean(shown) else gate.clean(shown)
    doc: Tagged_JSON = masking.document(args if args is not None else {}, show_secrets=show_secrets, readable=False)
    return tagged.dumps(doc, indent=2)


def lines_of(text: str, width: int = 62, most: int = 16) -> int:
    return max(2, min(most, sum(1 + len(line) // width for line in text.split("\n")[:most])))
