"""The message editor's part of the fork form, read: the steps so far, what was typed into the open message, and the act."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from starlette.datastructures import FormData

from studio import rewriting, tagged
from studio.errors import PatchError, UsageError
from studio.model import Value
from studio.render import gate, preview, spoken
from studio.requests import Patch
from studio.rewriting import Rewriting, Step
from studio.web.desk import Desk
from studio.web.links import opened as unsealed
from studio.web.views import rewriting as views

_LINE = re.compile(r"\bline (\d{1,9})")
_DONE = {
    "delete": "Deleted; it can be put back.",
    "restore": "As it is stored.",
    "up": "Moved up.",
    "down": "Moved down.",
    "insert": "Inserted: write its text.",
    "undo": "Undone.",
    "redo": "Done again.",
    "reset": "Every message as it is stored.",
    "uncall": "The call is removed.",
}


def first_editor(desk: Desk, at: int | None = None) -> views.Editor:
    """The editor as it is opened, on the channel of the selected path. Raises PatchError where no channel holds messages."""
    names = rewriting.channels(desk.state, show_secrets=desk.session.show_secrets)
    path = desk.place.path or ""
    steps = tagged.split_path(path) if path.startswith("/") else []
    channel = steps[0] if steps and steps[0] in names else (names[0] if names else "")
    if not channel:
        raise PatchError("No channel of this state holds messages.", "Edit another value in State.", "no-messages")
    edited = Rewriting(desk.state, channel)
    if at is None and len(steps) > 1 and steps[0] == channel and steps[1].isdigit():
        at = int(steps[1][:9])
        return views.editor(edited, focus=(at, "edit"), others=_others(desk, channel))
    focus = (at, "text") if at is not None else (-1, "")
    return views.editor(
        edited,
        opened=-1 if at is None else at,
        focus=focus,
        show_secrets=desk.session.show_secrets,
        others=_others(desk, channel),
    )


def _others(desk: Desk, channel: str) -> tuple[tuple[str, str], ...]:
    names = rewriting.channels(desk.state, show_secrets=desk.session.show_secrets)
    return tuple(
        (gate.line(name, 60), desk.place.to(path=tagged.join_path([name])).url("messages")) for name in names if name != channel
    )


def read(desk: Desk, form: FormData, act: str) -> tuple[views.Editor, Patch, bool] | None:
    """(the editor with what the act did, the patch, whether a field is wrong); None where the form holds no message editor."""
    if "chat_channel" not in form:
        return None
    channel = unsealed(_one(form, "chat_channel"))
    edited = _steps(desk, channel, _one(form, "chat_steps"))
    at, start = _number(form, "chat_open"), max(0, _number(form, "chat_start"))
    as_doc = "chat_doc" in form
    verb, target, more = _parts(act)
    sent: views.Opened | None = None
    focus, error = (-1, ""), ""
    wrong = False
    if 0 <= at < len(edited.entries) and verb != "cancel":
        edited, sent, wrong = _typed(edited, at, form, show_secrets=desk.session.show_secrets)
    opened = at
    if verb and wrong and not (verb in ("delete", "restore") and target == at):
        error = "Correct the open message first, or leave it as it was."
    elif verb:
        wrong = False
        try:
            edited, opened, focus = _act(edited, at, verb, target, more)
            as_doc = verb == "json" or (as_doc and opened == at and verb != "parts")
        except PatchError as found:
            error = found.message
        start = max(0, target) if verb == "page" else start
    drawn = views.editor(
        edited,
        start=start,
        opened=opened,
        as_doc=as_doc,
        sent=sent if wrong else None,
        focus=focus,
        show_secrets=desk.session.show_secrets,
        others=_others(desk, channel),
        error=error,
        said=_DONE.get(verb, "") if not error else "",
    )
    return drawn, edited.patch(), wrong


def joined(patch: Patch, chat: tuple[views.Editor, Patch, bool] | None) -> Patch:
    """The edits of values and those of messages. Raises PatchError where both change one channel."""
    if chat is None:
        return patch
    channel = chat[0].channel
    if any(tagged.split_path(path)[:1] == [channel] for path in (*patch.set, *patch.unset)):
        raise PatchError(f"{gate.line(channel, 60)} is edited as messages and as a value.", "Leave one of the two as it is.")
    return Patch({**patch.set, **chat[1].set}, (*patch.unset, *chat[1].unset))


def _parts(act: str) -> tuple[str, int, str]:
    """`chat:insert:3:user` -> (insert, 3, user); other acts have no verb here."""
    name, _, rest = act.partition(":")
    if name != "chat":
        return "", -1, ""
    verb, _, rest = rest.partition(":")
    number, _, more = rest.partition(":")
    return verb, int(number) if number.lstrip("-").isdigit() and len(number) < 10 else -1, more


def _act(edited: Rewriting, at: int, verb: str, target: int, more: str) -> tuple[Rewriting, int, tuple[int, str]]:
    """(what came of an act, the message that is open then, which control gets the focus). Raises PatchError."""
    if verb in ("undo", "redo", "reset"):
        done = {"undo": edited.undo, "redo": edited.redo, "reset": edited.reset}[verb]()
        return done, at if at < len(done.entries) and verb != "reset" else -1, (-1, verb)
    if verb in ("edit", "json", "parts"):
        return edited, target, (target, "text")
    if verb in ("keep", "cancel"):
        return edited, -1, (at, "edit")
    if verb == "page":
        return edited, -1, (-1, "")
    if verb in ("up", "down"):
        to = target + (-1 if verb == "up" else 1)
        return edited.then({"do": "move", "at": target, "to": to}), to if at == target else -1, (to, verb)
    if verb == "insert":
        role, _, number = more.partition(":")
        call = None
        if role == "tool" and number:
            calls = edited.unanswered()
            call = calls[int(number)][1].id if number.isdigit() and int(number[:9]) < len(calls) else None
        step = edited.insertion(target, role, call=call)
        return edited.then(step), target + 1, (target + 1, "text")
    if verb in ("delete", "restore"):
        before = len(edited.entries)
        done = edited.then({"do": verb, "at": target})
        place = min(target, len(done.entries) - 1)
        stays = at if at != target and len(done.entries) == before else -1
        return done, stays, (place, "edit")
    if verb == "uncall":
        return edited.then({"do": "uncall", "at": at, "call": target}), at, (at, "text")
    raise PatchError("There is no such way to edit messages.", "Reload the page.", "bad-step")


def _typed(edited: Rewriting, at: int, form: FormData, *, show_secrets: bool) -> tuple[Rewriting, views.Opened | None, bool]:
    """(with what the fields of the open message say, the fields as sent, whether one is wrong)."""
    value = edited.entries[at].value
    if "chat_doc" in form:
        return _typed_doc(edited, at, _lines(_one(form, "chat_doc")))
    texts, calls = _typed_texts(value, form, show_secrets), _typed_calls(value, form, show_secrets)
    wrong = any(field.error for field, _ in texts) or any(field.error for field, _ in calls)
    sent = views.Opened(tuple(field for field, _ in texts), tuple(field for field, _ in calls))
    step: Step = {
        "do": "edit",
        "at": at,
        "texts": [change for _, change in texts if change],
        "calls": [change for _, change in calls if change],
    }
    if not wrong and (step["texts"] or step["calls"]):
        edited = edited.then(step)
    return edited, sent, wrong


def _typed_doc(edited: Rewriting, at: int, text: str) -> tuple[Rewriting, views.Opened | None, bool]:
    try:
        doc = tagged.loads(text)
        then = edited.then({"do": "doc", "at": at, "doc": doc})
    except PatchError as error:
        found = _LINE.search(error.message)
        shown = views.Opened(
            doc=gate.clean(text), doc_error=gate.line(error.message, 300), doc_line=int(found[1]) if found else 0
        )
        return edited, shown, True
    same = then.entries[at].value is edited.entries[at].value or then.patch() == edited.patch()
    return (edited if same else then), views.Opened(doc=text), False


def _typed_texts(value: Value, form: FormData, show_secrets: bool) -> list[tuple[views.TextField, list[Any] | None]]:
    """The text fields as sent, each with the change that it asks for."""
    blocks, kinds, typed = (_all(form, f"chat_{name}") for name in ("block", "kind", "text"))
    _check_whole(blocks, kinds, typed)
    stored = {"" if block is None else str(block): (block, text) for block, text in spoken.texts_of(value)}
    found: list[tuple[views.TextField, list[Any] | None]] = []
    for name, kind, text in zip(blocks, kinds, typed, strict=True):
        if name not in stored:
            continue
        block, was = stored[name]
        text = _lines(text)
        error, change = "", None
        try:
            given = tagged.loads(text) if kind == "json" else text
            if not isinstance(given, str):
                raise PatchError('This must be a text: JSON in double quotes, "…".')
            now = was if kind == "new" and not given else spoken.typed_text(was, given, show_secrets=show_secrets)
            change = [block, now] if now != was else None
        except PatchError as problem:
            error = problem.message
        shown = text if gate.is_clean(text) else gate.clean(text)
        label = "text" if len(stored) == 1 else f"text of block {name}"
        found.append((views.TextField(name, label, kind, shown, views.lines_of(shown), error=gate.line(error, 300)), change))
    return found


def _typed_calls(value: Value, form: FormData, show_secrets: bool) -> list[tuple[views.CallField, list[Any] | None]]:
    indices, names, typed = (_all(form, f"chat_{name}") for name in ("call", "name", "args"))
    _check_whole(indices, names, typed)
    shown = preview.message(value)
    calls = shown.tool_calls if shown is not None else ()
    found: list[tuple[views.CallField, list[Any] | None]] = []
    for number, name, text in zip(indices, names, typed, strict=True):
        if not number.isdigit() or int(number[:9]) >= len(calls):
            continue
        index, text = int(number), _lines(text)
        call = calls[index]
        error, change = "", None
        name = call.name if name == gate.line(call.name, 200) else name
        try:
            if not name.strip():
                raise PatchError("A call needs the name of its tool.")
            if isinstance(call.args, str):
                clean = views.arguments(call.args, show_secrets=show_secrets)
                args: Any = call.args if text == clean else spoken.typed_text(call.args, text, show_secrets=show_secrets)
            else:
                args = tagged.loads(text)
            if spoken.with_call(value, index, name, args) is not value:
                change = [index, name, args]
        except PatchError as problem:
            error = problem.message
        drawn = views.CallField(
            index,
            gate.line(call.id or "", 80),
            gate.line(name, 200),
            gate.clean(text),
            views.lines_of(text),
            gate.line(error, 300),
        )
        found.append((drawn, change))
    return found


def _check_whole(*lists: Sequence[str]) -> None:
    if len({len(one) for one in lists}) > 1:
        raise UsageError("this form is not complete", "reload the page and edit again; nothing was changed")


def _steps(desk: Desk, channel: str, text: str) -> Rewriting:
    """The steps of a form. UsageError when they are none, PatchError when they do not fit this checkpoint."""
    try:
        doc = tagged.loads(text) if text else {"steps": [], "done": 0}
        steps, done = doc["steps"], doc["done"]
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps) or type(done) is not int:
            raise TypeError
    except (PatchError, KeyError, TypeError) as error:
        raise UsageError(
            "the edits of this form cannot be read", "reload the page and edit again; nothing was changed"
        ) from error
    return Rewriting(desk.state, channel, steps, done)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _all(form: FormData, name: str) -> list[str]:
    return [value for value in form.getlist(name) if isinstance(value, str)]


def _one(form: FormData, name: str) -> str:
    return next(iter(_all(form, name)), "")


def _number(form: FormData, name: str) -> int:
    text = _one(form, name)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
