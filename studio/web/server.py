"""Serving: a socket on 127.0.0.1, the link with its token on stdout, a browser if one is wanted."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterable, Sequence
from urllib.parse import quote

import uvicorn

from studio.errors import StudioError, UsageError
from studio.session import Session
from studio.tagged import dumps
from studio.web.app import create_app
from studio.web.book import Book


def serve(
    session: Session | Sequence[Session],
    port: int = 0,
    open_browser: bool = True,
    allow_hosts: Iterable[str] = (),
    at: str | None = None,
    json_location: str | None = None,
) -> None:
    """Serve until interrupted. Prints the link, flushed, once the server answers: in words, or with `json_location` as one JSON
    object `{"url", "location"}`.

    `port` 0 takes any free one. `at` is the path and query to open, as `studio web … --at` gets it. Raises UsageError
    when the port is taken.
    """
    listener = _listen(port)
    port = listener.getsockname()[1]
    app = create_app(session, port=port, allow_hosts=allow_hosts, stopping=lambda: server.should_exit)
    config = uvicorn.Config(
        app,
        log_level="error",  # its warnings are about requests that are answered with a refusal
        ws="none",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=2,
        lifespan="off",
    )

    def started() -> None:
        threading.Thread(target=read_ahead, args=(app.book,), name="read-ahead", daemon=True).start()
        _announce(link(port, app.token, at), open_browser, json_location)

    server = _Server(config, started)
    with contextlib.closing(app.book), contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


def read_ahead(book: Book) -> None:
    """Read the thread that will be shown first while the browser starts: of a very long one that takes as long."""
    first = book.first()
    if first is None or len(book) > 1:
        return
    session = book.session(first)
    with contextlib.suppress(StudioError):  # the page that asks for it says what is wrong
        session.refresh()
        thread = session.default_thread()
        if thread is not None:
            session.tree(thread)


def link(port: int, token: str, at: str | None) -> str:
    """The address to open, token included."""
    path, _, query = ("/" + (at or "").lstrip("/")).partition("?")
    token_pair = f"token={quote(token, safe='')}"
    return f"http://127.0.0.1:{port}{quote(path, safe='/%.-_~')}?" + (f"{query}&{token_pair}" if query else token_pair)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", "choose another one with --port, or --port 0 for any", "port-taken"
        ) from error
    return listener


def _announce(url: str, open_browser: bool, json_location: str | None) -> None:
    if json_location is not None:
        print(dumps({"url": url, "location": json_location}), flush=True)
    else:
        print(f"Checkpoint Studio: {url}", flush=True)
    if json_location is None and sys.stdout.isatty():
        print("Looking changes nothing. It serves until you stop it with Ctrl+C.", flush=True)
    if open_browser:
        threading.Thread(target=_browse, args=(url,), name="open-browser", daemon=True).start()


def _browse(url: str) -> None:
    with contextlib.suppress(webbrowser.Error, OSError):
        webbrowser.open(url)


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, started: object) -> None:
        super().__init__(config)
        self._ready = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and callable(self._ready):
            self._ready()
