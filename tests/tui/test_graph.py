"""The graph pane: rank by rank as text, this superstep lit, and a way to every run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from studio.assets import sample_folder
from studio.tui.panes import graph
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
