"""One opened file on the start page: its threads, or why they cannot be read now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from studio.errors import StudioError
from studio.render import gate, labels
from studio.session import Session
from studio.stores.view import View
from studio.web.links import Place
from studio.web.views import tables, threads


@dataclass(frozen=True, slots=True)
class FileView:
    list: threads.ThreadList
    location: str
    beside: tables.Beside
    problem: str = ""
    """Why nothing of it is listed: it is gone, or no database any more. The other files are listed all the same."""


def file_view(session: Session, slug: str, slug_of: Callable[[View], str]) -> FileView:
    """What a file holds now; one that cannot be read is there with the reason."""
    place, name, location = Place(slug), tables.title(session), gate.line(session.location)
    try:
        session.refresh()
        found = threads.thread_list(place, name, session.threads(), "")
        return FileView(found, location, tables.beside(session, slug, slug_of))
    except StudioError as error:
        lost = threads.ThreadList(gate.line(name, 80), (), 0, 0, "", place.url("threads"), "")
        return FileView(lost, location, tables.Beside((), "", ""), gate.line(error.message, 600))


def lost_beside(sessions: Iterable[tuple[str, Session]]) -> tuple[str, ...]:
    """What could not be opened in the folder of these files."""
    found = dict.fromkeys(problem for _, session in sessions for problem in session.lost_beside)
    return tuple(labels.problem_text(problem) for problem in found)
