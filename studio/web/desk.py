"""One request's view of a thread: from the place in the URL to everything that the page draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from msgspec.structs import replace

from studio import kinship, tagged
from studio import rewriting as rewriting_core
from studio.calling import SubgraphRun
from studio.errors import RefError, StudioError
from studio.growing import Compared
from studio.model import Address, Comparison, Row, State, Tagged_JSON, Value
from studio.render import gate, masking, preview, shell
from studio.runs import Run
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.book import Book
from studio.web.links import Place, encode
from studio.web.views import branches as branches_view
from studio.web.views import changes as changes_view
from studio.web.views import chat, detail, forks, graph, rewriting, runs, tables
from studio.web.views import chrome as chrome_view
from studio.web.views import sizes as sizes_view
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
    state: detail.StateView | None = None
    tasks: detail.TasksView | None = None
    raw: detail.RawView | None = None
    branches: branches_view.Side | None = None
    graph: graph.GraphView | None = None


LONGEST_EDIT = 100_000
"""Characters or entries from which on a value is not put into the fork form of a page by itself."""


@dataclass(frozen=True, slots=True)
class Workspace:
    chrome: chrome_view.Chrome
    timeline: timeline_view.Timeline
    stage: Stage
    footer: tuple[chrome_view.Key, ...]
    key_groups: tuple[tuple[str, tuple[chrome_view.Key, ...]], ...]


class Desk:
    """A place that was checked against its file. Raises RefError when thread or checkpoint are not there."""

    def __init__(self, book: Book, place: Place) -> None:
        self.book = book
        self.session: Session = book.session(place.file)
        session = self.session
        session.refresh()
        thread = place.thread if place.thread is not None else session.default_thread()
        if thread is None:
            raise RefError(
                "this file holds no threads yet", "one that is written while you look appears in the list", "no-threads"
            )
        self.tree: CheckpointTree = session.tree(thread)
        self.place = self._checked(place.to(thread=thread))

    def _checked(self, place: Place) -> Place:
        if place.at and place.address in self.tree:
            return place
        if place.at:
            return place.at_address(self.tree.resolve(place.at, place.ns or None))
        head = self.tree.head or self.tree.address_at(len(self.tree) - 1)
        return place.at_address(head)

    # ------------------------------------------------------------------ what the place names

    @cached_property
    def address(self) -> Address:
        return self.place.address

    @cached_property
    def row(self) -> Row:
        return self.tree.row(self.address)

    @cached_property
    def state(self) -> State:
        return self.session.state(self.address)

    @cached_property
    def sizes(self) -> Compared:
        return self.session.sizes(self.address)

    @cached_property
    def listed(self) -> State:
        """The state with its channels in the order that was asked for."""
        if self.place.sort != "size":
            return self.state
        return replace(self.state, values=sizes_view.ordered(self.state.values, self.sizes))

    @cached_property
    def subgraph_runs(self) -> dict[str, tuple[SubgraphRun, ...]]:
        return self.session.subgraph_runs(self.state)

    @cached_property
    def steps_across(self) -> chrome_view.Across:
        """The ways from here into a subgraph, and out of one to the task that called it."""
        caller = self.session.caller(self.state)
        first = next((run.first for runs in self.subgraph_runs.values() for run in runs), None)
        return chrome_view.across(self.place, self.tree, caller, first)

    @cached_property
    def pinned(self) -> Address | None:
        """The pinned base of diffs, when it is there."""
        if not self.place.base:
            return None
        ns = self.place.base_ns if self.place.base_ns is not None else self.place.ns
        found = Address(self.address.thread_id, ns, self.place.base)
        return found if found in self.tree else None

    @property
    def base(self) -> Address | None:
        """What diffs compare with in place of the parent: the pinned base, unless that is this checkpoint itself."""
        return self.pinned if self.pinned != self.address else None

    @cached_property
    def comparison(self) -> Comparison:
        return self.session.compare(self.address, self.base or self.session.base_of(self.address))

    def value_at(self, path: str) -> tuple[Value, bool]:
        try:
            return tagged.get(self.state.editable, path), True
        except StudioError:
            return None, False

    def document_at(self, path: str) -> Tagged_JSON:
        """The value at a path as a form has it, secrets masked; null where there is none."""
        value, _ = self.value_at(path)
        name = masking.name_in(path, dict(self.state.values))
        return masking.document(value, name, show_secrets=self.session.show_secrets, readable=False)

    @cached_property
    def selected_path(self) -> str | None:
        """The path of the URL, else the change that a person most likely asks about: the first that is no message."""
        if self.place.path:
            return self.place.path
        if self.place.tab not in ("changes",):
            return None
        found = self.comparison.changes
        values = [change for change in found if preview.message(change.after) is None]
        scalars = [change for change in values if not isinstance(change.after, (dict, list))]
        picked = next(iter(scalars or values or found), None)
        return picked.path if picked is not None else None

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
        thread = gate.line(self.address.thread_id, 60) or "(empty name)"
        badge, title = badge_of(self.session)
        return chrome_view.Chrome(
            title=f"{gate.line(self.row.label, 40)} · {thread} · {file}",
            file=file,
            location=gate.line(self.session.location),
            thread=thread,
            thread_raw=self.address.thread_id,
            file_href=Place(self.place.file).url("threads"),
            tables_href=Place(self.place.file).url("tables"),
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
        return timeline_view.timeline(self.tree, self.place, tuple(visible), self.session.problems(), self.session.outside)

    def chunk(self, start: int) -> tuple[timeline_view.Chunk, int]:
        start = max(0, start - start % timeline_view.CHUNK)
        start = min(start, max(0, len(self.tree) - 1))
        return timeline_view.chunk(self.tree, self.place, start, outside=self.session.outside), timeline_view.lane_width(
            self.tree.lane_count
        )

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
            promote_href=place.url("promote") if self.row.checkpoint.origin == "scratch" else "",
            editor=editor,
            answer_promise=answer_promise,
            run=runs.run_view(current, self.session, self.tree, place, follow=follow) if current is not None else None,
            changes=drawn,
            conversation=chat.conversation(self.session, self.tree, place, self.state, before=before)
            if tab == "conversation"
            else None,
            state=detail.state_view(self.listed, self.sizes, place, self.tree, shown) if tab == "state" else None,
            tasks=detail.tasks_view(self.state, place, self.tree, self.subgraph_runs) if tab == "tasks" else None,
            raw=detail.raw_view(self.state, self.session.show_secrets) if tab == "raw" else None,
            branches=branches_view.side(self.session, self.tree, place) if tab == "branches" else None,
            graph=self.graph(wait=False) if tab == "graph" else None,
        )

    def graph(self, *, wait: bool) -> graph.GraphView:
        named = self.book.graph(self.place.file).graph or ""
        return graph.graph_view(self.session, self.tree, self.place, self.address, wait=wait, named=named)

    def _link(self, path: str) -> str:
        return self.place.to(path=path, tab="state").url()

    def _part(self, name: str, path: str, extra: Iterable[tuple[str, str]] = ()) -> str:
        return self.place.to(path=path, tab="state").url(name, extra)

    def _kin(self) -> tuple[tuple[str, str, str], ...]:
        """Ways to other threads: to what this was made from, and to the forks that were made of it."""
        found = self.session.kin(self.address).elsewhere(self.address.thread_id)
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

    def fork_box(
        self, form: ForkInput | None = None, *, promise: forks.Promise | None = None, large: bool = False, ways: bool = False
    ) -> forks.ForkBox:
        """The fork form. The nodes to choose from cost a look at the whole thread: only with `ways`, or when one was chosen."""
        given = form if form is not None else self._first_input()
        refused = self.session.fork_refusal(self.address)
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
            goto_options=forks.named(_quiet(lambda: self.session.goto_candidates(self.address))) if known else (),
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
            refused=gate.line(refused.message, 400) if refused is not None else "",
            refused_hint=gate.line(refused.hint, 300) if refused is not None else "",
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
        row = forks.edit_row(0, path, value, show_secrets=self.session.show_secrets, root=self.state.editable)
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

    # ------------------------------------------------------------------ copying

    def copy_text(self, kind: str) -> str:
        """What a copy action puts on the clipboard; raises RefError for an unknown kind."""
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
        if kind == "copy_value" and self.place.path:
            value, exists = self.value_at(self.place.path)
            if exists:
                return masking.copied(self.place.path, value, show_secrets=self.session.show_secrets)
        raise RefError(f"nothing to copy as {kind}", "choose a value first")


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


def badge_of(session: Session) -> tuple[str, str]:
    """The promise in the header, and where forks go."""
    if refused := session.fork_refusal():
        return "read-only · nothing can be forked", gate.line(refused.message, 300)
    if session.scratch_is_temporary:
        return (
            "read-only · forks are temporary",
            f"forks go to {gate.line(session.scratch_path)}, which does not outlive this computer's next start",
        )
    return "read-only · forks go to scratch", f"forks go to {gate.line(session.scratch_path)}"


def _quiet(ask: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """Names to offer; none when they cannot be known (the form still works)."""
    try:
        return ask()
    except StudioError:
        return ()


def _path(text: str) -> str:
    """A name of a file is quoted like all else, unless it is not UTF-8."""
    return _shell(text) if shell.is_text(text) else shell.word(text)


def _shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
