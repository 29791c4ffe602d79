"""Bytes of channels and threads: what is stored, what grew, at a cost that does not follow the history."""

from __future__ import annotations

import operator
import sqlite3
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import START
from langgraph.graph.message import add_messages

from studio.session import Session
from studio.value import encode
from tests.cli.conftest import Studio, studio
from tests.explain.graphs import graph_of
from tests.factories import config, saver_at
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of

__all__ = ["studio"]


class Notes(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    page: str


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Thread `t`: each of three supersteps adds a message, `load` 5,000 characters of `page`."""

    def says(name: str, **more: Any) -> Any:
        return lambda _state: {"messages": [AIMessage(f"this is {name}", id=name)], "log": [name], **more}

    nodes = {"plan": says("plan"), "load": says("load", page="x" * 5_000), "tell": says("tell")}
    found = tmp_path / "notes.sqlite"
    with saver_at(found) as saver:
        graph = graph_of(nodes, [(START, "plan"), ("plan", "load"), ("load", "tell")], Notes).compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage("hello", id="h")]}, config("t"))
    return found


def test_the_sizes_of_channels_are_those_of_their_stored_bytes(path: Path) -> None:
    session = Session.open(str(path))
    try:
        head = session.resolve("head")
        found, state, raw = session.sizes(head), session.state(head), session.raw(head)
        assert found.here.channels == {name: len(encode(raw.tag, value)) for name, value in state.values.items()}
        assert sum(found.here.channels.values()) + sum(found.here.scheduling.values()) + found.here.rest == found.here.total
        assert found.here.total == state.checkpoint.size_bytes
        assert found.by_size()[0] == "page"
        assert (found.grew("page"), found.grew("log")) == (0, len(encode("msgpack", "tell")))
        assert session.sizes(session.resolve("3")).grew("page") == 5_003
    finally:
        session.close()


def test_show_lists_the_sizes_when_they_are_asked_for(path: Path, studio: Studio) -> None:
    doc = studio("show", path, "3", "--sizes", "--json").doc
    assert set(doc["sizes"]) >= {"messages", "log", "page"}
    assert doc["sizes"]["page"] == 5_003
    assert "sizes" not in studio("show", path, "3", "--json").doc
    text = studio("show", path, "3", "--sizes").out.partition("\nsizes\n")[2]
    assert text.splitlines()[0].split()[:3] == ["page", "5.0", "KB"]
    assert "+5.0 KB" in text.splitlines()[0]
    assert "the whole checkpoint" in text


def test_what_grew_is_told_from_a_sample_of_the_branch(path: Path) -> None:
    with saver_at(path) as saver:
        graph = graph_of({"n": lambda _s: {"log": ["again"]}}, [(START, "n")], Notes).compile(checkpointer=saver)
        for turn in range(40):
            graph.invoke({"page": f"turn {turn}"}, config("long"))
    with sqlite3.connect(path) as connection:
        (written,) = connection.execute("SELECT sum(length(value)) FROM writes WHERE thread_id = 'long'").fetchone()
    connection.close()
    session = Session.open(str(path))
    try:
        head = session.tree("long").head
        assert head is not None
        found = session.growth(head)
        assert (len(found.points), found.checkpoints, len(found.opened)) == (60, 120, 6)
        assert found.checkpoint_bytes == sum(header.size_bytes for header in session.tree("long").headers())
        assert found.write_bytes == written
        assert found.points[-1] == (head, session.state(head).checkpoint.size_bytes)
        name, steps = found.channels[0]
        assert (name, list(steps)) == ("log", sorted(steps))
        assert steps[-1] == session.sizes(head).here.channels["log"]
    finally:
        session.close()


def test_state_in_the_browser_has_a_column_of_sizes_that_sorts(path: Path) -> None:
    def order(page: str) -> list[str]:
        tree = page.split('aria-label="State"')[1].split("</section>")[0]
        return sorted(("messages", "log", "page"), key=lambda name: tree.index(f">{name}</a>"))

    with client_of(path) as client:
        stored = client.get("/?thread=t&at=3&tab=state").text
        assert '<span class="grew" title="since the parent">+5.0 KB</span><span>5.0 KB</span>' in stored
        by_size = client.get("/?thread=t&at=3&tab=state&sort=size").text
        assert order(by_size)[0] == "page"
        assert order(stored)[0] != "page"
        grew = client.get("/f/notes.sqlite/growth?thread=t&at=head&tab=state", headers={"HX-Request": "true"}).text
        assert "What grew" in grew
        assert "in 5 checkpoints and" in grew
        assert "<polyline" in grew


async def test_state_in_the_terminal_tells_sizes_and_what_grew(path: Path, tmp_path: Path) -> None:
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, "3", size=(140, 40)) as drive:
            await drive.loaded()
            await drive.press("3")
            await drive.shows("+5.0 KB  5.0 KB")
            assert "sizes: " in drive.text()
            pane = drive.app.screen.query_one("#state")
            group = next(node for node in pane.root.children if node.data.grows)  # type: ignore[attr-defined]
            group.expand()
            await drive.shows("this branch: ")
            assert "in 5 checkpoints and" in drive.text()
