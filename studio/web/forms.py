"""What a person sends: the fork form and answers, read into requests. Every text is parsed here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace
from starlette.datastructures import FormData

from studio import tagged
from studio.errors import PatchError, StudioError, UsageError
from studio.model import Address
from studio.render import bare, forkwords, gate
from studio.requests import ForkRequest, GraphSpec, NodeUpdate, Patch, RunRequest
from studio.running import options as run_options
from studio.running.options import RunOptions
from studio.web import rewrites
from studio.web.desk import Desk
from studio.web.forkdesk import ForkInput
from studio.web.links import opened
from studio.web.views import forks

MOST_EDITS = 50
"""Values edited in one form; a patch file has no such limit."""
WHOLE = ""
"""The path of the whole state."""
KINDS = ("text", "value", "json")
MODES = ("set", "update", "copy")
MOST_ALSO = 20
"""Further nodes written as in one form."""


@dataclass(frozen=True, slots=True)
class ForkForm:
    """The fork form as sent: what stands in it, and the request it makes unless a field is wrong."""

    shown: ForkInput
    request: ForkRequest | None
    """None when a field has an error; it is shown at that field."""
    act: str
    planned: bool
    agree: str
    """What the person agreed to: seals of the plan's side effects and types."""
    trust: str
    error: tuple[str, str] = ("", "")
    options: RunOptions = field(default_factory=RunOptions)

    @property
    def edited(self) -> bool:
        return self.request is not None and (
            bool(self.request.patch) or self.request.goto is not None or self.request.is_update or bool(self.request.new_thread)
        )


def _all(form: FormData, name: str) -> list[str]:
    return [value for value in form.getlist(name) if isinstance(value, str)]


def _one(form: FormData, name: str) -> str:
    return next(iter(_all(form, name)), "")


def fork_form(desk: Desk, form: FormData, *, large: bool = False) -> ForkForm:
    """Read the fork form; `act` add, drop:N and flip:N only change the form itself."""
    act = _one(form, "act")
    edits, patch_set, unset, wrong = _edits(desk, form, act)
    chat = rewrites.read(desk, form, act)
    act = act.split(":", 1)[0]
    if act == "add":
        edits = _with_added(desk, edits, opened(_one(form, "add_path")))
    graph = chosen_graph(desk, form)
    shown = ForkInput(
        edits=tuple(edits),
        goto=opened(_one(form, "goto")),
        mode=_one(form, "mode") if _one(form, "mode") in MODES else "set",
        as_node=opened(_one(form, "as_node")),
        update=_showable("json", _one(form, "update"))[1],
        also=_also(form, _one(form, "act")),
        overwrite=tuple(dict.fromkeys(opened(name) for name in _all(form, "overwrite"))),
        new_thread=_one(form, "new_thread"),
        graph=graph.graph or "",
        python=graph.python or "",
        options=typed_options(form),
        chat=chat[0] if chat is not None else None,
    )
    trust = _one(form, "trust")
    request: ForkRequest | None = None
    error = ("", "")
    if not wrong and not (chat is not None and chat[2]):
        try:
            patch = rewrites.joined(Patch(patch_set, tuple(unset)), chat)
            request = _request(desk, shown, patch, graph, bool(trust))
        except PatchError as found:
            error = (found.message, found.hint)
    asked = RunOptions()
    try:
        asked = run_options.read(shown.options)
    except UsageError as found:
        request, error = None, (found.message, found.hint)
    return ForkForm(shown, request, act, bool(_one(form, "planned")), _one(form, "agree"), trust, error, asked)


def typed_options(form: FormData) -> dict[str, str]:
    """What was typed into the options of a run; only the fields that are not empty."""
    texts = {one.name: _one(form, f"run_{one.name}") for one in run_options.FIELDS}
    return {name: text for name, text in texts.items() if text.strip()}


def _edits(desk: Desk, form: FormData, act: str) -> tuple[list[forks.EditRow], dict[str, Any], list[str], bool]:
    removed = set(_all(form, "unset"))
    verb, _, target = act.partition(":")
    rows: list[forks.EditRow] = []
    patch: dict[str, Any] = {}
    unset: list[str] = []
    wrong = False
    for index, (path, kind, text) in enumerate(_sent_edits(form)):
        if verb == "drop" and target in (str(index), "all"):
            continue
        text = text.replace("\r\n", "\n")
        now, exists = desk.value_at(path)
        message, line = "", 0
        flipped = verb == "flip" and target == str(index)
        doc: Any = text
        try:
            doc = text if kind == "text" else bare.filled(desk.document_at(path), text) if kind == "value" else tagged.loads(text)
        except PatchError as error:
            message, line = error.message, getattr(error, "line", 0) or line_in(error.message)
        if flipped and not message:
            kind, text, message = _flip(kind, text, doc)
        gone = str(index) in removed
        if path == WHOLE and not message:
            message = _whole(desk, doc, patch, unset)
        elif gone and not flipped:
            unset.append(path)
        elif not message and not _same(now, exists, doc, desk.session.show_secrets):
            patch[path] = doc
        wrong = wrong or bool(message and not gone)
        kind, text = _showable(kind, text)
        untouched = not (message or gone) and path not in patch and desk.place.path is None
        rows.append(
            forks.edit_row(
                len(rows),
                path,
                now,
                form=kind,
                text=text,
                error=message,
                error_line=line,
                unset=gone,
                unchosen=untouched and path == desk.selected_path,
                show_secrets=desk.session.show_secrets,
                root=desk.state.editable,
            )
        )
    return rows, patch, unset, wrong


