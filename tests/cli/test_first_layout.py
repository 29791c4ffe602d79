"""A file of LangGraph 0.1: no later release reads it, and that is said in one sentence with what to do instead."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Studio
from tests.factories import folder_snapshot
from tests.forks.test_places import OLD

GRAPH = """
from typing import Any, TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    n: float
    kept: Any

graph = StateGraph(State)
graph.add_node("a", lambda state: {"n": 1.0})
graph.add_node("b", lambda state: {"n": 2.0})
graph.add_edge(START, "a")
graph.add_edge("a", "b")
"""
ACTS = {
    "written as a node": ["fork", "--as-node", "a", "--update", '{"n": 5.0}'],
    "run": ["run"],
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "file" / "old.sqlite"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD)
    (tmp_path / "graphs.py").write_text(GRAPH)
    return path


@pytest.mark.parametrize("act", ACTS)
def test_what_needs_langgraph_is_refused_in_plain_words(studio: Studio, old: Path, tmp_path: Path, act: str) -> None:
    before = folder_snapshot(old.parent)
    command, *more = ACTS[act]
    found = studio(command, old, "head", *more, "--graph", f"{tmp_path}/graphs.py:graph", *(["--trust-types"]))
    assert found.code == 1
    said = found.out + found.err
    assert "this file was written by LangGraph 0.1, and LangGraph " in said and "cannot read it" in said
    assert "hint: fork it by setting the state, which needs no LangGraph" in said
    assert "OperationalError" not in said and "Traceback" not in said and "No module" not in said
    assert folder_snapshot(old.parent) == before
    assert studio("fork", old, "head", "--set", "/n=7.0").code == 0


def test_the_preview_of_a_write_as_a_node_says_the_same(studio: Studio, old: Path, tmp_path: Path) -> None:
    found = studio(
        "fork",
        old,
        "head",
        *ACTS["written as a node"][1:],
        "--graph",
        f"{tmp_path}/graphs.py:graph",
        "--trust-types",
        "--dry-run",
    )
    assert "this file was written by LangGraph 0.1" in found.out + found.err
    assert "OperationalError" not in found.out + found.err
