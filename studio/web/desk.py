"""One request's view of a thread: from the place in the URL to everything that the page draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from studio import kinship, wording
from studio.errors import RefError, StudioError
from studio.model import Address
from studio.render import gate, masking, shell
from studio.render.threadnames import thread_name, titled
from studio.runs import Run
from studio.session import Session
from studio.web.forkdesk import ForkDesk
from studio.web.links import Place, encode
from studio.web.views import branches as branches_view
from studio.web.views import changes as changes_view
from studio.web.views import chat, detail, filehistory, forks, graph, runs, strip, tables, todolist
from studio.web.views import chrome as chrome_view
from studio.web.views import timeline as timeline_view
from studio.web.views import why as why_view
from studio.web.views.values import Reveal


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that changes when the cursor moves: centre, right column and key line."""

    tab: str
    head: chrome_view.Head
    foot: chrome_view.Foot
    scrub_href: str
    row_href: str
    """The address of the row of the timeline that the cursor is on."""
    pinned_href: str
    """The same of the pinned base of diffs; empty where none is pinned."""
    index: int
    leaf: bool
    url: str
    checkpoint_id: str
    announce: str
    copies: tuple[tuple[str, str], ...]
    link: Callable[[str], str]
    part: Callable[..., str]
    why: why_view.Why | None
    fork: forks.ForkBox
    run: runs.RunView | None
    messages_href: str = ""
    """The message editor; empty where no channel holds messages, or nothing can be forked."""
    promote_href: str = ""
    """Where the branch can be put into the file itself; empty for a row that is in it."""
    editor: forks.ForkBox | None = None
    answer_promise: forks.Promise | None = None
    changes: changes_view.Changes | None = None
    conversation: chat.Conversation | None = None
    files: filehistory.FilesView | None = None
    todos: todolist.TodosView | None = None
    strip: strip.StripView | None = None
    state: detail.StateView | None = None
    tasks: detail.TasksView | None = None
    raw: detail.RawView | None = None
    branches: branches_view.Side | None = None
    graph: graph.GraphView | None = None


@dataclass(frozen=True, slots=True)
class Workspace:
    chrome: chrome_view.Chrome
    timeline: timeline_view.Timeline
    stage: Stage
    footer: tuple[chrome_view.Key, ...]
    key_groups: tuple[tuple[str, tuple[chrome_view.Key, ...]], ...]


