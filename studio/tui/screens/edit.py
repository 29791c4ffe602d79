"""Edit one value, or the whole state, as tagged JSON in a text area; a text also as plain text, any of it in $EDITOR."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.filter import LineFilter
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from studio import tagged
from studio.errors import PatchError
from studio.model import Tagged_JSON, Value
from studio.render import bare, gate, labels, masking
from studio.tui import draw
from studio.tui.keys import KeyLine
from studio.tui.names import KeyFilter

if TYPE_CHECKING:
    from studio.tui.app import StudioApp

_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<text>"(?:[^"\\]|\\.)*"?)'
    r"|(?P<word>-?\b\d[\d.eE+\-]*|\b(?:true|false|null)\b)"
)
LIMIT = 200_000
"""A text longer than this is cut in the editor; the cut part keeps its stored value."""


@dataclass(frozen=True, slots=True)
class Edited:
    """What the person left in the editor."""

    doc: Tagged_JSON
    changed: bool


class JsonArea(TextArea):
    """A text area that colours JSON by itself: the usual highlighter is native code, and one grammar does not need it."""

    plain_text = False

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Without the mask over keys: what is edited must be seen as it will be stored."""
        return [one for one in super().get_line_filters() if not isinstance(one, KeyFilter)]

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        if self.plain_text or len(line) > 2_000:
            return line
        colours = self.app.theme_variables
        for match in _TOKEN.finditer(line.plain):
            name = "quiet" if match.lastgroup == "key" else "new" if match.lastgroup == "text" else "lane-fork"
            start, stop = match.span(match.lastgroup or 0)
            line.stylize(colours.get(name, ""), start, stop)
        return line


