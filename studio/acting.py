"""The half of a session that acts: forks and runs, each made when it is first asked for. Looking imports none of it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from studio.errors import PatchError
from studio.model import Address, RawCheckpoint, SeenGraph, State

if TYPE_CHECKING:
    from studio.explain import Explainer
    from studio.forks.forker import Forker
    from studio.forks.promote import Branch
    from studio.forks.scratch import Scratch
    from studio.forks.sessions.forking import SessionForker
    from studio.forks.sessions.outlook import Outlook
    from studio.forks.sessions.versions import Moment
    from studio.overlay import Overlay
    from studio.requests import ForkPreview, ForkRequest, ForkResult, GraphSpec, Promotion, RunEvent, RunPlan, RunRequest
    from studio.running.candidates import Candidates
    from studio.runs import Run, Runs
    from studio.session import Session
    from studio.stores.base import Store

    _R = TypeVar("_R", ForkRequest, RunRequest)


class Acting(ABC):
    """Forks and runs of one opened location; `Session` is the rest of it."""

    store: Store
    overlay: Overlay
    explainer: Explainer

    def __init__(self, graph: GraphSpec | None) -> None:
        self._lock = threading.RLock()
        self._graph = graph
        self._forker: Forker | None = None
        self._runs: Runs | None = None
        self._sessions: SessionForker | None = None

    @property
    @abstractmethod
    def scratch(self) -> Scratch: ...

    @abstractmethod
    def state(self, address: Address) -> State: ...

    @abstractmethod
    def raw(self, address: Address) -> RawCheckpoint: ...

    @abstractmethod
    def refresh(self) -> bool: ...

    @abstractmethod
    def _whole(self) -> Session: ...

    @property
    def graph(self) -> GraphSpec:
        """What `--graph` and `--python` said when the location was opened; a request's own spec wins."""
        if self._graph is None:
            from studio.requests import GraphSpec

            self._graph = GraphSpec()
        return self._graph

    @graph.setter
    def graph(self, spec: GraphSpec) -> None:
        self._graph = spec

    # ------------------------------------------------------------------ forking

    @property
    def forker(self) -> Forker:
        with self._lock:
            if self._forker is None:
                from studio.forks.forker import Forker

                self._forker = Forker(self.overlay, self.explainer, self.scratch)
            return self._forker

    @property
    def sessions(self) -> SessionForker | None:
        """Makes forks of agents' sessions, where the location holds transcripts."""
        if self.store.kind != "transcript":
            return None
        with self._lock:
            if self._sessions is None:
                from studio.forks.sessions.forking import SessionForker
                from studio.stores.transcripts.store import TranscriptStore

                assert isinstance(self.store, TranscriptStore)
                self._sessions = SessionForker(self.store)
            return self._sessions

    def files_at(self, address: Address) -> Moment:
        """The files of an agent's session as they were at a turn. PatchError: this is no session. RefError: not there."""
        return self._its_sessions().files_at(address)

    def outlook(self, address: Address) -> Outlook:
        """What was done outside of an agent's session after a turn, which a fork does not undo. As `files_at`."""
        return self._its_sessions().outlook(address)

    def _its_sessions(self) -> SessionForker:
        if self.sessions is None:
            raise PatchError("This file holds checkpoints: they keep no files.", "Name an agent's session.", "no-session")
        return self.sessions

    def lay_files(self, moment: Moment, folder: str) -> dict[str, str]:
        """Write the known files of a moment into a new folder; path -> where it was written. UsageError: it is not new."""
        from studio.forks.sessions.laying import lay

        return lay(moment, folder)

    def preview(self, request: ForkRequest) -> ForkPreview:
        """What a fork would do, before anything is written."""
        if self.sessions is not None:
            return self.sessions.preview(request)
        if refused := self._refusal(request):
            from studio.requests import ForkPreview

            return ForkPreview((), None, (), f"{refused.message} {refused.hint}")
        if request.is_update:
            return self.run_room.preview_update(self._with_graph(request))
        found = self.forker.preview(request)
        if request.patch and found.expect is not None:
            from studio import toolcalls

            state = self.state(request.address)
            told = toolcalls.new_problems(state, replace(state, values={**state.values, **found.expect}))
            found = replace(found, warnings=(*found.warnings, *told))
        return found

    def fork(self, request: ForkRequest) -> ForkResult:
        """Write the fork, read it back, and say what came out. Raises PatchError or RunError with the reason of a refusal."""
        if self.sessions is None and (refused := self._refusal(request)):
            raise refused
        if (sessions := self.sessions) is not None:
            result = sessions.fork(request, self._whole().number(request.address))
        elif request.is_update:
            result = self.run_room.update_state(self._with_graph(request))
        else:
            result = self.forker.fork(request)
        self.refresh()
        return result

    def fork_refusal(self, address: Address | None = None) -> PatchError | None:
        """Why nothing can be forked or run here at all: nothing of this file, or not the checkpoint. RefError: not there."""
        from studio.forks import refusal

        found = refusal.of_store(self.store)
        if found is None and address is not None and self.state(address).format is None:
            found = refusal.of_row(self.raw(address))
        return found

    def promotion(self, address: Address) -> Promotion:
        """Exactly what `promote` would add to the opened file; writes nothing. PatchError: why it would refuse."""
        from studio.forks import appending

        self.refresh()
        branch = self._branch(address)
        appending.foresee(self.overlay.base)
        return branch.promotion

    def promote(self, shown: Promotion) -> list[str]:
        """Append to the opened file the rows that were shown; returns what could not be done afterwards.

        PatchError when the file refuses, or something of what was shown has changed; then nothing is stored.
        """
        from studio.forks import appending
        from studio.notes import Notes  # brings sqlite-utils, which only writing to a user's own file needs here

        branch = self._branch(shown.address)
        if branch.promotion.seal != shown.seal:
            raise appending.moved(self.overlay.base.location)
        notices = appending.append(self.overlay.base, branch, self.scratch, Notes(self.scratch.notes_path))
        self.refresh()
        return notices

    def _branch(self, address: Address) -> Branch:
        from studio import interrupted
        from studio.forks import in_place, promote
        from studio.forks.appending import told_for_promoting

        ended = {run.id for run in self.runs() if run.status != "running"}
        elsewhere = set(interrupted.going(self.scratch.notes_path, address.thread_id)) - ended
        if elsewhere or any(run.status == "running" and run.thread_id == address.thread_id for run in self.runs()):
            raise PatchError(
                "A run of this thread is going, and its branch grows.", "Wait until it ends, or cancel it.", "run-going"
            )
        base, scratch = self.overlay.base, self.overlay.scratch

        def check() -> None:
            if refused := self.fork_refusal() or in_place.refusal(base, by_langgraph=False):
                raise refused

        kept = self.scratch
        with told_for_promoting():
            check()
            try:
                return self.overlay.together(lambda: promote.gather(self.overlay, base, scratch, address, kept.origins()))
            finally:
                check()  # reading shows where a file is damaged, and what is lost there must not be called gone

    def as_node_candidates(self, address: Address) -> tuple[str, ...]:
        return self.forker.as_node_candidates(address)

    def writers(self, address: Address, *, look: bool = False, graph: GraphSpec | None = None) -> Candidates:
        """The nodes to write as at a checkpoint, best first, each with what would run next.

        With `look` the graph's own edges count, which loads the user's code; else those that this thread showed.
        """
        from studio.requests import GraphSpec
        from studio.running.candidates import candidates

        given = graph or GraphSpec()
        spec = GraphSpec(given.graph or self.graph.graph, given.python or self.graph.python, given.cwd or self.graph.cwd)
        return candidates(self._whole(), self.run_room.inspector if look else None, address, spec)

    def goto_candidates(self, address: Address) -> tuple[str, ...]:
        return self.forker.goto_candidates(address)

    # ------------------------------------------------------------------ running

    @property
    def run_room(self) -> Runs:
        with self._lock:
            if self._runs is None:
                from studio.runs import Runs

                self._runs = Runs(self._whole())
            return self._runs

    def graph_names(self) -> tuple[str, ...]:
        """The names in `langgraph.json` that a run may choose from. Raises UsageError when that file is broken."""
        from studio.running.graphs import graph_names

        return graph_names(self.graph.cwd, self._whole().location)

    def plan(self, request: RunRequest, *, look: bool = False) -> RunPlan:
        """What a run would do; with `look`, compared with the graph's own code, which is loaded for that.

        Raises RunError or UsageError: no graph, several graphs, a graph that cannot be loaded.
        """
        if refused := self._refusal(request):
            raise refused
        return self.run_room.plan(self._with_graph(request), look=look)

    def load_code(self, thread_id: str, spec: GraphSpec) -> None:
        """Load the graph's code to see its nodes and edges, for `graphs`. Raises UsageError or RunError as `plan` does."""
        self.run_room.load_code(thread_id, self._with_spec(spec))

    def with_code(self, thread_id: str, seen: tuple[SeenGraph, ...]) -> tuple[SeenGraph, ...]:
        """The graphs of a thread joined with what the code said, where it was asked."""
        return self._runs.codes.join(thread_id, seen) if self._runs is not None and seen else seen

    def run(self, request: RunRequest, on_event: Callable[[RunEvent], None] | None = None) -> Run:
        """Start a run in the user's interpreter and return at once."""
        if refused := self._refusal(request):
            raise refused
        return self.run_room.start(self._with_graph(request), on_event)

    def runs(self) -> Sequence[Run]:
        return self.run_room.runs() if self._runs is not None else ()

    def _refusal(self, request: ForkRequest | RunRequest) -> PatchError | None:
        """Why nothing can be forked or run from this kind of store, or not into the opened file itself as it is shown here."""
        refused = self.fork_refusal()
        if refused is not None:
            return refused
        if not request.in_place or self.scratch.is_store:
            return None
        from studio.forks import in_place

        return in_place.refusal(self.store, by_langgraph=getattr(request, "is_update", True))

    def _with_graph(self, request: _R) -> _R:
        """The request with what `--graph` and `--python` said where it names no graph itself."""
        return replace(request, graph=self._with_spec(request.graph))

    def _with_spec(self, spec: GraphSpec) -> GraphSpec:
        return replace(
            spec, graph=spec.graph or self.graph.graph, python=spec.python or self.graph.python, cwd=spec.cwd or self.graph.cwd
        )