def _whole(desk: Desk, doc: Any, patch: dict[str, Any], unset: list[str]) -> str:
    """Take the whole state apart: an edit for each channel that differs. What is wrong with it, or ""."""
    if not isinstance(doc, dict) or any(name[:1] == "$" for name in doc):
        return "The state must stay an object with one key per channel."
    for name, one in doc.items():
        path = tagged.join_path([name])
        if not _same(*desk.value_at(path), one, desk.session.show_secrets):
            patch[path] = one
    unset += [path for name in desk.state.values if name not in doc and (path := tagged.join_path([name]))]
    return ""


def _sent_edits(form: FormData) -> list[tuple[str, str, str]]:
    """(path, kind, text) of each edit. Raises UsageError unless every edit came whole: a shift would set the wrong values."""
    paths, kinds, texts = [opened(path) for path in _all(form, "path")], _all(form, "kind"), _all(form, "value")
    if len(paths) > MOST_EDITS:
        raise _too_many(f"this form edits {len(paths)} values; it may hold {MOST_EDITS}")
    whole = len(paths) == len(kinds) == len(texts) and set(kinds) <= set(KINDS)
    if not whole or not set(_all(form, "unset")) <= {str(index) for index in range(len(paths))}:
        raise UsageError(
            "this form is not complete: each edit needs its path, its kind and its value",
            "reload the page and edit again; nothing was changed",
        )
    if len(set(paths)) < len(paths):
        double = next(path for path in paths if paths.count(path) > 1)
        raise UsageError(f"{double} is edited twice in this form", "leave one of the two as it is")
    return list(zip(paths, kinds, texts, strict=True))


def _too_many(message: str) -> UsageError:
    return UsageError(message, "write the edits to a file and use studio fork --patch FILE")


def _showable(kind: str, text: str) -> tuple[str, str]:
    """What was typed, as it may stand in the page again: JSON that escapes what acts there says the same."""
    if gate.is_clean(text):
        return kind, text
    if kind == "text":
        return "json", tagged.dumps(text)
    if kind == "value":
        return kind, gate.clean(text)
    try:
        return kind, tagged.dumps(tagged.loads(text), indent=2)
    except PatchError:
        return kind, gate.clean(text)


def _flip(kind: str, text: str, doc: Any) -> tuple[str, str, str]:
    """The other form of the same value: a text as JSON, or a JSON text as it is."""
    if kind != "json":
        return "json", tagged.dumps(doc, indent=2), ""
    alone = bare.bare(doc)
    if alone is not None:
        return "value", alone.text, ""
    if isinstance(doc, str) and forks.plain_text(doc):
        return "text", doc, ""
    return "json", text, "only a text without control characters, or a typed value, can be edited without JSON"


def _same(now: Any, exists: bool, doc: Any, show_secrets: bool) -> bool:
    """Whether the edited document still says what is stored, so that nothing is set."""
    if not exists:
        return False
    try:
        return bool(tagged.dumps(tagged.to_tagged(now)) == tagged.dumps(tagged.to_tagged(tagged.from_tagged(doc, now))))
    except StudioError:
        return False


def _with_added(desk: Desk, edits: list[forks.EditRow], path: str) -> list[forks.EditRow]:
    value, exists = desk.value_at(path)
    if not exists or any(edit.path == path for edit in edits):
        return edits
    if len(edits) >= MOST_EDITS:
        raise _too_many(f"this form holds {MOST_EDITS} values, and takes no more")
    row = forks.edit_row(len(edits), path, value, show_secrets=desk.session.show_secrets, root=desk.state.editable)
    return [*edits, row]


def line_in(message: str) -> int:
    """The line number that a message of the JSON reader names."""
    words = message.replace(",", " ").replace(":", " ").split()
    for word, following in zip(words, words[1:], strict=False):
        if word.lower() == "line" and following.isdigit():
            return int(following)
    return 0


