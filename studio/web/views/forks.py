"""The fork box: the values to edit, the promise of what would happen, and what a run would do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from studio import tagged
from studio.errors import StudioError
from studio.model import Change, Value
from studio.render import bare, forkwords, gate, labels, likeness, masking, preview, questions, runwords, secrets
from studio.requests import ForkPreview, ForkRequest, RunPlan
from studio.running.candidates import Candidates
from studio.running.options import FIELDS, Field
from studio.running.ways import NOTHING_LEFT
from studio.value import MISSING, Missing, Tagged
from studio.web.views import rewriting
from studio.web.views.values import Shown, Span, shown, text_spans

MOST_PREVIEW = 40
MOST_DETAILS = 24
LARGEST = 100_000
"""Stored bytes of a typed value that gets a form of its own."""
NOTHING_RUNS = "Nothing is left to run here: the graph had ended. Choose a node to go on with under “More ways”."


RunFields = tuple[tuple[Field, str], ...]


class HasPlan(Protocol):
    """A plan, or why there is none."""

    @property
    def plan(self) -> RunPlan | None: ...
    @property
    def error(self) -> StudioError | None: ...
    @property
    def waits(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class EditRow:
    """One value in the form. `text` is what stands in the textarea; it is parsed on the server only."""

    index: int
    path: str
    """As sent back: raw, escaped by the template only."""
    label: str
    text: str
    form: str
    """`text` (a plain string, as it is), `value` (just the value of a typed one) or `json` (tagged JSON)."""
    lines: int
    now: Shown
    unset: bool = False
    error: str = ""
    error_line: int = 0
    how: str = ""
    """How it is edited, in words: `as text`, `as JSON`, `datetime.date, as ISO 8601`."""
    flip: str = ""
    """Words of the other way to edit it; empty where there is none."""
    is_json: bool = False
    """What stands in the field is JSON."""
    big: bool = False
    """Too long for the small box: opened in the large editor."""
    unchosen: bool = False
    """It stands there by itself, and nothing was typed: no part of what a node returns."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One line of the preview: a path, what it was, what it will be."""

    path: str
    before: Shown | None
    after: Shown | None
    spans: tuple[Span, ...]
    apart: str = ""
    """What differs where the two look alike."""


@dataclass(frozen=True, slots=True)
class PlanView:
    runs: str
    """`review, research ×3`"""
    kept: tuple[str, ...]
    asks: tuple[str, ...]
    side_effects: tuple[str, ...]
    told: tuple[tuple[str, str], ...]
    """(what it is about, words): answers that count again, subgraphs, nodes that ran, what only the graph has."""
    settings: tuple[tuple[str, str], ...]
    """(config or context, its entries)."""
    graph: str
    graph_name: str
    """The short of it: `support_agent`, or the file's name."""
    graph_file: str
    interpreter: str
    types: tuple[tuple[str, str, bool], ...]
    """(name, count and channels in words, safe)."""
    needs_trust: bool
    warnings: tuple[str, ...]
    stored_in: str
    makes_copy: bool
    effects_seal: str
    """Stands for exactly these side effects: agreeing to others does not count."""
    types_seal: str


@dataclass(frozen=True, slots=True)
class Promise:
    """The answer to "what would happen": the preview of the fork and the plan of a run."""

    effects: tuple[Effect, ...]
    more: int
    next_text: str
    warnings: tuple[str, ...]
    refused: str
    error: str
    error_hint: str
    plan: PlanView | None
    plan_error: str
    plan_hint: str
    plan_waits: bool = False
    """The plan needs the user's graph, and looking loads no code: it is made when a person asks."""
    graphs: tuple[tuple[str, str], ...] = ()
    """Graphs to choose from."""
    ask_graph: bool = False
    """No graph is known: the person names one."""
    confirm: bool = False
    """The run was asked for, but the plan has something that a person must agree to first."""
    edited: bool = False
    does: str = ""
    """The act in a few words, where it is more than setting values."""
    merges: tuple[tuple[str, str, bool], ...] = ()
    """(raw channel, as shown, replaced) of channels that a reducer merges into, to be replaced instead."""
    no_replacing: str = ""
    """Why that cannot be had."""
    tries: bool = False
    """What the graph makes of the values is only known once it is loaded, which waits for a person."""
    nothing_runs: str = ""
    """Why a run would do nothing at all; "" when something runs or that is not known."""


