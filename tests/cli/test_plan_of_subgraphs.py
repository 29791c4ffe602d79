"""The plan of a run where subgraphs are: what ran after the edit and nothing before it; inner nodes join the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Studio
from tests.explain.graphs import chain
from tests.factories import config, saver_at

TODAY = """
from tests.explain.graphs import chain

deep = chain("sip").compile()
inner = chain("boil", "brew", "taste", taste=deep).compile()
graph = chain("plan", "kitchen", "serve", kitchen=inner).compile()

newer = chain("boil", "cool", "taste", "pour", taste=chain("sip", "spit").compile()).compile()
today = chain("plan", "kitchen", "serve", "bill", kitchen=newer).compile()
"""


@pytest.fixture
def teas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """plan -> kitchen (boil -> brew -> taste (sip)) -> serve, and the file of its code."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    (tmp_path / "teas.py").write_text(TODAY)
    inner = chain("boil", "brew", "taste", taste=chain("sip").compile()).compile()
    path = tmp_path / "file" / "teas.sqlite"
    path.parent.mkdir()
    with saver_at(path) as saver:
        chain("plan", "kitchen", "serve", kitchen=inner).compile(checkpointer=saver).invoke({"topic": "tea"}, config("t"))
    return path, f"{tmp_path / 'teas.py'}"


def plan(studio: Studio, path: Path, ref: str, graph: str) -> dict[str, Any]:
    found = studio("run", path, ref, "--graph", graph, "--dry-run", "--json")
    assert found.code == 0, found.err
    plan: dict[str, Any] = found.lines[0]
    return plan


def number(studio: Studio, path: Path, node: str) -> str:
    rows = studio("tree", path, "--all-ns", "--json").doc["rows"]
    return next(str(row["number"]) for row in rows if [one["name"] for one in row["nodes"]] == [node])


def test_the_root_of_a_fork_inside_a_subgraph_repeats_only_what_comes_after_the_edit(
    studio: Studio, teas: tuple[Path, str]
) -> None:
    path, code = teas
    fork = studio("fork", path, number(studio, path, "brew"), "--set", '/topic="coffee"', "--json").doc
    for ref in (fork["root"]["checkpoint_id"], fork["checkpoint_id"]):
        found = plan(studio, path, ref, f"{code}:graph")
        assert found["runs"] == ["taste"]
        assert [one["name"] for one in found["past_nodes"]] == ["sip", "taste", "kitchen", "serve"]


def test_the_root_of_a_fork_two_levels_down_repeats_nothing_before_it(studio: Studio, teas: tuple[Path, str]) -> None:
    path, code = teas
    fork = studio("fork", path, number(studio, path, "sip"), "--set", '/topic="coffee"', "--json").doc
    found = plan(studio, path, fork["root"]["checkpoint_id"], f"{code}:graph")
    assert [one["name"] for one in found["past_nodes"]] == ["taste", "kitchen", "serve"]


def test_nodes_of_subgraphs_are_compared_with_the_code(studio: Studio, teas: tuple[Path, str]) -> None:
    path, code = teas
    same = plan(studio, path, "1", f"{code}:graph")["drift"]
    assert (same["nodes_gone"], same["nodes_new"]) == ([], [])
    for ref in ("1", number(studio, path, "brew")):
        found = plan(studio, path, ref, f"{code}:today")["drift"]
        assert found["nodes_new"] == ["bill", "cool in kitchen", "pour in kitchen", "spit in taste in kitchen"]
        assert found["nodes_gone"] == ["brew in kitchen"]
    said = studio("run", path, "1", "--graph", f"{code}:today", "--dry-run")
    assert "nodes bill, cool in kitchen, pour in kitchen, spit in taste in kitchen (new, or not reached yet)" in said.out
    assert "Ran in this thread, and is not in the graph any more: brew in kitchen." in said.out + said.err


def test_a_subgraph_that_the_file_holds_nothing_of_is_not_called_new(
    studio: Studio, tmp_path: Path, teas: tuple[Path, str]
) -> None:
    path = tmp_path / "alone.sqlite"
    with saver_at(path) as saver:
        inner = chain("boil", "brew").compile(checkpointer=False)
        chain("plan", "kitchen", "serve", kitchen=inner).compile(checkpointer=saver).invoke({"topic": "tea"}, config("t"))
    assert plan(studio, path, "1", f"{teas[1]}:graph")["drift"]["nodes_new"] == []


def test_a_copy_that_langgraph_adds_is_no_superstep_of_the_branch(studio: Studio, teas: tuple[Path, str]) -> None:
    """A run of a fork that is not the newest gets such a copy."""
    path, code = teas
    graph = f"{code}:graph"
    before = number(studio, path, "plan")
    for _ in range(2):
        studio("fork", path, before)
    end = studio("run", path, "s1", "--graph", graph, "--steps", "1", "--json").lines[-1]
    rows = studio("tree", path, "--json").doc["rows"]
    assert "re-run" in {row["label"] for row in rows}
    assert [one["name"] for one in plan(studio, path, end["head"]["checkpoint_id"], graph)["past_nodes"]] == ["serve"]
    studio("run", path, "s2", "--graph", graph, "--steps", "1")
    again = studio("tree", path, "--json").doc["rows"][-1]
    assert [one["name"] for one in again["nodes"]] == ["kitchen"]
    assert [one["name"] for one in plan(studio, path, again["checkpoint_id"], graph)["past_nodes"]] == ["serve"]
