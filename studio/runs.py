"""Runs of the user's graph: planned, started in a child process, followed, ended, and kept in the notes.

A run's events only nudge: states, questions and the head are read from the file afterwards, so that a run started here and one
that the user's own program does look the same.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from studio.errors import StudioError, UsageError
from studio.model import Address
from studio.render import masking, secrets
from studio.requests import ForkPreview, ForkRequest, ForkResult, GraphSpec, RunEvent, RunPlan, RunRequest
from studio.runner import Child, failure
from studio.running import updates
from studio.running.audited import Audited, begin_audit
from studio.running.encrypted import key_environment
from studio.running.graphs import find_graph
from studio.running.plans import Inspector, Planned, check_trust, make_plan
from studio.running.updates import encoded
from studio.running.ways import run_address
from studio.topology import Codes

if TYPE_CHECKING:
    from studio.notes import Notes
    from studio.session import Session

EVENTS_KEPT = 5_000
_NOTIFY_SECONDS = 0.05
_CLOSE_SECONDS = 3.0


class Run:
    """One run. `status` is running, done, paused, failed or cancelled; all of it may be read from any thread."""

    def __init__(self, request: RunRequest, plan: RunPlan, fork: ForkResult | None) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.request = request
        self.plan = plan
        self.fork = fork
        """The copy that runs, where one was made."""
        self.status = "running"
        self.started_at = time.time()
        self.ended_at: float | None = None
        self.end: dict[str, Any] | None = None
        """The end event's data: status, head, interrupts, error."""
        self.head: Address | None = None
        """The root checkpoint where the run stands: the copy at first, then the newest it made."""
        self.seen = 0
        """Events so far, dropped ones included."""
        self._events: deque[RunEvent] = deque(maxlen=EVENTS_KEPT)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._child: Child | None = None
        self._cancelled = False

    @property
    def events(self) -> list[RunEvent]:
        """The last 5,000 events."""
        with self._lock:
            return list(self._events)

    @property
    def address(self) -> Address:
        return self.request.address

    @property
    def thread_id(self) -> str:
        """The thread that it writes to."""
        return self.fork.address.thread_id if self.fork is not None else self.address.thread_id

    @property
    def seconds(self) -> float:
        return (self.ended_at or time.time()) - self.started_at

    def cancel(self) -> None:
        """End the run with all processes that it started. It is `cancelled` once they are gone."""
        with self._lock:
            self._cancelled = True
            child = self._child
        if child is not None:
            child.cancel()

    def wait(self, timeout: float | None = None) -> dict[str, Any] | None:
        """The end event's data once the run has ended; None when that takes longer than `timeout` seconds."""
        self._ended.wait(timeout)
        return self.end

    def _attach(self, child: Child) -> None:
        with self._lock:
            self._child = child
            cancelled = self._cancelled
        if cancelled:
            child.cancel()

    def _keep(self, event: RunEvent) -> None:
        with self._lock:
            self._events.append(event)
            self.seen += 1

    def _finish(self, end: dict[str, Any]) -> None:
        """The outcome may be read from here on; `wait` returns only once the last event is told."""
        self.status = str(end["status"])
        self.ended_at = time.time()
        self.end = end


