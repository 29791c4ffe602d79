"""Graphs for the fork tests: each node notes its name in `RAN`, so that a test sees which bodies really ran."""

from __future__ import annotations

import operator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel

from tests.factories import config, saver_at

RAN: list[str] = []


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Money:
    amount: int
    currency: str = "EUR"


class Customer(BaseModel):
    name: str
    tags: list[str] = []


class OrderState(TypedDict, total=False):
    item: str
    count: int
    price: float
    size: Size
    cost: Money
    customer: Customer
    labels: set[str]
    placed: datetime
    log: Annotated[list[str], operator.add]
    note: str


def _step(name: str, **values: Any) -> Any:
    def node(state: Any) -> dict[str, Any]:
        RAN.append(name)
        return {"log": [name], **values}

    return node


def order_graph(saver: Any) -> Any:
    """a -> b -> route -> c | d -> end; `count` > 5 goes to d."""

    def priced(state: OrderState) -> dict[str, Any]:
        RAN.append("b")
        return {"log": ["b"], "price": float(state["count"]) * 2.0}

    def last(name: str) -> Any:
        def node(state: OrderState) -> dict[str, Any]:
            RAN.append(name)
            kinds = [type(state[key]).__name__ for key in ("size", "cost", "customer", "labels", "placed")]
            return {"log": [name], "note": f"{name}: {' '.join(kinds)}, {state['cost'].amount} {state['cost'].currency}"}

        return node

    builder: StateGraph[Any] = StateGraph(OrderState)
    made = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    builder.add_node(
        "a",
        _step("a", size=Size.LARGE, cost=Money(10), customer=Customer(name="Ada", tags=["new"]), labels={"x", "y"}, placed=made),
    )
    builder.add_node("b", priced)
    builder.add_node("c", last("c"))
    builder.add_node("d", last("d"))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_conditional_edges("b", lambda state: "d" if state["count"] > 5 else "c", ["c", "d"])
    builder.add_edge("c", END)
    builder.add_edge("d", END)
    return builder.compile(checkpointer=saver)


def join_graph(saver: Any) -> Any:
    """start -> left, right -> joined -> last; and `tail`, deferred, after last."""
    builder: StateGraph[Any] = StateGraph(OrderState)
    for name in ("start", "left", "right", "joined", "last"):
        builder.add_node(name, _step(name))
    builder.add_node("tail", _step("tail"), defer=True)
    builder.add_edge(START, "start")
    builder.add_edge("start", "left")
    builder.add_edge("start", "right")
    builder.add_edge(["left", "right"], "joined")
    builder.add_edge("joined", "last")
    builder.add_edge("last", "tail")
    return builder.compile(checkpointer=saver)


def send_graph(saver: Any) -> Any:
    """plan -> Send work x3 -> done."""

    def work(task: dict[str, Any]) -> dict[str, Any]:
        RAN.append(f"work {task['n']}")
        return {"log": [f"work {task['n']}"]}

    builder: StateGraph[Any] = StateGraph(OrderState)
    builder.add_node("plan", _step("plan"))
    builder.add_node("work", work)
    builder.add_node("done", _step("done"))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda state: [Send("work", {"n": n}) for n in (1, 2, 3)], ["work"])
    builder.add_edge("work", "done")
    return builder.compile(checkpointer=saver)


def ask_graph(saver: Any) -> Any:
    """before -> ask (interrupt), beside -> after; a pause with a finished sibling."""

    def ask(state: OrderState) -> dict[str, Any]:
        RAN.append("ask")
        return {"log": [f"answer {interrupt({'sell': state.get('item')})}"]}

    builder: StateGraph[Any] = StateGraph(OrderState)
    builder.add_node("before", _step("before"))
    builder.add_node("ask", ask)
    builder.add_node("beside", _step("beside"))
    builder.add_node("after", _step("after"))
    builder.add_edge(START, "before")
    builder.add_edge("before", "ask")
    builder.add_edge("before", "beside")
    builder.add_edge(["ask", "beside"], "after")
    return builder.compile(checkpointer=saver)


def failing_graph(saver: Any) -> Any:
    """first -> charge, which raises while `count` is 0 -> last."""

    def charge(state: OrderState) -> dict[str, Any]:
        RAN.append("charge")
        if not state.get("count"):
            raise ValueError("nothing to charge")
        return {"log": ["charge"]}

    builder: StateGraph[Any] = StateGraph(OrderState)
    builder.add_node("first", _step("first"))
    builder.add_node("charge", charge)
    builder.add_node("last", _step("last"))
    builder.add_edge(START, "first")
    builder.add_edge("first", "charge")
    builder.add_edge("charge", "last")
    return builder.compile(checkpointer=saver)


