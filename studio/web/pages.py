"""What can be read: start page, thread list, the workspace and its pieces, search, copies, the event stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial as partial_of
from itertools import islice

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response, StreamingResponse

from studio.errors import RefError
from studio.model import Hit
from studio.render import gate
from studio.session import Session
from studio.unsearched import Unsearched
from studio.web import events, rewrites
from studio.web.book import Book
from studio.web.desk import Desk, badge_of
from studio.web.forms import query_flags
from studio.web.links import Place, decode, number_of, numbers_of, opened, place_of
from studio.web.render import Pages
from studio.web.replies import go, html, partial, plain, target, theme
from studio.web.views import branches, chat, chrome, detail, filehistory, forks, runs, sizes, tables, threads, todolist
from studio.web.views.files import file_view, lost_beside
from studio.web.views.values import Reveal

MOST_HITS = 100


def router(book: Book, pages: Pages, stopping: Callable[[], bool]) -> APIRouter:
    """Routes over the opened files; every one is a GET and changes nothing."""
    routes = APIRouter()

    def beside(session: Session, file: str) -> tables.Beside:
        return tables.beside(session, file, lambda view: book.slug_of(file, view))

    def desk(request: Request, file: str) -> Desk:
        return Desk(book, place_of(file, decode(request.scope["query_string"])))

    @routes.get("/")
    def start(request: Request) -> Response:
        query = decode(request.scope["query_string"])
        first = book.first()
        if first is not None and "thread" in query:  # links that other front ends print
            return go(request, place_of(first, query).url())
        if len(book) == 1 and first is not None:
            session = book.session(first)
            there, place = session.default_thread() is not None, place_of(first, query)
            if session.is_transcript and "tab" not in query:
                place = place.to(tab="conversation")  # a transcript is read first
            return go(request, place.url() if there else place.to(tab="changes").url("threads"))
        found = [file_view(session, slug, partial_of(book.slug_of, slug)) for slug, session in book]
        return html(pages.page("start.html", theme(request), files=found, lost=lost_beside(book)))

    @routes.get("/f/{file}")
    def workspace(request: Request, file: str) -> Response:
        at = desk(request, file)
        query = decode(request.scope["query_string"])
        before = number_of(query, "before")
        if partial(request) and target(request) in ("stage", "centre"):
            page = {"stage": at.stage(before=before)}
            return html(pages.block("workspace.html", target(request), page=_piece(at, page["stage"])))
        return html(
            pages.page("workspace.html", theme(request), page=at.workspace(theme(request), stage=at.stage(before=before)))
        )

    @routes.get("/f/{file}/timeline")
    def timeline(request: Request, file: str) -> Response:
        at = desk(request, file)
        visible = numbers_of(decode(request.scope["query_string"]), "visible")[:8]
        return html(
            pages.block(
                "workspace.html",
                "timeline",
                page=_Piece(timeline=at.timeline(index for index in visible if index < len(at.tree))),
            )
        )

    @routes.get("/f/{file}/rows")
    def rows(request: Request, file: str) -> Response:
        query = decode(request.scope["query_string"])
        start = number_of(query, "start") or 0
        chunk, width = desk(request, file).chunk(start)
        return html(pages.macro("_row.html", "chunk", chunk, width))

    @routes.get("/f/{file}/step")
    def step(request: Request, file: str) -> Response:
        """The N-th checkpoint of the branch through the cursor: where the scrubber was let go."""
        at = desk(request, file)
        wanted = number_of(decode(request.scope["query_string"]), "step")
        found = chrome.at_step(at.tree, at.address, 1 if wanted is None else wanted)
        return go(request, at.place.at_address(found).url())

    @routes.get("/f/{file}/threads")
    def thread_page(request: Request, file: str) -> Response:
        session = book.session(file)
        session.refresh()
        query = decode(request.scope["query_string"])
        selected = query.get("thread") or opened(query.get("in", ""))
        place = Place(file, selected or None)
        found = threads.thread_list(place, tables.title(session), session.threads(), gate.line(query.get("q", "")))
        context = {"list": found, "selected": selected, "drawer": partial(request)}
        if partial(request):
            return html(pages.block("threads.html", "rows" if target(request) == "thread-rows" else "list", **context))
        badge, title = badge_of(session)
        around = {
            "location": gate.line(session.location),
            "badge": badge,
            "badge_title": title,
            "events_href": Place(file).url("events"),
            "beside": beside(session, file),
        }
        return html(pages.page("threads.html", theme(request), **around, **context))

    @routes.get("/f/{file}/search")
    def search(request: Request, file: str) -> Response:
        session = book.session(file)
        query = decode(request.scope["query_string"])
        text, thread = query.get("q", "").strip()[:500], opened(query["in"]) if query.get("in") else None
        place = Place(file, thread)
        passed = Unsearched()
        looked = session.search(text, thread, limit=2 * MOST_HITS, passed=passed) if text else iter(())
        hits: list[Hit] = list(islice(looked, 2 * MOST_HITS))
        here = [hit for hit in hits if hit.address.thread_id == thread][:MOST_HITS]
        others = [hit for hit in hits if hit.address.thread_id != thread][:MOST_HITS]
        context = {
            "found": replace(threads.search_view(place, text, here, others), query=gate.line(text), passed=passed.sentence()),
            "thread": thread or "",
            "action": Place(file).url("search"),
            "drawer": partial(request),
        }
        if partial(request):
            return html(pages.block("search.html", "hits" if target(request) == "search-hits" else "list", **context))
        return html(pages.page("search.html", theme(request), back=place.url(), file=tables.title(session, 60), **context))

    @routes.get("/f/{file}/node")
    def tree_node(request: Request, file: str) -> Response:
        at = desk(request, file)
        unfold, reveal, whole = query_flags(decode(request.scope["query_string"]))
        path = at.place.path or ""
        shown = Reveal(path if reveal else None, at.session.show_secrets)
        drawn = detail.subtree(at.state, at.place, path, shown, unfold=unfold, whole=whole)
        if path.count("/") == 1:
            drawn = sizes.sized(drawn, at.sizes)
        return html(pages.macro("_value.html", "tree_node", drawn, at._link, at._part, reveal=reveal))

    @routes.get("/f/{file}/children")
    def children(request: Request, file: str) -> Response:
        """The next page of a value's children, as tree lines."""
        at = desk(request, file)
        query = decode(request.scope["query_string"])
        path, start = at.place.path or "", number_of(query, "start") or 0
        drawn = detail.subtree(at.listed, at.place, path, Reveal(all=at.session.show_secrets), start=start)
        shown = drawn.children if path else tuple(sizes.sized(child, at.sizes) for child in drawn.children)
        lines = [pages.macro("_value.html", "tree_node", child, at._link, at._part) for child in shown]
        more = pages.macro("_value.html", "more_children", drawn, at._link, at._part) if drawn.more else ""
        return html("".join(lines) + more)

    @routes.get("/f/{file}/chat")
    def earlier_turns(request: Request, file: str) -> Response:
        """An earlier part of the conversation."""
        at = desk(request, file)
        before = number_of(decode(request.scope["query_string"]), "before")
        if not partial(request):
            return go(request, at.place.to(tab="conversation").url(extra=[("before", str(before))] if before is not None else []))
        return html(
            pages.macro("_chat.html", "beats", chat.conversation(at.session, at.tree, at.place, at.address, before=before))
        )

    @routes.get("/f/{file}/said")
    def said(request: Request, file: str) -> Response:
        """One thing that was said in a turn, in full."""
        at = desk(request, file)
        query = decode(request.scope["query_string"])
        named = {name: query.get(name, "") for name in ("call", "said", "kind")}
        found = chat.whole(at.session, at.tree, at.place, at.address, **named)
        if found is None:
            raise RefError("this turn holds no such text", "the file may have changed: load the page again")
        return html(pages.macro("_chat.html", "whole", found)) if partial(request) else plain(found.text)

    @routes.get("/f/{file}/picture")
    def picture(request: Request, file: str) -> Response:
        """A picture that a turn holds, by its hash; its type is what its bytes say, and one of four."""
        at = desk(request, file)
        query = decode(request.scope["query_string"])
        digest = query.get("sha256", "")
        branch = at.session.branch(at.address)
        found = branch.picture(digest) if branch is not None else None
        if found is None:
            raise RefError(
                "this turn holds no picture with this hash", "pictures are PNG, JPEG, GIF or WebP; Raw has everything else"
            )
        if query.get("frame") == "1" and partial(request):
            return html(pages.macro("_chat.html", "shown_picture", at.place.url("picture", [("sha256", digest)])))
        kind, raw = found
        return Response(raw, media_type=kind, headers={"Content-Disposition": "inline"})

    @routes.get("/f/{file}/files")
    def more_files(request: Request, file: str) -> Response:
        """More files, or earlier events of the one that is looked at."""
        at = desk(request, file)
        query = decode(request.scope["query_string"])
        start, before = number_of(query, "start") or 0, number_of(query, "before")
        if not partial(request):
            return go(request, at.place.to(tab="files").url())
        found = filehistory.files_view(at.session, at.tree, at.place, at.address, start=start, before=before)
        return html(pages.macro("_chat.html", "file_events" if found.path else "file_rows", found))

    @routes.get("/f/{file}/todos")
    def earlier_todos(request: Request, file: str) -> Response:
        """Earlier changes of the list."""
        at = desk(request, file)
        before = number_of(decode(request.scope["query_string"]), "before")
        if not partial(request):
            return go(request, at.place.to(tab="todos").url())
        return html(
            pages.macro("_chat.html", "todo_steps", todolist.todos_view(at.session, at.tree, at.place, at.address, before=before))
        )

    @routes.get("/f/{file}/growth")
    def growth(request: Request, file: str) -> Response:
        """What grew on the branch up to here, and how large the thread is."""
        at = desk(request, file)
        if not partial(request):
            return go(request, at.place.to(tab="state").url())
        drawn = sizes.growth_view(at.session.growth(at.address), at.tree, at.place)
        return html(pages.macro("_sizes.html", "growth", drawn))

    @routes.get("/f/{file}/edit")
    def edit(request: Request, file: str) -> Response:
        """The large editor, in place of the centre column."""
        at = desk(request, file)
        path = at.place.path or at.selected_path
        whole = decode(request.scope["query_string"]).get("whole") == "1"
        box = at.fork_box(large=True)
        if whole:
            row = forks.whole_row(at.state.values, show_secrets=at.session.show_secrets)
            box = at.fork_box(at.input_of((row,)), large=True)
        elif not box.edits and path is not None and at.value_at(path)[1]:
            root = at.state.editable
            row = forks.edit_row(0, path, at.value_at(path)[0], show_secrets=at.session.show_secrets, root=root)
            box = at.fork_box(at.input_of((row,)), large=True)
        stage = at.stage(editor=box)
        if partial(request):
            return html(pages.block("workspace.html", "stage", page=_piece(at, stage)))
        return html(pages.page("workspace.html", theme(request), page=at.workspace(theme(request), stage=stage)))

    @routes.get("/f/{file}/messages")
    def messages(request: Request, file: str) -> Response:
        """The message editor, in place of the centre column."""
        at = desk(request, file)
        chat = rewrites.first_editor(at, number_of(decode(request.scope["query_string"]), "open"))
        stage = at.stage(editor=at.fork_box(at.input_of((), chat), large=True))
        if partial(request):
            return html(pages.block("workspace.html", "stage", page=_piece(at, stage)))
        return html(pages.page("workspace.html", theme(request), page=at.workspace(theme(request), stage=stage)))

    @routes.get("/f/{file}/graph")
    def graph(request: Request, file: str) -> Response:
        """The graph as of now, however long its counting takes."""
        at = desk(request, file)
        return html(pages.macro("_graph.html", "body", at.graph(wait=True))) if partial(request) else go(request, at.place.url())

    @routes.get("/f/{file}/branches")
    def side_by_side(request: Request, file: str) -> Response:
        """A further part of the supersteps, or of the chats, of two branches."""
        at = desk(request, file)
        query = decode(request.scope["query_string"])
        if not partial(request):
            return go(request, at.place.url())
        start, stop = number_of(query, "start") or 0, number_of(query, "stop")
        kind, unfold = "chats" if query.get("part") == "chats" else "steps", query.get("unfold") == "1"
        found = branches.window(at.session, at.tree, at.place, kind, start, stop, unfold=unfold)
        return html(pages.macro("_branches.html", "window", found))

    @routes.get("/f/{file}/writers")
    def writers(request: Request, file: str) -> Response:
        """The nodes to write as, best first."""
        box = desk(request, file).fork_box(ways=True)
        return html(pages.macro("_fork.html", "writers", box.writers))

    @routes.get("/f/{file}/ways")
    def ways(request: Request, file: str) -> Response:
        """The nodes to go on with, of which one may have been typed before they were there."""
        typed = opened(decode(request.scope["query_string"]).get("goto", ""))
        return html(pages.macro("_fork.html", "goto_pick", desk(request, file).goto_box(typed)))

    @routes.get("/f/{file}/run/{run_id}")
    def run_panel(request: Request, file: str, run_id: str) -> Response:
        run = book.run(file, run_id)
        at = desk(request, file)
        follow = decode(request.scope["query_string"]).get("follow") == "1"
        drawn = runs.run_view(run, at.session, at.tree, at.place, follow=follow)
        if partial(request):
            return html(pages.macro("_fork.html", "run_panel", drawn))
        return go(request, at.place.url())

    @routes.get("/f/{file}/copy/{kind}")
    def copy(request: Request, file: str, kind: str) -> Response:
        _, revealed, _ = query_flags(decode(request.scope["query_string"]))
        text, masked = desk(request, file).copy_text(kind, revealed=revealed)
        answer = plain(text)
        if masked:
            answer.headers["Studio-Masked"] = "1"
        return answer

    @routes.get("/f/{file}/events")
    async def event_stream(file: str) -> Response:
        session: Session = book.session(file)
        return StreamingResponse(events.stream(session, stopping), media_type="text/event-stream")

    @routes.get("/favicon.ico")
    def favicon() -> Response:
        return FileResponse(pages.static / "icon.svg", media_type="image/svg+xml")

    return routes


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one block needs of a workspace."""

    stage: object = None
    timeline: object = None
    footer: object = None


def _piece(at: Desk, stage: object) -> _Piece:
    return _Piece(stage=stage, footer=chrome.footer_keys())
