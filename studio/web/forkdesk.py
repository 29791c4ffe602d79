"""The fork form of a place: what stands in it, and what it offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from studio import rewriting as rewriting_core
from studio import tagged
from studio.errors import StudioError
from studio.model import State
from studio.render import gate, secrets
from studio.web.spot import Spot
from studio.web.views import forks, rewriting

LONGEST_EDIT = 100_000
"""Characters or entries from which on a value is not put into the fork form of a page by itself."""


@dataclass(frozen=True, slots=True)
class ForkInput:
    """What stands in the fork form."""

    edits: tuple[forks.EditRow, ...] = ()
    goto: str = ""
    mode: str = "set"
    as_node: str = ""
    update: str = ""
    also: tuple[tuple[str, str], ...] = ()
    """(node, update) of each further write in the same superstep."""
    overwrite: tuple[str, ...] = ()
    new_thread: str = ""
    graph: str = ""
    python: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    """What stands in the options of the run, by name."""
    chat: rewriting.Editor | None = None

    @property
    def is_special(self) -> bool:
        return bool(self.goto or self.new_thread)


class ForkDesk(Spot):
    """A place from which one forks."""

    def fork_box(
        self, form: ForkInput | None = None, *, promise: forks.Promise | None = None, large: bool = False, ways: bool = False
    ) -> forks.ForkBox:
        """The fork form. The nodes to choose from cost a look at the whole thread: only with `ways`, or when one was chosen."""
        given = form if form is not None else self._first_input()
        session = self._session_form()
        refused = self.session.fork_refusal(self.address) if session is None else None
        known = ways or given.is_special
        add = self.place.path or self.selected_path or ""
        if given.chat is not None or any(edit.path == add for edit in given.edits) or not self.value_at(add)[1]:
            add = ""
        questions = self._questions()
        return forks.ForkBox(
            title=f"{'Fork from' if given.chat is None else 'Edit messages at'} #{self.row.number}",
            number=self.row.number,
            action=self.place.url("fork", [("large", "1")] if large else []),
            preview_action=self.place.url("preview"),
            edit_href=self.place.url("edit"),
            whole_href=self.place.url("edit", [("whole", "1")]),
            edits=given.edits,
            hint="Choose a value in the middle to change it here, or run this point again as it is.",
            goto_options=self._goto_options(given.goto) if known else (),
            goto=given.goto,
            writers=self._writers(given.as_node) if known or given.mode == "update" else None,
            writers_href=self.place.url("writers"),
            acts=forks.acts(given.mode),
            mode=given.mode,
            as_node=given.as_node,
            update=given.update,
            also=given.also,
            new_thread=gate.line(given.new_thread),
            graph=gate.line(given.graph),
            python=gate.line(given.python),
            add_path=add,
            add_label=gate.line(add, 60),
            promise=promise,
            open_more=given.is_special,
            ways_known=known,
            ways_href=self.place.url("ways"),
            questions=questions,
            answer_action=self.place.url("answer"),
            chat=given.chat,
            large=large,
            cancel_href=self.place.url(),
            run_fields=forks.run_fields(given.options),
            session=session,
            refused=gate.line(refused.message, 400) if refused is not None else "",
            refused_hint=gate.line(refused.hint, 300) if refused is not None else "",
        )

    def goto_box(self, typed: str) -> forks.ForkBox:
        """The form once its choice of a node is known; what was typed in its place until then is one of the choices."""
        return self.fork_box(ForkInput(goto=typed), ways=True)

    def _goto_options(self, typed: str) -> tuple[tuple[str, str], ...]:
        names = _quiet(lambda: self.session.goto_candidates(self.address))
        return forks.named((*names, typed) if names and typed and typed not in names else names)

    def _session_form(self) -> forks.SessionForm | None:
        if not self.session.is_transcript:
            return None
        path, text = session_text(self.state, self.place.path or self.selected_path)
        kept = self.session.kept_fork(self.address)

        def said(words: str | None) -> str:
            return gate.line(words if self.session.show_secrets else secrets.mask_text(words), 4000) if words else ""

        if not self.session.show_secrets and secrets.mask_text(text) != text:
            path, text = "", ""  # what is masked cannot be said again from here
        return forks.SessionForm(
            self.place.url("fork-session"),
            path,
            text,
            said(kept.path) if kept is not None else "",
            said(kept.installed) if kept is not None else "",
            tuple(map(said, kept.commands.values())) if kept is not None else (),
        )

    def _messages_href(self) -> str:
        channels = rewriting_core.channels(self.state, show_secrets=self.session.show_secrets)
        path = self.place.path or ""
        inside = path.startswith("/") and tagged.split_path(path)[0] in channels
        return self.place.to(tab="conversation", path=path if inside else None).url("messages") if channels else ""

    def _writers(self, chosen: str) -> forks.Writers:
        """The nodes to write as; with the graph's own edges once a person let it be loaded."""
        look = self.book.plans_allowed(self.place.file)
        try:
            found = self.session.writers(self.address, look=look, graph=self.book.graph(self.place.file))
        except StudioError as error:
            return forks.no_writers(error)
        return forks.writers(found, chosen)

    def _first_input(self) -> ForkInput:
        """The value under the cursor is there to be changed when a person chose it."""
        path = self.place.path or self.selected_path
        if path is None:
            return self.input_of(())
        value, exists = self.value_at(path)
        if not exists or isinstance(value, (str, list, dict)) and len(value) > LONGEST_EDIT:
            return self.input_of(())
        by_itself = self.place.path is None
        row = forks.edit_row(0, path, value, unchosen=by_itself, show_secrets=self.session.show_secrets, root=self.state.editable)
        return self.input_of((row,) if not row.big else ())

    def input_of(self, rows: tuple[forks.EditRow, ...], chat: rewriting.Editor | None = None) -> ForkInput:
        spec = self.book.graph(self.place.file)
        return ForkInput(edits=rows, chat=chat, graph=spec.graph or "", python=spec.python or "")

    def _questions(self) -> tuple[forks.AnswerRow, ...]:
        return tuple(
            forks.answer_row(interrupt.id or "", task.name or "", interrupt.value)
            for task in self.state.tasks
            for interrupt in task.interrupts
            if not interrupt.answered and task.status == "paused"
        )


def session_text(state: State, path: str | None) -> tuple[str, str]:
    """(path of the text that can be said otherwise, the text): the chosen message, else the prompt at the end of the turn."""
    messages = state.values.get("messages")
    if not isinstance(messages, list) or not messages:
        return "", ""
    steps = tagged.split_path(path) if path is not None and path.startswith("/") else []
    last = messages[-1]
    if len(steps) > 1 and steps[0] == "messages":
        place = f"/messages/{steps[1]}/content"
    elif isinstance(last, dict) and last.get("type") == "human":
        place = f"/messages/{len(messages) - 1}/content"
    else:
        return "", ""
    try:
        found = tagged.get(dict(state.values), place)
    except StudioError:
        return "", ""
    return (place, found) if isinstance(found, str) and len(found) <= LONGEST_EDIT else ("", "")


def _quiet(ask: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """Names to offer; none when they cannot be known (the form still works)."""
    try:
        return ask()
    except StudioError:
        return ()
