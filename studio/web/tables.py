"""The pages of what lies beside the checkpoints in a file."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from studio.errors import RefError
from studio.render import gate
from studio.web.book import Book
from studio.web.links import Place, decode, number_of, opened
from studio.web.render import Pages
from studio.web.replies import go, html, plain, theme
from studio.web.views import tables as views


def router(book: Book, pages: Pages) -> APIRouter:
    """Every route is a GET and changes nothing."""
    routes = APIRouter()

    @routes.get("/tables")
    def first(request: Request) -> Response:
        file = book.first()
        return go(request, Place(file).url("tables") if file is not None else "/")

    @routes.get("/f/{file}/tables")
    def tables(request: Request, file: str) -> Response:
        session = book.session(file)
        session.refresh()
        neighbours = session.neighbours()
        name, asked = _asked(request)
        shown = None
        if name:
            table = neighbours.named(name)
            items = neighbours.items(
                table, namespace=asked.namespace, key=asked.key, start=asked.start, limit=views.PAGE, whole=asked.key is not None
            )
            found = neighbours.namespaces(table)
            shown = views.entries(items, found, file, asked, show_secrets=session.show_secrets)
        return html(
            pages.page(
                "tables.html",
                theme(request),
                file=views.title(session),
                location=gate.line(session.location),
                threads_href=Place(file).url("threads"),
                here=Place(file).url("tables"),
                choices=views.choices(session, neighbours, lambda view: book.slug_of(file, view)),
                tables=views.table_rows(neighbours.tables(), file, name),
                nothing="An agent's session has no tables." if session.is_transcript else "This file has no tables.",
                entries=shown,
            )
        )

    @routes.get("/f/{file}/tables/value")
    def value(request: Request, file: str) -> Response:
        """One value whole, as plain text."""
        session = book.session(file)
        neighbours = session.neighbours()
        name, asked = _asked(request)
        table = neighbours.named(name)
        found = neighbours.items(table, namespace=asked.namespace, key=asked.key, limit=1, whole=True).items
        if asked.key is None or not found:
            raise RefError("no such entry in this table", "open the table again", "no-such-entry")
        return plain(gate.clean(views.value_text(found[0], show_secrets=session.show_secrets)))

    return routes


def _asked(request: Request) -> tuple[str, views.Asked]:
    query = decode(request.scope["query_string"])
    namespace, key = (opened(query[name][1:]) if query.get(name) else None for name in ("in", "key"))
    return opened(query.get("table", "")), views.Asked(namespace, key, number_of(query, "start") or 0)
