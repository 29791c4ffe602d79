"""Stored values as the page shows them: one line, a foldable tree, a text or its word diff."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from studio import tagged
from studio.model import Value
from studio.render import gate, labels, masking, pairs, preview, secrets, words
from studio.value import MapValue, Opaque, Tagged

INLINE = 160
"""Characters of a one-line value before it is cut."""
PAGE = 100
"""Children of a value that are listed at once."""
TEXT_LIMIT = 20_000
"""Characters of a text that are put into a page at once; the rest follows on a click."""
TEXT_MAX = 2_000_000
KEEP = 60
"""Characters that stay on both sides of a change when the unchanged part is folded."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A value in one line."""

    text: str
    kind: str
    """`null`, `bool`, `number`, `text`, `bytes`, `list`, `map`, `type`, `message`, `opaque` or `masked`: the CSS class."""
    type_name: str = ""
    masked: str = ""
    """Why it, or a part of a text, is masked; empty when nothing is."""
    cut: bool = False
    imports: tuple[str, ...] = ()
    """Of a pickle: what loading it would import, where the line has no room for all."""


@dataclass(frozen=True, slots=True)
class Span:
    op: str
    """`same`, `del`, `ins` or `fold` (an unchanged part that was left out)."""
    text: str


@dataclass(frozen=True, slots=True)
class Node:
    """One line of the State tree."""

    path: str
    label: str
    value: Shown
    level: int
    position: int
    of: int
    expandable: bool
    open: bool = False
    children: tuple[Node, ...] = ()
    more: int = 0
    """Children that are not listed yet."""
    next_start: int = 0
    text: str | None = None
    """The whole text (or its first part), for an open text node."""
    text_more: int = 0
    selected: bool = False
    note: str = ""
    hint: str = ""
    """What the note means, in one sentence."""
    count: str = ""
    size: str = ""
    """Stored bytes of a channel, in words."""
    share: str = ""
    grew: str = ""
    revealed: bool = False
    """A person asked to see it though it is masked: its copy is what is shown."""


@dataclass(frozen=True, slots=True)
class Reveal:
    """Which single masked value a person asked to see, with all in it; everything else stays masked."""

    path: str | None = None
    all: bool = False

    def covers(self, path: str) -> bool:
        return self.all or (self.path is not None and (path == self.path or path.startswith(self.path + "/")))


NOTHING = Reveal()