@dataclass(frozen=True, slots=True)
class ForkBox:
    title: str
    number: str
    action: str
    preview_action: str
    edit_href: str
    whole_href: str
    """The large editor on the whole state."""
    edits: tuple[EditRow, ...]
    hint: str
    goto_options: tuple[tuple[str, str], ...]
    """(raw name, words) of the nodes to go on with."""
    goto: str
    acts: tuple[tuple[str, str, str, bool], ...]
    """(id, title, words, chosen) of the acts to choose from."""
    writers: Writers | None
    """The nodes to write as; None until they are asked for."""
    writers_href: str
    mode: str
    """`set`, `update` or `copy`."""
    as_node: str
    update: str
    also: tuple[tuple[str, str], ...]
    """(raw node, update) of further writes in the same superstep."""
    new_thread: str
    graph: str
    python: str
    add_path: str
    """Path that the button adds to the form; empty when it is there."""
    add_label: str
    promise: Promise | None
    open_more: bool
    ways_known: bool
    """The nodes to choose from are there; else they are asked for when that part is opened."""
    ways_href: str
    questions: tuple[AnswerRow, ...]
    answer_action: str
    large: bool = False
    cancel_href: str = ""
    run_fields: RunFields = ()
    """The options of the run, with what stands in each."""
    chat: rewriting.Editor | None = None
    """The message editor, in place of values."""
    session: SessionForm | None = None
    """In place of all that: a turn of an agent's session is forked into a new session."""
    refused: str = ""
    """Why nothing can be forked or run from this checkpoint, however it is asked for: then there is no form."""
    refused_hint: str = ""


@dataclass(frozen=True, slots=True)
class SessionForm:
    """Fork a turn of an agent's session; of a turn that is a fork, how its program goes on."""

    action: str
    path: str
    """Raw path of the text that can be said otherwise; empty for none."""
    text: str
    stored_in: str = ""
    installed: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Writers:
    """The nodes to write as, best first."""

    rows: tuple[tuple[str, str, str, str, bool], ...]
    """(raw name, name, what it is here, what runs then, chosen)."""
    note: str
    from_file: bool
    """Only what this file showed is known, not the graph's own edges."""


def writers(found: Candidates, chosen: str) -> Writers:
    """`chosen`: the node that stands in the form, else LangGraph's own choice is marked."""
    picked = chosen or found.default
    rows = tuple(
        (one.node, gate.line(one.node, 80), labels.sentence(one.why), one.then, one.node == picked) for one in found.found
    )
    return Writers(rows, found.note, found.basis == "file")


def no_writers(error: StudioError) -> Writers:
    return Writers((), gate.line(error.message, 300), True)


def acts(mode: str) -> tuple[tuple[str, str, str, bool], ...]:
    return tuple((act.id, act.title, act.words, act.id == mode) for act in forkwords.ACTS)


@dataclass(frozen=True, slots=True)
class AnswerRow:
    id: str
    node: str
    question: str
    text: str = ""
    error: str = ""
    details: tuple[tuple[str, str], ...] = ()
    """(name, value in words) of what the question holds beside its text: choices, amounts, arguments."""


def answer_row(ident: str, node: str, value: Value) -> AnswerRow:
    """A question to answer, with everything that was handed to `interrupt`."""
    question, leaves = questions.asked(value), []
    for name, leaf in _leaves(value, "", 0):
        words = preview.summary(leaf, 160, key=name.rpartition(".")[2])
        if not (isinstance(leaf, str) and gate.line(leaf, 300) == question.words):
            leaves.append((gate.line(name, 80), words))
        if len(leaves) == MOST_DETAILS:
            break
    return AnswerRow(ident, gate.line(node, 60), question.quoted, details=tuple(leaves))


def _leaves(value: Value, name: str, depth: int) -> Iterator[tuple[str, Value]]:
    """Dotted names and values of what lies in a question; a list of plain values stays one line."""
    if depth < 4 and isinstance(value, Mapping):
        for key, inner in value.items():
            within = 4 if secrets.reason(str(key), inner) else depth + 1  # a secret's name covers all that lies below it
            yield from _leaves(inner, f"{name}.{key}" if name else str(key), within)
    elif depth < 4 and isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{name}.{index}" if name else str(index), depth + 1)
    elif name:
        yield name, value


