"""Threads whose checkpoints do not hold what their writes lead to, and threads with supersteps that were not stored."""

from __future__ import annotations

import operator
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import START
from langgraph.graph.message import add_messages

from tests.explain.graphs import chain, graph_of
from tests.factories import config, saver_at


class Basket(TypedDict, total=False):
    cart: dict[str, int]
    log: Annotated[list[str], operator.add]


def make_spoiled(path: Path) -> Path:
    """Thread `t`: #2 `spoil` writes `log`, and puts a free gift into `cart` without writing it."""

    def spoil(state: Basket) -> dict[str, Any]:
        # LangGraph stores writes in the background: the input's must be in the file before its object is changed.
        while len(list(saver.list(config("t"), limit=2))[-1].pending_writes or ()) < 2:
            time.sleep(0.001)
        state["cart"]["free gift"] = 1
        return {"log": ["spoiled"]}

    with saver_at(path) as saver:
        graph = graph_of({"spoil": spoil}, [(START, "spoil")], Basket).compile(checkpointer=saver)
        graph.invoke({"cart": {"cup": 1}}, config("t"), durability="sync")
    return path


def make_gaps(path: Path) -> Path:
    """Thread `t`: two runs of which only the last checkpoint was kept, at steps 3 and 8."""
    with saver_at(path) as saver:
        graph = chain("a", "b", "c").compile(checkpointer=saver)
        for topic in ("tea", "milk"):
            graph.invoke({"topic": topic}, config("t"), durability="exit")
    return path


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], operator.add]


def make_parallel(path: Path) -> Path:
    """Thread `t`: at #2 `ann`, `ben` and `cy` each wrote a message and a note in one superstep."""

    def writer(name: str) -> Any:
        return lambda _state: {"messages": [AIMessage(f"{name} says hello")], "notes": [f"note of {name}"]}

    names = ("ann", "ben", "cy")
    with saver_at(path) as saver:
        graph = graph_of({name: writer(name) for name in names}, [(START, name) for name in names], Chat)
        graph.compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi")], "notes": ["begin"]}, config("t"))
    return path
