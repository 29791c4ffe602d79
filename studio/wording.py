"""What both front ends say of a conversation: a call, its arguments and its result, a line of a turn. Gated and masked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from studio.explain.branch import Brief, TodoChange
from studio.explain.told import Call, Chip, Piece, Said, Tokens, Touch
from studio.model import Value
from studio.render import gate, labels, patches, preview, prose, secrets, toolwords

RESULT, ARGUMENT = 3_000, 2_000
"""Characters of a result or an argument that are shown before somebody asks for the rest."""
PATCH_LINES = 160
STATES = {"answered": "answered", "failed": "failed", "open": "no answer"}
_NUMBERS = re.compile(r"\b(preTokens|postTokens|cumulativeDroppedTokens) (\d{1,15})\b")
_LANGUAGES = {"command": "bash", "cmd": "bash", "code": "python", "script": "bash"}
_HIDDEN = {"old_string", "new_string", "edits", "todos", "plan", "replace_all"}
"""Arguments that the patch or the list below says better."""
_IN_PATCH = {"content", "input", "patch", "cmd", "command", "file_path", "notebook_path"}
TODO_SIGNS = {"completed": "☑", "done": "☑", "in_progress": "◐", "pending": "☐", "cancelled": "☒"}
TODO_WORDS = {"completed": "done", "done": "done", "in_progress": "in progress", "pending": "open", "cancelled": "cancelled"}
CHANGE_SIGNS = {"added": "+", "started": "▸", "done": "✓", "reopened": "↺", "removed": "−", "reworded": "~"}
CHANGE_ORDER = ("done", "started", "reopened", "reworded", "added", "removed")
KIND_WORDS = {
    "context": "context", "summary": "summary of what was before", "compacted": "context compacted", "retry": "service error",
    "command": "command", "note": "note", "result": "tool result", "removed": "removed a message",
}  # fmt: skip


class Argument(Struct, frozen=True):
    label: str
    text: str = ""
    lines: tuple[tuple[prose.Span, ...], ...] = ()
    """Of code and long texts; then `text` is empty."""
    more: int = 0


class FilePatch(Struct, frozen=True):
    path: str
    words: str
    """`edited +1 −1`."""
    state: str
    patch: patches.Patch


class TodoLine(Struct, frozen=True):
    sign: str
    text: str
    status: str


class CallWords(Struct, frozen=True):
    name: str
    about: str
    state: str
    state_word: str
    count: str
    """`+2 −1`."""
    arguments: tuple[Argument, ...] = ()
    patches: tuple[FilePatch, ...] = ()
    todos: tuple[TodoLine, ...] = ()
    result: str = ""
    result_more: int = 0
    pictures: tuple[Chip, ...] = ()


def call_words(
    call: Call, *, cwd: str = "", show_secrets: bool = False, result: int = RESULT, lines: int = PATCH_LINES
) -> CallWords:
    """A call with everything that unfolds below it."""
    about = toolwords.about(call.name, call.args, cwd=cwd, show_secrets=show_secrets)
    text = "\n".join(piece.text for piece in call.result if piece.kind in ("text", "other"))
    shown, more = prose.plain(text, show_secrets=show_secrets, limit=result)
    changed = tuple(
        FilePatch(
            path_words(touch.path, cwd),
            touch_words(touch),
            touch.state,
            patches.read(touch.patch, show_secrets=show_secrets, most=lines),
        )
        for touch in call.touches
        if touch.state != "read"
    )
    return CallWords(
        gate.line(call.name, 80),
        about,
        call.state,
        STATES[call.state],
        count_words(sum(one.plus for one in call.touches), sum(one.minus for one in call.touches)),
        tuple(_arguments(call, bool(changed), about, show_secrets)),
        changed,
        tuple(todo_lines(_todos_in(call.args), show_secrets)),
        shown.strip("\n"),
        more,
        tuple(piece.chip for piece in call.result if piece.chip is not None),
    )


def _arguments(call: Call, has_patch: bool, about: str, show_secrets: bool) -> Iterable[Argument]:
    args = call.args
    if isinstance(args, str):
        if not has_patch and args.strip():
            yield _long("input", args, "", show_secrets)
        return
    if not isinstance(args, Mapping):
        return
    for key, value in args.items():
        name = str(key)
        if name in _HIDDEN or has_patch and name in _IN_PATCH:
            continue
        if isinstance(value, str) and (len(value) > 90 or "\n" in value or name in _LANGUAGES):
            yield _long(name, value, _LANGUAGES.get(name, ""), show_secrets)
            continue
        text = preview.summary(value, 300, key=name, show_secrets=show_secrets)
        if text.strip('"') != about or len(args) > 1:
            yield Argument(gate.line(name, 60), text)


def _long(name: str, text: str, lang: str, show_secrets: bool) -> Argument:
    head = (
        text[:ARGUMENT]
        if show_secrets
        else secrets.MASKED
        if secrets.is_secret_by_name(name, text)
        else secrets.head(text, ARGUMENT)
    )
    return Argument(gate.line(name, 60), lines=prose.code(head, lang), more=max(0, len(text) - ARGUMENT))


def _todos_in(args: Value) -> Sequence[Mapping[str, Any]]:
    if not isinstance(args, Mapping):
        return ()
    held = args.get("todos") or args.get("plan")
    return [one for one in held if isinstance(one, Mapping)] if isinstance(held, list) else ()


def todo_lines(found: Iterable[Mapping[str, Any]], show_secrets: bool = False) -> Iterable[TodoLine]:
    for one in found:
        yield todo_line(str(one.get("content") or one.get("step") or ""), str(one.get("status", "pending")), show_secrets)


def todo_line(text: str, status: str, show_secrets: bool = False) -> TodoLine:
    words = text[:2_000] if show_secrets else secrets.mask_text(text[:2_000])
    return TodoLine(TODO_SIGNS.get(status, "☐"), gate.line(words, 400), TODO_WORDS.get(status, gate.line(status, 30)))


def changes_words(changes: Iterable[TodoChange], show_secrets: bool = False) -> list[tuple[str, str, str]]:
    """(sign, what, text) of what a turn did to the list, what got done first."""
    ordered = sorted(changes, key=lambda one: CHANGE_ORDER.index(one.what))
    return [(CHANGE_SIGNS[one.what], one.what, todo_line(one.text, "", show_secrets).text) for one in ordered]


def path_words(path: str, cwd: str = "") -> str:
    return gate.line(toolwords.short_path(path, cwd), 400)


def touch_words(touch: Touch) -> str:
    word = "not applied" if touch.state == "failed" else touch.state
    parts = [word, count_words(touch.plus, touch.minus) if touch.state != "failed" else ""]
    if touch.moved_to:
        parts.append(f"moved to {gate.line(touch.moved_to, 200)}")
    if touch.by_person:
        parts.append("changed by a person first")
    return " ".join(part for part in parts if part)


def count_words(plus: int, minus: int) -> str:
    return " ".join(word for word in (f"+{plus:,}" if plus else "", f"−{minus:,}" if minus else "") if word)


def token_words(count: int) -> str:
    """`812`, `12.8k`, `1.2M`."""
    if count < 1_000:
        return str(count)
    for limit, unit in ((1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G")):
        if count < limit * 999.5 or unit == "G":
            amount = count / limit
            return f"{amount:.1f}{unit}" if amount < 99.95 else f"{amount:.0f}{unit}"
    return str(count)


def cost_words(cost: Any) -> str:
    """`$0.0312`, as it was recorded; `≈$0.0312 by prices.toml` of an estimate, with the models that its table does not have."""
    if isinstance(cost, (int, float)):
        return f"${cost:,.2f}" if cost >= 0.995 else f"${cost:.4f}".rstrip("0").ljust(5, "0")
    if not isinstance(cost, dict):
        return ""
    table = gate.line(str(cost.get("prices")), 40)
    missing = ", ".join(gate.line(secrets.mask_text(name[:200]), 40) for name in list(cost.get("not_priced") or ())[:3])
    if cost.get("estimate") is None:
        return f"no price for {missing} in {table}"
    return f"≈{cost_words(cost['estimate'])} by {table}" + (f", without {missing}" if missing else "")


def total_words(total: Tokens, context: int, cost: Any) -> list[tuple[str, str]]:
    """(what, number) of what a branch took."""
    cached = total.cache_read * 100 // total.context if total.context else 0
    found = [("context", token_words(context))] if context else []
    found += [("input", token_words(total.context)), ("cached", f"{cached} %"), ("output", token_words(total.output))]
    return [*found, *([("cost", cost_words(cost))] if cost is not None else [])]


def chip_words(chip: Chip) -> str:
    """`image/png · 12.4 KB · 3f9a01bc`."""
    return f"{gate.line(chip.media_type or 'binary', 60)} · {labels.size(chip.size)} · {gate.line(chip.digest[:8], 8)}"


def item_words(item: Said) -> str:
    """The headline of what is folded: context, a summary, a command."""
    word = KIND_WORDS.get(item.kind, item.kind)
    name = gate.line(secrets.mask_text(item.name[:400]), 160)
    if item.kind == "command":
        return name or "what a command printed"
    if item.kind == "compacted":
        return compaction_words(text_of(item.pieces)) or word
    if item.kind in ("note", "result"):
        return name.replace("_", " ") if name else word
    return word


def compaction_words(text: str) -> str:
    """`context compacted · manual compaction, 98,123 → 4,200 tokens`, or nothing where the text is a summary."""
    if len(text) > 300 or "\n" in text:
        return ""
    numbers = dict(_NUMBERS.findall(text))
    before, after = numbers.get("preTokens"), numbers.get("postTokens")
    told = [_NUMBERS.sub("", text).strip(" ,"), " → ".join(f"{int(one):,}" for one in (before, after) if one)]
    words = ", ".join(part for part in told if part) + (" tokens" if before or after else "")
    if "cumulativeDroppedTokens" in numbers:
        words += f", {int(numbers['cumulativeDroppedTokens']):,} dropped in all"
    return gate.line(f"context compacted · {words}" if words != "the context was compacted" else "context compacted", 200)


def text_of(pieces: Iterable[Piece]) -> str:
    return "\n\n".join(piece.text for piece in pieces if piece.kind in ("text", "other") and piece.text)


class RowWords(Struct, frozen=True):
    """A turn as a row of the timeline."""

    who: str
    """prompt, answer, agent, compacted, …: what made it."""
    words: str = ""
    badge: str = ""
    badge_kind: str = ""
    count: str = ""


def row_words(found: Brief, *, show_secrets: bool = False) -> RowWords:
    words = prose.first_words(found.words, 200, show_secrets=show_secrets)
    if found.call is not None:
        words = toolwords.about(*found.call, cwd=found.cwd, width=200, show_secrets=show_secrets) or words
    if found.kind == "compaction":
        words = compaction_words(found.words).removeprefix("context compacted").removeprefix(" · ") or words
    who = {
        "input": "agent's prompt" if found.agent else "prompt",
        "compaction": "compaction",
        "loop": "agent" if found.agent else "assistant",
    }
    badge, kind = "", ""
    if found.error:
        badge, kind = "service error", "fail"
    elif found.failed:
        badge, kind = (f"{found.failed} failed" if found.failed > 1 or found.more_calls else "failed"), "fail"
    return RowWords(who.get(found.kind, "turn"), words, badge, kind, count_words(found.plus, found.minus))
