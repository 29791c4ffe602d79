"""Other futures: forks of the checkpoint under the cursor, runs from it, answers to its questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import work

from studio.errors import StudioError
from studio.model import Address
from studio.render import gate, labels, secrets
from studio.requests import ForkRequest, ForkResult, GraphSpec
from studio.tui import moves
from studio.tui.messages import Failed, Forked, PathChosen
from studio.tui.place import Place

if TYPE_CHECKING:
    from studio.runs import Run
    from studio.tui.screens.promote import Added


class Futures(Place):
    """The actions of the table that change something: in the scratch file, unless a branch of it is put into the file itself."""

    def on_path_chosen(self, event: PathChosen) -> None:
        event.stop()
        self._fork(event.path)

    def _refused(self) -> bool:
        """Whether nothing of this file can be forked or run; then the reason is told."""
        refused = self.session.fork_refusal()
        if refused is not None:
            self.app.complain(refused, "Not forked")
        return refused is not None

    def do_fork(self) -> None:
        self._fork(None)

    def _fork(self, path: str | None, *, messages: bool = False) -> None:
        from studio.tui.screens.fork import ForkScreen

        is_session = self.session.is_transcript
        if not is_session and self._refused():
            return
        if self.point is None or self.here is None or self.point.address != self.here.checkpoint.address:
            self.app.tell("Still reading this checkpoint …")
            return
        if is_session:
            from studio.tui.screens.fork_session import ForkSessionScreen

            self.app.push_screen(ForkSessionScreen(self.session, self.point, path or self.selected_path), self._session_made)
            return
        self.app.push_screen(ForkScreen(self.session, self.point, edit=path, messages=messages), self._forked)

    def do_messages(self) -> None:
        """Fork by editing the messages; a channel that is selected is taken."""
        self._fork(self.selected_path, messages=True)

    def do_copy_fork(self) -> None:
        row = self.here
        if row is None:
            return
        if any(worker.group == "fork" and not worker.is_finished for worker in self.workers):
            self.app.tell("Still writing the fork before …")
            return
        self.copy_point(row.checkpoint.address)

    @work(thread=True, group="fork")
    def copy_point(self, address: Address) -> None:
        """Fork without a change."""
        try:
            self.post_message(Forked(self.session.fork(ForkRequest(address)), False))
        except StudioError as error:
            self.post_message(Failed(error, "Not forked"))

    def _session_made(self, result: ForkResult | None) -> None:
        """Stand on the fork of an agent's session, with the command to go on in the clipboard."""
        if result is None or result.session is None:
            return
        found = result.session
        self.open_thread(result.address.thread_id, result.address)
        told = [f"Kept in {result.stored_in}."] if found.installed is None else [f"Installed as {found.installed}."]
        if not result.verified:
            told.append(f"It differs from what was asked for: {result.surprises[0]}.")
        if (command := found.commands.get("interactive")) is not None:
            self.app.copy_to_clipboard(command.encode(errors="backslashreplace").decode())
            told.append(f"Copied, to go on: {command}")
        words = " ".join(told)
        self.app.notify(
            gate.clean(words if self.session.show_secrets else secrets.mask_text(words)),
            title="New session",
            timeout=30,
            markup=False,
        )

    def on_forked(self, event: Forked) -> None:
        event.stop()
        if event.result.session is not None:
            self._session_made(event.result)
            return
        self.app.tell("The same point again, in the scratch file; r runs it.", title="Forked")
        self.open_thread(event.result.address.thread_id, event.result.address)

    def _forked(self, made: moves.Made | None) -> None:
        if made is None:
            return
        self.open_thread(made.address.thread_id, made.address)
        if made.then_run:
            self._run(made.address, made.origin, start=True, forked=made)

    def do_promote(self) -> None:
        from studio.tui.screens.promote import PromoteScreen

        if self.here is not None and self.checkpoints is not None:
            screen = PromoteScreen(self.session, self.checkpoints, self.here.checkpoint.address)
            self.app.push_screen(screen, self._promoted)

    def _promoted(self, added: Added | None) -> None:
        if added is None:
            return
        count = labels.plural(len(added.promotion.rows), "checkpoint")
        self.app.tell(
            " ".join((f"{count} added and read back; every other row is as it was.", *added.notices)), "In the file now"
        )
        self.open_thread(added.promotion.address.thread_id, added.promotion.address)

    def do_run(self) -> None:
        row = self.here
        if row is not None:
            origin = moves.origin_of(self.checkpoints, row.checkpoint.address)
            self._run(row.checkpoint.address, origin or row.checkpoint.address)

    def do_answer(self) -> None:
        row = self.here
        if row is None or self.point is None:
            return
        questions = moves.open_questions(self.point.state)
        if not questions:
            self.app.tell("This checkpoint waits for no answer.")
            return
        self._run(
            row.checkpoint.address,
            moves.origin_of(self.checkpoints, row.checkpoint.address) or row.checkpoint.address,
            questions=questions,
        )

    def _run(
        self,
        address: Address,
        origin: Address | None,
        *,
        start: bool = False,
        questions: tuple[moves.Question, ...] = (),
        forked: moves.Made | None = None,
    ) -> None:
        from studio.tui.screens.run import RunScreen

        if self._refused():
            return
        screen = RunScreen(self.session, address, origin=origin, start=start, questions=questions, forked=forked)
        self.app.push_screen(screen, self._ran)

    def _ran(self, head: Address | None) -> None:
        self.say_runs()
        if head is not None:
            self.open_thread(head.thread_id, head)

    def do_code_graph(self) -> None:
        """Ask the graph's code for its edges, beside the seen ones in the Graph tab."""
        if self.point is not None:
            self.app.tell("Loading your graph …")
            self._load_code(self.point.address.thread_id, GraphSpec(self.app.chosen_graph))

    @work(thread=True, exclusive=True, group="code")
    def _load_code(self, thread_id: str, spec: GraphSpec) -> None:
        try:
            self.session.load_code(thread_id, spec)
        except StudioError as error:
            if error.slug == "several-graphs":
                self.app.call_from_thread(self._choose_code, thread_id, error.candidates)
            else:
                self.app.call_from_thread(self.app.complain, error, "Not joined")
            return
        self.app.call_from_thread(self._code_loaded)

    def _choose_code(self, thread_id: str, names: tuple[str, ...]) -> None:
        from studio.tui.screens.rewrite import ChoiceScreen

        def chosen(name: str | None) -> None:
            if name is not None:
                self.app.graph = name
                self.do_code_graph()

        self.app.push_screen(ChoiceScreen("Which graph?", [(name, name) for name in names]), chosen)

    def _code_loaded(self) -> None:
        self.draw_anew("graph")
        self.show_tab("graph")
        self.app.tell("The graph's code was loaded: its edges stand beside the seen ones.")

    def do_cancel(self) -> None:
        for run in self.session.runs():
            if run.status == "running":
                self.cancel_run(run)

    @work(thread=True, group="cancel")
    def cancel_run(self, run: Run) -> None:
        run.cancel()
