"""Who made a change: what the rows prove, what an edit or input did, and what nobody can be named for."""

from __future__ import annotations

import contextlib
import cProfile
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Overwrite, Send

from studio.comparing import unexplained
from studio.explain import Explainer
from studio.model import Address, State
from studio.session import Session
from tests.explain.graphs import asks, authors, bases, before, chain, changes, explained, fan_out, graph_of, says
from tests.factories import config, saver_at


class Many(TypedDict, total=False):
    out: Annotated[list[Any], operator.add]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sqlite"


def run(path: Path, graph: StateGraph[Any], *inputs: Any) -> None:
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        for given in inputs:
            compiled.invoke(given, config("t"))


def all_states(explainer: Explainer) -> list[State]:
    return list(explainer.states(explainer.store.scan("t")))


def child_of(states: list[State], parent: State) -> State:
    return next(s for s in states if s.checkpoint.parent_checkpoint_id == parent.checkpoint.checkpoint_id)


def test_each_item_of_a_list_has_its_own_author(path: Path) -> None:
    run(path, fan_out(), {"topic": "tea"})
    with explained(path) as explainer:
        states = all_states(explainer)
        after = child_of(states, before(states, "left", "right"))
        assert authors(explainer, after) == {"/log/1": {"left"}, "/log/2": {"right"}, "/total": {"left", "right"}}
        scored = child_of(states, before(states, *["score"] * 4))
        found = changes(explainer, scored)
        assert [len(change.authors) for change in found] == [1, 1, 1, 1]
        assert len({change.authors[0].task_id for change in found}) == 4
        assert bases(found) == {"writes"}


def test_the_author_of_an_input_is_start(path: Path) -> None:
    run(path, chain("a"), {"topic": "tea", "log": ["said"]})
    with explained(path) as explainer:
        states = all_states(explainer)
        first = child_of(states, before(states, "__start__"))
        assert authors(explainer, first) == {"/topic": {"__start__"}, "/log": {"__start__"}}


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    facts: Annotated[dict[str, Any], operator.or_]
    seen: Annotated[set[str], operator.or_]


def test_messages_by_id_keys_of_a_map_and_members_of_a_set(path: Path) -> None:
    def edit(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("better", id="m1")], "facts": {"a": 1}, "seen": {"x"}}

    def add(state: Any) -> dict[str, Any]:
        return {"messages": AIMessage("new"), "facts": {"b": 2}, "seen": {"y"}}

    def remove(state: Any) -> dict[str, Any]:
        return {"messages": [RemoveMessage("m0")]}

    graph = graph_of(
        {"edit": edit, "add": add, "remove": remove},
        [("__start__", "edit"), ("__start__", "add"), ("add", "remove")],
        Chat,
    )
    run(path, graph, {"messages": [HumanMessage("hi", id="m0"), AIMessage("draft", id="m1")]})
    with explained(path) as explainer:
        states = all_states(explainer)
        step = child_of(states, before(states, "add", "edit"))
        found = authors(explainer, step)
        assert found["/messages/1/content"] == {"edit"}
        assert found["/messages/2"] == {"add"}, "a message that got its id from the reducer is found by its content"
        merged = [nodes for path, nodes in found.items() if path.startswith(("/facts", "/seen"))]
        assert set().union(*merged) == {"add", "edit"}
        gone = changes(explainer, child_of(states, before(states, "remove")))
        assert [(change.op, change.authors[0].node) for change in gone] == [("remove", "remove")]


