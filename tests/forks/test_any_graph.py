"""Any graph, any point, any value: a fork that is run by LangGraph ends where the nodes lead from that value.

The graphs are drawn at random: layers of nodes that run side by side, nodes that ask, nodes that are graphs themselves, and a
`Send` for each of some numbers. What the nodes do is known here, so the end can be worked out without LangGraph.
"""

from __future__ import annotations

import operator
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from studio.requests import ForkRequest, ForkResult, Patch
from studio.session import Session
from tests.factories import config, saver_at

Kind = Literal["add", "ask", "inner", "send"]
ANSWER, LARGEST = 11, 997


class Numbers(TypedDict, total=False):
    total: Annotated[int, operator.add]
    log: Annotated[list[str], operator.add]
    given: int
    """Of one `Send`."""


class Layer:
    """Nodes that run in one superstep, each adding what it makes of the total."""

    def __init__(self, place: int, kinds: list[Kind], factor: int) -> None:
        self.place, self.kinds, self.factor = place, kinds, factor
        self.names = [f"{kind}{place}{index}" for index, kind in enumerate(kinds)]

    def step(self, total: int, index: int) -> int:
        return (total * self.factor + index) % LARGEST

    def after(self, total: int) -> int:
        """The total behind this layer."""
        grown = total
        for index, kind in enumerate(self.kinds):
            if kind == "ask":
                grown += ANSWER
            elif kind == "inner":
                grown += 2 * self.step(total, index)
            elif kind == "send":
                grown += sum(range(self.factor + 1))
            else:
                grown += self.step(total, index)
        return grown


def node(layer: Layer, index: int) -> Any:
    def adds(state: Numbers) -> dict[str, Any]:
        return {"total": layer.step(state["total"], index), "log": [layer.names[index]]}

    def asks(state: Numbers) -> dict[str, Any]:
        return {"total": interrupt(state["total"]), "log": [layer.names[index]]}

    kind = layer.kinds[index]
    if kind != "inner":
        return asks if kind == "ask" else adds

    class Inner(TypedDict, total=False):
        total: int
        made: int

    inner: StateGraph[Any] = StateGraph(Inner)
    inner.add_node("begin", lambda state: {"made": layer.step(state["total"], index)})
    inner.add_node("end", lambda state: {"made": state["made"] * 2})
    inner.add_edge(START, "begin")
    inner.add_edge("begin", "end")
    compiled = inner.compile()

    def calls(state: Numbers) -> dict[str, Any]:
        return {"total": compiled.invoke({"total": state["total"]})["made"], "log": [layer.names[index]]}

    return calls


def graph_of(layers: list[Layer]) -> StateGraph[Any]:
    builder: StateGraph[Any] = StateGraph(Numbers)
    before: list[str] | str = START
    for layer in layers:
        if layer.kinds == ["send"]:
            before = sends(builder, layer, before)
            continue
        for index, name in enumerate(layer.names):
            builder.add_node(name, node(layer, index))
            builder.add_edge(before, name)
        before = layer.names if len(layer.names) > 1 else layer.names[0]
    builder.add_edge(before, END)
    return builder


def sends(builder: StateGraph[Any], layer: Layer, before: list[str] | str) -> str:
    """A node that sends each of 0…factor to another, and one that they meet in."""
    name = layer.names[0]
    spread, met = f"spread{layer.place}", f"met{layer.place}"
    builder.add_node(spread, lambda state: {})
    builder.add_node(name, lambda state: {"total": state["given"], "log": [name]})
    builder.add_node(met, lambda state: {})
    builder.add_edge(before, spread)
    builder.add_conditional_edges(spread, lambda state: [Send(name, {"given": n}) for n in range(layer.factor + 1)], [name])
    builder.add_edge(name, met)
    return met


def run_to_the_end(graph: Any, given: Any, at: dict[str, Any]) -> dict[str, Any]:
    graph.invoke(given, at)
    now = {"configurable": {"thread_id": at["configurable"]["thread_id"]}}
    for _ in range(20):
        state = graph.get_state(now)
        if not state.next:
            return dict(state.values)
        assert any(task.interrupts for task in state.tasks)
        graph.invoke(Command(resume=ANSWER), now)
    raise AssertionError("it asks without end")


