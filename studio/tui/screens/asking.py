"""The questions of a run: those it stopped at, or the input it could go on with. One field each; enter sends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from textual import on
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from studio import tagged
from studio.errors import PatchError
from studio.model import Address
from studio.render import gate, preview, questions
from studio.requests import RunRequest
from studio.running import options
from studio.tui import draw, moves
from studio.tui.moves import Question

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tui.app import StudioApp


class Asking(ModalScreen[Address | None]):
    """The lower part of the run dialog; the screen that has it knows how to run."""

    app: StudioApp
    session: Session
    address: Address
    head: Address | None
    questions: tuple[Question, ...]
    typed: Mapping[str, str]

    @abstractmethod
    def request(self) -> RunRequest:
        """What is asked for now."""

    @abstractmethod
    def start_at(self, start: Address) -> RunRequest:
        """A run from there with the chosen graph, and without the options."""

    @abstractmethod
    def go(self, request: RunRequest) -> None:
        """Run it."""

    def ask_from(self, end: dict[str, Any]) -> None:
        """Show the questions that the run stopped at."""
        raw = end.get("interrupts")
        found = tuple(
            Question(one.get("id") if isinstance(one.get("id"), str) else None, questions.handed_over(one.get("value")))
            for one in (raw if isinstance(raw, list) else ())
            if isinstance(one, dict)
        )
        self.show_questions(found)
        self.focus_answer()

    def show_questions(self, found: tuple[Question, ...]) -> None:
        """A form: one field per question."""
        self.questions = found
        area = self.query_one("#ask", VerticalScroll)
        area.display = bool(found)
        area.query(".answer").remove()
        self.query_one("#asked", Static).update(
            draw.own(
                f"It stopped for {'an answer' if len(found) == 1 else f'{len(found)} answers'}. JSON or plain text; enter sends.",
                "$wait",
            )
        )
        for index, one in enumerate(found):
            words = Content.styled("■ ", "$wait") + draw.text(questions.asked(one.value, 600).words, "bold", 600)
            area.mount(Static(words, classes="answer question", markup=False))
            if isinstance(one.value, dict) and len(one.value) > 1:
                told = questions.asked(one.value, 600).words
                rest = {
                    key: value
                    for key, value in one.value.items()
                    if not (isinstance(value, str) and gate.line(value, 600) == told)
                }
                details = preview.summary(rest, 300, show_secrets=self.session.show_secrets)
                area.mount(Static(draw.own("  " + details, "$faint"), classes="answer details", markup=False))
            area.mount(Input(placeholder=moves.choices(one.value), classes="answer flat", id=f"answer-{index}"))
        if found:
            hint = "in this thread; a name here answers in a new one"
            area.mount(Input(placeholder=hint, classes="answer flat new-thread"))

    def ask_input(self) -> None:
        """Nothing is left to run: offer to go on with a new input."""
        area = self.query_one("#ask", VerticalScroll)
        area.display = True
        self.query_one("#asked", Static).update(
            draw.own("Nothing is left to run here. Go on with an input, as JSON; enter runs it.", "$wait")
        )
        area.mount(Input(placeholder='{"messages": [{"role": "user", "content": "…"}]}', classes="answer flat", id="input"))
        self.focus_answer()

    def focus_answer(self) -> None:
        def focus() -> None:
            boxes = self.query("#ask Input")
            if boxes:
                boxes.first(Input).focus()

        self.call_after_refresh(focus)

    @on(Input.Submitted, ".answer")
    def answered(self, event: Input.Submitted) -> None:
        event.stop()
        if event.input.id == "input":
            self._go_on_with(event.value)
            return
        boxes = [box for box in self.query("#ask Input").results(Input) if not box.has_class("new-thread")]
        empty = next((box for box in boxes if not box.value.strip()), None)
        if empty is not None:
            empty.focus()
            return
        answers = [moves.parse_answer(box.value) for box in boxes]
        named = [box.value.strip() for box in self.query("#ask Input.new-thread").results(Input)]
        thread = next((name for name in reversed(named) if name), None)
        base = replace(self.start_at(self.head or self.address), new_thread=thread)
        if len(answers) == 1:
            request = replace(base, resume=answers[0], has_resume=True)
        else:
            by_id = {one.id or "": answer for one, answer in zip(self.questions, answers, strict=True)}
            request = replace(base, answers=by_id)
        self.go(options.read(self.typed).on(request))

    def _go_on_with(self, text: str) -> None:
        try:
            given = tagged.loads(text)
        except PatchError as error:
            self.app.complain(error, "The input must be JSON")
            return
        self.go(replace(self.request(), input=given, has_input=True))
