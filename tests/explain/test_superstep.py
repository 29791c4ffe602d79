"""Whether a superstep's writes lead to what was stored after it: explained by a rule, changed outside them, or not told."""

from __future__ import annotations

import operator
import sqlite3
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage
from langgraph.channels import EphemeralValue, Topic
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START
from langgraph.graph.message import add_messages
from langgraph.types import Command, Overwrite, interrupt

from studio.model import Verdict
from studio.session import Session
from tests.explain.graphs import chain, graph_of
from tests.factories import config, saver_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "thread.sqlite"


def verdicts(path: Path, thread: str = "t") -> list[dict[str, Verdict]]:
    """What each checkpoint of the root graph says, in order; empty for inputs."""
    session = Session.open(str(path))
    try:
        tree = session.tree(thread)
        return [session.checked(session.state(header.address)) for header in tree.headers()]
    finally:
        session.close()


def hows(path: Path) -> set[str]:
    return {found.how for step in verdicts(path) for found in step.values()}


def run(path: Path, builder: Any, given: Any, **options: Any) -> None:
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke(given, config("t"), **options)


class Everything(TypedDict, total=False):
    plain: str
    log: Annotated[list[str], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]
    known: Annotated[dict[str, int], operator.or_]
    tags: Annotated[set[str], operator.or_]
    total: Annotated[float, operator.add]
    news: Annotated[list[str], Topic(str)]
    all_news: Annotated[list[str], Topic(str, accumulate=True)]
    glance: Annotated[str, EphemeralValue(str)]


def writes(**update: Any) -> Any:
    return lambda _state: update


def first(_state: Any) -> dict[str, Any]:
    return {
        "plain": "one", "log": ["a", "b"], "messages": [AIMessage("hello", id="m1"), AIMessage("again", id="m2")],
        "known": {"x": 1}, "tags": {"red"}, "total": 1.5, "news": ["n1", "n2"], "all_news": ["n1"], "glance": "soon gone",
    }  # fmt: skip


def second(_state: Any) -> dict[str, Any]:
    return {
        "log": ["c"], "messages": [RemoveMessage("m1"), AIMessage("edited", id="m2"), AIMessage("no id")], "known": {"y": 2},
        "tags": {"blue"}, "total": 2, "all_news": ["n2"],
    }  # fmt: skip


def third(_state: Any) -> dict[str, Any]:
    return {"log": Overwrite(["anew"]), "plain": "one"}


def test_every_usual_reducer_explains_each_step(path: Path) -> None:
    nodes = {"first": first, "second": second, "third": third}
    edges = [(START, "first"), ("first", "second"), ("second", "third")]
    run(path, graph_of(nodes, edges, Everything), {"plain": "zero"}, durability="sync")
    steps = verdicts(path)
    assert {found.how for step in steps for found in step.values()} == {"last", "append", "messages", "union", "sum", "cleared"}
    assert {name: found.how for name, found in steps[3].items()} == {
        "all_news": "append", "glance": "cleared", "known": "union", "log": "append", "messages": "messages", "news": "cleared",
        "tags": "union", "total": "sum",
    }  # fmt: skip


def test_parallel_writers_and_sends_are_explained_together(path: Path) -> None:
    writer = {name: writes(log=[name], known={name: 1}, news=[name]) for name in "xyz"}
    run(path, graph_of(writer, [(START, name) for name in "xyz"], Everything), {"log": ["begin"]}, durability="sync")
    assert {name: found.how for name, found in verdicts(path)[-1].items()} == {
        "known": "union",
        "log": "append",
        "news": "append",
    }


@pytest.mark.parametrize(
    "reducer",
    [
        lambda old, new: (old + new)[-2:],
        lambda old, new: new + old,
        lambda old, new: sorted({*old, *new}),
        lambda old, new: old or new,
        lambda old, new: [*old, f"{len(new)} more"],
        lambda old, new: old + [item for item in new if item not in old],
    ],
    ids=["the last two", "newest first", "sorted and unique", "the first one stays", "counts", "without doubles"],
)
def test_a_reducer_of_ones_own_is_never_called_a_change_from_outside(path: Path, reducer: Any) -> None:
    own = TypedDict("own", {"items": Annotated[list[str], reducer]}, total=False)  # noqa: UP013 - a local reducer

    def node(name: str, whole: bool) -> Any:
        return lambda state: dict(state) if whole else {"items": [name, "a"]}

    nodes = {name: node(name, name in "ce") for name in "abcde"}
    run(path, graph_of(nodes, [(START, "a"), *zip("abcd", "bcde", strict=True)], own), {"items": ["given"]})
    assert "outside" not in hows(path)


