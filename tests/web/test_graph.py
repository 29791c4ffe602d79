"""The graph tab: the picture follows the cursor, each graph has its own, and nothing stored gets out of its place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from langgraph.graph import END, START, StateGraph
from starlette.testclient import TestClient

from studio.web.views import graph as graph_view
from tests.factories import ShopState, config, saver_at
from tests.web.conftest import client_of

HERE = {"thread": "refund-4711", "tab": "graph"}


def soup(client: TestClient, **query: Any) -> BeautifulSoup:
    answer = client.get("/f/support_agent.sqlite", params={**HERE, **query})
    assert answer.status_code == 200
    return BeautifulSoup(answer.text, "html.parser")


def nodes(page: BeautifulSoup, kind: str) -> set[str]:
    return {str(found.text) for node in page.select(f".g-node.{kind}") if (found := node.select_one("text"))}


def titles(page: BeautifulSoup, kind: str) -> set[str]:
    return {edge.title.text.partition(":")[0] for edge in page.select(f".g-edge.{kind}") if isinstance(edge.title, Tag)}


def test_the_superstep_of_the_cursor_is_lit_and_what_runs_next_is_outlined(page: TestClient) -> None:
    found = soup(page, at="5")
    assert nodes(found, "ran") == {"plan_refund"}
    assert nodes(found, "next") == {"review"}
    assert titles(found, "taken") == {"read_history → plan_refund", "read_policy → plan_refund"}
    assert titles(found, "coming") == {"plan_refund → review"}
    moved = soup(page, at="4")
    assert nodes(moved, "ran") == {"read_history", "read_policy"}
    assert nodes(soup(page, at="9"), "next") == {"__end__"}


def test_the_graph_of_the_cursor_comes_first_and_the_others_can_be_reached(page: TestClient) -> None:
    inner = soup(page, at="5.3")
    assert inner.select_one(".g-card h2").text == "review"  # type: ignore[union-attr]
    assert nodes(inner, "ran") == {"draft"}
    root = next(link for link in inner.select(".g-graphs a") if link.text == "root graph")
    outer = BeautifulSoup(page.get(str(root["href"])).text, "html.parser")
    assert outer.select_one(".g-card h2").text == "root graph"  # type: ignore[union-attr]
    assert nodes(outer, "inside") == {"review"} and not nodes(outer, "ran")


def test_a_node_links_to_the_checkpoints_where_it_ran(page: TestClient) -> None:
    found = soup(page, at="9")
    link = next(one for one in found.select("a.g-node") if one.select_one("text").text == "plan_refund")  # type: ignore[union-attr]
    chosen = BeautifulSoup(page.get(str(link["href"])).text, "html.parser")
    runs = chosen.select(".g-chosen .run-link")
    assert [run.text for run in runs] == ["#5"]
    assert "<h1>plan_refund</h1>" in page.get(str(runs[0]["href"])).text


def test_the_picture_has_its_text_beside_it(page: TestClient) -> None:
    found = soup(page, at="5")
    rows = {tuple(cell.text for cell in row.select("td")) for row in found.select(".g-table tbody tr")}
    assert ("review", "ask_approval", "1") in rows and len(rows) == 11
    labels = [str(node["aria-label"]) for node in found.select("a.g-node")]
    assert "plan_refund · 1 run · ran to make #5" in labels
    assert len(found.select(".g-edge")) == 11


def test_key_6_opens_it_and_its_fragment_is_the_same_picture(page: TestClient) -> None:
    found = soup(page, at="5")
    assert found.select_one('.tabs a[data-do="graph"][aria-current]')
    assert "6" in str(found.select_one('[data-action="graph"]')["data-keys"])  # type: ignore[index]
    refresh = str(found.select_one("#graph")["hx-get"])  # type: ignore[index]
    piece = page.get(refresh, headers={"HX-Request": "true", "HX-Target": "div#graph"}).text
    assert BeautifulSoup(piece, "html.parser").select_one(".g-svg") == found.select_one(".g-svg")


def test_a_long_thread_is_counted_after_the_page_is_there(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_view, "AT_ONCE", 3)
    first = soup(page, at="5")
    assert "Counting 14 checkpoints" in first.text and not first.select(".g-svg")
    asks = first.select_one('#graph [hx-trigger="load"]')
    assert asks is not None
    piece = page.get(str(asks["hx-get"]), headers={"HX-Request": "true", "HX-Target": "div#graph"}).text
    assert "g-svg" in piece and "Counting" not in piece
    assert soup(page, at="5").select(".g-svg"), "the count is kept"


def test_too_many_nodes_are_listed_instead(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.render.graph_layout.MOST_NODES", 4)
    graph_view._laid_out.cache_clear()
    found = soup(page, at="5")
    graph_view._laid_out.cache_clear()
    assert not found.select(".g-svg") and "too many for a picture" in found.text
    assert len(found.select("details.g-list[open]")) == 2


def test_hostile_names_stay_text_and_long_ones_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "odd.sqlite"
    names = ["<script>alert(1)</script>", "n" * 300, "turn\u202eed\x1b[31m", "a\"b'&amp;"]
    builder: StateGraph[Any] = StateGraph(ShopState)
    for name in names:
        builder.add_node(name, lambda state: {"notes": ["x"]})
    for source, target in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(source, target)
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"notes": []}, config("t"))
    with client_of(path) as client:
        text = client.get("/f/odd.sqlite", params={"thread": "t", "tab": "graph"}).text
    assert "<script>alert" not in text and "\u202e" not in text and "\x1b" not in text
    assert " style=" not in text
    page = BeautifulSoup(text, "html.parser")
    shown = {node.select_one("text").text for node in page.select("a.g-node")}  # type: ignore[union-attr]
    assert max(map(len, shown)) == graph_view.NAME
    assert any("n" * 200 in node.title.text for node in page.select("a.g-node"))  # type: ignore[union-attr]


def test_a_thread_without_stored_runs_says_so(tmp_path: Path) -> None:
    path = tmp_path / "exit.sqlite"
    with saver_at(path) as saver:
        builder: StateGraph[Any] = StateGraph(ShopState)
        builder.add_node("only", lambda state: {"notes": ["x"]})
        builder.add_edge(START, "only")
        builder.compile(checkpointer=saver).invoke({"notes": []}, config("t"), durability="exit")
    with client_of(path) as client:
        text = client.get("/f/exit.sqlite", params={"thread": "t", "tab": "graph"}).text
    assert re.search("does not tell which nodes ran", text)


def test_the_picture_has_buttons_for_its_size_that_wait_for_the_page_to_need_them(page: TestClient) -> None:
    tools = soup(page, at="5").select_one(".g-tools")
    assert tools is not None and tools.has_attr("hidden")
    assert [button["data-do"] for button in tools.select("button")] == ["zoom_out", "zoom_in", "zoom_whole"]
    assert soup(page, at="5").select_one("#picture")["data-graph"] != soup(page, at="5.3").select_one("#picture")["data-graph"]  # type: ignore[index]
