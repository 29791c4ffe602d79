"""Graphs of many shapes, run for real, and the comparison of what the studio derives with what LangGraph reports."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from studio.diff import diff
from studio.explain import Explainer
from studio.model import Address, Change, State
from studio.stores import open_store
from tests.factories import config, saver_at


class Notes(TypedDict, total=False):
    topic: str
    log: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    answer: Any


class Alike(TypedDict, total=False):
    alike: Annotated[list[str], operator.add]


def says(name: str, **more: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda state: {"log": [name], **more}


def asks(question: str, times: int = 1) -> Callable[[Any], dict[str, Any]]:
    def node(state: Any) -> dict[str, Any]:
        answers = [interrupt(f"{question} {n}") for n in range(times)]
        return {"log": [f"{question}: {answer}" for answer in answers]}

    return node


def fails(state: Any) -> dict[str, Any]:
    raise ValueError("it broke")


def fails_last(siblings: int) -> Callable[[Any, RunnableConfig], dict[str, Any]]:
    """A node that fails once `siblings` others of its superstep have stored what they wrote: what comes after it is dropped."""

    def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        saver = config["configurable"]["__pregel_checkpointer"]
        here = {"configurable": {"thread_id": config["configurable"]["thread_id"], "checkpoint_ns": ""}}
        until = time.monotonic() + 20
        while len({task_id for task_id, *_ in saver.get_tuple(here).pending_writes}) < siblings and time.monotonic() < until:
            time.sleep(0.005)
        return fails(state)

    return node


def graph_of(nodes: dict[str, Any], edges: list[tuple[Any, str]], schema: Any = Notes, **options: Any) -> StateGraph[Any]:
    builder: StateGraph[Any] = StateGraph(schema)
    for name, node in nodes.items():
        builder.add_node(name, node, **options.get(name, {}))
    for source, target in edges:
        builder.add_edge(source, target)
    return builder


def chain(*names: str, **nodes: Any) -> StateGraph[Any]:
    """START -> names -> END; a node is `says(its name)` unless given."""
    made = {name: nodes.get(name, says(name)) for name in names}
    return graph_of(made, list(zip((START, *names), (*names, END), strict=True)))


def fan_out() -> StateGraph[Any]:
    """split -> left ∥ right -> (join) merge -> Send score ×N -> collect."""
    builder = graph_of(
        {
            "split": says("split"),
            "left": says("left", total=1),
            "right": says("right", total=2),
            "merge": says("merge"),
            "score": lambda item: {"log": [f"scored {item['note']}"]},
            "collect": says("collect"),
        },
        [
            *((START, "split"), ("split", "left"), ("split", "right")),
            *((["left", "right"], "merge"), ("score", "collect"), ("collect", END)),
        ],
    )
    builder.add_conditional_edges("merge", lambda state: [Send("score", {"note": note}) for note in state["log"]], ["score"])
    return builder


def deferred() -> StateGraph[Any]:
    """start -> short, start -> long1 -> long2; last waits for all of it."""
    names = ("start", "short", "long1", "long2", "last")
    return graph_of(
        {name: says(name) for name in names},
        [
            *((START, "start"), ("start", "short"), ("start", "long1"), ("long1", "long2")),
            *(("short", "last"), ("long2", "last"), ("last", END)),
        ],
        last={"defer": True},
    )


def nested() -> StateGraph[Any]:
    """outer -> middle[inner[ask]] -> done."""
    inner = chain("think", "ask", ask=asks("deep")).compile()
    middle = chain("open", "inner", inner=inner).compile()
    return chain("outer", "middle", "done", middle=middle)


def going() -> StateGraph[Any]:
    """A node that chooses its successor by a command, `far` being unreachable otherwise."""

    def choose(state: Any) -> Command[Any]:
        return Command(goto="far", update={"log": ["choose"]})

    nodes = {"choose": choose, "near": says("near"), "far": says("far")}
    return graph_of(nodes, [(START, "choose"), ("near", END), ("far", END)])


def quarrel(broken: Any = None) -> StateGraph[Any]:
    """ask ∥ break ∥ work in one step; break is the last to end unless another node is given for it."""
    names = {"ask": asks("go on?"), "break": broken or fails_last(2), "work": says("work", total=5)}
    return graph_of(names, [(START, name) for name in names])


@contextmanager
def explained(path: Path) -> Iterator[Explainer]:
    store = open_store(str(path))
    try:
        yield Explainer(store)
    finally:
        store.close()


def assert_like_langgraph(path: Path, graph: StateGraph[Any], thread: str = "t", defaults: tuple[str, ...] = ()) -> list[State]:
    """Every state of every namespace that LangGraph can reach equals what `get_state_history` reports. Oldest first.

    `defaults`: channels whose empty default LangGraph adds although no file holds it.
    """
    found: list[State] = []
    with saver_at(path) as saver, explained(path) as explainer:
        compiled = graph.compile(checkpointer=saver)
        for snapshot in reversed(list(compiled.get_state_history(config(thread)))):
            found.append(assert_same(explainer, thread, "", snapshot, defaults))
    return found


def assert_same(explainer: Explainer, thread: str, ns: str, snapshot: Any, defaults: tuple[str, ...] = ()) -> State:
    state = explainer.state(Address(thread, ns, snapshot.config["configurable"]["checkpoint_id"]))
    tasks = [task for task in state.tasks if "node_error_handler" not in (task.path or "")]
    assert sorted(map(str, state.next or ())) == sorted(task.name for task in snapshot.tasks)
    assert sorted((str(t.name), str(t.id), t.error is not None) for t in tasks) == sorted(
        (t.name, t.id, t.error is not None) for t in snapshot.tasks
    )
    by_id = {task.id: task for task in tasks}
    for task in snapshot.tasks:
        mine = by_id[task.id].interrupts
        assert [(one.id, one.value) for one in mine] == [(one.id, one.value) for one in task.interrupts]
    values = {name: value for name, value in (snapshot.values or {}).items() if name in state.values or name not in defaults}
    assert dict(state.values) == values
    return state


def head(explainer: Explainer, thread: str = "t", ns: str = "") -> State:
    headers = [header for _, header in explainer.store.checkpoints(thread) if header.checkpoint_ns == ns]
    return explainer.state(headers[-1].address)


def before(states: list[State], *nodes: str) -> State:
    """The first state from which exactly these nodes run."""
    return next(state for state in states if sorted(map(str, state.next or ())) == sorted(nodes))


def changes(explainer: Explainer, after: State) -> tuple[Change, ...]:
    """What a checkpoint changed against its stored parent, with authors."""
    address, parent = after.checkpoint.address, after.checkpoint.parent_checkpoint_id
    earlier = explainer.state(Address(address.thread_id, address.checkpoint_ns, parent)) if parent else None
    return explainer.with_authors(earlier, after, diff(earlier.values if earlier else None, after.values))


def authors(explainer: Explainer, after: State) -> dict[str, set[str | None]]:
    """path -> nodes, of the changes of a checkpoint."""
    return {change.path: {author.node for author in change.authors} for change in changes(explainer, after)}


def bases(found: tuple[Change, ...]) -> set[str]:
    return {author.basis for change in found for author in change.authors}