def nested_graph(saver: Any) -> Any:
    """outer -> sub(in1 -> deep(d1 -> d2) -> in2) -> close, with a sibling of sub."""
    deep: StateGraph[Any] = StateGraph(OrderState)
    for name in ("d1", "d2"):
        deep.add_node(name, _step(name))
    deep.add_edge(START, "d1")
    deep.add_edge("d1", "d2")
    inner: StateGraph[Any] = StateGraph(OrderState)
    inner.add_node("in1", _step("in1", note="from in1"))
    inner.add_node("deep", deep.compile())
    inner.add_node("in2", lambda state: RAN.append("in2") or {"log": [f"in2 saw {state.get('note')}"]})
    inner.add_edge(START, "in1")
    inner.add_edge("in1", "deep")
    inner.add_edge("deep", "in2")
    outer: StateGraph[Any] = StateGraph(OrderState)
    outer.add_node("outer", _step("outer"))
    outer.add_node("sub", inner.compile())
    outer.add_node("close", _step("close"))
    outer.add_edge(START, "outer")
    outer.add_edge("outer", "sub")
    outer.add_edge("sub", "close")
    return outer.compile(checkpointer=saver)


def sent_subgraph(saver: Any) -> Any:
    """plan -> Send sub x2, each a subgraph one -> two."""
    inner: StateGraph[Any] = StateGraph(OrderState)
    inner.add_node("one", lambda state: RAN.append(f"one {state['count']}") or {"note": f"one {state['count']}"})
    inner.add_node("two", lambda state: RAN.append(f"two {state['note']}") or {"log": [state["note"]]})
    inner.add_edge(START, "one")
    inner.add_edge("one", "two")
    compiled = inner.compile()

    def sub(state: OrderState) -> dict[str, Any]:
        return {"log": compiled.invoke({"count": state["count"], "log": []})["log"]}

    outer: StateGraph[Any] = StateGraph(OrderState)
    outer.add_node("plan", _step("plan"))
    outer.add_node("sub", sub)
    outer.add_edge(START, "plan")
    outer.add_conditional_edges("plan", lambda state: [Send("sub", {"count": n}) for n in (1, 2)], ["sub"])
    return outer.compile(checkpointer=saver)


def memory_graph(saver: Any) -> Any:
    """turn -> writer, a subgraph with its own memory (counts its calls) -> end."""
    inner: StateGraph[Any] = StateGraph(OrderState)
    inner.add_node("write", lambda state: RAN.append("write") or {"count": state.get("count", 0) + 1})
    inner.add_edge(START, "write")
    writer = inner.compile(checkpointer=True)

    def call(state: OrderState) -> dict[str, Any]:
        RAN.append("call")
        return {"log": [f"calls {writer.invoke({'note': state.get('note', '')})['count']}"]}

    outer: StateGraph[Any] = StateGraph(OrderState)
    outer.add_node("turn", _step("turn"))
    outer.add_node("call", call)
    outer.add_edge(START, "turn")
    outer.add_edge("turn", "call")
    return outer.compile(checkpointer=saver)


def _extend(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(item for write in writes for item in write)]


class DeltaState(TypedDict, total=False):
    lines: Annotated[list[str], DeltaChannel(_extend, snapshot_frequency=50)]
    turns: int


def delta_graph(saver: Any) -> Any:
    """one -> two -> three, each adds to `lines`, which is stored as deltas."""
    builder: StateGraph[Any] = StateGraph(DeltaState)
    names = ("one", "two", "three")
    for number, name in enumerate(names):

        def node(state: DeltaState, name: str = name, number: int = number) -> dict[str, Any]:
            RAN.append(name)
            return {"lines": [f"{name} after {len(state.get('lines', []))}"], "turns": number}

        builder.add_node(name, node)
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", "three")
    return builder.compile(checkpointer=saver)


def make(path: Path, graph: Any, values: dict[str, Any], thread: str = "t", **options: Any) -> Path:
    """Run a graph once to its end, its pause or its error, in a real saver file."""
    with saver_at(path) as saver, suppress(ValueError):
        graph(saver).invoke(values, config(thread), durability="sync", **options)
    RAN.clear()
    return path


def run(path: str | Path, graph: Any, thread: str, checkpoint_id: str | None, command: Any = None) -> tuple[Any, list[str]]:
    """Run a fork with the real LangGraph: (its final values, the node bodies that ran)."""
    RAN.clear()
    with saver_at(path) as saver:
        found = graph(saver).invoke(command, config(thread, checkpoint_id), durability="sync")
    ran = list(RAN)
    RAN.clear()
    return found, ran


def history(path: str | Path, graph: Any, thread: str = "t") -> list[Any]:
    """All states of a thread as LangGraph reports them, newest first."""
    with saver_at(path) as saver:
        return list(graph(saver).get_state_history(config(thread)))
