"""The message editor: the messages of a channel, one row pair each; edit, delete, insert, move, take back. Keeps or leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from studio import tagged
from studio.errors import PatchError, StudioError
from studio.model import Value
from studio.render import labels, preview, secrets, spoken
from studio.rewriting import Rewriting, Step
from studio.tui import draw
from studio.tui.keys import KeyLine
from studio.tui.rows import RowView
from studio.tui.screens.edit import Edited, EditScreen
from studio.tui.screens.help import HelpScreen, key_lines

if TYPE_CHECKING:
    from studio.tui.app import StudioApp

STYLES = {"user": "$primary bold", "assistant": "bold", "tool": "$lane-sub bold", "system": "$quiet bold"}
MARKS = {"new": "$new", "changed": "$new", "moved": "$new", "deleted": "$old"}
_KEYS = (
    ("↑ ↓", "Move", "To the message before, or the next one."),
    ("enter e", "Edit", "A text, a tool call's name or arguments, or the whole message as JSON."),
    ("d del", "Delete", "This message; again to put it back."),
    ("i", "Insert below", "A message of a user, a model or the system, or the result of a call."),
    ("I", "Insert above", "The same before this message."),
    ("J shift+↓", "Move down", "Put this message behind the next one."),
    ("K shift+↑", "Move up", "Put this message before the one above it."),
    ("u ctrl+z", "Undo", "Take the last step back."),
    ("U ctrl+y", "Redo", "Do it again."),
    ("s", "As stored", "Take back what was done to this message."),
    ("R", "Undo all", "Take back every step; U brings them again."),
    ("ctrl+s F2", "Keep", "Go back to the fork with these messages. Nothing is stored before the fork."),
    ("esc", "Leave", "Without the edits; it asks once."),
)
Choices = Sequence[tuple[str, Any]]


class ChoiceList(RowView):
    """Words to choose from."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(id="choices")
        self.choices = choices

    @property
    def row_count(self) -> int:
        return len(self.choices)

    def draw_row(self, index: int, width: int, here: bool) -> list[Content]:
        bar = Content.styled("▌ " if here else "  ", "$primary bold")
        return [bar + draw.text(self.choices[index][0], "bold" if here else "", width - 3)]