class EditScreen(ModalScreen[Edited | None]):
    """Dismisses with the edited document, or None when it was left without keeping."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,f2", "keep", "Keep", show=False, priority=True),
        Binding("escape", "leave", "Leave", show=False, priority=True),
        Binding("ctrl+t", "toggle_text", "As text or JSON", show=False, priority=True),
        Binding("ctrl+o", "external", "$EDITOR", show=False, priority=True),
    ]
    CSS = """
    EditScreen > Vertical { width: 100%; max-width: 110; height: 100%; max-height: 36; margin: 1 2; padding: 0; }
    EditScreen.narrow > Vertical { margin: 0; }
    EditScreen #edit-hint { height: 1; padding: 0 1; color: $quiet; }
    EditScreen TextArea { height: 1fr; border: none; padding: 0 1; background: $surface; }
    EditScreen TextArea:focus { border: none; }
    EditScreen #edit-state { height: 1; padding: 0 1; }
    """

    def __init__(
        self,
        title: str,
        value: Value,
        hint: str = "",
        *,
        path: str = "",
        show_secrets: bool = False,
        doc: Tagged_JSON = None,
        has_doc: bool = False,
    ) -> None:
        super().__init__()
        self._title = title
        self._hint = hint
        name = masking.name_in(path)
        self._doc = doc if has_doc else masking.document(value, name, show_secrets=show_secrets, readable=False, limit=LIMIT)
        self._first = tagged.dumps(self._doc, indent=2)
        self._as_text = _plain(self._doc)
        """A text is edited as it is; anything else, and a text on request, as JSON."""
        self._bare = None if self._as_text or len(self._first) > LIMIT else bare.bare(self._doc)
        """A typed value is edited as just its value; on request as JSON with its type."""
        self._shell = self._doc
        """What a bare value goes back into."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._hint, markup=False, id="edit-hint")
            yield JsonArea(id="editor", show_line_numbers=False, tab_behavior="indent", soft_wrap=True)
            yield Static("", markup=False, id="edit-state")
            yield KeyLine(id="edit-keys")

    def on_mount(self) -> None:
        self.query_one(Vertical).border_title = draw.text(self._title, "bold", 90)
        area = self._area
        area.plain_text = self._is_plain
        area.load_text(self._shown(self._doc))
        self._say_keys()
        self.query_one(Vertical).styles.height = max(9, min(self._first.count("\n") + len(self._first) // 90 + 7, 36))
        area.focus()
        if not isinstance(self._doc, (dict, list)) and len(self._first) < 200:
            area.select_all()
        self._judge()

    @property
    def _area(self) -> JsonArea:
        return self.query_one("#editor", JsonArea)

    @property
    def _is_plain(self) -> bool:
        """Whether the area holds text, no JSON to colour."""
        return self._as_text or (self._bare is not None and not self._bare.is_json)

    def _shown(self, doc: Tagged_JSON) -> str:
        if self._bare is not None:
            return self._bare.text
        return doc if self._as_text and isinstance(doc, str) else tagged.dumps(doc, indent=2)

    def _say_keys(self) -> None:
        items = [("ctrl+s", "keep"), ("esc", "leave"), ("ctrl+o", "$EDITOR")]
        if self._as_text or self._bare is not None:
            items.insert(2, ("ctrl+t", "edit as JSON"))
        elif _plain(self._doc) or bare.bare(self._doc) is not None:
            items.insert(2, ("ctrl+t", "edit as text" if _plain(self._doc) else "just its value"))
        self.query_one("#edit-keys", KeyLine).say(items=items)

    def _read(self) -> Tagged_JSON:
        """The document in the editor. Raises PatchError with line and column."""
        if self._bare is not None:
            return bare.filled(self._shell, self._area.text)
        return self._area.text if self._as_text else tagged.loads(self._area.text)

    @on(TextArea.Changed, "#editor")
    def _judge(self) -> None:
        state = self.query_one("#edit-state", Static)
        try:
            doc = self._read()
        except PatchError as error:
            self._refuse(error.message)
            return
        kind = "text, as it is" if self._as_text else f"{_kind(doc)}, as JSON"
        if self._bare is not None:
            kind = self._bare.what
        if doc == self._doc and type(doc) is type(self._doc):
            state.update(Content.styled(f"  {kind}, unchanged", "$faint"))
        else:
            state.update(Content.assemble(("✓ ", "$new bold"), (f"{kind}, changed", "$quiet")))

    def action_keep(self) -> None:
        try:
            doc = self._read()
        except PatchError as error:
            self.app.complain(error, "Not valid yet")
            return
        same = tagged.dumps(doc) == tagged.dumps(self._doc)
        self.dismiss(Edited(doc, not same))

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_toggle_text(self) -> None:
        """The other form of the same value; where there is none, say why and keep what was typed."""
        try:
            doc = self._read()
        except PatchError as error:
            self._refuse(f"The text stays as it is: {error.message}")
            return
        found = None if self._as_text or self._bare is not None else bare.bare(doc)
        if not self._as_text and self._bare is None and found is None and not _plain(doc):
            self._refuse("Only a text without control characters, or a typed value, can be edited without JSON.")
            return
        self._as_text = not self._as_text and self._bare is None and found is None
        self._bare, self._shell = found, doc
        self._area.plain_text = self._is_plain
        self._area.load_text(self._shown(doc))
        self._say_keys()
        self._judge()

    def _refuse(self, words: str) -> None:
        self.query_one("#edit-state", Static).update(Content.assemble(("✕ ", "$error bold"), (gate.line(words, 200), "$error")))

    def action_external(self) -> None:
        """Hand the text to $EDITOR and take it back."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not editor:
            self.app.tell("Set $EDITOR to use your own editor.")
            return
        before = self._area.text
        with tempfile.TemporaryDirectory(prefix="studio-edit-") as folder:
            path = os.path.join(folder, "value.txt" if self._as_text else "value.json")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
                file.write(before)
            with self.app.suspend():
                subprocess.run([*shlex.split(editor), path], check=False)
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        if self._as_text and text == before + "\n":  # editors end a file with a newline
            text = before
        self._area.load_text(text)
        self.app.refresh()


def _plain(doc: Tagged_JSON) -> bool:
    """Whether a text area holds a text without altering it: no control characters, no line ends but the plain one."""
    return isinstance(doc, str) and gate.is_clean(doc) and f"{doc}.".splitlines() == f"{doc}.".split("\n")


def _kind(doc: Tagged_JSON) -> str:
    if isinstance(doc, dict):
        name = doc.get("$type")
        return gate.line(name.rsplit(".", 1)[-1], 40) if isinstance(name, str) else f"object, {labels.plural(len(doc), 'key')}"
    if isinstance(doc, list):
        return f"list of {len(doc)}"
    names = {bool: "true or false", int: "whole number", float: "number with a point", str: "text", type(None): "null"}
    return names.get(type(doc), type(doc).__name__)
