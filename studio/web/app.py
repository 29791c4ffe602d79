"""The application: routes, the one place where an error becomes an answer, and the gate around it all."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from starlette.exceptions import HTTPException

from studio.errors import StudioError
from studio.session import Session
from studio.web import acts, pages, promoting, tables
from studio.web.book import Book
from studio.web.render import Pages
from studio.web.replies import Notice, failure, html, notice_of, partial, status_of, ways_on
from studio.web.security import Guard, Scope, TooLarge

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain", ".json": "application/json"}
REFUSALS: dict[str, tuple[str, tuple[str, ...]]] = {
    "token": (
        "This page needs the link from your terminal",
        (
            "Checkpoint Studio serves your threads to you alone: the link that it printed when it started holds a token, "
            "and this browser has none yet.",
            "Open that link again. If the terminal is gone, start the studio once more: studio web FILE.",
        ),
    ),
    "host": (
        "This name is not served here",
        (
            "The studio answers to 127.0.0.1 and localhost only, so that no other page can reach it under a name of its own.",
            "If you reach it through another name, start it with --allow-host NAME.",
        ),
    ),
    "cross-site": ("This request did not come from the studio's own page", ("It was refused before anything was done.",)),
    "websocket": ("No web sockets are served here", ("The pages of the studio use none; open the page itself.",)),
    "too-long": ("This address is too long", ("Open the thread from the start page instead.",)),
    "too-large": (
        "This is more than the studio accepts at once",
        ("A form may hold 32 MB. Use `studio fork --patch FILE` for larger values.",),
    ),
}


class Studio(FastAPI):
    """The application with its start-up token."""

    token: str
    book: Book
    stopping: bool


def create_app(
    sessions: Session | Sequence[Session],
    *,
    token: str | None = None,
    port: int = 0,
    allow_hosts: Iterable[str] = (),
    stopping: Callable[[], bool] | None = None,
) -> Studio:
    """Build the application over opened sessions. `token` None makes one, "" switches it off (for tests of other things)."""
    opened = [sessions] if isinstance(sessions, Session) else list(sessions)
    templates = Pages(show_secrets=any(session.show_secrets for session in opened))
    app = Studio(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.token = secrets.token_urlsafe(24) if token is None else token
    app.book = Book(opened)
    app.stopping = False
    app.include_router(pages.router(app.book, templates, stopping or (lambda: app.stopping)))
    app.include_router(acts.router(app.book, templates))
    app.include_router(promoting.router(app.book, templates))
    app.include_router(tables.router(app.book, templates))

    @app.get("/static/{path:path}")
    def static(request: Request, path: str) -> Response:
        """A file of the static folder; nothing outside of it, whatever the path says."""
        try:
            found = (templates.static / path).resolve()
            inside = found.is_relative_to(templates.static) and found.relative_to(templates.static).as_posix() == path
            there = inside and found.is_file() and found.suffix in TYPES
        except (OSError, ValueError):  # a name that no file system takes
            there = False
        if not there:
            raise HTTPException(404, "no such file")
        kept = "public, max-age=31536000, immutable" if request.url.query else "no-cache"
        return FileResponse(found, media_type=TYPES[found.suffix], headers={"Cache-Control": kept})

    @app.exception_handler(StudioError)
    def known(request: Request, error: StudioError) -> Response:
        return failure(templates, request, notice_of(error), status_of(error), ways_on(app.book, request))

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> Response:
        words = {404: "There is nothing at this address", 405: "This address answers to another kind of request"}
        return failure(
            templates, request, Notice(words.get(error.status_code, "This request cannot be answered")), error.status_code
        )

    @app.exception_handler(TooLarge)
    def large(request: Request, error: TooLarge) -> Response:
        return refusal(request.scope, "too-large", 413)

    @app.exception_handler(500)
    def unknown(request: Request, error: Exception) -> Response:
        notice = Notice(
            "The studio made a mistake here",
            f"{type(error).__name__}: your file was not changed. Start with --debug to see more.",
        )
        return failure(templates, request, notice, 500)

    def refusal(scope: Scope, slug: str, status: int) -> Response:
        title, lines = REFUSALS[slug]
        if partial(Request(scope)):
            return failure(templates, Request(scope), Notice(title, " ".join(lines)), status)
        return html(templates.page("refusal.html", title=title, lines=lines), status)

    app.add_middleware(Guard, token=app.token, cookie=f"studio-{port}", refusal=refusal, allow_hosts=tuple(allow_hosts))
    return app
