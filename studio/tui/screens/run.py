"""Run: the plan first, then the log as it streams, the questions it stops at, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Checkbox, Input, Static
from textual.worker import get_current_worker

from studio.errors import RunError, StudioError
from studio.history.walk import last_of
from studio.model import Address
from studio.render import runwords
from studio.requests import GraphSpec, RunEvent, RunPlan, RunRequest
from studio.running import options
from studio.tui import draw, runlog
from studio.tui.graphfield import GraphField
from studio.tui.keys import KeyLine
from studio.tui.lines import Line, LineView
from studio.tui.messages import Failed, JumpTo, PathSelected, PlanReady, RunSaid, RunStarted
from studio.tui.moves import Made, Question
from studio.tui.screens.asking import Asking
from studio.tui.tick import Tick

if TYPE_CHECKING:
    from studio.runs import Run
    from studio.session import Session
    from studio.tui.app import StudioApp


class RunScreen(Asking):
    """Plans, runs, asks. Dismisses with the head of what ran, or None when nothing ran. Leaving it does not stop the run."""

    app: StudioApp
    CSS_PATH = "run.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("ctrl+r", "run", "Run", show=False, priority=True),
        Binding("ctrl+x", "cancel", "Cancel the run", show=False, priority=True),
        Binding("x", "cancel", "Cancel the run", show=False),
        Binding("b", "compare", "Compare", show=False),
        Binding("ctrl+g", "choose_graph", "Another graph", show=False, priority=True),
        Binding("ctrl+o", "options", "Run options", show=False, priority=True),
    ]

    def __init__(
        self,
        session: Session,
        address: Address,
        *,
        origin: Address | None = None,
        start: bool = False,
        questions: tuple[Question, ...] = (),
        forked: Made | None = None,
    ) -> None:
        super().__init__()
        self.session = session
        self.address = address
        self.origin = origin
        self.questions = questions
        self.graph: str | None = None
        self.typed: Mapping[str, str] = {}
        """What was typed into the options of the run."""
        self.plan: RunPlan | None = None
        self.running: Run | None = None
        self.head: Address | None = None
        self.status = "planning"
        self._start = start
        self._forked = runlog.fork_lines(forked) if forked else ()
        self._error_told = False

    def compose(self) -> ComposeResult:
        with Vertical(id="run-box", classes="dialog"):
            with Horizontal(id="run-body"):
                yield LineView(id="plan")
                yield LineView(id="log", follow=True)
            with VerticalScroll(id="ask"):
                yield Static("", markup=False, id="asked")
            yield GraphField(id="graph")
            yield Tick("", id="trust", compact=True)
            with Horizontal(id="run-buttons"):
                yield Button("Run", variant="primary", id="run-start", disabled=True)
                yield Button("Cancel run", id="run-cancel", classes="-error")
                yield Button("Compare branches", variant="primary", id="run-compare")
                yield Button("Close", id="run-close")
            yield KeyLine(id="run-keys")

    def on_mount(self) -> None:
        for name in ("#graph", "#trust", "#ask", "#run-cancel", "#run-compare"):
            self.query_one(name).display = False
        self.query_one("#plan").border_title = Content("Plan")
        self.query_one("#log").border_title = Content("Log")
        self.query_one("#log").display = False
        self._show_plan(Line(draw.own("Loading your graph to see what would run …", "$quiet"), 1))
        self._say("planning")
        if self.questions:
            self.show_questions(self.questions)
        self.load_plan(self.request())

    def _say(self, status: str) -> None:
        self.status = status
        words, style = runlog.STATUS.get(status, (status, "$quiet"))
        row = self._row_title()
        self.query_one("#run-box").border_title = Content.assemble(
            ("Run from ", ""), (row, "bold"), ("  ", ""), (words, f"bold {style}")
        )
        going = status == "running"
        ended = status in ("done", "failed", "cancelled")
        self.query_one("#run-cancel").display = going
        self.query_one("#run-start").display = status in ("planning", "planned", "no-plan", "choose")
        self.query_one("#run-compare").display = ended and self.origin is not None and self.head is not None
        self.query_one("#run-close", Button).label = "Leave it running" if going else "Close"
        items = {
            "planned": [("ctrl+r", "run"), ("ctrl+o", "options"), ("ctrl+g", "another graph"), ("esc", "close")],
            "choose": [("↑↓", "choices"), ("enter", "use this graph"), ("esc", "close")],
            "running": [("ctrl+x", "cancel the run"), ("esc", "leave it running")],
            "paused": [("enter", "answer"), ("ctrl+o", "options"), ("ctrl+g", "another graph"), ("esc", "answer later")],
        }.get(status, [("b", "compare branches")] if ended and self.origin else [])
        self.query_one("#run-keys", KeyLine).say(
            "", [*items, *([] if status in ("planned", "choose", "running", "paused") else [("esc", "close")])]
        )

    def _row_title(self) -> str:
        try:
            row = self.session.tree(self.address.thread_id).row(self.address)
            return f"{draw.number(row)} {draw.title(row, 40)}"
        except (StudioError, LookupError):
            return draw.number(None, self.address)

    # ------------------------------------------------------------------ the plan

    def _show_plan(self, *lines: Line) -> None:
        self.query_one("#plan", LineView).show((*self._forked, *lines))

    def request(self) -> RunRequest:
        """What is asked for now."""
        return options.read(self.typed).on(self.start_at(self.address))

    def start_at(self, start: Address) -> RunRequest:
        trust = bool(self.query("#trust")) and self.query_one("#trust", Checkbox).value
        return RunRequest(start, graph=GraphSpec(self.graph or self.app.chosen_graph), trust_types=trust)

    @work(thread=True, exclusive=True, group="plan")
    def load_plan(self, request: RunRequest) -> None:
        worker = get_current_worker()
        message: PlanReady | Failed
        try:
            message = PlanReady(self.session.plan(request, look=True))
        except StudioError as error:
            message = Failed(error, "plan")
        if not worker.is_cancelled:  # the plan of a graph that was named before
            self.post_message(message)

    def on_plan_ready(self, event: PlanReady) -> None:
        self.plan = event.plan
        self.app.graph = self.graph or self.app.graph
        self.query_one("#graph").display = False
        self._show_plan(*runlog.plan_lines(event.plan))
        box = self.query_one("#trust", Checkbox)
        box.display = event.plan.needs_trust
        if event.plan.needs_trust:
            unsafe = [use for use in event.plan.types if not use.safe]
            box.label = Content(
                f"Import {len(unsafe)} stored type{'s' if len(unsafe) != 1 else ''} of yours that LangGraph does not know as safe"
            )
        self._label_start("Run", disabled=not event.plan.starts)
        button = self.query_one("#run-start", Button)
        if not event.plan.starts and not self.questions:
            self._say("planned")
            self.ask_input()
            return
        self._say("paused" if self.questions else "planned")
        if self.questions:
            self.focus_answer()
            return
        if self._start and event.plan.one_click:
            self.action_run()
        else:
            button.focus()

    def on_failed(self, event: Failed) -> None:
        error = event.error
        if event.what != "plan":
            self._say("no-plan")
            self.app.complain(error, event.what)
            return
        self._show_plan(*runlog.refusal_lines(error))
        unnamed = bool(error.candidates) or runlog.names_no_graph(error)
        self._say("choose" if unnamed else "no-plan")
        self._label_start("Use this graph" if unnamed else "Look again")
        if isinstance(error, RunError) or unnamed:
            self.query_one("#graph", GraphField).offer(error.candidates, next(iter(error.candidates), ""))

    def action_choose_graph(self) -> None:
        """Name another graph than the planned one: a name in `langgraph.json`, or where it is."""
        if self.status not in ("planned", "paused", "no-plan", "choose"):
            return
        names: tuple[str, ...] = ()
        told = ""
        try:
            names = self.session.graph_names()
        except StudioError as error:
            told = error.message
        now = self.graph or self.app.chosen_graph or (self.plan.graph.partition(" = ")[0] if self.plan is not None else "")
        self.plan = None
        self.query_one("#ask").display = False
        self.query_one("#trust").display = False
        self._show_plan(*runlog.graph_lines(names, told))
        self._say("choose")
        self._label_start("Use this graph")
        self.query_one("#graph", GraphField).offer(names, now)

    def action_options(self) -> None:
        """Where to stop, limits, configuration; the plan is made again with them."""
        if self.status in ("planned", "paused", "no-plan"):
            from studio.tui.screens.options import OptionsScreen

            self.app.push_screen(OptionsScreen(self.typed, answers=bool(self.questions)), self._options_typed)

    def _options_typed(self, typed: Mapping[str, str] | None) -> None:
        if typed is None:
            return
        self.typed = typed
        if self.head is not None:  # it stopped at a question: the answer goes on with them
            self.focus_answer()
            return
        self._label_start("Run", disabled=True)
        self._show_plan(Line(draw.own("Planning again …", "$quiet"), 1))
        self.query_one("#ask").display = bool(self.questions)
        self.load_plan(self.request())

    def _label_start(self, words: str, *, disabled: bool = False) -> None:
        button = self.query_one("#run-start", Button)
        button.label = words
        button.disabled = disabled
        button.refresh(layout=True)

    @on(Input.Submitted, "#graph")
    def graph_given(self, event: Input.Submitted) -> None:
        event.stop()
        self._plan_again()

    def _plan_again(self) -> None:
        self.graph = self.query_one("#graph", Input).value.strip() or None
        self._label_start("Run", disabled=True)
        self._show_plan(Line(draw.own("Loading your graph …", "$quiet"), 1))
        self.load_plan(self.request())

    # ------------------------------------------------------------------ running

    def action_run(self) -> None:
        if self.status in ("no-plan", "choose") and self.plan is None:
            self._plan_again()
        elif self.status in ("planned", "no-plan"):
            self.go(self.request())

    def go(self, request: RunRequest) -> None:
        if self.status == "running":
            return
        if self.plan is not None and (request.has_resume or request.answers):
            self._show_plan(*runlog.plan_lines(self.plan, answered=True))
        self._say("running")
        self.query_one("#log").display = True
        self.query_one("#ask").display = False
        self.query_one("#trust").display = False
        self.query_one("#run-close").focus()
        self.start_run(request)

    @work(thread=True, group="run")
    def start_run(self, request: RunRequest) -> None:
        try:
            run = self.session.run(request, lambda event: self._heard(event))
        except StudioError as error:
            self.post_message(Failed(error, "The run did not start"))
            return
        self.post_message(RunStarted(run))

    def _heard(self, event: RunEvent) -> None:
        """Called on the run's own thread."""
        self.post_message(RunSaid(event))

    def on_run_started(self, event: RunStarted) -> None:
        self.running = event.run

    def on_run_said(self, event: RunSaid) -> None:
        said = event.event
        lines = runlog.event_lines(said, error_told=self._error_told)
        self._error_told = self._error_told or said.event == "error"
        if lines:
            self.query_one("#log", LineView).extend(lines)
        if said.event == "end":
            self._ended(dict(said.data))

    def _ended(self, end: dict[str, Any]) -> None:
        head = end.get("head")
        if isinstance(head, dict) and isinstance(head.get("checkpoint_id"), str):
            self.head = Address(
                str(head.get("thread_id", self.address.thread_id)), str(head.get("checkpoint_ns", "")), head["checkpoint_id"]
            )
        status = str(end.get("status", "failed"))
        self._say(status)
        if status == "paused" and not end.get("interrupts"):
            self._stopped(end)
        elif status == "paused":
            self.ask_from(end)
        elif self.query_one("#run-compare").display:
            self.query_one("#run-compare").focus()
        else:
            self.query_one("#run-close").focus()

    def _stopped(self, end: dict[str, Any]) -> None:
        """At a node to stop at, or after the supersteps that were asked for: the same dialog goes on from there."""
        request = self.running.request if self.running is not None else None
        words = runwords.stopped(end, bool(request and (request.before or request.after)))
        self.query_one("#log", LineView).extend([Line(draw.own("■ ", "$wait") + draw.text(words, "", 300), 1, hanging=2)])
        if self.head is not None:
            self.address = self.head
            self.load_plan(self.request())

    def action_cancel(self) -> None:
        if self.running is not None and self.status == "running":
            self.stop_run(self.running)

    @work(thread=True, group="cancel")
    def stop_run(self, run: Run) -> None:
        run.cancel()

    @on(Button.Pressed)
    def pressed(self, event: Button.Pressed) -> None:
        event.stop()
        {
            "run-start": self.action_run,
            "run-cancel": self.action_cancel,
            "run-compare": self.action_compare,
            "run-close": self.action_leave,
        }[event.button.id or ""]()

    # ------------------------------------------------------------------ afterwards

    def action_compare(self) -> None:
        if self.head is None or self.origin is None or self.status == "running":
            return
        from studio.tui.screens.compare import CompareScreen

        old = last_of(self.session.tree(self.origin.thread_id), self.origin)
        left = old if old != self.head else self.origin
        self.app.push_screen(CompareScreen(self.session, left, self.head), self._compared)

    def _compared(self, go: Address | None) -> None:
        if go is not None:
            self.dismiss(go)

    def on_jump_to(self, event: JumpTo) -> None:
        event.stop()
        self.dismiss(event.address)

    def on_path_selected(self, event: PathSelected) -> None:
        event.stop()

    def action_leave(self) -> None:
        self.dismiss(self.head or (self.address if self.running is not None else None))