class Equal(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    notes: Annotated[dict[str, Any], operator.or_]
    messages: Annotated[list[AnyMessage], add_messages]
    sorted: Annotated[list[str], lambda old, new: sorted([*old, *new])]


def alike() -> StateGraph[Any]:
    """Three nodes at once that write equal items and the same keys."""

    def node(log: list[str], notes: dict[str, Any], text: str, words: list[str]) -> Any:
        message = AIMessage(text, id="same")
        return lambda state: {"log": log, "notes": notes, "messages": [message], "sorted": words}

    builder = StateGraph(Equal)
    builder.add_node("a", node(["ok"], {"k": 1, "only": "a"}, "one", ["b"]))
    builder.add_node("b", node(["ok"], {"k": 1}, "two", ["a"]))
    builder.add_node("c", node(["x", "ok"], {"k": 2}, "three", ["b"]))
    for name in ("a", "b", "c"):
        builder.add_edge(START, name)
    return builder


def test_equal_items_of_parallel_writers_are_told_apart_by_the_order_in_which_they_were_applied(path: Path) -> None:
    run(path, alike(), {"log": ["start"], "notes": {"k": 0}, "messages": [AIMessage("zero", id="same")], "sorted": []})
    with explained(path) as explainer:
        states = all_states(explainer)
        found = authors(explainer, child_of(states, before(states, "a", "b", "c")))
        assert found == {
            "/log/1": {"a"},
            "/log/2": {"b"},
            "/log/3": {"c"},
            "/log/4": {"c"},
            "/notes/k": {"c"},
            "/notes/only": {"a"},
            "/messages/0/content": {"c"},
            "/sorted/0": {"b"},
            "/sorted/1": {"a", "c"},
            "/sorted/2": {"a", "c"},
        }


def test_without_the_stored_order_all_who_wrote_an_equal_item_are_named(path: Path) -> None:
    run(path, alike(), {"log": ["start"], "notes": {"k": 0}})
    with saver_at(path) as saver:
        saver.conn.execute("ALTER TABLE writes DROP COLUMN task_path")
    with explained(path) as explainer:
        states = all_states(explainer)
        found = authors(explainer, child_of(states, before(states, "a", "b", "c")))
        assert found["/log/1"] == found["/log/2"] == {"a", "b", "c"}
        assert found["/log/3"] == {"c"}


def test_an_overwrite_is_the_work_of_its_node(path: Path) -> None:
    run(path, chain("a", "b", b=lambda state: {"log": Overwrite(["anew"])}), {"topic": "tea"})
    with explained(path) as explainer:
        states = all_states(explainer)
        found = changes(explainer, child_of(states, before(states, "b")))
        assert {author.node for change in found for author in change.authors} == {"b"}


def test_an_edit_has_the_edit_as_its_source_and_hides_no_finished_sibling(path: Path) -> None:
    graph = chain("a", "b", "c")
    run(path, graph, {"topic": "tea"})
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        at_b = next(s for s in compiled.get_state_history(config("t")) if s.next == ("b",))
        edited = compiled.update_state(at_b.config, {"topic": "edited"}, as_node="b")
    with explained(path) as explainer:
        state = explainer.state(Address("t", "", edited["configurable"]["checkpoint_id"]))
        found = changes(explainer, state)
        assert [(change.path, change.authors[0].basis) for change in found] == [("/topic", "source")]


def test_a_copy_keeps_the_authors_of_what_it_copies(path: Path) -> None:
    graph = chain("a", "b")
    run(path, graph, {"topic": "tea"})
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        at_b = next(s for s in compiled.get_state_history(config("t")) if s.next == ("b",))
        copied = compiled.update_state(at_b.config, None, as_node="__copy__")
    with explained(path) as explainer:
        state = explainer.state(Address("t", "", copied["configurable"]["checkpoint_id"]))
        assert authors(explainer, state) == {"/log": {"a"}}


def test_stale_rows_are_not_named_for_a_child_that_they_do_not_explain(path: Path) -> None:
    """Answering again at a superseded checkpoint reuses the task id: the first rows stay, the second child has other values."""
    tries = iter(range(10))

    def ask(state: Any) -> dict[str, Any]:
        said = asks("ok?")(state)["log"][0]
        return {"log": [f"{said}, try {next(tries)}"]}

    graph = chain("ask", "end", ask=ask)
    run(path, graph, {"topic": "tea"}, Command(resume="yes"))
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        asked = next(s for s in compiled.get_state_history(config("t")) if s.next == ("ask",))
        compiled.invoke(Command(resume="yes"), asked.config)
    with explained(path) as explainer:
        states = all_states(explainer)
        first, second = [s for s in states if s.checkpoint.parent_checkpoint_id == asked.config["configurable"]["checkpoint_id"]]
        assert first.values != second.values
        assert authors(explainer, first) == {"/log": {"ask"}}
        assert bases(changes(explainer, second)) == {"none"}


def test_a_value_that_no_write_explains_is_reported_and_not_blamed(path: Path) -> None:
    import sqlite3

    import ormsgpack

    run(path, chain("a", "b"), {"topic": "tea"})
    with explained(path) as explainer:
        late = next(s for s in all_states(explainer) if s.values.get("log") == ["a"])
    with sqlite3.connect(path) as connection:
        where = (late.checkpoint.checkpoint_id,)
        (blob,) = connection.execute("SELECT checkpoint FROM checkpoints WHERE checkpoint_id = ?", where).fetchone()
        damaged = blob.replace(ormsgpack.packb(["a"]), ormsgpack.packb(["a", "in place"]))
        connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (damaged, *where))
    connection.close()
    with explained(path) as explainer:
        state = explainer.state(late.checkpoint.address)
        parent = explainer.state(Address("t", "", str(state.checkpoint.parent_checkpoint_id)))
        found = changes(explainer, state)
        assert bases(found) == {"none"}
        assert [problem.kind for problem in unexplained(state, explainer.checked(parent, state))] == ["unexplained-value"]