def kind_of(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "text"
        case bytes() | bytearray():
            return "bytes"
        case list():
            return "list"
        case Opaque():
            return "opaque"
    if preview.message(value):
        return "message"
    return "map" if isinstance(value, (dict, MapValue)) else "type"


def type_of(value: Value) -> str:
    """The stored type's name where the value is more than plain JSON."""
    return gate.line(value.type_name, 80) if isinstance(value, Tagged) else ""


def shown(value: Value, key: str | None = None, *, path: str = "", reveal: Reveal = NOTHING, width: int = INLINE) -> Shown:
    """A value in one line, gated, masked unless its path is revealed."""
    why = "" if reveal.covers(path) and (path or reveal.all) else secrets.reason(key, value) or ""
    if why and secrets.hides_all(key, value):
        return Shown(preview.MASK, "masked", type_of(value), gate.line(why))
    text = preview.summary(value, width, key=key, show_secrets=reveal.covers(path))
    imports = tuple(gate.line(name, 320) for name in preview.untold(value))
    return Shown(text, kind_of(value), type_of(value), gate.line(why), cut=text.endswith("…"), imports=imports)


def expandable(value: Value) -> bool:
    if isinstance(value, str):
        return len(value) > INLINE - 4 or "\n" in value
    if isinstance(value, (dict, list)):
        return bool(value)
    return bool(not isinstance(value, (int, float, bytes, bytearray, Opaque, type(None))) and tagged.children(value))


def count_of(value: Value) -> str:
    if isinstance(value, str):
        return f"{len(value):,} characters" if len(value) > INLINE - 4 else ""
    if isinstance(value, (list, dict)) and value:
        return labels.plural(len(value), "item" if isinstance(value, list) else "key")
    return ""


def node(
    path: str,
    label: str,
    value: Value,
    *,
    opened: Sequence[str] = (),
    depth: int = 1,
    level: int = 1,
    position: int = 1,
    of: int = 1,
    start: int = 0,
    selected: str | None = None,
    reveal: Reveal = NOTHING,
    note: str = "",
    hint: str = "",
    whole: bool = False,
) -> Node:
    """A tree line with its children when `path` leads to an opened one, or while `depth` lasts."""
    line = shown(value, masking.name_in(path) or label, path=path, reveal=reveal)
    hides = pairs.announced(value) is not None and not reveal.covers(path)  # alone, a member would not show what it is
    can = expandable(value) and line.kind != "masked" and not hides
    unfolded = can and (depth > 0 or any(inner == path or inner.startswith(path + "/") for inner in opened))
    children: tuple[Node, ...] = ()
    more, text, text_more = 0, None, 0
    if unfolded and isinstance(value, str):
        limit = TEXT_MAX if whole else TEXT_LIMIT
        text = gate.clean(secrets.head(value, limit) if line.masked else value[:limit])
        text_more = max(0, len(value) - limit)
    elif unfolded:
        items = tagged.children(value)
        start = _page_start(items, path, opened, start)
        children = tuple(
            node(
                tagged.join_path([*tagged.split_path(path), step]),
                step,
                item,
                opened=opened,
                depth=depth - 1,
                level=level + 1,
                position=start + index + 1,
                of=len(items),
                selected=selected,
                reveal=reveal,
            )
            for index, (step, item) in enumerate(items[start : start + PAGE])
        )
        more = max(0, len(items) - start - PAGE)
    return Node(
        path=path,
        label=gate.line(label, 200),
        value=line,
        level=level,
        position=position,
        of=of,
        expandable=can,
        open=unfolded,
        children=children,
        more=more,
        next_start=start + PAGE,
        text=text,
        text_more=text_more,
        selected=path == selected,
        note=note,
        hint=hint,
        count=count_of(value),
        revealed=reveal.path is not None and reveal.covers(path),
    )


def _page_start(items: Sequence[tuple[str, Value]], path: str, opened: Sequence[str], start: int) -> int:
    """The first child to list so that the child on the way to an opened path is among them."""
    if start or len(items) <= PAGE:
        return start
    depth = len(tagged.split_path(path))
    wanted = {tagged.split_path(inner)[depth] for inner in opened if inner.startswith(path + "/")}
    found = next((index for index, (step, _) in enumerate(items) if step in wanted), 0)
    return found - found % PAGE


def text_spans(before: str, after: str) -> tuple[Span, ...]:
    """A word diff with its long unchanged parts folded."""
    parts = words.word_diff(before, after)
    if parts is None:
        return (Span("del", f"{len(before):,} characters"), Span("ins", f"{len(after):,} characters"))
    names = {"=": "same", "-": "del", "+": "ins"}
    out: list[Span] = []
    for index, (op, text) in enumerate(parts):
        if op == "=" and len(text) > 3 * KEEP:
            head = text[:KEEP] if index else ""
            tail = text[-KEEP:] if index < len(parts) - 1 else ""
            out += [Span("same", gate.clean(head))] if head else []
            out.append(Span("fold", f"{len(text) - len(head) - len(tail):,} characters unchanged"))
            out += [Span("same", gate.clean(tail))] if tail else []
        elif len(text) > TEXT_LIMIT:
            out += [Span(names[op], gate.clean(text[:TEXT_LIMIT])), Span("fold", f"{len(text) - TEXT_LIMIT:,} more characters")]
        else:
            out.append(Span(names[op], gate.clean(text)))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Bubble:
    """A message as a chat shows it."""

    role: str
    title: str
    text: str
    sign: str = ""
    """`+`, `−`, `~` in a diff, else empty."""
    sign_word: str = ""
    calls: tuple[tuple[str, bool], ...] = ()
    """(call in words, whether nobody answered it)."""
    more: int = 0
    failed: bool = False
    path: str = ""
    number: str = ""
    href: str = ""
    spans: tuple[Span, ...] = ()
    selected: bool = False
    why: str = ""
    """Link that selects this message."""
    edit: str = ""
    """Link to the message editor, open at this message."""


def bubble(value: Value, *, limit: int = 1600, unanswered: Collection[str] = (), **more: Any) -> Bubble | None:
    """A stored message drawn as a bubble, or None when the value is no message. `unanswered`: ids of calls without an answer."""
    found = preview.message(value)
    if found is None:
        return None
    if found.role == "remove":
        text = f"removes message {found.id or ''}"
    else:
        text = secrets.head(found.text, limit)
    title = found.role if found.role != "tool" else "tool result"
    if found.name:
        title += f" · {gate.line(found.name, 60)}"
    return Bubble(
        role=found.role,
        title=title,
        text=gate.clean(text[:limit]),
        calls=tuple((preview.call_text(call, 400), call.id in unanswered) for call in found.tool_calls),
        more=max(0, len(found.text) - limit),
        failed=found.status == "error",
        **more,
    )


@dataclass(frozen=True, slots=True)
class Line:
    """One `key: value` line of a small collection."""

    key: str
    value: Shown
    href: str = ""
    selected: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    lines: tuple[Line, ...] = field(default=())
    more: int = 0


def lines_of(
    value: Value, path: str, reveal: Reveal, link: Callable[[str], str], selected: str | None = None, limit: int = 12
) -> Lines:
    """The first children of a collection, one line each; `link` makes the address that selects a path."""
    items: list[tuple[str, Value]] = list(value.items()) if isinstance(value, dict) else tagged.children(value)
    made = []
    for step, item in items[:limit]:
        inner = tagged.join_path([*tagged.split_path(path), str(step)])
        drawn = shown(item, masking.below(masking.name_in(path), value, str(step)), path=inner, reveal=reveal)
        made.append(Line(gate.line(str(step), 60), drawn, link(inner), inner == selected))
    return Lines(tuple(made), max(0, len(items) - limit))