class Runs:
    """All runs of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.inspector = Inspector()
        self._runs: list[Run] = []
        self._lock = threading.Lock()
        self.codes = Codes()
        """What the graphs' code said, for the pictures of the threads."""

    def runs(self) -> Sequence[Run]:
        """Runs of this session, oldest first."""
        with self._lock:
            return tuple(self._runs)

    def get(self, run_id: str) -> Run | None:
        return next((run for run in self.runs() if run.id == run_id), None)

    def close(self) -> None:
        """Cancel what still runs."""
        going = [run for run in self.runs() if run.status == "running"]
        for run in going:
            run.cancel()
        for run in going:
            run.wait(_CLOSE_SECONDS)

    def inspect(self, request: RunRequest | ForkRequest) -> dict[str, Any]:
        """What the graph is: nodes, edges, channels, versions. Loads the user's code. Raises UsageError or RunError."""
        return self.inspector.inspect(find_graph(request.graph, self._session.location))

    def plan(self, request: RunRequest, *, look: bool = False) -> RunPlan:
        """What a run would do. Raises UsageError (graph or answer to choose), RunError (cannot be loaded), RefError.

        With `look` the graph is compared with what is stored, which loads the user's code.
        """
        return self._plan(request, look=look).plan

    def _plan(self, request: RunRequest, *, look: bool) -> Planned:
        planned = make_plan(self._session, self.inspector, request, look=look)
        self.codes.note(request.address.thread_id, planned.graph.title, planned.known)
        return planned

    def load_code(self, thread_id: str, spec: GraphSpec) -> None:
        """Ask the graph's code which nodes and edges it has, for the graphs of this thread. Raises UsageError or RunError."""
        graph = find_graph(spec, self._session.location)
        self.codes.note(thread_id, graph.title, self.inspector.inspect(graph))

    def preview_update(self, request: ForkRequest) -> ForkPreview:
        return updates.preview(self._session, self.inspector, request)

    def update_state(self, request: ForkRequest) -> ForkResult:
        return updates.write(self._session, self.inspector, request)

    def start(self, request: RunRequest, on_event: Callable[[RunEvent], None] | None = None) -> Run:
        """Start a run and return at once; `on_event` is called from the run's own thread, the plan first and the end last.

        Raises RunError when types need trust or the graph cannot be loaded, UsageError when nothing is left to run.
        """
        planned = self._plan(request, look=True)
        check_trust(tuple(use.name for use in planned.plan.types if not use.safe), request.trust_types)
        if not planned.plan.starts:
            hint = "--input JSON starts it anew, `fork --goto NODE` chooses a node"
            raise UsageError("nothing is left to run here: the graph had ended", hint, "nothing-to-run")
        self._child_request(planned, request, request.address)  # a value that cannot be sent leaves no copy behind either
        self.inspector.inspect(planned.graph, planned.unsafe)  # a graph that cannot be loaded leaves no copy behind
        audit = begin_audit(self._session, "run", request)
        try:
            fork = self._prepare(planned, request)
        except StudioError:
            if audit is not None:
                audit.done(request.address.thread_id)
            raise
        run = Run(request, planned.plan, fork)
        start = fork.root if fork is not None else run_address(self._session, request.address)
        run.head = start
        environment = key_environment(self._session, request.address)
        document = {**self._child_request(planned, request, start), "encrypted": bool(environment)}
        child = Child(planned.graph, document, timeout=request.timeout, environment=environment)
        run._attach(child)
        with self._lock:
            self._runs.append(run)
        unkept = self._note(lambda notes: notes.begin_run(run.id, run.address, plan_document(run.plan)))
        follow = (run, child, planned, audit, unkept, on_event)
        threading.Thread(target=self._follow, args=follow, name=f"run-{run.id}", daemon=True).start()
        return run

    # ------------------------------------------------------------------ starting

    def _prepare(self, planned: Planned, request: RunRequest) -> ForkResult | None:
        """Make the copy that will run, or put the checkpoint into the scratch file; None when it runs where it stands."""
        way = planned.way
        if way.copy_of is not None:
            copied = ForkRequest(way.copy_of, new_thread=request.new_thread, in_place=request.in_place, keep=way.keep)
            return self._session.fork(copied)
        if way.brings:
            self._session.forker.bring(request.address, writes=False)
            self._session.refresh()
        return None

    def _child_request(self, planned: Planned, request: RunRequest, start: Address) -> dict[str, Any]:
        way = planned.way
        carry = [{**item, "answer": encoded(item["answer"])} if "answer" in item else item for item in way.carry]
        document: dict[str, Any] = {
            "op": "run", "database": way.database, "thread_id": start.thread_id,
            "checkpoint_id": start.checkpoint_id if way.with_id or carry else None,
            "trusted": list(planned.trusted), "configurable": dict(planned.configurable),
            "interrupt_before": list(request.before), "interrupt_after": list(request.after),
            "recursion_limit": request.recursion_limit, "steps": request.steps,
            "carry": carry, "ask_first": way.ask_first, "asked": list(way.asked),
            "answers": {ident: encoded(answer) for ident, answer in way.answers.items()},
        }  # fmt: skip
        if request.context:
            document["context"] = encoded(dict(request.context))
        if request.has_input:
            document["input"] = encoded(request.input)
        elif way.has_resume:
            document["resume"] = encoded(way.resume)
        return document

    # ------------------------------------------------------------------ following

    def _follow(
        self,
        run: Run,
        child: Child,
        planned: Planned,
        audit: Audited | None,
        unkept: str | None,
        on_event: Callable[[RunEvent], None] | None,
    ) -> None:
        """`unkept` is the reason why the notes have no row of this run."""
        last = 0.0

        def tell(name: str, data: Mapping[str, Any]) -> None:
            nonlocal last
            event = RunEvent(name, data, time.time())
            run._keep(event)
            if on_event is not None:
                with contextlib.suppress(Exception):  # a front end that is gone must not stop the run's book-keeping
                    on_event(event)
            if name == "end" or time.monotonic() - last > _NOTIFY_SECONDS:
                last = time.monotonic()
                self._session.notify(f"run:{run.id}")

        def tell_unkept(reason: str | None) -> None:
            if reason is not None:
                tell("log", {"stream": "studio", "text": reason})

        tell("plan", plan_document(planned.plan))
        tell_unkept(unkept)
        lost = {"kind": "died", "type": "", "message": "the run was lost", "traceback": ""}
        end: dict[str, Any] = {"status": "failed", "error": lost}
        try:
            end = child.run(lambda event: tell(*_named(event, self._masked)))
        finally:
            document = self._end(run, planned, end)
            if unkept is None:
                tell_unkept(self._note(lambda notes: notes.end_run(run.id, str(document["status"]), document)))
            if audit is not None:
                tell_unkept(audit.done(run.thread_id, run.fork.created if run.fork is not None else ()))
            if document["error"] is not None:
                tell("error", document["error"])
            run._finish(document)
            tell("end", document)
            run._ended.set()

    def _end(self, run: Run, planned: Planned, end: Mapping[str, Any]) -> dict[str, Any]:
        """The end event's data, read from the file where the file knows."""
        with contextlib.suppress(StudioError):
            self._session.refresh()
            run.head = self._head(run, planned, end)
        error = end.get("error")
        if error is not None:
            hint = failure(error, planned.graph).hint
            shown = {key: self._masked(text) if isinstance(text, str) else text for key, text in error.items()}
            error = {**shown, "hint": self._masked(hint)}
        return {
            "event": "end", "status": end["status"], "run": run.id,
            "head": to_builtins(run.head) if run.head is not None else None,
            "interrupts": self._questions(run.head, end) if end["status"] == "paused" else [],
            "next": list(end.get("next") or ()), "reason": end.get("reason"), "error": error, "stored_in": planned.way.database,
        }  # fmt: skip

    def _masked(self, text: str) -> str:
        """What the user's code printed may hold a key, and the notes keep it."""
        return text if self._session.show_secrets else secrets.mask_text(text)

    def _head(self, run: Run, planned: Planned, end: Mapping[str, Any]) -> Address | None:
        """The newest root checkpoint that grew from where the run started."""
        tree = self._session.tree(run.thread_id)
        told = end.get("head")
        if isinstance(told, str) and (head := Address(run.thread_id, "", told)) in tree:
            return head
        newest = run.head
        stack = [run.head] if run.head is not None and run.head in tree else []
        while stack:
            at = stack.pop()
            newest = at if newest is None or at.checkpoint_id > newest.checkpoint_id else newest
            stack.extend(tree.children(at))
        return newest

    def _questions(self, head: Address | None, end: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Open questions as the file has them; what the child reported where it does not."""
        found = []
        if head is not None:
            with contextlib.suppress(StudioError):
                for task in self._session.state(head).tasks:
                    for question in task.interrupts:
                        if not question.answered:
                            value = masking.document(question.value, show_secrets=self._session.show_secrets)
                            found.append({"id": question.id, "task": task.name, "value": value})
        return found or list(end.get("interrupts") or ())

    # ------------------------------------------------------------------ notes

    def _notes(self) -> Notes:
        from studio.notes import Notes

        return Notes(self._session.scratch.notes_path)

    def _note(self, keep: Callable[[Notes], object]) -> str | None:
        """Keep something in the notes; the reason where that fails, whatever it is: a run ends as it ended, noted or not."""
        try:
            keep(self._notes())
        except Exception as error:
            reason = error.message if isinstance(error, StudioError) else f"{type(error).__name__}: {error}"
            return f"The record of this run is missing or not complete. {reason}"
        return None


def _named(event: Mapping[str, Any], masked: Callable[[str], str]) -> tuple[str, dict[str, Any]]:
    """(event, data) of a child's event. Its `ready` is a line of the log for a reader."""
    data = {key: value for key, value in event.items() if key != "event"}
    if event["event"] != "ready":
        texts = {key: masked(data[key]) for key in ("text", "error") if isinstance(data.get(key), str)}
        return str(event["event"]), {**data, **texts}
    mode = ", asynchronously" if data.get("async") else ""
    text = f"LangGraph {data.get('langgraph')} on Python {data.get('python')}{mode}"
    return "log", {**data, "stream": "studio", "text": text}


def plan_document(plan: RunPlan) -> dict[str, Any]:
    """A plan as JSON."""
    return dict(to_builtins(plan))
