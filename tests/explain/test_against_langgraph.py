"""Next, tasks, ids, questions and values of real threads are what `get_state_history` reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt

from studio.model import Address
from tests.explain.graphs import (
    asks,
    assert_like_langgraph,
    assert_same,
    before,
    chain,
    deferred,
    explained,
    fails,
    fan_out,
    going,
    graph_of,
    head,
    nested,
    quarrel,
    says,
)
from tests.factories import config, saver_at

EMPTY = ("log", "total")


def run(path: Path, graph: StateGraph[Any], *inputs: Any, thread: str = "t", **options: Any) -> None:
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        for given in inputs:
            try:
                compiled.invoke(given, config(thread), **options)
            except ValueError:
                pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sqlite"


def test_a_chain_with_two_turns(path: Path) -> None:
    graph = chain("a", "b")
    run(path, graph, {"topic": "one"}, {"topic": "two"})
    states = assert_like_langgraph(path, graph, defaults=EMPTY)
    assert [state.next for state in states] == [("__start__",), ("a",), ("b",), (), ("__start__",), ("a",), ("b",), ()]
    assert states[-1].status == "done"


def test_parallel_nodes_a_join_and_sends(path: Path) -> None:
    graph = fan_out()
    run(path, graph, {"topic": "tea"})
    states = assert_like_langgraph(path, graph, defaults=EMPTY)
    scored = before(states, "score", "score", "score", "score")
    assert [one.arg for one in scored.tasks] == [{"note": note} for note in ("split", "left", "right", "merge")]
    assert {one.status for one in scored.tasks} == {"done"}


def test_a_deferred_node_waits_for_the_longer_way(path: Path) -> None:
    graph = deferred()
    run(path, graph, {"topic": "tea"})
    states = assert_like_langgraph(path, graph, defaults=EMPTY)
    assert before(states, "long2") and before(states, "last")


def test_a_command_chooses_the_next_node(path: Path) -> None:
    graph = going()
    run(path, graph, {"topic": "tea"})
    assert before(assert_like_langgraph(path, graph, defaults=EMPTY), "far")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_durability(path: Path, durability: Any) -> None:
    graph = chain("a", "b", "ask", ask=asks("ok?"))
    run(path, graph, {"topic": "tea"}, durability=durability)
    states = assert_like_langgraph(path, graph, defaults=EMPTY)
    assert states[-1].status == "paused"


def test_several_questions_are_told_apart_and_one_answer_is_not_all(path: Path) -> None:
    graph = graph_of({name: asks(name) for name in ("x", "y", "z")}, [("__start__", name) for name in ("x", "y", "z")])
    run(path, graph, {"topic": "tea"})
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        first = compiled.get_state(config("t")).interrupts[0]
        compiled.invoke(Command(resume={first.id: "yes"}), config("t"))
    state = assert_like_langgraph(path, graph, defaults=EMPTY)[-1]
    asked = [question for one in state.tasks for question in one.interrupts]
    assert [(question.value, question.answer) for question in asked if question.answered] == [("x 0", "yes")]
    assert sum(not question.answered for question in asked) == 2
    assert state.status == "paused"


def test_a_second_question_of_one_node_is_open_although_the_first_was_answered(path: Path) -> None:
    graph = chain("ask", ask=asks("sure?", times=2))
    run(path, graph, {"topic": "tea"}, Command(resume="one"))
    waiting = assert_like_langgraph(path, graph, defaults=EMPTY)[-1]
    assert [(q.value, q.answered) for q in waiting.tasks[0].interrupts] == [("sure? 1", False)]
    assert waiting.status == "paused"
    run(path, graph, Command(resume="two"))
    done = assert_like_langgraph(path, graph, defaults=EMPTY)
    asked = before(done, "ask").tasks[0].interrupts
    assert [(q.value, q.answered, q.answer) for q in asked] == [("sure? 1", True, "two")]


def test_one_step_with_a_failure_a_question_and_a_finished_sibling(path: Path) -> None:
    graph = quarrel()
    run(path, graph, {"topic": "tea"})
    state = assert_like_langgraph(path, graph, defaults=EMPTY)[-1]
    by_name = {one.name: one for one in state.tasks}
    assert {name: one.status for name, one in by_name.items()} == {"ask": "paused", "break": "failed", "work": "done"}
    assert by_name["break"].error == "ValueError('it broke')"
    assert sorted(map(str, state.next or ())) == ["ask", "break", "work"]
    assert state.status == "failed"


def test_an_error_handler_is_a_task_of_its_own_beside_the_failed_one(path: Path) -> None:
    nodes = {"bad": fails, "after": says("after")}
    graph = graph_of(nodes, [("__start__", "bad"), ("bad", "after")], bad={"error_handler": says("saved")})
    run(path, graph, {"topic": "tea"})
    states = assert_like_langgraph(path, graph, defaults=EMPTY)
    failed = before(states, "bad")
    assert [(one.name, one.status) for one in failed.tasks] == [("bad", "failed"), ("__error_handler__bad", "done")]


def test_stopping_before_a_node_is_ready_not_paused(path: Path) -> None:
    graph = chain("a", "b")
    run(path, graph, {"topic": "tea"}, interrupt_before=["b"])
    state = assert_like_langgraph(path, graph, defaults=EMPTY)[-1]
    assert (state.next, state.status) == (("b",), "ready")
    assert state.tasks[0].status == "pending"


def test_subgraphs_three_levels_deep(path: Path) -> None:
    graph = nested()
    run(path, graph, {"topic": "tea"})
    states = assert_like_langgraph(path, graph, defaults=EMPTY)
    with saver_at(path) as saver, explained(path) as explainer:
        compiled = graph.compile(checkpointer=saver)
        snapshot = compiled.get_state(config("t"), subgraphs=True)
        inner_ns = ""
        for level in ("middle", "inner"):
            waiting = next(one for one in snapshot.tasks if one.name == level)
            snapshot = waiting.state
            ns = snapshot.config["configurable"]["checkpoint_ns"]
            parent = head(explainer, ns=inner_ns)
            assert next(one.subgraph_ns for one in parent.tasks if one.name == level) == (ns,)
            inner_ns = ns
            assert_same(explainer, "t", ns, snapshot, EMPTY)
        assert head(explainer, ns=inner_ns).status == "paused"
    assert states[-1].tasks[0].interrupts[0].value == "deep 0"
    run(path, graph, Command(resume="yes"))
    with saver_at(path) as saver, explained(path) as explainer:
        compiled = graph.compile(checkpointer=saver)
        for ns in {header.checkpoint_ns for _, header in explainer.store.checkpoints("t")}:
            for snapshot in compiled.get_state_history(config("t", ns=ns)):
                assert_same(explainer, "t", ns, snapshot, EMPTY)


def test_the_answer_to_a_question_from_below_is_shown_at_every_level(path: Path) -> None:
    graph = nested()
    run(path, graph, {"topic": "tea"})
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        question = compiled.get_state(config("t")).interrupts[0]
        compiled.invoke(Command(resume={question.id: "yes"}), config("t"))
    with explained(path) as explainer:
        states = explainer.states(explainer.store.scan("t"))
        asked = [one for state in states for part in state.tasks for one in part.interrupts]
    assert [(one.id, one.answered, one.answer) for one in asked] == [(question.id, True, "yes")] * 3


def test_a_subgraph_with_its_own_memory_belongs_to_each_run_of_its_node(path: Path) -> None:
    memory = chain("remember").compile(checkpointer=True)
    graph = chain("a", "memory", memory=memory)
    run(path, graph, {"topic": "one"}, {"topic": "two"})
    with explained(path) as explainer:
        states = list(explainer.states(explainer.store.scan("t")))
    callers = [one for state in states for one in state.tasks if one.name == "memory"]
    assert [one.subgraph_ns for one in callers] == [("memory",), ("memory",)]
    inner = [state for state in states if state.checkpoint.checkpoint_ns == "memory"]
    assert [one.name for state in inner for one in state.tasks] == ["__start__", "remember"] * 2


def test_edits_of_every_kind(path: Path) -> None:
    graph = chain("a", "b", "c")
    run(path, graph, {"topic": "tea"})
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        at_b = next(s for s in compiled.get_state_history(config("t")) if s.next == ("b",))
        compiled.update_state(at_b.config, {"topic": "edited"}, as_node="b")
        compiled.update_state(at_b.config, None, as_node="__copy__")
        compiled.update_state(config("t"), {"log": ["at the head"]}, as_node="a")
        compiled.invoke(None, config("t"))
        compiled.update_state(config("t"), {"log": ["after the end"]}, as_node="a")
        compiled.update_state(config("t"), None, as_node="__end__")
        compiled.invoke(None, at_b.config)
        compiled.invoke({"topic": "again"}, at_b.config)
    assert_like_langgraph(path, graph, defaults=EMPTY)


def test_a_command_from_outside_is_part_of_the_values_it_meets(path: Path) -> None:
    graph = chain("a", "ask", "b", ask=asks("ok?"))
    run(path, graph, {"topic": "tea"}, Command(update={"topic": "coffee", "log": ["told"]}))
    states = assert_like_langgraph(path, graph, defaults=EMPTY)
    assert states[-1].values == {"topic": "coffee", "log": ["a", "told"]}
    assert states[-1].others[0].writes[0].value == "coffee"


def test_an_entrypoint_is_named_and_shows_the_calls_it_made(path: Path) -> None:
    @task
    def double(n: int) -> int:
        return n * 2

    @task
    def review(n: int) -> Any:
        return interrupt(f"is {n} right?")

    with saver_at(path) as saver:

        @entrypoint(checkpointer=saver)
        def basket(n: int) -> Any:
            return {"sum": double(n).result(), "said": review(n).result()}

        basket.invoke(3, config("t"))
        with explained(path) as explainer:
            waiting = assert_same(explainer, "t", "", basket.get_state(config("t")))
        assert waiting.status == "paused"
        assert [(one.status, [w.value for w in one.writes]) for one in waiting.tasks[0].calls] == [("done", [6]), ("paused", [])]
        basket.invoke(Command(resume="yes"), config("t"))
        with explained(path) as explainer:
            done = head(explainer)
            assert done.next == () and done.internal["__end__"] == {"sum": 6, "said": "yes"}
            first = explainer.state(Address("t", "", str(done.checkpoint.parent_checkpoint_id)))
            assert first.next == ("basket",)