def named(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Names for a list to choose from: (raw, as shown)."""
    return tuple((name, gate.line(name, 80)) for name in names)


def edit_row(
    index: int,
    path: str,
    value: Value,
    *,
    form: str | None = None,
    text: str | None = None,
    error: str = "",
    error_line: int = 0,
    unset: bool = False,
    unchosen: bool = False,
    show_secrets: bool = False,
    root: Value | Missing = MISSING,
) -> EditRow:
    """A value as a form row. A plain string is edited as it is unless a browser's form would change it. `root`: the state that
    the path leads into."""
    key = masking.name_in(path, root)
    alone = _alone(value, key, show_secrets)
    chosen = form or ("text" if plain_text(value) and not secrets.reason(key, value) else "value" if alone else "json")
    body = text
    if body is None:
        if chosen == "value" and alone is not None:
            body = alone.text
        else:
            body = value if chosen == "text" and isinstance(value, str) else json_text(value, key, show_secrets)
    other = "edit as text" if plain_text(value) else "edit just its value" if alone else ""
    lines = body.count("\n") + 1
    return EditRow(
        index=index,
        path=path,
        label=gate.line(path, 200) if path else "the whole state: one key per channel, only what you change is set",
        text=body,
        form=chosen,
        lines=max(1, min(12, max(lines, len(body) // 42 + 1))),
        now=shown(value, key, path=path),
        unset=unset,
        how="as text" if chosen == "text" else alone.what if chosen == "value" and alone else "as JSON",
        flip="edit as JSON" if chosen != "json" else other,
        is_json=chosen == "json" or (chosen == "value" and alone is not None and alone.is_json),
        error=gate.line(error, 300),
        error_line=error_line,
        big=len(body) > 600 or lines > 12,
        unchosen=unchosen,
    )


def plain_text(value: Value) -> bool:
    """Whether a browser's textarea gives this text back unchanged (it turns every line end into one form)."""
    return isinstance(value, str) and len(value) < 200_000 and gate.is_clean(value)


def json_text(value: Value, key: str | None, show_secrets: bool) -> str:
    """Tagged JSON of a value; a masked part stands for the stored one."""
    return tagged.dumps(masking.document(value, key, show_secrets=show_secrets, readable=False), indent=2)


def whole_row(values: Mapping[str, Value], *, show_secrets: bool) -> EditRow:
    """The whole state as one row; what is very long is cut there and stands for what is stored."""
    doc = masking.document(dict(values), show_secrets=show_secrets, readable=False, limit=LARGEST)
    return edit_row(0, "", dict(values), form="json", text=tagged.dumps(doc, indent=2), show_secrets=show_secrets)


def _alone(value: Value, key: str | None, show_secrets: bool) -> bare.Bare | None:
    """Just the value of a typed one; a very large object has no form of its own."""
    size = len(value.raw or b"") if isinstance(value, Tagged) else len(value) if isinstance(value, bytes) else LARGEST + 1
    if size > LARGEST:
        return None
    return bare.bare(masking.document(value, key, show_secrets=show_secrets, readable=False))


def promise(
    forked: ForkPreview | None,
    planned: HasPlan,
    *,
    error: StudioError | None = None,
    following: Sequence[str | None] | None = None,
    confirm: bool = False,
    edited: bool = False,
    request: ForkRequest | None = None,
) -> Promise:
    """`planned` is a plan or why there is none; `following` is what runs next as far as the file alone tells."""
    changes = forked.changes if forked else ()
    apart = likeness.told_apart(changes)
    effects = tuple(replace(_effect(change), apart=apart.get((change.op, change.path), "")) for change in changes[:MOST_PREVIEW])
    wrong = planned.error
    runs = (*planned.plan.runs, *planned.plan.kept) if planned.plan else following
    wanted = request if request is not None and (request.is_update or request.new_thread is not None) else None
    return Promise(
        does=_does(wanted, forked) if wanted is not None else "",
        merges=_merges(wanted, forked) if wanted is not None and forked is not None and forked.can_replace else (),
        no_replacing=forkwords.merged(forked, "") if forked is not None and not forked.can_replace else "",
        tries=wanted is not None and wanted.is_update and forked is None and error is None,
        effects=effects,
        more=max(0, len(changes) - MOST_PREVIEW),
        next_text=_names(following),
        warnings=tuple(gate.line(text, 300) for text in (forked.warnings if forked else ())),
        refused=gate.line(forked.refused, 400) if forked and forked.refused else "",
        error=gate.line(error.message, 400) if error else "",
        error_hint=gate.line(error.hint, 300) if error else "",
        plan=_plan(planned.plan) if planned.plan else None,
        plan_error=gate.line(wrong.message, 400) if wrong else "",
        plan_hint=gate.line(wrong.hint, 300) if wrong else "",
        plan_waits=planned.waits,
        graphs=named(wrong.candidates) if wrong and wrong.slug in ("several-graphs", "no-graph") else (),
        ask_graph=wrong is not None and wrong.slug in ("no-graph", "no-graph-file", "bad-langgraph-json"),
        confirm=confirm,
        edited=edited,
        nothing_runs=NOTHING_RUNS if runs is not None and not runs and not error else "",
    )


def _does(request: ForkRequest, forked: ForkPreview | None) -> str:
    where = f", in the new thread {gate.line(request.new_thread, 80)}" if request.new_thread is not None else ""
    return labels.sentence(forkwords.title(request, forked)) + where


def _merges(request: ForkRequest, forked: ForkPreview) -> tuple[tuple[str, str, bool], ...]:
    replaced = [name for one in request.updates for name in one.overwrite]
    names = dict.fromkeys((*replaced, *forked.merged))
    return tuple((name, gate.line(name, 60), name in replaced) for name in names)


def _effect(change: Change) -> Effect:
    path, op, before, after = change.path, change.op, change.before, change.after
    key = masking.name_in(path)
    if op == "move":
        moved = f"{gate.line(path, 200)} moved from {gate.line(change.from_path or '', 200)}"
        return Effect(moved, None, None, (Span("same", shown(after, key, path=path, width=90).text),))
    if (
        op == "replace"
        and isinstance(before, str)
        and isinstance(after, str)
        and max(len(before), len(after)) > 48
        and not (secrets.reason(key, before) or secrets.reason(key, after))
    ):
        return Effect(gate.line(path, 200), None, None, text_spans(before, after))
    return Effect(
        gate.line(path, 200),
        shown(before, key, path=path, width=90) if op != "add" else None,
        shown(after, key, path=path, width=90) if op != "remove" else None,
        (),
    )


def _names(names: Sequence[str | None] | None) -> str:
    if names is None:
        return "not known"
    return labels.names(names) or "nothing"


def seal(texts: Iterable[str]) -> str:
    """A short name for a list of texts, for what a person agrees to; "" for none."""
    found = list(texts)
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:12] if found else ""


