"""Tasks that ran a subgraph whose checkpoints are not in the file: said where something tells, and claimed nowhere else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from studio.cli import main
from studio.render import labels
from studio.session import Session
from tests.explain.graphs import asks
from tests.factories import config, saver_at
from tests.test_toolcalls import Chat
from tests.web.conftest import client_of


def nest(node: Any, *names: str, checkpointer: Any = None) -> StateGraph[Any]:
    """`node` inside a graph inside a graph …; `names` are those of the nodes, innermost first."""
    builder: StateGraph[Any] = StateGraph(Chat)
    for depth, name in enumerate(names):
        if depth:
            node, builder = builder.compile(checkpointer=checkpointer), StateGraph(Chat)
        builder.add_node(name, node)
        builder.add_edge(START, name)
    return builder


def recorded(path: Path, graph: StateGraph[Any]) -> Path:
    with saver_at(path) as saver:
        graph.compile(checkpointer=saver).invoke({"plain": ["x"]}, config("t"))
    return path


def without(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount
    return path


@contextmanager
def tasks_of(path: Path) -> Iterator[dict[str, str]]:
    """Name -> why a subgraph of it is missing, over all tasks of the thread."""
    with closing(Session.open(str(path))) as session:
        states = [session.state(row.checkpoint.address) for row in session.tree("t").rows()]
        yield {str(task.name): task.unstored for state in states for task in state.tasks}


def test_a_question_of_a_subgraph_that_is_not_stored_is_told_from_the_tasks_own(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t.sqlite", nest(asks("ok?"), "ask", "outer"))
    with tasks_of(path) as found:
        assert set(found.values()) == {""}
    without(path, "DELETE FROM checkpoints WHERE checkpoint_ns != ''", "DELETE FROM writes WHERE checkpoint_ns != ''")
    with tasks_of(path) as found:
        assert "a question was asked by something inside" in found["outer"]
    own = recorded(tmp_path / "own.sqlite", nest(asks("ok?"), "ask"))
    with tasks_of(own) as found:
        assert set(found.values()) == {""}


def test_a_namespace_between_two_others_is_missed(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t.sqlite", nest(lambda state: {"plain": ["y"]}, "leaf", "middle", "outer"))
    with tasks_of(path) as found:
        assert set(found.values()) == {""}
    without(path, "DELETE FROM checkpoints WHERE checkpoint_ns != '' AND checkpoint_ns NOT LIKE '%|%'")
    with tasks_of(path) as found:
        assert {name: bool(why) for name, why in found.items()}["outer"]


def test_rows_of_writes_name_the_subgraph_that_they_belong_to(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t.sqlite", nest(lambda state: {"plain": ["y"]}, "leaf", "outer"))
    without(path, "DELETE FROM checkpoints WHERE checkpoint_ns != ''")
    with tasks_of(path) as found:
        assert found["outer"] == "there are writes of it"


def test_nothing_is_claimed_of_a_subgraph_that_kept_nothing(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t.sqlite", nest(lambda state: {"plain": ["y"]}, "leaf", "outer", checkpointer=False))
    with tasks_of(path) as found:
        assert set(found.values()) == {""}


def test_a_call_of_the_functional_api_is_no_subgraph(tmp_path: Path) -> None:
    @task
    def review(what: str) -> Any:
        return interrupt(what)

    path = tmp_path / "t.sqlite"
    with saver_at(path) as saver:

        @entrypoint(checkpointer=saver)
        def flow(what: str) -> Any:
            return review(what).result()

        flow.invoke("draft", config("t"))
    with tasks_of(path) as found:
        assert set(found.values()) == {""}


def test_it_stands_on_the_task_in_text_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path / "t.sqlite", nest(asks("ok?"), "ask", "outer"))
    without(path, "DELETE FROM checkpoints WHERE checkpoint_ns != ''", "DELETE FROM writes WHERE checkpoint_ns != ''")
    assert main(["show", str(path), "head"]) == 0
    assert labels.UNSTORED in capsys.readouterr().out
    with client_of(path) as client:
        for tab in ("changes", "tasks"):
            assert labels.UNSTORED in client.get(f"/f/t.sqlite?thread=t&tab={tab}").text