def _also(form: FormData, act: str) -> tuple[tuple[str, str], ...]:
    """(node, update) of each further write in the same superstep. Raises UsageError unless each came whole."""
    nodes, texts = [opened(name) for name in _all(form, "also_node")], _all(form, "also_update")
    if len(nodes) != len(texts):
        raise UsageError(
            "this form is not complete: each write needs its node and its update",
            "reload the page and try again; nothing was changed",
        )
    if len(nodes) > MOST_ALSO:
        raise _too_many(f"this form writes as {len(nodes)} more nodes; it may hold {MOST_ALSO}")
    verb, _, target = act.partition(":")
    found = [
        (node, _showable("json", text)[1])
        for index, (node, text) in enumerate(zip(nodes, texts, strict=True))
        if not (verb == "less" and target == str(index))
    ]
    return (*found, ("", "")) if verb == "more" and len(found) < MOST_ALSO else tuple(found)


def _request(desk: Desk, shown: ForkInput, patch: Patch, graph: GraphSpec, trusted: bool) -> ForkRequest:
    new_thread = named_thread(shown.new_thread)
    base = ForkRequest(desk.address, new_thread=new_thread, graph=graph, trust_types=trusted)
    if shown.mode == "copy":
        if patch:
            raise PatchError(
                "Values are edited, and the same point again keeps them all.", "Choose “Set the state”, or undo the edits."
            )
        return base
    if shown.mode != "update":
        return replace(base, patch=patch, goto=shown.goto or None)
    edited = forkwords.returned(desk.state.values, patch.set, patch.unset) if patch else {}
    update = tagged.loads(shown.update) if shown.update.strip() else None
    if edited:
        if update is not None and (not isinstance(update, dict) or set(edited) & set(update)):
            raise PatchError(
                "A value is edited above and stands in what the node returns, too.", "Give it in one of the two places."
            )
        update = {**edited, **(update or {})}
    writes = [NodeUpdate(shown.as_node or None, update)]
    writes += [NodeUpdate(node or None, tagged.loads(text) if text.strip() else None) for node, text in shown.also]
    for channel in shown.overwrite:  # one value replaces: the last that is given for a channel
        at = next((index for index in reversed(range(len(writes))) if channel in writes[index].channels), None)
        if at is not None:
            writes[at] = replace(writes[at], overwrite=(*writes[at].overwrite, channel))
    first = writes[0]
    return replace(
        base, as_node=first.as_node, update=first.values, overwrite=first.overwrite, is_update=True, beside=tuple(writes[1:])
    )


def named_thread(text: str) -> str | None:
    """The name of a new thread as typed; None for none. Raises PatchError for one that would not show as what it is."""
    name = text.strip() or None
    if name is not None and gate.line(name) != name:
        raise PatchError("The name of a new thread cannot hold control or invisible characters.", "type it without them")
    return name


def chosen_graph(desk: Desk, form: FormData) -> GraphSpec:
    """The graph and interpreter that the form names; a choice is remembered for this file."""
    kept = desk.book.graph(desk.place.file)
    graph = opened(_one(form, "graph_choice")).strip() or _one(form, "graph_typed").strip() or _one(form, "graph").strip()
    spec = GraphSpec(graph or kept.graph, _one(form, "python").strip() or kept.python)
    if spec != kept:
        desk.book.choose_graph(desk.place.file, spec)
    return spec


def run_request(address: Address, form: ForkForm) -> RunRequest:
    graph = form.request.graph if form.request is not None else GraphSpec(form.shown.graph or None, form.shown.python or None)
    return form.options.on(RunRequest(address, graph=graph, trust_types=bool(form.trust)))


def answer_request(desk: Desk, form: FormData, *, strict: bool) -> RunRequest:
    """Answers to the open questions of a checkpoint. A text that is no JSON is taken as it is.

    Raises UsageError when there is nothing to answer, and with `strict` when an answer is empty.
    """
    ids, texts = _all(form, "question"), _all(form, "answer")
    if not texts:
        raise UsageError("no answer was given", "type one and try again")
    if len(ids) != len(texts):
        raise UsageError(
            "this form is not complete: each answer needs its question", "reload the page and answer again; nothing was run"
        )
    if strict and not all(text.strip() for text in texts):
        raise UsageError("an answer is still empty", 'type one; an empty text is written as ""')
    answers = {given: _answer(text) for given, text in zip(ids, texts, strict=True)}
    thread = named_thread(_one(form, "new_thread"))
    request = RunRequest(desk.address, graph=chosen_graph(desk, form), trust_types=bool(_one(form, "trust")), new_thread=thread)
    if len(answers) == 1:
        request = replace(request, resume=next(iter(answers.values())), has_resume=True)
    else:
        request = replace(request, answers=answers)
    return run_options.read(typed_options(form)).on(request)


def _answer(text: str) -> Any:
    text = text.replace("\r\n", "\n").strip()
    try:
        return tagged.loads(text) if text else ""
    except PatchError:
        return text


def query_flags(query: Mapping[str, str]) -> tuple[bool, bool, bool]:
    """(open, reveal, whole) of a fragment's query."""
    return query.get("open") != "0", query.get("reveal") == "1", query.get("whole") == "1"
