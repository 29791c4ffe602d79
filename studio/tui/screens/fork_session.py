"""Fork a turn of an agent's session: what the program will be sent, a text to say otherwise, and the command to go on with."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from studio import tagged
from studio.errors import StudioError
from studio.render import gate, labels, secrets
from studio.requests import ForkPreview, ForkRequest, ForkResult, Patch
from studio.tui import draw
from studio.tui.keys import KeyLine
from studio.tui.point import Point

if TYPE_CHECKING:
    from studio.forks.sessions.outlook import Outlook
    from studio.session import Session
    from studio.tui.app import StudioApp

LONGEST = 100_000


class ForkSessionScreen(ModalScreen[ForkResult | None]):
    """Dismisses with the fork, or None when it was left."""

    app: StudioApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,f2", "fork(False)", "Fork", show=False, priority=True),
        Binding("ctrl+o,f3", "fork(True)", "Fork and install", show=False, priority=True),
        Binding("escape", "leave", "Leave", show=False, priority=True),
    ]
    CSS = """
    ForkSessionScreen > Vertical { width: 100%; max-width: 104; height: auto; max-height: 100%; margin: 1 2; }
    ForkSessionScreen.narrow > Vertical { margin: 0; }
    ForkSessionScreen .say { height: auto; padding: 0 1; }
    ForkSessionScreen TextArea { height: 7; border: none; padding: 0 1; background: $panel; }
    ForkSessionScreen TextArea:focus { border: none; background: $here; }
    ForkSessionScreen VerticalScroll { height: auto; max-height: 12; }
    """

    def __init__(self, session: Session, point: Point, path: str | None) -> None:
        super().__init__()
        self.session, self.point = session, point
        self.path, self.first = text_at(point, path)
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            if self.path is not None:
                yield Static(draw.own("The text below takes the place of what was said.", "$quiet"), classes="say")
                yield TextArea(self.first, soft_wrap=True, show_line_numbers=False, id="said")
            else:
                words = "The same turn again. Choose a message in the Conversation tab to say it otherwise."
                yield Static(draw.own(words, "$quiet"), classes="say")
            with VerticalScroll():
                yield Static(draw.own("Looking at what was done after this turn …", "$faint"), id="plan", classes="say")
            yield KeyLine(id="fork-keys")

    def on_mount(self) -> None:
        title = f"New session from {draw.number(self.point.row)}"
        self.query_one(Vertical).border_title = draw.text(title, "bold", 90)
        self.query_one("#fork-keys", KeyLine).say(items=[("ctrl+s", "fork"), ("ctrl+o", "fork and install"), ("esc", "leave")])
        if self.path is not None:
            self.query_one("#said", TextArea).focus()
        self.look()

    @work(thread=True, group="plan", exclusive=True)
    def look(self) -> None:
        try:
            preview = self.session.preview(ForkRequest(self.point.address))
            outlook = self.session.outlook(self.point.address)
        except StudioError as error:
            self.app.call_from_thread(self.app.complain, error, "Not forked")
            return
        if self.is_attached:
            self.app.call_from_thread(self.say, preview, outlook)

    def say(self, preview: ForkPreview, outlook: Outlook) -> None:
        """The plan: what is said about the fork, and what it leaves as it is."""
        shown: list[Content] = []
        if preview.refused is not None:
            shown.append(draw.own(self._safe(preview.refused), "$error"))
        found = preview.session
        for words in found.warnings if found is not None else ():
            shown.append(Content.styled("! ", "$wait") + draw.own(self._safe(words), "$wait"))
        for words in found.notes if found is not None else ():
            shown.append(draw.own(self._safe(words), "$quiet"))
        if outlook.files or outlook.effects:
            files = labels.plural(len(outlook.files), "file")
            calls = labels.plural(len(outlook.effects) + outlook.more, "call")
            shown.append(draw.own(f"Not rewound: {files} changed after this turn, {calls} acted outside.", "$wait"))
            shown += [draw.own(f"  {self._safe(one.path)}  {one.known}: {one.source}", "$quiet") for one in outlook.files[:8]]
        self.query_one("#plan", Static).update(Content("\n").join(shown) if shown else draw.own("Nothing to be said.", "$faint"))

    def _safe(self, words: str) -> str:
        return gate.line(words if self.session.show_secrets else secrets.mask_text(words), 300)

    def action_fork(self, install: bool) -> None:
        if self._busy:
            return
        self._busy = True
        patch = Patch()
        if self.path is not None:
            text = self.query_one("#said", TextArea).text
            if text != self.first:
                patch = Patch({self.path: text})
        self.write(ForkRequest(self.point.address, patch, install=install))

    @work(thread=True, group="fork")
    def write(self, request: ForkRequest) -> None:
        try:
            result = self.session.fork(request)
        except StudioError as error:
            self._busy = False
            self.app.call_from_thread(self.app.complain, error, "Not forked")
            return
        self.app.call_from_thread(self.dismiss, result)

    def action_leave(self) -> None:
        self.dismiss(None)


def text_at(point: Point, path: str | None) -> tuple[str | None, str]:
    """(path of the text that can be said otherwise, the text): the chosen message, else the prompt at the end of the turn."""
    messages = point.state.values.get("messages")
    if not isinstance(messages, list) or not messages:
        return None, ""
    steps = tagged.split_path(path) if path is not None and path.startswith("/") else []
    if len(steps) > 1 and steps[0] == "messages":
        place = f"/messages/{steps[1]}/content"
    elif isinstance(messages[-1], dict) and messages[-1].get("type") == "human":
        place = f"/messages/{len(messages) - 1}/content"
    else:
        return None, ""
    try:
        found = tagged.get(dict(point.state.values), place)
    except StudioError:
        return None, ""
    return (place, found) if isinstance(found, str) and len(found) <= LONGEST else (None, "")