def test_a_reducer_of_ones_own_is_attributed_to_its_only_writer_as_inferred(path: Path) -> None:
    class Odd(TypedDict, total=False):
        text: Annotated[str, lambda old, new: f"<{old}|{new}>"]

    run(path, graph_of({"n": lambda state: {"text": "x"}}, [("__start__", "n")], Odd), {"text": "in"})
    with explained(path) as explainer:
        states = all_states(explainer)
        found = changes(explainer, child_of(states, before(states, "n")))
        assert [(change.authors[0].node, change.authors[0].basis) for change in found] == [("n", "versions")]


def test_why_a_task_ran_names_the_writer_of_its_trigger(path: Path) -> None:
    run(path, fan_out(), {"topic": "tea"})
    with explained(path) as explainer:
        states = all_states(explainer)

        def why(*nodes: str) -> dict[str, set[str | None]]:
            return {t.channel: {a.node for a in t.authors} for one in before(states, *nodes).tasks for t in one.triggers}

        assert why("__start__") == {"__start__": {"__start__"}}
        assert why("left", "right") == {"branch:to:left": {"split"}, "branch:to:right": {"split"}}
        assert why("merge") == {"join:left+right:merge": {"left", "right"}}
        assert why("score", "score", "score", "score") == {"__pregel_tasks": {"merge"}}
        assert why("collect") == {"branch:to:collect": {"score"}}


def test_a_join_that_was_entered_in_two_steps_names_both_sides(path: Path) -> None:
    names = ("near", "far1", "far2", "meet")
    graph = graph_of(
        {name: says(name) for name in names},
        [("__start__", "near"), ("__start__", "far1"), ("far1", "far2"), (["near", "far2"], "meet")],  # type: ignore[list-item]
    )
    run(path, graph, {"topic": "tea"})
    with explained(path) as explainer:
        trigger = before(all_states(explainer), "meet").tasks[0].triggers[0]
        assert {(author.node, author.basis) for author in trigger.authors} == {("far2", "writes"), ("near", "versions")}


def test_a_step_of_many_sends_costs_as_much_as_there_are(tmp_path: Path) -> None:
    def calls(count: int) -> int:
        path = tmp_path / f"{count}.sqlite"
        builder: StateGraph[Any] = StateGraph(Many)
        builder.add_node("work", lambda state: {"out": [{"n": state["n"]}]})
        builder.add_conditional_edges(START, lambda state: [Send("work", {"n": n}) for n in range(count)], ["work"])
        with saver_at(path) as saver:
            builder.compile(checkpointer=saver).invoke({"out": []}, config("t"))
        with contextlib.closing(Session.open(str(path))) as session:
            head = session.tree("t").leaves()[0]
            above = session.tree("t").parent(head)
            assert above is not None
            profile = cProfile.Profile()
            profile.enable()
            tasks, changes = session.state(above).tasks, session.compare(head).changes
            profile.disable()
        assert [author.node for author in tasks[-1].triggers[0].authors] == ["__start__"]
        assert len(tasks) == len(changes) == count
        assert {change.after["n"]: change.authors[0].task_id for change in changes} == {
            n: task.id for n, task in enumerate(tasks)
        }
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(800) < 5 * calls(200)
