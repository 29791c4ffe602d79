"""What changes something: preview, fork, run, answer, cancel, colours. Each is a POST that also works without scripts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from msgspec.structs import replace
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from studio.errors import StudioError, UsageError
from studio.model import Address
from studio.render import gate
from studio.requests import ForkRequest, Patch, RunRequest
from studio.runs import Run
from studio.web.book import Book
from studio.web.desk import Desk
from studio.web.forkdesk import session_text
from studio.web.forms import ForkForm, answer_request, fork_form, run_request
from studio.web.links import decode, opened, place_of
from studio.web.planning import Planned, plan, promise, with_graph
from studio.web.render import Pages
from studio.web.replies import THEMES, go, html, partial, theme
from studio.web.security import MAX_BODY
from studio.web.views import forks, runs
from studio.web.views.chrome import footer_keys

MOST_FIELDS = 500
"""Fields of one form; the edits that it may hold need fewer."""


async def sent_form(request: Request) -> FormData:
    """The fields of a form of any size that the gate lets in. Raises UsageError when it cannot be read."""
    try:
        return await request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=MAX_BODY)
    except (HTTPException, ValueError) as error:  # a ValueError: the form names an encoding that does not exist
        said = error.detail if isinstance(error, HTTPException) else str(error)
        raise UsageError(f"this form cannot be read: {said}", "reload the page and try again; nothing was changed") from error


Form = Annotated[FormData, Depends(sent_form)]


class _Page:
    def __init__(self, **parts: object) -> None:
        self.timeline: object = None
        self.footer = footer_keys()
        self.__dict__.update(parts)


def router(book: Book, pages: Pages) -> APIRouter:
    routes = APIRouter()

    def desk(request: Request, file: str) -> Desk:
        return Desk(book, place_of(file, decode(request.scope["query_string"])))

    def is_large(request: Request) -> bool:
        return decode(request.scope["query_string"]).get("large") == "1"

    def form_again(request: Request, at: Desk, form: ForkForm, shown: forks.Promise | None, status: int = 200) -> Response:
        """The form with what was typed, its errors and the promise."""
        large = is_large(request)
        box = at.fork_box(form.shown, promise=shown, large=large)
        if partial(request):
            headers = {"HX-Retarget": "#fork-form", "HX-Reswap": "outerHTML", "HX-Push-Url": "false"}
            return html(pages.macro("_fork.html", "fork_form", box, at._part), status, headers)
        stage = at.stage(editor=box) if large else at.stage(fork=box)
        return html(pages.page("workspace.html", theme(request), page=at.workspace(theme(request), stage=stage)), status)

    def arrive(request: Request, file: str, address: Address, *, run: Run | None = None, announce: str = "") -> Response:
        """Go to a checkpoint that was just made; htmx gets the new stage and timeline at once."""
        at = Desk(book, place_of(file, {}).at_address(address))
        if not partial(request):
            return go(request, at.place.url())
        if address.thread_id != desk(request, file).address.thread_id:  # the whole page is about another thread then
            return html("", headers={"HX-Redirect": at.place.url()})
        stage = at.stage(run=run, follow=run is not None, announce=announce)
        text = pages.block("workspace.html", "stage", page=_Page(stage=stage))
        lanes = pages.block("workspace.html", "timeline", page=_Page(timeline=at.timeline()))
        headers = {"HX-Push-Url": at.place.url(), "HX-Retarget": "#stage", "HX-Reswap": "innerHTML"}
        return html(f'{text}<hx-partial hx-target="#timeline" hx-swap="innerMorph">{lanes}</hx-partial>', headers=headers)

    def launch(request: Request, file: str, at: Desk, wanted: RunRequest) -> Response:
        session = at.session
        run = session.run(with_graph(at, wanted))
        start = run.fork.root if run.fork is not None else wanted.address
        book.note_run(run, start)
        session.refresh()
        return arrive(request, file, start, run=run, announce="The run has started.")

    @routes.post("/f/{file}/preview")
    def preview(request: Request, file: str, form: Form) -> Response:
        at = desk(request, file)
        return html(pages.macro("_fork.html", "promise", promise(at, fork_form(at, form))))

    @routes.post("/f/{file}/fork")
    def fork(request: Request, file: str, form: Form) -> Response:
        at = desk(request, file)
        sent = fork_form(at, form)
        if sent.act in ("add", "drop", "flip", "chat", "more", "less"):
            return form_again(request, at, sent, None)
        if sent.request is None:
            return form_again(request, at, sent, promise(at, sent), 422)
        if sent.act == "run":
            found = plan(at, run_request(at.address, sent), asked=True).plan
            if found is None or not sent.planned or not forks.agreed(found, sent.agree, sent.trust):
                return form_again(request, at, sent, promise(at, sent, asked=True, confirm=True))
        elif sent.act != "fork":
            return form_again(request, at, sent, promise(at, sent, asked=sent.act == "plan"))
        try:
            if sent.act == "run" and not sent.edited:
                return launch(request, file, at, run_request(at.address, sent))
            result = at.session.fork(with_graph(at, sent.request))
        except StudioError as error:
            return form_again(request, at, sent, forks.promise(None, Planned(), error=error, edited=True), 422)
        said = (
            " ".join(("Forked.", *result.surprises))
            if result.verified
            else f"Forked, but what is stored differs from what you asked for: {'; '.join(result.surprises)}"
        )
        if sent.act == "run":
            return launch(request, file, Desk(book, at.place.at_address(result.address)), run_request(result.address, sent))
        return arrive(request, file, result.address, announce=gate.line(said))

    @routes.post("/f/{file}/fork-session")
    def fork_session(request: Request, file: str, form: Form) -> Response:
        at = desk(request, file)
        path, text = opened(str(form.get("path") or "")), str(form.get("said") or "").replace("\r\n", "\n")
        stored = session_text(at.state, path)[1].replace("\r\n", "\n") if path else ""
        patch = Patch({path: text}) if path and text != stored else Patch()
        result = at.session.fork(ForkRequest(at.address, patch, install=form.get("act") == "install"))
        return go(request, at.place.at_address(result.address).url())

    @routes.post("/f/{file}/answer")
    def answer(request: Request, file: str, form: Form) -> Response:
        at = desk(request, file)
        act = form.get("act")
        wanted = answer_request(at, form, strict=act == "answer")
        found = plan(at, wanted, asked=act != "peek")
        known = found.plan
        if known is not None and act == "answer" and form.get("planned"):
            if forks.agreed(known, str(form.get("agree") or ""), str(form.get("trust") or "")):
                return launch(request, file, at, wanted)
        shown = forks.promise(None, found, following=at.state.next, confirm=act == "answer")
        if partial(request):
            headers = {} if act == "peek" else {"HX-Retarget": ".answer-form .promise", "HX-Reswap": "innerMorph"}
            return html(pages.macro("_fork.html", "promise", shown), headers=headers)
        return html(
            pages.page("workspace.html", theme(request), page=at.workspace(theme(request), stage=at.stage(answer_promise=shown)))
        )

    @routes.post("/f/{file}/graph/code")
    def code(request: Request, file: str, form: Form) -> Response:
        """Load the graph's code, and draw what it says beside what was seen."""
        at = desk(request, file)
        book.choose_graph(file, replace(book.graph(file), graph=opened(str(form.get("graph") or "")) or book.graph(file).graph))
        book.allow_plans(file)
        at.session.load_code(at.address.thread_id, book.graph(file))
        at = desk(request, file)
        return html(pages.macro("_graph.html", "body", at.graph(wait=True))) if partial(request) else go(request, at.place.url())

    @routes.post("/f/{file}/run/{run_id}/cancel")
    def cancel(request: Request, file: str, run_id: str) -> Response:
        run = book.run(file, run_id)
        run.cancel()
        at = desk(request, file)
        if partial(request):
            return html(pages.macro("_fork.html", "run_panel", runs.run_view(run, at.session, at.tree, at.place)))
        return go(request, at.place.url())

    @routes.post("/theme")
    def colours(request: Request, form: Form) -> Response:
        chosen, here = form.get("theme"), form.get("here")
        answer = go(request, here if isinstance(here, str) and here.startswith("/f/") else "/")
        if chosen in THEMES:
            answer.set_cookie("studio-theme", str(chosen), max_age=365 * 86400, samesite="strict", httponly=True)
        return answer

    return routes