class Desk(ForkDesk):
    """Everything that the page draws of a place."""

    def because(self) -> str:
        """Why this superstep ran, in words."""
        parent = self.tree.parent(self.address)
        if (
            parent is None
            or self.row.origin_checkpoint_id is not None
            or self.state.checkpoint.source in ("input", "fork", "update")
        ):
            return ""
        words = {why_view.because(task) for task in self.session.state(parent).tasks}
        words.discard("")
        if len(words) != 1:
            return ""
        reason = words.pop()
        return reason if reason.startswith("started ") else f"ran {reason}"

    # ------------------------------------------------------------------ what the page draws

    def workspace(self, theme: str, *, stage: Stage | None = None, others: Sequence[tuple[str, str]] = ()) -> Workspace:
        keys = chrome_view.keys()
        groups = tuple(
            (group, tuple(key for key in keys if key.group == group)) for group in dict.fromkeys(key.group for key in keys)
        )
        return Workspace(self.chrome(theme, others), self.timeline(), stage or self.stage(), chrome_view.footer_keys(), groups)

    def chrome(self, theme: str, others: Sequence[tuple[str, str]] = ()) -> chrome_view.Chrome:
        file = tables.title(self.session, 60)
        thread = titled(self.session.thread_title(self.address.thread_id), self.address.thread_id, 60)
        badge, title = badge_of(self.session)
        return chrome_view.Chrome(
            title=f"{gate.line(self.row.label, 40)} · {thread} · {file}",
            file=file,
            location=gate.line(self.session.location),
            thread=thread,
            thread_id=thread_name(self.address.thread_id),
            thread_raw=self.address.thread_id,
            file_href=Place(self.place.file).url("threads"),
            tables_href="" if self.session.is_transcript else Place(self.place.file).url("tables"),
            threads_href=Place(self.place.file, self.address.thread_id).url("threads"),
            search_href=Place(self.place.file).url("search"),
            query="",
            badge=badge,
            badge_title=title,
            events_href=Place(self.place.file).url("events"),
            theme=theme,
            next_theme="light" if theme == "dark" else "dark",
            here=self.place.url(),
            keys=chrome_view.keys(),
            footer=chrome_view.footer_keys(),
            others=tuple(others),
        )

    def timeline(self, visible: Iterable[int] = ()) -> timeline_view.Timeline:
        return timeline_view.timeline(
            self.tree, self.place, tuple(visible), self.session.problems(), self.session.outside, self._row_words()
        )

    def chunk(self, start: int) -> tuple[timeline_view.Chunk, int]:
        start = max(0, start - start % timeline_view.CHUNK)
        start = min(start, max(0, len(self.tree) - 1))
        found = timeline_view.chunk(self.tree, self.place, start, outside=self.session.outside, words=self._row_words())
        return found, timeline_view.lane_width(self.tree.lane_count)

    def _row_words(self) -> timeline_view.Words | None:
        """Of a transcript: what a row says beside its title."""
        session = self.session
        if not session.is_transcript:
            return None

        def of(address: Address) -> wording.RowWords | None:
            found = session.brief(address)
            return wording.row_words(found, show_secrets=session.show_secrets) if found is not None else None

        return of

    def stage(
        self,
        *,
        fork: forks.ForkBox | None = None,
        editor: forks.ForkBox | None = None,
        run: Run | None = None,
        follow: bool = False,
        announce: str = "",
        before: int | None = None,
        reveal: Reveal | None = None,
        answer_promise: forks.Promise | None = None,
    ) -> Stage:
        place, tab = self.place, self.place.tab
        shown = reveal or Reveal(all=self.session.show_secrets)
        drawn = (
            changes_view.changes(place, self.comparison, self.state, self.tree, shown, self.subgraph_runs)
            if tab == "changes" and editor is None
            else None
        )
        index = self.tree.index(self.address)
        current = run if run is not None else self.book.run_at(self.session, self.address)
        return Stage(
            tab=tab,
            head=chrome_view.head(
                place,
                self.tree,
                self.row,
                self.state,
                self.because(),
                drawn.compared if drawn else "",
                self.pinned,
                self.steps_across,
                self._kin(),
                turns=self.session.is_transcript,
                words=self._words(),
            ),
            foot=chrome_view.foot(place, self.tree),
            scrub_href=place.to(path=None).url("step"),
            row_href=Place(place.file).at_address(self.address).url(),
            pinned_href=Place(place.file).at_address(self.pinned).url() if self.pinned is not None else "",
            index=index,
            leaf=self.row.is_leaf,
            url=place.url(),
            checkpoint_id=gate.line(self.address.checkpoint_id),
            announce=announce or f"#{self.row.number} {gate.line(self.row.label, 80)}",
            copies=self._copies(),
            link=self._link,
            part=self._part,
            why=self._why(),
            fork=fork or self.fork_box(),
            messages_href=self._messages_href(),
            promote_href=place.url("promote")
            if self.row.checkpoint.origin == "scratch" and not self.session.is_transcript
            else "",
            editor=editor,
            answer_promise=answer_promise,
            run=runs.run_view(current, self.session, self.tree, place, follow=follow) if current is not None else None,
            changes=drawn,
            conversation=chat.conversation(self.session, self.tree, place, self.address, before=before)
            if tab == "conversation"
            else None,
            files=filehistory.files_view(self.session, self.tree, place, self.address) if tab == "files" else None,
            todos=todolist.todos_view(self.session, self.tree, place, self.address) if tab == "todos" else None,
            strip=strip.strip_view(self.session, self.tree, place, self.address) if self.session.is_transcript else None,
            state=detail.state_view(self.listed, self.sizes, place, self.tree, shown) if tab == "state" else None,
            tasks=detail.tasks_view(self.state, place, self.tree, self.subgraph_runs) if tab == "tasks" else None,
            raw=detail.raw_view(self.state, self.session.show_secrets) if tab == "raw" else None,
            branches=branches_view.side(self.session, self.tree, place) if tab == "branches" else None,
            graph=self.graph(wait=False) if tab == "graph" else None,
        )

    def graph(self, *, wait: bool) -> graph.GraphView:
        named = self.book.graph(self.place.file).graph or ""
        return graph.graph_view(self.session, self.tree, self.place, self.address, wait=wait, named=named)

    def _words(self) -> str:
        """What a turn of a transcript is about."""
        found = self.session.brief(self.address)
        return wording.row_words(found, show_secrets=self.session.show_secrets).words if found is not None else ""

    def _link(self, path: str) -> str:
        return self.place.to(path=path, tab="state").url()

    def _part(self, name: str, path: str, extra: Iterable[tuple[str, str]] = ()) -> str:
        return self.place.to(path=path, tab="state").url(name, extra)

    def _kin(self) -> tuple[tuple[str, str, str], ...]:
        """Ways to other threads: to what this was made from, and to the forks that were made of it."""
        found = self.session.kin(self.state.checkpoint).elsewhere(self.address.thread_id)
        named = [("made from", found.made_from)] if found.made_from is not None else []
        named += [("forked to" if index == 0 else "and", at) for index, at in enumerate(found.made[:6])]
        return tuple(
            (
                words,
                f"{kinship.name(self.session, at)} of {gate.line(at.thread_id, 40)}",
                Place(self.place.file).at_address(at).url(),
            )
            for words, at in named
        )

    def _why(self) -> why_view.Why | None:
        path = self.selected_path
        if path is None or self.place.tab == "branches":
            return None
        try:
            return why_view.why(self.session, self.place, path)
        except StudioError as error:
            return why_view.failed(self.place, path, error)

    def _copies(self) -> tuple[tuple[str, str], ...]:
        path = self.selected_path
        found = [
            (kind, self.place.to(path=path).url(f"copy/{kind}")) for kind in ("copy_id", "copy_python", "copy_test", "copy_link")
        ]
        return tuple(([("copy_value", self.place.to(path=path).url("copy/copy_value"))] if path else []) + found)

    # ------------------------------------------------------------------ forking

    # ------------------------------------------------------------------ copying

    def copy_text(self, kind: str, *, revealed: bool = False) -> tuple[str, bool]:
        """(what a copy action puts on the clipboard, whether secrets in it are masked); raises RefError for an unknown kind.

        `revealed`: a person asked to see the value, and copies what is shown.
        """
        if kind == "copy_value" and self.place.path:
            value, exists = self.value_at(self.place.path)
            if exists:
                show = revealed or self.session.show_secrets
                text = masking.copied(self.place.path, value, show_secrets=show)
                return text, not show and masking.hides_in_copy(self.place.path, value, text)
        return self._copied(kind), False

    def _copied(self, kind: str) -> str:
        from studio.render import snippets

        if kind == "copy_id":
            return self.address.checkpoint_id
        if kind == "copy_python":
            return snippets.as_python(self.address, self.session.source())
        if kind == "copy_test":
            return snippets.as_test(self.address, self.session.source(), self.state.next)
        if kind == "copy_link":
            query = encode(self.place.pairs())
            chosen = "".join(f" {word if word.startswith('--') else _path(word)}" for word in self.session.view_options)
            return f"studio web {_path(self.session.location)}{chosen} --at {_shell('/?' + query)}"
        raise RefError(f"nothing to copy as {kind}", "choose a value first")


def badge_of(session: Session) -> tuple[str, str]:
    """The promise in the header, and where forks go."""
    if session.is_transcript:
        return (
            "read-only · forks go to scratch",
            "a fork is a new session file in your data folder; the file itself is never changed",
        )
    if refused := session.fork_refusal():
        return "read-only · nothing can be forked", gate.line(refused.message, 300)
    if session.scratch_is_temporary:
        return (
            "read-only · forks are temporary",
            f"forks go to {gate.line(session.scratch_path)}, which does not outlive this computer's next start",
        )
    return "read-only · forks go to scratch", f"forks go to {gate.line(session.scratch_path)}"


def _path(text: str) -> str:
    """A name of a file is quoted like all else, unless it is not UTF-8."""
    return _shell(text) if shell.is_text(text) else shell.word(text)


def _shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