class ChoiceScreen(ModalScreen[Any]):
    """Dismisses with what stands behind the chosen words, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", show=False)]
    CSS = """
    ChoiceScreen > Vertical { width: 100%; max-width: 76; margin: 1 2; padding: 0; }
    ChoiceScreen ChoiceList { height: 1fr; }
    """

    def __init__(self, title: str, choices: Choices) -> None:
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield ChoiceList(self._choices)
            yield KeyLine([("↑↓", "move"), ("enter", "choose"), ("esc", "back")])

    def on_mount(self) -> None:
        box = self.query_one(Vertical)
        box.border_title = draw.text(self._title, "bold", 60)
        box.styles.height = min(len(self._choices) + 3, 20)
        self.query_one(ChoiceList).focus()

    @on(RowView.Chosen)
    def chosen(self, event: RowView.Chosen) -> None:
        event.stop()
        self.dismiss(self._choices[event.index][1])

    def action_leave(self) -> None:
        self.dismiss(None)


class MessageList(RowView):
    """Two lines for each message: who speaks and what was done to it; the beginning of what it says."""

    row_height: ClassVar[int] = 2

    def __init__(self, edited: Rewriting, *, show_secrets: bool) -> None:
        super().__init__(id="messages")
        self.empty = "No messages: press i to insert one."
        self._show_secrets = show_secrets
        self.edited = edited
        self.problems = edited.problems()
        self._moved = edited.moved()

    def show(self, edited: Rewriting) -> None:
        self.edited = edited
        self.problems = edited.problems()
        self._moved = edited.moved()
        self.rows_changed()

    @property
    def row_count(self) -> int:
        return len(self.edited.entries)

    def marks(self, at: int) -> list[str]:
        entry = self.edited.entries[at]
        if entry.gone:
            return ["deleted"]
        found = ["new"] if entry.origin is None else ["changed"] if self.edited.changed(at) else []
        return [*found, *(["moved"] if at in self._moved else [])]

    def draw_row(self, index: int, width: int, here: bool) -> list[Content]:
        entry = self.edited.entries[index]
        shown = preview.message(entry.value)
        role = shown.role if shown else "item"
        gutter = Content.styled("▌" if here else " ", "$primary bold")
        title = draw.text(role if role != "tool" else "tool result", STYLES.get(role, "bold"), 20)
        if shown is not None and shown.name:
            title += draw.text(f" {shown.name}", "$quiet", 40)
        marks = [draw.own(word, MARKS[word]) for word in self.marks(index)]
        if index in self.problems:
            marks.append(draw.own("! " + ("no answer" if role == "assistant" else "no call"), "$wait bold"))
        right = Content(" ").join(marks)
        room = width - right.cell_length - 3
        head = (gutter + Content(" ") + title).truncate(max(8, room), ellipsis=True)
        head += Content(" " * max(1, width - head.cell_length - right.cell_length - 1)) + right
        return [head, gutter + Content("   ") + self._said(entry.value, width - 5, entry.gone)]

    def _said(self, value: Value, width: int, gone: bool) -> Content:
        shown = preview.message(value)
        if shown is None:
            return draw.text(preview.summary(value, width, show_secrets=self._show_secrets), "$quiet", width)
        head = shown.text[: 4 * width] if self._show_secrets else secrets.head(shown.text, 4 * width)
        style = "$old strike" if gone else ""
        words = draw.text(head.replace("\n", " ⏎ "), style, width)
        room = width - words.cell_length - 1
        for call in shown.tool_calls:
            if room < 12:
                break
            piece = draw.text("⚒ " + preview.call_text(call, room - 2), style or "$lane-sub", room)
            words = words + Content(" " if words.cell_length else "") + piece
            room = width - words.cell_length - 1
        return words if words.cell_length else draw.own("(empty)", "$faint")


class RewriteScreen(ModalScreen[Rewriting | None]):
    """Dismisses with the edited messages, or None when they are left as they were."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,f2", "keep", "Keep", show=False, priority=True),
        Binding("escape", "leave", "Leave", show=False),
        Binding("e", "edit", "Edit", show=False),
        Binding("d,delete", "delete", "Delete or put back", show=False),
        Binding("i,insert", "insert", "Insert below", show=False),
        Binding("I", "insert(True)", "Insert above", show=False),
        Binding("J,shift+down,alt+down", "carry(1)", "Move down", show=False),
        Binding("K,shift+up,alt+up", "carry(-1)", "Move up", show=False),
        Binding("u,ctrl+z", "undo", "Undo", show=False),
        Binding("U,ctrl+y", "redo", "Redo", show=False),
        Binding("s", "restore", "As stored", show=False),
        Binding("R", "reset", "Undo all", show=False),
        Binding("question_mark", "keys", "Keys", show=False),
    ]
    CSS = """
    RewriteScreen > Vertical { width: 100%; max-width: 130; height: 100%; max-height: 44; margin: 1 2; padding: 0; }
    RewriteScreen.narrow > Vertical { margin: 0; }
    RewriteScreen MessageList { height: 1fr; }
    RewriteScreen #rewrite-state { height: 1; padding: 0 1; }
    """

    def __init__(self, edited: Rewriting, where: str, *, at: int | None = None, show_secrets: bool = False) -> None:
        super().__init__()
        self._first = edited
        self._where = where
        self._at = at
        self._show_secrets = show_secrets
        self._asked_to_leave = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield MessageList(self._first, show_secrets=self._show_secrets)
            yield Static("", markup=False, id="rewrite-state")
            yield KeyLine(
                [
                    ("enter", "edit"),
                    ("d", "delete"),
                    ("i", "insert"),
                    ("u", "undo"),
                    ("ctrl+s", "keep"),
                    ("esc", "leave"),
                    ("?", "keys"),
                    ("J K", "move"),
                    ("U", "redo"),
                    ("s", "as stored"),
                    ("R", "undo all"),
                ]
            )

    def on_mount(self) -> None:
        title = f"{self._first.channel}  at {self._where}"
        self.query_one(Vertical).border_title = draw.text(title, "bold", 90)
        view = self._view
        view.focus()
        view.set_cursor(self._at if self._at is not None else view.row_count - 1)
        self._say()

    @property
    def _view(self) -> MessageList:
        return self.query_one(MessageList)

    @property
    def edited(self) -> Rewriting:
        return self._view.edited

    def _say(self) -> None:
        """What was done, or what is wrong with the message under the cursor."""
        view = self._view
        wrong = view.problems.get(view.cursor)
        others = len(view.problems) - (1 if wrong else 0)
        done = view.edited.summary() if not wrong else ""
        if wrong:
            said = Content.assemble(("! ", "$wait bold")) + draw.text(wrong[0], "$wait", 110)
        elif done:
            said = Content.assemble(("✓ ", "$new bold"), (done, ""))
            said += draw.own(f"  ! {labels.plural(others, 'message')} without its other half", "$wait") if others else Content("")
        else:
            said = draw.own(f"{labels.plural(view.row_count, 'message')}, as stored", "$faint")
        self.query_one("#rewrite-state", Static).update(said)

    @on(RowView.Moved, "#messages")
    def moved(self, event: RowView.Moved) -> None:
        event.stop()
        self._asked_to_leave = False
        self._say()

    @on(RowView.Chosen, "#messages")
    def chosen(self, event: RowView.Chosen) -> None:
        event.stop()
        self.action_edit()

    # ------------------------------------------------------------------ steps

    def _do(self, make: Callable[[], Rewriting], cursor: int | None = None) -> bool:
        """Go one step, forward or back; says why where that cannot be done."""
        try:
            edited = make()
        except StudioError as error:
            self.app.complain(error, "Not done")
            return False
        self._asked_to_leave = False
        self._view.show(edited)
        if cursor is not None:
            self._view.set_cursor(cursor)
        self._say()
        return True

    def _then(self, step: Step, cursor: int | None = None) -> bool:
        return self._do(lambda: self.edited.then(step), cursor)

    @property
    def _here(self) -> int | None:
        return self._view.cursor if self._view.row_count else None

    def action_delete(self) -> None:
        at = self._here
        if at is not None:
            self._then({"do": "restore" if self.edited.entries[at].gone else "delete", "at": at}, at)

    def action_restore(self) -> None:
        at = self._here
        if at is not None:
            self._then({"do": "restore", "at": at}, at)

    def action_carry(self, by: int) -> None:
        at = self._here
        if at is not None and 0 <= at + by < self._view.row_count:
            self._then({"do": "move", "at": at, "to": at + by}, at + by)

    def action_undo(self) -> None:
        self._do(self.edited.undo)

    def action_redo(self) -> None:
        self._do(self.edited.redo)

    def action_reset(self) -> None:
        self._do(self.edited.reset)

    # ------------------------------------------------------------------ inserting

    def action_insert(self, above: bool = False) -> None:
        after = -1 if self._here is None else self._here - (1 if above else 0)
        waiting = [
            (f"the result of {preview.call_text(call, 50)}", ("tool", call.id)) for call in self.edited.open_calls(after + 1)
        ]
        roles: Choices = [("user", ("user", None)), ("assistant", ("assistant", None)), ("system", ("system", None))]
        title = f"Insert {'above' if above else 'below'}: who speaks?"
        self.app.push_screen(ChoiceScreen(title, [*waiting, *roles]), lambda picked: self._inserted(after, picked))

    def _inserted(self, after: int, picked: tuple[str, str | None] | None) -> None:
        if picked is None:
            return
        role, call = picked
        screen = EditScreen(f"new {role} message", "", "Its text. It gets an id of its own.")

        def keep(edited: Edited | None) -> None:
            if edited is not None:
                text = edited.doc if isinstance(edited.doc, str) else ""
                self._do(lambda: self.edited.then(self.edited.insertion(after, role, text, call)), after + 1)

        self.app.push_screen(screen, keep)

    # ------------------------------------------------------------------ editing

    def action_edit(self) -> None:
        """Open the one text of a message, or ask which part of it."""
        at = self._here
        if at is None:
            return
        entry = self.edited.entries[at]
        if entry.gone:
            self.app.tell("This message is deleted: d puts it back.")
            return
        parts = self._parts(entry.value)
        if len(parts) == 2 and parts[0][1][0] == "text":
            self._edit(at, parts[0][1])
        else:
            self.app.push_screen(ChoiceScreen("Which part?", parts), lambda part: self._edit(at, part))

    def _parts(self, value: Value) -> list[tuple[str, tuple[Any, ...]]]:
        """(words, what is edited) of each part of a message, the whole of it last."""
        shown = preview.message(value)
        found: list[tuple[str, tuple[Any, ...]]] = []
        if shown is not None:
            texts = spoken.texts_of(value)
            for block, text in texts:
                name = "text" if len(texts) == 1 else f"text of block {block}"
                found.append((f"{name}: {secrets.head(text, 60)}" if text else name, ("text", block)))
            for index, call in enumerate(shown.tool_calls):
                found.append((f"arguments of {preview.call_text(call, 60)}", ("args", index)))
                found.append((f"name of the tool {call.name}", ("name", index)))
                found.append((f"remove the call {call.name}", ("uncall", index)))
        return [*found, ("the whole message as JSON", ("doc",))]

    def _edit(self, at: int, part: tuple[Any, ...] | None) -> None:
        if part is None:
            return
        kind = part[0]
        if kind == "uncall":
            self._then({"do": "uncall", "at": at, "call": part[1]}, at)
            return
        value = self.edited.entries[at].value
        shown = preview.message(value)
        call = shown.tool_calls[part[1]] if kind in ("args", "name") and shown is not None else None
        held: Value = value
        if kind == "text":
            held = dict(spoken.texts_of(value))[part[1]]
        elif call is not None:
            held = call.name if kind == "name" else call.args if call.args is not None else {}
        titles = {"text": "text", "doc": "message as JSON", "args": "arguments, as JSON", "name": "name of the tool"}
        hint = {"args": "The id of the call stays.", "doc": "Type and ids stay as you leave them."}.get(kind, "")
        screen = EditScreen(f"{titles[kind]} of message {at}", held, hint, show_secrets=self._show_secrets)

        def keep(edited: Edited | None) -> None:
            if edited is not None and edited.changed:
                self._do(lambda: self._with(at, part, held, edited.doc, call.name if call else ""), at)

        self.app.push_screen(screen, keep)

    def _with(self, at: int, part: tuple[Any, ...], held: Value, doc: Any, name: str) -> Rewriting:
        """The messages with one part as it was typed. Raises PatchError."""
        kind = part[0]
        if kind == "doc":
            return self.edited.then({"do": "doc", "at": at, "doc": doc})
        if kind == "args":
            args = tagged.from_tagged(doc, held) if isinstance(held, str) else doc
            return self.edited.then({"do": "edit", "at": at, "calls": [[part[1], name, args]]})
        text = tagged.from_tagged(doc, held)
        if not isinstance(text, str):
            raise PatchError("This must be a text.", 'Write it in double quotes, "…", or as plain text (ctrl+t).')
        if kind == "name":
            message = preview.message(self.edited.entries[at].value)
            args = message.tool_calls[part[1]].args if message is not None else {}
            given = args if isinstance(args, str) else tagged.to_tagged(args)
            return self.edited.then({"do": "edit", "at": at, "calls": [[part[1], text, given]]})
        return self.edited.then({"do": "edit", "at": at, "texts": [[part[1], text]]})

    def action_keys(self) -> None:
        self.app.push_screen(HelpScreen(key_lines((("The messages", _KEYS),)), "Keys of the message editor"))

    # ------------------------------------------------------------------ leaving

    def action_keep(self) -> None:
        self.dismiss(self.edited)

    def action_leave(self) -> None:
        if self.edited.steps[: self.edited.done] == self._first.steps[: self._first.done] or self._asked_to_leave:
            self.dismiss(None)
            return
        self._asked_to_leave = True
        said = Content.assemble(("! ", "$wait bold"), ("esc again drops these edits; ctrl+s keeps them", "$wait"))
        self.query_one("#rewrite-state", Static).update(said)