def file_of(layers: list[Layer], start: int, path: Path) -> list[Any]:
    """Run the graph to its end in a new file; its checkpoints, the newest first."""
    with saver_at(path) as saver:
        graph = graph_of(layers).compile(checkpointer=saver)
        assert run_to_the_end(graph, {"total": start, "log": []}, config("t"))["total"] == end_of(layers, start)
        return list(graph.get_state_history(config("t")))


def end_of(layers: list[Layer], total: int) -> int:
    for layer in layers:
        total = layer.after(total)
    return total


def run_fork(layers: list[Layer], fork: ForkResult, *, by_id: bool) -> int:
    """The total that LangGraph comes to from a fork in its scratch file."""
    assert fork.verified and fork.surprises == ()
    with closing(sqlite3.connect(fork.stored_in, check_same_thread=False)) as connection:
        graph = graph_of(layers).compile(checkpointer=SqliteSaver(connection))
        found = run_to_the_end(graph, None, config("t", fork.root.checkpoint_id if by_id else None))
    return int(found["total"])


kinds = st.one_of(st.lists(st.sampled_from(["add", "inner"]), min_size=1, max_size=3), st.just(["ask"]), st.just(["send"]))
drawn = st.lists(st.tuples(kinds, st.integers(1, 5)), min_size=1, max_size=4)


thorough = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@thorough
@given(drawn, st.integers(0, 100), st.integers(0, LARGEST), st.data())
def test_a_fork_with_another_value_ends_where_the_nodes_lead(
    shape: list[tuple[list[Kind], int]], start: int, value: int, data: st.DataObject
) -> None:
    layers = [Layer(place, kinds, factor) for place, (kinds, factor) in enumerate(shape)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.sqlite"
        begins: dict[int, str] = {}
        for state in reversed(file_of(layers, start, path)):
            for layer in layers:
                if set(state.next) == ({f"spread{layer.place}"} if layer.kinds == ["send"] else set(layer.names)):
                    begins.setdefault(layer.place, state.config["configurable"]["checkpoint_id"])
        assert sorted(begins) == [layer.place for layer in layers]
        place = data.draw(st.sampled_from(sorted(begins)))
        original = path.read_bytes()
        with closing(Session.open(str(path), scratch=str(Path(folder) / "forks.sqlite"))) as session:
            fork = session.fork(ForkRequest(session.resolve(begins[place], "t"), Patch({"/total": value})))
        assert run_fork(layers, fork, by_id=data.draw(st.booleans())) == end_of(layers[place:], value)
        assert path.read_bytes() == original


@thorough
@given(drawn, drawn, st.integers(1, 5), st.integers(0, 100), st.integers(0, LARGEST))
def test_a_fork_inside_a_subgraph_ends_where_its_node_and_all_behind_it_lead(
    before: list[tuple[list[Kind], int]], behind: list[tuple[list[Kind], int]], factor: int, start: int, value: int
) -> None:
    shape: list[tuple[list[Kind], int]] = [*before[:2], (["inner"], factor), *behind[:2]]
    layers = [Layer(place, kinds, factor) for place, (kinds, factor) in enumerate(shape)]
    place = len(before[:2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.sqlite"
        file_of(layers, start, path)
        original = path.read_bytes()
        with closing(Session.open(str(path), scratch=str(Path(folder) / "forks.sqlite"))) as session:
            inside = [
                row.checkpoint.address
                for row in session.tree("t").rows()
                if row.checkpoint.checkpoint_ns.startswith(f"inner{place}0:")
            ]
            at = next(address for address in inside if session.state(address).next == ("end",))
            fork = session.fork(ForkRequest(at, Patch({"/made": value})))
        entered = end_of(layers[:place], start)
        assert run_fork(layers, fork, by_id=False) == end_of(layers[place + 1 :], entered + 2 * value)
        assert path.read_bytes() == original