@pytest.mark.parametrize(
    "reducer",
    [lambda old, new: max(old, new), lambda old, new: (old + new) / 2, lambda old, new: old],
    ids=["max", "mean", "old"],
)
def test_numbers_under_a_reducer_of_ones_own_are_not_accused_either(path: Path, reducer: Any) -> None:
    own = TypedDict("own", {"best": Annotated[float, reducer]}, total=False)  # noqa: UP013 - a local reducer

    nodes = {name: writes(best=value) for name, value in zip("abc", (3.0, 1.0, 2.0), strict=True)}
    run(path, graph_of(nodes, [(START, "a"), ("a", "b"), ("b", "c")], own), {"best": 2.5})
    assert "outside" not in hows(path)


def test_a_value_that_a_node_changed_in_place_without_writing_it_is_from_outside(path: Path) -> None:
    class Basket(TypedDict, total=False):
        cart: dict[str, int]
        done: bool

    def spoil(state: Basket) -> dict[str, Any]:
        state["cart"]["free gift"] = 1
        return {"done": True}

    run(path, graph_of({"spoil": spoil}, [(START, "spoil")], Basket), {"cart": {"cup": 1}}, durability="sync")
    found = verdicts(path)[-1]
    assert found["done"].how == "last"
    assert found["cart"].how == "outside"
    assert "no task wrote it" in found["cart"].why


class SlowSaver(SqliteSaver):
    """Stores a checkpoint a moment late, as a busy disk does: meanwhile the next superstep runs."""

    def put(self, *args: Any, **options: Any) -> Any:
        time.sleep(0.25)
        return super().put(*args, **options)


class Cart(TypedDict, total=False):
    cart: list[str]


class GrowingCart(TypedDict, total=False):
    cart: Annotated[list[str], operator.add]


def test_a_checkpoint_that_was_stored_late_is_told_from_one_that_its_writes_explain(path: Path) -> None:
    def append_in_place(state: GrowingCart) -> dict[str, Any]:
        state["cart"].append("in place")
        return {"cart": ["in place"]}

    nodes = {"fill": lambda _s: {"cart": ["cup"]}, "spoil": append_in_place}
    connection = sqlite3.connect(path, check_same_thread=False)
    graph = graph_of(nodes, [(START, "fill"), ("fill", "spoil")], GrowingCart).compile(checkpointer=SlowSaver(connection))
    graph.invoke({"cart": []}, config("t"), durability="async")
    connection.close()
    found = verdicts(path)[2]["cart"]
    assert (found.how, "stored late" in found.why) == ("outside", True)


def test_a_last_value_that_holds_what_the_next_superstep_wrote_was_stored_late(path: Path) -> None:
    nodes = {"fill": lambda _s: {"cart": ["cup"]}, "more": lambda _s: {"cart": ["cup", "saucer"]}}
    run(path, graph_of(nodes, [(START, "fill"), ("fill", "more")], Cart), {"cart": []})
    with sqlite3.connect(path) as connection:
        late = "checkpoint_id = (SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id LIMIT 1 OFFSET 2)"
        (blob,) = connection.execute(f"SELECT checkpoint FROM checkpoints WHERE {late}").fetchone()
        spoiled = blob.replace(ormsgpack.packb(["cup"]), ormsgpack.packb(["cup", "saucer"]))
        connection.execute(f"UPDATE checkpoints SET checkpoint = ? WHERE {late}", (spoiled,))
    connection.close()
    found = [step.get("cart") for step in verdicts(path)]
    assert [one and one.how for one in found] == [None, "last", "outside", "last"]
    assert found[2] is not None
    assert "stored late" in found[2].why


def test_a_superseded_branch_and_a_missing_parent_are_not_told(path: Path) -> None:
    def ask(_state: Any) -> dict[str, Any]:
        return {"log": [interrupt("well?")]}

    with saver_at(path) as saver:
        graph = chain("ask", ask=ask).compile(checkpointer=saver)
        graph.invoke({"topic": "tea"}, config("t"))
        asked = graph.get_state(config("t")).config
        graph.invoke(Command(resume="yes"), config("t"))
        graph.invoke(Command(resume="no"), asked)
    assert "outside" not in hows(path)
    run(path.with_name("exit.sqlite"), chain("a", "b", "c"), {"topic": "tea"}, durability="exit")
    (only,) = verdicts(path.with_name("exit.sqlite"))
    assert {(found.how, found.why) for found in only.values()} == {("unknown", "no checkpoint before it is stored")}


def test_supersteps_that_were_not_stored_are_counted_and_are_no_damage(path: Path) -> None:
    for _turn in range(2):
        run(path, chain("a", "b", "c"), {"topic": "tea"}, durability="exit")
    session = Session.open(str(path))
    try:
        tree = session.tree("t")
        assert [row.missing_steps for row in tree.rows()] == [(-1, 2), (4, 7)]
        assert tree.problems == []
    finally:
        session.close()
