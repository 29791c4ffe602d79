"""The page that puts a branch of the scratch file into the file itself: the rows first, then a button."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from studio.errors import PatchError, StudioError
from studio.web.acts import Form
from studio.web.book import Book
from studio.web.desk import Desk
from studio.web.links import Place, decode, place_of
from studio.web.render import Pages
from studio.web.replies import go, html, theme
from studio.web.views import promotion as views


def router(book: Book, pages: Pages) -> APIRouter:
    """The GET writes nothing; the POST adds the rows that its form was made for, and no others."""
    routes = APIRouter()

    def shown(request: Request, at: Desk, failed: StudioError | None = None) -> Response:
        refused, found = failed, None
        try:
            found = at.session.promotion(at.address)
        except PatchError as error:
            refused = refused or error
        page = views.page(at.session, at.tree, at.place, found, refused)
        return html(pages.page("promote.html", theme(request), page=page), 422 if failed is not None else 200)

    @routes.get("/f/{file}/promote")
    def look(request: Request, file: str) -> Response:
        return shown(request, Desk(book, place_of(file, decode(request.scope["query_string"]))))

    @routes.post("/f/{file}/promote")
    def add(request: Request, file: str, form: Form) -> Response:
        at = Desk(book, place_of(file, decode(request.scope["query_string"])))
        try:
            found = at.session.promotion(at.address)
            if form.get("seal") != found.seal:
                message = "The file or the branch has changed since these rows were shown. Nothing was added."
                raise PatchError(message, "Look at the rows once more, then add them.", "moved")
            notices = at.session.promote(found)
        except StudioError as error:
            return shown(request, at, error)
        if notices:  # the rows are in the file; what else went wrong is read before going on
            after = Desk(book, at.place)
            page = views.page(after.session, after.tree, after.place, None, None, tuple(notices))
            return html(pages.page("promote.html", theme(request), page=page))
        return go(request, Place(file).at_address(at.address).url())

    return routes
