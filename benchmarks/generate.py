"""Make the databases that the benchmarks measure, with the real SqliteSaver.

    python benchmarks/generate.py long  OUT.sqlite [5000]    one thread, a rolling window of 50 messages (about 130 MB)
    python benchmarks/generate.py wide  OUT.sqlite [2000]    many threads of two short turns (about 80 MB)

Deterministic but for ids and times. Needs langgraph and langgraph-checkpoint-sqlite; no network.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

SENTENCE = "Checkpoints accumulate while the agent weighs one tool against another and writes its reasons down at length. " * 3


def last_fifty(before: list[Any] | None, new: list[Any]) -> list[Any]:
    return ((before or []) + new)[-50:]


class Rolling(TypedDict, total=False):
    count: int
    messages: Annotated[list[Any], last_fifty]


class Turn(TypedDict, total=False):
    messages: Annotated[list[Any], last_fifty]
    plan: str
    facts: dict[str, Any]
    turns: int


def said(i: int) -> HumanMessage | AIMessage:
    return (HumanMessage if i % 2 else AIMessage)(f"{i}: {SENTENCE}", id=f"m{i}")


def long(saver: SqliteSaver, checkpoints: int) -> None:
    builder: StateGraph[Any] = StateGraph(Rolling)
    builder.add_node("work", lambda state: {"count": state["count"] + 1, "messages": [said(state["count"] + 1)]})
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: END if state["count"] >= checkpoints - 2 else "work", ["work", END])
    graph = builder.compile(checkpointer=saver)
    start: Any = {"count": 0, "messages": [said(i) for i in range(50)]}
    graph.invoke(start, {"configurable": {"thread_id": "long"}, "recursion_limit": checkpoints + 10})


def wide(saver: SqliteSaver, threads: int) -> None:
    builder: StateGraph[Any] = StateGraph(Turn)
    builder.add_node("plan", lambda state: {"plan": "p" * 200, "messages": [said(1)]})
    builder.add_node("look_up", lambda state: {"facts": {"numbers": list(range(30))}})
    builder.add_node("reply", lambda state: {"turns": (state.get("turns") or 0) + 1, "messages": [said(2)]})
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "look_up")
    builder.add_edge("look_up", "reply")
    builder.add_edge("reply", END)
    graph = builder.compile(checkpointer=saver)
    for i in range(threads):
        for turn in range(2):
            question: Any = {"messages": [HumanMessage(f"question {turn} of customer {i}")]}
            graph.invoke(question, {"configurable": {"thread_id": f"customer-{i:05d}"}})


KINDS = {"long": (long, 5000), "wide": (wide, 2000)}


def generate(kind: str, path: Path, size: int | None = None) -> None:
    """Write a database of a kind to `path`, which must not exist yet."""
    make, default = KINDS[kind]
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA synchronous=OFF")
    make(SqliteSaver(connection), size or default)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    generate(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
