"""Graphs that any LangGraph release from 0.1 on can make and run; this file is run by the interpreter of such a release.

    python era_graph.py make FILE            makes the threads in a new file, prints which of them this release can make
    python era_graph.py run FILE GRAPH THREAD [--at ID] [--resume JSON]

Prints one JSON document. `ran` are the nodes whose bodies really ran, in order.
"""

import argparse
import dataclasses
import json
import operator
import sqlite3
import sys
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, StateGraph

RAN: list[str] = []


@dataclasses.dataclass
class Money:
    amount: int
    unit: str


class State(TypedDict, total=False):
    value: int
    trace: Annotated[list, operator.add]
    money: Money
    seen: str
    bad: bool
    answer: Any
    note: str


def node(name, work=lambda state: {}):
    def body(state):
        RAN.append(name)
        return {"trace": [name], **work(state)}

    return name, body


def told(state):
    money = state["money"]
    return {"seen": f"{type(money).__name__} {money.amount} {state['value']}"}


def fails(state):
    if state.get("bad"):
        raise ValueError("right is bad")
    return {}


def built(nodes, edges, entry):
    builder = StateGraph(State)
    for name, body in nodes:
        builder.add_node(name, body)
    builder.set_entry_point(entry)
    for before, after in edges:
        builder.add_edge(before, after)
    return builder


def chain():
    nodes = [node("a", lambda s: {"value": s["value"] + 1}), node("b", lambda s: {"value": s["value"] * 2}), node("c", told)]
    return built(nodes, [("a", "b"), ("b", "c"), ("c", END)], "a")


def failing():
    nodes = [node("start"), node("left"), node("right", fails), node("join", told)]
    edges = [("start", "left"), ("start", "right"), (["left", "right"], "join"), ("join", END)]
    return built(nodes, edges, "start")


def asking():
    from langgraph.types import interrupt

    nodes = [node("start"), node("side"), node("ask", lambda s: {"answer": interrupt({"value": s["value"]})}), node("join", told)]
    edges = [("start", "side"), ("start", "ask"), (["side", "ask"], "join"), ("join", END)]
    return built(nodes, edges, "start")


def nested():
    inner = built(
        [node("x", lambda s: {"value": s["value"] + 10}), node("y", lambda s: {"value": s["value"] * 3})],
        [("x", "y"), ("y", END)], "x",
    )  # fmt: skip
    return built([node("before"), ("inner", inner.compile()), node("after", told)],
                 [("before", "inner"), ("inner", "after"), ("after", END)], "before")  # fmt: skip


def sending():
    """Several tasks of one node, each sent its own number."""
    from langgraph.constants import Send

    builder = StateGraph(State)
    builder.add_node(*node("plan"))
    builder.add_node("work", worked)
    builder.set_entry_point("plan")
    builder.add_conditional_edges("plan", lambda state: [Send("work", {"value": value}) for value in (1, 2, 3)], ["work"])
    builder.add_edge("work", END)
    return builder


def worked(given):
    RAN.append("work")
    return {"trace": [given["value"]]}


GRAPHS = {"chain": chain, "failing": failing, "asking": asking, "nested": nested, "sending": sending}
GIVEN = {"value": 1, "trace": [], "money": Money(5, "EUR"), "note": "first", "bad": True}


def id_key():
    from langgraph.checkpoint.base import BaseCheckpointSaver

    try:
        import langgraph.checkpoint.serde.jsonplus  # noqa: F401 - releases from 0.2 on
    except ImportError:
        return "thread_ts"
    return "checkpoint_id" if BaseCheckpointSaver else ""


def saver(path):
    return SqliteSaver(sqlite3.connect(path, check_same_thread=False))


def make(path):
    made = {}
    for name, graph in GRAPHS.items():
        config = {"configurable": {"thread_id": name}}
        try:
            compiled = graph().compile(checkpointer=saver(path))
            compiled.invoke(GIVEN, config)
            made[name] = "whole"
        except ImportError:
            continue
        except ValueError as error:
            made[name] = str(error)
    return made


def run(path, graph, thread, at, resume):
    config = {"configurable": {"thread_id": thread}}
    if at:
        config["configurable"][id_key()] = at
    compiled = GRAPHS[graph]().compile(checkpointer=saver(path))
    given = None
    if resume is not None:
        from langgraph.types import Command

        given = Command(resume=resume)
    error = None
    try:
        compiled.invoke(given, config)
    except ValueError as raised:
        error = str(raised)
    state = compiled.get_state({"configurable": {"thread_id": thread}})
    return {
        "ran": RAN,
        "values": {key: shown(value) for key, value in state.values.items()},
        "next": list(state.next),
        "error": error,
    }


def shown(value):
    return f"{type(value).__name__} {value.amount} {value.unit}" if isinstance(value, Money) else value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=("make", "run"))
    parser.add_argument("words", nargs="+")
    parser.add_argument("--at")
    parser.add_argument("--resume", type=json.loads)
    options = parser.parse_args()
    if options.act == "make":
        found = make(*options.words)
    else:
        found = run(*options.words, options.at, options.resume)
    json.dump(found, sys.stdout, default=repr)


if __name__ == "__main__":
    from era_graph import main as own_main  # the classes belong to a module that the saver can find again

    own_main()
