"""When a plan may be made: looking loads no user code, so a plan that needs the graph waits until a person asks for it.

Which graph and interpreter a person chose is remembered per file while the server runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from studio.errors import StudioError
from studio.requests import ForkPreview, ForkRequest, GraphSpec, RunPlan, RunRequest
from studio.running.graphs import called_like
from studio.running.plans import stored_types
from studio.web.desk import Desk
from studio.web.forms import ForkForm, run_request
from studio.web.views import forks

SEVERAL = "several-graphs"
R = TypeVar("R", RunRequest, ForkRequest)


class Planned(Struct, frozen=True):
    """A plan, or why there is none."""

    plan: RunPlan | None = None
    error: StudioError | None = None
    waits: bool = False
    """It would load the user's graph, and nobody asked for that yet."""


def plan(at: Desk, request: RunRequest, *, asked: bool) -> Planned:
    """The plan of a run. Without `asked`, only when it needs no user code or a person had asked for one before."""
    book, file = at.book, at.place.file
    if asked:
        book.allow_plans(file)
    elif not book.plans_allowed(file) and (request.before or request.after or stored_types(at.session, at.state).unsafe()):
        return Planned(waits=True)
    try:
        return Planned(at.session.plan(with_graph(at, request), look=book.plans_allowed(file)))
    except StudioError as error:
        named = _by_file_name(at, error)
        if named is None:
            return Planned(error=error)
        book.choose_graph(file, named)
        try:
            return Planned(at.session.plan(with_graph(at, request), look=book.plans_allowed(file)))
        except StudioError as again:
            return Planned(error=again)


def _by_file_name(at: Desk, error: StudioError) -> GraphSpec | None:
    """Of several graphs the one that is called like the opened file."""
    name = called_like(at.session.location, error.candidates) if error.slug == SEVERAL else None
    return GraphSpec(graph=name) if name is not None else None


def with_graph(at: Desk, request: R) -> R:
    """The request with the graph and interpreter chosen for this file, where it names none."""
    chosen, given = at.book.graph(at.place.file), request.graph
    spec = GraphSpec(given.graph or chosen.graph, given.python or chosen.python, given.cwd or chosen.cwd)
    return replace(request, graph=spec)


def promise(at: Desk, form: ForkForm, *, asked: bool = False, confirm: bool = False) -> forks.Promise:
    """The preview of a fork and the plan of the run that would follow; what fails of it is part of the answer."""
    if form.request is None:
        wrong = next((edit for edit in form.shown.edits if edit.error and not edit.unset), None)
        message, hint = (f"{wrong.path}: {wrong.error}", "") if wrong else form.error
        return forks.promise(None, Planned(), error=StudioError(message, hint), edited=True)
    preview: ForkPreview | None = None
    if asked and form.request.is_update:
        at.book.allow_plans(at.place.file)
    if form.edited and not (form.request.is_update and not at.book.plans_allowed(at.place.file)):
        try:
            preview = at.session.preview(with_graph(at, form.request))
        except StudioError as error:
            return forks.promise(None, Planned(), error=error, edited=True)
    if preview is not None and preview.refused:
        found = plan(at, run_request(at.address, form), asked=asked) if form.request.is_update else Planned()
        trusts = found if found.plan is not None and found.plan.needs_trust else Planned()  # its box may be what is missing
        return forks.promise(preview, trusts, edited=True, request=form.request)
    if preview is None and form.request.is_update:  # what runs next is the graph's to say
        return forks.promise(None, Planned(waits=True), edited=True, request=form.request)
    following = preview.next if preview is not None else None if form.edited else at.state.next
    planned = plan(at, run_request(at.address, form), asked=asked)
    if form.edited and planned.plan is not None:
        planned = replace(planned, plan=_of_fork(planned.plan, following))
    return forks.promise(preview, planned, following=following, confirm=confirm, edited=form.edited, request=form.request)


def _of_fork(plan: RunPlan, following: Sequence[str | None] | None) -> RunPlan:
    """The plan of a run from an edited fork: it keeps no finished task, and the fork says what is next there."""
    runs = ("not known",) if following is None else tuple(name or "?" for name in following)
    return replace(plan, runs=runs, kept=())
