"""Look at one file as the browser view and the panes of the terminal UI do, in this process, without a browser or a terminal."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from starlette.testclient import TestClient

from studio.errors import StudioError
from studio.model import Address
from studio.session import Session
from studio.tui.lines import Line
from studio.tui.panes import changes, conversation, graph, raw, tasks
from studio.tui.point import load
from studio.web import create_app
from studio.web.links import TABS, Place

MOST_TABS = 3
LINK = re.compile(r'href="(/f/[^"/]+/tables\?[^"]*)"')


def pages(path: str, addresses: list[Address], rng: random.Random) -> Iterator[tuple[str, int, str]]:
    """(what was asked for, status, page) of the threads, search, tables and, for each checkpoint, some tabs and parts."""
    session = Session.open(path)
    try:
        app = create_app([session], token="")
        file = app.book.first() or ""
        try:
            with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:

                def get(url: str, *, part: bool = False) -> tuple[str, int, str]:
                    answer = client.get(url, headers={"HX-Request": "true"} if part else {})
                    return url, answer.status_code, answer.text

                found = Place(file)
                yield get(found.url("threads"))
                yield get(found.url("search", [("q", rng.choice(("a", "kettle", "0", "\u202e", "messages")))]))
                tables = get(found.url("tables"))
                yield tables
                for link in LINK.findall(tables[2])[:2]:
                    yield get(link.replace("&amp;", "&"))
                for address in addresses:
                    here = Place(file, address.thread_id, address.checkpoint_id, address.checkpoint_ns)
                    for tab in rng.sample(TABS, MOST_TABS):
                        yield get(here.to(tab=tab).url())
                    yield get(here.to(tab="state", sort="size").url())
                    for name in ("timeline", "rows", "growth", "graph", "edit"):
                        yield get(here.url(name), part=True)
                    yield get(f"/?thread={quote(address.thread_id, errors='surrogatepass')}")
        finally:
            app.book.close()
    finally:
        session.close()


def panes(path: str, addresses: list[Address]) -> Iterator[tuple[str, str]]:
    """(pane, its text) of each checkpoint; what cannot be read is one line there, as on the screen."""
    session = Session.open(path)
    try:
        for address in addresses:
            try:
                tree = session.tree(address.thread_id)
                point = load(session, tree, address)
                drawn = {
                    "changes": changes.build(point, tree),
                    "conversation": conversation.build(point, tree, session),
                    "tasks": tasks.build(point, tree),
                    "raw": raw.build(point, session.problems()),
                    "graph": graph.build(point, tree, session),
                }
            except StudioError as error:
                yield "complaint", str(error.slug)
                continue
            for name, lines in drawn.items():
                yield f"{name} of {address.checkpoint_id!r:.60}", "\n".join(shown(lines))
    finally:
        session.close()


def shown(lines: Sequence[Line]) -> Iterator[str]:
    """The text of lines, with that of those folded below them."""
    for line in lines:
        yield line.content.plain
        if line.right is not None:
            yield line.right.plain
        yield from shown(line.folded)
