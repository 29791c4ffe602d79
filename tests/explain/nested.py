"""Threads whose tasks run subgraphs, in every way that LangGraph names their namespaces."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode

from tests.explain.graphs import chain, graph_of, says
from tests.factories import config, saver_at


class Talk(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]


def make_per_invocation(path: Path) -> Path:
    """Thread `t`: `plan` -> `writer`, whose task runs `draft` -> `edit` twice, the second time in `writer:ID|1`."""
    inner = chain("draft", "edit").compile()

    def writer(state: Any) -> dict[str, Any]:
        inner.invoke({"topic": "first"})
        inner.invoke({"topic": "second"})
        return {"log": ["written"]}

    with saver_at(path) as saver:
        graph = chain("plan", "writer", "close", writer=writer).compile(checkpointer=saver)
        graph.invoke({"topic": "tea"}, config("t"))
    return path


def make_persistent(path: Path, turns: int = 3) -> Path:
    """Thread `t`: each turn runs `greet` -> `memory`, a subgraph of `recall` -> `reply` with its own memory."""
    inner = chain("recall", "reply").compile(checkpointer=True)
    with saver_at(path) as saver:
        graph = chain("greet", "memory", memory=inner).compile(checkpointer=saver)
        for turn in range(turns):
            graph.invoke({"topic": f"turn {turn}"}, config("t"))
    return path


def make_long_turn(path: Path, rounds: int) -> Path:
    """Thread `t`: `greet` -> `memory`, a subgraph with its own memory whose one turn is many rounds of `recall`."""

    def again(state: Any) -> str:
        return "recall" if len(state["log"]) <= rounds else END

    builder = graph_of({"recall": says("recall")}, [(START, "recall")])
    builder.add_conditional_edges("recall", again, ["recall", END])
    inner = builder.compile(checkpointer=True)
    with saver_at(path) as saver:
        graph = chain("greet", "memory", memory=inner).compile(checkpointer=saver)
        graph.invoke({"topic": "turn"}, {**config("t"), "recursion_limit": rounds + 10})
    return path


def make_deep(path: Path) -> Path:
    """Thread `t`: `outer` runs `middle`, which runs `inner`, which runs `deepest`."""
    third = chain("deepest").compile()
    second = chain("inner", inner=third).compile()
    first = chain("middle", middle=second).compile()
    with saver_at(path) as saver:
        chain("outer", outer=first).compile(checkpointer=saver).invoke({"topic": "tea"}, config("t"))
    return path


def make_in_a_tool(path: Path) -> Path:
    """Thread `t`: a tool that node `tools` calls runs `search` -> `read`, which no declared subgraph tells LangGraph of."""
    inner = chain("search", "read").compile()

    @tool
    def research(topic: str) -> str:
        """Look something up."""
        return str(inner.invoke({"topic": topic})["log"])

    call = {"name": "research", "args": {"topic": "tea"}, "id": "call-1"}
    ask = lambda _state: {"messages": [AIMessage("", id="ask", tool_calls=[call])]}  # noqa: E731
    nodes = {"ask": ask, "tools": ToolNode([research])}
    with saver_at(path) as saver:
        graph = graph_of(nodes, [(START, "ask"), ("ask", "tools")], Talk).compile(checkpointer=saver)
        graph.invoke({"log": ["begin"]}, config("t"))
    return path


def make_odd_names(path: Path) -> Path:
    """Thread `t`: an entrypoint calls the task `odd|name:here`, which runs a subgraph."""
    inner = graph_of({"look": says("look")}, [(START, "look")]).compile()

    @task(name="odd|name:here")
    def odd(topic: str) -> str:
        return str(inner.invoke({"topic": topic}))

    with saver_at(path) as saver:

        @entrypoint(checkpointer=saver)
        def work(topic: str) -> str:
            return odd(topic).result()

        work.invoke("tea", config("t"))
    return path
