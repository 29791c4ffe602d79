"""The graph pane: rank by rank as text, this superstep lit, and a way to every run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

from studio.assets import sample_folder
from studio.tui.panes import graph
from tests.factories import ShopState, config, saver_at
from tests.tui.driving import driven, opened

SUPPORT = sample_folder() / "support_agent.sqlite"


async def test_it_follows_the_cursor_and_fits_a_small_terminal(tmp_path: Path) -> None:
    with opened(SUPPORT, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#5", "refund-4711"), size=(80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("6")
            await drive.shows("plan_refund    → review")
            text = drive.text("#graph")
            assert "● ran   ◌ next" in text and "● plan_refund" in text and "◌ review" in text
            assert re.search(r"┌ ○ read_history +→ plan_refund\s+└ ○ read_policy", text)
            await drive.press("k")
            await drive.until(lambda: "● read_policy" in drive.text("#graph"), "the superstep before")
            assert "◌ plan_refund" in drive.text("#graph")


async def test_inside_a_subgraph_its_graph_comes_first_and_enter_goes_to_a_run(tmp_path: Path) -> None:
    with opened(SUPPORT, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("5.4", "refund-4711"), size=(120, 40)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("6")
            await drive.until(lambda: "root graph" in drive.text("#graph"))
            text = drive.text("#graph")
            assert text.index("review · 2 nodes") < text.index("root graph")
            assert "● critique" in text and "◆ review" in text
            await drive.press("right", "down", "enter")
            await drive.until(lambda: drive.main.here and drive.main.here.number == "5.3", "the run of draft")


async def test_a_long_thread_says_that_it_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(SUPPORT, tmp_path / "s.sqlite") as session:
        tree, address = session.tree("refund-4711"), session.resolve("#5", "refund-4711")
        from studio.tui.point import load

        point = load(session, tree, address)
        monkeypatch.setattr(graph, "AT_ONCE", 3)
        assert graph.counts_long(session, tree, "refund-4711")
        assert [line.content.plain for line in graph.before(point, tree, session)] == ["Counting 14 checkpoints…"]
        graph.build(point, tree, session)
        assert not graph.counts_long(session, tree, "refund-4711")


def _chain(path: Path, count: int) -> Path:
    names = [f"node_{number}" for number in range(count)]
    builder: StateGraph[Any] = StateGraph(ShopState)
    for name in names:
        builder.add_node(name, lambda state: {"notes": ["x"]})
    for source, target in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(source, target)
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"notes": []}, {**config("t"), "recursion_limit": 200})
    return path


async def test_a_graph_larger_than_the_pane_is_scrolled_to_the_superstep(tmp_path: Path) -> None:
    path = _chain(tmp_path / "chain.sqlite", 60)
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#50", "t"), size=(80, 24)) as drive:
            await drive.press("6")
            await drive.until(lambda: "● node_48" in drive.text("#graph"), "the lit node")
            for number in (47, 46, 45):
                await drive.press("k")
                await drive.until(lambda n=number: f"● node_{n} " in drive.text("#graph"), f"node_{number} in sight")
            await drive.press("G")
            await drive.until(lambda: "● node_59" in drive.text("#graph"), "the last node in sight")
            await drive.press("right", "enter")
            await drive.loaded()
            assert drive.main.here and drive.main.here.number == "61", "the cursor of the pane stands on what is lit"


async def test_the_reader_who_scrolled_the_graph_is_left_where_he_is(tmp_path: Path) -> None:
    path = _chain(tmp_path / "chain.sqlite", 60)
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#50", "t"), size=(80, 24)) as drive:
            await drive.press("6")
            await drive.until(lambda: "● node_48" in drive.text("#graph"))
            await drive.press("right", "g")
            await drive.until(lambda: "__start__" in drive.text("#graph"))
            drive.main.draw_anew("graph")
            await drive.loaded()
            assert "__start__" in drive.text("#graph")


async def test_names_alone_show_the_whole_and_the_edges_come_back(tmp_path: Path) -> None:
    path = _chain(tmp_path / "chain.sqlite", 60)
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#50", "t"), size=(150, 40)) as drive:
            await drive.press("minus")
            await drive.press("6")
            await drive.until(lambda: "● node_48" in drive.text("#graph"))
            await drive.press("0")
            await drive.until(lambda: "○ node_0 → ○ node_1 → " in drive.text("#graph"), "the names alone")
            shown = drive.text("#graph")
            assert all(re.search(rf"[○●◌] node_{number}\b", shown) for number in range(60)), "all of it at once"
            assert "● node_48" in shown and "◌ node_49" in shown
            await drive.press("plus")
            await drive.until(lambda: re.search(r"● node_48 +→ node_49", drive.text("#graph")), "edges, and the superstep")


async def test_names_of_a_wide_layer_stand_side_by_side(tmp_path: Path) -> None:
    with opened(SUPPORT, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#5", "refund-4711"), size=(80, 24)) as drive:
            await drive.press("6")
            await drive.shows("plan_refund    → review")
            await drive.press("minus")
            await drive.until(lambda: "─ ○ read_history   ○ read_policy" in drive.text("#graph"))
            assert "● plan_refund" in drive.text("#graph")