def agreed(plan: RunPlan, effects: str, types: str) -> bool:
    """Whether a person who sent these seals agreed to all that the plan asks for."""
    unsafe = seal(use.name for use in plan.types if not use.safe)
    return effects == seal(plan.side_effects) and (not plan.needs_trust or types == unsafe)


def run_fields(typed: Mapping[str, str]) -> RunFields:
    """The options of a run, with what stands in each."""
    return tuple((one, gate.clean(typed.get(one.name, ""))) for one in FIELDS)


ANSWER_FIELDS: RunFields = tuple((one, "") for one in FIELDS if one.name != "input")
"""Those of a run that goes on with an answer."""


def _plan(plan: RunPlan) -> PlanView:
    def lines(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(gate.line(text, 300) for text in texts)

    types = tuple(
        (
            gate.line(use.name, 160),
            f"{use.count:,}×" + (f" in {gate.line(', '.join(use.channels[:4]), 120)}" if use.channels else ""),
            use.safe,
        )
        for use in plan.types
    )
    return PlanView(
        runs=runwords.runs(plan),
        kept=lines(plan.kept),
        asks=lines(plan.asks),
        side_effects=lines(plan.side_effects),
        told=tuple(
            (name, gate.line(text, 300)) for name, text in (("How far", runwords.limits(plan)), *runwords.told(plan)) if text
        ),
        settings=tuple(
            (name, gate.line(secrets.mask_text(runwords.settings(given)), 600))
            for name, given in (("config", plan.config), ("context", plan.context))
            if given
        ),
        graph=gate.line(plan.graph, 200),
        graph_name=gate.line(plan.graph.split(" = ", 1)[0].rsplit("/", 1)[-1], 60),
        graph_file=gate.line(plan.graph_file or "", 300),
        interpreter=gate.line(plan.interpreter, 300),
        types=types,
        needs_trust=plan.needs_trust,
        warnings=lines([text for text in plan.warnings if text != NOTHING_LEFT]),
        stored_in=gate.line(plan.stored_in, 300),
        makes_copy=plan.makes_copy,
        effects_seal=seal(plan.side_effects),
        types_seal=seal(use.name for use in plan.types if not use.safe),
    )
