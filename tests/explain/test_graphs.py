"""The graphs that a thread showed: which nodes ran in which graph, and who led to whom, whatever way a node was started."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from studio.model import SeenGraph
from tests.explain.graphs import Notes, chain, deferred, explained, fails, fan_out, going, graph_of, nested, quarrel, says
from tests.factories import config, saver_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sqlite"


def run(path: Path, builder: StateGraph[Any], *inputs: Any) -> None:
    with saver_at(path) as saver:
        graph = builder.compile(checkpointer=saver)
        for given in inputs or ({"topic": "tea"},):
            try:
                graph.invoke(given, config("t"))
            except ValueError:
                pass


def graphs(path: Path) -> dict[str, SeenGraph]:
    with explained(path) as explainer:
        return {graph.ns: graph for graph in explainer.graphs("t")}


def edges(graph: SeenGraph) -> dict[tuple[str, str], int]:
    return {(edge.source, edge.target): edge.count for edge in graph.edges}


def runs(graph: SeenGraph) -> dict[str, int]:
    return {node.name: node.runs for node in graph.nodes}


def test_every_graph_has_its_own_edges_however_deep_it_lies(path: Path) -> None:
    run(path, nested(), {"topic": "tea"}, Command(resume="yes"), {"topic": "milk"}, Command(resume="no"))
    found = graphs(path)
    assert list(found) == ["", "middle", "middle|inner"]
    assert edges(found[""]) == dict.fromkeys([(START, "outer"), ("outer", "middle"), ("middle", "done"), ("done", END)], 2)
    assert edges(found["middle"]) == dict.fromkeys([(START, "open"), ("open", "inner"), ("inner", END)], 2)
    assert edges(found["middle|inner"]) == dict.fromkeys([(START, "think"), ("think", "ask"), ("ask", END)], 2)
    assert runs(found["middle|inner"]) == {START: 2, "think": 2, "ask": 2, END: 0}, "asking and answering is one run"


def test_nodes_stand_in_the_order_in_which_they_first_ran_and_name_where_each_run_began(path: Path) -> None:
    run(path, fan_out())
    [graph] = graphs(path).values()
    assert [node.name for node in graph.nodes] == [START, "split", "left", "right", "merge", "score", "collect", END]
    score = graph.nodes[5]
    assert score.runs == len(score.ran_from) == 4
    assert len(set(score.ran_from)) == 1, "four Sends of one superstep"


def test_a_goto_is_an_edge_and_what_was_never_taken_is_not_there(path: Path) -> None:
    run(path, going())
    [graph] = graphs(path).values()
    assert edges(graph) == {(START, "choose"): 1, ("choose", "far"): 1, ("far", END): 1}
    assert "near" not in runs(graph)


def test_a_loop_and_a_turn_of_a_chat_count_each_time(path: Path) -> None:
    builder: StateGraph[Any] = StateGraph(Notes)
    builder.add_node("step", lambda state: {"total": 1})
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: "step" if state["total"] % 3 else END, ["step", END])
    run(path, builder, {"topic": "a"}, {"topic": "b"})
    [graph] = graphs(path).values()
    assert edges(graph) == {("step", "step"): 4, (START, "step"): 2, ("step", END): 2}


def test_a_deferred_node_was_led_to_by_all_that_it_waited_for(path: Path) -> None:
    run(path, deferred())
    found = edges(graphs(path)[""])
    assert {pair for pair in found if pair[1] == "last"} == {("short", "last"), ("long2", "last")}
    assert set(found.values()) == {1}


def test_a_failed_or_waiting_task_led_nowhere(path: Path) -> None:
    run(path, quarrel())
    [graph] = graphs(path).values()
    assert runs(graph) == {START: 1, "ask": 1, "break": 1, "work": 1, END: 0}
    assert edges(graph) == {**dict.fromkeys([(START, "ask"), (START, "break"), (START, "work")], 1), ("work", END): 1}


def test_a_handler_that_took_over_was_led_to_by_the_task_that_failed(path: Path) -> None:
    builder = graph_of(
        {"bad": fails, "after": says("after")},
        [(START, "bad"), ("bad", "after"), ("after", END)],
        bad={"error_handler": says("saved")},
    )
    run(path, builder)
    found = edges(graphs(path)[""])
    handler = "__error_handler__bad"
    assert found == {(START, "bad"): 1, ("bad", handler): 1, (handler, END): 1}


def test_edits_are_neither_runs_nor_edges(path: Path) -> None:
    run(path, chain("a", "b", "c"))
    before = graphs(path)
    with saver_at(path) as saver:
        graph = chain("a", "b", "c").compile(checkpointer=saver)
        graph.update_state(config("t"), {"log": ["by hand"]}, as_node="a")
    after = graphs(path)
    assert edges(after[""]) == edges(before[""])
    assert runs(after[""]) == runs(before[""])
    run(path, chain("a", "b", "c"), None)
    assert edges(graphs(path)[""]) == {(START, "a"): 1, ("a", "b"): 1, ("b", "c"): 2, ("c", END): 2}, (
        "what ran from the edit counts"
    )


def test_a_replay_counts_what_ran_again_and_nothing_else(path: Path) -> None:
    run(path, chain("a", "b"))
    with saver_at(path) as saver:
        graph = chain("a", "b").compile(checkpointer=saver)
        last_but_one = list(graph.get_state_history(config("t")))[1]
        graph.invoke(None, last_but_one.config)
    assert edges(graphs(path)[""]) == {(START, "a"): 1, ("a", "b"): 1, ("b", END): 2}


def test_a_function_is_one_node_between_start_and_end(path: Path) -> None:
    @task
    def double(number: int) -> int:
        return 2 * number

    with saver_at(path) as saver:

        @entrypoint(checkpointer=saver)
        def flow(number: int) -> int:
            return double(number).result()

        flow.invoke(3, config("t"))
    [graph] = graphs(path).values()
    assert edges(graph) == {(START, "flow"): 1, ("flow", END): 1}


def test_rows_that_wait_for_their_checkpoint_are_no_runs_yet(path: Path) -> None:
    run(path, chain("a", "b"))
    before = graphs(path)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO writes SELECT thread_id, checkpoint_ns, '1fffffff-0000-6000-8000-000000000000', task_id, idx, channel, "
            "type, value, task_path FROM writes"
        )
    connection.close()
    assert graphs(path) == before


def test_a_count_is_kept_until_the_store_changes(path: Path) -> None:
    run(path, chain("a"))
    with explained(path) as explainer:
        assert not explainer.graphs_known("t")
        counted = explainer.graphs("t")
        assert explainer.graphs_known("t") and explainer.graphs("t") is counted
        run(path, chain("a"))
        explainer.forget()
        assert not explainer.graphs_known("t")
        assert edges(explainer.graphs("t")[0])["a", END] == 2
