"""A user's project to write as a node in: parallel nodes, a join, a branch, a `Command`, Sends, many reducers, a subgraph."""

from __future__ import annotations

import importlib.util
import sqlite3
from pathlib import Path
from typing import Any

from tests.factories import config, saver_at

GRAPHS = """
import operator
from typing import Annotated, TypedDict
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    tags: Annotated[set, lambda old, new: (old or set()) | new]
    best: Annotated[int, lambda old, new: max(old or 0, new)]
    price: float
    route: str

def plan(state):
    return {"messages": [AIMessage("planned", id="ai-1")], "notes": ["plan"], "total": 1, "price": 10.0, "tags": {"p"}, "best": 3}

def web(state):
    return {"notes": ["web"], "total": 10, "best": 5, "tags": {"w"}}

def docs(state):
    return {"notes": ["docs"], "total": 100, "tags": {"d"}}

def join(state):
    return {"notes": ["join"], "route": "cheap" if state["price"] < 50 else "dear"}

def cheap(state):
    return {"messages": [AIMessage("cheap", id="ai-2")], "notes": ["cheap"]}

def dear(state):
    return Command(update={"notes": ["dear"]}, goto="fan")

def fan(state):
    return {"notes": ["fan"]}

def spread(state):
    return [Send("grade", {"note": note}) for note in state["notes"][:2]]

def grade(state):
    return {"notes": ["graded " + state["note"]]}

def approve(state):
    return {"notes": ["approved " + str(interrupt({"question": "sell?"}))]}

def check(state):
    raise RuntimeError("the shop is closed")

def one(state):
    return {"inner": 1}

def two(state):
    return {"inner": state["inner"] + 1, "notes": ["inner " + str(state["inner"])]}


class Inner(TypedDict, total=False):
    notes: Annotated[list[str], operator.add]
    inner: int

team = StateGraph(Inner).add_node("one", one).add_node("two", two).add_edge(START, "one").add_edge("one", "two").compile()


def built(last=None):
    builder = StateGraph(State)
    for node in (plan, web, docs, join, cheap, dear, fan, grade):
        builder.add_node(node.__name__, node)
    builder.add_node("team", team)
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "web")
    builder.add_edge("plan", "docs")
    builder.add_edge(["web", "docs"], "join")
    builder.add_conditional_edges("join", lambda state: state["route"], ["cheap", "dear"])
    builder.add_edge("cheap", "fan")
    builder.add_conditional_edges("fan", spread, ["grade"])
    builder.add_edge("grade", "team")
    if last is not None:
        builder.add_node(last.__name__, last)
        builder.add_edge("team", last.__name__)
    return builder

graph = built().compile()
asking = built(approve).compile()
failing = built(check).compile()
"""


def make_project(folder: Path) -> Path:
    """`shop.sqlite` with a thread per graph (finished, paused, failed), beside the code that made it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shop_graphs.py").write_text(GRAPHS, encoding="utf-8")
    names = ", ".join(f'"{name}": "./shop_graphs.py:{name}"' for name in ("graph", "asking", "failing"))
    (folder / "langgraph.json").write_text(f'{{"dependencies": ["."], "graphs": {{{names}}}}}', encoding="utf-8")
    module = load(folder)
    with saver_at(folder / "shop.sqlite") as saver:
        for name in ("graph", "asking", "failing"):
            graph = getattr(module, name)
            graph.checkpointer = saver
            try:
                graph.invoke({"messages": [("user", "hi")], "notes": []}, config(name))
            except RuntimeError:
                pass
    return folder / "shop.sqlite"


def load(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("shop_graphs_under_test", folder / "shop_graphs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers_of_rows(database: Path) -> tuple[int, int]:
    """How many checkpoints and writes a file holds."""
    connection = sqlite3.connect(database)
    try:
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("checkpoints", "writes")]
    finally:
        connection.close()
    return counts[0], counts[1]
