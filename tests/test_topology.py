"""The graph as its code draws it beside the graph as it ran: what was never taken, what no edge foretold, what never ran."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from studio.errors import RunError, UsageError
from studio.model import Edge, SeenGraph
from studio.requests import GraphSpec, RunRequest
from studio.session import Session
from studio.topology import CodeGraph, joined
from tests.factories import folder_snapshot
from tests.tui.driving import driven, opened
from tests.web.conftest import OURS, client_of

CODE = """
import sqlite3, sys
from typing import TypedDict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

class State(TypedDict, total=False):
    n: int
    far: bool

inner = StateGraph(State)
inner.add_node("weigh", lambda state: {"n": 3})
inner.add_node("round", lambda state: {"n": 4})
inner.add_edge(START, "weigh")
inner.add_conditional_edges("weigh", lambda state: END, ["round", END])

def jump(state):
    return Command(goto="last")

outer = StateGraph(State)
outer.add_node("first", lambda state: {"n": 1})
outer.add_node("jump", jump)
outer.add_node("never", lambda state: {})
outer.add_node("check", inner.compile())
outer.add_node("unused", inner.compile())
outer.add_node("last", lambda state: {"n": 9})
outer.add_edge(START, "first")
outer.add_conditional_edges("first", lambda state: "check", ["check", "never"])
outer.add_edge("check", "jump")
outer.add_edge("never", "unused")
builder = outer
graph = outer.compile()

if __name__ == "__main__":
    saver = SqliteSaver(sqlite3.connect(sys.argv[1], check_same_thread=False))
    outer.compile(checkpointer=saver).invoke({"n": 0}, {"configurable": {"thread_id": "t"}})
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "flow.py").write_text(CODE)
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": {"flow": "./flow.py:builder"}}))
    subprocess.run([sys.executable, "flow.py", "flow.sqlite"], cwd=folder, check=True)
    return folder / "flow.sqlite"


@pytest.fixture
def session(made: Path, tmp_path: Path) -> Iterator[Session]:
    with opened(made, tmp_path / "s.sqlite") as found:
        yield found


def edge(graphs: tuple[SeenGraph, ...], ns: str, source: str, target: str) -> Edge:
    graph = next(graph for graph in graphs if graph.ns == ns)
    return next(edge for edge in graph.edges if (edge.source, edge.target) == (source, target))


def test_looking_asks_no_code_and_joining_adds_what_was_never_taken(session: Session) -> None:
    before = session.graphs("t")
    assert all(edge.drawn is None for graph in before for edge in graph.edges) and not any(graph.code for graph in before)
    session.load_code("t", GraphSpec())
    graphs = session.graphs("t")
    assert [graph.ns for graph in graphs] == ["", "check", "unused"]
    assert graphs[0].code.startswith("flow = ")
    assert edge(graphs, "", "__start__", "first") == Edge("__start__", "first", 1, True)
    assert edge(graphs, "", "first", "never") == Edge("first", "never", 0, True, True)
    assert edge(graphs, "", "first", "check") == Edge("first", "check", 1, True, True)
    assert edge(graphs, "", "jump", "last").drawn is False, "a Command leads where no edge is drawn"
    assert edge(graphs, "check", "weigh", "round") == Edge("weigh", "round", 0, True, True)
    assert edge(graphs, "unused", "__start__", "weigh").count == 0, "a subgraph that never ran is shown from the code"
    assert {node.name: node.runs for node in graphs[0].nodes}["never"] == 0
    assert [(graph.ns, graph.taken) for graph in graphs[:2]] == [(graph.ns, len(graph.edges)) for graph in before]
    counted = {(e.source, e.target): e.count for e in before[0].edges}
    assert {(e.source, e.target): e.count for e in graphs[0].edges if e.count} == counted


def test_a_plan_that_looked_at_the_code_joins_it_too(session: Session) -> None:
    session.plan(RunRequest(session.resolve("#1", "t")))
    assert not session.graphs("t")[0].code, "a plan that needs no code loads none"
    session.plan(RunRequest(session.resolve("#1", "t")), look=True)
    assert session.graphs("t")[0].code


def test_a_graph_that_cannot_be_loaded_is_named_and_nothing_is_joined(session: Session) -> None:
    for spec, wrong in ((GraphSpec("nowhere"), UsageError), (GraphSpec("flow.py:nothing"), RunError)):
        with pytest.raises(wrong):
            session.load_code("t", spec)
    assert not any(graph.code for graph in session.graphs("t"))


def test_what_was_seen_stays_whatever_the_code_says() -> None:
    seen = SeenGraph("", (), (Edge("a", "b", 2), Edge("b", "c", 1)))
    (found,) = joined((seen,), [CodeGraph("", ("a", "b"), (("a", "b", False), ("b", "a", True)))], "g")
    assert found.edges == (Edge("a", "b", 2, True), Edge("b", "c", 1, False), Edge("b", "a", 0, True, True))
    (undrawable,) = joined((seen,), [CodeGraph("", ("a", "b", "z"), ())], "g")
    assert [edge.drawn for edge in undrawable.edges] == [None, None], "a graph that LangGraph cannot draw says nothing of edges"
    assert [node.name for node in undrawable.nodes] == ["a", "b", "z"]


def test_the_command_line_says_it_in_words_and_in_json_and_leaves_no_trace(made: Path) -> None:
    before = {name: found for name, found in folder_snapshot(made.parent).items() if "__pycache__" not in name}
    command = [sys.executable, "-m", "studio", "edges", str(made), "--graph", "flow"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "root graph · 4 nodes that ran · 5 edges taken, 4 more in the code" in text
    assert "first      ->  never    ·  never taken here, the code decides" in text
    assert "jump       ->  last     1  not drawn by the code" in text
    doc = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    assert {"source": "first", "target": "never", "count": 0, "in_code": True, "conditional": True} in doc["graphs"][0]["edges"]
    after = folder_snapshot(made.parent)
    assert {name: found for name, found in after.items() if "__pycache__" not in name} == before


def test_the_page_loads_the_code_when_it_is_told_to(made: Path) -> None:
    at = {"thread": "t", "tab": "graph"}
    with client_of(made) as page:
        shown = BeautifulSoup(page.get("/f/flow.sqlite", params=at).text, "html.parser")
        form = shown.select_one("form.g-join")
        assert form is not None and not shown.select(".g-edge.unused")
        page.post(str(form["action"]), data={"graph": ""}, headers=OURS)
        shown = BeautifulSoup(page.get("/f/flow.sqlite", params=at).text, "html.parser")
        titles = [str(title.text) for title in shown.select(".g-edge.unused title")]
        assert "first → never: never taken here, the code decides" in titles
        assert [str(title.text) for title in shown.select(".g-edge.undrawn title")] == [
            "jump → last: 1 time, not drawn by the code"
        ]
        legend = shown.select_one(".g-legend")
        assert shown.select_one("form.g-join") is None and legend and "in the code, never taken here" in legend.text


async def test_a_key_of_the_terminal_joins_the_code(session: Session) -> None:
    async with driven(session, session.resolve("#1", "t"), size=(120, 40)) as drive:
        await drive.loaded()
        await drive.press("m")
        await drive.until(lambda: "⇢ never" in drive.text("#graph"), "the edge of the code")
        text = drive.text("#graph")
        assert "→ last ≠" in text and "beside the code of flow = " in text
