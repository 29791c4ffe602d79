"""How an answer leaves: a whole page or the asked block, and errors in the form that the asker can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from studio.errors import PatchError, RefError, StudioError, UsageError
from studio.render import gate
from studio.web.book import Book
from studio.web.links import Place, decode
from studio.web.render import Pages

THEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Notice:
    """An error as a person reads it."""

    message: str
    hint: str = ""
    candidates: tuple[str, ...] = ()


def html(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """HTML as bytes; a character that UTF-8 cannot hold never passes the gate, but must not break a page either."""
    return Response(
        text.encode("utf-8", "backslashreplace"), status, media_type="text/html; charset=utf-8", headers=dict(headers or {})
    )


def plain(text: str) -> Response:
    return Response(text.encode("utf-8", "backslashreplace"), media_type="text/plain; charset=utf-8")


def partial(request: Request) -> bool:
    """Whether htmx asks for a piece of a page (not for a whole one to go back in history)."""
    headers = request.headers
    return (
        headers.get("hx-request") == "true"
        and headers.get("hx-request-type") != "full"
        and "hx-history-restore-request" not in headers
    )


def target(request: Request) -> str:
    """The id of the element that the answer goes into."""
    return request.headers.get("hx-target", "").partition("#")[2]


def theme(request: Request) -> str:
    found = request.cookies.get("studio-theme", "")
    return found if found in THEMES else ""


def go(request: Request, url: str) -> Response:
    """Go on at another address; htmx follows it inside the page's fetch."""
    return RedirectResponse(url, 303)


def notice_of(error: StudioError) -> Notice:
    candidates = tuple(gate.line(name, 120) for name in error.candidates[:12])
    return Notice(_sentence(gate.told(error.message)), _sentence(gate.told(error.hint)), candidates)


def _sentence(text: str) -> str:
    """The words of an error as the heading of a page. What is a name and no word (`studio tree`, a path, camelCase) stays."""
    word = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if word.isalpha() and word.islower() and word != "studio" else text


def status_of(error: StudioError) -> int:
    return (
        404
        if isinstance(error, RefError)
        else 400
        if isinstance(error, UsageError)
        else 422
        if isinstance(error, PatchError)
        else 409
    )


def failure(
    pages: Pages, request: Request, notice: Notice, status: int, ways: Sequence[tuple[str, str]] = (("/", "Start page"),)
) -> Response:
    """An error as a fragment for the notice area, or as a page with (address, words) of the ways on, the best one first."""
    if partial(request):
        headers = {"HX-Retarget": "#notices", "HX-Reswap": "beforeend", "HX-Push-Url": "false"}
        return html(pages.page("_notice.html", error=notice), status, headers)
    return html(pages.page("error.html", theme(request), error=notice, ways=ways), status)


def ways_on(book: Book, request: Request) -> list[tuple[str, str]]:
    """Where to go from a page that is not there: to its thread, to the threads of its file, to the start."""
    found = [("/", "Start page")]
    file = request.path_params.get("file")
    if not isinstance(file, str) or file not in dict(book):
        return found
    found.insert(0, (Place(file).url("threads"), "All threads of this file"))
    thread = decode(request.scope["query_string"]).get("thread")
    with suppress(StudioError):
        if thread is not None and thread in book.session(file).thread_ids():
            found.insert(0, (Place(file, thread).url(), f"Thread {gate.line(thread, 80)}"))
    return found
